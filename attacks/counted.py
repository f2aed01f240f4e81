"""The line that every attack prints at its end: one row of the table in docs/attacks.md."""

import time

HEAD = "| attack | tried | failed | seed | seconds |\n|---|---|---|---|---|"


def show(name: str, tried: int, failed: int, seed: int, began: float) -> None:
    """Print the row of an attack that began at `began`, by `time.monotonic()`."""
    print(f"| {name} | {tried:,} | {failed:,} | {seed} | {time.monotonic() - began:.0f} |", flush=True)
