"""An independent oracle: ball arithmetic (Arb through python-flint) at 512 bits."""

from fractions import Fraction

import flint

flint.ctx.prec = 512


def arb(value: Fraction | int) -> flint.arb:
    value = Fraction(value)
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def exp(x: Fraction) -> flint.arb:
    """e^x as a ball."""
    return arb(x).exp()


def scaled_floor(ball: flint.arb, width: int) -> int:
    """floor(2^width * ball); fails if the ball is too wide to tell."""
    scaled = (ball * arb(1 << width)).floor()
    return int(scaled.unique_fmpz())


def geometric_steps(uniform: Fraction, rate: Fraction) -> int:
    """The h with 1 - e^(-rate h) <= uniform < 1 - e^(-rate (h + 1))."""
    ratio = -(1 - arb(uniform)).log() / arb(rate)
    return int(ratio.floor().unique_fmpz())


def continued(prefix: int, width: int, pattern: int) -> Fraction:
    """The real number of binary digits `prefix`, then the 64-bit pattern for ever."""
    return (prefix + Fraction(pattern, 2**64 - 1)) / 2**width


def same(left: flint.arb, right: flint.arb) -> bool:
    """Whether two balls agree to far more digits than any defect of the samplers could hide behind."""
    return bool(abs(left - right) < arb(Fraction(1, 2**400)))
