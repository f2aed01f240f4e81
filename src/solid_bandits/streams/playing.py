"""One (stream, policy, seed) gives one trace: the loop of `loop`, over rounds that come in blocks."""

import time
from typing import Any, NamedTuple

import numpy as np

from solid_bandits._internal import checks
from solid_bandits._internal.compiling import compiled_for, jit_apart
from solid_bandits._internal.types import Bools, Floats, Ints
from solid_bandits.core.randomness import POLICY, make_rng
from solid_bandits.core.setting import Setting
from solid_bandits.estimation.arms import best_available
from solid_bandits.estimation.regression import predict_reward
from solid_bandits.policies.contract import CompiledAgent, Policy, act, kernels, start, update
from solid_bandits.policies.own import OwnPolicyError, compiling
from solid_bandits.policies.plain import PlainAgent
from solid_bandits.streams.base import Stream, sizes_of
from solid_bandits.streams.decisions import DecisionLog, DecisionWriter, make_log
from solid_bandits.streams.rounds import RoundArrays, sound_blocks

MOST_ARMS_COUNTED = 100
"""Largest number of arms for which pulls of single arms are recorded."""
SAMPLED = 1000
"""Number of rounds of a run, evenly spaced, whose predicted reward is recorded."""


class StreamTrace(NamedTuple):
    """The record of one run on a stream: all but the last three fields at each checkpoint."""

    steps: Ints
    regret: Floats
    """Cumulative regret, in mean rewards, against the best available arm."""
    explored: Ints
    reward: Floats
    """Cumulative rewards received."""
    ridge_regret: Floats
    """Cumulative regret against the greedy policy of the ridge fit; 0 without a fit."""
    pulls: Ints
    """Cumulative pulls of each arm, shape (checkpoints, arms); no arms where there are too many."""
    sampled: Ints
    """Steps of the samples in the two fields below."""
    predicted: Floats
    """Reward that the policy predicted for the arm it pulled, before the reward came; NaN if it has no estimate."""
    received: Floats
    """The reward that came."""


class Progress(NamedTuple):
    """The state of a run, carried from one block of rounds to the next."""

    places: Ints
    """Steps done, checkpoints passed, samples taken, exploring rounds."""
    totals: Floats
    """Regret, reward, regret against the ridge fit."""
    pulls: Ints
    """Pulls of each arm."""


@jit_apart
def play_rounds(
    agent: CompiledAgent,
    regression: Any | None,
    rounds: RoundArrays,
    fitted: Floats,
    trace: StreamTrace,
    progress: Progress,
    log: DecisionLog | None,
) -> tuple[int, int]:
    """Play the rounds of one block.

    `fitted` is θ of the ridge fit, or empty. Returns the step at which the policy chose an arm that does not exist or
    is not available, and that arm; (0, 0) if it never did.
    """
    places, totals = progress.places, progress.totals
    step, checkpoint, sample, explored = places[0], places[1], places[2], places[3]
    regret, received, ridge_regret = totals[0], totals[1], totals[2]
    for t in range(rounds.counts.shape[0]):
        step += 1
        count = rounds.counts[t]
        arms = rounds.features[t][:count]
        available = rounds.available[t][:count]
        means = rounds.means[t][:count]
        if log is None:
            arm, explores = act(agent, 0, arms, available, None)
        else:
            log.shares[:count] = np.nan  # and remain NaN where unknown
            arm, explores = act(agent, 0, arms, available, log.shares[:count])
        if not (0 <= arm < count and available[arm]):
            return step, arm
        reward = means[arm] + rounds.noise[t]
        best = means[arm]
        for other in range(count):
            if available[other] and means[other] > best:
                best = means[other]
        regret += best - means[arm]
        received += reward
        if fitted.shape[0] > 0:
            ridge_regret += means[best_available(arms, available, fitted)] - means[arm]
        if explores:
            explored += 1
        if progress.pulls.shape[0] > 0:
            progress.pulls[arm] += 1
        sampling = sample < trace.sampled.shape[0] and step == trace.sampled[sample]
        predicted = np.nan
        if regression is not None and (sampling or log is not None):
            predicted = predict_reward(regression, arms[arm])
        if sampling:
            trace.predicted[sample], trace.received[sample] = predicted, reward
            sample += 1
        if log is not None:
            log.arms[t], log.explored[t], log.rewards[t], log.predicted[t] = arm, explores, reward, predicted
            if log.probabilities.shape[1] > 0:
                for other in range(count):
                    log.probabilities[t, other] = log.shares[other]
            log.probability[t] = log.shares[arm]
        update(agent, 0, arm, arms[arm], reward, 0)
        while checkpoint < trace.steps.shape[0] and step == trace.steps[checkpoint]:
            trace.regret[checkpoint], trace.reward[checkpoint] = regret, received
            trace.ridge_regret[checkpoint], trace.explored[checkpoint] = ridge_regret, explored
            for other in range(progress.pulls.shape[0]):
                trace.pulls[checkpoint, other] = progress.pulls[other]
            checkpoint += 1
    places[0], places[1], places[2], places[3] = step, checkpoint, sample, explored
    totals[0], totals[1], totals[2] = regret, received, ridge_regret
    return 0, 0


def play_stream(
    stream: Stream,
    policy: Policy,
    setting: Setting,
    horizon: int,
    seed: int,
    run: int,
    steps: Ints,
    writer: DecisionWriter | None = None,
) -> tuple[StreamTrace, float]:
    """Play run number `run` of a policy on a stream; return its trace and the CPU seconds of its decisions.

    Its rounds and noise depend only on seed and run, not on the policy. Making or reading the rounds does not count as
    the policy's time. A writer receives every decision.
    """
    dim, n_arms = sizes_of(stream)
    if setting.dim != dim:
        raise ValueError(f"setting of a stream must have its dim of {dim}, got {setting.dim}")
    agent = start(policy, setting, None, make_rng(seed, run, POLICY))
    regression = getattr(agent.state, "regression", None)
    fitted = _fitted(stream.fit, dim)
    counted = n_arms if n_arms <= MOST_ARMS_COUNTED else 0
    trace = _new_trace(steps, counted, horizon)
    progress = Progress(np.zeros(4, dtype=np.int64), np.zeros(3), np.zeros(counted, dtype=np.int64))
    seconds, done = 0.0, 0
    loop: Any = None
    for block in sound_blocks(stream.blocks(seed, run), dim, n_arms):
        rounds = block.first(horizon - done)
        size, arms, _ = rounds.arrays.features.shape
        log = None if writer is None else make_log(size, arms, writer.probabilities)
        arguments = (agent, regression, rounds.arrays, fitted, trace, progress, log)
        with compiling(policy, agent, lambda: kernels(type(agent))):
            if isinstance(agent, PlainAgent):
                loop = getattr(play_rounds, "py_func", play_rounds)
            elif loop is None:
                loop = compiled_for(play_rounds, *arguments)
            began = time.thread_time()
            step, arm = loop(*arguments)
            seconds += time.thread_time() - began
        if step > 0:
            _complain(policy, rounds.arrays.available[step - done - 1], arm, step)
        if writer is not None and log is not None:
            writer.write(run, done + 1, rounds, log)
        done += len(rounds)
        if done == horizon:
            return trace, seconds
    raise ValueError(f"the stream must have {horizon} rounds, as many as the horizon has steps, got {done}")


def _fitted(fit: Any, dim: int) -> Floats:
    """Return θ of a ridge fit, checked because a user's stream may have made it; empty without a fit."""
    if fit is None:
        return np.zeros(0)
    theta = np.array(checks.array("fit.theta", getattr(fit, "theta", fit), "dim"))
    if theta.shape != (dim,):
        raise checks.ArgumentError(
            "fit.theta", f"must have shape ({dim},), as dim is {dim}, got {theta.shape}"
        )
    return theta


def _complain(policy: Policy, available: Bools, arm: int, step: int) -> None:
    raise OwnPolicyError(
        f"{policy.name}'s kernel act must return an available arm from 0 to {len(available) - 1}, got {arm} "
        f"at step {step}"
    )


def _new_trace(steps: Ints, n_arms: int, horizon: int) -> StreamTrace:
    sampled = np.unique(np.linspace(1, horizon, min(horizon, SAMPLED)).round().astype(np.int64))
    return StreamTrace(
        steps=steps,
        regret=np.zeros(len(steps)),
        explored=np.zeros(len(steps), dtype=np.int64),
        reward=np.zeros(len(steps)),
        ridge_regret=np.zeros(len(steps)),
        pulls=np.zeros((len(steps), n_arms), dtype=np.int64),
        sampled=sampled,
        predicted=np.full(len(sampled), np.nan),
        received=np.zeros(len(sampled)),
    )
