"""Intervals for shares: for the probability of an answer, and mapped from there to the share of truths."""

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from sfumato.local.design import Floats

Pair = tuple[float, float]


def never_certain(share: float, size: int, low: float = 0.0, high: float = 1.0) -> float:
    """A share of answers, moved off 0 and 1 by half an answer or to the range that a design has."""
    if 0 < share < 1:
        return share
    return min(max(share, 0.5 / size, low), 1 - 0.5 / size, high)


def wilson(counts: Floats, size: int, failure: float) -> tuple[Floats, Floats]:
    """Wilson's score intervals of probabilities; about right on average, and never outside [0, 1]."""
    z = deviate(failure)
    share, slack = counts / size, z * z / size
    centre = (share + slack / 2) / (1 + slack)
    reach = z * np.sqrt(share * (1 - share) / size + slack / (4 * size)) / (1 + slack)
    return np.maximum(centre - reach, 0.0), np.minimum(centre + reach, 1.0)


def deviate(failure: float) -> float:
    """The standard normal quantile that is passed on either side with probability `failure` in all."""
    return -NormalDist().inv_cdf(failure / 2)


def exact_limits(counts: Floats, size: int, failure: float) -> tuple[Floats, Floats]:
    """Binomial limits of probabilities [ClopperPearson34], which hold at least as often as promised."""
    from scipy.special import betaincinv

    some, not_all = np.maximum(counts, 1), np.minimum(counts, size - 1)
    low = np.where(counts > 0, betaincinv(some, size - some + 1, failure / 2), 0.0)
    high = np.where(counts < size, betaincinv(not_all + 1, size - not_all, 1 - failure / 2), 1.0)
    return low, high


def mapped(ends: tuple[Floats, Floats], true: float, false: float) -> tuple[Floats, Floats]:
    """Shares whose answers have a probability between the ends; clipped to [0, 1]."""
    # The map is monotone, so the share is inside exactly when the probability is.
    shares = np.sort([(end - false) / (true - false) for end in ends], axis=0)
    low, high = np.clip(shares, 0.0, 1.0)
    return low, high


def respondents_interval(count: int, size: int, true: float, false: float, failure: float) -> Pair:
    """Where the share among these very respondents lies, by inverting the exact law of the count.

    With m truths of yes the count is a sum of m coins of probability `true` and the rest of `false`, which
    grows with m; the m whose two tails are both above half of `failure` are kept.
    """
    if true < false:
        return respondents_interval(size - count, size, 1 - true, 1 - false, failure)

    def at_least(yes: int) -> float:
        return _tail(count, yes, size, true, false)

    def at_most(yes: int) -> float:
        return _tail(size - count, size - yes, size, 1 - false, 1 - true)

    low = _first(lambda yes: at_least(yes) > failure / 2, size)
    high = size - _first(lambda no: at_most(size - no) > failure / 2, size)
    return min(low, size) / size, max(high, 0) / size


def _first(holds: Callable[[int], bool], size: int) -> int:
    """The least of 0..size for which a monotone condition holds; size if it never does."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _tail(count: int, yes: int, size: int, true: float, false: float) -> float:
    """P(A + B >= count) for A of `yes` coins of probability `true`, B of the others of `false`."""
    from scipy.special import gammaln, xlog1py, xlogy

    reach = 12 * math.sqrt(yes * true * (1 - true)) + 12  # what is beyond weighs less than e^-70
    low = max(math.floor(yes * true - reach), 0)
    heads = np.arange(low, min(math.ceil(yes * true + reach), yes) + 1, dtype=np.float64)
    logs = gammaln(yes + 1) - gammaln(heads + 1) - gammaln(yes - heads + 1)
    mass = np.exp(logs + xlogy(heads, true) + xlog1py(yes - heads, -true))
    return float(np.clip((mass * _upper(count - heads, size - yes, false)).sum(), 0.0, 1.0))


def _upper(least: Floats, size: int, p: float) -> Floats:
    """P(B >= least) for B of `size` coins of probability p."""
    from scipy.special import betainc

    inside = (least >= 1) & (least <= size)
    safe = np.where(inside, least, 1.0)
    tail = betainc(safe, np.maximum(size - safe + 1, 1.0), p)
    result: Floats = np.where(least <= 0, 1.0, np.where(inside, tail, 0.0))
    return result
