"""A point drawn from runs of equally likely points, each run with an integer weight by its level."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.laws.bits import Bits, Integers
from sfumato.laws.grades import Grades
from sfumato.laws.law import Floats
from sfumato.laws.weights import Groups

_WORD = 2.0**-64


class Graded:
    """The law of an index into runs of points; each point of a run weighs what the grade of its level does.

    Guarantee:
        `sample` has exactly the law `probability`, a ratio of integers, given uniform bits. Float sums only
        choose the run when they are far enough from a tie; else integers continue with the same bits.
        Proof: docs/proofs/samplers.md.

    >>> from sfumato.laws.bits import SystemBits
    >>> law = Graded(np.array([3, 1]), np.array([0, 10**9]), Grades(Fraction(1), 1))
    >>> law.points, law.sample(SystemBits()) in range(4), round(float(law.probability(0)), 9)
    (4, True, 0.333333333)
    """

    def __init__(self, lengths: Integers, levels: Integers, grades: Grades) -> None:
        self._lengths = lengths
        self._levels = levels
        self._grades = grades

    @property
    def points(self) -> int:
        """The number of points."""
        return int(self._ends[-1])

    @property
    def ends(self) -> Integers:
        """One past the last point of each run, for audits that compare run by run."""
        return self._ends

    def sample(self, bits: Bits) -> int:
        """One point."""
        word = int(bits.words(1)[0])
        run = self._run(word)
        if run is None:
            run = self._settled(word, bits)
        length = int(self._lengths[run])
        return int(self._ends[run]) - length + bits.below(length)

    def probability(self, point: int) -> Fraction:
        """The exact probability of a point; zero outside."""
        if not 0 <= point < self.points:
            return Fraction(0)
        return Fraction(self._weights[self._run_of(point)], self._total)

    def logpmf(self, point: int) -> float:
        """The log probability of a point."""
        if not 0 <= point < self.points:
            return -math.inf
        return math.log(self._weights[self._run_of(point)]) - math.log(self._total)

    @property
    def runs(self) -> tuple[Integers, Integers, Floats]:
        """The number of points of each run, its level, and its probability to a relative error of 1e-9."""
        return self._lengths, self._levels, np.diff(self._sums, prepend=0.0) / self._sums[-1]

    def coins(self) -> tuple[Integers, Integers]:
        """For every point, two integers out of 2**62 whose product is its weight; for few points."""
        return self._grades.coins(np.repeat(self._levels, self._lengths))

    def expected(self, function: Callable[[Integers], Floats]) -> float:
        """The mean of a function of the level."""
        masses = np.diff(self._sums, prepend=0.0)
        return float(masses @ function(self._levels) / self._sums[-1])

    def _run_of(self, point: int) -> int:
        return int(np.searchsorted(self._ends, point, side="right"))

    def _run(self, word: int) -> int | None:
        """The run of a uniform real whose first 64 bits are given, unless that is too near an edge."""
        sums = self._sums
        # Every sum is within this of the true one; the last two terms cover the word's own rounding.
        slack = float(sums[-1]) * (len(sums) + 16) * 2.0**-52
        spot = word * _WORD * float(sums[-1])
        run = int(np.searchsorted(sums, spot, side="right"))
        if run >= len(sums) or sums[run] - spot < slack or (run and spot - sums[run - 1] < slack):
            return None
        return run

    def _settled(self, word: int, bits: Bits) -> int:
        """The run of a uniform real that starts with this word, decided by integers."""
        # An empty run has no share of the words, which the integers of a last one would not fit.
        kept = [place for place, mass in enumerate(self._masses) if mass]
        return kept[Groups([self._masses[place] for place in kept]).settle(word, bits)]

    @cached_property
    def _ends(self) -> Integers:
        return np.cumsum(self._lengths)

    @cached_property
    def _sums(self) -> Floats:
        return np.cumsum(self._lengths * self._grades.floats(self._levels))

    @cached_property
    def _weights(self) -> list[int]:
        return self._grades.weights(self._levels)

    @cached_property
    def _masses(self) -> list[int]:
        return [w * length for w, length in zip(self._weights, self._lengths.tolist(), strict=True)]

    @cached_property
    def _total(self) -> int:
        return sum(self._masses)
