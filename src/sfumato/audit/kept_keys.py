"""The exact audit of a private selection of keys: fractions decide, where floats would lose a small delta."""

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from sfumato.audit.exact import ROUNDING, Loss, WorstCase
from sfumato.checks import whole
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import exp_bounds
from sfumato.mechanisms import PartitionSelection
from sfumato.mechanisms.partition_selection import MOST_COUNT, UNIT

Vector = tuple[int, ...]
Rational = int | Fraction

# Bits of the bounds of e^-epsilon, more than the mechanism itself uses.
_PRECISION = 384
_ONE = 1 << _PRECISION
_MOST_PAIRS = 1 << 20
_MOST_KEYS = 12


def exact_selection(mechanism: PartitionSelection, left: Any, right: Any) -> Loss:
    """The delta at the charged epsilon between two data sets, by the numbers of people of their keys."""
    counts, others = _counts(left), _counts(right)
    if len(counts) != len(others):
        raise InvalidParameter("left and right must count the people of the same keys")
    return _loss(mechanism, *_Pairs(mechanism).between(counts, others))


def worst_selection(mechanism: PartitionSelection) -> WorstCase:
    """The largest delta at the charged epsilon, over every move of `groups` keys by one up to the threshold.

    All sets of kept keys are listed. Chances are the integers that are sampled, e^epsilon lies between two
    fractions, so that the loss lies between two numbers that differ by less than 2^-300.
    """
    top = mechanism.threshold + 1
    if (top + 1) ** mechanism.groups * 3**mechanism.groups > _MOST_PAIRS:
        raise NotSupported("neighbouring counts are too many to list: audit fewer groups, or a larger delta")
    pairs, seen, upper = _Pairs(mechanism), 0, Fraction(0)
    worst: tuple[Fraction, Vector, Vector] = Fraction(-1), (), ()
    for left, right in _moved(mechanism.groups, top):
        seen += 1
        lower, most = pairs.between(left, right)
        upper = max(upper, most)
        if lower > worst[0]:
            worst = lower, left, right
    return WorstCase(type(mechanism).__name__, _loss(mechanism, worst[0], upper), seen, *worst[1:])


def _counts(value: Any) -> Vector:
    items = np.atleast_1d(np.asarray(value)).tolist()
    return tuple(whole("count", item, least=0, most=MOST_COUNT) for item in items)


class _Pairs:
    """Hockey sticks of pairs of data sets, with what many pairs share."""

    def __init__(self, mechanism: PartitionSelection) -> None:
        self._chance = cache(lambda count: int(mechanism.law(count).probability(1) * UNIT))
        self._masses = cache(self._listed)
        self._low, self._high = exp_bounds(mechanism.epsilon, _PRECISION)

    def between(self, left: Vector, right: Vector) -> tuple[Fraction, Fraction]:
        """Two fractions that hold the hockey stick in the worse direction between them."""
        # Keys with equal counts have the same coin on both sides and add nothing.
        moved = [pair for pair in zip(left, right, strict=True) if pair[0] != pair[1]]
        if len(moved) > _MOST_KEYS:
            raise NotSupported(f"at most {_MOST_KEYS} keys that differ can be listed, got {len(moved)}")
        one, other = (self._masses(tuple(pair[side] for pair in moved)) for side in (0, 1))
        whole_mass = UNIT ** len(moved)
        # For a large epsilon the lower bound of e^-epsilon may be zero, and then that of the loss is too.
        lower, upper = (
            max(hockey_stick(one, other, shrink), hockey_stick(other, one, shrink)) if shrink else Fraction(0)
            for shrink in (self._low, self._high)
        )
        return lower / whole_mass, upper / whole_mass

    def _listed(self, counts: Vector) -> tuple[int, ...]:
        chances = [self._chance(count) for count in counts]
        sides = itertools.product(*((UNIT - chance, chance) for chance in chances))
        return tuple(map(math.prod, sides))


def _loss(mechanism: PartitionSelection, lower: Fraction, upper: Fraction) -> Loss:
    cost = mechanism.cost
    amount, most = _told(lower, cost.delta), _told(upper, cost.delta)
    return Loss(amount, float(cost.delta), cost, None, most if most > amount else None)


def _told(found: Fraction, delta: Fraction) -> float:
    # What passes delta by less than the tolerance for floats is a violation all the same.
    return float(found) if found <= delta else float(found * (1 + 2 * Fraction(ROUNDING)))


def hockey_stick(left: Sequence[Rational], right: Sequence[Rational], shrink: int) -> Fraction:
    """P(A) - e^epsilon Q(A) at its largest, where e^-epsilon is `shrink` / 2^384, in units of the masses."""
    pairs = zip(left, right, strict=True)
    return Fraction(sum(max(p * shrink - q * _ONE, 0) for p, q in pairs)) / shrink


def _moved(groups: int, top: int) -> Iterator[tuple[Vector, Vector]]:
    """Every pair of counts from 0 to `top` that differ by at most one in each key, once."""
    for counts in itertools.product(range(top + 1), repeat=groups):
        for move in itertools.product((-1, 0, 1), repeat=groups):
            moved = tuple(count + by for count, by in zip(counts, move, strict=True))
            if counts < moved and min(moved) >= 0 and max(moved) <= top:
                yield counts, moved
