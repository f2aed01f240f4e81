"""The order in which a log has its rows changes no number, as columns beside it are found by their rows."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import solid_bandits as sb
from solid_bandits import logs, ope
from solid_bandits.cli import main

ROWS, DIM = 60, 2


def a_log(with_features=True, chosen_alone=False):
    """A log of two to four arms on offer, every seventh reward missing, and one list per row of π and of q."""
    rng = np.random.default_rng(3)
    counts = rng.integers(2, 5, size=ROWS)
    own = [rng.dirichlet(np.ones(count)) * 0.8 + 0.2 / count for count in counts]
    place = [int(rng.choice(count, p=one / one.sum())) for count, one in zip(counts, own, strict=True)]
    table = {
        "event_id": [f"e{row}" for row in range(ROWS)],
        "sequence": rng.permutation(1000)[:ROWS],
        "arms": [[f"arm {k}" for k in range(count)] for count in counts],
        "arm": [f"arm {k}" for k in place],
        "reward": [None if row % 7 == 3 else float(rng.random()) for row in range(ROWS)],
        "probability": [float(one[k]) for one, k in zip(own, place, strict=True)],
    }
    if not chosen_alone:
        table["probabilities"] = [one.tolist() for one in own]
    if with_features:
        table["features"] = [rng.normal(size=(count, DIM)).tolist() for count in counts]
    else:
        table["context"] = [json.dumps({"x": one, "y": other}) for one, other in rng.normal(size=(ROWS, 2))]
    target = [rng.dirichlet(np.ones(count)).tolist() for count in counts]
    model = [rng.normal(size=count).tolist() for count in counts]
    return logs.from_table(table), target, model


def agent():
    made = sb.Agent(sb.RandUCB(), dim=DIM, noise_std=0.5, floor=0.3, probabilities=True)
    rng = np.random.default_rng(5)
    for _ in range(20):
        made.learn(made.decide(rng.normal(size=(3, DIM))), rng.normal())
    return made


def softened(shown, names):
    weights = np.exp(np.arange(len(names)) / 4.0)
    return weights / weights.sum()


def rectangle(lists):
    return np.array([one + [0.0] * (4 - len(one)) for one in lists])


POLICIES = {
    "uniform": lambda lists, order: "uniform",
    "always": lambda lists, order: "always:arm 1",
    "function": lambda lists, order: softened,
    "agent": lambda lists, order: agent(),
    "lists": lambda lists, order: [lists[row] for row in order],
    "tuple": lambda lists, order: tuple(lists[row] for row in order),
    "array": lambda lists, order: rectangle(lists)[order],
    "series": lambda lists, order: pl.Series([lists[row] for row in order]),
}
MODELS = {
    "linear": lambda lists, order: "linear",
    "none": lambda lists, order: None,
    "lists": lambda lists, order: [lists[row] for row in order],
    "array": lambda lists, order: rectangle(lists)[order],
    "series": lambda lists, order: pl.Series([lists[row] for row in order]),
}


def numbers(found):
    return found.table.select("estimator", "value", "low", "high").rows(), found.diagnostics


def evaluated(source, lists, order, policy, model, **more):
    chosen, expected = POLICIES[policy](lists[0], order), MODELS[model](lists[1], order)
    return numbers(ope.evaluate(source, chosen, model=expected, logger="fixed", **more))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("model", MODELS)
@given(order=st.permutations(range(ROWS)), missing=st.sampled_from([None, 0.25]))
@settings(max_examples=4, deadline=None)
def test_a_log_shuffled_with_its_columns_gives_the_same_numbers(policy, model, order, missing):
    log, *lists = a_log()
    more = {"missing_reward": missing, "reward_range": (0, 1)}
    expected = evaluated(log, lists, range(ROWS), policy, model, **more)
    assert evaluated(log[order], lists, order, policy, model, **more) == expected


@pytest.mark.parametrize("kind", [{"with_features": False}, {"chosen_alone": True}])
@given(order=st.permutations(range(ROWS)))
@settings(max_examples=3, deadline=None)
def test_so_do_logs_with_contexts_and_logs_with_the_chosen_probability_alone(kind, order):
    log, *lists = a_log(**kind)
    expected = evaluated(log, lists, range(ROWS), "series", "lists")
    assert evaluated(log[order], lists, order, "series", "lists") == expected
    walked = evaluated(log, lists, range(ROWS), "lists", "linear")
    assert evaluated(log[order], lists, order, "lists", "linear") == walked


def test_what_is_found_is_what_its_definition_says_row_by_row():
    log, target, model = a_log()
    order = np.random.default_rng(0).permutation(ROWS).tolist()
    terms = {"ips": [], "dr": []}
    for row, pi, q in zip(log.rows(named=True), target, model, strict=True):
        if row["reward"] is not None:
            k = row["arms"].index(row["arm"])
            weight = pi[k] / row["probability"]
            terms["ips"].append(weight * row["reward"])
            terms["dr"].append(np.dot(pi, q) + weight * (row["reward"] - q[k]))
    found = ope.evaluate(
        log[order], [target[row] for row in order], list(terms), model=[model[row] for row in order]
    )
    for name, values in terms.items():
        assert found.value(name) == pytest.approx(np.mean(values), rel=1e-12)


@given(order=st.permutations(range(ROWS)), block=st.sampled_from([7, 50_000]))
@settings(max_examples=6, deadline=None)
def test_files_in_order_and_out_of_it_give_the_same_numbers(tmp_path_factory, order, block):
    log, *lists = a_log()
    folder = tmp_path_factory.mktemp("logs")
    ordered = log["sequence"].arg_sort().to_list()
    expected = evaluated(log, lists, range(ROWS), "series", "lists")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("solid_bandits.ope.rows.BLOCK", block)
        for rows in (ordered, order):
            logs.write(log[rows], folder / "log.parquet")
            found, about = evaluated(folder / "log.parquet", lists, rows, "series", "lists")
            for (name, *values), (_, *wanted) in zip(found, expected[0], strict=True):
                assert values == [None if one is None else pytest.approx(one, rel=1e-9) for one in wanted], (
                    name
                )
            assert about["rows"] == expected[1]["rows"]


def test_null_sequence_numbers_come_last_in_tables_and_files(tmp_path):
    log, *lists = a_log()
    some = log.with_columns(pl.when(pl.col("sequence") % 3 > 0).then("sequence").alias("sequence"))
    logs.write(some, tmp_path / "log.parquet")
    table, file = (
        evaluated(source, lists, range(ROWS), "lists", "linear")
        for source in (some, tmp_path / "log.parquet")
    )
    assert table == file


def test_a_table_out_of_order():
    rng = np.random.default_rng(1)
    own = rng.dirichlet(np.ones(3), size=40)
    target = rng.dirichlet(np.ones(3), size=40)
    table = pl.DataFrame(
        {
            "policy": ["LinTS"] * 40,
            "sequence": rng.permutation(40),
            "arm": [int(rng.choice(3, p=one)) for one in own],
            "reward": rng.random(40),
            "probabilities": own.tolist(),
        }
    )
    found = ope.evaluate(table, target, model=target, logger="fixed")
    ordered = table["sequence"].arg_sort().to_list()
    expected = ope.evaluate(table[ordered], target[ordered], model=target[ordered], logger="fixed")
    assert numbers(found) == numbers(expected)
    every = np.arange(40)
    arm = table["arm"].to_numpy()
    weighted = target[every, arm] / own[every, arm] * table["reward"].to_numpy()
    assert found.value("ips") == pytest.approx(weighted.mean(), rel=1e-12)


def printed(monkeypatch, capsys, *arguments):
    monkeypatch.setattr("sys.argv", ["solid-bandits", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_columns_on_the_command_line_belong_to_their_rows(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("COLUMNS", "160")
    log, target, _ = a_log()
    order = np.random.default_rng(2).permutation(ROWS).tolist()
    wide = log.with_columns(pl.Series("theirs", target)).drop("policy")
    for name, table in (("plain", wide), ("shuffled", wide[order])):
        table.write_parquet(tmp_path / f"{name}.parquet")
    plain, shuffled = (
        printed(monkeypatch, capsys, "evaluate", tmp_path / f"{name}.parquet", "--policy", "column:theirs")
        for name in ("plain", "shuffled")
    )
    assert plain == shuffled
    assert f"{ope.evaluate(log, target, ['snips']).value('snips'):.4g}"[:6] in plain


def test_columns_of_a_bandits_store_are_matched(monkeypatch, capsys, tmp_path):
    """Rows are written when their rewards come: here those of the first half come after all others."""
    rng = np.random.default_rng(4)
    settings = {"dim": DIM, "noise_std": 0.5, "floor": 0.2, "store": tmp_path / "shop.db"}
    bandit = sb.Bandit(sb.EpsilonGreedy(epsilon=0.5), **settings, commit_every=100)
    for row in range(80):
        bandit.decide(rng.normal(size=(3, DIM)), event_id=str(row))
    for row in [*range(40, 80), *range(40)]:
        bandit.learn(str(row), float(row))
    bandit.flush()
    arguments = ["evaluate", tmp_path / "shop.db", "--policy", "column:probabilities", "--estimator", "ips"]
    assert "39.5" in printed(monkeypatch, capsys, *arguments)  # its own mean
    logs.write_dsjson(bandit.log(), tmp_path / "log.dsjson")
    arguments[1] = tmp_path / "log.dsjson"
    assert "39.5" in printed(monkeypatch, capsys, *arguments)
