"""Exact coins: integer arithmetic decides events whose probability is rational or an exponential.

A coin compares a uniform real with its probability, reading only as many bits of the real as the
comparison needs. Floats appear nowhere in this file.
"""

from collections.abc import Callable
from fractions import Fraction

from sfumato.checks import shown
from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits

# precision -> (lo, hi) with lo <= 2^precision * p <= hi, where hi - lo stays below a constant.
Bounds = Callable[[int], tuple[int, int]]


def exp_bounds(x: Fraction, precision: int) -> tuple[int, int]:
    r"""Integers around an exponential: lo <= 2^precision * e^-x <= hi, at most 2 apart.

    Guarantee:
        Both bounds hold by integer arithmetic alone: the argument is halved until it is at most 1/8, the
        alternating series is summed with an error counted in units, and the squarings that undo the
        halvings round outwards. A large x costs no more than a small one.
        Proof: docs/proofs/samplers.md.

    Args:
        x: a non-negative rational.
        precision: the number of bits after the point.

    >>> exp_bounds(Fraction(1), 16)  # 2^16 / e = 24109.3...
    (24109, 24110)
    """
    if x < 0:
        raise InvalidParameter(f"x must not be negative, got x={shown(x)}")
    if x == 0:
        return 1 << precision, 1 << precision
    # ln 2 < 7/10, so here 2^precision * e^-x < 1 and the unit interval is the answer.
    if 10 * x.numerator >= 7 * precision * x.denominator:
        return 0, 1
    halvings = (8 * x.numerator // x.denominator).bit_length()
    # Each squaring doubles the error at most; the series leaves fewer than 2^(bits of precision + 4) units.
    spare = halvings + precision.bit_length() + 10
    width = precision + spare
    y = (x.numerator << width) // (x.denominator << halvings)
    total = term = 1 << width
    order = 0
    while term:
        order += 1
        term = term * y // (order << width)
        total += term if order % 2 == 0 else -term
    # Each term is low by less than 2 units, y by less than 1, and the series is cut below 1 unit.
    slack = 2 * order + 2
    lo, hi = max(total - slack, 0), total + slack
    for _ in range(halvings):
        lo = lo * lo >> width
        hi = -(-hi * hi >> width)
    # For tiny x rounding outwards would pass 1, which no exponential does.
    return lo >> spare, min(-(-hi >> spare), 1 << precision)


def exp_floor(x: Fraction, precision: int) -> int:
    """The integer part of 2^precision * e^-x, exactly.

    >>> exp_floor(Fraction(1), 16)
    24109
    """
    if x == 0:
        return 1 << precision
    extra = 16
    while True:
        # e^-x is irrational for rational x > 0, so both bounds are strict and the loop ends.
        lo, hi = exp_bounds(x, precision + extra)
        if lo >> extra == (hi - 1) >> extra:
            return lo >> extra
        extra *= 2


def exp_coin(x: Fraction) -> Bounds:
    """Bounds of the probability e^-x."""
    return lambda precision: exp_bounds(x, precision)


def exp_complement_coin(x: Fraction) -> Bounds:
    """Bounds of the probability 1 - e^-x."""

    def bounds(precision: int) -> tuple[int, int]:
        lo, hi = exp_bounds(x, precision)
        return (1 << precision) - hi, (1 << precision) - lo

    return bounds


def ratio_coin(p: Fraction) -> Bounds:
    """Bounds of a rational probability."""

    def bounds(precision: int) -> tuple[int, int]:
        scaled = p.numerator << precision
        return scaled // p.denominator, -(-scaled // p.denominator)

    return bounds


class Uniform:
    """A uniform real of [0, 1) known by its first `width` bits; more are drawn when a question needs them.

    Guarantee:
        All answers about one object are about one real number, so a prefix that a fast path has already
        read is continued, never replaced.

    >>> from sfumato.laws.bits import SystemBits
    >>> Uniform(SystemBits(), prefix=0b0111, width=4).below(ratio_coin(Fraction(1, 2)))
    True
    """

    def __init__(self, bits: Bits, prefix: int = 0, width: int = 0) -> None:
        self._bits = bits
        self._prefix = prefix
        self._width = width

    def below(self, bounds: Bounds) -> bool:
        """Whether the real is below the probability that `bounds` describes."""
        while True:
            lo, hi = bounds(self._width)
            if self._prefix + 1 <= lo:
                return True
            if self._prefix >= hi:
                return False
            self._prefix = self._prefix << 64 | self._bits.integer(64)
            self._width += 64


def bernoulli(p: Fraction, bits: Bits) -> bool:
    """True with probability exactly `p`.

    Guarantee:
        Exact for every rational p in [0, 1], given uniform bits. Proof: docs/proofs/samplers.md.

    >>> from sfumato.laws.bits import SystemBits
    >>> bernoulli(Fraction(1), SystemBits()), bernoulli(Fraction(0), SystemBits())
    (True, False)
    """
    if not 0 <= p <= 1:
        raise InvalidParameter(f"p must be in [0, 1], got p={shown(p)}")
    return Uniform(bits, bits.integer(64), 64).below(ratio_coin(p))


def bernoulli_exp(x: Fraction, bits: Bits) -> bool:
    """True with probability exactly e^-x.

    Guarantee:
        Exact for every rational x >= 0, given uniform bits. Proof: docs/proofs/samplers.md.

    >>> from sfumato.laws.bits import SystemBits
    >>> bernoulli_exp(Fraction(0), SystemBits()), bernoulli_exp(Fraction(10**9), SystemBits())
    (True, False)
    """
    return Uniform(bits, bits.integer(64), 64).below(exp_coin(x))
