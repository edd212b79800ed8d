r"""The loss of a normal mixture with Laplace noise: an upper bound for every outcome, tails included.

The log ratio of two densities that were smoothed by Laplace noise of scale b changes by at most 2/b per
unit, so its values on a grid bound it between the points; beyond the grid two exponential moments do. The
grid is refined only where the bound is above what was already attained. Proof: docs/proofs/pufferfish.md.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from sfumato.errors import NotSupported
from sfumato.privacy.mixtures import Floats, Mixture

# The grid ends where the components, tilted by the noise, have less than 1e-18 of their mass left.
_REACH = 9.0
# Rounding of a log density: 64 units in the last place for each squared unit of its largest exponent.
_UNIT = 2.0**-46
_MOST_POINTS = 20_000_000
_MOST_RANGE = 1e6
_CHUNK = 2**20
# Every bound that floats computed is raised by this, so that another machine's floats find it to hold.
RAISED = 1 + 1e-10


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
    if left == right:
        return 0.0
    origin = left.means[0]
    one, other = in_units(left, scale, origin), in_units(right, scale, origin)
    low, high = _window(one, other)
    slack = rounding(one, other, high - low)
    beyond = tail_loss(one, other, low, high)
    found = largest(
        lambda x: np.abs(log_density(one, x) - log_density(other, x)), low, high, tolerance, enough
    )
    return (max(beyond, found) + 2 * slack) * RAISED


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
    mirrored = [Noisy(law.log_weights, -law.means, law.deviations) for law in (one, other)]
    return max(
        _log_moment(one) - _log_moment(other, high),
        _log_moment(other) - _log_moment(one, high),
        _log_moment(mirrored[0]) - _log_moment(mirrored[1], -low),
        _log_moment(mirrored[1]) - _log_moment(mirrored[0], -low),
    )


def _log_moment(law: Noisy, below: float | None = None) -> float:
    """log E[e^X], or of the part where X is below a point."""
    from scipy.special import log_ndtr, logsumexp

    s = law.deviations
    terms = law.log_weights + law.means + s * s / 2
    if below is not None:
        terms = terms + log_ndtr((below - law.means - s * s) / s)
    return float(logsumexp(terms))


def _window(one: Noisy, other: Noisy) -> tuple[float, float]:
    reaches = [(law.means, law.deviations**2 + _REACH * law.deviations) for law in (one, other)]
    low = min(float((means - reach).min()) for means, reach in reaches)
    high = max(float((means + reach).max()) for means, reach in reaches)
    if not high - low <= _MOST_RANGE:
        raise NotSupported(
            f"the mixtures are wider than {_MOST_RANGE:g} times the noise: no certificate is found"
        )
    return low, high


def rounding(one: Noisy, other: Noisy, width: float) -> float:
    """At least the rounding error of a log density inside the window, and of a log moment."""
    widest = max(float(one.deviations.max()), float(other.deviations.max()))
    return _UNIT * ((widest + 8) ** 2 + width)


def largest(
    value: Callable[[Floats], Floats], low: float, high: float, tolerance: float, enough: float = math.inf
) -> float:
    """At least the maximum over [low, high] of a function that changes by at most 2 per unit."""
    points = np.linspace(low, high, math.ceil(2 * (high - low)) + 2)
    values = value(points)
    best, used = float(values.max()), len(points)
    starts, ends, at_start, at_end = points[:-1], points[1:], values[:-1], values[1:]
    while True:
        # A function of slope 2 at most peaks between two points at their mean plus half the way.
        open_ = (at_start + at_end) / 2 + (ends - starts) > best + tolerance
        if not open_.any() or best > enough:
            return best + tolerance
        starts, ends, at_start, at_end = starts[open_], ends[open_], at_start[open_], at_end[open_]
        used += len(starts)
        if used > _MOST_POINTS:
            raise NotSupported(
                f"no certificate is found with {_MOST_POINTS:,} outcomes: the loss varies too much"
            )
        middles = (starts + ends) / 2
        between = value(middles)
        best = max(best, float(between.max()))
        starts, ends = np.concatenate([starts, middles]), np.concatenate([middles, ends])
        at_start, at_end = np.concatenate([at_start, between]), np.concatenate([between, at_end])
