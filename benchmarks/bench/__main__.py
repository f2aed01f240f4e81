"""`python benchmarks/bench`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # so that this folder is the package `bench`
sys.path.insert(1, str(Path(__file__).parent.parent.parent / "tests"))  # the NumPy references
sys.path.insert(
    2, str(Path(__file__).parent.parent / "peers")
)  # NumPy's thirty lines, and the problem they play
from bench.command import main

if __name__ == "__main__":
    sys.exit(main())
