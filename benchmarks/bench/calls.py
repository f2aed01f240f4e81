"""Calls from Python: a decision with its reward, next to the compiled calls in it and to thirty lines of NumPy.

The kernels are called as the agent calls them, with nothing around. NumPy is LinUCB of `benchmarks/peers`, vectorised
in batches as a practitioner would write it. Decisions are made with probabilities, which are read.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from adapters import plain_numpy
from game import BATCH, Game, make_game

import solid_bandits as sb
from solid_bandits.core.agent_kernels import UNCHECKED
from solid_bandits.core.offer import ALL

CALL_SIZES = ((4, 8, 8), (4, 40, 64))
"""Contexts, arms, dim."""
LEAST = "Python's floor (LinUCB)"
STEPS = 256
"""Number of contexts and rewards that are drawn beforehand and reused."""
Steps = Callable[[int], None]
"""Function that makes a number of decisions and learns from their rewards."""


class Called(NamedTuple):
    """Medians over rounds of one kind of call, in seconds per decision with its reward."""

    name: str
    size: tuple[int, int, int]
    time: float
    kernel: float
    plain: float
    ratio: float
    """Ratio of its time to the kernels' time."""
    speed: float
    """Ratio of NumPy's time to its time."""

    @property
    def key(self) -> str:
        """Name in `bench.json`."""
        return f"{self.name} {','.join(map(str, self.size))}"


class Contest:
    """All calls that take turns at one size."""

    def __init__(self, size: tuple[int, int, int]) -> None:
        self.size = size
        self.game: Game = make_game(*size, STEPS)
        rng = np.random.default_rng(0)
        self.contexts = rng.integers(size[0], size=STEPS)
        self.features = [self.game.problem.features[context].copy() for context in self.contexts]
        self.offers = np.array(self.features[:BATCH])
        self.rewards = rng.normal(size=STEPS).tolist()
        self.some = np.array(self.rewards[:BATCH])
        self.ids = 0
        known = {"noise_std": self.game.problem.noise_std}
        policies: dict[str, tuple[Any, dict[str, Any]]] = {
            "LinUCB": (sb.LinUCB(), known),
            "RandUCB": (sb.RandUCB(), {}),
        }
        self.plays: dict[str, Steps] = {
            "numpy": self._plain(),
            "numpy, batches": self._plain_batches(),
        }
        self.rows: list[tuple[str, str, str]] = []
        """Rows of the table: name, kernel and the form of NumPy that it is compared with."""
        for name, (policy, told) in policies.items():
            agent, batches = (sb.Agent(policy, dim=size[2], **told) for _ in range(2))
            self._add(f"Agent({name})", "numpy", self._one_by_one(agent), self._bare(policy, told))
            bare = self._bare_batches(policy, told)
            self._add(f"Agent({name}), batches of {BATCH}", "numpy, batches", self._in_batches(batches), bare)
        least = self._least(sb.LinUCB(), known)
        self._add(LEAST, "numpy", least, self.plays["kernel of Agent(LinUCB)"])
        for log in (False, True):
            bandit = sb.Bandit(sb.RandUCB(), dim=size[2], log=log)
            name = "Bandit(RandUCB) in memory" + ("" if log else ", no log")
            self._add(name, "numpy", self._with_ids(bandit), self.plays["kernel of Agent(RandUCB)"])

    def _add(self, name: str, beside: str, play: Steps, kernel: Steps) -> None:
        self.plays[name], self.plays[f"kernel of {name}"] = play, kernel
        self.rows.append((name, f"kernel of {name}", beside))

    def _plain(self) -> Steps:
        player = plain_numpy.CONTENDERS[0].start(self.game, 0)
        contexts = self.contexts.tolist()

        def play(count: int) -> None:
            for step in range(count):
                context = contexts[step % STEPS]
                player.update(context, player.act(context), self.rewards[step % STEPS])

        return play

    def _plain_batches(self) -> Steps:
        player = plain_numpy.CONTENDERS[0].start(self.game, 0)
        contexts = self.contexts[:BATCH]

        def play(count: int) -> None:
            for _ in range(count // BATCH):
                player.update_batch(contexts, player.act_batch(contexts), self.some)

        return play

    def _one_by_one(self, agent: sb.Agent) -> Steps:
        def play(count: int) -> None:
            for step in range(count):
                decision = agent.decide(self.features[step % STEPS])
                _ = decision.probabilities
                agent.learn(decision, self.rewards[step % STEPS])

        return play

    def _bare(self, policy: Any, told: dict[str, Any]) -> Steps:
        _, arms, dim = self.size
        agent = sb.Agent(policy, dim=dim, **told)
        decide, learn, kept = agent._decide, agent._learn, np.empty(arms + dim)

        def play(count: int) -> None:
            address = agent._address
            for step in range(count):
                decide(None, address, UNCHECKED, self.features[step % STEPS], ALL, kept)
                learn(None, address, UNCHECKED, 0, kept, arms, self.rewards[step % STEPS], 0)

        return play

    def _least(self, policy: Any, told: dict[str, Any]) -> Steps:
        """What Python asks for two methods that call the kernels and make a record, and do nothing else."""
        _, arms, dim = self.size
        agent = sb.Agent(policy, dim=dim, **told)

        class Record:
            __slots__ = ("kept", "place")

        class Least:
            def __init__(self) -> None:
                self.kernel, self.learning, self.address = agent._decide, agent._learn, agent._address

            def decide(self, features: Any) -> Record:
                record = Record()
                record.kept = kept = np.empty(arms + dim)
                record.place, _ = self.kernel(None, self.address, UNCHECKED, features, ALL, kept)
                return record

            def learn(self, record: Record, reward: float) -> None:
                self.learning(None, self.address, UNCHECKED, 0, record.kept, arms, reward, 0)

        least = Least()

        def play(count: int) -> None:
            for step in range(count):
                record = least.decide(self.features[step % STEPS])
                _ = record.kept[:arms]
                least.learn(record, self.rewards[step % STEPS])

        return play

    def _in_batches(self, agent: sb.Agent) -> Steps:
        def play(count: int) -> None:
            for _ in range(count // BATCH):
                batch = agent.decide_many(self.offers)
                _ = batch.probabilities
                agent.learn_many(batch, self.some)

        return play

    def _bare_batches(self, policy: Any, told: dict[str, Any]) -> Steps:
        _, arms, dim = self.size
        agent = sb.Agent(policy, dim=dim, **told)
        decide, learn = agent._compiled_many("decide_many"), agent._compiled_many("learn_many")
        step = agent._compiled.state.regression.step
        rows, starts = self.offers.reshape(-1, dim), np.arange(BATCH + 1) * arms
        shares, chosen = np.empty(BATCH * arms), np.empty((BATCH, dim))
        places, said = np.zeros(BATCH, dtype=np.int64), np.zeros(BATCH, dtype=np.int64)

        def play(count: int) -> None:
            address = agent._address
            for _ in range(count // BATCH):
                decide(None, address, address, step, rows, starts, ALL, shares, chosen, places, said)
                step[()] += BATCH - 1
                learn(None, address, chosen, self.some, 0, 0)

        return play

    def _with_ids(self, bandit: sb.Bandit) -> Steps:
        def play(count: int) -> None:
            for step in range(count):
                self.ids += 1
                event_id = f"event-{self.ids}"
                decision = bandit.decide(self.features[step % STEPS], event_id=event_id)
                _ = decision.probabilities
                bandit.learn(event_id, self.rewards[step % STEPS])

        return play


def measure_calls(rounds: int, seconds: float, say: Callable[[str], None]) -> list[Called]:
    """Play rounds in which every kind of call has its turn; return medians of times, and of ratios within a round."""
    found = []
    for size in CALL_SIZES:
        contest = Contest(size)
        counts, times = {}, {name: np.zeros(rounds) for name in contest.plays}
        for name, play in contest.plays.items():
            play(2 * STEPS)  # past the first decisions, which are checked more closely
            each = _seconds(play, BATCH)
            counts[name] = max(round(seconds / each / BATCH), 1) * BATCH
        for number in range(rounds):
            say(f"calls at {size}: round {number + 1} of {rounds}")
            for name, play in contest.plays.items():
                times[name][number] = _seconds(play, counts[name])
        for name, kernel, beside in contest.rows:
            mine, bare, plain = times[name], times[kernel], times[beside]
            medians = (float(np.median(one)) for one in (mine, bare, plain, mine / bare, plain / mine))
            found.append(Called(name, size, *medians))
    return found


def _seconds(play: Steps, count: int) -> float:
    start = time.thread_time()
    play(count)
    return max((time.thread_time() - start) / count, 1e-9)
