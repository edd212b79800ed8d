"""Counting and summing a column, beside NumPy's median and sum of the same array in the same run.

Goals: 10^7 float64 values become Counts of 65,536 cells in at most half the time of np.median, with less than
64 MiB beyond the array; time grows in proportion to n.
"""

import tracemalloc

import numpy as np
from timing import finish, medians, quick, show, verdict

from sfumato import Counts, Grid
from sfumato.data.counts import Sums
from sfumato.grid import Lattice

GRID = Grid(0, 250_000, cells=65_536)
LATTICE = Lattice.over(0, 250_000, points=2**31, origin=0)


def main() -> None:
    rows = []
    for n in (10**5,) if quick(__doc__) else (10**5, 10**6, 10**7):
        values = np.random.default_rng(1).normal(100_000, 30_000, n)
        times = medians(
            {
                "np.median": lambda values=values: np.median(values),
                "np.sum of clip": lambda values=values: np.clip(values, 0, 250_000).sum(),
                "Counts.of": lambda values=values: Counts.of(values, GRID),
                "Sums.of": lambda values=values: Sums.of(values, LATTICE),
            }
        )
        tracemalloc.start()
        Counts.of(values, GRID)
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        ratio = times["Counts.of"] / times["np.median"]
        goal = verdict(ratio <= 0.5 and peak < 64) if n == 10**7 else ""
        for name, seconds in times.items():
            last = (f"{peak:.1f} MiB", goal) if name == "Counts.of" else ("", "")
            relative = f"{seconds / times['np.median']:.2f}"
            rows.append((f"{n:,}", name, f"{seconds * 1e3:.2f}", f"{seconds / n * 1e9:.2f}", relative, *last))
    show(
        "a column on 65,536 cells, and its exact integer sum",
        ("rows", "what", "ms", "ns a row", "x np.median", "peak memory", "goal 0.50 and 64 MiB"),
        rows,
    )
    finish()


if __name__ == "__main__":
    main()
