"""Intervals for a share A / (A + B) when A and B are both released with noise."""

import math
from collections.abc import Callable

import numpy as np

from sfumato.grid import Floats
from sfumato.laws import DiscreteGaussian, DiscreteLaplace
from sfumato.mechanisms import Additive


def share_interval(sums: tuple[int, ...], mechanism: Additive, confidence: float) -> tuple[float, float]:
    """Where the share A / (A + B) lies, given A and B with independent noise of one mechanism.

    The share t is the only number for which (1 - t) A - t B is zero, so t is in the interval if
    (1 - t) first - t second is no larger than its noise can be: exact at every share, and as narrow as one
    noisy sum at the ends. A test that is inverted, so that it needs no large numbers; the lattice costs
    one unit of conservatism.

    Guarantee:
        Contains the share with probability at least `confidence`, whatever the sums are. docs/proofs/mean.md.

    >>> from sfumato.mechanisms import LaplaceMechanism
    >>> from fractions import Fraction
    >>> low, high = share_interval((500, 500), LaplaceMechanism(sensitivity=1, scale=Fraction(1)), 0.95)
    >>> 0.49 < low < 0.5 < high < 0.51
    True
    """
    first, second = sums
    if first + second <= 0:
        return 0.0, 1.0
    tail = _tail(mechanism)
    # Discrete noise is within 1 of continuous noise, in a coupling; float64 adds its rounding of the sums.
    slack = 1 + (abs(first) + abs(second)) * 2.0**-50

    def plausible(share: float) -> bool:
        size = abs((1 - share) * first - share * second) - slack
        return size <= 0 or tail(1 - share, share, size) >= 1 - confidence

    center = min(max(first / (first + second), 0.0), 1.0)
    return outermost(plausible, center, 0.0), outermost(plausible, center, 1.0)


def outermost(plausible: Callable[[float], bool], inside: float, end: float, steps: int = 60) -> float:
    """The last plausible number on the way from `inside` to `end`, rounded outwards, by bisection."""
    if plausible(end):
        return end
    outside = end
    for _ in range(steps):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if plausible(middle) else (inside, middle)
    return outside


def difference_tail(sizes: Floats, share: float, noise: DiscreteLaplace | DiscreteGaussian) -> Floats:
    """P((1 - t) X - t Y > size) for independent continuous noises of the same scale, t being the share."""
    from scipy.special import ndtr

    if isinstance(noise, DiscreteGaussian):
        sigma = math.sqrt(noise.sigma_squared) * math.hypot(1 - share, share)
        return np.asarray(ndtr(-sizes / sigma))
    large = max(share, 1 - share, 0.5 + 1e-5)
    small = 1 - large
    depth = np.abs(sizes) / float(noise.scale)
    tails = large**2 * np.exp(-depth / large)
    if small > 0:
        tails -= small**2 * np.exp(-np.minimum(depth / small, 745.0))
    half = tails / (large**2 - small**2) / 2
    return np.where(sizes >= 0, half, 1 - half)


def _tail(mechanism: Additive) -> Callable[[float, float, float], float]:
    """P(|a X - b Y| > size) for independent noises X and Y."""
    if isinstance(mechanism.noise, DiscreteLaplace):
        scale = float(mechanism.noise.scale)

        def laplace(a: float, b: float, size: float) -> float:
            large, small, depth = max(a, b), min(a, b), size / scale
            if large - small < 1e-6:
                return (1 + depth / (2 * large)) * math.exp(-depth / large)
            tails = large**2 * math.exp(-depth / large)
            if small > 0:
                tails -= small**2 * math.exp(-min(depth / small, 745.0))
            return tails / (large**2 - small**2)

        return laplace
    sigma = math.sqrt(mechanism.noise.sigma_squared)
    return lambda a, b, size: math.erfc(size / (sigma * math.hypot(a, b) * math.sqrt(2)))
