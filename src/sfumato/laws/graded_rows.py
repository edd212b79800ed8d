"""Many laws of runs of equally likely points at once: one law a row, drawn as `Graded` draws one."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits, Integers, Words
from sfumato.laws.graded import Graded
from sfumato.laws.grades import Grades
from sfumato.laws.law import Floats
from sfumato.laws.weights import Groups

_WORD = 2.0**-64
# Sums are kept for stretches of so many runs, and looked into where a draw falls.
STRETCH = 32
# Looking into a stretch for a draw costs as much as adding up so many stretches: with more draws all are.
WORTH = 6


class GradedRows:
    """The laws of indices into runs of points, one law a row; each point weighs what its level's grade does.

    Guarantee:
        Every draw has exactly the law of `Graded` on its row, given uniform bits, and draws are independent.
        Float sums only choose the run when they are far enough from a tie; else integers continue with the
        same bits. Proof: docs/proofs/many-rows.md.

    Args:
        lengths: (rows, runs), how many points each run has; runs may be empty, but not all of a row.
        levels: (rows, runs), or (1, runs) for levels that all rows share.
        grades: the weights of the levels.

    Memory is a few times that of the lengths: whoever has many rows gives them in blocks.

    >>> from fractions import Fraction
    >>> from sfumato.laws.bits import SystemBits
    >>> laws = GradedRows(np.array([[3, 1], [0, 2]]), np.array([[0, 10**9]]), Grades(Fraction(1), 1))
    >>> laws.points.tolist(), laws.sample(SystemBits(), 5).shape, laws.shares.round(9).tolist()
    ([4, 2], (2, 5), [[1.0, 0.0], [0.0, 1.0]])
    """

    def __init__(self, lengths: Integers, levels: Integers, grades: Grades) -> None:
        if lengths.ndim != 2 or levels.shape not in (lengths.shape, (1, lengths.shape[1])):
            raise InvalidParameter("lengths and levels must be arrays of rows with as many runs each")
        self.lengths = lengths
        self.levels = levels
        self._grades = grades
        if not lengths.any(axis=1).all():
            raise InvalidParameter("lengths must leave a point in every row")

    def regraded(self, levels: Integers, grades: Grades) -> "GradedRows":
        """The laws with the same lengths and other weights; what is known of the lengths is kept."""
        other = GradedRows.__new__(type(self))
        other.lengths, other.levels, other._grades = self.lengths, levels, grades
        other.__dict__["_stretches"] = self._stretches
        return other

    @property
    def points(self) -> Integers:
        """The number of points of each row."""
        return np.asarray(self.lengths.sum(axis=1))

    @property
    def shares(self) -> Floats:
        """The probability of each run, to a relative error of 1e-9."""
        masses = self.lengths * self._grades.floats(self.levels)
        return np.asarray(masses / masses.sum(axis=1, keepdims=True))

    def law(self, row: int) -> Graded:
        """The law of one row."""
        return Graded(self.lengths[row], self._levels_of(row), self._grades)

    def _levels_of(self, row: int) -> Integers:
        return np.asarray(self.levels[row if len(self.levels) > 1 else 0])

    def sample(self, bits: Bits, size: int) -> Integers:
        """Points: `size` independent ones for each row, as (rows, size)."""
        runs, places = self.draw(bits, size)
        begins = np.cumsum(self.lengths, axis=1) - self.lengths
        return np.asarray(np.take_along_axis(begins, runs, axis=1) + places)

    def draw(self, bits: Bits, size: int) -> tuple[Integers, Integers]:
        """The same as runs and places in them, both (rows, size)."""
        rows = len(self.lengths)
        words = bits.words(rows * size).reshape(rows, size)
        runs, undecided = self._runs(words)
        for row, place in np.argwhere(undecided).tolist():
            runs[row, place] = self._settled(row, int(words[row, place]), bits)
        lengths = np.take_along_axis(self.lengths, runs, axis=1)
        return runs, bits.below_each(lengths.ravel(), rows * size).reshape(rows, size)

    def _settled(self, row: int, word: int, bits: Bits) -> int:
        """The run of a uniform real that starts with this word, decided by integers."""
        kept = np.flatnonzero(self.lengths[row])
        weights = self._grades.weights(self._levels_of(row)[kept])
        lengths = self.lengths[row, kept].tolist()
        masses = [weight * length for weight, length in zip(weights, lengths, strict=True)]
        return int(kept[Groups(masses).settle(word, bits)])

    def _runs(self, words: Words) -> tuple[Integers, NDArray[np.bool_]]:
        """The runs of uniform reals whose first 64 bits are given, and where these are too near an edge."""
        runs = self._stretches.shape[1] * STRETCH
        total = self._sums[:, -1:]
        # A sum of n positive floats errs by at most n 2^-53 of itself, in any order; there are two of them,
        # of no more than the runs and two stretches. The rest is for the weights, the lengths and the word.
        slack = total * ((runs + 2 * STRETCH + 16) * 2.0**-52)
        spots = words * _WORD * total
        wide = words.shape[1] * STRETCH * WORTH >= runs
        found, below, above = self._among_all(spots) if wide else self._within_stretches(spots)
        return found, (above - spots < slack) | ((spots - below < slack) & (found > 0))

    def _among_all(self, spots: Floats) -> tuple[Integers, Floats, Floats]:
        """The runs of spots, and the sums on both sides of them, from the sums over all runs."""
        edges = self._edges
        found = _at_or_below(edges, spots)
        above = np.take_along_axis(edges, np.minimum(found, edges.shape[1] - 1), axis=1)
        return found, np.take_along_axis(edges, np.maximum(found - 1, 0), axis=1), above

    def _within_stretches(self, spots: Floats) -> tuple[Integers, Floats, Floats]:
        """The same from the sums over stretches, and those over the runs of one stretch for each spot."""
        sums, row = self._sums, np.arange(len(spots))[:, None]
        stretch = np.minimum(_at_or_below(sums, spots), sums.shape[1] - 1)
        base = np.where(stretch > 0, sums[row, stretch - 1], 0.0)
        weights = self._weights[row if len(self._weights) > 1 else 0, stretch]
        edges = np.cumsum(self._stretches[row, stretch] * weights, axis=2)
        edges += base[..., None]
        inner = (edges <= spots[..., None]).sum(axis=2)
        # A spot behind the last run of its stretch, by rounding, is too near its edge.
        above = np.take_along_axis(edges, np.minimum(inner, STRETCH - 1)[..., None], axis=2)[..., 0]
        below = np.take_along_axis(edges, np.maximum(inner - 1, 0)[..., None], axis=2)[..., 0]
        return stretch * STRETCH + inner, np.where(inner > 0, below, base), above

    @cached_property
    def _stretches(self) -> Floats:
        """The lengths as floats, (rows, stretches, STRETCH); empty runs fill the last stretch."""
        rows, count = self.lengths.shape
        return _filled(self.lengths, rows, count)

    @cached_property
    def _weights(self) -> Floats:
        rows, count = self.levels.shape
        return _filled(self._grades.floats(self.levels), rows, count)

    @cached_property
    def _sums(self) -> Floats:
        """The mass up to the end of each stretch."""
        weights = self._weights[0] if len(self._weights) == 1 else self._weights
        form = "rck,ck->rc" if weights.ndim == 2 else "rck,rck->rc"
        return np.cumsum(np.einsum(form, self._stretches, weights), axis=1)

    @cached_property
    def _edges(self) -> Floats:
        """The mass up to the end of each run."""
        masses = self._stretches * self._weights
        return np.cumsum(masses.reshape(len(masses), -1), axis=1)


def _filled(given: NDArray[Any], rows: int, count: int) -> Floats:
    filled = np.zeros((rows, -(-count // STRETCH) * STRETCH))
    filled[:, :count] = given
    return filled.reshape(rows, -1, STRETCH)


def _at_or_below(sums: Floats, spots: Floats) -> Integers:
    """How many sums of its row are at or below each spot: a binary search in all rows in step."""
    rows, count = sums.shape
    flat, starts = sums.ravel(), np.arange(rows)[:, None] * count
    found = np.zeros(spots.shape, dtype=np.int64)
    half = 1 << (count.bit_length() - 1)
    while half:
        ahead = found + half
        fits = (ahead <= count) & (flat[starts + np.minimum(ahead, count) - 1] <= spots)
        found += half * fits
        half //= 2
    return found
