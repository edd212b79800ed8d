"""Integer weights for distances in fractions of a rank: zero slack, however fine the fraction."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from sfumato.checks import keep, positive, whole
from sfumato.laws.bits import Integers
from sfumato.laws.coins import exp_bounds
from sfumato.laws.law import Floats

# The largest entry of the table of steps, and that of the table of units unless more bits are asked for.
_TOP_BITS = 62
_TOP = 1 << _TOP_BITS
MAX_PARTS = 100_000
# The most entries of a table, for budgets so small that weights hardly fall.
_LONGEST = 1 << 18


@dataclass(frozen=True)
class Grades:
    """Weights of levels 0, 1, 2, ... that fall by at most e^-c over `parts` levels, and never rise.

    Guarantee:
        0 <= log W[k] - log W[k + j] <= c j / parts for all k and j, exactly, and W is constant and positive
        from `last` on. So an exponential mechanism with these weights costs what the exponential would, with
        no slack. Proof: docs/proofs/quantiles.md.

    Two short tables serve all levels: W[a * unit + r] = units[a] * steps[r].

    >>> grades = Grades(Fraction(1, 2), 10)
    >>> grades.weights(np.array([0, 1]))[0] == 2**124, grades.last
    (True, 819)
    """

    c: Fraction
    parts: int
    bits: int = _TOP_BITS

    def __post_init__(self) -> None:
        keep(self, c=positive("c", self.c), parts=whole("parts", self.parts, least=1, most=MAX_PARTS))
        keep(self, bits=whole("bits", self.bits, least=_TOP_BITS, most=400))

    @cached_property
    def unit(self) -> int:
        """How many levels one entry of the table of units stands for: both tables about equally long."""
        # Weights fall to their floor over about so many ranks.
        ranks = int(self.bits * Fraction(7, 10) / self.c)
        longest = math.isqrt(ranks * self.parts + 1)
        return self.parts * max(min(longest, _LONGEST) // self.parts, 1)

    @cached_property
    def _steps(self) -> list[int]:
        # q = ceil(2^64 e^(-c/parts)) / 2^64 is at least the fall of one level.
        q = exp_bounds(self.c / self.parts, 64)[1]
        steps = [_TOP]
        while len(steps) <= self.unit:
            steps.append(-(-q * steps[-1] >> 64))
        return steps

    @cached_property
    def _units(self) -> list[int]:
        units = [1 << self.bits]
        # A floor may come at any level: where c is so small, it is far beyond any number of records.
        while len(units) < _LONGEST:
            # Rounded up, so that the fall from one unit to the next is at most that of the steps.
            following = -(-units[-1] * self._steps[self.unit] // _TOP)
            rises = following * _TOP > units[-1] * self._steps[self.unit - 1]
            if rises or following == units[-1]:
                return units
            units.append(following)
        return units

    @cached_property
    def last(self) -> int:
        """The level from which all weights are equal."""
        return len(self._units) * self.unit - 1

    @cached_property
    def reach(self) -> int:
        """How many ranks there are before all weights are equal."""
        return len(self._units) * (self.unit // self.parts)

    def weights(self, levels: Integers) -> list[int]:
        """The exact weight of each level."""
        units, steps = np.divmod(np.minimum(levels, self.last), self.unit)
        return [self._units[a] * self._steps[r] for a, r in zip(units.tolist(), steps.tolist(), strict=True)]

    def coins(self, levels: Integers) -> tuple[Integers, Integers]:
        """Two integers a level, out of 2**62 each, whose product is the weight; for no more than 62 bits."""
        units, steps = np.divmod(np.minimum(levels, self.last), self.unit)
        return np.array(self._units, dtype=np.int64)[units], np.array(self._steps, dtype=np.int64)[steps]

    def floats(self, levels: Integers) -> Floats:
        """The weights within a relative error of 2**-51."""
        units, steps = np.divmod(np.minimum(levels, self.last), self.unit)
        return np.asarray(self._tables[0][units] * self._tables[1][steps])

    @cached_property
    def _tables(self) -> tuple[Floats, Floats]:
        return np.array(self._units, dtype=np.float64), np.array(self._steps, dtype=np.float64)


@lru_cache(maxsize=256)
def grades(c: Fraction, parts: int, points: int = 1) -> Grades:
    """The grades of one calibration, with their tables, shared by all draws.

    All `points` at the floor together weigh less than 2**-40 of one point at the top, if weights are let fall
    that far: rounding up stops them where a fall of c / parts is less than 1.
    """
    stop = math.ceil(parts / c).bit_length()
    return Grades(c, parts, max(_TOP_BITS, min(points.bit_length() + stop + 40, 400)))
