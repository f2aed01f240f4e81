"""docs/reproduction.md: the report on all experiments, with Jester's sentences among the others and its section last.

Usage: python studies/jester/page.py RESULTS [RUNS.jsonl] [DOCS]

RESULTS is what `solid-bandits reproduce all --scale paper` wrote. `make pages` runs this.
"""

import sys
from pathlib import Path

from judge import HERE, fragment, lines_of, outcome

from solid_bandits.experiments.outcomes import outcomes
from solid_bandits.report.directory import facts
from solid_bandits.report.document import document


def page(found, known, lines):
    """The text, from the outcomes, what is known of the work as a whole, and Jester's runs."""
    report = document(found, known, apart=[outcome(lines)])
    return f"{report}\n## Jester at the paper's horizon\n\n{fragment(lines)}\n"


def main():
    """Read and write."""
    results = Path(sys.argv[1])
    runs = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE / "runs.jsonl"
    docs = Path(sys.argv[3]) if len(sys.argv) > 3 else HERE.parents[1] / "docs"
    found = outcomes(results)
    text = page(found, facts(found, results), lines_of(runs))
    (docs / "reproduction.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
