r"""The privacy curve of discrete Gaussian noise: upper bounds of delta at every epsilon.

A shift by the whole number :math:`D` has, exactly, with :math:`Y` the noise and
:math:`t = \varepsilon \sigma^2 / D`,

.. math:: \delta(\varepsilon) = P(Y > t - D/2) - e^\varepsilon P(Y > t + D/2).

The difference of two tails loses digits, so it is computed as a sum of positive terms: over integers where
they are few, else as an integral with the error of the midpoint rule added. Everything is in logarithms.
Proofs: docs/proofs/gaussian.md, whose numbering the comments use.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from sfumato.checks import Number, exact, positive, shown, whole
from sfumato.errors import InvalidParameter
from sfumato.privacy.conversions import exp_up, log_zcdp_delta

__all__ = ["gaussian_delta", "gaussian_vector_delta"]

MAX_EPSILON = 1000
MAX_SHIFT = 2**200
MIN_SIGMA_SQUARED, MAX_SIGMA_SQUARED = Fraction(1, 10**6), Fraction(2**400)
# Sums longer than this give way to the integral; its error is then below 1e-6 (relative).
_MOST_TERMS = 2**17
# Several entries need several sums. Shorter ones leave an error below 3e-4, which is 2e-5 in sigma.
_FEW_TERMS = 2**13
# Float64 rounding of one evaluation, measured against mpmath at 1e-12 (tests), is covered a thousandfold.
_MARGIN = 1e-9
# Integer vectors of a larger squared norm are treated by the rounded Gaussian, which is tight there.
_MOST_SQUARE = 2**16
_LOG_ROOT_TWO_PI = math.log(2 * math.pi) / 2
_BEND = 4 * math.exp(-0.5)  # total variation of the derivative of exp(-y^2/2)


class Part(NamedTuple):
    """One vector of discrete Gaussian noise: squared L2 shift, squared scale, coordinates that can move."""

    sensitivity_squared: Fraction
    sigma_squared: Fraction
    coordinates: int


def gaussian_delta(epsilon: Number, sigma_squared: Number, shift: int) -> float:
    r"""The delta of discrete Gaussian noise on a whole number that moves by at most `shift`.

    Guarantee:
        An upper bound of the exact :math:`\delta(\varepsilon)` of the *discrete* law, at most 1e-6
        (relative) above it; the continuous formula would understate it.

    Args:
        epsilon: in [0, 1000].
        sigma_squared: the parameter of the discrete Gaussian, in [1e-6, 2^400].
        shift: largest change of the integer, in [1, 2^200].

    Raises:
        InvalidParameter: a number out of range.

    References:
        [CKS20]; docs/proofs/gaussian.md.

    >>> round(gaussian_delta(0.6, 3.7**2, shift=1), 8), round(gaussian_delta(0.6, 3.7**2, shift=3), 8)
    (0.00169596, 0.13943357)
    """
    limit, variance = check_epsilon(epsilon), check_sigma_squared(sigma_squared)
    return exp_up(log_scalar_delta(limit, variance, whole("shift", shift, least=1, most=MAX_SHIFT)))


def gaussian_vector_delta(
    epsilon: Number, *, sigma_squared: Number, sensitivity_squared: Number, coordinates: int
) -> float:
    r"""The delta of discrete Gaussian noise on an integer vector.

    Guarantee:
        An upper bound of :math:`\delta(\varepsilon)` for every integer shift of at most `coordinates`
        entries and squared L2 norm at most `sensitivity_squared`. It is the largest exact delta of these
        shifts up to a factor of about :math:`1 + 2 e^{-2 \pi^2 \sigma^2 / \Delta_2^2}`, or, for squared norms
        above 2^16, the bound by the rounded continuous Gaussian. It is never above the zCDP conversion.

    Args:
        epsilon: in [0, 1000].
        sigma_squared: the parameter of the discrete Gaussian, in [1e-6, 2^400].
        sensitivity_squared: positive, at most 2^400.
        coordinates: how many entries one change of a record can move.

    Raises:
        InvalidParameter: a number out of range.

    References:
        [BW18], [CKS20]; docs/proofs/gaussian.md, theorems 3 and 4.

    >>> round(gaussian_vector_delta(1, sigma_squared=14 * 10**6, sensitivity_squared=10**6, coordinates=9), 8)
    9.52e-06
    >>> round(gaussian_vector_delta(1, sigma_squared=30, sensitivity_squared=2, coordinates=2), 8)
    5.13e-06
    """
    part = check_part(sensitivity_squared, sigma_squared, coordinates)
    return exp_up(log_vectors_delta(check_epsilon(epsilon), [part]))


def check_epsilon(value: object) -> Fraction:
    """An epsilon at which the curve is computed."""
    epsilon = exact("epsilon", value)
    if not 0 <= epsilon <= MAX_EPSILON:
        raise InvalidParameter(f"epsilon must be in [0, {MAX_EPSILON}], got epsilon={shown(value)}")
    return epsilon


def check_sigma_squared(value: object) -> Fraction:
    """A scale at which the curve is computed."""
    variance = positive("sigma_squared", value)
    if not MIN_SIGMA_SQUARED <= variance <= MAX_SIGMA_SQUARED:
        raise InvalidParameter(f"sigma_squared must be in [1e-6, 2^400], got sigma_squared={shown(value)}")
    return variance


def check_part(sensitivity_squared: object, sigma_squared: object, coordinates: object) -> Part:
    """Public parameters of one noisy vector."""
    square = positive("sensitivity_squared", sensitivity_squared)
    if square > MAX_SHIFT**2:
        raise InvalidParameter(
            f"sensitivity_squared must be at most 2^400, got sensitivity_squared={shown(sensitivity_squared)}"
        )
    count = whole("coordinates", coordinates, least=1, most=2**32)
    return Part(square, check_sigma_squared(sigma_squared), count)


def log_scalar_delta(
    epsilon: Fraction, sigma_squared: Fraction, shift: int, most_terms: int = _MOST_TERMS
) -> float:
    """log of an upper bound of delta for a whole shift (theorem 2), at most 0."""
    # The last integer of the noise that is not in the set where the loss passes epsilon; exact.
    start = math.floor(epsilon * sigma_squared / shift - Fraction(shift, 2)) + 1
    sigma = math.sqrt(sigma_squared)
    # Terms fall by e per sigma in the centre, per sigma^2/start further out; fifty of those are enough.
    first = max(start, -math.ceil(40 * sigma))
    count = 50 * sigma / max(1.0, first / sigma) + max(0, -first) + 100
    if count <= most_terms:
        value = _log_sum(epsilon, sigma_squared, shift, first, math.ceil(count), first > start)
    else:
        value = _log_integral(epsilon, sigma_squared, shift)
    return _up(value)


def log_vectors_delta(epsilon: Fraction, parts: Iterable[Part]) -> float:
    """log of an upper bound of delta for integer vectors that the data fix (theorems 4 and 5), at most 0."""
    squares: dict[Fraction, Fraction] = defaultdict(Fraction)
    counts: dict[Fraction, int] = defaultdict(int)
    for square, variance, count in parts:  # vectors with the same noise are one vector
        squares[variance] += square
        counts[variance] += count
    noisy = [Part(squares[variance], variance, counts[variance]) for variance in squares]
    if len(noisy) > 1:
        return min(log_parts_delta(epsilon, noisy), log_lattice_delta(epsilon, noisy))
    return _log_vector_delta(epsilon, noisy[0])


def log_parts_delta(epsilon: Fraction, parts: Iterable[Part]) -> float:
    """log of an upper bound of delta for several noisy vectors (theorems 1 and 3), at most 0.

    It also holds if a vector follows earlier noisy ones, and if entries have larger noise and move as much
    further.
    """
    noisy = list(parts)
    rho = sum((part.sensitivity_squared / (2 * part.sigma_squared) for part in noisy), Fraction(0))
    return min(log_zcdp_delta(rho, epsilon), log_rounded_delta(epsilon, noisy))


def log_rounded_delta(epsilon: Fraction, parts: list[Part]) -> float:
    """log of the bound by rounded continuous Gaussians (theorem 3), at most 0."""
    if any(part.sigma_squared < 1 for part in parts):
        return 0.0
    ratio = math.sqrt(sum((part.sensitivity_squared / part.sigma_squared for part in parts), Fraction(0)))
    # Outcomes so far out that the two laws differ more get a share of delta that does not show.
    tail = _log_continuous(float(epsilon), ratio) - 24 * math.log(2)
    squeeze = offset = spread = normal = 0.0
    for part in parts:
        variance, count = float(part.sigma_squared), part.coordinates
        weight = 1 / (24 * variance)
        squeeze += count * weight
        offset += weight * (math.sqrt(part.sensitivity_squared) + math.sqrt(count) / 2) ** 2 / variance
        spread += count * weight**2
        normal += 3 * count * math.exp(-2 * math.pi**2 * variance)
    widest = 1 / (24 * float(min(part.sigma_squared for part in parts)))
    noise = squeeze + 2 * math.sqrt(-tail * spread) - 2 * tail * widest
    stretch = (math.sqrt(offset) + math.sqrt(noise)) ** 2 + normal
    left = float(epsilon) - (squeeze + stretch) * (1 + _MARGIN)
    if left <= 0:
        return 0.0
    return _up(squeeze + float(np.logaddexp(_log_continuous(left, ratio), tail)))


def log_lattice_delta(epsilon: Fraction, parts: list[Part]) -> float:
    """log of the continuous delta plus what lattices of several scales can add (theorem 5), at most 0."""
    least = float(min(part.sigma_squared for part in parts))
    if least < 1:
        return 0.0
    ratio = math.sqrt(sum((part.sensitivity_squared / part.sigma_squared for part in parts), Fraction(0)))
    delta = _log_continuous(float(epsilon), ratio)
    variation = _log_variation(float(epsilon), ratio) - _LOG_ROOT_TWO_PI
    radius = min(2.0, math.sqrt(least) / 4)
    near = variation - math.log(12 * (least - 4 * radius**2))
    theta = sum(3 * part.coordinates * math.exp(-(math.pi**2) * float(part.sigma_squared)) for part in parts)
    root = (math.log(math.pi / 4) + variation + delta) / 2
    far = math.log(2) + float(np.logaddexp(delta, root)) - (math.pi * radius) ** 2 + theta
    return _up(float(np.logaddexp.reduce([delta, near, far])))


def _log_vector_delta(epsilon: Fraction, part: Part) -> float:
    """log of the largest delta of one integer vector, at most 0: theorem 4 up to a squared norm of 2^16."""
    most = math.floor(part.sensitivity_squared)
    if not 1 <= most <= _MOST_SQUARE:
        return log_parts_delta(epsilon, [part])
    worst = -math.inf
    # Squared norms of the shifts of which no entry can grow (lemma 3), the largest first.
    least = max(part.coordinates, most - 2 * math.isqrt(most // part.coordinates))
    for square in range(most, min(least, most) - 1, -1):
        covered = log_parts_delta(epsilon, [part._replace(sensitivity_squared=Fraction(square))])
        if covered <= worst:  # it bounds all shorter shifts too
            break
        worst = max(worst, min(covered, _log_square_delta(epsilon, part, square)))
    return worst


def _log_square_delta(epsilon: Fraction, part: Part, square: int) -> float:
    """log of the bound of theorem 4 for all shifts of this squared norm."""
    worst = -math.inf
    for divisor in range(1, math.isqrt(square) + 1):
        primitive, remainder = divmod(square, divisor**2)
        if not remainder and _has_primitive(primitive, part.coordinates):
            variance = part.sigma_squared * primitive
            along = log_scalar_delta(epsilon, variance, square // divisor, _FEW_TERMS)
            worst = max(worst, along + _log_excess(part.sigma_squared, primitive, part.coordinates))
    return worst


def _has_primitive(square: int, coordinates: int) -> bool:
    """Whether this can be the sum of squares of few enough whole numbers without a common divisor."""
    if coordinates == 1:
        return square == 1
    if coordinates == 2:
        pairs = ((a, math.isqrt(square - a * a)) for a in range(math.isqrt(square) + 1))
        return any(a * a + b * b == square and math.gcd(a, b) == 1 for a, b in pairs)
    # Squares are 0, 1 or 4 modulo 8: other numbers are not such a sum, or are one of even numbers alone.
    return coordinates > 4 or square % 8 not in ((0, 4, 7) if coordinates == 3 else (0,))


def _log_excess(sigma_squared: Fraction, square: int, coordinates: int) -> float:
    """log of 1 + eta of theorem 4, for primitive shifts of this squared norm; infinite without a bound."""
    if square == 1:
        return 0.0
    rate = 2 * math.pi**2 * float(sigma_squared / square)
    eta = 2 * _geometric(rate) if _has_primitive(square, 2) else 0.0
    if coordinates > 2:
        theta = (2 * square + 1) / (2 * square - 1)
        ratio = theta * math.exp(math.log(2 * square) / square - rate)
        more = math.sqrt(square * math.log(2 * square) / math.pi) * theta * ratio**2
        eta = max(eta, more) if ratio <= 1 else math.inf
    return math.log1p(eta)


def _log_sum(
    epsilon: Fraction, sigma_squared: Fraction, shift: int, first: int, count: int, cut: bool
) -> float:
    """log of the sum over y >= first of p(y) (1 - exp(-u(y))), u(y) = (y D + D^2/2) / sigma^2 - epsilon."""
    variance = float(sigma_squared)
    # Offsets from the first term, whose own exponent is exact, keep all exponents exact to rounding.
    steps = np.arange(count, dtype=np.float64)
    exponents = -(steps * steps + 2.0 * first * steps) / (2 * variance)
    gap = float((first * shift + Fraction(shift * shift, 2)) / sigma_squared - epsilon)
    logs = exponents + np.log(-np.expm1(-(gap + steps * float(shift / sigma_squared))))
    peak = float(logs.max())
    body = float(np.exp(logs - peak).sum())
    # What is cut off on either side is at most a geometric series, since p is log-concave (lemma 1).
    body += math.exp(float(exponents[-1]) - peak) * _geometric((first + count - 1) / variance)
    if cut:
        body += math.exp(-peak) * _geometric(-first / variance)
    return peak + math.log(body) - float(first * first / (2 * sigma_squared)) - _log_total(sigma_squared)


def _geometric(rate: float) -> float:
    """The sum of exp(-rate k) over k >= 1."""
    return math.exp(-rate) / -math.expm1(-rate)


def _log_total(sigma_squared: Fraction) -> float:
    """log of a lower bound of the sum of exp(-y^2 / (2 sigma^2)) over all integers y."""
    sigma = math.sqrt(sigma_squared)
    if sigma > 4:
        return math.log(sigma) + _LOG_ROOT_TWO_PI  # Poisson summation: what is left out is positive
    return math.log1p(2 * math.fsum(math.exp(-y * y / (2 * sigma * sigma)) for y in range(1, 200)))


def _log_integral(epsilon: Fraction, sigma_squared: Fraction, shift: int) -> float:
    """log of the continuous delta plus the error of the midpoint rule (theorem 2, large scales)."""
    sigma = math.sqrt(sigma_squared)
    ratio = shift / sigma
    # Lemma 2: the sum over integers is at most the integral plus an eighth of the variation of the slope.
    variation = _log_variation(float(epsilon), ratio)
    error = variation - math.log(8) - 2 * math.log(sigma) - _LOG_ROOT_TWO_PI
    return float(np.logaddexp(_log_continuous(float(epsilon), ratio), error))


def _log_variation(epsilon: float, ratio: float) -> float:
    """log of a bound of the variation of the slope in lemma 2, times sigma."""
    start = epsilon / ratio - ratio / 2
    # The four terms are those of the lemma, multiplied by exp(lift) so that they survive far out.
    lift = max(0.0, start) ** 2 / 2
    corner = math.exp(lift - start * start / 2)
    bend = _BEND if start < -1 else ratio * corner
    if -1 <= start < 1:
        bend = min(math.exp(lift) * _BEND, ratio * (math.exp(lift) * _BEND * (2 - start) / 2 - corner))
    turn = 2 * ratio if start >= 0 else min(4 * ratio, _BEND / 2)
    return math.log(bend + turn + ratio + ratio * corner) - lift


def _log_continuous(epsilon: float, ratio: float) -> float:
    r"""log of :math:`\Phi(-z) - e^\varepsilon \Phi(-z-m)`, z = epsilon/m - m/2, the curve of [BW18].

    With R the Mills ratio it is phi(z) (R(z) - R(z + m)), which does not underflow.
    """
    from scipy.special import erfcx, log_ndtr, ndtr  # here, because `import sfumato` loads NumPy alone

    start = epsilon / ratio - ratio / 2
    if start < -5:
        return math.log(ndtr(-start) - math.exp(epsilon + log_ndtr(-start - ratio)))
    near, far = (math.sqrt(math.pi / 2) * erfcx(np.array([start, start + ratio]) / math.sqrt(2))).tolist()
    fall = near - far
    if start > 60:
        # Far out both forms lose digits; 1 - x R(x) < 1 / (1 + x^2) and R(x) < 1 / x hold everywhere.
        fall = min(ratio / (1 + start * start), 1 / start)
    elif ratio < 2e-4:
        # -R' = 1 - x R is positive and convex, so the trapezium rule is an upper bound without cancellation.
        fall = ratio * ((1 - start * near) + (1 - (start + ratio) * far)) / 2
    return math.log(fall) - start * start / 2 - _LOG_ROOT_TWO_PI


def _up(log_value: float) -> float:
    """A log-probability with the rounding of its computation added, at most 0."""
    return min(0.0, log_value + _MARGIN + 1e-15 * abs(log_value))
