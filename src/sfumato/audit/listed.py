"""Two laws on a finite list of cells: the largest log ratio, the hockey stick, the Rényi divergence.

A cell has a log mass under either law; minus infinity is allowed. All figures are those of the two lists, up
to the rounding of float64: what the lists have to do with the laws is said where they are made.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.grid import Floats

# Orders of the Rényi divergence, less one: dense where the supremum of divergence over order can lie.
_GRID: Floats = np.concatenate([[1e-6], np.geomspace(1e-4, 1e3, 120)])
# Entries of one table of orders by cells.
_TABLE = 1 << 20
# Below this exponents are so small that the sum is taken of what it differs from 1 by.
_NEAR_ONE = 0.1
# Log ratios that agree in so many decimals are the same.
_SAME_RATIO = 12


class Pair(NamedTuple):
    """The log masses of two laws on the same cells."""

    left: Floats
    right: Floats

    @property
    def swapped(self) -> "Pair":
        """The two laws, the other way round."""
        return Pair(self.right, self.left)

    @property
    def losses(self) -> Floats:
        """The log ratio of each cell; 0 where neither law puts anything."""
        with np.errstate(invalid="ignore"):
            ratio = self.left - self.right
        return np.where(np.isnan(ratio), 0.0, ratio)


class Ratios(NamedTuple):
    """The suprema of log P/Q and of log Q/P over all outcomes."""

    up: float
    down: float

    @property
    def worse(self) -> float:
        """The larger of the two: the pure privacy loss."""
        return max(self.up, self.down, 0.0)

    @property
    def range(self) -> float:
        """The length of the interval that holds all log ratios."""
        return max(self.up + self.down, 0.0)


def log_ratios(pair: Pair) -> Ratios:
    """The largest log ratio in each direction over the cells that are possible."""
    possible = np.isfinite(pair.left) | np.isfinite(pair.right)
    losses = pair.losses[possible]
    if not losses.size:
        return Ratios(0.0, 0.0)
    return Ratios(float(losses.max()), float(-losses.min()))


def hockey_stick(left: Floats, right: Floats, epsilon: float) -> float:
    """The largest P(A) - exp(epsilon) Q(A) over all sets A of cells, in the worse direction."""
    pair = Pair(left, right)
    return max(one_sided(pair, epsilon), one_sided(pair.swapped, epsilon))


def one_sided(pair: Pair, epsilon: float) -> float:
    """The largest P(A) - exp(epsilon) Q(A), of the left law over the right one."""
    # Cells of a ratio below exp(epsilon) add nothing; the difference keeps its accuracy near a tie.
    parts = -np.expm1(np.minimum(epsilon - pair.losses, 0.0))
    return float((np.exp(pair.left) * parts).sum())


def sticks(pair: Pair, epsilons: Floats) -> Floats:
    """The largest P(A) - exp(epsilon) Q(A) at many values of epsilon at once."""
    losses = pair.losses
    order = np.argsort(-losses, kind="stable")
    ladder = -losses[order]
    p, q = (np.concatenate([[0.0], np.cumsum(np.exp(logs[order]))]) for logs in pair)
    above = np.searchsorted(ladder, -epsilons, side="left")
    with np.errstate(over="ignore", invalid="ignore"):
        taken = np.exp(epsilons) * q[above]
    # Infinity times nothing is nothing: sets without any mass of Q.
    return np.asarray(np.maximum(p[above] - np.where(q[above] > 0, taken, 0.0), 0.0))


def smallest_epsilon(pair: Pair, delta: float) -> float:
    """The smallest epsilon, from 0 on, at which the left law's hockey stick is at most delta."""
    losses = pair.losses
    order = np.argsort(-losses, kind="stable")
    p, q = (np.cumsum(np.exp(logs[order])) for logs in pair)
    ladder = losses[order]
    with np.errstate(over="ignore", invalid="ignore"):
        # The hockey stick where epsilon is the loss of the next cell, which then adds nothing.
        steps = p[:-1] - np.where(q[:-1] > 0, np.exp(ladder[1:]) * q[:-1], 0.0)
    place = int(np.searchsorted(steps, delta, side="right"))
    if p[place] <= delta:
        return 0.0
    if q[place] <= 0:
        return math.inf
    return max(math.log((p[place] - delta) / q[place]), 0.0)


def renyi(pair: Pair, order: float) -> float:
    """The Rényi divergence of the left law from the right one, of an order above 1."""
    return float(_moments(pair, np.array([order - 1.0]))[0]) / (order - 1)


def concentrated(left: Floats, right: Floats, *, thorough: bool = True) -> float:
    """The supremum of the Rényi divergence over its order, in the worse direction, found by a search."""
    pair = Pair(left, right)
    if math.isinf(log_ratios(pair).worse):
        return math.inf
    return max(_sup(pair, thorough), _sup(pair.swapped, thorough))


def concentrated_above(pair: Pair) -> float:
    """A number that the Rényi divergence over its order never passes, of the left law from the right one.

    With D the divergence of order 1 + s, the function s D is convex in s, so that between two orders it lies
    under its chord; D increases, and is at most the largest log ratio.
    """
    ratios = log_ratios(pair)
    if math.isinf(ratios.up):
        return math.inf
    values = _moments(pair, _GRID)
    first = values[0] / _GRID[0]
    last = ratios.up / (1 + _GRID[-1])
    slope = np.diff(values) / np.diff(_GRID)
    start = values[:-1] - slope * _GRID[:-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        # Where (start + slope s) / (s + s^2) is largest; it rises before and falls after.
        top = (-start + np.sqrt(np.maximum(start * start - slope * start, 0.0))) / slope
    top = np.clip(np.where(np.isfinite(top), top, _GRID[:-1]), _GRID[:-1], _GRID[1:])
    return float(max(first, last, ((start + slope * top) / (top + top * top)).max()))


def _sup(pair: Pair, thorough: bool) -> float:
    kept = np.isfinite(pair.left)
    with np.errstate(under="ignore"):
        mean = float((np.exp(pair.left[kept]) * pair.losses[kept]).sum())
    orders, finer = (_GRID, 17) if thorough else (_GRID[::6], 7)
    worst = mean
    for _ in range(3 if thorough else 2):
        values = _moments(pair, orders) / (orders * (1 + orders))
        best = int(values.argmax())
        worst = max(worst, float(values[best]))
        orders = np.geomspace(orders[max(best - 1, 0)], orders[min(best + 1, len(orders) - 1)], finer)
    return worst


def _moments(pair: Pair, orders: Floats) -> Floats:
    """log E exp(s L) for each s, of the loss L under the left law: s times the divergence of order 1 + s."""
    kept = np.isfinite(pair.left)
    logs, losses = pair.left[kept], pair.losses[kept]
    if not losses.size or np.isposinf(losses.max()):
        return np.full(len(orders), math.inf if losses.size else 0.0)
    masses, far = np.exp(logs), float(np.abs(losses).max())
    found = np.empty(len(orders))
    step = max(_TABLE // len(losses), 1)
    for begin in range(0, len(orders), step):
        some = orders[begin : begin + step]
        near = some * far < _NEAR_ONE
        values = np.empty(len(some))
        # Near order 1 the sum is 1 and little more, which would be lost.
        values[near] = np.log1p(np.expm1(np.multiply.outer(some[near], losses)) @ masses)
        terms = logs + np.multiply.outer(some[~near], losses)
        largest = terms.max(axis=1, keepdims=True)
        with np.errstate(under="ignore"):
            values[~near] = largest[:, 0] + np.log(np.exp(terms - largest).sum(axis=1))
        found[begin : begin + step] = values
    return found


def split(p: Floats, q: Floats, least: Floats, most: Floats) -> Pair:
    """Cells taken apart: masses p and q whose log ratios lie between `least` and `most`, all put at these
    two ends.

    Both laws keep their masses, and merging the two ends again gives back the cell. So whatever lies in the
    cell is a post-processing of the ends, and at most as far apart.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        whole = (p <= 0) | (q <= 0) | (most - least < 1e-15)
        low, high = np.exp(-most), np.exp(-least)
        second = np.where(np.isinf(high), 0.0, (q - p * low) / (high - low))
        second = np.clip(np.where(np.isfinite(second), second, 0.0), 0.0, p)
        second = np.where(whole, 0.0, second)
        first = p - second
        q_first = np.where(whole, q, first * low)
        q_second = np.where(whole, 0.0, np.maximum(q - q_first, 0.0))
    return Pair(_log(np.concatenate([first, second])), _log(np.concatenate([q_first, q_second])))


def product(one: Pair, other: Pair) -> Pair:
    """Two independent parts as one list of cells."""
    return Pair(*(np.add.outer(a, b).ravel() for a, b in zip(one, other, strict=True)))


def gathered(pair: Pair) -> Pair:
    """One cell for all that have the same log ratio, up to rounding: no divergence changes by it."""
    kept = np.isfinite(pair.left) | np.isfinite(pair.right)
    ratios = np.round(pair.losses[kept], _SAME_RATIO)
    order = np.argsort(ratios, kind="stable")
    ratios = ratios[order]
    starts = np.flatnonzero(np.append(True, ratios[1:] != ratios[:-1])) if ratios.size else order
    return Pair(*(np.logaddexp.reduceat(side[kept][order], starts) for side in pair))


class Ladder(NamedTuple):
    """Cells whose log ratios are about step * (first + 0, 1, 2, ...), and what is certain for either law."""

    first: int
    step: float
    p: Floats
    q: Floats
    certain: tuple[float, float]

    @property
    def pair(self) -> Pair:
        """The same as a list of cells."""
        p, q = np.append(self.p, [self.certain[0], 0.0]), np.append(self.q, [0.0, self.certain[1]])
        return Pair(_log(p), _log(q))


def ladder(pair: Pair, step: float, *, above: bool) -> Ladder:
    """A list on equal steps of the log ratio: cells of a step merged if not `above`, else put at its two
    ends.

    Merging never increases a divergence; putting cells at two ends never decreases one.
    """
    losses = pair.losses
    with np.errstate(under="ignore"):
        masses = [np.exp(logs) for logs in pair]
    finite = np.isfinite(losses) & (masses[0] > 0) & (masses[1] > 0)
    certain = tuple(float(mass[~finite].sum()) for mass in masses)
    p, q = (mass[finite] for mass in masses)
    inside = losses[finite] / step
    place: NDArray[np.int64] = np.floor(inside).astype(np.int64)
    first = int(place.min(initial=0))
    count = int(place.max(initial=0)) - first + 2
    if above:
        ends = split(
            p, q, np.minimum(place, inside) * step, np.asarray((place + 1.0) * step, dtype=np.float64)
        )
        with np.errstate(under="ignore"):
            p, q = np.exp(ends.left), np.exp(ends.right)
        # The first half lies at the larger ratio.
        place = np.concatenate([place + 1, place])
    p, q = (np.bincount(place - first, mass, count).astype(np.float64) for mass in (p, q))
    return Ladder(first, step, p, q, (certain[0], certain[1]))


def convolved(one: Ladder, other: Ladder) -> Ladder:
    """Two independent parts on the same steps as one: log ratios add up."""
    p, q = np.convolve(one.p, other.p), np.convolve(one.q, other.q)
    sums = [(float(getattr(one, side).sum()), float(getattr(other, side).sum())) for side in ("p", "q")]
    certain = [
        one.certain[side] * (whole[1] + other.certain[side]) + whole[0] * other.certain[side]
        for side, whole in enumerate(sums)
    ]
    return Ladder(one.first + other.first, one.step, p, q, (certain[0], certain[1]))


def span(pair: Pair) -> float:
    """The length of the interval that holds the finite log ratios."""
    losses = pair.losses[np.isfinite(pair.left) & np.isfinite(pair.right)]
    return float(losses.max() - losses.min()) if losses.size else 0.0


def worst_cell(pair: Pair) -> int:
    """The cell with the largest log ratio in size; of several, the most likely one."""
    possible = np.isfinite(pair.left) | np.isfinite(pair.right)
    sizes = np.where(possible, np.abs(pair.losses), -1.0)
    largest = sizes.max()
    tied = sizes >= (largest * (1 - 1e-12) if np.isfinite(largest) else largest)
    return int(np.where(tied, np.maximum(pair.left, pair.right), -np.inf).argmax())


def worse(pair: Pair, divergence: Callable[[Pair], float]) -> float:
    """A divergence in the worse direction."""
    return max(divergence(pair), divergence(pair.swapped))


def _log(masses: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(masses)
