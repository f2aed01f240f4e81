"""The tables and the figure of docs/real-data.md, from runs.jsonl."""

import json
from pathlib import Path

import numpy as np
from matplotlib.ticker import StrMethodFormatter

from solid_bandits.report.figure import INK, LINE, SMALL, add_legend, new_figure, save_figure
from solid_bandits.report.palette import looks
from solid_bandits.statistics.intervals import student

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
COLUMNS = 3
"""Panels beside each other."""


def read() -> dict[str, dict[str, list[dict]]]:
    """Set -> policy -> its runs, in order."""
    found: dict[str, dict[str, list[dict]]] = {}
    for line in (HERE / "runs.jsonl").read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        found.setdefault(one["set"], {}).setdefault(one["policy"], []).append(one)
    return found


def plus_minus(values: np.ndarray, sign: str = "") -> str:
    """Mean ± half of Student's 95% interval, in thousandths."""
    estimate = student(values)
    half = 0.0 if estimate.high is None else estimate.high - estimate.value
    return f"{estimate.value:{sign}.3f} ± {half:.3f}"


def rates(runs: list[dict], key: str = "reward") -> np.ndarray:
    """Per round, of each run."""
    return np.array([one[key] / one["rounds"] for one in runs])


def every_policy(sets: dict[str, dict[str, list[dict]]]) -> list[str]:
    """In the order of their first set; VIDS is not played on all."""
    return list(dict.fromkeys(policy for runs in sets.values() for policy in runs))


def rewards_table(sets: dict[str, dict[str, list[dict]]]) -> str:
    """Mean reward per round of each policy on each set; the best in bold, with all whose paired interval holds 0."""
    policies = every_policy(sets)
    lines = ["| policy | " + " | ".join(sets) + " |", "|---|" + "---:|" * len(sets)]
    cells: dict[str, list[str]] = {policy: [] for policy in policies}
    for runs in sets.values():
        best = max(runs, key=lambda policy, runs=runs: rates(runs[policy]).mean())
        for policy in policies:
            if policy not in runs:
                cells[policy].append("not played")
                continue
            text = plus_minus(rates(runs[policy]))
            behind = student(rates(runs[best]) - rates(runs[policy]))
            tied = policy == best or behind.low is None or behind.low <= 0
            cells[policy].append(f"**{text}**" if tied else text)
    lines += [f"| {policy} | " + " | ".join(row) + " |" for policy, row in cells.items()]
    anyone = [next(iter(runs.values())) for runs in sets.values()]
    ridge = [f"{(rates(runs) + rates(runs, 'ridge_regret')).mean():.3f}" for runs in anyone]
    best_arm = [f"{(rates(runs) + rates(runs, 'regret')).mean():.3f}" for runs in anyone]
    lines.append("| *greedy policy of the ridge fit* | " + " | ".join(ridge) + " |")
    lines.append("| *best arm of each round* | " + " | ".join(best_arm) + " |")
    return "\n".join(lines) + "\n"


def sizes_table(sets: dict[str, dict[str, list[dict]]]) -> str:
    """What was played, and the CPU microseconds of a decision."""
    lines = [
        "| set | rounds | arms | d | R² of the ridge fit | σ told | RandUCB, µs a round | Greedy, µs a round |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, runs in sets.items():
        one = runs["RandUCB"][0]
        took = [runs[policy][0]["seconds"] / one["rounds"] * 1e6 for policy in ("RandUCB", "Greedy")]
        lines.append(
            f"| {name} | {one['rounds']:,} | {one['arms']} | {one['dim']} | {one['r_squared']:.2f} "
            f"| {one['noise_std']:.2f} "
            f"| {took[0]:.1f} | {took[1]:.1f} |"
        )
    return "\n".join(lines) + "\n"


def spread_table(sets: dict[str, dict[str, list[dict]]]) -> str:
    """The worst run of each policy: what a mean does not show."""
    policies = every_policy(sets)
    lines = ["| policy, worst of its runs | " + " | ".join(sets) + " |", "|---|" + "---:|" * len(sets)]
    for policy in policies:
        worst = [
            f"{rates(runs[policy]).min():.3f}" if policy in runs else "not played" for runs in sets.values()
        ]
        lines.append(f"| {policy} | " + " | ".join(worst) + " |")
    return "\n".join(lines) + "\n"


def draw(sets: dict[str, dict[str, list[dict]]], path: Path) -> None:
    """Reward per round so far against time, a panel for each set."""
    rows = -(-len(sets) // COLUMNS)
    figure = new_figure(7.0, 1.9 * rows)
    axes = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
    for panel in axes[len(sets) :]:
        panel.set_visible(False)
    for panel, (name, runs) in zip(axes, sets.items(), strict=False):
        for policy, look in looks(runs).items():
            steps = np.array(runs[policy][0]["step"])
            shown = steps >= steps[-1] / 100
            curves = np.array([one["rewards"] for one in runs[policy]]) / steps
            panel.plot(
                steps[shown],
                curves.mean(axis=0)[shown],
                color=look.colour,
                linestyle=look.linestyle,
                linewidth=LINE,
                label=policy,
            )
        panel.set_xscale("log")
        panel.set_title(name, fontsize=SMALL, color=INK, loc="left")
        panel.tick_params(labelsize=SMALL - 1, color=INK, labelcolor=INK)
        panel.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        panel.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("rounds so far", fontsize=SMALL, color=INK)
    figure.supylabel("reward a round so far", fontsize=SMALL, color=INK)
    most = max(axes[: len(sets)], key=lambda panel: len(panel.get_lines()))
    add_legend(figure, most.get_lines())
    save_figure(figure, path)


def main() -> None:
    """Write them."""
    sets = read()
    (DOCS / "_tables" / "real-data-rewards.md").write_text(rewards_table(sets), encoding="utf-8")
    (DOCS / "_tables" / "real-data-sizes.md").write_text(sizes_table(sets), encoding="utf-8")
    (DOCS / "_tables" / "real-data-worst.md").write_text(spread_table(sets), encoding="utf-8")
    draw(sets, DOCS / "_static" / "real-data.png")


if __name__ == "__main__":
    main()
