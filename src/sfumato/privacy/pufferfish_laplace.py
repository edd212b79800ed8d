r"""The loss of Laplace noise: an upper bound for every outcome, of normal mixtures and of finite laws.

Mixtures: the log ratio of two densities that were smoothed by noise of scale b changes by at most 2/b per
unit, so its values on a grid bound it between the points. Beyond the grid, and in gaps where no component
has mass, exponential moments do. The grid is refined only where the bound is above what was already attained.

Finite laws: between two neighbouring support points the ratio of the two probabilities is a Moebius function
of e^(2k/b), hence monotone, and beyond the last it is constant: the support points are all that has to be
looked at, and there the sums are enclosed by integers. Proofs: docs/proofs/pufferfish.md.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sfumato.errors import NotSupported
from sfumato.laws.coins import exp_bounds
from sfumato.privacy.conversions import log_fraction
from sfumato.privacy.pufferfish_laws import Finite, Floats, Mixture, alike

# The grid ends where the components, tilted by the noise, have less than 1e-18 of their mass left.
_REACH = 9.0
# Rounding of a log density: 64 units in the last place for each squared unit of its largest exponent.
_UNIT = 2.0**-46
# Outcomes times components: about a second, and a hundred megabytes.
_MOST_POINTS = 4_000_000
_MOST_RANGE = 1e6
_CHUNK = 2**20
# Shorter gaps cost less as part of the grid than on their own.
_LEAST_GAP = 4.0
_MOST_PIECES = 2000
_TOO_MANY = "no certificate is found with as many outcomes as can be looked at: the loss varies too much"

# Finite laws: the longest integers, and how many bits of the smallest sum are kept.
_MOST_BITS = 60_000
_GUARD = 128

Span = tuple[float, float]
Range = tuple[int, int]


class Noisy(NamedTuple):
    """A mixture in units of the noise: log weights, means, deviations."""

    log_weights: Floats
    means: Floats
    deviations: Floats


def laplace_loss(
    left: Mixture, right: Mixture, scale: Fraction, *, tolerance: float, enough: float = math.inf
) -> float:
    """At least the largest log ratio, either way, of the densities with Laplace noise of this scale.

    It is above the truth by at most `tolerance`, the rounding and what the tails leave open. The search ends
    early, with a lower value, once a loss above `enough` is attained.
    """
    if alike(left, right):
        return 0.0
    origin = left.means[0]
    one, other = in_units(left, scale, origin), in_units(right, scale, origin)
    attained = _limit(one, other)
    if attained > enough:
        return attained
    spans = _spans(one, other)
    low, high = spans[0][0], spans[-1][1]
    slack = rounding(one, other, high - low)
    beyond = max(tail_loss(one, other, low, high), gap_loss(one, other, spans))
    found = largest(
        lambda x: np.abs(log_density(one, x) - log_density(other, x)),
        spans,
        tolerance,
        enough,
        most=_MOST_POINTS // max(len(one.means), len(other.means)),
    )
    return max(beyond, found) + 2 * slack


def far_loss(left: Mixture, right: Mixture, scale: Fraction) -> float:
    """What the loss tends to for ever larger or smaller outcomes, the worse of the two; not rounded up."""
    origin = left.means[0]
    return _limit(in_units(left, scale, origin), in_units(right, scale, origin))


def _limit(one: Noisy, other: Noisy) -> float:
    sides = ((one, other), (_mirrored(one), _mirrored(other)))
    return max(abs(_log_moment(mine) - _log_moment(theirs)) for mine, theirs in sides)


def _mirrored(law: Noisy) -> Noisy:
    return Noisy(law.log_weights, -law.means, law.deviations)


def in_units(mixture: Mixture, scale: Fraction, origin: Fraction) -> Noisy:
    """A mixture moved to an origin and measured in units of the noise; each number is rounded once."""
    means = np.array([float((mean - origin) / scale) for mean in mixture.means])
    deviations = np.array([float(deviation / scale) for deviation in mixture.deviations])
    return Noisy(np.log(mixture.floats[0]), means, deviations)


def log_density(noisy: Noisy, points: Floats) -> Floats:
    """The log density of the mixture with Laplace noise of scale 1."""
    from scipy.special import log_ndtr, logsumexp

    found = np.empty(len(points))
    step = max(1, _CHUNK // len(noisy.means))
    s = noisy.deviations
    for start in range(0, len(points), step):
        z = points[start : start + step, None] - noisy.means
        upper = log_ndtr(z / s - s) - z
        lower = log_ndtr(-z / s - s) + z
        each = noisy.log_weights + s * s / 2 + np.logaddexp(upper, lower)
        found[start : start + step] = logsumexp(each, axis=1) - math.log(2)
    return found


def tail_loss(one: Noisy, other: Noisy, low: float, high: float) -> float:
    """At least the loss at every outcome outside [low, high], by exponential moments."""
    mirrored = _mirrored(one), _mirrored(other)
    return max(
        _log_moment(one) - _log_moment(other, high),
        _log_moment(other) - _log_moment(one, high),
        _log_moment(mirrored[0]) - _log_moment(mirrored[1], -low),
        _log_moment(mirrored[1]) - _log_moment(mirrored[0], -low),
    )


def gap_loss(one: Noisy, other: Noisy, spans: list[Span]) -> float:
    """At least the loss at every outcome between two neighbouring spans, by the mass on either side."""
    widest = float(max(one.deviations.max(), other.deviations.max()))
    worst, pieces = 0.0, (piece for (_, u), (v, _) in pairwise(spans) for piece in _pieces(u, v, widest))
    for count, (low, high) in enumerate(pieces):
        if count > _MOST_PIECES:
            raise NotSupported(_TOO_MANY)
        for mine, theirs in ((one, other), (other, one)):
            for x in (low, high):
                # Moments about x, so that none of them is far larger than what it counts for.
                at_most = np.logaddexp(_log_moment(mine, high, x), _log_moment(_mirrored(mine), -low, -x))
                at_least = np.logaddexp(
                    _log_moment(theirs, low, x), _log_moment(_mirrored(theirs), -high, -x)
                )
                worst = max(worst, float(at_most - at_least))
    return worst


def _pieces(low: float, high: float, widest: float) -> Iterator[Span]:
    """A gap in pieces, short near its ends: there, what a component has left in the gap still counts."""
    gone = 0.0
    while 2 * gone < high - low:
        far = gone / widest
        until = min(gone + 8 + 4 * far + far * far / 4, (high - low) / 2)
        yield low + gone, low + until
        yield high - until, high - gone
        gone = until


def _log_moment(law: Noisy, below: float | None = None, center: float = 0.0) -> float:
    """log E[e^(X - center)], or of the part where X is below a point."""
    from scipy.special import log_ndtr, logsumexp

    s = law.deviations
    terms = law.log_weights + (law.means - center) + s * s / 2
    if below is not None:
        terms = terms + log_ndtr((below - law.means - s * s) / s)
    return float(logsumexp(terms))


def _spans(one: Noisy, other: Noisy) -> list[Span]:
    """Where the components have mass, tilted by the noise or not; what lies between are gaps."""
    found: list[Span] = []
    means, deviations = (np.concatenate(pair) for pair in zip(one[1:], other[1:], strict=True))
    reach = deviations**2 + _REACH * deviations
    for low, high in sorted(zip((means - reach).tolist(), (means + reach).tolist(), strict=True)):
        if found and low - found[-1][1] < _LEAST_GAP:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    if not sum(high - low for low, high in found) <= _MOST_RANGE:
        raise NotSupported(
            f"the mixtures are wider than {_MOST_RANGE:g} times the noise: no certificate is found"
        )
    return found


def rounding(one: Noisy, other: Noisy, width: float) -> float:
    """At least the rounding error of a log density inside the window, and of a log moment."""
    widest = max(float(one.deviations.max()), float(other.deviations.max()))
    return _UNIT * ((widest + 8) ** 2 + width)


def largest(
    value: Callable[[Floats], Floats],
    spans: list[Span],
    tolerance: float,
    enough: float = math.inf,
    most: int = _MOST_POINTS,
) -> float:
    """At least the maximum over some intervals of a function that changes by at most 2 per unit."""
    grids = [np.linspace(low, high, math.ceil(2 * (high - low)) + 2) for low, high in spans]
    starts, ends = (np.concatenate([grid[side] for grid in grids]) for side in (slice(-1), slice(1, None)))
    used = 2 * len(starts)
    if used > most:
        raise NotSupported(_TOO_MANY)
    at_start, at_end = value(starts), value(ends)
    best = float(max(at_start.max(), at_end.max()))
    while True:
        # A function of slope 2 at most peaks between two points at their mean plus half the way.
        open_ = (at_start + at_end) / 2 + (ends - starts) > best + tolerance
        if not open_.any() or best > enough:
            return best + tolerance
        starts, ends, at_start, at_end = starts[open_], ends[open_], at_start[open_], at_end[open_]
        used += len(starts)
        if used > most:
            raise NotSupported(_TOO_MANY)
        middles = (starts + ends) / 2
        between = value(middles)
        best = max(best, float(between.max()))
        starts, ends = np.concatenate([starts, middles]), np.concatenate([middles, ends])
        at_start, at_end = np.concatenate([at_start, between]), np.concatenate([between, at_end])


def finite_loss(left: Finite, right: Finite, scale: Fraction) -> float:
    """At least the largest log ratio, either way, over all outcomes; `scale` is in steps of the integers."""
    ratio = largest_ratio(left, right, scale)
    # The logarithm errs by a few units in the last place.
    return log_fraction(ratio) * (1 + 1e-14) if ratio > 1 else 0.0


def largest_ratio(left: Finite, right: Finite, scale: Fraction) -> Fraction:
    """A fraction at least the largest ratio of probabilities, either way, and within 2^-100 of it."""
    points = sorted({*left.values, *right.values})
    # Every point adds a few units of rounding.
    bits = _GUARD + 3 * int((points[-1] - points[0]) / scale) + 4 * len(points).bit_length()
    if bits > _MOST_BITS:
        raise NotSupported("the values are too far apart for this noise: no certificate is found")
    power = cache(lambda gap: exp_bounds(gap / scale, bits))
    gaps = [power(b - a) for a, b in pairwise(points)]
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
