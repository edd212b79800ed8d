"""Exact risks of several quantiles on given data, from the continuous laws: sums over cells between records.

`rows` are data sets in [0, 1], `truth` is (rows, orders), and the risk of each row is returned. The laws of
sfumato are the same on a grid; with a step of 2^-20 the two differ by far less than a draw can tell.
"""

import math
from collections.abc import Sequence

import numpy as np

from sfumato.grid import Floats, Ints
from sfumato.lab.published_quantile import Cells, cells
from sfumato.lab.published_several import HIGH, LOW, Chain, shares_between

# Between two records the chances are polynomials or ratios of such: few places integrate them to rounding.
_PLACES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_FEW_PLACES, _FEW_WEIGHTS = np.polynomial.legendre.leggauss(4)
# An integral over distances is summed at so many places.
_DISTANCES = 2001
# Beyond these, chances are so smooth that records serve for places, and then every second of them.
_MANY_RECORDS, _MANY_ORDERS, _THINNED = 1000, 60, 2


def independent_squared(rows: Floats, probs: Sequence[float], rate: float, truth: Floats) -> Floats:
    """The squared risk of one draw for each order, summed.

    >>> independent_squared(np.array([[0.5]]), [0.5], 0.0, np.array([[0.5]])).round(6)
    array([0.083333])
    """
    each = [_law(rows, p, rate).squared(center) for p, center in zip(probs, truth.T, strict=True)]
    return np.asarray(np.sum(each, axis=0))


def independent_summed(rows: Floats, probs: Sequence[float], rate: float, truth: Floats) -> Floats:
    """What the script of [A24] sums on average: all squared errors but the last, and the last estimate."""
    last = _law(rows, probs[-1], rate)
    estimate = (last.masses * (last.edges[:, 1:] + last.edges[:, :-1]) / 2).sum(axis=1)
    if len(probs) == 1:
        return np.asarray(estimate)
    return np.asarray(estimate + independent_squared(rows, probs[:-1], rate, truth[:, :-1]))


def independent_largest(rows: Floats, probs: Sequence[float], rate: float) -> Floats:
    """The mean of the largest of independent draws: the integral of one minus the product of their chances.

    >>> independent_largest(np.array([[0.5]]), [0.25, 0.5, 0.75], 0.0).round(6)
    array([0.75])
    """
    reached = np.stack([_reached(_law(rows, p, rate).masses) for p in probs], axis=1)
    edges = _law(rows, probs[0], rate).edges
    inside = (_PLACES + 1) / 2
    total = np.zeros(len(rows))
    for cell in range(edges.shape[1] - 1):
        low, high = reached[:, :, cell, None], reached[:, :, cell + 1, None]
        below = np.prod(low + (high - low) * inside, axis=1)
        total += (edges[:, cell + 1] - edges[:, cell]) * (below @ _WEIGHTS) / 2
    return HIGH - total


def independent_sup(rows: Floats, probs: Sequence[float], rate: float, truth: Floats) -> Floats:
    """The mean of the largest error of independent draws that are not sorted.

    >>> independent_sup(np.array([[0.5]]), [0.5], 0.0, np.array([[0.5]])).round(6)
    array([0.25])
    """
    reach = np.linspace(0, HIGH - LOW, _DISTANCES)
    within = np.ones((len(rows), _DISTANCES))
    for p, center in zip(probs, truth.T, strict=True):
        law = _law(rows, p, rate)
        within *= law.below(center[:, None] + reach) - law.below(center[:, None] - reach)
    return np.asarray(np.trapezoid(1 - within, reach, axis=1))


def sorted_squared(rows: Floats, probs: Sequence[float], rate: float, truth: Floats) -> Floats:
    """The squared risk of independent draws that are sorted before they are used.

    Sorting keeps the sum of squares, and the mean of the k-th smallest is the integral of the chance that
    fewer than k draws are below.

    >>> sorted_squared(np.array([[0.5]]), [0.25, 0.75], 0.0, np.array([[1 / 3, 2 / 3]])).round(6)
    array([0.111111])
    """
    squares = independent_squared(rows, probs, rate, np.zeros_like(truth))
    means = np.array([_ordered_means(row[None], probs, rate) for row in rows])
    return np.asarray(squares - 2 * (truth * means).sum(axis=1) + (truth**2).sum(axis=1))


def flat_squared(truth: Floats) -> Floats:
    """The squared risk of sorted uniform numbers: their means and variances are known.

    >>> flat_squared(np.array([[0.5]])).round(6)
    array([0.083333])
    """
    count = truth.shape[1]
    means = np.arange(1, count + 1) / (count + 1)
    return np.asarray(((means - truth) ** 2 + means * (1 - means) / (count + 2)).sum(axis=1))


def joint_squared(rows: Floats, probs: Sequence[float], rate: float, truth: Floats) -> Floats:
    """The squared risk of a joint draw, from the chances of every run of orders in every cell.

    >>> one = np.array([[0.25, 0.5]])
    >>> alone = independent_squared(one, [0.5], 2.0, np.array([[0.5]]))
    >>> bool(np.isclose(joint_squared(one, [0.5], 1.0, np.array([[0.5]])), alone).all())
    True
    """
    shares = shares_between(probs)
    return np.array(
        [
            _chain_squared(Chain(np.sort(row), shares, rate), center)
            for row, center in zip(rows, truth, strict=True)
        ]
    )


def quartiles_recursive_squared(rows: Floats, root_rate: float, branch_rate: float, truth: Floats) -> Floats:
    """The squared risk of quartiles by recursion: the median, then each half on its own interval."""
    return np.array(
        [
            _recursive_squared(np.sort(row), root_rate, branch_rate, center)
            for row, center in zip(rows, truth, strict=True)
        ]
    )


def _ordered_means(row: Floats, probs: Sequence[float], rate: float) -> Floats:
    """The mean of the smallest, the second smallest and so on of independent draws on one row."""
    edges = _law(row, probs[0], rate).edges[0]
    if row.shape[1] <= _MANY_RECORDS:
        widths = np.diff(edges)[:, None]
        places = (edges[:-1, None] + widths * (_FEW_PLACES + 1) / 2).ravel()
        weights = (widths * _FEW_WEIGHTS / 2).ravel()
    else:
        # Of one order the chance is a line between two records, and of several nearly so.
        places = edges if len(probs) <= _MANY_ORDERS else edges[_thinned(len(edges))]
        weights = np.convolve(np.diff(places), [0.5, 0.5])
    # chances[k]: that k of the draws so far are below a place.
    chances = np.zeros((len(probs) + 1, len(places)))
    chances[0] = 1.0
    for drawn, p in enumerate(probs):
        below = _law(row, p, rate).below(places)[0]
        moved = chances[: drawn + 1] * below
        chances[: drawn + 1] -= moved
        chances[1 : drawn + 2] += moved
    fewer = np.cumsum(chances[:-1], axis=0)
    return np.asarray(LOW + fewer @ weights)


def _thinned(count: int) -> Ints:
    return np.unique(np.append(np.arange(0, count, _THINNED), count - 1))


def _law(rows: Floats, order: float, rate: float) -> Cells:
    return cells(rows, float(order), float(rate), (LOW, HIGH))


def _reached(masses: Floats) -> Floats:
    return np.concatenate([np.zeros((len(masses), 1)), np.cumsum(masses, axis=1)], axis=1)


def _chain_squared(chain: Chain, truth: Floats) -> float:
    """Runs of orders in one cell: forwards to the run, its own weight, and onwards from it."""
    m, cells_count = chain.m, chain.n + 1
    onwards = np.full((m, cells_count), -np.inf)
    onwards[m - 1] = chain.end
    for j in range(m - 2, -1, -1):
        # Order j + 1 is the first of a run of 1 to m - j - 1 orders in its cell.
        runs = [
            (r + 1) * chain.log_width - math.lgamma(r + 2) - chain.skipped(j + 1, r) + onwards[j + 1 + r]
            for r in range(m - j - 1)
        ]
        first = np.logaddexp.reduce(runs, axis=0)
        onwards[j] = np.logaddexp.reduce(chain.step(j + 1) + first[:, None], axis=0)
    total = np.logaddexp.reduce(chain.reached[m - 1] + onwards[m - 1])
    left, width = chain.edges[:-1], np.diff(chain.edges)
    risk = 0.0
    for j in range(m):
        for r in range(j + 1):
            chance = np.exp(chain.ways[j, r] + onwards[j] - total)
            for place in range(r + 1):
                # The place-th smallest of r + 1 uniform numbers.
                mean = (place + 1) / (r + 2)
                variance = mean * (1 - mean) / (r + 3)
                off = left + width * mean - truth[j - r + place]
                risk += float(chance @ (off**2 + width**2 * variance))
    return risk


def _recursive_squared(ordered: Floats, root_rate: float, branch_rate: float, truth: Floats) -> float:
    n = len(ordered)
    root = _law(ordered[None], 0.5, root_rate)
    left, right = root.edges[0, :-1], root.edges[0, 1:]
    # The root's answer at some places of every cell; its cell says how many records go to the left.
    answers = (left[:, None] + (right - left)[:, None] * (_FEW_PLACES + 1) / 2).ravel()
    weights = (root.masses[0][:, None] * _FEW_WEIGHTS / 2).ravel()
    below = np.repeat(np.arange(n + 1), len(_FEW_PLACES))
    risk = (answers - truth[1]) ** 2
    risk += _half_squared(ordered, answers, below, branch_rate, truth[0])
    # The right half is the left half of the mirror image.
    risk += _half_squared(
        HIGH + LOW - ordered[::-1], HIGH + LOW - answers, n - below, branch_rate, HIGH + LOW - truth[2]
    )
    return float(weights @ risk)


def _half_squared(ordered: Floats, upper: Floats, count: Ints, rate: float, center: float) -> Floats:
    """The squared risk of the median of the first `count` records, on the interval up to `upper`."""
    ranks = np.arange(len(ordered) + 1)
    left = np.concatenate([[LOW], ordered])[None, :]
    right = np.where(ranks == count[:, None], upper[:, None], np.concatenate([ordered, [HIGH]]))
    seen = ranks <= count[:, None]
    weights = np.where(seen, np.exp(-rate * np.abs(ranks - count[:, None] / 2)), 0.0)
    mass = (weights * (right - left)).sum(axis=1)
    second = (weights * ((right - center) ** 3 - (left - center) ** 3) / 3).sum(axis=1)
    return np.asarray(second / mass)
