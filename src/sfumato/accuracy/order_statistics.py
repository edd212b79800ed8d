r"""How far the quantiles of a sample are from those of its population, and how many records fall in a strip.

The sample quantile of order q is the record of rank :math:`k=\lceil qn\rceil` among n independent draws. Any
law will do: it is given as its distribution function, or as a `Scenario`, and is uniform on [0, 1] otherwise.
"""

import math
from fractions import Fraction

from sfumato.accuracy.population import Population, quantile_of, shares_around
from sfumato.checks import Number, inside, normal, whole

MOST_ROWS = 2**40
UNIT = (0.0, 1.0)


def quantile_concentration(*, rows: int, order: Number, distance: Number, law: Population = None) -> float:
    r"""How likely a sample quantile is further than a distance from the population's, at most.

    Statement: for n independent draws of a law F with quantile d of order q, and :math:`\hat d=X_{(\lceil
    qn\rceil)}`, :math:`P(|\hat d-d|>s)\le e^{-2n(F(d+s)-q)^2}+e^{-2n(q-F(d-s))^2}`. For the uniform law this
    is :math:`2e^{-2ns^2}`, or :math:`2e^{-n\gamma^2/2}` with :math:`\gamma=2s`, and less near the ends.

    Hypotheses: independent draws of one law. Source: [Hoeffding63], theorem 1. It replaces lemma 2.2.3.1 of
    [C22], which is weaker (see `published_quantile_concentration`), and the lemma for the normal law there.
    Erratum E11: that one is for distances up to d, which is none at all below the median, and its last step
    goes the wrong way; nothing is proved. Here F is the normal distribution function and all orders are
    served.

    Guarantee:
        At least the probability, for every law, also with atoms. Proof: docs/proofs/histogram-method.md.

    Args:
        rows: the number n of records.
        order: q, inside (0, 1).
        distance: s, positive, in units of the values.
        law: a distribution function, or what has quantiles; uniform on [0, 1] unless given.

    Raises:
        InvalidParameter: a number out of its range, or a law that gives no shares.

    References:
        [Hoeffding63], [C22].

    >>> round(quantile_concentration(rows=10_000, order=0.5, distance=0.02), 6)
    0.000671
    """
    size, q, below, above = _sides(rows, order, distance, law)
    upper = math.exp(-2 * size * max(above - q, 0.0) ** 2) if above < 1 else 0.0
    lower = math.exp(-2 * size * max(q - below, 0.0) ** 2) if below > 0 else 0.0
    return min(upper + lower, 1.0)


def exact_quantile_concentration(
    *, rows: int, order: Number, distance: Number, law: Population = None
) -> float:
    r"""How likely a sample quantile is further than a distance from the population's, exactly.

    Statement: with :math:`k=\lceil qn\rceil` and the regularised incomplete beta function I,
    :math:`P(|\hat d-d|>s)=I_{F(d-s)}(k,n-k+1)+1-I_{F(d+s)}(k,n-k+1)` for a continuous law F.

    Hypotheses: independent draws of one law; if it has an atom at d - s, the result is an upper bound.

    Guarantee:
        Equal to the probability, to the digits of the incomplete beta function.
        Proof: docs/proofs/histogram-method.md.

    Args:
        rows, order, distance, law: as for `quantile_concentration`.

    Raises:
        InvalidParameter: a number out of its range, or a law that gives no shares.

    References:
        [C22].

    >>> round(exact_quantile_concentration(rows=10_000, order=0.5, distance=0.02), 6)
    6.3e-05
    """
    size, _, below, above = _sides(rows, order, distance, law)
    rank = math.ceil(inside("order", order) * size)
    return at_least(rank, size, below) + at_most(rank - 1, size, above)


def published_quantile_concentration(*, rows: int, distance: Number) -> float:
    r"""How likely a decile of uniform data is further than a distance from its own, as published.

    Statement: :math:`P(|\hat d-d|>\gamma/2)\le2e^{-n\gamma^2/12}`; the distance is :math:`s=\gamma/2`.
    Source: [C22], lemma 2.2.3.1. Erratum E5: it holds, with an exponent six times smaller than that of
    `quantile_concentration`.

    Guarantee:
        At least the probability, for uniform data on [0, 1]. Proof: docs/proofs/histogram-method.md.

    Args:
        rows: the number n of records.
        distance: s, positive.

    Raises:
        InvalidParameter: a number out of its range.

    References:
        [C22].

    >>> round(published_quantile_concentration(rows=10_000, distance=0.02), 6)
    0.527194
    """
    size = whole("rows", rows, least=1, most=MOST_ROWS)
    reach = normal("distance", distance)
    return 2 * math.exp(-size * reach * reach / 3)


def min_count(*, rows: int, share: Number, least: Number) -> float:
    r"""How likely a strip that has a share of the population has fewer records than wanted, at most.

    Statement: :math:`P(\mathrm{Bin}(n,p)<\alpha)\le e^{-(np-\alpha)^2/(2np)}` for :math:`\alpha\le np`, and
    nothing is claimed otherwise: 1.

    Hypotheses: independent draws. Source: Chernoff's bound. It replaces lemma 2.2.3.2 of [C22]; see
    `published_min_count`. For another law than the uniform one p is the mass of the strip. Erratum E12: the
    lemma for the normal law in [C22] holds only where its bracket is not negative, which it does not ask.

    Guarantee:
        At least the probability. Proof: docs/proofs/histogram-method.md.

    Args:
        rows: the number n of records.
        share: the mass p of the strip, inside (0, 1).
        least: how many records are wanted, positive.

    Raises:
        InvalidParameter: a number out of its range.

    References:
        [C22].

    >>> round(min_count(rows=1000, share=0.05, least=20), 6)
    0.000123
    >>> min_count(rows=100, share=0.01, least=5)
    1.0
    """
    excess, expected = _excess(rows, share, least)
    return math.exp(-excess * (excess / expected) / 2) if excess > 0 else 1.0


def published_min_count(*, rows: int, share: Number, least: Number) -> float:
    r"""How likely one of two strips has fewer records than wanted, as published: false if few are expected.

    Statement, false for :math:`\alpha>np`: two strips of mass :math:`p=\gamma/2` both have :math:`\alpha`
    records but with probability :math:`2e^{-(np-\alpha)^2/(2np)}`. Source: [C22], lemma 2.2.3.2. Erratum E6:
    the hypothesis :math:`\alpha\le n\gamma/2` is missing. With it, the lemma is twice `min_count`.

    Guarantee:
        At least the probability if `least` is at most `rows` times `share`, and none otherwise: for 100 rows,
        a share of 0.01 and 5 records wanted it is 0.0007, and one strip alone fails with 0.997.

    Args:
        rows, share, least: as for `min_count`.

    Raises:
        InvalidParameter: a number out of its range.

    References:
        [C22].

    >>> round(published_min_count(rows=100, share=0.01, least=5), 4)
    0.0007
    """
    excess, expected = _excess(rows, share, least)
    return 2 * math.exp(-excess * (excess / expected) / 2)


def at_most(count: int, rows: int, share: float) -> float:
    """The probability that a binomial number is at most a count."""
    from scipy.special import betaincc

    if count < 0 or count >= rows:
        return float(count >= rows)
    return float(betaincc(count + 1, rows - count, share))


def at_least(count: int, rows: int, share: float) -> float:
    """The probability that a binomial number is at least a count."""
    from scipy.special import betainc

    if count <= 0 or count > rows:
        return float(count <= 0)
    return float(betainc(count, rows - count + 1, share))


def _sides(rows: object, order: object, distance: object, law: Population) -> tuple[int, float, float, float]:
    """The number of rows, the order, and the shares at the two ends, rounded towards the order."""
    size = whole("rows", rows, least=1, most=MOST_ROWS)
    q, reach = float(inside("order", order)), normal("distance", distance)
    center = quantile_of(law, q, UNIT)
    return size, q, *shares_around(law, center - reach, center + reach, UNIT)


def _excess(rows: object, share: object, least: object) -> tuple[float, float]:
    """How many records more than wanted are expected in a strip, and how many are expected."""
    expected = whole("rows", rows, least=1, most=MOST_ROWS) * inside("share", share)
    return float(expected - Fraction(normal("least", least))), normal("share", expected)
