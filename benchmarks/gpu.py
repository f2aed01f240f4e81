"""Steps per second on a GPU compared with one CPU core, and whether the runs are the same.

Usage, on a machine with a GPU (numpy, scipy, numba and numba-cuda are enough, for tails polars too):

    PYTHONPATH=src python benchmarks/gpu.py rates OUT.json [--size 4,8,8] [--policy SOLID ...]
    PYTHONPATH=src python benchmarks/gpu.py same OUT.json
    PYTHONPATH=src python benchmarks/gpu.py tails OUT.json     # a million runs of the toy problem

and anywhere `python benchmarks/gpu.py table benchmarks/gpu.json`, which writes the tables of the rows gathered there,
{"rates": [...], "same": [...]}, into gpu.md and the documentation.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
HORIZON = 1000
COUNTS = (1_000, 100_000, 1_000_000)
SIZES = {"2,3,3": (2, 3, 3), "4,8,8": (4, 8, 8), "4,32,8": (4, 32, 8), "50,20,16": (50, 20, 16)}
LONGEST = 15.0
"""Largest estimated seconds of one launch; fewer steps are played if it would take longer."""


def make_problem(size):
    """Return a dense Gaussian problem of this size with σ = 1."""
    import solid_bandits as sb

    rng = np.random.default_rng(0)
    contexts, arms, dim = size
    theta = rng.standard_normal(dim) / np.sqrt(dim)
    return sb.Problem(rng.standard_normal((contexts, arms, dim)), theta, noise_std=1.0)


def policies(n_arms):
    import solid_bandits as sb

    return {
        "Greedy": sb.Greedy(),
        "EpsilonGreedy": sb.EpsilonGreedy(),
        "LinUCB": sb.LinUCB(radius="paper"),
        "RandUCB": sb.RandUCB(temperature=0.5, growth=0.2, ridge=0.2),
        "LinTS": sb.LinTS(),
        "SOLID, λ = 0": sb.Solid(z0=float(n_arms), initial_multiplier=50.0, bonus="theorem"),
        "SOLID, λ awake": sb.Solid(z0=float(n_arms), initial_multiplier=50.0, bonus="none"),
        "AO-IDS": sb.rivals.AOIDS(),
        "RandUCB, ridge by evidence": sb.RandUCB(),
        "StreamingSolid": sb.rivals.StreamingSolid(),
        "SPL": sb.rivals.SPL(),
        "UCB1": sb.rivals.UCB1(),
        "VIDS": sb.VIDS(),
    }


def unfit(problem, policy, horizon):
    """Return why a policy cannot play a problem on a GPU, or at all; None if it can."""
    from solid_bandits.gpu.device import check_fits
    from solid_bandits.simulation.plan import idle_agent

    try:
        check_fits(policy.name, idle_agent(policy, problem, horizon, True))
    except ValueError as error:
        return str(error)
    return None


def fitting(problem, horizon, chosen=None):
    """Return the policies that can play a problem, by name; print the others with the reason."""
    for name, policy in policies(problem.n_arms).items():
        if chosen and name not in chosen:
            continue
        reason = unfit(problem, policy, horizon)
        if reason is None:
            yield name, policy
        else:
            print(f"{name} skipped: {reason}", flush=True)


def rates(arguments):
    from solid_bandits.core.loop import checkpoints, play
    from solid_bandits.gpu import kernel
    from solid_bandits.gpu.device import gpu_name
    from solid_bandits.gpu.wave import play_wave

    rows = []
    for size in arguments.size or SIZES:
        problem = make_problem(SIZES[size])
        for name, policy in fitting(problem, HORIZON, arguments.policy):
            begun = time.perf_counter()
            play_wave(problem, policy, HORIZON, 0, checkpoints(HORIZON, 20), 0, 32)
            row = {"size": size, "policy": name, "compile": time.perf_counter() - begun, "gpu": gpu_name()}
            made = list(kernel._MADE.values())[-1]
            row["registers"] = next(iter(made.get_regs_per_thread().values()))
            row["local"] = next(iter(made.get_local_mem_per_thread().values()))
            horizon, speed = HORIZON, None
            for runs in COUNTS:
                if speed is not None:
                    horizon = int(np.clip(LONGEST * speed / runs, 20, HORIZON))
                    if runs * horizon / speed > 3 * LONGEST:
                        continue
                steps = checkpoints(horizon, 20)
                seconds = min(
                    play_wave(problem, policy, horizon, 0, steps, 0, runs).seconds
                    for _ in range(1 if speed is not None and runs * horizon / speed > 2 else 3)
                )
                speed = runs * horizon / seconds
                row[f"{runs}"] = {"steps_per_second": speed, "horizon": horizon, "seconds": seconds}
            play(problem, policy, 1, 0, 0, checkpoints(1))
            begun, run = time.thread_time(), 0
            while time.thread_time() - begun < 1.0 or run < 3:
                play(problem, policy, HORIZON, 0, run, checkpoints(HORIZON, 20))
                run += 1
            row["core"] = run * HORIZON / (time.thread_time() - begun)
            rows.append(row)
            print(json.dumps(row, ensure_ascii=False), flush=True)
            Path(arguments.out).write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")


def same(arguments):
    """Play 1,000 runs on either side; report how many are identical, and how many diverge."""
    from solid_bandits.core.loop import checkpoints, play
    from solid_bandits.gpu.wave import play_wave

    horizon, runs, rows = 5_000, 1_000, []
    problem = make_problem(SIZES["4,8,8"])
    for name, policy in fitting(problem, horizon):
        steps = checkpoints(horizon, 50)
        wave = play_wave(problem, policy, horizon, 0, steps, 0, runs)
        traces = np.array([play(problem, policy, horizon, 0, run, steps).regret for run in range(runs)])
        ends, other = wave.regret[:, -1], traces[:, -1]
        row = {
            "policy": name,
            "horizon": horizon,
            "runs": runs,
            "identical": int((wave.regret == traces).all(axis=1).sum()),
            "close": int(np.isclose(wave.regret, traces, rtol=1e-9).all(axis=1).sum()),
            "mean": [float(ends.mean()), float(other.mean())],
            "half": float(1.96 * other.std(ddof=1) / np.sqrt(runs)),
        }
        rows.append(row)
        print(json.dumps(row, ensure_ascii=False), flush=True)
        Path(arguments.out).write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")


def tails(arguments):
    """Play a million runs of the toy problem at the paper's horizon, and summarise them."""
    import solid_bandits as sb

    every = {
        "SOLID, theorem": sb.Solid(bonus="theorem"),
        "SOLID, plain": sb.Solid(bonus="plain"),
        "SOLID, local": sb.Solid(bonus="local"),
        "SOLID, none": sb.Solid(bonus="none"),
        "LinUCB": sb.LinUCB(radius="paper"),
        "LinTS (paper)": sb.LinTS(scale="paper"),
        "LinTS (posterior)": sb.LinTS(),
        "RandUCB": sb.RandUCB(temperature=0.5, growth=0.2, ridge=0.2),
        "EpsilonGreedy": sb.EpsilonGreedy(),
        "Greedy": sb.Greedy(),
        "AO-IDS": sb.rivals.AOIDS(),
    }
    chosen = {label: every[label] for label in arguments.policy or every}
    begun = time.perf_counter()

    def tell(share):
        print(f"{share:.1%} after {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)

    for label, policy in chosen.items():
        path = Path(arguments.out).with_name(
            f"{Path(arguments.out).stem}-{''.join(filter(str.isalnum, label))}.json"
        )
        summary = sb.summarise(
            sb.problems.toy(),
            {label: policy},
            horizon=arguments.horizon,
            runs=arguments.runs,
            device="gpu",
            path=path,
            progress=tell,
        )
        one = summary.policies[label]
        print(
            f"{label}: mean {one.regret.mean[-1]:.3f}, 99.9% {one.quantile(0.999)}, worst {one.worst[0]}, "
            f"{one.runs * arguments.horizon / one.seconds:.3g} steps/s",
            flush=True,
        )


def table(arguments):
    """Write the tables between their marks in gpu.md, and those of the documentation."""
    content = json.loads(Path(arguments.out).read_text(encoding="utf-8"))
    lines = [
        "| contexts, arms, d | policy | 1,000 runs | 100,000 | 1,000,000 | one core | GPU / core | compiled | local |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in content["rates"]:
        speeds = [row.get(f"{runs}", {}).get("steps_per_second") for runs in COUNTS]
        cells = [
            f"{speed:.2g}".replace("e+0", "·10^").replace("e+", "·10^") + "^" if speed else ""
            for speed in speeds
        ]
        core = f"{row['core']:.2g}".replace("e+0", "·10^") + "^"
        factor = max(speed for speed in speeds if speed) / row["core"]
        lines.append(
            f"| {row['size'].replace(',', ', ')} | {row['policy']} | "
            + " | ".join(_raised(cell) for cell in [*cells, core])
            + f" | {float(f'{factor:.2g}'):,.0f} | {row['compile']:.1f} s | {row['local']:,} B |"
        )
    rates_table = "\n".join(lines)
    lines = [
        "| policy | identical to the last bit | mean regret, GPU | CPU |",
        "|---|---:|---:|---:|",
        *(
            f"| {row['policy']} | {row['identical']:,} of {row['runs']:,} | "
            f"{row['mean'][0]:.4f} | {row['mean'][1]:.4f} |"
            for row in content["same"]
        ),
    ]
    (HERE.parent / "docs" / "_tables" / "gpu-rates.md").write_text(rates_table + "\n", encoding="utf-8")
    page = HERE / "gpu.md"
    text = page.read_text(encoding="utf-8")
    for name, made in (("rates", rates_table), ("same", "\n".join(lines))):
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        text = text[: text.index(start) + len(start)] + made + "\n" + text[text.index(end) :]
    page.write_text(text, encoding="utf-8")


def _raised(cell):
    """Write 2.4·10^9^ as 2.4·10⁹."""
    if "^" not in cell:
        return cell
    head, power, _ = cell.split("^")
    return head + power.translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["rates", "same", "tails", "table"])
    parser.add_argument("out")
    parser.add_argument("--size", action="append", choices=list(SIZES))
    parser.add_argument("--policy", action="append")
    parser.add_argument("--horizon", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=1_000_000)
    arguments = parser.parse_args()
    {"rates": rates, "same": same, "tails": tails, "table": table}[arguments.what](arguments)


if __name__ == "__main__":
    main()
