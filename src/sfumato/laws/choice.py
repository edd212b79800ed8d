"""Exact categorical draws, from integer or float64 weights."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import positive, whole
from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits, Integers
from sfumato.laws.coins import exp_bounds
from sfumato.laws.law import Floats, elementwise, smallest_radius
from sfumato.laws.weights import FloatWeights, RunWeights, Weights

# The top of every weight table: products with lengths are Python integers, and the table fits int64.
_TOP = 1 << 62


class Choice:
    """A draw of an index 0, 1, 2, ... with probability exactly proportional to its weight.

    Guarantee:
        `sample` has the law `probability`, a ratio of integers, given uniform bits: float64 weights count
        with the exact value of each float. Proof: docs/proofs/samplers.md.

    Args:
        weights: integers of any size, or float64 numbers; none negative, some positive.

    >>> from sfumato.laws.bits import SystemBits
    >>> law = Choice([1, 2, 1])
    >>> law.probability(1), law.mean, law.sample(SystemBits()) in (0, 1, 2)
    (Fraction(1, 2), 1.0, True)
    >>> Choice(np.array([5e-324, 1e308, 0.0])).probability(2)
    Fraction(0, 1)
    """

    def __init__(self, weights: Sequence[int] | Sequence[float] | NDArray[Any]) -> None:
        self._weights: Weights = _read(weights)

    @classmethod
    def of_runs(
        cls,
        lengths: Sequence[int] | NDArray[Any],
        levels: Sequence[int] | NDArray[Any],
        table: Sequence[int] | NDArray[Any],
    ) -> "Choice":
        """Runs of consecutive points, each point of a run with weight table[level].

        Args:
            lengths: how many points each run has; zero is allowed.
            levels: the level of each run; past the end of the table its last weight holds.
            table: a non-negative integer weight for each level.

        >>> law = Choice.of_runs(lengths=[2, 1], levels=[1, 0], table=[4, 1])
        >>> [law.probability(i) for i in range(3)]
        [Fraction(1, 6), Fraction(1, 6), Fraction(2, 3)]
        """
        choice = cls.__new__(cls)
        choice._weights = RunWeights(_integers("lengths", lengths), _integers("levels", levels), table)
        return choice

    @property
    def points(self) -> int:
        """The number of indices."""
        return self._weights.points

    @property
    def ends(self) -> Integers:
        """One past the last index of each run of equally likely ones, for audits that compare run by run."""
        return self._weights.ends

    def probability(self, outcome: int) -> Fraction:
        """The exact probability of an index; zero outside 0..points-1."""
        if not 0 <= outcome < self.points:
            return Fraction(0)
        return self._weights.weight(outcome) / self._weights.total

    @elementwise
    def logpmf(self, outcome: Floats) -> Floats:
        """The log probability of each index."""
        inside = (outcome >= 0) & (outcome < self.points)
        index = np.where(inside, outcome, 0).astype(np.int64)
        return np.where(inside, self._weights.log_weights(index) - _log(self._weights.total), -np.inf)

    @elementwise
    def cdf(self, outcome: Floats) -> Floats:
        """P(X <= outcome)."""
        index = np.clip(outcome, -1, self.points - 1).astype(np.int64)
        return np.where(outcome >= self.points - 1, 1.0, self._weights.mass_before(index + 1))

    @elementwise
    def sf(self, outcome: Floats) -> Floats:
        """P(X > outcome)."""
        index = np.clip(outcome, -1, self.points - 1).astype(np.int64)
        return np.where(outcome < 0, 1.0, self._weights.mass_from(index + 1))

    @property
    def mean(self) -> float:
        """The mean index."""
        return self._moments[0]

    @property
    def variance(self) -> float:
        """The variance of the index."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[float, float]:
        middles, lengths, masses = self._weights.pieces()
        mean = float((masses * middles).sum())
        # A run of m equal points has variance (m^2 - 1)/12 around its middle.
        return mean, float((masses * ((middles - mean) ** 2 + (lengths * lengths - 1) / 12)).sum())

    @cached_property
    def _median(self) -> int:
        low, high = 0, self.points - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.cdf(middle) >= 0.5 else (middle + 1, high)
        return low

    def radius(self, confidence: float) -> int:
        """The smallest t such that the index is within t of the median with this confidence."""
        centre = self._median
        return smallest_radius(lambda t: self.cdf(centre - t - 1) + self.sf(centre + t), confidence)

    def sample(self, bits: Bits, size: int | None = None) -> int | Integers:
        """One index as an int, or `size` independent ones as an int64 array."""
        drawn = self._weights.draw(bits, 1 if size is None else size)
        return int(drawn[0]) if size is None else drawn


def _log(value: Fraction) -> float:
    # Logs of integers of any size, where a float would overflow.
    return math.log(value.numerator) - math.log(value.denominator)


def _read(weights: Any) -> Weights:
    array = _array(weights)
    if array.ndim == 1 and array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        return FloatWeights(array.astype(np.float64))
    exact = _integers("weights", weights)
    levels, table = np.unique(exact, return_inverse=True)[::-1]
    return RunWeights(np.ones(len(exact), dtype=np.int64), levels.ravel(), table)


def _array(values: Any) -> NDArray[Any]:
    array = np.asarray(values)
    # NumPy reads a list that has an integer from 2^63 on beside a smaller one as floats.
    mixed = array.dtype.kind == "f" and not isinstance(values, np.ndarray)
    if mixed and all(isinstance(value, int | np.integer) for value in values):
        return np.array(values, dtype=object)
    return array


def _integers(name: str, values: Any) -> NDArray[Any]:
    array = _array(values)
    whole_numbers = array.dtype.kind in "iu" or (
        array.dtype.kind == "O" and all(isinstance(v, int | np.integer) for v in array.flat)
    )
    if array.ndim != 1 or not array.size or not whole_numbers or array.min() < 0:
        raise InvalidParameter(f"{name} must be a sequence of non-negative numbers, not empty")
    return array


@lru_cache(maxsize=16)
def weight_table(c: Fraction, steps: int | None = None) -> Integers:
    """Integer weights that fall by at most e^-c a level: T[0] = 2^62, T[k+1] = ceil(q T[k]).

    Guarantee:
        T[k] <= e^c T[k+1], exactly, because q = ceil(2^64 e^-c) / 2^64 is at least e^-c. The table does not
        increase and ends where it becomes constant and positive; its last weight holds for all later levels
        (the clamp lemma), so an exponential mechanism with these weights is private with no slack.
        Proof: docs/proofs/samplers.md.

    Args:
        c: the fall in the log weight of one level, positive.
        steps: the last level that can occur, to keep the table short; None for the whole table.

    >>> table = weight_table(Fraction(1, 2))
    >>> int(table[0]) == 2**62, int(table[-1]), len(table)
    (True, 2, 87)
    """
    q = exp_bounds(positive("c", c), 64)[1]
    last = whole("steps", steps, least=0, most=2**32) if steps is not None else 2**32
    table = [_TOP]
    while len(table) <= last:
        following = -(-q * table[-1] >> 64)
        if following == table[-1]:
            break
        table.append(following)
    weights = np.array(table, dtype=np.int64)
    weights.flags.writeable = False
    return weights
