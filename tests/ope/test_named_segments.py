"""Segments of a log with named values: by its names, and by a tree of them."""

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from solid_bandits.cli.evaluate import segments_of
from solid_bandits.ope.contrasts import EVERYONE
from solid_bandits.ope.rows import Reader

ALWAYS = ["always:tea", "always:milk"]


@pytest.fixture(scope="module")
def log():
    """Tea is worth more on phones, milk elsewhere; age does nothing, and is sometimes missing."""
    rng = np.random.default_rng(0)
    bandit = sb.Bandit(arms=["tea", "milk"], context=["age", "device"], floor=0.5, seed=0)
    for _ in range(2000):
        device = rng.choice(["ios", "tv"])
        age = None if rng.random() < 0.1 else rng.normal(40, 9)
        choice = bandit.decide({"age": age, "device": device})
        bandit.learn(
            choice.event_id,
            float(rng.random() < (0.8 if (choice.arm == "tea") == (device == "ios") else 0.2)),
        )
    return bandit.log()


def segments_in(found):
    return found.table["segment"].unique(maintain_order=True).to_list()


def test_names_of_the_context_are_columns(log, tmp_path):
    """As labels that are made of them by hand, from a table, a file and an unsorted one."""
    by_hand = [f"device = {one}" for one in sb.logs.values(log)["device"]]
    expected = sb.ope.compare(log, ALWAYS, segments=by_hand)
    assert segments_in(expected) == [EVERYONE, "device = ios", "device = tv"]
    log.write_parquet(tmp_path / "log.parquet")
    mixed = log.sample(fraction=1.0, shuffle=True, seed=1)
    for source in (log, tmp_path / "log.parquet", mixed, Reader(mixed)):
        assert sb.ope.compare(source, ALWAYS, segments="device").table.equals(expected.table)
    judged = sb.ope.verdict(log, segments="device")
    assert judged.sentence("device = ios") == "Stop: tea is best for device = ios."
    with pytest.raises(ValueError, match=r"segments must be .* age, device, got 'colour'"):
        sb.ope.compare(log, ALWAYS, segments="colour")


def test_a_tree_splits_on_names_and_says_categories_in_words(log):
    found = sb.ope.compare(log, ALWAYS, segments="tree")
    names = segments_in(found)[1:]
    assert {name.split(",")[0] for name in names} in (
        {"device = ios", "device ≠ ios"},
        {"device = tv", "device ≠ tv"},
    )
    for name in names:
        phone = name.startswith(("device = ios", "device ≠ tv"))
        assert found.sentence(name).startswith("always:tea" if phone else "always:milk")


def test_a_tree_cuts_numbers_where_they_are_and_not_where_they_are_standardised():
    rng = np.random.default_rng(1)
    age = rng.uniform(20, 80, size=2000)
    arm = rng.integers(2, size=2000)
    reward = (rng.random(2000) < np.where((arm == 0) == (age < 50), 0.9, 0.1)).astype(float)
    table = {"arm": np.array(["tea", "milk"])[arm], "reward": reward, "probability": np.full(2000, 0.5)}
    found = sb.ope.compare(table | {"age": age}, ALWAYS, segments="tree", context=["age"])
    cuts = [float(one.split("age ≤ ")[1].split(",")[0]) for one in segments_in(found)[1:] if "age ≤" in one]
    assert any(abs(cut - 50) < 60 / 17 for cut in cuts)


def test_segments_on_the_command_line_are_of_the_rows_that_are_evaluated(log, tmp_path):
    log.write_parquet(tmp_path / "log.parquet")
    reader = Reader(log)
    labels = segments_of(tmp_path / "log.parquet", reader.part(1000, 1000), ["device"])
    devices = sb.logs.values(log)["device"][1000:]
    assert labels.to_list() == [f"device = {one}" for one in devices]
    log.with_columns(kind=pl.lit("x")).write_parquet(tmp_path / "more.parquet")
    assert segments_of(tmp_path / "more.parquet", reader, ["kind"]).unique().to_list() == ["kind = x"]
