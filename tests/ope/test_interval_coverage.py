"""Intervals for loggers that learn: their definitions, and how often they hold, in standard errors."""

import math
import sys

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from solid_bandits import ope
from solid_bandits.core.decision import OPEN
from solid_bandits.logs.records import steps_of
from solid_bandits.ope import adaptive, anytime, retraced
from solid_bandits.ope.bounded import Bounding
from solid_bandits.ope.contract import Value
from solid_bandits.ope.models import as_model
from solid_bandits.ope.rows import Reader, Rows
from solid_bandits.ope.targets import Target, as_target
from solid_bandits.ope.terms import Terms, collect, dr_terms


class Blocks:
    left_out = 0

    def __init__(self, rows):
        self.rows = rows

    def blocks(self):
        yield self.rows


def learnt_log(policy, steps, seed, floor=0.1):
    """A log of a policy that learns, rewards 0 or 1, and the target's terms; with the true value of the target."""
    rng = np.random.default_rng(77)
    contexts = rng.normal(size=(4, 3, 2)) / 2
    means = 0.5 + 0.3 * np.tanh(contexts @ np.array([1.0, -1.0]))
    target = rng.dirichlet(np.ones(3), size=4)
    rng = np.random.default_rng(seed)
    agent = sb.Agent(policy, dim=2, noise_std=0.5, floor=floor, seed=seed)
    place, arm = rng.integers(4, size=steps), np.zeros(steps, dtype=np.int64)
    reward, probabilities = np.zeros(steps), np.zeros((steps, 3))
    for step in range(steps):
        decision = agent.decide(contexts[place[step]])
        arm[step], probabilities[step] = decision.arm, decision.probabilities
        reward[step] = float(rng.random() < means[place[step], decision.arm])
        agent.learn(decision, reward[step])
    every = np.arange(steps)
    rows = Rows(
        where=every,
        names=["0", "1", "2"],
        codes=np.tile(np.arange(3), (steps, 1)),
        counts=np.full(steps, 3),
        mask=np.ones((steps, 3), dtype=bool),
        place=arm,
        propensity=probabilities[every, arm],
        probabilities=probabilities,
        reward=reward,
        features=contexts[place],
        context=None,
    )
    played = target[place]
    found = collect(Blocks(rows), {"it": Target(lambda _: played)}, as_model("linear"), (0.0, 1.0), True)
    return found["it"].terms, float((target * means).sum(axis=1).mean())


@pytest.fixture
def always_shown(monkeypatch):
    """Intervals are shown however few rewards there are: what is tested is their definition."""
    monkeypatch.setattr(sys.modules["solid_bandits.ope.evaluate"], "ENOUGH", 0)


LOGGERS = [sb.LinTS(votes=8), sb.RandUCB(), sb.EpsilonGreedy(epsilon=0.1)]


@pytest.mark.long
@pytest.mark.parametrize("policy", LOGGERS, ids=repr)
def test_intervals_hold_as_often_as_they_say(policy):
    """200 logs of 600 rows. Of the adaptive interval the coverage must be at least 0.95 - 4 standard errors (3e-5 if it
    is 0.95); the anytime-valid one must hold at every time at once in at least 0.95 - 3 standard errors of the logs.
    """
    logs = 200
    covered, always = 0, 0
    for seed in range(logs):
        terms, truth = learnt_log(policy, 600, seed)
        value = adaptive.cadr(terms, 0.95)
        covered += value.low <= truth <= value.high
        always += all(  # at 40 times: one miss is a miss
            low <= truth <= high for _, low, high in anytime.path(terms, 0.95, (0.0, 1.0)).iter_rows()
        )
    error = math.sqrt(0.95 * 0.05 / logs)
    assert covered / logs >= 0.95 - 4 * error
    assert covered / logs <= 0.95 + 4 * error
    assert always / logs >= 0.95 - 3 * error


def plain_sigmas(terms):
    """The weights of the adaptive estimate, from their definition."""
    residual, baseline, second = terms.reward - terms.expected, terms.baseline, terms.second
    found = np.zeros(len(residual))
    for t in range(adaptive.BURN, len(residual)):
        local = 0.0
        for s in range(t):
            local += (second[s] - local) / min(s + 1, max(adaptive.SHARE * s, adaptive.LEAST))
        found[t] = 1 / math.sqrt((residual[:t] ** 2).mean() * local + baseline[:t].var())
    return found


def test_the_adaptive_estimate_is_its_definition():
    terms, _ = learnt_log(sb.RandUCB(), 300, 1)
    inverse = plain_sigmas(terms)
    written = np.zeros(300)
    adaptive.stabilise(terms.reward - terms.expected, terms.baseline, terms.second, written)
    assert np.allclose(written, inverse, rtol=1e-9)
    values = dr_terms(terms)
    value = (inverse * values).sum() / inverse.sum()
    error = math.sqrt((inverse**2 * (values - value) ** 2).sum()) / inverse.sum()
    found = adaptive.cadr(terms, 0.95)
    assert found.value == pytest.approx(value, rel=1e-12)
    assert found.high - found.low == pytest.approx(2 * 1.959963984540054 * error, rel=1e-9)
    short = Terms(*(part[:20] for part in terms))
    assert adaptive.cadr(short, 0.95) == Value(None, note="needs more than 40 rows")


def rows_of(probabilities, place, reward):
    """Rows of a log of three arms."""
    every = np.arange(len(place))
    return Rows(
        where=every,
        names=["0", "1", "2"],
        codes=np.tile(np.arange(3), (len(place), 1)),
        counts=np.full(len(place), 3),
        mask=np.ones((len(place), 3), dtype=bool),
        place=place,
        propensity=probabilities[every, place],
        probabilities=probabilities,
        reward=reward,
        features=None,
        context=None,
    )


@pytest.mark.parametrize("known", [True, False])
def test_the_bounded_terms_have_the_value_for_their_mean_and_a_floor(known):
    """By enumeration over the arms of the last row: the mean of its term given the past is Σ_a (π(a) - π'(a)) r(a),
    whatever the model; no term falls below ℓ - k_t, which is the same for every arm, and k_t is of the rows before.
    """
    rng = np.random.default_rng(2)
    for rows in (1, 2, 7, 30):
        probabilities, other = rng.dirichlet(np.ones(3), size=(2, rows))
        target = rng.dirichlet(np.ones(3), size=rows)
        q, outcomes, place = (
            rng.random((rows, 3)) * 1.4 - 0.2,
            rng.random((rows, 3)),
            rng.integers(3, size=rows),
        )
        for signed, least in ((target, 0.0), (-target, -1.0), (target - other, -1.0)):
            mean, slacks = 0.0, set()
            for arm in range(3):
                place[-1] = arm
                log = rows_of(probabilities, place, outcomes[np.arange(rows), place])
                log = log if known else log._replace(probabilities=None)
                found, slack = Bounding().terms(log, signed, q, log.reward)
                assert (found >= least - slack - 1e-12).all()
                slacks.add(slack[-1])
                mean += probabilities[-1, arm] * found[-1]
            assert len(slacks) == 1
            assert mean == pytest.approx((signed * outcomes)[-1].sum())


def test_blocks_of_rows_give_the_same_terms():
    rng = np.random.default_rng(3)
    probabilities, target = rng.dirichlet(np.ones(3), size=(2, 40))
    log = rows_of(probabilities, rng.integers(3, size=40), rng.random(40))
    whole = Bounding().terms(log, target, np.full((40, 3), 0.3), log.reward)
    part, found = Bounding(), []
    for some in (slice(0, 13), slice(13, 40)):
        fields = {name: value[some] for name, value in log._asdict().items() if isinstance(value, np.ndarray)}
        piece = log._replace(**fields)
        found.append(part.terms(piece, target[some], np.full((40, 3), 0.3)[some], piece.reward))
    assert np.array_equal(np.concatenate([one[0] for one in found]), whole[0])
    assert np.array_equal(np.concatenate([one[1] for one in found]), whole[1])


def plain_lower(terms, slacks, least, tail):
    """The bound by its definition: for each λ the logarithm of the product, then the mixture on a fine grid of m."""
    gains = np.zeros(len(anytime.GRID))
    for place, size in enumerate(anytime.GRID):
        stopped = False
        for t, value in enumerate(terms):
            centre = np.clip(terms[:t].sum() / (t + 1), least, 1.0)
            stopped = stopped or size * (slacks[t] - least + centre) > anytime.MOST
            gains[place] += size * least if stopped else math.log(1 + size * (value - centre)) + size * centre
    shares = anytime.WEIGHTS / anytime.WEIGHTS.sum()
    grid = np.linspace(least, 1, 4001)
    wealth = (shares[:, None] * np.exp(gains[:, None] - anytime.GRID[:, None] * len(terms) * grid)).sum(
        axis=0
    )
    return grid[wealth < 1 / tail].min()


def test_the_bounds_are_their_definition():
    terms, _ = learnt_log(sb.EpsilonGreedy(epsilon=0.2), 250, 3)
    low, high = anytime.bounds(terms, 0.9)
    assert low == pytest.approx(plain_lower(terms.lower, terms.lower_slack, 0.0, 0.05), abs=6e-4)
    assert high == pytest.approx(-plain_lower(terms.upper, terms.upper_slack, -1.0, 0.05), abs=6e-4)
    early = anytime.path(terms, 0.9, (0.0, 2.0))
    assert early["rows"][-1] == 250
    assert (early["low"][-1], early["high"][-1]) == pytest.approx((2 * low, 2 * high))
    first = early["rows"][2]
    before = anytime.bounds(Terms(*(part[:first] for part in terms)), 0.9)
    assert (early["low"][2], early["high"][2]) == pytest.approx([2 * end for end in before])


def test_every_part_of_the_mixture_expects_no_gain():
    """A term of two values: the mean of (1 + λ (ξ - x)) exp(-λ (μ - x)) is at most 1, for all λ, x and μ."""
    rng = np.random.default_rng(4)
    low, gap, share = -3 * rng.random(1000), 8 * rng.random(1000), rng.random(1000)
    mean, centre = low + share * gap, rng.random(1000)
    size = rng.random(1000) * anytime.MOST / (centre - low)
    values = np.stack([low, low + gap])
    factor = (1 + size * (values - centre)) * np.exp(-size * (mean - centre))
    assert (factor > 0).all()
    assert ((1 - share) * factor[0] + share * factor[1] <= 1 + 1e-12).all()


def bandit_log(policy, steps, seed):
    """A bandit that has learnt, some rewards late and some never; how it was made; the value of a uniform target."""
    rng = np.random.default_rng(5)
    contexts = rng.normal(size=(4, 3, 2)) / 2
    means = 0.5 + 0.3 * np.tanh(contexts @ np.array([1.0, -1.0]))
    rng = np.random.default_rng(seed)

    def make():
        return sb.Bandit(policy, dim=2, noise_std=0.5, floor=0.1, seed=seed)

    bandit, waiting = make(), []
    for _ in range(steps):
        place = rng.integers(4)
        choice = bandit.decide(contexts[place])
        kind, reward = rng.random(), float(rng.random() < means[place, choice.arm])
        if kind < 0.5:
            bandit.learn(choice.event_id, reward)
        elif kind < 0.9:
            waiting.append((choice.event_id, reward))
            if len(waiting) > 10:
                bandit.learn(*waiting.pop(rng.integers(10)))
    bandit.learn_many(waiting)
    return bandit, make, float(means.mean())


def logger_before(make, log, row):
    """The logger as it was before a row, and before those that were decided with it."""
    led, steps = make(), steps_of(log, 2)
    while steps:
        group = [steps.pop(0)]
        if group[0].status != OPEN:
            if group[0].reward is not None:
                led.agent.learn(group[0].decision, group[0].reward)
            continue
        while group[0].batch is not None and steps and (steps[0].status, steps[0].batch) == group[0][1:5:3]:
            group.append(steps.pop(0))
        if row["event_id"] in [step.decision.event_id for step in group]:
            return led
        offers = [step.decision.offered for step in group]
        made = [led.agent.decide(offers[0])] if len(group) == 1 else led.agent.decide_many(offers)
        for step, decision in zip(group, made, strict=True):
            step.decision.number = decision.number
    raise AssertionError(row)


def papers_estimate(log, make, missing, level=0.95):
    """The paper's estimate of a uniform policy by its definition, row by row: what is counted has a reward, or
    `missing`; the logger of row t, led through the log up to there, is asked about all earlier rows that count. Rows
    that were decided together have one logger and one σ.
    """
    counted = log if missing is not None else log.filter(pl.col("reward").is_not_null())
    filled = counted if missing is None else counted.with_columns(pl.col("reward").fill_null(missing))
    rows = filled.sort("sequence").rows(named=True)
    due, inverse, terms, last = retraced.FIRST, np.zeros(len(rows)), np.zeros(len(rows)), 0.0
    chosen = np.array([[*one["features"][one["arms"].index(one["arm"])], 1.0] for one in rows])
    rewards = np.array([one["reward"] for one in rows])
    for t, row in enumerate(rows):
        theta = np.linalg.solve(np.eye(3) + chosen[:t].T @ chosen[:t], chosen[:t].T @ rewards[:t])
        begins = t == 0 or row["batch"] is None or rows[t - 1]["batch"] != row["batch"]
        if t >= due and begins:
            led = logger_before(make, log, row)
            values, ratios = [], []
            for past in rows[:t]:
                own = past["arms"].index(past["arm"])
                now = led.agent.probabilities(np.array(past["features"]))[own]
                q = np.array(past["features"]) @ theta[:2] + theta[2]
                values.append(1 / len(q) / now * (past["reward"] - q[own]) + q.mean())
                ratios.append(now / past["probability"])
            values, ratios = np.array(values), np.array(ratios)
            last = 1 / math.sqrt((ratios * values**2).mean() - (ratios * values).mean() ** 2)
            due = math.ceil(max(t + 1, retraced.GROWTH * t))
        inverse[t] = last
        own, q = row["arms"].index(row["arm"]), np.array(row["features"]) @ theta[:2] + theta[2]
        terms[t] = q.mean() + (row["reward"] - q[own]) / len(q) / row["probability"]
    value = inverse @ terms / inverse.sum()
    half = 1.959963984540054 * math.sqrt((inverse > 0).sum()) / inverse.sum()
    return value, value - half, value + half


@pytest.mark.parametrize(("missing", "together"), [(None, 1), (0.0, 1), (0.7, 1), (None, 4), (0.7, 4)])
@pytest.mark.parametrize("arms", [(3, 3), (2, 5)])
def test_the_papers_estimate_is_its_definition(missing, together, arms, always_shown):
    """Some rewards late and some never; the same number of arms in every row, and not; every other decision one of a
    batch, and not; the log in order, and not.
    """
    rng = np.random.default_rng(3)

    def make():
        return sb.Bandit(sb.RandUCB(), dim=2, noise_std=0.5, floor=0.1, seed=3)

    bandit, waiting = make(), []
    made = []
    for number in range(170):
        if not made:
            many = together if number % (2 * together) == 0 else 1
            sizes = rng.integers(arms[0], arms[1] + 1, size=many).tolist()
            offers = [{"features": rng.normal(size=(size, 2)) / 2} for size in sizes]
            made = bandit.decide_many(offers)
        choice = made.pop(0)
        reward = float(rng.random() < 0.5 + 0.3 * np.tanh(choice.offered[choice.arm, 0]))
        if number % 5 == 2:
            continue
        waiting.append((choice.event_id, reward))
        if rng.random() < 0.7:
            bandit.learn(*waiting.pop(rng.integers(len(waiting))))
    bandit.learn_many(waiting)
    log = bandit.log()
    expected = papers_estimate(log, make, missing)
    for source in (bandit, log, log[rng.permutation(log.height).tolist()]):
        found = ope.evaluate(source, "uniform", ["cadr"], logger=make(), missing_reward=missing)
        assert (found.value("cadr"), *found.interval("cadr")) == pytest.approx(expected, rel=1e-7)


def test_the_logger_is_asked_and_checked(always_shown):
    bandit, make, _ = bandit_log(sb.LinTS(votes=8), 300, 4)
    found = ope.evaluate(bandit, "uniform", logger=make())
    row = found.table.row(by_predicate=pl.col("estimator") == "cadr", named=True)
    assert row["note"] == "σ by the replayed logger"
    asked = {"it": as_target("uniform")}
    values = dr_terms(collect(Reader(bandit), asked, as_model("linear"), None, True)["it"].terms)
    assert row["low"] < row["value"] < row["high"]
    assert abs(row["value"] - values.mean()) < row["high"] - row["low"]
    other = sb.Bandit(sb.LinTS(votes=8), dim=2, noise_std=0.5, floor=0.1, seed=99)
    with pytest.raises(ValueError, match="logger must be made as the bandit of the log was"):
        ope.evaluate(bandit, "uniform", logger=other)
    with pytest.raises(
        ValueError, match="logger must be learning, fixed, or a new Bandit made as the logger was"
    ):
        ope.evaluate(bandit, "uniform", logger=bandit)


@pytest.mark.long
def test_the_papers_interval_holds_as_often_as_it_says(always_shown):
    """120 logs of 500 decisions: the coverage within 4 standard errors of 0.95 (3e-5 on each side)."""
    logs, covered = 120, 0
    for seed in range(logs):
        bandit, make, truth = bandit_log(sb.RandUCB(), 500, seed)
        low, high = ope.evaluate(bandit, "uniform", ["cadr"], logger=make()).interval("cadr")
        covered += low <= truth <= high
    assert abs(covered / logs - 0.95) <= 4 * math.sqrt(0.95 * 0.05 / logs)
