"""How much noise a budget needs: the smallest scale that keeps the promise, checked before it is returned."""

import math
from collections.abc import Callable
from fractions import Fraction

from sfumato.checks import Number, boolean, positive, shown, whole
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.privacy.conversions import log_fraction, zcdp_rho
from sfumato.privacy.definitions import ZCDP, ApproxDP
from sfumato.privacy.events import MAX_COORDINATES, MAX_SENSITIVITY, scalar_shift
from sfumato.privacy.gaussian import (
    MAX_EPSILON,
    MAX_SHIFT,
    MAX_SIGMA_SQUARED,
    MIN_SIGMA_SQUARED,
    Part,
    gaussian_delta,
    gaussian_vector_delta,
    log_parts_delta,
    log_scalar_delta,
    log_vectors_delta,
)

__all__ = ["gaussian_delta", "gaussian_sigma_squared", "gaussian_vector_delta", "laplace_scale"]

# sigma^2 is rounded up to this many significant bits: 2^-24 (relative) more noise, cheap to sample.
_BITS = 24
MIN_EPSILON = Fraction(1, 10**9)
MIN_DELTA = Fraction(1, 10**300)


def laplace_scale(sensitivity: int, epsilon: Number) -> Fraction:
    r"""The scale of discrete Laplace noise for a pure epsilon, exactly.

    Guarantee:
        Noise of the returned scale :math:`b = \Delta / \varepsilon` on integers that one change of a record
        moves by at most :math:`\Delta` (in L1 for vectors) is exactly :math:`\varepsilon`-DP.

    Args:
        sensitivity: a positive whole number.
        epsilon: positive; read as its decimal, so 0.1 is 1/10.

    Raises:
        InvalidParameter: a number out of range.

    References:
        [DR14], theorem 3.6; [CKS20] for the discrete law; docs/proofs/laplace.md.

    >>> laplace_scale(3, 0.1)
    Fraction(30, 1)
    """
    return whole("sensitivity", sensitivity, least=1, most=MAX_SENSITIVITY) / positive("epsilon", epsilon)


def gaussian_sigma_squared(
    budget: ApproxDP | ZCDP, *, sensitivity_squared: Number, coordinates: int, one_vector: bool = True
) -> Fraction:
    r"""The parameter :math:`\sigma^2` of discrete Gaussian noise for a budget.

    Guarantee:
        Noise with the returned :math:`\sigma^2` on integers that one change of a record moves in at most
        `coordinates` entries, by at most `sensitivity_squared` in squared L2 norm, satisfies `budget`.
        For ZCDP it is exact. For ApproxDP and one coordinate :math:`\sigma` is within 1e-6 (relative) of the
        smallest that the exact curve of the discrete law allows. With more coordinates it is within 1e-3 for
        epsilon up to 10 and delta up to 1e-6, over all integer vectors within the two limits. The classical
        formula is never used.

    Args:
        budget: ZCDP, or ApproxDP with epsilon in [1e-9, 1000] and delta at least 1e-300.
        sensitivity_squared: positive; the square of a whole number if coordinates is 1.
        coordinates: how many entries one change of a record can move.
        one_vector: whether the data alone fix the integer vector and all entries get this noise. If not,
            parts of it may follow earlier answers, or get larger noise and move as much further; the result
            is then the smaller of the zCDP value and the one by rounded continuous Gaussians, which is
            within 1e-3 where sigma is above about 100.

    Raises:
        InvalidParameter: a number out of range.
        NotSupported: the scale that is needed is outside [1e-3, 2^200].

    References:
        [CKS20], [BW18]; docs/proofs/gaussian.md.

    >>> sigma_squared = gaussian_sigma_squared(ApproxDP(1, 1e-5), sensitivity_squared=2**40, coordinates=1)
    >>> round(float(sigma_squared) ** 0.5 / 2**20, 4)
    3.7306
    >>> gaussian_sigma_squared(ZCDP(0.1), sensitivity_squared=2, coordinates=2)
    Fraction(10, 1)
    >>> histogram = gaussian_sigma_squared(ApproxDP(1, 1e-6), sensitivity_squared=2, coordinates=2)
    >>> round(float(histogram) ** 0.5, 3)
    5.977
    """
    square = positive("sensitivity_squared", sensitivity_squared)
    count = whole("coordinates", coordinates, least=1, most=MAX_COORDINATES)
    if isinstance(budget, ZCDP):
        if count == 1:
            scalar_shift(square)
        return square / (2 * budget.rho)
    if not isinstance(budget, ApproxDP):
        raise InvalidParameter(f"budget must be an ApproxDP or a ZCDP, got budget={budget!r}")
    epsilon, delta = budget.epsilon, budget.delta
    if not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        raise InvalidParameter(f"epsilon must be in [1e-9, {MAX_EPSILON}], got epsilon={shown(epsilon)}")
    if delta < MIN_DELTA:
        raise InvalidParameter(f"delta must be at least 1e-300, got delta={shown(delta)}")
    if square > MAX_SHIFT**2:
        raise InvalidParameter(f"sensitivity_squared must be at most 2^400, got {shown(square)}")
    target = log_fraction(delta) - 1e-12
    safe = square / (2 * zcdp_rho(epsilon, delta))
    if count == 1:
        shift = scalar_shift(square)
        return _smallest(lambda variance: log_scalar_delta(epsilon, variance, shift) <= target, safe)

    curve = log_vectors_delta if boolean("one_vector", one_vector) else log_parts_delta

    def fits(variance: Fraction) -> bool:
        return curve(epsilon, [Part(square, variance, count)]) <= target

    return _smallest(fits, safe)


def _smallest(fits: Callable[[Fraction], bool], safe: Fraction) -> Fraction:
    """The smallest short variance that fits, given one that should; the last step checks it again."""
    high = _bounded(_short_up(safe))
    while not fits(high):
        high = _bounded(2 * high)
    low = high / 2
    while low > MIN_SIGMA_SQUARED and fits(low):
        low, high = low / 2, low
    low = max(low, MIN_SIGMA_SQUARED)
    # Bisection on short numbers: the middle rounds up, so it stops when no short number is between.
    while True:
        middle = _short_up((low + high) / 2)
        if not low < middle < high:
            break
        if fits(middle):
            high = middle
        else:
            low = middle
    if not fits(high):
        raise NotSupported(f"no sigma_squared near {shown(high)} was proved to meet the budget")
    return high


def _bounded(variance: Fraction) -> Fraction:
    if not MIN_SIGMA_SQUARED <= variance <= MAX_SIGMA_SQUARED:
        raise NotSupported(f"sigma_squared must stay in [1e-6, 2^400], but about {shown(variance)} is needed")
    return variance


def _short_up(value: Fraction) -> Fraction:
    """The smallest number with `_BITS` significant bits that is at least `value`."""
    exponent = math.floor(math.log2(value.numerator) - math.log2(value.denominator)) + 1 - _BITS
    unit = Fraction(2) ** exponent
    return math.ceil(value / unit) * unit
