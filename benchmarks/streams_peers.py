"""Other libraries on the rounds of `streams.py`, which runs this file with a Python that has them.

python streams_peers.py ROUNDS.npz NAME COUNT
"""

import json
import random
import sys
import time

import numpy as np

WIDTH = 1.0
"""Width of MABWiser's bounds, in units of twice the standard deviation of the noise."""
NOISE_STD = 0.5


class MABWiser:
    """A ridge regression for each arm: the same model, as each arm has a coefficient of its own."""

    def __init__(self, name, n_arms):
        from mabwiser.mab import MAB, LearningPolicy

        rule = (
            LearningPolicy.LinUCB(alpha=WIDTH, l2_lambda=1.0)
            if "UCB" in name
            else LearningPolicy.LinTS(alpha=NOISE_STD, l2_lambda=1.0)
        )
        self.mab = MAB(list(range(n_arms)), rule, seed=0)
        self.mab.fit(
            [0], [0.0], np.zeros((1, 1))
        )  # a zero context teaches nothing, but a first fit is needed

    def act(self, context):
        return self.mab.predict([[context]])

    def update(self, context, arm, reward):
        self.mab.partial_fit([arm], [reward], [[context]])


class VowpalWabbit:
    """One linear model by stochastic gradients; each arm has a feature of its own."""

    def __init__(self, name, n_arms):
        from vowpalwabbit import Workspace

        options = "--regcbopt" if "RegCB" in name else "--bag 5"
        self.vw = Workspace(
            f"--cb_explore_adf {options} --noconstant --quiet --cb_min_cost -6 --cb_max_cost 6"
        )
        self.n_arms = n_arms
        self.rng = random.Random(0)

    def act(self, context):
        self.lines = [f"|a x{arm}:{context:.7g}" for arm in range(self.n_arms)]
        shares = self.vw.predict(self.lines)
        arm = self.rng.choices(range(len(shares)), shares)[0]
        self.share = shares[arm]
        return arm

    def update(self, context, arm, reward):
        self.lines[arm] = f"0:{-reward:.7g}:{self.share:.7g} {self.lines[arm]}"
        self.vw.learn(self.lines)


def main():
    path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rounds = np.load(path)
    context, means, noise = rounds["context"], rounds["means"], rounds["noise"]
    player = (MABWiser if name.startswith("MABWiser") else VowpalWabbit)(name, means.shape[1])
    regret = 0.0
    began = time.process_time()
    for t in range(count):
        arm = player.act(context[t])
        player.update(context[t], arm, means[t, arm] + noise[t])
        regret += means[t].max() - means[t, arm]
    print(json.dumps({"seconds": time.process_time() - began, "regret": float(regret)}))


if __name__ == "__main__":
    main()
