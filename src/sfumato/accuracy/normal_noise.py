"""Population means by the central limit theorem: a normal sampling error and the noise, as one law."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from sfumato.accuracy.ratio import outermost
from sfumato.errors import InvalidParameter
from sfumato.grid import Floats
from sfumato.laws import DiscreteGaussian, DiscreteLaplace

_ROOT_TWO = math.sqrt(2)
# Margins are kept for ratios in steps of an eighth of a power of two, rounded up.
_STEPS = 8
# An end is found to 2^-48 of the range, and rounded outwards.
_HALVINGS = 48


def normal_laplace_tail(reach: Any, spread: Any, scale: Any) -> Any:
    r"""P(|N + L| > reach) for a normal N and an independent continuous Laplace L.

    Statement: with :math:`s` the standard deviation, :math:`b` the scale, :math:`z` the reach and
    :math:`\Phi` the normal distribution function:
    :math:`2\Phi(-z/s)+e^{s^2/2b^2}\bigl(e^{-z/b}\Phi(z/s-s/b)-e^{z/b}\Phi(-z/s-s/b)\bigr)`.
    Where an exponential would overflow, scaled error functions are used.

    Guarantee:
        To a relative error of about 1e-12 for z at least 0; also of arrays.

    Args:
        reach: how far from zero.
        spread: the standard deviation of N.
        scale: that of L.

    >>> round(float(normal_laplace_tail(3, 1, 1)), 4), round(float(normal_laplace_tail(3, 1e-12, 1)), 4)
    (0.0819, 0.0498)
    """
    from scipy.special import erfcx, ndtr

    width = np.maximum(spread / scale, 1e-9)
    depth = reach / scale
    far = depth / width
    inner = far - width
    bell = np.exp(-far * far / 2)
    near = np.where(
        inner < 0,
        bell * erfcx(np.maximum(-inner, 0.0) / _ROOT_TWO) / 2,
        np.exp(np.where(inner < 0, 0.0, width * width / 2 - depth)) * ndtr(inner),
    )
    return 2 * ndtr(-far) + near - bell * erfcx((far + width) / _ROOT_TWO) / 2


def spread_interval(
    sums: tuple[int, int],
    noise: DiscreteLaplace | DiscreteGaussian,
    *,
    failure: float,
    size: int | None,
    unit: int,
    variance: float | None = None,
    products: tuple[int, DiscreteLaplace | DiscreteGaussian] | None = None,
    rounding: float = 0.0,
) -> tuple[float, float]:
    r"""Where the population mean of values in [0, 1] lies, by its noisy sums and what is known of its spread.

    Statement: for independent values v of mean t, :math:`(1-t)\sum v-t\sum(1-v)` has mean 0 and n times the
    variance of the population; with n it tends to a normal law. Its law with the noise decides which t are
    plausible. The spread is public (`variance`), or estimated at each t by :math:`(1-t)^2\sum v+t^2\sum(1-v)-
    \sum v(1-v)`, plus a margin that makes up for the noise on it, and is never above :math:`t(1-t)`.

    Guarantee:
        Contains t with probability at least 1 - `failure` in the limit of many values, noise included at any
        size of it; and approximately for a given n. docs/proofs/mean.md, "The spread".

    Args:
        sums: the noisy sums of v and 1 - v, in steps of 1 / `unit`; with a public size their noises cancel.
        noise: on each sum.
        failure: inside (0, 1).
        size: the public number of values, or None where each sum has a noise of its own.
        variance: of the population, if it is public.
        products: else the noisy sum of v (1 - v), in steps of 1 / `unit` squared, and the law of its noise.
        rounding: how far a value can be from what was summed.

    Raises:
        InvalidParameter: neither a variance nor products.

    >>> from fractions import Fraction
    >>> noise = DiscreteLaplace(Fraction(1000))
    >>> low, high = spread_interval((500_000, 500_000), noise, failure=0.05, size=1000, unit=1000, variance=0)
    >>> round(low, 4), round(high, 4)
    (0.497, 0.503)
    """
    first, second = (total / unit for total in sums)
    total = first + second if size is None else float(size)
    if total <= 0:
        return 0.0, 1.0
    beyond, deviation = _noise_tail(noise, unit, private=size is None)
    # Discrete noise is within 1 of continuous noise, in a coupling; float64 adds its rounding of the sums.
    slack = 1 / unit + (abs(first) + abs(second)) * 2.0**-50
    center = min(max(first / total, 0.0), 1.0)
    if variance is not None:
        spread = _known(variance * total)
    elif products is not None:
        spread = _estimated(first, second, products, noise, unit, failure, deviation(center), center, size)
    else:
        raise InvalidParameter("variance or products must be given, to know the spread")
    wider = rounding * math.sqrt(total)

    def plausible(share: float) -> bool:
        reach = abs((1 - share) * first - share * second) - slack
        most = total * share * (1 - share)
        width = math.sqrt(min(max(spread(share), 0.0), most)) + wider
        return reach <= 0 or beyond(reach, width, share) >= failure

    low, high = (outermost(plausible, center, end, _HALVINGS) for end in (0.0, 1.0))
    return max(low - rounding, 0.0), min(high + rounding, 1.0)


def _known(variance: float) -> Callable[[float], float]:
    return lambda share: variance


def _estimated(
    first: float,
    second: float,
    products: tuple[int, DiscreteLaplace | DiscreteGaussian],
    noise: DiscreteLaplace | DiscreteGaussian,
    unit: int,
    failure: float,
    deviation: float,
    center: float,
    size: int | None,
) -> Callable[[float], float]:
    """The summed squared distances to each share, with a margin for their noise."""
    inner = products[0] / unit**2
    gaussian = isinstance(noise, DiscreteGaussian)
    scale, scatter = _scale(noise) / unit, _scale(products[1]) / unit**2
    if size is None:
        # What the noise of the sums adds is at most this, uncorrelated with the noise of the mean.
        scatter = math.hypot(scatter, scale / math.sqrt(8))
    unit_noise = deviation if gaussian else deviation / _ROOT_TWO
    margin = unit_noise**2 * _margin(gaussian, scatter / unit_noise**2, failure)

    def around(share: float) -> float:
        return (1 - share) ** 2 * first + share**2 * second - inner + margin

    # What is sampling and not noise in an observed distance tells nothing about the noise of the sums.
    sampled = max(around(center), 0.0)
    noisy = deviation**2 / (sampled + deviation**2)

    def spread(share: float) -> float:
        off = (1 - share) * first - share * second
        if size is None:
            slope = ((1 - share) ** 3 - share**3) / ((1 - share) ** 2 + share**2)
        else:
            slope = 1 - 2 * share
        return around(share) - noisy * slope * off

    return spread


def _scale(noise: DiscreteLaplace | DiscreteGaussian) -> float:
    return math.sqrt(noise.sigma_squared) if isinstance(noise, DiscreteGaussian) else float(noise.scale)


def _noise_tail(
    noise: DiscreteLaplace | DiscreteGaussian, unit: int, *, private: bool
) -> tuple[Callable[[float, float, float], float], Callable[[float], float]]:
    """The tail of normal error plus noise at a reach, a spread and a share; the deviation of the noise."""
    scale = _scale(noise) / unit

    def mixed(share: float) -> float:
        return math.hypot(1 - share, share) if private else 1.0

    if isinstance(noise, DiscreteGaussian):

        def gaussian(reach: float, spread: float, share: float) -> float:
            return math.erfc(reach / (_ROOT_TWO * math.hypot(spread, scale * mixed(share))))

        return gaussian, lambda share: scale * mixed(share)

    def laplace(reach: float, spread: float, share: float) -> float:
        if not private:
            return float(normal_laplace_tail(reach, spread, scale))
        # A difference of two Laplace noises is a mixture of them, with one weight below zero.
        large = min(max(share, 1 - share, 0.5 + 1e-4), 1 - 1e-9)
        small = 1 - large
        tails = normal_laplace_tail(reach, spread, scale * np.array([large, small]))
        return float((large**2 * tails[0] - small**2 * tails[1]) / (large**2 - small**2))

    return laplace, lambda share: _ROOT_TWO * scale * mixed(share)


def _margin(gaussian: bool, scatter: float, failure: float) -> float:
    """What is added to a noisy variance, so that the interval by it fails no more often than it may."""
    steps = min(max(math.ceil(math.log2(scatter) * _STEPS), -20 * _STEPS), 60 * _STEPS)
    return _least_margin(gaussian, steps, failure) * float(scatter / 2 ** (steps / _STEPS))


@lru_cache(maxsize=512)
def _least_margin(gaussian: bool, steps: int, failure: float) -> float:
    """The least margin for which no true variance is missed more often than `failure`, by quadrature.

    In units of the noise of the mean: variances V, noise of scale 2^(steps/8) on what is known of V.
    """
    from scipy.special import erfc, ndtri

    scatter = 2 ** (steps / _STEPS)

    def tail(reach: Floats, variance: Floats) -> Floats:
        if gaussian:
            return np.asarray(erfc(reach / np.sqrt(2 * (variance + 1))))
        return np.asarray(normal_laplace_tail(reach, np.sqrt(variance), 1.0))

    table = np.concatenate([[0.0], np.geomspace(1e-3, 1e4 * max(1.0, scatter), 400)])
    below, above = np.zeros(len(table)), (np.sqrt(table) + 1) * 4 * (2 - math.log(failure))
    for _ in range(50):
        middle = (below + above) / 2
        missed = tail(middle, table) > failure
        below, above = np.where(missed, middle, below), np.where(missed, above, middle)
    # More nodes where the variance comes out too small.
    grades = (np.arange(250) + 0.5) / 250
    chances, weights = grades**2, grades / grades.sum()
    laplace = np.where(chances < 0.5, np.log(2 * chances), -np.log(2 * (1 - np.minimum(chances, 1 - 1e-9))))
    nodes = scatter * (ndtri(chances) if gaussian else laplace)
    true = np.geomspace(0.02, 300 * max(1.0, scatter), 36)

    def worst(margin: float) -> float:
        used = np.sqrt(np.maximum(true[:, None] + nodes + margin, 0.0))
        reach = np.interp(used, np.sqrt(table), above)
        return float((tail(reach, np.broadcast_to(true[:, None], reach.shape)) @ weights).max())

    low, high = 0.0, scatter
    while worst(high) > failure and high < 1e3 * scatter:
        low, high = high, 2 * high
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if worst(middle) > failure else (low, middle)
    return high
