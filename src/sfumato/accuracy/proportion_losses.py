"""What private proportions lose in the long run, and what is in print about it."""

import math

from sfumato.accuracy.inverse_sensitivity import MOST_ROWS, unbiased_lower_bound
from sfumato.checks import Number, normal, whole


def bernoulli_inverse_equivalent(rows: int, epsilon: Number) -> float:
    r"""What the mean absolute error of inverse sensitivity on a proportion tends to, away from 0 and 1.

    Statement: :math:`E|M-s/n|\sim\frac1{n\sinh(\varepsilon/2)}` if s and n - s grow. So the law tends to a
    point mass at the limit of s/n, which is not private; at each n it is. Erratum E39: a limit in print is
    larger by :math:`e^{\varepsilon/2}`. Erratum E41: it is called optimal; its rate 1/n is, its constant over
    `unbiased_lower_bound` is :math:`(e^{2\varepsilon}+1)/\sinh(\varepsilon/2)`, without bound at both ends.
    Proof: docs/proofs/inverse-sensitivity.md.

    Guarantee:
        At least `bernoulli_inverse_loss` for every s, and its limit.

    >>> [round(bernoulli_inverse_equivalent(1, epsilon), 3) for epsilon in (0.1, 1, 3)]
    [19.992, 1.919, 0.47]
    """
    size = whole("rows", rows, least=1, most=MOST_ROWS)
    return _over_sinh(normal("epsilon", epsilon) / 2) / size


def published_bernoulli_inverse_equivalent(rows: int, epsilon: Number) -> float:
    r"""The limit of the error of inverse sensitivity on a proportion as it is in print: too large.

    Statement: :math:`\frac1n\cdot\frac2{1-e^{-\varepsilon}}`. Source: [A24]. Erratum E39: **false** by
    :math:`e^{\varepsilon/2}`, because :math:`\sum_lr^ll=r/(1-r)^2` lost its r.

    Guarantee:
        An upper bound for the loss, but not its limit. `bernoulli_inverse_equivalent` is.

    >>> round(published_bernoulli_inverse_equivalent(1, 1), 3)
    3.164
    """
    size = whole("rows", rows, least=1, most=MOST_ROWS)
    return -2 / math.expm1(-normal("epsilon", epsilon)) / size


def published_bernoulli_inverse_curve(rows: int, epsilon: Number) -> float:
    r"""The curve that a program for the published figure draws for that limit: larger again.

    Statement: the published limit, written as its lower bound times
    :math:`4(e^{2\varepsilon}+1)/(1-e^{-\varepsilon})`, with :math:`e^{2\varepsilon+1}` for
    :math:`e^{2\varepsilon}+1`. Source: a program with the parameters of figure 24 of [A24]; its form is
    inferred from that slip and the value 7.575 at :math:`\varepsilon=1`. Erratum E40: **false**, there nearly
    four times the loss.

    Guarantee:
        An upper bound for the loss, and nothing more.

    >>> round(published_bernoulli_inverse_curve(1, 1), 3)
    7.575
    """
    level = normal("epsilon", epsilon)
    # e^(2x+1)/(e^(2x)+1) without its overflow.
    wrong = math.e / (1 + math.exp(-2 * level))
    return published_bernoulli_inverse_equivalent(rows, epsilon) * wrong


def published_unbiased_lower_bound(rows: int, epsilon: Number) -> float:
    r"""The lower bound for unbiased private proportions as it is in print: right, but half of what holds.

    Statement: :math:`\frac1{2n(e^{2\varepsilon}+1)}`. Source: [A24]. Erratum E38: it holds, and so does twice
    as much, `unbiased_lower_bound`. Erratum E37: inverse sensitivity, to which it is applied, is not unbiased
    near 0 and n (`is_unbiased`).

    Guarantee:
        A lower bound under the hypothesis of `unbiased_lower_bound`.

    >>> round(published_unbiased_lower_bound(1, 1), 4)
    0.0596
    """
    return unbiased_lower_bound(rows, epsilon) / 2


def clamped_geometric_loss(rows: int, matches: int, epsilon: Number) -> float:
    r"""The mean absolute error of a proportion with clamped geometric noise, exactly.

    Statement: with :math:`P(Z=k)\propto e^{-\varepsilon|k|}` added to s and clamped to :math:`0..n`,
    :math:`E|M-s/n|=\frac{2-e^{-\varepsilon s}-e^{-\varepsilon(n-s)}}{2n\sinh\varepsilon}`. Source: [GRS12]
    for the mechanism. Proof: docs/proofs/inverse-sensitivity.md.

    Guarantee:
        Equal to the expectation, to a relative 1e-12.

    Args:
        rows: the number n of records.
        matches: how many of them, s, match.
        epsilon: the budget.

    >>> round(clamped_geometric_loss(500, 250, 1) * 500, 4), round(clamped_geometric_loss(500, 0, 1) * 500, 4)
    (0.8509, 0.4255)
    """
    size = whole("rows", rows, least=1, most=MOST_ROWS)
    count = whole("matches", matches, least=0, most=size)
    level = normal("epsilon", epsilon)
    sides = -math.expm1(-level * count) - math.expm1(-level * (size - count))
    # Tiny budgets: the product of a tiny and a huge number, formed so that neither leaves float64.
    return sides / size * _over_sinh(level) / 2


def clamped_geometric_equivalent(rows: int, epsilon: Number) -> float:
    r"""What the mean absolute error of a proportion with geometric noise tends to, away from 0 and 1.

    Statement: :math:`\frac1{n\sinh\varepsilon}`, less than that of inverse sensitivity by
    :math:`2\cosh(\varepsilon/2)`. Proof: docs/proofs/inverse-sensitivity.md.

    Guarantee:
        At least `clamped_geometric_loss` for every s, and its limit.

    >>> round(clamped_geometric_equivalent(1, 1), 4)
    0.8509
    """
    size = whole("rows", rows, least=1, most=MOST_ROWS)
    return _over_sinh(normal("epsilon", epsilon)) / size


def _over_sinh(x: float) -> float:
    """1 / sinh x, also where sinh leaves float64."""
    return 2 * math.exp(-x) / -math.expm1(-2 * x)
