"""Private quantiles of 10,000 data sets in the laboratory, beside NumPy's own on the same array, in one run.

Goals at epsilon 1 on the default grid: the laws of all data sets, made and drawn from once, take at most 30
times as long as np.median over the rows of the array. So does an experiment of `sfumato.lab.run`, which also
draws the data and computes the exact risk. Memory beside the array is at most that of the array. Of 99
percentiles, laws and a draw take at most 30 times as long as np.quantile.
"""

import tracemalloc
from collections.abc import Callable

import numpy as np
from timing import finish, medians, quick, show, verdict

import sfumato as sf
from sfumato.lab import datasets
from sfumato.lab.quantile_rows import QuantileRows
from sfumato.lab.runs import run
from sfumato.laws import SeededBits

GOAL = 30.0
SEVERAL = 100


def asked(count: int) -> sf.Quantiles:
    orders = [i / (count + 1) for i in range(1, count + 1)]
    method = "single" if count == 1 else "independent"
    return sf.Quantiles(
        probs=orders,
        budget=sf.PureDP(1),
        bounds=(0, 1),
        neighbours="substitution",
        method=method,
        verify=0,
    )


def drawn(query: sf.Quantiles, rows: np.ndarray, size: int = 1) -> np.ndarray:
    laws = QuantileRows.of(query, rows)
    if laws is None:
        raise SystemExit("the laws of these quantiles are not known for many data sets at once")
    return laws.sample(SeededBits(1), size)


def peak(call: Callable[[], object]) -> int:
    """The most memory in use at once, in bytes."""
    tracemalloc.start()
    call()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def compare(sets: int, n: int, count: int, *, short: bool, judged: bool) -> None:
    rows, query = np.random.default_rng(1).random((sets, n)), asked(count)
    shares = np.arange(1, count + 1) / (count + 1)
    base = "np.median" if count == 1 else "np.quantile"
    contenders: dict[str, Callable[[], object]] = {
        base: lambda: np.median(rows, axis=1) if count == 1 else np.quantile(rows, shares, axis=1),
        "laws and one draw": lambda: drawn(query, rows),
    }
    if count == 1:
        contenders |= {
            "np.median, call by call": lambda: [np.median(row) for row in rows],
            f"laws and {SEVERAL} draws": lambda: drawn(query, rows, SEVERAL),
            "lab.run, data and exact risk included": lambda: run(
                query, data=datasets.uniform(), sweep={"n": [n]}, sets=sets, repeats=1
            ),
        }
    times = medians(contenders, repeats=3 if short or count > 1 else 7)
    lines = []
    for name, took in times.items():
        ratio = took / times[base]
        goal = name in ("laws and one draw", "lab.run, data and exact risk included") and judged
        words = verdict(ratio <= GOAL, short=short) if goal else ""
        lines.append((name, f"{took * 1e3:,.1f}", f"{ratio:.2f}", f"{GOAL:g}" if goal else "", words))
    beside = peak(lambda: drawn(query, rows)) / rows.nbytes
    limited = judged and count == 1
    held = verdict(beside <= 1, short=short) if limited else ""
    lines.append(("memory beside the array, of its size", "", f"{beside:.2f}", "1" if limited else "", held))
    what = "a private median" if count == 1 else f"{count} private percentiles"
    header = ("what", "ms", f"x {base}", "goal", "")
    show(f"{what} of each of {sets:,} data sets of {n:,} values", header, lines)


def main() -> None:
    short = quick(__doc__)
    sets = 500 if short else 10_000
    compare(sets, 1000, 1, short=short, judged=True)
    compare(sets, 100, 1, short=short, judged=False)
    compare(max(sets // 10, 50), 1000, 99, short=short, judged=True)
    finish()


if __name__ == "__main__":
    main()
