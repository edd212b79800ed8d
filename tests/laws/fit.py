"""Goodness of fit on integers: a chi-square test for any defect, and a score test for a wrong scale.

A sampler fits if neither test rejects; a test of a sampler must also show that the same draws reject laws a
little too wide and too narrow.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2, norm

# The false-alarm probability of every statistical test of the project. With fixed seeds a test is either
# always green or always red; 200 tests with fresh seeds would raise a false alarm once in 5 million runs.
FALSE_ALARM = 1e-9
# How wrong a scale may be before every fit test must notice.
DETECTABLE = 0.02


@dataclass(frozen=True)
class Fit:
    """The p-values of both tests."""

    chi_square: float
    score: float

    @property
    def rejected(self) -> bool:
        return min(self.chi_square, self.score) < FALSE_ALARM


def fit(draws: np.ndarray, family: Callable[[float], Any]) -> Fit:
    """How well draws fit family(1), where family(f) is the same law with its scale times f."""
    law = family(1.0)
    if np.isneginf(law.logpmf(draws)).any():
        return Fit(0.0, 0.0)
    grid = support_of(law)
    return Fit(chi_square_of(draws, law, grid), score_of(draws, family, grid))


def support_of(law: Any) -> np.ndarray:
    """Integers that cover the law: all of them, or 200,000 evenly spaced ones of a wide law."""
    # Beyond thirty standard deviations there is too little to matter for a fit.
    reach = 30 * math.sqrt(law.variance) + 30
    low, high = math.floor(law.mean - reach), math.ceil(law.mean + reach)
    grid = np.arange(low, high + 1, max(1, (high - low) // 200_000))
    return grid[np.isfinite(law.logpmf(grid))]


def chi_square_of(draws: np.ndarray, law: Any, edges: np.ndarray) -> float:
    """The p-value of Pearson's test on cells of about equal probability, at least 50 expected draws each."""
    cumulative = np.asarray(law.cdf(edges))
    cells = min(200, len(draws) // 50)
    wanted = np.searchsorted(cumulative, np.arange(1, cells) / cells)
    edges = edges[np.unique(wanted[wanted < len(edges)])]
    cuts = np.concatenate([[0.0], np.asarray(law.cdf(edges)), [1.0]])
    expected = np.diff(cuts) * len(draws)
    observed = np.bincount(np.searchsorted(edges, draws), minlength=len(edges) + 1)
    if observed[expected < 1e-9].any():
        return 0.0
    expected, observed = expected[expected >= 1e-9], observed[expected >= 1e-9]
    if len(expected) < 2:
        return 1.0
    statistic = ((observed - expected) ** 2 / expected).sum()
    return float(chi2.sf(statistic, len(expected) - 1))


def score_of(draws: np.ndarray, family: Callable[[float], Any], grid: np.ndarray) -> float:
    """The p-value of the score test of the scale."""
    # The derivative of the log likelihood in the log scale has mean zero under the law; its variance is
    # summed over the grid that covers the law.
    step = 1e-4
    wide, narrow = family(1 + step), family(1 - step)

    def score(values: np.ndarray) -> np.ndarray:
        return (wide.logpmf(values) - narrow.logpmf(values)) / (2 * step)

    mass = np.exp(family(1.0).logpmf(grid))
    mass /= mass.sum()
    scores = score(grid)
    mean = float((mass * scores).sum())
    variance = float((mass * (scores - mean) ** 2).sum())
    if variance == 0:
        return 1.0
    z = float((score(draws) - mean).sum()) / math.sqrt(len(draws) * variance)
    return float(2 * norm.sf(abs(z)))
