"""Entropies of counts compared exactly with the logarithm of a rational number."""

import decimal
from collections.abc import Sequence
from fractions import Fraction
from math import gcd, log

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.class_counts import ClassCounts

# Eight times the rounding of one operation of float64.
_ROUNDING = 2.0**-50
_DIGITS = 50


def entropy_reaches(counts: ClassCounts, least: Fraction) -> NDArray[np.bool_]:
    """Which classes have an entropy of at least log `least`, exactly."""
    target = log(least.numerator) - log(least.denominator)
    met = np.asarray(counts.entropies >= target)
    # A sum of so many terms, each below log n, is off by less; what is closer is decided by integers.
    terms = (counts.distinct + 8) * (1 + np.log(np.maximum(counts.sizes, 1)))
    slack = _ROUNDING * (terms + log(least.numerator) + log(least.denominator))
    for i in np.flatnonzero(np.abs(counts.entropies - target) <= slack).tolist():
        met[i] = reaches(counts.row(i), least)
    return met


def reaches(counts: Sequence[int], least: Fraction) -> bool:
    r"""Whether the entropy of counts is at least log `least`: whether :math:`n^n \ge l^n \prod_i c_i^{c_i}`.

    Equality is seen in the exponents of factors that have no divisor in common; if there is none, digits
    enough decide.

    >>> reaches([4, 1, 1, 1, 1], Fraction(4)), reaches([1, 2], Fraction(2))
    (True, False)
    """
    held = [count for count in counts if count]
    if not held:
        return least <= 1
    shared = gcd(*held)
    held = [count // shared for count in held]
    n = sum(held)
    powers = [(n, n), (least.denominator, n), (least.numerator, -n), *((count, -count) for count in held)]
    if _is_one(powers):
        return True
    digits = _DIGITS
    while True:
        with decimal.localcontext(decimal.Context(prec=digits)):
            terms = [decimal.Decimal(base).ln() * power for base, power in powers]
            sum_ = sum(terms, decimal.Decimal(0))
            # Every logarithm, product and sum is off by at most half a unit of its last digit.
            slack = sum((abs(term) for term in terms), decimal.Decimal(1)) * len(terms) * 4
            if abs(sum_) > slack.scaleb(-digits + 1):
                return sum_ > 0
        digits *= 2


def _is_one(powers: Sequence[tuple[int, int]]) -> bool:
    """Whether a product of powers of positive integers is 1."""
    exponents: dict[int, int] = {}
    waiting = [(base, power) for base, power in powers if base > 1 and power]
    while waiting:
        base, power = waiting.pop()
        for other in exponents:
            common = gcd(base, other)
            if common > 1:
                # Both are split by the divisor; the parts are placed anew.
                held = exponents.pop(other)
                parts = [(common, power + held), (base // common, power), (other // common, held)]
                waiting += [(part, exponent) for part, exponent in parts if part > 1 and exponent]
                break
        else:
            exponents[base] = power
    return not exponents
