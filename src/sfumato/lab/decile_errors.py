"""Deciles by first crossings and by smooth inverse sensitivity: their exact errors, and draws, on given data.

Each decile is taken by itself, as the sources do. Sorting the nine answers of a release, as the product does,
never makes the sum of their distances from nine increasing targets larger.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.data.admission import admit
from sfumato.grid import Floats, Ints
from sfumato.laws import DiscreteLaplace, SeededBits
from sfumato.laws.crossing import IntegerNoise, log_tails
from sfumato.privacy import PureDP
from sfumato.quantile_methods import FromHistogram, InverseSensitivity, Quantiles
from sfumato.quantile_methods.node import Node

DECILES = tuple(Fraction(i, 10) for i in range(1, 10))
PUBLISHED, SAME, SMOOTH = "histogram, published", "histogram, same direction", "inverse sensitivity"
METHODS: dict[str, Any] = {
    PUBLISHED: FromHistogram(published=True),
    SAME: FromHistogram(one_sided=False),
    SMOOTH: InverseSensitivity(radius=None),
}

# Between these multiples of its scale the noise of a threshold is summed by Gauss's rule.
_PIECES = (0, 1, 2.5, 5, 9, 15, 25)
_NODES = 6
# Noise of at most this scale is summed over the integers.
_FEW = 6
# Query noise of so many scales is as good as impossible.
_SURE = 40


def deciles(name: str, epsilon: Any, rows: int, *, steps: int | None = None) -> Quantiles:
    """The nine deciles of values in [0, 1] for a budget, by one of `METHODS`, if a record is replaced."""
    method = METHODS[name] if steps is None else replace(METHODS[name], steps=steps)
    # Points so near that the smoothing radius, a thousandth of the mean gap of records, has several of them.
    fine = Fraction(1, 2**31) if name == SMOOTH else None
    return Quantiles(
        step=fine,
        column="value",
        probs=DECILES,
        budget=PureDP(epsilon),
        bounds=(0, 1),
        neighbours="substitution",
        rows=rows,
        method=method,
        verify=0,
    )


def _threshold_noise(scale: float) -> tuple[Floats, Floats]:
    """Values of the threshold's Laplace noise and their weights: few integers, or Gauss's rule on pieces.

    What `sfumato.laws.crossing` sums over many integers to all digits is here an integral, to four digits.
    """
    if scale <= _FEW:
        whole = np.arange(-math.ceil(_PIECES[-1] * scale), math.ceil(_PIECES[-1] * scale) + 1)
        weights = np.exp(-np.abs(whole) / scale)
        return whole.astype(float), weights / weights.sum()
    spot, weight = np.polynomial.legendre.leggauss(_NODES)
    ends = scale * np.array(_PIECES, dtype=float)
    half = np.diff(ends)[:, None] / 2
    right = (ends[:-1, None] + half * (1 + spot)).ravel()
    mass = (half * weight).ravel() * np.exp(-right / scale)
    chance = np.concatenate([mass[::-1], mass])
    return np.concatenate([-right[::-1], right]), chance / chance.sum()


def survival(margins: Ints, threshold: IntegerNoise, query: IntegerNoise) -> Floats:
    """How likely no value before each of an increasing row crosses, and none at all.

    Margins are values minus the threshold; the noise is two-sided.
    """
    noise, chance = _threshold_noise(float(threshold.scale))
    # Far below the threshold no value crosses, and far above it none is passed.
    away = _SURE * float(query.scale) + _PIECES[-1] * float(threshold.scale)
    first, last = np.searchsorted(margins, [-away, away])
    stays, _ = log_tails(query, noise[:, None] - margins[first:last])
    kept = np.ones(len(margins) + 1)
    with np.errstate(under="ignore"):
        kept[first + 1 : last + 1] = chance @ np.exp(np.cumsum(stays, axis=1))
    kept[last + 1 :] = kept[last] if last == len(margins) else 0.0
    return kept


def near_median(data: Floats, steps: int, epsilon: Fraction, distance: float) -> float:
    """How likely the left edge of the median's step is within a distance of 1/2, exactly, for sorted data.

    The scan is the published one for a ninth of the budget. Given the noise of the threshold equal counts
    have equal chances: the sum is over the possible counts, in place of a scan over all steps.
    """
    rows, part = len(data), len(DECILES) / epsilon
    threshold, query = DiscreteLaplace(2 * part), DiscreteLaplace(4 * part)
    reach = math.ceil(30 * threshold.scale)
    bars = rows // 2 + np.arange(-reach, reach + 1)
    chances = np.exp(threshold.logpmf(bars - rows // 2))
    cells = np.floor(data * steps)
    first, last = math.ceil((0.5 - distance) * steps - 1e-6), math.floor((0.5 + distance) * steps + 1e-6)
    logs = []
    for place in (first, last + 1):
        # For each count, at how many of the first steps it is found: from a record to the next.
        found = np.diff(np.clip(cells, 0, place), prepend=0, append=place)
        logs.append(_stays(found, bars, query))
    with np.errstate(under="ignore"):
        before, after = (float(chances @ np.exp(log)) for log in logs)
    return before - after


def _stays(found: Floats, bars: Ints, query: DiscreteLaplace) -> Floats:
    """For each threshold the log chance that no count crosses, with so many steps at each count.

    A sum over counts of log P(noise <= bar - count), which is linear where the count is above the bar, so
    that sums of the steps and of their counts tell it; the rest is small, and a convolution.
    """
    rate, counts = float(1 / query.scale), np.arange(len(found))
    start = float(query.logcdf(-1)) + rate
    near = np.asarray(query.logcdf(np.arange(bars[-1] + 1)))
    size = 1 << (len(near) + len(found)).bit_length()
    below = np.fft.irfft(np.fft.rfft(near, size) * np.fft.rfft(found, size), size)
    # How many steps are at counts above each bar, and what these counts add up to.
    after = np.searchsorted(counts, bars, side="right")
    many, total = (np.append(np.cumsum(each[::-1])[::-1], 0.0)[after] for each in (found, found * counts))
    above = many * (rate * bars + start) - rate * total
    return np.asarray(above + np.where(bars >= 0, below[np.maximum(bars, 0)], 0.0))


@dataclass(frozen=True)
class Errors:
    """Of each decile on one data set: mean distances in ranks and from the population, exact and drawn."""

    ranks: Floats
    values: Floats
    drawn_ranks: Floats
    drawn_values: Floats


def errors(
    name: str,
    epsilon: Any,
    data: Floats,
    draws: int,
    seed: int,
    orders: tuple[Fraction, ...] = DECILES,
    *,
    steps: int | None = None,
) -> Errors:
    """The exact errors on one sorted data set, and those of so many draws, a row for each draw.

    Whichever of the nine are looked at, each has a ninth of the budget.
    """
    query = deciles(name, epsilon, len(data), steps=steps)
    law: Any = query.law(query.look(admit(data, "value")))
    bits = SeededBits(seed)
    step = float(query.facts.grid.step)
    exact = np.empty((2, len(orders)))
    answers = np.empty((draws, len(orders)))
    for i, order in enumerate(orders):
        place = DECILES.index(order)
        if name == SMOOTH:
            node = law.nodes[place]
            answers[:, i] = [step * node.sample(bits) for _ in range(draws)]
            exact[:, i] = _smooth(node, data, float(order), step)
        else:
            crossing = law.scans[place].law(law.counts)
            edges = _edges(query)
            answers[:, i] = edges[crossing.sample(bits, draws)]
            margins = crossing.values - crossing.threshold
            kept = survival(margins, crossing.threshold_noise, crossing.query_noise)
            chances = -np.diff(kept, append=0.0)
            exact[0, i] = chances @ np.abs(np.searchsorted(data, edges) - float(order) * len(data))
            exact[1, i] = chances @ np.abs(edges - float(order))
    shares = np.array([float(order) for order in orders])
    away = np.abs(np.searchsorted(data, answers.ravel()).reshape(answers.shape) - shares * len(data))
    return Errors(exact[0], exact[1], away, np.abs(answers - shares))


def _edges(query: Quantiles) -> Floats:
    """The answer for each step of the scan; if none crosses, that of the last."""
    method: Any = query.chosen
    cells = method.cells(query.facts).cells
    starts: Floats = np.append(np.arange(cells), cells - 1) / cells
    return starts if method.published else starts + 0.5 / cells


def _smooth(node: Node, data: Floats, order: float, step: float) -> tuple[float, float]:
    """The mean distances in ranks and in value of a point of equally likely runs.

    A run lies between two records, so that the rank is that at its middle up to the smoothing radius.
    """
    points, _, masses = node.law.runs
    kept = points > 0
    lengths, shares = np.asarray(points[kept] * step, dtype=np.float64), masses[kept]
    ends = np.asarray(node.law.ends[kept] * step, dtype=np.float64)
    starts = ends - lengths
    # The runs of the two tails hold many records each: distances there are integrals over all of them.
    ranks = (_integral(data, ends) - _integral(data, starts)) / lengths
    away = np.abs(ranks - order * len(data))
    for i in (0, len(lengths) - 1):
        places = starts[i] + lengths[i] * (np.arange(2000) + 0.5) / 2000
        away[i] = np.abs(np.searchsorted(data, places) - order * len(data)).mean()
    below = np.clip(order - starts, 0, lengths)
    above = lengths - below
    values = (np.abs(starts - order) + np.abs(np.minimum(ends, order) - order)) / 2 * below
    values = values + (np.abs(ends - order) + np.abs(np.maximum(starts, order) - order)) / 2 * above
    return float(shares @ away), float(shares @ (values / lengths))


def _integral(data: Floats, places: Floats) -> Floats:
    """The integral of the number of records below, from 0 to each place."""
    sums = np.concatenate([[0.0], np.cumsum(data)])
    below = np.searchsorted(data, places)
    return np.asarray(below * places - sums[below])


@dataclass(frozen=True)
class Summary:
    """Averages over data sets and deciles: the exact mean, the mean of the draws, and standard errors.

    `exact_se` is by the choice of data sets, `noise_se` by the draws on them.
    """

    exact: float
    exact_se: float
    mean: float
    noise_se: float

    @property
    def columns(self) -> dict[str, float]:
        """As entries of a frame; `se` judges the mean against the exact value."""
        return {"exact": self.exact, "exact_se": self.exact_se, "mean": self.mean, "se": self.noise_se}

    @classmethod
    def of(cls, exact: list[Floats], drawn: list[Floats]) -> "Summary":
        """From arrays for each data set: of the exact errors by decile, and of the draws of them."""
        sets = np.array([each.mean() for each in exact])
        draws = [each.mean(axis=1) for each in drawn]
        noise = math.sqrt(sum(float(np.var(each, ddof=1)) / len(each) for each in draws)) / len(draws)
        spread = float(np.std(sets, ddof=1)) / math.sqrt(len(sets))
        return cls(float(sets.mean()), spread, float(np.mean([each.mean() for each in draws])), noise)
