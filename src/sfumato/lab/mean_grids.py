"""The exponential mean of data with mean 1/2 on grids of N cells: its laws and draws, published and ours.

In print the points are k/N for k < N. The product also has the point 1.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from sfumato.data.admission import admit
from sfumato.lab.figure import Mode
from sfumato.laws import SeededBits, TruncatedLaplace
from sfumato.privacy import PureDP
from sfumato.statistics import ExponentialMean

ROWS = 1000


def rate(epsilon: float, rows: int = ROWS) -> float:
    """How many powers of e the weights fall by on [0, 1]."""
    return rows * epsilon / 2


def law(mode: Mode, cells: int, epsilon: float, rows: int = ROWS) -> TruncatedLaplace:
    """The law of k, for records with mean 1/2."""
    if mode == "corrected":
        query = ExponentialMean(
            budget=PureDP(epsilon),
            bounds=(0, 1),
            points=cells,
            neighbours="substitution",
            nulls="lower",
            rows=rows,
        )
        return query.law(query.look(_half_ones(rows)))
    fall = rows * Fraction(str(epsilon)) / 2
    return TruncatedLaplace(center=Fraction(cells, 2), scale=cells / fall, low=0, high=cells - 1)


@lru_cache(maxsize=4)
def _half_ones(rows: int) -> Any:
    return admit(np.repeat([0.0, 1.0], rows // 2))


def drawn(mode: Mode, cells: int, epsilon: float, size: int, source: Any, rows: int = ROWS) -> Any:
    """So many draws k/N: by the formulas in print and NumPy, or by the law of the product and seeded bits."""
    if mode == "corrected":
        return np.asarray(law(mode, cells, epsilon, rows).sample(source, size)) / cells
    return _printed(cells, rate(epsilon, rows), size, source) / cells


def source(mode: Mode, seed: int) -> Any:
    """Where the draws of a mode come from."""
    return SeededBits(seed) if mode == "corrected" else np.random.default_rng(seed)


def _printed(cells: int, fall: float, size: int, rng: np.random.Generator) -> Any:
    """Draws of k < N with weights e^(-fall |k/N - 1/2|): two-sided geometric, again if outside."""
    less = -math.expm1(-fall / cells)
    found = np.empty(size)
    waiting = np.arange(size)
    while waiting.size:
        if cells % 2:
            # All distances are an odd number of half cells.
            away = rng.geometric(less, waiting.size) - 0.5
            away = away * rng.choice([-1, 1], waiting.size)
        else:
            away = (rng.geometric(less, waiting.size) - rng.geometric(less, waiting.size)).astype(float)
        places = cells / 2 + away
        inside = (places >= 0) & (places <= cells - 1)
        found[waiting[inside]] = places[inside]
        waiting = waiting[~inside]
    return found


def deviation(law: TruncatedLaplace, cells: int) -> float:
    """The standard deviation of k/N."""
    return math.sqrt(law.variance) / cells


def kurtosis(cells: int, fall: float) -> float:
    """Fourth moment over squared variance of a draw on an even grid, away from both ends; 6 in the limit."""
    step = math.exp(-fall / cells)
    return (1 + 10 * step + step**2) / (2 * step)


def quantile(law: TruncatedLaplace, share: float) -> int:
    """The first outcome at or below which the law has this share: what couples all grids by one number."""
    low, high = law.low - 1, law.high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if float(law.cdf(middle)) >= share else (middle, high)
    return high
