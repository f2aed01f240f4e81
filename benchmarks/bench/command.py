"""The command: measure, print, compare."""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import bench
from bench.calls import Called, measure_calls
from bench.cases import SIZES, Cell, cells_of
from bench.compare import (
    LIMIT,
    as_json,
    as_lines,
    goals,
    goals_of_calls,
    load,
    regressions,
    rows_of_calls,
    verdict,
    verdict_of_calls,
)  # fmt: skip
from bench.floors import FLOORS
from bench.growth import measure_growth
from bench.plain import measure_plain
from bench.table import FLOOR_TITLES, call_page, call_rows, floor_row, growth_rows, page, plain_rows, table
from bench.timing import Measured, measure_size

HERE = Path(__file__).parent.parent
"""Folder of the committed numbers: `bench.json`, `bench.md`."""


def main() -> int:
    """Measure, print, compare."""
    parser = argparse.ArgumentParser(
        description=bench.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    labels = sorted({label for label, _ in FLOORS})
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each measurement")
    parser.add_argument("--seconds", type=float, default=0.02, help="seconds of each policy in each round")
    parser.add_argument("--only", nargs="+", choices=labels, help="only these policies")
    parser.add_argument("--sizes", type=int, default=len(SIZES), help="number of sizes, smallest first")
    parser.add_argument("--no-growth", action="store_true", help="leave the exponents out")
    parser.add_argument("--calls", action="store_true", help="only calls from Python")
    parser.add_argument("--write", action="store_true", help="commit the numbers of this run")
    parser.add_argument("--strict", action="store_true", help="end with status 1 after a warning")
    arguments = parser.parse_args()
    chosen = set(arguments.only or labels)
    if arguments.write and (arguments.only or arguments.sizes < len(SIZES) or arguments.no_growth):
        parser.error("--write needs the whole run")
    committed = load(HERE / "bench.json")
    start = time.perf_counter()

    def say(line: str) -> None:
        if sys.stderr.isatty():
            print(f"[{time.perf_counter() - start:.0f} s] {line}", file=sys.stderr, flush=True)

    def doubtful(results: list[Measured]) -> list[Cell]:
        ratios = {result.cell.key: result.ratio for result in results}
        worse = regressions(committed["floor"], ratios, higher_is_better=False)
        return [result.cell for result in results if result.cell.key in worse]

    load_average = " ".join(f"{value:.1f}" for value in os.getloadavg())
    if arguments.calls:
        calls = measure_calls(arguments.rounds, arguments.seconds, say)
        warnings = said_of_calls(committed["calls"], calls)
        load_average += " to " + " ".join(f"{value:.1f}" for value in os.getloadavg())
        print(f"{time.perf_counter() - start:.0f} s, load average {load_average}")
        if arguments.write:
            content = json.loads((HERE / "bench.json").read_text(encoding="utf-8"))
            (HERE / "bench.json").write_text(
                as_lines(content | {"calls": rows_of_calls(calls)}), encoding="utf-8"
            )
            (HERE / "calls.md").write_text(call_page(calls, load_average), encoding="utf-8")
        return int(bool(warnings) and arguments.strict)
    print("\n".join(table(*FLOOR_TITLES)), flush=True)
    results: list[Measured] = []
    for size in SIZES[: arguments.sizes]:
        say(f"floors: {size}")
        for result in measure_size(cells_of(size, chosen), arguments.rounds, arguments.seconds, doubtful):
            results.append(result)
            print(floor_row(result), flush=True)
    growth = []
    if not arguments.no_growth:
        growth = measure_growth(chosen, max(3, arguments.rounds // 2), arguments.seconds, say)
        print("\n" + "\n".join(growth_rows(growth)), flush=True)
    speedups = []
    if not arguments.only:
        say("plain NumPy")
        speedups = measure_plain(max(3, arguments.rounds // 2))
        print("\n" + "\n".join(plain_rows(speedups)), flush=True)
    calls, from_calls = [], []
    if not arguments.only:
        print()
        calls = measure_calls(max(9, arguments.rounds // 2), arguments.seconds, say)
        from_calls = said_of_calls(committed["calls"], calls)
    print()
    for line in goals(results, speedups):
        print(line)
    warnings = verdict(committed, results, speedups)
    for line in warnings:
        print(line)
    if not warnings and committed["floor"]:
        print(f"no ratio is more than {LIMIT:.0%} worse than committed")
    load_average += " to " + " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{time.perf_counter() - start:.0f} s, load average {load_average}")
    if arguments.write:
        (HERE / "bench.json").write_text(as_json(results, speedups, calls), encoding="utf-8")
        (HERE / "calls.md").write_text(call_page(calls, load_average), encoding="utf-8")
        (HERE / "bench.md").write_text(page(results, growth, speedups, load_average), encoding="utf-8")
    return int(bool(warnings or from_calls) and arguments.strict)


def said_of_calls(committed: dict[str, float], calls: list[Called]) -> list[str]:
    """Print calls from Python and whether the project's goals are met; return the warnings, which are printed too."""
    print("\n".join(call_rows(calls)), flush=True)
    warnings = verdict_of_calls(committed, calls)
    for line in [*goals_of_calls(calls), *warnings]:
        print(line)
    return warnings
