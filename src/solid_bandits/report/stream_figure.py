"""The figure of a simulation on a stream: rewards per round, shares of the arms, calibration of predicted rewards."""

from collections.abc import Mapping

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter, StrMethodFormatter

from solid_bandits.report import figure as drawing
from solid_bandits.report.palette import COLOURS, Look, looks
from solid_bandits.report.scale import Scale
from solid_bandits.report.stream_data import arm_name
from solid_bandits.simulation.results import Results
from solid_bandits.statistics.on_streams import arm_shares, calibration, reward_rates

PANEL = 1.75
"""Height of a panel in inches."""
OTHERS = "#BBBBBB"
"""Colour of all arms that are not shown individually."""


def stream_figure(results: Results) -> Figure:
    """Draw mean reward per round, the arm shares of the policy with the most reward, and calibration."""
    assert results.arms is not None
    assert results.calibration is not None
    rates = reward_rates(results.table)
    shares = arm_shares(results.arms)
    styles = looks(results.policies)
    panels = 1 + (shares.height > 0) + (results.calibration.height > 0)
    figure = drawing.new_figure(drawing.WIDTH, PANEL * panels)
    axes = list(figure.subplots(panels, 1, squeeze=False)[:, 0])
    first = axes.pop(0)
    shown = rates.filter(pl.col("step") >= rates["step"].max() / 100)  # type: ignore[operator]
    drawing.draw_policies(first, shown, Scale(float("inf"), {}, ()), styles)
    _dress(first, drawing.TIME, "reward per round")
    first.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    lines = first.get_lines()
    if shares.height:
        _draw_shares(axes.pop(0), shares, _best(rates), results)
    if results.calibration.height:
        _draw_calibration(axes.pop(0), calibration(results.calibration), styles)
    drawing.add_legend(figure, lines)
    return figure


def _best(rates: pl.DataFrame) -> str:
    last = rates.filter(pl.col("step") == pl.col("step").max())
    return str(last.sort("mean", descending=True, maintain_order=True)["policy"][0])


def _draw_shares(axes: Axes, shares: pl.DataFrame, policy: str, results: Results) -> None:
    of_policy = shares.filter(pl.col("policy") == policy)
    arms = (
        of_policy.group_by("arm").agg(pl.col("share").sum()).sort("share", descending=True)["arm"].to_list()
    )
    arms = [arm for arm in arms if arm >= 0] + [arm for arm in arms if arm < 0]
    steps = of_policy["step"].unique().sort().to_list()
    columns = [of_policy.filter(pl.col("arm") == arm).sort("step")["share"].to_list() for arm in arms]
    tints = [_tint(place) if arm >= 0 else OTHERS for place, arm in enumerate(arms)]
    names = [drawing.text_of(arm_name(results, arm), 14) for arm in arms]
    if len(steps) == 1:  # an area of one step has no width
        steps, columns = [0, *steps], [[one[0], one[0]] for one in columns]
    axes.stackplot(steps, columns, colors=tints, labels=names, linewidth=0)
    _dress(axes, f"{drawing.TIME}, {drawing.text_of(policy)}", "share of pulls")
    axes.set_ylim(0, 1)
    axes.set_xlim(steps[0], steps[-1])
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    options = drawing.LEGEND | {"fontsize": drawing.SMALL - 1}
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), reverse=True, **options)


def _tint(place: int) -> str:
    return (*COLOURS, "#F0E442", "#7F7F7F", "#8C564B")[place % 9]


def _draw_calibration(axes: Axes, binned: pl.DataFrame, styles: Mapping[str, Look]) -> None:
    values = binned["predicted"].to_numpy()
    ends = [float(values.min()), float(values.max())]
    axes.plot(ends, ends, color=drawing.INK, linestyle=(0, (4, 2)), linewidth=0.8)
    for policy, look in styles.items():
        own = binned.filter(pl.col("policy") == policy)
        if own.height:
            x, y, half = (own[name].to_list() for name in ("predicted", "reward", "half_width"))
            axes.errorbar(
                x, y, half, **look.line, linewidth=drawing.LINE * 0.8, elinewidth=0.5, marker="o", ms=2
            )
    _dress(axes, "predicted reward", "received reward")


def _dress(axes: Axes, below: str, beside: str) -> None:
    drawing.style_axes(axes, below, beside)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_locator(MaxNLocator(5))
