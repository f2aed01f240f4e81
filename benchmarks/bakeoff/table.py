"""The page's tables and its figure, from what was played: a table has players and sets of which every cell is there."""

from pathlib import Path

import numpy as np
import sets

DOCS = Path(__file__).resolve().parents[2] / "docs"
RESAMPLES = 10_000
OURS = "RandUCB"
PEERS = ("VW", "contextualbandits", "bayesianbandits", "MABWiser")


def is_ours(player):
    """Whether it is of this package."""
    return not player.startswith(PEERS)


def cells_of(results):
    """(player, set, shuffle) -> line; of several lines the first."""
    found = {}
    for line in results:
        found.setdefault((line["player"], line["set"], line["shuffle"]), line)
    return found


def shuffles_of(cells, players, names):
    """The shuffles on which all of these players have played all of these sets."""
    numbers = sorted({shuffle for _, _, shuffle in cells})
    return [s for s in numbers if all((player, name, s) in cells for player in players for name in names)]


def complete(cells, players, least=0):
    """The sets that all of these players have played on shuffle `least`."""
    return [name for name in sets.NAMES if all((player, name, least) in cells for player in players)]


def loss_of(line, rounds):
    """Of a cell, after so many rounds; None is all of the set's."""
    return line["loss"] if rounds in (None, line["rounds"]) else line["errors"][str(rounds)] / rounds


def losses_of(cells, players, names, shuffles, rounds=None):
    """Shape (players, sets, shuffles)."""
    return np.array(
        [
            [[loss_of(cells[player, name, s], rounds) for s in shuffles] for name in names]
            for player in players
        ]
    )


def ranks_of(losses):
    """Rank of each player among all, ties sharing the mean, on each set and shuffle."""
    below = (losses[None] < losses[:, None] - 1e-12).sum(axis=1)
    level = (np.abs(losses[None] - losses[:, None]) <= 1e-12).sum(axis=1)
    return below + (level + 1) / 2


def normalised(losses, names):
    """(loss - least) / (1 - 1/K - least), shape (players, sets)."""
    means = losses.mean(axis=2)
    least = means.min(axis=0)
    uniform = np.array([1 - 1 / sets.rows_of(name).n_arms for name in names])
    return (means - least) / (uniform - least)


def interval(values):
    """Of the mean over sets, by the bootstrap over sets."""
    rng = np.random.default_rng(0)
    drawn = values[rng.integers(len(values), size=(RESAMPLES, len(values)))].mean(axis=1)
    return np.quantile(drawn, [0.025, 0.975])


def with_interval(values, digits):
    """Mean and interval as words."""
    low, high = interval(values)
    return f"{values.mean():.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def seconds(cells, player, names, shuffles):
    """Median over sets of processor time a round."""
    return np.median([cells[player, name, s]["seconds"] for name in names for s in shuffles])


def micro(value):
    """Microseconds as words."""
    return f"{1e6 * value:,.1f}" if value < 1e-4 else f"{1e6 * value:,.0f}"


def summary(cells, players, names, shuffles, rounds):
    """Lines of a table, least normalised loss first."""
    losses = losses_of(cells, players, names, shuffles, rounds)
    normal, ranks = normalised(losses, names), ranks_of(losses).mean(axis=2)
    best = (losses.mean(axis=2) <= losses.mean(axis=2).min(axis=0) + 1e-12).sum(axis=1)
    groups = [group for group, members in sets.GROUPS.items() if set(members) & set(names)]
    lines = [
        "| player | normalised loss | mean rank | best on | "
        + " | ".join(f"{group} ({len(set(sets.GROUPS[group]) & set(names))})" for group in groups)
        + " | µs a round |",
        "|---|---|---|--:|" + "--:|" * len(groups) + "--:|",
    ]
    for i in np.argsort(normal.mean(axis=1), kind="stable"):
        parts = [
            f"{normal[i, [name in sets.GROUPS[group] for name in names]].mean():.3f}" for group in groups
        ]
        lines.append(
            f"| {players[i]} | {with_interval(normal[i], 3)} | {with_interval(ranks[i], 1)} | {best[i]} | "
            + " | ".join(parts)
            + f" | {micro(seconds(cells, players[i], names, shuffles))} |"
        )
    return lines


def against(cells, players, names, shuffles, rounds):
    """Lines: sets that RandUCB wins and loses against each other player, and by how much."""
    lines = ["| RandUCB beside | sets won | lost | level | mean difference of losses | largest loss to it |"]
    lines.append("|---|--:|--:|--:|---|---|")
    ours = losses_of(cells, [OURS], names, shuffles, rounds)[0].mean(axis=1)
    for player in players:
        if player == OURS:
            continue
        difference = ours - losses_of(cells, [player], names, shuffles, rounds)[0].mean(axis=1)
        worst = int(difference.argmax())
        most = f"{names[worst]}, {difference[worst]:+.3f}" if difference[worst] > 0 else "none"
        lines.append(
            f"| {player} | {(difference < 0).sum()} | {(difference > 0).sum()} | {(difference == 0).sum()} | "
            f"{with_interval(difference, 4)} | {most} |"
        )
    return lines


def per_set(cells, players, rounds, names=sets.NAMES):
    """Lines: the loss of each player on each set, the mean over the shuffles that it has played."""
    lines = [
        "| set | K | d | rounds | " + " | ".join(players) + " |",
        "|---|--:|--:|--:|" + "--:|" * len(players),
    ]
    for name in names:
        rows = sets.rows_of(name)
        means = []
        for player in players:
            mine = [line for (one, place, _), line in cells.items() if (one, place) == (player, name)]
            played = [loss_of(line, rounds) for line in mine]
            means.append(np.mean(played) if played else np.inf)
        if np.isinf(means).all():
            continue
        shown = ["–" if np.isinf(one) else f"{one:.3f}" for one in means]
        shown[int(np.argmin(means))] = f"**{shown[int(np.argmin(means))]}**"
        lines.append(
            f"| {name} | {rows.n_arms} | {rows.X.shape[1]} | {rounds or rows.rounds:,} | {' | '.join(shown)} |"
        )
    return lines


def joint(cells):
    """Lines: the joint form beside blocks."""
    lines = [
        "| policy | sets | largest difference of losses | joint over blocks, µs a round |",
        "|---|--:|--:|--:|",
    ]
    for player in sorted({player for player, _, _ in cells if player.endswith(", joint")}):
        plain = player.removesuffix(", joint")
        both = [(name, s) for one, name, s in cells if one == player and (plain, name, s) in cells]
        if not both:
            continue
        largest = max(abs(cells[player, *place]["loss"] - cells[plain, *place]["loss"]) for place in both)
        times = [np.median([cells[one, *place]["seconds"] for place in both]) for one in (player, plain)]
        lines.append(f"| {plain} | {len(both)} | {largest:.4f} | {micro(times[0])} and {micro(times[1])} |")
    return lines


def figure(cells, players, names, shuffles, rounds, path):
    """Normalised loss of each player with its interval."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    normal = normalised(losses_of(cells, players, names, shuffles, rounds), names)
    order = np.argsort(-normal.mean(axis=1), kind="stable")
    drawing, axes = plt.subplots(figsize=(7, 0.28 * len(players) + 1), layout="constrained")
    for place, i in enumerate(order):
        low, high = interval(normal[i])
        colour = "#1f5fa8" if is_ours(players[i]) else "#c0562a"
        axes.plot([low, high], [place, place], color=colour, linewidth=1.5)
        axes.plot(normal[i].mean(), place, "o", color=colour, markersize=5)
    axes.set_yticks(range(len(order)), [players[i] for i in order])
    axes.set_xlabel(f"normalised loss, mean over {len(names)} sets")
    axes.set_xlim(left=0)
    axes.grid(axis="x", alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    drawing.savefig(path, dpi=150)
    plt.close(drawing)


FEW = 2_000
"""Rounds after which everybody is compared where some have played no more."""
LEAST_SETS = 12
"""A player that has played fewer is in no comparison."""


def section(cells, title, players, names, rounds):
    """Lines of a comparison, and the shuffles that it is on."""
    shuffles = shuffles_of(cells, players, names)
    after = "all of each set" if rounds is None else f"the first {rounds:,} of each set"
    head = (
        f"{len(players)} players, {len(names)} sets, shuffles {', '.join(map(str, shuffles))}, {after}; "
        "the columns with groups are their normalised losses."
    )
    return [f"### {title}\n", f"{head}\n", *summary(cells, players, names, shuffles, rounds), ""], shuffles


def write(results):
    """All tables into docs/_tables, the figure into docs/_static."""
    cells = cells_of(results)
    full = cells_of([one for one in results if one["rounds"] == sets.rows_of(one["set"]).rounds])
    everything = list(sets.NAMES)
    everybody = [
        one for one in dict.fromkeys(line["player"] for line in results) if not one.endswith(", joint")
    ]
    everywhere = [one for one in everybody if complete(full, [one]) == everything]
    many = [one for one in everybody if len(complete(cells, [one])) >= LEAST_SETS]
    common = complete(cells, many)

    lines, shuffles = section(full, "All rounds of all sets", everywhere, everything, None)
    few, at = section(cells, "Everybody, after 2,000 rounds", many, common, FEW)
    figure(cells, many, common, at, FEW, DOCS / "_static" / "bakeoff.png")
    lines += few
    lines += ["### RandUCB beside each\n", f"All rounds of {len(everything)} sets:\n"]
    lines += [*against(full, everywhere, everything, shuffles, None), ""]
    others = [one for one in many if one not in everywhere]
    if others:
        lines += [f"The first {FEW:,} rounds of {len(common)} sets:\n"]
        lines += [*against(cells, others, common, at, FEW), ""]
    if any(player.endswith(", joint") for player, _, _ in cells):
        lines += ["### Joint and block form\n", *joint(cells), ""]
    ours = [one for one in everybody if is_ours(one)]
    for title, players, shown, rounds in (
        ("Loss on each set: ours", ours, full, None),
        (
            "Loss on each set: RandUCB and others",
            [OURS, *(one for one in many if one not in ours)],
            cells,
            FEW,
        ),
    ):
        words = "all rounds" if rounds is None else f"the first {rounds:,} rounds"
        lines += [
            f"### {title}\n",
            f"Means over the shuffles that a player has played, {words}; the least in bold.\n",
        ]
        lines += [*per_set(shown, players, rounds), ""]
    rare = [one for one in everybody if one not in many]
    if rare:
        lines += ["### Players of few sets\n", "In no comparison above; the first 2,000 rounds.\n"]
        lines += [
            *per_set(
                cells,
                [OURS, *rare],
                FEW,
                [name for name in everything if any((one, name, 0) in cells for one in rare)],
            ),
            "",
        ]
    (DOCS / "_tables" / "bakeoff.md").write_text("\n".join(lines))
    print("\n".join(lines))
