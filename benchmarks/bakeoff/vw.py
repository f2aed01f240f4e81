"""Vowpal Wabbit: a shared example of the columns, one action for each class, rates tried as its manual says."""

import random
from functools import partial

from game import Contender, play
from vowpalwabbit import Workspace

TRIED_ON, TRIED_ROUNDS = 100, 2_000
RATES = [(0.5, 0.5), *((rate, power) for rate in (0.05, 0.5, 5.0) for power in (0.0, 0.5))]
"""-l and --power_t; the default comes first, and a tie goes to what comes first."""
ALGORITHMS = {
    "squarecb": "--squarecb",
    "regcbopt": "--regcbopt",
    "first 200": "--first 200",
    "epsilon 0.05": "--epsilon 0.05",
}


class _Player:
    def __init__(self, options, rates, rows, shuffle):
        rate, power = rates
        self.vw = Workspace(
            f"--cb_explore_adf {options} -q sa --cb_min_cost 0 --cb_max_cost 1 -l {rate} --power_t {power} "
            f"--quiet --random_seed {shuffle + 1}"
        )
        self.actions = [f"|a {arm}" for arm in range(rows.n_arms)]
        self.rng = random.Random(shuffle)

    def act(self, x):
        self.shared = "shared |s " + " ".join(f"{i}:{value:.6g}" for i, value in enumerate(x.tolist()))
        probabilities = self.vw.predict([self.shared, *self.actions])
        arm = self.rng.choices(range(len(probabilities)), probabilities)[0]
        self.probability = probabilities[arm]
        return arm

    def learn(self, x, arm, reward):
        lines = [self.shared, *self.actions]
        lines[1 + arm] = f"0:{1.0 - reward:g}:{self.probability:.7g} {lines[1 + arm]}"
        self.vw.learn(lines)


_chosen = {}


def _best_rates(options, rows):
    """The rates with the least loss on a shuffle that is not played."""
    key = options, id(rows)
    if key not in _chosen:
        X, right = rows.shuffled(TRIED_ON)
        X, right = X[:TRIED_ROUNDS], right[:TRIED_ROUNDS]
        losses = {
            rates: play(_Player(options, rates, rows, TRIED_ON), X, right)["loss"]
            for rates in dict.fromkeys(RATES)
        }
        _chosen[key] = min(losses, key=losses.__getitem__)
    return _chosen[key]


def _tuned(options, rows, shuffle):
    rates = _best_rates(options, rows)
    player = _Player(options, rates, rows, shuffle)
    player.noted = {"rates": rates}
    return player


CONTENDERS = [
    *(Contender("VW", f"{name}, tuned", partial(_tuned, options)) for name, options in ALGORITHMS.items()),
    *(Contender("VW", name, partial(_Player, options, RATES[0])) for name, options in ALGORITHMS.items()),
]
