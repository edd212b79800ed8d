r"""From one definition of privacy to another, always rounded so that the promise is kept.

All three functions below read the same inequality in a different direction. A :math:`\rho`-zCDP
mechanism is :math:`(\varepsilon, \delta)`-DP whenever, for some order :math:`\alpha = 1 + t > 1`,

.. math:: \log \delta \ge t (\alpha \rho - \varepsilon) - \log t + \alpha \log(1 - 1/\alpha)

([CKS20]; docs/proofs/composition.md). Every order proves something, so a search that stops early is still
safe; what must be bounded is the rounding of one evaluation, and `_SLACK` does that.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from sfumato.checks import Number, between, exact, shown
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.privacy.definitions import ZCDP, ApproxDP, PureDP

__all__ = ["pure_to_zcdp", "zcdp_delta", "zcdp_epsilon", "zcdp_rho", "zcdp_to_approx"]

# One evaluation has a dozen float64 operations on terms whose absolute values are added up: 2^-48 of that
# sum covers their rounding more than ten times.
_SLACK = 2.0**-48
# Bracket of t in logarithms: outside it exp(t) is not a float, and no budget within the limits needs it.
_LOW, _HIGH = -600.0, 600.0
_LEAST, _MOST = Fraction(1, 10**300), Fraction(10**12)


def zcdp_delta(rho: Number, epsilon: Number) -> float:
    r"""The delta that zCDP gives at an epsilon.

    Guarantee:
        Every :math:`\rho`-zCDP mechanism is :math:`(\varepsilon, \delta)`-DP with the returned delta, also
        when the float is read as its shortest decimal. Within 1e-12 (relative) of the best that [CKS20]
        proves, unless it is below 1e-300.

    Args:
        rho: in [1e-300, 1e12].
        epsilon: zero, or in [1e-300, 1e12].

    Raises:
        InvalidParameter: a number out of range.

    References:
        [CKS20]; [BS16] for zCDP; docs/proofs/composition.md.

    >>> round(zcdp_delta(0.05, 1), 8)
    0.00038571
    """
    return exp_up(log_zcdp_delta(_within("rho", rho), _within("epsilon", epsilon, zero=True)))


def zcdp_epsilon(rho: Number, delta: Number) -> float:
    r"""The epsilon that zCDP gives at a delta.

    Guarantee:
        Every :math:`\rho`-zCDP mechanism is :math:`(\varepsilon, \delta)`-DP with the returned epsilon, also
        when the float is read as its shortest decimal. Zero means that delta alone covers everything.

    Args:
        rho: in [1e-300, 1e12].
        delta: inside (0, 1).

    Raises:
        InvalidParameter: a number out of range.

    References:
        [CKS20]; docs/proofs/composition.md.

    >>> round(zcdp_epsilon(0.05, 1e-6), 6)
    1.471595
    """
    spent = float(_within("rho", rho))
    log_delta = log_fraction(between("delta", delta, 0, 1))
    # Stationary point: rho t^2 + log(1 + t) = log(1/delta); the left side increases with t.
    order = _bisect(lambda t: spent * t * t + math.log1p(t) + log_delta)
    terms = (spent * (1 + order), -math.log1p(1 / order), -log_delta / order, -math.log1p(order) / order)
    return max(0.0, _sum_up(terms))


def zcdp_rho(epsilon: Number, delta: Number) -> Fraction:
    r"""The largest rho whose conversion stays within an (epsilon, delta) target.

    Guarantee:
        Every mechanism with the returned :math:`\rho`-zCDP is :math:`(\varepsilon, \delta)`-DP. The value is
        rounded down to a short decimal, at most 1e-9 (relative) below the best.

    Args:
        epsilon: in [1e-300, 1e12].
        delta: inside (0, 1).

    Raises:
        InvalidParameter: a number out of range.
        NotSupported: the target is beyond floating point.

    References:
        [CKS20]; docs/proofs/composition.md.

    >>> zcdp_rho(1, 1e-6).limit_denominator(10**4)
    Fraction(52, 2135)
    """
    target = _within("epsilon", epsilon)
    # Whoever checks the conversion leaves a margin of 1e-12 for the rounding of its logarithm.
    log_delta = log_fraction(between("delta", delta, 0, 1)) - 2e-12
    limit = float(target)

    def excess(t: float) -> float:
        # At the stationary point of t the rho is left/t^2, and epsilon then falls as t grows.
        left = -log_delta - math.log1p(t)
        return limit - (left * (2 * t + 1) / t / t - math.log1p(1 / t))

    order = _bisect(excess)
    terms = (-limit, -math.log1p(1 / order), -log_delta / order, -math.log1p(order) / order)
    rho = -_sum_up(terms) / (1 + order)
    if not rho > 0:
        raise NotSupported(f"no rho was found for epsilon={shown(target)} and delta={shown(delta)}")
    return decimal_down(rho)


def zcdp_to_approx(budget: ZCDP, delta: Number) -> ApproxDP:
    """The approximate guarantee of a zCDP budget at a delta.

    Guarantee:
        What satisfies `budget` satisfies the result; epsilon is rounded up to a short decimal.

    Raises:
        InvalidParameter: delta is not inside (0, 1).

    References:
        [CKS20]; docs/proofs/composition.md.

    >>> zcdp_to_approx(ZCDP(0.05), 1e-6)
    ApproxDP(epsilon=1.47159475054, delta=1e-06)
    """
    return ApproxDP(decimal_up(zcdp_epsilon(budget.rho, delta)), delta)


def pure_to_zcdp(budget: PureDP) -> ZCDP:
    r"""The zCDP guarantee of a pure budget, exactly.

    Guarantee:
        What is :math:`\varepsilon`-DP is :math:`\varepsilon^2/2`-zCDP.

    References:
        [BS16], proposition 1.4; docs/proofs/composition.md.

    >>> pure_to_zcdp(PureDP(0.5))
    ZCDP(rho=0.125)
    """
    return ZCDP(budget.epsilon**2 / 2)


def log_zcdp_delta(rho: Fraction, epsilon: Fraction) -> float:
    """log of `zcdp_delta`, an upper bound, at most 0; numbers beyond the limits are moved against us."""
    spent, limit = float(max(rho, _LEAST)), float(min(epsilon, _MOST))
    # Derivative of the (convex) exponent in t: (2t + 1) rho - epsilon + log(t / (1 + t)).
    order = _bisect(lambda t: (2 * t + 1) * spent - limit - math.log1p(1 / t))
    terms = (
        order * (1 + order) * spent,
        -order * limit,
        -math.log1p(order),
        -order * math.log1p(1 / order),
    )
    return min(0.0, _sum_up(terms))


def log_fraction(value: Fraction) -> float:
    """The natural logarithm of a positive fraction of any size, to a few units in the last place."""
    if Fraction(1, 2) < value < 2:
        return math.log1p(float(value - 1))
    if _LEAST < value < 1 / _LEAST:
        return math.log(float(value))
    return math.log(value.numerator) - math.log(value.denominator)


def exp_up(log_value: float) -> float:
    """exp of a log-probability, never below it: at least the least positive float, at most 1."""
    margin = math.exp(min(0.0, log_value)) * (1 + _SLACK)
    return min(1.0, math.nextafter(math.nextafter(margin, math.inf), math.inf))


def decimal_up(value: float, digits: int = 12) -> Fraction:
    """A decimal of few digits that is at least `value`; at least 1e-12, which is above any tie with zero."""
    floor = Fraction(1, 10**12)
    return max(floor, -_decimal_down(-Fraction(value), digits))


def decimal_down(value: float, digits: int = 12) -> Fraction:
    """A positive decimal of few digits that is at most `value`, which is positive."""
    return _decimal_down(Fraction(value), digits)


def _decimal_down(value: Fraction, digits: int) -> Fraction:
    if value == 0:
        return value
    unit = Fraction(10) ** (math.floor(math.log10(abs(value))) + 1 - digits)
    return math.floor(value / unit) * unit


def _sum_up(terms: tuple[float, ...]) -> float:
    return math.fsum(terms) + _SLACK * math.fsum(abs(term) for term in terms)


def _bisect(increasing: Callable[[float], float]) -> float:
    """A point t > 0 near the root of an increasing function of t, found on the scale of log t."""
    low, high = _LOW, _HIGH
    for _ in range(80):
        middle = (low + high) / 2
        if increasing(math.exp(middle)) > 0:
            high = middle
        else:
            low = middle
    return math.exp(high)


def _within(name: str, value: object, *, zero: bool = False) -> Fraction:
    # Float64 holds numbers in this range without overflow, and without an underflow that would help us.
    fraction = exact(name, value)
    if zero and fraction == 0:
        return fraction
    if not _LEAST <= fraction <= _MOST:
        raise InvalidParameter(f"{name} must be in [1e-300, 1e12], got {name}={shown(value)}")
    return fraction
