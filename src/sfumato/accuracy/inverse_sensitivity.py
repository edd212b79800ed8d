"""Inverse sensitivity of a proportion: its exact level, its exact loss, and what no mechanism can beat."""

import math
from fractions import Fraction
from functools import lru_cache

from sfumato.checks import Number, exact, normal, positive, shown, whole
from sfumato.errors import InvalidParameter
from sfumato.laws import exp_bounds

MOST_ROWS = 2**62
# The budget is divided into so many parts to find the largest parameter that keeps it.
_PARTS = 40
_STEEPEST = 701


def bernoulli_inverse_loss(rows: int, matches: int, epsilon: Number) -> float:
    r"""The mean absolute error of inverse sensitivity on a proportion, exactly.

    Statement: the weights :math:`r^{|k-s|}`, :math:`r=e^{-\varepsilon/2}`, on the counts :math:`0..n` give
    :math:`E|M-s/n| = \frac{(1-r)(S(s)+S(n-s))}{n(1+r-r^{s+1}-r^{n-s+1})}` with
    :math:`S(N)=\frac{r-(N+1)r^{N+1}+Nr^{N+2}}{(1-r)^2}`. If s and n - s are large it is
    :math:`1/(n\sinh(\varepsilon/2))`. Erratum: larger constants are in circulation for that limit.
    Proof: docs/proofs/inverse-sensitivity.md.

    Guarantee:
        Equal to the expectation under the law that `InverseProportion` draws from, to a relative 1e-9.

    Args:
        rows: the number n of records.
        matches: how many of them, s, match.
        epsilon: the budget.

    >>> round(bernoulli_inverse_loss(500, 250, 1) * 500, 5), round(1 / math.sinh(0.5), 5)
    (1.91903, 1.91903)
    """
    size = whole("rows", rows, least=1, most=MOST_ROWS)
    count = whole("matches", matches, least=0, most=size)
    rate = normal("epsilon", epsilon) / 2
    (left, far_left), (right, far_right) = (_side(rate, number) for number in (count, size - count))
    return (far_left + far_right) / ((1 + left + right) * size)


def _side(rate: float, number: int) -> tuple[float, float]:
    """The sums of e^(-rate j) and of j e^(-rate j) over j = 1..number."""
    # Beyond 60 / rate nothing is left; short sums are taken term by term, which loses no digit.
    near = min(number, math.ceil(60 / rate)) if rate * number > 60 else number
    if near <= 4096:
        terms = [math.exp(-rate * j) for j in range(1, near + 1)]
        return math.fsum(terms), math.fsum(j * term for j, term in enumerate(terms, start=1))
    fall, last = -math.expm1(-rate), math.exp(-rate * near)
    if rate * near < 1e-3:
        # The weights are nearly equal: a series in rate * j, by sums of powers.
        powers = [near, near * (near + 1) // 2, near * (near + 1) * (2 * near + 1) // 6]
        powers += [powers[1] ** 2, powers[2] * (3 * near**2 + 3 * near - 1) // 5]
        series = [(-rate) ** order / math.factorial(order) for order in range(4)]
        return (
            math.fsum(factor * power for factor, power in zip(series, powers[:4], strict=True)),
            math.fsum(factor * power for factor, power in zip(series, powers[1:], strict=True)),
        )
    total = math.exp(-rate) * -math.expm1(-rate * near) / fall
    return total, (total - near * math.exp(-rate) * last) / fall


def bernoulli_inverse_level(rows: int, epsilon: Number, radius: int = 0) -> float:
    r"""The exact privacy level of inverse sensitivity on a proportion, below the budget it is charged.

    Statement: with :math:`c=\varepsilon/2`, :math:`r=e^{-c}` and weights :math:`r^{\max(|k-s|-m,0)}` on
    :math:`0..n` the largest log ratio between neighbours is
    :math:`c+\log\bigl(1+\frac{r-w(n-m)}{Z_m}\bigr)`, attained between m and m + 1 matches; for m = 0 and n
    large :math:`c+\log(1+r-r^2)`. Proof: docs/proofs/inverse-sensitivity.md.

    Guarantee:
        What an exhaustive comparison of all outcomes and all neighbours finds, to a relative 1e-9.

    Args:
        rows: the number n of records.
        epsilon: the budget, for which c is a half.
        radius: the number m of counts that are smoothed over.

    >>> [round(bernoulli_inverse_level(10**9, epsilon), 4) for epsilon in (0.1, 1, 3)]
    [0.0953, 0.714, 1.6599]
    """
    size = whole("rows", rows, least=1, most=MOST_ROWS)
    flat = whole("radius", radius, least=0, most=MOST_ROWS)
    c = normal("epsilon", epsilon) / 2
    if flat >= size:
        return 0.0
    tail = max(size - 2 * flat, 0)
    equal = flat + 1 + min(flat, size - flat)
    total = equal + (math.exp(-c) * math.expm1(-c * tail) / math.expm1(-c) if tail else 0.0)
    # r - r^tail, without losing the digits of a small c.
    gain = -math.exp(-c) * math.expm1(-c * (tail - 1)) if tail else math.expm1(-c)
    return c + math.log1p(gain / total)


@lru_cache(maxsize=64)
def recalibrated_fall(rows: int, epsilon: Fraction, radius: int = 0) -> Fraction:
    r"""The largest fall c of a level for which inverse sensitivity on a proportion costs the budget exactly.

    Statement: the weights :math:`e^{-c\max(|k-s|-m,0)}` on :math:`0..n` are :math:`\varepsilon`-DP if and
    only if :math:`e^{c-\varepsilon}\bigl(1+\frac{r-w(n-m)}{Z_m}\bigr)\le1`, :math:`r=e^{-c}`, and the left
    side increases with c. The largest c is below the budget, but for :math:`m<n\le2m` above it:
    :math:`\varepsilon+\log\frac{n+1-e^{-\varepsilon}}n`. Proof: docs/proofs/inverse-sensitivity.md.

    Guarantee:
        The condition holds for the number returned, by integer arithmetic alone: all roundings go against
        it. It is within 2^-40 of the budget of the largest such number. Where the radius is n or more, all
        answers are equally likely for every c, and the budget is returned.

    Args:
        rows: the number n of records.
        epsilon: the privacy level wanted.
        radius: the number m of counts that are smoothed over.

    >>> round(float(recalibrated_fall(1000, Fraction(1))), 4)
    0.7782
    """
    size = whole("rows", rows, least=1, most=MOST_ROWS)
    flat = whole("radius", radius, least=0, most=MOST_ROWS)
    budget = positive("epsilon", epsilon)
    if flat >= size:
        return budget
    # Never above (1 + 1/n) of the budget, and that only for n > 1: docs/proofs/inverse-sensitivity.md.
    low, high = 1 << (_PARTS - 1), 2 << _PARTS
    while high - low > 1:
        middle = (low + high) // 2
        keeps = level_is_within(size, budget * middle / (1 << _PARTS), budget, flat)
        low, high = (middle, high) if keeps else (low, middle)
    return budget * low / (1 << _PARTS)


def level_is_within(rows: int, fall: Fraction, epsilon: Fraction, radius: int = 0) -> bool:
    """Whether weights that fall by e^-fall a level surely keep epsilon, by integer arithmetic alone."""
    if radius >= rows:
        return True
    width = 192 + 2 * max(math.ceil(1 / fall).bit_length(), 1)
    one = 1 << width
    least, most = (Fraction(bound, one) for bound in exp_bounds(fall, width))
    tail = max(rows - 2 * radius, 0)
    end_least, end_most = (Fraction(bound, one) for bound in exp_bounds(fall * tail, width))
    # r - r^tail as r (1 - r^(tail - 1)), which is exactly 0 for a tail of one.
    inner_least = Fraction(exp_bounds(fall * (tail - 1), width)[0], one) if tail else None
    equal = radius + 1 + min(radius, rows - radius)
    # Z_m from both sides: the equal weights and r (1 - r^tail) / (1 - r).
    if tail:
        total_least = equal + least * (1 - end_most) / (1 - least)
        total_most = equal + most * (1 - end_least) / (1 - most)
    else:
        total_least = total_most = Fraction(equal)
    gain = most - 1 if inner_least is None else most * (1 - inner_least)
    ratio = 1 + gain / (total_least if gain >= 0 else total_most)
    if fall <= epsilon:
        return Fraction(exp_bounds(epsilon - fall, width)[1], one) * ratio <= 1
    return ratio <= Fraction(exp_bounds(fall - epsilon, width)[0], one)


def is_unbiased(rows: int, matches: int, epsilon: Number) -> bool:
    r"""Whether s/n is the constant nearest on average to what inverse sensitivity releases at s matches.

    Statement: it is a median of the law, if and only if :math:`r-r^{n-s+1}\le1-r^{s+1}` and
    :math:`r-r^{s+1}\le1-r^{n-s+1}`. Erratum: it is said to hold always; it fails near 0 and n.

    Guarantee:
        True if and only if the law has its median at s, by integer arithmetic.

    >>> is_unbiased(3, 0, 0.1), is_unbiased(3, 1, 0.1)
    (False, True)
    """
    size = whole("rows", rows, least=1, most=MOST_ROWS)
    count = whole("matches", matches, least=0, most=size)
    c, width = positive("epsilon", epsilon) / 2, 256
    near, far = sorted((count, size - count))
    # The other condition holds by itself. With equal terms on both sides this would be an equation for r with
    # integer coefficients, and a power of e solves none: enough bits always decide.
    while True:
        one = 1 << width
        r, left, right = (exp_bounds(c * n, width) for n in (1, near + 1, far + 1))
        if left[1] - right[0] <= one - r[1]:
            return True
        if left[0] - right[1] > one - r[0]:
            return False
        width *= 2


def unbiased_lower_bound(rows: int, epsilon: Number) -> float:
    r"""No private share of n records has a smaller mean absolute error, if the truth is its best constant.

    Statement: let M be :math:`\varepsilon`-DP under substitution, and let each f(X) be the constant that
    minimises :math:`E|M(X)-t|` over t. Then :math:`E|M(X)-f(X)|\ge\frac1{n(1+e^{2\varepsilon})}` at every X.
    Erratum: half of this is in print, and without the hypothesis, which it needs (see `is_unbiased`).
    Proof: docs/proofs/inverse-sensitivity.md.

    Guarantee:
        A lower bound for every such mechanism. It is no estimate: the loss of inverse sensitivity stays
        above it by a factor that does not fall with n.

    >>> round(unbiased_lower_bound(1, 1), 4)
    0.1192
    """
    size = whole("rows", rows, least=1, most=MOST_ROWS)
    return _inverse(size, 2 * _level(epsilon))


def worst_lower_bound(rows: int, epsilon: Number) -> float:
    r"""No private share of n records has a smaller mean absolute error on both of two neighbours.

    Statement: let M be :math:`\varepsilon`-DP under substitution, and X, X' neighbours whose shares differ
    by 1/n. Then the larger of :math:`E|M(X)-f(X)|`, :math:`E|M(X')-f(X')|` is at least
    :math:`\frac1{n(1+e^{\varepsilon})}`. Proof: docs/proofs/inverse-sensitivity.md.

    Guarantee:
        A lower bound for every mechanism, unbiased or not.

    >>> round(worst_lower_bound(1, 1), 4)
    0.2689
    """
    size = whole("rows", rows, least=1, most=MOST_ROWS)
    return _inverse(size, _level(epsilon))


def _level(epsilon: Number) -> float:
    level = exact("epsilon", epsilon)
    if level < 0:
        raise InvalidParameter(f"epsilon must not be negative, got epsilon={shown(level)}")
    return float(min(level, Fraction(_STEEPEST)))


def _inverse(size: int, exponent: float) -> float:
    # A lower bound must not be overstated: where float64 ends it is zero.
    return 1 / (size * (1 + math.exp(exponent))) if exponent < _STEEPEST else 0.0
