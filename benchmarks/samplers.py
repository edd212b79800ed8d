"""Speed of the exact samplers beside NumPy and OpenDP, and whether a call's time tells the noise.

    python benchmarks/samplers.py            a table with goals
    python benchmarks/samplers.py --json     the same as JSON

Ratios are medians over repeats that take turns in one run, on one thread, so that a busy machine slows all
rows alike. OpenDP is measured if it can be imported; the package itself never imports it.
"""

import argparse
import gc
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from sfumato.errors import MissingExtra
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, KeyedBits, SystemBits
from sfumato.laws.coins import bernoulli_exp

DRAWS = 10**6
OPENDP_DRAWS = 5_000
SCALES = (10, 1000)
CALLS = 20_000

# At most this many times NumPy's time, by law and source of bits.
GOALS = {
    ("laplace", "system"): 10.0,
    ("laplace", "keyed"): 5.0,
    ("gaussian", "system"): 25.0,
    ("gaussian", "keyed"): 12.5,
}
OPENDP_GOAL = 30.0
CORRELATION_GOAL = 0.03
CALL_GOAL = 60.0

Row = dict[str, Any]


def interleaved(timed: dict[str, tuple[Callable[[], object], int]], repeats: int) -> dict[str, list[float]]:
    """Nanoseconds a draw of each candidate, repeat by repeat; candidates take turns."""
    times: dict[str, list[float]] = {name: [] for name in timed}
    for run, _ in timed.values():
        run()
    for _ in range(repeats):
        for name, (run, draws) in timed.items():
            start = time.perf_counter_ns()
            run()
            times[name].append((time.perf_counter_ns() - start) / draws)
    return times


def law_of(kind: str, scale: int) -> DiscreteLaplace | DiscreteGaussian:
    return DiscreteLaplace(Fraction(scale)) if kind == "laplace" else DiscreteGaussian(Fraction(scale) ** 2)


def numpy_run(kind: str, scale: int) -> Callable[[], object]:
    generator = np.random.default_rng(1)
    draw = generator.laplace if kind == "laplace" else generator.normal
    return lambda: draw(0.0, scale, DRAWS)


def opendp_run(kind: str, scale: int) -> Callable[[], object] | None:
    """OpenDP's integer noise on a vector of zeros, or None if OpenDP is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    metric = dp.l1_distance if kind == "laplace" else dp.l2_distance
    make = dp.m.make_laplace if kind == "laplace" else dp.m.make_gaussian
    value = float if kind == "gaussian" else int
    measurement = make(dp.vector_domain(dp.atom_domain(T=int)), metric(T=value), scale=float(scale))
    zeros = [0] * OPENDP_DRAWS
    return lambda: measurement(zeros)


def throughput(repeats: int) -> list[Row]:
    rows: list[Row] = []
    sources = {"system": SystemBits()} | ({"keyed": keyed} if (keyed := keyed_bits()) is not None else {})
    for kind in ("laplace", "gaussian"):
        for scale in SCALES:
            law = law_of(kind, scale)
            timed = {"numpy": (numpy_run(kind, scale), DRAWS)}
            for name, bits in sources.items():
                timed[name] = (partial(law.sample, bits, DRAWS), DRAWS)
            opendp = opendp_run(kind, scale)
            if opendp is not None:
                timed["opendp"] = (opendp, OPENDP_DRAWS)
            times = interleaved(timed, repeats)
            for name, nanoseconds in times.items():
                rows.append(throughput_row(kind, scale, name, nanoseconds, times))
            if opendp is None:
                rows.append({"law": kind, "scale": scale, "sampler": "opendp", "note": "not installed"})
    return rows


def throughput_row(kind: str, scale: int, name: str, own: list[float], times: dict[str, list[float]]) -> Row:
    row: Row = {"law": kind, "scale": scale, "sampler": name, "nanoseconds": statistics.median(own)}
    # The ratio of each repeat, then the median: a slow phase of the machine touches both sides.
    row["times_numpy"] = statistics.median(a / b for a, b in zip(own, times["numpy"], strict=True))
    if name == "opendp":
        row["times_ours"] = statistics.median(a / b for a, b in zip(own, times["system"], strict=True))
        row |= {"goal": f"ours >= {OPENDP_GOAL:g}x faster", "holds": row["times_ours"] >= OPENDP_GOAL}
    elif (kind, name) in GOALS:
        limit = GOALS[kind, name]
        row |= {"goal": f"<= {limit:g}x numpy", "holds": row["times_numpy"] <= limit}
    return row


def keyed_bits() -> KeyedBits | None:
    try:
        return KeyedBits()
    except MissingExtra:
        return None


def leaky_geometric(scale: int) -> Callable[[], int]:
    """The control: a sampler that tosses one coin a step, and so takes time in proportion to its outcome."""
    bits, step = SystemBits(), Fraction(1, scale)

    def draw() -> int:
        count = 0
        while bernoulli_exp(step, bits):
            count += 1
        return count

    return draw


def timing() -> list[Row]:
    bits = SystemBits()
    rows = []
    for kind in ("laplace", "gaussian"):
        for scale in SCALES:
            law = law_of(kind, scale)
            correlation, microseconds = time_and_noise(partial(law.sample, bits), CALLS)
            rows.append(
                {
                    "law": kind,
                    "scale": scale,
                    "correlation": correlation,
                    "microseconds": microseconds,
                    "goal": f"|corr| <= {CORRELATION_GOAL}, <= {CALL_GOAL:g} us",
                    "holds": abs(correlation) <= CORRELATION_GOAL and microseconds <= CALL_GOAL,
                }
            )
    correlation, microseconds = time_and_noise(leaky_geometric(10), CALLS)
    rows.append(
        {
            "law": "control: one coin a step",
            "scale": 10,
            "correlation": correlation,
            "microseconds": microseconds,
            # The control is judged as our samplers are: if it passes, this run is too noisy to show anything.
            "goal": f"must be caught: |corr| > {CORRELATION_GOAL}",
            "holds": abs(correlation) > CORRELATION_GOAL,
        }
    )
    return rows


def time_and_noise(draw: Callable[[], int], calls: int) -> tuple[float, float]:
    """The correlation of a call's time with the magnitude it returns, and the median time in microseconds."""
    for _ in range(calls // 10):
        draw()
    times, values = np.empty(calls), np.empty(calls)
    gc.collect()
    gc.disable()
    try:
        for i in range(calls):
            start = time.perf_counter_ns()
            value = draw()
            times[i] = time.perf_counter_ns() - start
            values[i] = abs(value)
    finally:
        gc.enable()
    # Interruptions by the system are a thousand times longer than a call and would drown what is looked for.
    capped = np.minimum(times, np.quantile(times, 0.99))
    return float(np.corrcoef(capped, values)[0, 1]), float(np.median(times)) / 1000


def table(title: str, columns: Iterable[str], rows: list[Row]) -> str:
    columns = list(columns)

    def cell(value: object) -> str:
        if isinstance(value, bool):
            return "yes" if value else "NO"
        return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)

    lines = [columns] + [[cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    text = [
        "  ".join(value.ljust(width) for value, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([title, text[0], "-" * len(text[0]), *text[1:], ""])


def main() -> None:
    parser = argparse.ArgumentParser(description="Benchmark the exact samplers.")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--repeats", type=int, default=7, help="repeats of each measurement (default 7)")
    arguments = parser.parse_args()
    report = {
        "machine": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "processor": platform.machine(),
        },
        "throughput": throughput(arguments.repeats),
        "timing": timing(),
    }
    if arguments.json:
        print(json.dumps(report, indent=2))
        return
    print(
        table(
            f"Vector draws: {DRAWS:,} at a time (OpenDP {OPENDP_DRAWS:,}), medians of {arguments.repeats}",
            ("law", "scale", "sampler", "nanoseconds", "times_numpy", "times_ours", "goal", "holds", "note"),
            report["throughput"],
        )
    )
    print(
        table(
            f"Scalar draws: does the time tell the noise? {CALLS:,} calls",
            ("law", "scale", "correlation", "microseconds", "goal", "holds"),
            report["timing"],
        )
    )


if __name__ == "__main__":
    main()
