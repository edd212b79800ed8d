"""How far a sum of noisy counts is from the exact one: tails and deviations of sums of noise."""

import math
from functools import lru_cache

import numpy as np

from sfumato.grid import Floats
from sfumato.laws.zero_sum import log_total
from sfumato.mechanisms import Additive, LaplaceMechanism, ZeroSumMechanism
from sfumato.quantile_methods.tree_consistency import tail as bound

# What noisy counts have: independent noise, or noise that adds up to zero over all of them.
CountNoise = Additive | ZeroSumMechanism

# Sums that spread over more integers than this get a bound on their tail in place of the tail itself.
MOST_POINTS = 2**20
# A tail by Fourier transforms errs by about 1e-15; tails thinner than this get a bound.
THINNEST = 1e-9


def sum_tail(noise: CountNoise, left: tuple[int, int], right: tuple[int, int], failure: float) -> int:
    """The smallest b with P(u X - v Y > b) <= failure, where X and Y are sums of noise on different counts.

    Args:
        noise: the mechanism whose noise each count has; its law is symmetric. If it adds up to zero, X and Y
            together are all of it.
        left: (u, how many counts X adds up).
        right: (v, how many counts Y adds up).
        failure: the probability that the sum is larger.

    >>> from fractions import Fraction
    >>> noise = LaplaceMechanism(sensitivity=1, scale=Fraction(1))
    >>> sum_tail(noise, (1, 1), (1, 0), 0.025)
    3
    """
    (u, _), (v, _) = left, right
    if isinstance(noise, ZeroSumMechanism):
        # Y is -X.
        return (u + v) * _zero_sum_tail(noise, left[1], right[1], failure)
    common = math.gcd(u, v)
    # A multiple of a sum is above b where the sum is above b / common, rounded down.
    return common * _sum_tail(noise, (u // common, left[1]), (v // common, right[1]), failure)


@lru_cache(maxsize=2**14)
def rough_tail(noise: CountNoise, left: tuple[int, int], right: tuple[int, int], failure: float) -> int:
    """A number that is never less than `sum_tail`, and found at once."""
    (u, first), (v, second) = left, right
    if isinstance(noise, ZeroSumMechanism):
        return (u + v) * _rough_zero_sum_tail(noise, first, second, failure)
    most = max(u, v)
    variance = (u**2 * first + v**2 * second) / most**2
    return math.ceil(most * bound(noise, variance, 2 * failure))


def deviation(noise: CountNoise, left: tuple[int, int], right: tuple[int, int]) -> float:
    """The standard deviation of u X - v Y."""
    (u, first), (v, second) = left, right
    if isinstance(noise, ZeroSumMechanism):
        return (u + v) * _zero_sum_deviation(noise, first, second)
    each = 2 * float(noise.scale) ** 2 if isinstance(noise, LaplaceMechanism) else float(noise.sigma_squared)
    return math.sqrt(each * (u**2 * first + v**2 * second))


@lru_cache(maxsize=4096)
def _sum_tail(noise: Additive, left: tuple[int, int], right: tuple[int, int], failure: float) -> int:
    rough = rough_tail(noise, left, right, failure)
    first, second = (_above(noise, count) for count in (left[1], right[1]))
    if first is None or second is None or failure < THINNEST:
        return rough
    (u, _), (v, _) = left, right
    # P(u X - v Y > b) is the sum over y of P(Y = y) P(X > (b + v y) / u).
    middle = len(second) // 2
    weights = second[:-1] - second[1:]
    places = v * (np.arange(len(weights)) - middle)
    low, high = -1, rough
    while high - low > 1:
        b = (low + high) // 2
        least = (b + places) // u + 1 + len(first) // 2
        beyond = float(weights @ first[np.clip(least, 0, len(first) - 1)])
        low, high = (low, b) if beyond <= failure * (1 - 1e-9) else (b, high)
    return high


@lru_cache(maxsize=4096)
def _zero_sum_tail(noise: ZeroSumMechanism, first: int, second: int, failure: float) -> int:
    """The smallest b with P(X > b) <= failure, for the noise X on `first` of all counts."""
    law = _part_of_zero(noise, first, second)
    if law is None or failure < THINNEST:
        return _rough_zero_sum_tail(noise, first, second, failure)
    middle = len(law) // 2
    # P(X > b) for b from 0 on.
    beyond = np.cumsum(law[:middle:-1])[::-1]
    return int(np.argmax(np.append(beyond, 0.0) <= failure * (1 - 1e-9)))


def _rough_zero_sum_tail(noise: ZeroSumMechanism, first: int, second: int, failure: float) -> int:
    """By the tail of the best mean of both sums of independent noise, and the chance that it adds up to zero.

    Proof: docs/proofs/verified.md.
    """
    if not first or not second:
        return 0
    count = first + second
    rate = 1 / float(noise.scale)
    chance = math.exp(log_total(noise.scale, count) - count * math.log(1 / math.tanh(rate / 2)))
    independent = LaplaceMechanism(sensitivity=1, scale=noise.scale)
    return math.ceil(bound(independent, first * second / count, 2 * failure * chance))


@lru_cache(maxsize=4096)
def _zero_sum_deviation(noise: ZeroSumMechanism, first: int, second: int) -> float:
    law = _part_of_zero(noise, first, second)
    if law is None:
        # That of the best mean of two sums of independent noise, which is larger.
        return math.sqrt(2 * float(noise.scale) ** 2 * first * second / (first + second))
    places = np.arange(len(law)) - len(law) // 2
    return math.sqrt(float(law @ places.astype(np.float64) ** 2))


@lru_cache(maxsize=8)
def _part_of_zero(noise: ZeroSumMechanism, first: int, second: int) -> Floats | None:
    """The law of the noise on `first` counts where that on `second` others makes it zero; 0 in the middle."""
    independent = LaplaceMechanism(sensitivity=1, scale=noise.scale)
    points = _points(independent, max(first, second))
    if points is None:
        return None
    law: Floats = _sum_of(independent, first, points) * _sum_of(independent, second, points)
    law /= law.sum()
    return law


@lru_cache(maxsize=256)
def _above(noise: Additive, count: int) -> Floats | None:
    """P(sum >= k) for k from -N/2 to N/2, the middle of the array being k = 0; None where N would be huge."""
    points = _points(noise, count)
    return None if points is None else np.append(np.cumsum(_sum_of(noise, count, points)[::-1])[::-1], 0.0)


def _points(noise: Additive, count: int) -> int | None:
    """A power of two of which half holds nearly all of a sum; None where it would be huge."""
    if isinstance(noise, LaplaceMechanism):
        scale = float(noise.scale)
        reach = 45 * scale + 12 * math.sqrt(2 * count) * scale + 4
    else:
        reach = 12 * math.sqrt(max(count, 1) * float(noise.sigma_squared)) + 12
    points = 1 << math.ceil(math.log2(2 * reach + 2))
    return points if points <= MOST_POINTS else None


def _sum_of(noise: Additive, count: int, points: int) -> Floats:
    """The law of the sum of the noise of some counts, from -N/2 on, by a Fourier transform."""
    steps = np.minimum(np.arange(points), points - np.arange(points)).astype(np.float64)
    if isinstance(noise, LaplaceMechanism):
        single = np.exp(-steps / float(noise.scale))
    else:
        single = np.exp(-(steps**2) / (2 * float(noise.sigma_squared)))
    single /= single.sum()
    spectrum = np.fft.rfft(single) ** count
    law: Floats = np.roll(np.maximum(np.fft.irfft(spectrum, points), 0.0), points // 2)
    return law
