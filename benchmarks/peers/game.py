"""The problem that every library plays, and the timing of its decisions.

Contexts are vectors x, and φ(x, a) = M_a x with a known rotation M_a for each arm. The mean reward φ(x, a)ᵀθ is
linear in φ with one shared θ, and equally xᵀθ_a with θ_a = M_aᵀθ, linear in x with one vector for each arm: libraries
of either form play the same problem, with the right model, on the same contexts and noise.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

import solid_bandits as sb
from solid_bandits.core.loop import play

NOISE_STD = 0.1
UCB_WIDTH = 2 * NOISE_STD  # where a library's bound is mean + width * norm with a constant width
BATCH = 100


@dataclass(frozen=True)
class Game:
    """A problem in both forms."""

    vectors: np.ndarray
    """x, shape (contexts, dim): for libraries with one model per arm."""
    problem: sb.Problem
    """φ(x, a), shape (contexts, arms, dim), and θ: for libraries with one model for all arms."""

    steps: int
    """Number of steps of one run."""

    @property
    def size(self) -> tuple[int, int, int]:
        """Contexts, arms, dim."""
        return self.problem.features.shape


def make_game(n_contexts: int, n_arms: int, dim: int, steps: int, seed: int = 0) -> Game:
    """Draw unit vectors x and θ, and random rotations M_a."""
    rng = np.random.default_rng([seed, n_contexts, n_arms, dim])
    vectors = rng.normal(size=(n_contexts, dim))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rotations = np.linalg.qr(rng.normal(size=(n_arms, dim, dim)))[0]
    theta = rng.normal(size=dim)
    features = np.einsum("aij,xj->xai", rotations, vectors)
    return Game(vectors, sb.Problem(features, theta / np.linalg.norm(theta), noise_std=NOISE_STD), steps)


class Player(Protocol):
    """A library's agent. Contexts and arms are indices; the inputs of a library are prepared beforehand."""

    def act(self, context: int) -> int:
        """Choose an arm."""

    def update(self, context: int, arm: int, reward: float) -> None:
        """Learn from a reward."""


class BatchPlayer(Player, Protocol):
    """A player that also takes many contexts at once."""

    def act_batch(self, contexts: np.ndarray) -> np.ndarray:
        """Choose an arm for each context, with the current knowledge."""

    def update_batch(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        """Learn from all rewards."""


@dataclass(frozen=True)
class Contender:
    """One row of the table: `start(game, seed)` returns a player or, if `in_loop`, a policy for the compiled loop."""

    library: str
    algorithm: str
    kind: str
    """UCB, TS, default (the policy of an agent if none is named) or other: rows of a kind are compared."""
    model: str
    """`shared`, d parameters; or `per arm`, d for each arm."""
    start: Callable
    batches: bool = False
    in_loop: bool = False


@dataclass(frozen=True)
class Played:
    """Results of one run."""

    seconds: float
    """CPU seconds of the process, for all decisions and updates together."""
    regret: float


def _stream(game: Game, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(game.size[0], size=game.steps), NOISE_STD * rng.normal(size=game.steps)


def play_singly(contender: Contender, game: Game, seed: int) -> Played:
    """Play one decision, one reward and one update at a time. Making the player is not timed."""
    player = contender.start(game, seed)
    drawn, noise = _stream(game, seed)
    contexts, errors, means = drawn.tolist(), noise.tolist(), game.problem.means.tolist()
    arms = []
    start = time.process_time()
    for context, error in zip(contexts, errors, strict=True):
        arm = player.act(context)
        player.update(context, arm, means[context][arm] + error)
        arms.append(arm)
    seconds = time.process_time() - start
    return Played(seconds, float(game.problem.gaps[drawn, arms].sum()))


def play_batches(contender: Contender, game: Game, seed: int) -> Played:
    """Play `BATCH` decisions with the knowledge before them, then one update with all their rewards."""
    player = contender.start(game, seed)
    contexts, noise = _stream(game, seed)
    regret = seconds = 0.0
    for first in range(0, game.steps, BATCH):
        some = contexts[first : first + BATCH]
        start = time.process_time()
        arms = player.act_batch(some)
        rewards = game.problem.means[some, arms] + noise[first : first + BATCH]
        player.update_batch(some, arms, rewards)
        seconds += time.process_time() - start
        regret += float(game.problem.gaps[some, arms].sum())
    return Played(seconds, regret)


def play_loop(contender: Contender, game: Game, seed: int) -> Played:
    """Play the compiled loop of `sb.simulate`, which draws contexts and noise itself; making the agent is timed too."""
    policy = contender.start(game, seed)
    checkpoints = np.array([game.steps])
    start = time.process_time()
    trace = play(game.problem, policy, game.steps, seed, run=0, steps=checkpoints)
    return Played(time.process_time() - start, float(trace.regret[-1]))
