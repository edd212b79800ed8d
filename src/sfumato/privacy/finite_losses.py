"""The loss of a finite law on the integers with discrete Laplace noise, by exact intervals.

Between two neighbouring support points the ratio of the two probabilities is a Moebius function of e^(2k/b),
hence monotone, and beyond the last it is constant: the support points are all that has to be looked at.
Proof: docs/proofs/pufferfish.md.
"""

from fractions import Fraction
from itertools import pairwise

from sfumato.errors import NotSupported
from sfumato.laws.coins import exp_bounds
from sfumato.privacy.conversions import log_fraction
from sfumato.privacy.mixture_losses import RAISED
from sfumato.privacy.mixtures import Finite

_MOST_BITS = 60_000
_GUARD = 128

Range = tuple[int, int]


def finite_loss(left: Finite, right: Finite, scale: Fraction) -> float:
    """At least the largest log ratio, either way, over all outcomes; `scale` is in steps of the integers."""
    ratio = largest_ratio(left, right, scale)
    return log_fraction(ratio) * RAISED if ratio > 1 else 0.0


def largest_ratio(left: Finite, right: Finite, scale: Fraction) -> Fraction:
    """A fraction at least the largest ratio of probabilities, either way, and within 2^-100 of it."""
    points = sorted({*left.values, *right.values})
    bits = _GUARD + 3 * int((points[-1] - points[0]) / scale) + len(points)
    if bits > _MOST_BITS:
        raise NotSupported("the values are too far apart for this noise: no certificate is found")
    gaps = [exp_bounds((b - a) / scale, bits) for a, b in pairwise(points)]
    mine, theirs = (_smoothed(law, points, gaps, bits) for law in (left, right))
    return max(
        ratio
        for (low, high), (low_, high_) in zip(mine, theirs, strict=True)
        for ratio in (Fraction(high, low_), Fraction(high_, low))
    )


def _smoothed(law: Finite, points: list[Fraction], gaps: list[Range], bits: int) -> list[Range]:
    """Integers around 2^bits times the sum of weight e^(-distance/scale), at each point."""
    weights = dict(law)
    masses = [_scaled(weights.get(point, Fraction(0)), bits) for point in points]
    ups = _one_way(masses, gaps, bits)
    downs = _one_way(masses[::-1], gaps[::-1], bits)[::-1]
    # A point's own mass is in both sums; it is taken off rounded the other way.
    return [
        (max(up[0] + down[0] - mass[1], 1), up[1] + down[1] - mass[0])
        for up, down, mass in zip(ups, downs, masses, strict=True)
    ]


def _scaled(weight: Fraction, bits: int) -> Range:
    top = weight.numerator << bits
    return top // weight.denominator, -(-top // weight.denominator)


def _one_way(masses: list[Range], gaps: list[Range], bits: int) -> list[Range]:
    found = [masses[0]]
    for gap, mass in zip(gaps, masses[1:], strict=True):
        low, high = found[-1]
        found.append(((low * gap[0] >> bits) + mass[0], -(-high * gap[1] >> bits) + mass[1]))
    return found
