"""A million rounds with 20 arms and d = 20: seconds and peak memory of each decision policy, and of other libraries.

    python benchmarks/streams.py [--rounds 1000000] [--peers PYTHON] [--out benchmarks/streams.md]

Rounds have joint features in 1-dimensional blocks: a context x, and a separate coefficient for each arm. They are
generated, or read in pieces from a Parquet file with x and the reward of every arm. Every measurement is its own
process, whose peak memory is taken above its memory after a hundred rounds, when everything is compiled. PYTHON has
mabwiser and vowpalwabbit (peers-requirements.txt); they play the first rounds of the same stream, alternating with
ours, and only the ratio of the times per round counts, because the machine may be busy.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import solid_bandits as sb

ARMS = 20
NOISE_STD = 0.5
POLICIES = {
    "RandUCB": sb.RandUCB(),
    "LinTS": sb.LinTS(),
    "LinUCB": sb.LinUCB(radius="paper"),
    "Greedy": sb.Greedy(),
}
FILED = ("RandUCB", "Greedy")
"""Policies that also play the file."""
PEERS = {"MABWiser LinUCB": 2000, "MABWiser LinTS": 2000, "VW optimistic RegCB": 2000, "VW bag of 5": 2000}
"""Peer -> number of rounds that it plays."""
REPEATS = 3


def make_stream() -> sb.streams.Stream:
    return sb.streams.joint(n_arms=ARMS, context_dim=1, noise_std=NOISE_STD, seed=3)


def contexts_and_rewards(rounds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x, the mean of each arm and the noise of the first rounds of run 0."""
    parts: list[list[np.ndarray]] = []
    found = 0
    for block in make_stream().blocks(0, 0):
        features, _, _, means, noise = block.arrays
        parts.append([features[:, 0, 0].copy(), means.copy(), noise.copy()])
        found += len(noise)
        if found >= rounds:
            break
    context, means, noise = (np.concatenate(one)[:rounds] for one in zip(*parts, strict=True))
    return context, means, noise


def write_file(path: Path, rounds: int) -> None:
    context, means, noise = contexts_and_rewards(rounds)
    rewards = {f"reward_{arm}": means[:, arm] + noise for arm in range(ARMS)}
    pl.DataFrame({"x": context, **rewards}).write_parquet(path)


def memory(field: str) -> float:
    """Return the memory of this process in MB, now (VmRSS) or at its peak (VmHWM); getrusage's peak includes the
    parent's.
    """
    (line,) = (one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith(field))
    return int(line.split()[1]) / 1024


def measure(policy: str, rounds: int, path: str | None) -> dict[str, float]:
    """Measure in its own process: seconds, its memory in MB before, and its peak."""
    stream = (
        make_stream()
        if path is None
        else sb.streams.from_file(
            path, reward="reward_{arm}", context="x", intercept=False, noise_std=NOISE_STD
        )
    )
    chosen = {policy: POLICIES[policy]}
    sb.simulate(stream, chosen, 100, 1, jobs=1)
    before = memory("VmRSS")
    cpu, wall = time.process_time(), time.perf_counter()
    results = sb.simulate(stream, chosen, rounds, 1, jobs=1)
    return {
        "seconds": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "decisions": results.seconds[policy],
        "before": before,
        "peak": memory("VmHWM"),
        "regret": results.table["regret"][-1],
    }


def measured_apart(policy: str, rounds: int, path: Path | None = None) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", policy, "--rounds", str(rounds)]
    command += [] if path is None else ["--file", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return found


def peers_measured(python: str, folder: Path) -> dict[str, dict[str, float]]:
    """Measure peers and ours in turns on the same rounds: seconds per round, the median of the repeats."""
    rounds = max(PEERS.values())
    context, means, noise = contexts_and_rewards(rounds)
    np.savez(folder / "rounds.npz", context=context, means=means, noise=noise)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in PEERS}
    for _ in range(REPEATS):
        for name, count in PEERS.items():
            command = [python, str(Path(__file__).with_name("streams_peers.py")), str(folder / "rounds.npz")]
            ended = subprocess.run([*command, name, str(count)], capture_output=True, text=True, check=True)
            theirs = json.loads(ended.stdout.splitlines()[-1])
            chosen = "LinUCB" if "UCB" in name or "RegCB" in name else "LinTS"
            ours = measured_apart(chosen, 200_000)
            theirs["ratio"] = theirs["seconds"] / count / (ours["cpu"] / 200_000)
            theirs["ours"] = measured_apart(chosen, count)["regret"] / count
            found[name].append(theirs)
    return {name: sorted(some, key=lambda one: one["ratio"])[REPEATS // 2] for name, some in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--peers", help="a Python with mabwiser and vowpalwabbit")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measure", choices=POLICIES)
    parser.add_argument("--file")
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure, given.rounds, given.file)))
        return
    lines = [
        f"{given.rounds:,} rounds, {ARMS} arms, d = {ARMS}, one process; seconds of CPU, making or reading the rounds "
        "included; memory is the peak above what the process had after a hundred rounds.",
        "",
        "| policy | rounds from | CPU s | of them decisions | µs a round | MB above | MB in all | regret |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "rounds.parquet"
        write_file(path, given.rounds)
        cases = [(policy, None) for policy in POLICIES] + [(policy, path) for policy in FILED]
        for policy, source in cases:
            measured_apart(policy, 100, source)  # compiled code is stored on disk
            one = measured_apart(policy, given.rounds, source)
            made = "a generator" if source is None else "a file"
            lines.append(
                f"| {policy} | {made} | {one['cpu']:.2f} | {one['decisions']:.2f} "
                f"| {one['cpu'] / given.rounds * 1e6:.2f} | {one['peak'] - one['before']:.0f} | {one['peak']:.0f} "
                f"| {one['regret']:,.0f} |"
            )
            print(lines[-1], flush=True)
        if given.peers:
            lines += [
                "",
                "| library | rounds | µs a round | times ours | regret a round | ours |",
                "|---|---:|---:|---:|---:|---:|",
            ]
            for label, one in peers_measured(given.peers, folder).items():
                count = PEERS[label]
                lines.append(
                    f"| {label} | {count:,} | {one['seconds'] / count * 1e6:,.0f} | {one['ratio']:,.0f} "
                    f"| {one['regret'] / count:.3f} | {one['ours']:.3f} |"
                )
                print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
