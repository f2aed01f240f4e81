"""docs/reproduction.md: the report on all experiments, with Jester's sentences among the others and its section last.

Usage: python studies/jester/page.py RESULTS [RUNS.jsonl] [DOCS]

RESULTS is what `solid-bandits reproduce all --scale paper` wrote. `make pages` runs this.
"""

import sys
from pathlib import Path

from judge import HERE, fragment, lines_of, outcome

from solid_bandits.paper.loading import load_outcomes
from solid_bandits.paper.report.directory import facts
from solid_bandits.paper.report.document import document

NOTES = {"end-of-optimism": "```{include} _tables/end-of-optimism.md\n```"}
"""Experiment -> what stands below its claims: the same at a longer horizon, by studies/optimism/table.py."""


def page(found, known, lines):
    """The text, from the outcomes, what is known of the work as a whole, and Jester's runs."""
    report = document(found, known, apart=[outcome(lines)], notes=NOTES)
    return f"{report}\n## Jester at the paper's horizon\n\n{fragment(lines)}\n"


def main():
    """Read and write."""
    results = Path(sys.argv[1])
    runs = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE / "runs.jsonl"
    docs = Path(sys.argv[3]) if len(sys.argv) > 3 else HERE.parents[1] / "docs"
    found = load_outcomes(results)
    text = page(found, facts(found, results), lines_of(runs))
    (docs / "reproduction.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
