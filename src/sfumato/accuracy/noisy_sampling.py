"""Population shares by noisy counts: the law of a binomial count with its noise, inverted."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from sfumato.accuracy.ratio import difference_tail, outermost
from sfumato.accuracy.sampling import proportion_bounds
from sfumato.grid import Floats
from sfumato.laws import DiscreteGaussian, DiscreteLaplace

Noise = DiscreteLaplace | DiscreteGaussian
# Sums leave out less than this on each side, and are right to about 1e-10 (relative) otherwise.
_LEFT_OUT, _ROUNDING = 1e-13, 1e-9
# A sum over more values of the noise than this gives way to a closed form, or to a sum in strides.
_MOST_TERMS = 4000
_SMOOTH = 64
# Beyond this the failure is divided between noise and sampling, which needs no sums.
_MOST_ROWS = 10**10
# An end is found to 2^-44 of the range, and rounded outwards.
_HALVINGS = 44


def noisy_proportion_bounds(count: int, size: int, noise: Noise, failure: float) -> tuple[float, float]:
    r"""Where the population share lies, by a noisy count that was clamped to 0 to n.

    Statement: if the population share is p, the count released is :math:`Y=\min(\max(K+Z,0),n)` with K
    binomial (n, p) and Z the noise. :math:`P(Y\le y)` decreases in p. The interval holds all p for which
    neither :math:`P(Y\le y)` nor :math:`P(Y\ge y)` is below half of the failure.

    Hypotheses: independent draws of one population; a public number of values. Source: the construction of
    [ClopperPearson34], for the law of the noisy count.

    Guarantee:
        Contains the population share with probability at least 1 - `failure`, whatever it is: no limit
        theorem is used, and what sums leave out is added to the failure. docs/proofs/mean.md.

    Args:
        count: the noisy count, in 0..n.
        size: the number of values n, at least 1.
        noise: its law, centred at 0.
        failure: inside (0, 1).

    >>> from fractions import Fraction
    >>> low, high = noisy_proportion_bounds(300, 1000, DiscreteLaplace(Fraction(10)), 0.05)
    >>> round(low, 3), round(high, 3)
    (0.26, 0.341)
    """
    if size > _MOST_ROWS:
        radius = noise.radius(1 - failure / 2)
        return proportion_bounds(max(count - radius, 0), min(count + radius, size), size, failure / 2)
    target = failure / 2 * (1 - _ROUNDING) - 2 * _LEFT_OUT
    low, high = 0.0, 1.0
    if count > 0:
        # P(Y >= y; p) = P(others + noise <= n - y; 1 - p), for the noise is symmetric.
        low = 1 - _largest(_below(size - count, size, noise), target, 1 - count / size)
    if count < size:
        high = _largest(_below(count, size, noise), target, count / size)
    return max(low, 0.0), min(high, 1.0)


def noisy_share_bounds(counts: tuple[int, int], noise: Noise, failure: float) -> tuple[float, float]:
    r"""Where the population share lies, by noisy counts of matches and of others, their number being private.

    Statement: for the population share t and n values, :math:`(1-t)A-tB` is :math:`K-nt` with K binomial
    (n, t), plus :math:`(1-t)X-tY` for the noises. The interval holds all t for which the observed number is
    not in either tail of half of the failure, with n at the upper end of what the noisy counts allow.

    Guarantee:
        Contains the share with probability at least 1 - `failure`, up to the supposition that more values
        make the tails heavier, which holds to the accuracy of the normal limit. docs/proofs/mean.md.

    Args:
        counts: of matches and of others, each with its noise, possibly clamped at 0.
        noise: its law, centred at 0.
        failure: inside (0, 1).

    >>> from fractions import Fraction
    >>> low, high = noisy_share_bounds((300, 700), DiscreteLaplace(Fraction(10)), 0.05)
    >>> round(low, 3), round(high, 3)
    (0.262, 0.339)
    """
    first, second = counts
    if first + second <= 0:
        return 0.0, 1.0
    # A twentieth of the failure pays for the number of values.
    size = first + second + 2 * noise.radius((1 - failure / 20) ** 0.5)
    target = failure * 19 / 40
    slack = 1 + (abs(first) + abs(second)) * 2.0**-50

    def plausible(share: float) -> bool:
        off = abs((1 - share) * first - share * second) - slack
        above = first * (1 - share) > second * share
        return off <= 0 or _beyond(off, size, share if above else 1 - share, noise) >= target

    center = min(max(first / (first + second), 0.0), 1.0)
    return outermost(plausible, center, 0.0, _HALVINGS), outermost(plausible, center, 1.0, _HALVINGS)


def _beyond(reach: float, size: int, share: float, noise: Noise) -> float:
    """P(K - n share + (1 - share) X - share Y > reach) for K binomial, by a sum over K."""
    from scipy.special import gammaln

    if not 0 < share < 1:
        return float(difference_tail(np.array([reach]), share, noise)[0])
    deviation = _deviation(size, share)
    stride = max(math.floor(deviation / 128), 1)
    width = math.ceil(8 * deviation) + 40
    center = round(size * share)
    ks = np.arange(max(center - width, 0), min(center + width, size) + 1, stride)
    logs = gammaln(size + 1.0) - gammaln(ks + 1.0) - gammaln(size - ks + 1.0)
    chances = np.exp(logs + ks * math.log(share) + (size - ks) * math.log1p(-share))
    away: Floats = np.asarray(reach - ks + size * share, dtype=np.float64)
    return float(chances @ difference_tail(away, share, noise) / chances.sum())


def _largest(below: Callable[[float], float], target: float, start: float) -> float:
    """The largest share with below(share) > target, rounded up; `below` decreases."""
    from scipy.optimize import brentq

    def excess(logit: float) -> float:
        return math.log(max(below(_share(logit)), 1e-300) / target)

    low, high = _logit(max(start, 1e-300)), 36.0
    while excess(low) < 0:
        low -= 1 + abs(low) / 4
        if low < -690:
            return 0.0
    if excess(high) > 0:
        return 1.0
    found = brentq(excess, low, high, xtol=1e-11, rtol=1e-13)
    # Outwards, until it is checked that the share is beyond.
    step = 1e-10 * (1 + abs(found))
    while excess(found) > 0:
        found += step
        step *= 2
    return _share(found)


def _share(logit: float) -> float:
    return 1 / (1 + math.exp(-logit)) if logit > -700 else 0.0


def _logit(share: float) -> float:
    return min(math.log(share) - math.log1p(-share), 35.0) if share < 1 else 35.0


def _below(limit: int, size: int, noise: Noise) -> Callable[[float], float]:
    """P(K + Z <= limit) as a function of the share, for K binomial and 0 <= limit < size."""
    radius = noise.radius(1 - _LEFT_OUT)
    start, end = max(limit - radius, 0), min(limit + radius, size)
    if end - start <= _MOST_TERMS:
        return _windowed(start, end, limit, size, noise)
    if isinstance(noise, DiscreteGaussian):
        return _strided(limit, size, noise)
    tilted, scale = _tilted(limit, size, noise), float(noise.scale)

    @cache
    def summed() -> Callable[[float], float]:
        return _windowed(start, end, limit, size, noise)

    # The closed form loses digits where the noise is far narrower than the binomial.
    return lambda share: tilted(share) if _deviation(size, share) <= 20 * scale else summed()(share)


def _deviation(size: int, share: float) -> float:
    return math.sqrt(size * share * (1 - share))


def _windowed(start: int, end: int, limit: int, size: int, noise: Noise) -> Callable[[float], float]:
    """Counts before `start` are surely below, those after `end` are not; between, a sum over each count."""
    from scipy.special import bdtr, gammaln

    counts = np.arange(start, end + 1)
    chances = noise.cdf(limit - counts)
    ways = gammaln(size + 1.0) - gammaln(counts + 1.0) - gammaln(size - counts + 1.0)

    def below(share: float) -> float:
        logs = ways + counts * math.log(share) + (size - counts) * math.log1p(-share)
        surely = float(bdtr(start - 1, size, share)) if start > 0 else 0.0
        return surely + float(np.exp(logs) @ chances)

    return below


def _tilted(limit: int, size: int, noise: DiscreteLaplace) -> Callable[[float], float]:
    """By three binomial tails: an exponential times a binomial law is a binomial law of another share."""
    from scipy.special import bdtr, bdtrc

    rate = float(1 / noise.scale)
    weight = 1 / (1 + math.exp(-rate))

    def below(share: float) -> float:
        up, down = share * math.exp(rate), share * math.exp(-rate)
        # Log of the generating function at e^rate and e^-rate, without losing digits.
        grown = size * math.log1p(share * math.expm1(rate)) - rate * (limit + 1)
        shrunk = size * math.log1p(share * math.expm1(-rate)) + rate * limit
        left = bdtr(limit, size, up / (1 - share + up))
        right = bdtrc(limit, size, down / (1 - share + down))
        total = bdtr(limit, size, share)
        total += weight * (_scaled(shrunk, right) - _scaled(grown, left))
        return float(total)

    return below


def _scaled(log_factor: float, tail: float) -> float:
    return math.exp(log_factor + math.log(tail)) if tail > 0 else 0.0


def _strided(limit: int, size: int, noise: DiscreteGaussian) -> Callable[[float], float]:
    """Every count, or every k-th where both laws are so smooth that the sum is the same to 1e-15."""
    from scipy.special import gammaln

    sigma = math.sqrt(noise.sigma_squared)

    def below(share: float) -> float:
        deviation = _deviation(size, share)
        stride = max(math.floor(min(deviation, sigma) / 6), 1) if min(deviation, sigma) > _SMOOTH else 1
        reach = math.ceil(8.2 * deviation) + 60
        center = round(size * share)
        start, end = max(center - reach, 0), min(center + reach, size)
        counts = np.arange(start, end + 1, stride if start > 0 and end < size else 1)
        logs: Floats = gammaln(size + 1.0) - gammaln(counts + 1.0) - gammaln(size - counts + 1.0)
        logs = logs + counts * math.log(share) + (size - counts) * math.log1p(-share)
        chances = np.exp(logs)
        return float(chances @ noise.cdf(limit - counts)) / float(chances.sum())

    return below
