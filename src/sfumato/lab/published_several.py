"""Several quantiles as the script behind figures 11 to 17 of [A24] draws them, with its two odd risks.

All of it is in floating point and continuous, and costs more than it says: it is here to be compared with.
The functions take rows of data in [0, 1], a number of draws for each row and a generator, and return an array
of the shape (rows, draws, orders).
"""

import math
from collections.abc import Sequence

import numpy as np

from sfumato.grid import Floats, Ints

LOW, HIGH = 0.0, 1.0


def quantiles(rows: Floats, probs: Sequence[float]) -> Floats:
    """The quantiles of each row by the script's rule: position p (n + 1), interpolated; (rows, orders)."""
    found: Floats = np.quantile(rows, np.asarray(probs, dtype=float), axis=-1, method="weibull")
    return np.moveaxis(found, 0, -1)


def independent(
    rows: Floats, size: int, rng: np.random.Generator, *, epsilon: float, probs: Sequence[float]
) -> Floats:
    """IndExp of the script: weight exp(-ε |i - p n|) for each order, so that m orders have m budgets.

    >>> rng = np.random.default_rng(0)
    >>> independent(rng.random((2, 100)), 5, rng, epsilon=1, probs=[0.25, 0.75]).shape
    (2, 5, 2)
    """
    ordered = np.repeat(np.sort(rows, axis=1), size, axis=0)
    all_of_them = _Part.whole(ordered)
    drawn = [_draw(ordered, all_of_them, float(p), epsilon, rng)[0] for p in probs]
    return np.stack(drawn, axis=1).reshape(len(rows), size, -1)


def recursive(
    rows: Floats,
    size: int,
    rng: np.random.Generator,
    *,
    epsilon: float,
    probs: Sequence[float],
    own_interval: bool = False,
) -> Floats:
    """RecExp of the script: rate ε / (log2 m + 1) at every node; right branches search from the lower bound.

    With `own_interval` a right branch searches above the answer that it branched from, as it should.

    >>> rng = np.random.default_rng(0)
    >>> recursive(rng.random((2, 100)), 5, rng, epsilon=1, probs=[0.25, 0.5, 0.75]).shape
    (2, 5, 3)
    """
    ordered = np.repeat(np.sort(rows, axis=1), size, axis=0)
    orders, rate = [float(p) for p in probs], epsilon / (math.log2(len(probs)) + 1)
    answers = np.empty((len(ordered), len(orders)))
    open_parts = [(0, len(orders), 0.0, 1.0, _Part.whole(ordered))]
    while open_parts:
        begin, end, below, above, part = open_parts.pop()
        if begin == end:
            continue
        middle = (begin + end) // 2
        order = orders[middle]
        value, cell = _draw(ordered, part, (order - below) / (above - below), rate, rng)
        answers[:, middle] = value
        right_low = value if own_interval else part.low
        open_parts.append((begin, middle, below, order, _Part(part.low, value, part.after, cell)))
        open_parts.append((middle + 1, end, order, above, _Part(right_low, part.high, cell, part.upto)))
    return answers.reshape(len(rows), size, -1)


def joint(
    rows: Floats, size: int, rng: np.random.Generator, *, epsilon: float, probs: Sequence[float]
) -> Floats:
    """JointExp calibrated for records that are added or removed: all orders in one draw.

    A tuple of cells i_1 <= ... <= i_m weighs exp(-c sum_j |i_j - i_(j-1) - t_j|) times w^r / r! for each cell
    of width w that holds r of the orders, where c = ε / (4 (1 - min_j t_j / n)).

    >>> rng = np.random.default_rng(0)
    >>> joint(rng.random((2, 100)), 5, rng, epsilon=1, probs=[0.25, 0.5, 0.75]).shape
    (2, 5, 3)
    """
    shares = shares_between(probs)
    c = joint_rate(epsilon, probs)
    return np.stack([Chain(np.sort(row), shares, c).draw(size, rng) for row in rows])


def shares_between(probs: Sequence[float]) -> Floats:
    """The shares of the records before, between and after the orders."""
    return np.diff([0.0, *(float(p) for p in probs), 1.0])


def joint_rate(epsilon: float, probs: Sequence[float]) -> float:
    """The rate of JointExp for records that are added or removed."""
    return float(epsilon / (4 * (1 - shares_between(probs).min())))


def squared_as_summed(estimates: Floats, truth: Floats) -> Floats:
    """What the script's loop sums: the squares of all errors but the last, and the last estimate as it is.

    >>> squared_as_summed(np.array([0.5, 0.75]), np.array([0.25, 0.75]))
    array(0.8125)
    """
    found: Floats = ((estimates - truth)[..., :-1] ** 2).sum(axis=-1) + estimates[..., -1]
    return np.asarray(found)


def largest_estimate(estimates: Floats) -> Floats:
    """What the script plots for a sup norm: the largest estimate, whatever the truth.

    >>> largest_estimate(np.array([0.5, 0.75]))
    array(0.75)
    """
    return np.asarray(estimates.max(axis=-1))


class _Part:
    """For each draw the interval that a node searches, and the ranks of the records that it sees."""

    def __init__(self, low: Floats, high: Floats, after: Ints, upto: Ints) -> None:
        self.low, self.high, self.after, self.upto = low, high, after, upto

    @classmethod
    def whole(cls, ordered: Floats) -> "_Part":
        draws, n = ordered.shape
        ends = np.full(draws, LOW), np.full(draws, HIGH)
        return cls(*ends, np.zeros(draws, dtype=np.int64), np.full(draws, n, dtype=np.int64))


def _draw(
    ordered: Floats, part: _Part, order: float, rate: float, rng: np.random.Generator
) -> tuple[Floats, Ints]:
    """One value for each row of sorted records, and how many records are below it."""
    draws, n = ordered.shape
    ranks = np.arange(n + 1)
    after, upto = part.after[:, None], part.upto[:, None]
    padding = np.zeros((draws, 1))
    left = np.where(ranks == after, part.low[:, None], np.hstack([padding, ordered]))
    right = np.where(ranks == upto, part.high[:, None], np.hstack([ordered, padding]))
    width = right - left
    seen = (ranks >= after) & (ranks <= upto) & (width > 0)
    score = -rate * np.abs(ranks - after - order * (upto - after))
    score += np.log(width, where=seen, out=np.full(width.shape, -np.inf))
    cell = (score + rng.gumbel(size=score.shape)).argmax(axis=1)
    at = np.arange(draws), cell
    return left[at] + rng.random(draws) * width[at], cell


class Chain:
    """JointExp on one sorted row: sums of log weights over cells, from the lower end to each order."""

    def __init__(self, ordered: Floats, shares: Floats, c: float) -> None:
        self.n, self.m, self.c = len(ordered), len(shares) - 1, c
        self.targets = shares * self.n
        self.edges = np.concatenate([[LOW], ordered, [HIGH]])
        with np.errstate(divide="ignore"):
            self.log_width = np.log(np.diff(self.edges))
        self.ranks = np.arange(self.n + 1)
        self._ahead = self.ranks[:, None] - self.ranks[None, :]
        # From the last order to the upper end.
        self.end = -c * np.abs(self.n - self.ranks - self.targets[self.m])
        # starts[j]: order j is the first in its cell; ways[j, r]: it is the last of r + 1 in that cell.
        starts = np.full((self.m, self.n + 1), -np.inf)
        self.ways = np.full((self.m, self.m, self.n + 1), -np.inf)
        self.reached = np.full((self.m, self.n + 1), -np.inf)
        for j in range(self.m):
            if j == 0:
                starts[j] = self.log_width - c * np.abs(self.ranks - self.targets[0])
            else:
                starts[j] = self.log_width + np.logaddexp.reduce(self.step(j) + self.reached[j - 1], axis=1)
            for r in range(j + 1):
                repeats = r * self.log_width if r else 0.0
                self.ways[j, r] = starts[j - r] + repeats - self.skipped(j - r, r) - math.lgamma(r + 2)
            self.reached[j] = np.logaddexp.reduce(self.ways[j, : j + 1], axis=0)

    def step(self, j: int) -> Floats:
        """The log weight of order j in cell i, by rows, if the order before it is in a cell i' below."""
        ahead = self._ahead
        found: Floats = np.where(ahead > 0, -self.c * np.abs(ahead - self.targets[j]), -np.inf)
        return found

    def skipped(self, j: int, r: int) -> float:
        """What it costs that r orders after order j are in its cell, with no record between them."""
        return self.c * float(self.targets[j + 1 : j + r + 1].sum())

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """Choices backwards, from the last order to the first: (draws, orders)."""
        drawn = np.empty((size, self.m))
        last, above = np.full(size, self.m - 1), np.full(size, self.n)
        for j in range(self.m - 1, -1, -1):
            here = np.flatnonzero(last == j)
            onwards = self.end if j == self.m - 1 else self.step(j + 1)[above[here]]
            score = np.broadcast_to(self.reached[j] + onwards, (len(here), self.n + 1))
            cell = (score + rng.gumbel(size=score.shape)).argmax(axis=1)
            runs = self.ways[j, : j + 1, cell]
            run = (runs + rng.gumbel(size=runs.shape)).argmax(axis=1)
            for draw, i, r in zip(here, cell, run, strict=True):
                places = np.sort(rng.random(r + 1)) * (self.edges[i + 1] - self.edges[i])
                drawn[draw, j - r : j + 1] = self.edges[i] + places
            above[here], last[here] = cell, j - run - 1
        return drawn
