"""Sampling error of bounded data: from the data's value to the population's, whatever the population."""

import math


def mean_bounds(low: float, high: float, size: int, failure: float) -> tuple[float, float]:
    r"""Where the population mean of values in [0, 1] lies, if the sample mean is in [low, high].

    Statement: for n independent values in [0, 1] with mean :math:`\mu`, the sample mean is above :math:`m >
    \mu` with probability at most :math:`\exp(-n\,\mathrm{kl}(m, \mu))`, and likewise below, kl being the
    relative entropy of two coins. Hypothesis: independent draws of one population. Source: [Hoeffding63],
    theorem 1. No hypothesis on the spread; the bound is narrow near 0 and 1.

    Guarantee:
        Contains the population mean with probability at least 1 - `failure`, if [low, high] surely contains
        the sample mean; also with a lower bound of n for `size`. docs/proofs/mean.md.

    >>> low, high = mean_bounds(0.5, 0.5, 1000, 0.05)
    >>> round(low, 3), round(high, 3)
    (0.457, 0.543)
    """
    if size <= 0:
        return 0.0, 1.0
    depth = math.log(2 / failure) / size
    return _solve(low, 0.0, depth), _solve(high, 1.0, depth)


def _solve(mean: float, end: float, depth: float) -> float:
    """The number between `mean` and `end` whose relative entropy from `mean` is `depth`, rounded outwards."""
    inside, outside = mean, end
    for _ in range(60):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if _entropy(mean, middle) < depth else (inside, middle)
    return outside


def _entropy(left: float, right: float) -> float:
    total = 0.0
    for p, q in ((left, right), (1 - left, 1 - right)):
        if p > 0:
            total += p * math.log(p / q) if q > 0 else math.inf
    return total


def variance_bounds(low: float, high: float, size: int, failure: float) -> tuple[float, float]:
    r"""Where the population variance of values in [0, 1] lies, if the data's variance is in [low, high].

    Statement: for n independent values in [0, 1] with standard deviation :math:`\sigma`, the root of the
    unbiased sample variance is above :math:`\sigma + t` with probability at most :math:`\exp(-(n-1)t^2/2)`,
    and likewise below :math:`\sigma - t`. Source: [MaurerPontil09], theorem 10. The data's variance here
    divides by n.

    Guarantee:
        Contains the population variance with probability at least 1 - `failure`, if [low, high] surely
        contains the data's; also with a lower bound of n for `size`. docs/proofs/variance.md.

    >>> low, high = variance_bounds(0.05, 0.05, 10_000, 0.05)
    >>> round(low, 3), round(high, 3)
    (0.039, 0.063)
    """
    if size < 2:
        return 0.0, 0.25
    reach = math.sqrt(2 * math.log(2 / failure) / (size - 1))
    least, most = (math.sqrt(variance * size / (size - 1)) for variance in (low, high))
    return max(least - reach, 0.0) ** 2, min((most + reach) ** 2, 0.25)


def proportion_bounds(low: int, high: int, size: int, failure: float) -> tuple[float, float]:
    """Where the population proportion lies, if between `low` and `high` of `size` records match.

    Exact binomial limits [ClopperPearson34] at the two ends.

    Guarantee:
        Contains the population's with probability at least 1 - `failure`, for independent draws, if the
        count is surely between `low` and `high`. docs/proofs/mean.md.

    >>> low, high = proportion_bounds(50, 50, 100, 0.05)
    >>> round(low, 3), round(high, 3)
    (0.398, 0.602)
    """
    from scipy.special import betaincinv

    lower = float(betaincinv(low, size - low + 1, failure / 2)) if low > 0 else 0.0
    upper = float(betaincinv(high + 1, size - high, 1 - failure / 2)) if high < size else 1.0
    return lower, upper
