"""The tails of sums of independent noise: how far a sum of noisy counts is from the exact one."""

import math
from functools import lru_cache

import numpy as np

from sfumato.grid import Floats
from sfumato.mechanisms import Additive, LaplaceMechanism
from sfumato.quantile_methods.tree_consistency import tail as bound

# Sums that spread over more integers than this get a bound on their tail in place of the tail itself.
MOST_POINTS = 2**20
# A tail by Fourier transforms errs by about 1e-15; tails thinner than this get a bound.
THINNEST = 1e-9


def sum_tail(noise: Additive, left: tuple[int, int], right: tuple[int, int], failure: float) -> int:
    """The smallest b with P(u X - v Y > b) <= failure, where X and Y are sums of independent noise.

    Args:
        noise: the mechanism whose noise each count has; its law is symmetric.
        left: (u, how many counts X adds up).
        right: (v, how many counts Y adds up).
        failure: the probability that the sum is larger.

    >>> from fractions import Fraction
    >>> noise = LaplaceMechanism(sensitivity=1, scale=Fraction(1))
    >>> sum_tail(noise, (1, 1), (1, 0), 0.025)
    3
    """
    (u, _), (v, _) = left, right
    common = math.gcd(u, v)
    # A multiple of a sum is above b where the sum is above b / common, rounded down.
    return common * _sum_tail(noise, (u // common, left[1]), (v // common, right[1]), failure)


@lru_cache(maxsize=2**14)
def rough_tail(noise: Additive, left: tuple[int, int], right: tuple[int, int], failure: float) -> int:
    """A number that is never less than `sum_tail`, and found at once."""
    most = max(left[0], right[0])
    variance = (left[0] ** 2 * left[1] + right[0] ** 2 * right[1]) / most**2
    return math.ceil(most * bound(noise, variance, 2 * failure))


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


@lru_cache(maxsize=256)
def _above(noise: Additive, count: int) -> Floats | None:
    """P(sum >= k) for k from -N/2 to N/2, the middle of the array being k = 0; None where N would be huge."""
    if isinstance(noise, LaplaceMechanism):
        scale = float(noise.scale)
        reach = 45 * scale + 12 * math.sqrt(2 * count) * scale + 4
    else:
        reach = 12 * math.sqrt(max(count, 1) * float(noise.sigma_squared)) + 12
    points = 1 << math.ceil(math.log2(2 * reach + 2))
    if points > MOST_POINTS:
        return None
    steps = np.minimum(np.arange(points), points - np.arange(points)).astype(np.float64)
    if isinstance(noise, LaplaceMechanism):
        single = np.exp(-steps / scale)
    else:
        single = np.exp(-(steps**2) / (2 * float(noise.sigma_squared)))
    single /= single.sum()
    spectrum = np.fft.rfft(single) ** count
    law = np.maximum(np.fft.irfft(spectrum, points), 0.0)
    shifted = np.roll(law, points // 2)
    return np.append(np.cumsum(shifted[::-1])[::-1], 0.0)
