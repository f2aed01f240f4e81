"""The tables, and the page that the documentation includes."""

from bench.calls import Called
from bench.cases import BASE, MOST_PAIRS_TO_SOLVE, ONE_CONTEXT
from bench.floors import FLOORS, Facts
from bench.growth import AXES, GROWTH, OAM_BASE, OAM_GROWTH, Growth
from bench.plain import NAIVE_STEPS, Speedup
from bench.rates.kernels import KERNELS
from bench.terms import Term
from bench.timing import Measured


def row(*values: object) -> str:
    """Return one line of a Markdown table."""
    cells = (str(value).replace("|", "\\|") for value in values)
    return f"| {' | '.join(cells)} |"


def table(*titles: str) -> list[str]:
    """Return the head of a Markdown table."""
    return [row(*titles), "|" + "---|" * len(titles)]


FLOOR_TITLES = ("size", "policy", "steps", "time us", "floor us", "ratio", "±", "madds", "kB")


def floor_row(result: Measured) -> str:
    """Return the row of one cell in the table of floors."""
    cell = result.cell
    kind = "" if cell.kind == "any" else cell.kind
    if result.share < 0.95:
        kind += f" ({result.share:.0%} of them)"
    return row(
        ", ".join(map(str, cell.size)),
        cell.label,
        kind,
        f"{result.time * 1e6:,.3g}" if result.time < 1e-3 else f"{result.time * 1e6:,.0f}",
        f"{result.floor * 1e6:,.3g}" if result.floor < 1e-3 else f"{result.floor * 1e6:,.0f}",
        f"{result.ratio:.2f}",
        f"{result.spread:.0%}",
        f"{result.counts.madds:,.0f}",
        f"{result.counts.bytes / 1e3:,.3g}",
    )


def growth_rows(found: list[Growth]) -> list[str]:
    """Return one line per policy and kind, with all axes in it."""
    lines = table("policy", "steps", *(f"{axis} {what}" for axis in AXES for what in ("time", "floor")))
    for label, kind in FLOORS:
        axes = {growth.axis: growth for growth in found if (growth.label, growth.kind) == (label, kind)}
        if axes:
            values: list[str] = []
            for axis in AXES:
                growth = axes.get(axis)
                values += ["-"] * 2 if growth is None else [f"{value:.2f}" for value in growth[3:]]
            lines.append(row(label, "" if kind == "any" else kind, *values))
    return lines


def call_rows(calls: list[Called]) -> list[str]:
    """Return rows on calls from Python, one for each kind and size."""
    lines = table(
        "arms, d", "calls", "time us", "kernels us", "NumPy us", "times the kernels", "times as fast as NumPy"
    )
    for call in calls:
        numbers = (f"{seconds * 1e6:.3g}" for seconds in (call.time, call.kernel, call.plain))
        size = ", ".join(map(str, call.size[1:]))
        lines.append(row(size, call.name, *numbers, f"{call.ratio:.2f}", f"{call.speed:.2f}"))
    return lines


def call_page(calls: list[Called], load_average: str) -> str:
    """Return the page of calls from Python."""
    lines = [
        "A decision with its reward, probabilities read, from Python: medians over rounds in which all take "
        "turns, ratios within a round. `kernels`: the compiled calls in it, with nothing around them. `NumPy`: "
        "thirty lines of LinUCB, in batches vectorised. `Python's floor`: two methods of two attributes that call the "
        "kernels and make a record of two fields, without checks, a lock or anything else. Where the time goes, part "
        "by part: `benchmarks/NOTES.md`.",
        "",
        *call_rows(calls),
        "",
        f"Processor time, one thread, of a machine shared with other programs (load average {load_average}).",
    ]
    return "\n".join(lines) + "\n"


def plain_rows(speedups: list[Speedup]) -> list[str]:
    """Return rows with compiled and plain code side by side."""
    lines = table("size", "policy", "compiled us/step", "steps/s", "NumPy us/step", "NumPy steps/s", "ratio")
    for found in speedups:
        lines.append(
            row(
                ", ".join(map(str, found.size)),
                found.name,
                f"{found.compiled * 1e6:.2f}",
                f"{1 / found.compiled:,.0f}",
                f"{found.plain * 1e6:.1f}",
                f"{1 / found.plain:,.0f}",
                f"{found.ratio:.0f}",
            )
        )
    return lines


def term_rows() -> list[str]:
    """Return what every floor counts, and why."""
    contexts, arms, dim = size = BASE
    names = {
        contexts * arms: "P",
        contexts: "X",
        arms: "A",
        dim: "d",
        7: "s",
        11: "n",
        13: "k",
        1: "1",
    }
    facts = Facts(support=7, solves=1.0, newton=1.0, active=11, rank=13)
    lines = table("policy", "steps", "kernels, and what for")

    def said(term: Term) -> str:
        shape = ", ".join(names[n] for n in term.shape)
        return f"`{term.kernel}({shape})`"

    for (label, kind), floor in FLOORS.items():
        parts = []
        for item in floor((1, arms, dim) if label in ONE_CONTEXT else size, facts):
            if isinstance(item, Term):
                parts.append(f"{said(item)} {item.why}")
            else:
                ways = " or ".join(" + ".join(map(said, way)) or "nothing" for way in item.ways)
                parts.append(f"{ways}: {item.why}")
        lines.append(row(label, "" if kind == "any" else kind, "; ".join(parts)))
    return lines


def kernel_rows() -> list[str]:
    """Return the kernels and their forms."""
    lines = table("kernel", "work", "forms tried")
    for name, kernel in KERNELS.items():
        forms = ", ".join(form.__name__.split("_")[-1] for form in kernel.forms)
        lines.append(row(f"`{name}`", kernel.what, forms))
    return lines


def page(results: list[Measured], found: list[Growth], speedups: list[Speedup], load_average: str) -> str:
    """Return all tables as one Markdown page, which the documentation includes."""
    loops = sorted({result.cell.size[0]: result.loop for result in results}.items())
    solves = [
        f"{result.cell.key}: {result.facts.newton:.1f} Newton steps on {result.facts.active} pairs"
        for result in results
        if result.facts.solves
    ]
    supports = [
        f"{result.facts.support} of {result.cell.size[0] * result.cell.size[1]} at "
        f"({', '.join(map(str, result.cell.size))})"
        for result in results
        if (result.cell.label, result.cell.kind) == ("SOLID", "searching")
    ]
    searches = [
        f"{result.facts.searches:.0%} at ({', '.join(map(str, result.cell.size))})"
        for result in results
        if (result.cell.label, result.cell.kind) == ("SOLID", "exploring")
    ]
    lines = [
        "### A step and its floor",
        "",
        "`time`: a step in the compiled loop, less the loop without a policy "
        f"({', '.join(f'{loop * 1e9:.0f} ns at |X| = {contexts}' for contexts, loop in loops)}). `floor`: "
        "the kernels that the step needs, each at the rate of its fastest form in the same run. `ratio`: "
        "time / floor, median over rounds, ± half the distance of the quartiles. `madds`, `kB`: multiply-adds "
        "and memory traffic of the floor.",
        "",
        *table(*FLOOR_TITLES),
        *(floor_row(result) for result in results),
        "",
        f"OAM's exploring steps are not run with more than {MOST_PAIRS_TO_SOLVE} pairs: a solve takes O(P³), "
        "which from (4, 32, 8) on makes about 1.5 s at (50, 20, 16) and 11 minutes at (191, 40, 65).",
        "SOLID's `exploring` steps are as in the paper; the closest alternative is needed where λ > 0, "
        f"{'; '.join(searches)} of them. `searching` steps are without the bonus in the constraint, and need "
        f"it; pairs whose weight counts there: {'; '.join(supports)}.",
        f"Solves: {'; '.join(solves)}.",
        "",
        f"Processor time, one thread, of a machine shared with other programs (load average {load_average}).",
        "",
        "### Growth",
        "",
        "The power of each size that a step grows with: measured time, and floor, along "
        f"{', '.join(map(str, GROWTH))} through {BASE} (one context: {(1, *BASE[1:])}); OAM's "
        f"exploring steps along {', '.join(map(str, OAM_GROWTH))} through {OAM_BASE}.",
        "",
        *growth_rows(found),
        "",
        "### Beside plain NumPy",
        "",
        "Whole steps of the compiled loop, the loop itself included, beside the reference of the tests on "
        f"the same problem; {NAIVE_STEPS} steps from the first on. `rank-one NumPy` is LinUCB written for "
        "speed in NumPy.",
        "",
        *plain_rows(speedups),
        "",
        "### What the floors count",
        "",
        "X contexts, A arms, P = X A pairs, dimension d, s pairs whose weight counts, n pairs at work in the "
        "allocation problem, k dimensions outside the span of the optimal arms. Where there are several "
        "ways, the cheapest one counts. Terms of a solve are taken as often as the run had Newton steps.",
        "",
        *term_rows(),
        "",
        *kernel_rows(),
    ]
    return "\n".join(lines) + "\n"
