"""How far a scan for the first value above a threshold can be from the truth."""

import math
from fractions import Fraction

from sfumato.checks import Number, between, boolean, inside, normal, whole
from sfumato.laws.law import checked_scale
from sfumato.mechanisms.above_threshold import AboveThreshold
from sfumato.mechanisms.moves import SameDirection

MOST_QUERIES = 2**40


def above_threshold_radius(
    *,
    queries: int,
    confidence: Number,
    threshold_scale: Number,
    query_scale: Number,
    one_sided: bool = False,
) -> int:
    r"""How far on the wrong side of its threshold a scan of `AboveThreshold` or `Sparse` can be.

    Statement: let :math:`K` values be compared with a threshold :math:`T`, with noise of scale :math:`b_T` on
    the threshold, drawn once, and of scale :math:`b_n` on each value. Let :math:`u = \lceil b_T
    \ln(2/\beta)\rceil` and :math:`v = \lceil b_n \ln(2K/\beta)\rceil`. With probability at least
    :math:`1 - \beta`, every value told below is at most :math:`T + \alpha` and every value told above is
    larger than :math:`T - \alpha`, where :math:`\alpha = u + v` for two-sided noise and :math:`\alpha =
    \max(c + u, v - c)` for one-sided noise centred by the public integer :math:`c`.

    Hypotheses: integer values; :math:`K` is the number of values that may be compared, fixed beforehand, and
    not the place of the answer. The values may be chosen after earlier answers, and the scan may go on after
    a crossing. Source: [DR14], theorem 3.24. Erratum: some texts put the place of the answer for :math:`K`,
    which is random, so that nothing is proved. With integer noise each term is rounded up by itself.

    Guarantee:
        Fails with probability at most 1 - `confidence`. `AboveThreshold.radius` takes exact tails and the
        best of several divisions of the failure, and is never larger.
        Proof: docs/proofs/above-threshold.md.

    Args:
        queries: the number of values K.
        confidence: inside (0, 1).
        threshold_scale, query_scale: of the noise, in units of the values.
        one_sided: geometric noise, as the mechanisms use unless told otherwise.

    >>> above_threshold_radius(queries=1000, confidence=0.95, threshold_scale=20, query_scale=40)
    498
    >>> above_threshold_radius(
    ...     queries=1000, confidence=0.95, threshold_scale=20, query_scale=20, one_sided=True
    ... )
    212
    """
    count = whole("queries", queries, least=1, most=MOST_QUERIES)
    failure = 1 - between("confidence", confidence, 0, 1)
    mechanism = AboveThreshold(
        moves=SameDirection(1),
        threshold_scale=checked_scale("threshold_scale", threshold_scale),
        query_scale=checked_scale("query_scale", query_scale),
        one_sided=boolean("one_sided", one_sided),
    )
    threshold = _reach(mechanism.threshold_scale, failure / 2)
    query = _reach(mechanism.query_scale, failure / (2 * count))
    if not one_sided:
        return threshold + query
    return max(mechanism.centring + threshold, query - mechanism.centring, 0)


def above_threshold_alpha(
    *, queries: int, failure: Number, threshold_scale: Number, query_scale: Number
) -> float:
    r"""How far on the wrong side of its threshold a scan with continuous Laplace noise can be.

    Statement: :math:`K` values are compared with a threshold :math:`T`, with Laplace noise of scale
    :math:`b_T` on the threshold and of scale :math:`b_n` on each value. With probability at least
    :math:`1-\beta`, every value before the first crossing is at most :math:`T+\alpha` and the value of the
    crossing is at least :math:`T-\alpha`, where :math:`\alpha=b_T\ln\frac2\beta+b_n\ln\frac{2K}\beta`.

    Hypotheses: :math:`K` is the number of values that may be compared, fixed beforehand. Source: [DR14],
    theorem 3.24, and [C22], lemma 2.2.1.1. Erratum E2: the lemma puts the place of the answer for :math:`K`,
    which is random, so that nothing is proved, and its event is about noisy values where its proof is about
    exact ones. For noise on the integers see `above_threshold_radius`.

    Guarantee:
        The statement fails with probability at most `failure`, whatever the values are; the last digits are
        rounded up. Proof: docs/proofs/histogram-method.md.

    Args:
        queries: the number of values K.
        failure: inside (0, 1).
        threshold_scale, query_scale: of the noise, in units of the values.

    Raises:
        InvalidParameter: a number out of its range.

    References:
        [DR14], [C22].

    >>> round(above_threshold_alpha(queries=1000, failure=0.05, threshold_scale=2, query_scale=4), 3)
    49.764
    """
    count = whole("queries", queries, least=1, most=MOST_QUERIES)
    beta = inside("failure", failure)
    threshold = normal("threshold_scale", threshold_scale) * _log_inverse(beta / 2)
    query = normal("query_scale", query_scale) * _log_inverse(beta / (2 * count))
    return threshold + query


def published_above_threshold_alpha(*, queries: int, failure: Number, epsilon: Number) -> float:
    r"""The radius of a scan with the noise scales 2/epsilon and 4/epsilon, as textbooks have it.

    Statement: that of `above_threshold_alpha` with
    :math:`\alpha=\frac8\varepsilon(\ln K+\ln\frac2\beta)`: half of it for each kind of noise. Source:
    [DR14], theorem 3.24, and [C22]. It is valid and looser: with the same scales `above_threshold_alpha` is
    :math:`\frac1\varepsilon(6\ln\frac2\beta+4\ln K)`.

    Guarantee:
        The statement fails with probability at most `failure`, for K values of sensitivity 1 that are fixed
        in number beforehand. Proof: docs/proofs/histogram-method.md.

    Args:
        queries: the number of values K.
        failure: inside (0, 1).
        epsilon: the budget of the scan.

    Raises:
        InvalidParameter: a number out of its range.

    References:
        [DR14], [C22].

    >>> round(published_above_threshold_alpha(queries=1000, failure=0.05, epsilon=1), 3)
    84.773
    """
    count = whole("queries", queries, least=1, most=MOST_QUERIES)
    beta = inside("failure", failure)
    return 8 * _log_inverse(beta / (2 * count)) / normal("epsilon", epsilon)


def published_translated_alpha(*, queries: int, failure: Number, epsilon: Number) -> float:
    r"""The radius of a scan as a translation prints it: false, for its constant is too small.

    Statement, false: that of `above_threshold_alpha` for the scales :math:`2/\varepsilon` and
    :math:`4/\varepsilon` with :math:`\alpha=\frac1\varepsilon(4\ln\frac2\beta+\ln K)`. Source: [T]. Erratum
    E3: K values with noise of scale :math:`4/\varepsilon` reach :math:`\frac4\varepsilon\ln K` alone; see
    `above_threshold_alpha`.

    Guarantee:
        None. With 1000 values just below the radius and a failure of 0.05, the scan is wrong about one of
        them with a probability above 0.8.

    Args:
        queries: the number of values K.
        failure: inside (0, 1).
        epsilon: the budget of the scan.

    Raises:
        InvalidParameter: a number out of its range.

    References:
        [T].

    >>> round(published_translated_alpha(queries=1000, failure=0.05, epsilon=1), 3)
    21.663
    """
    count = whole("queries", queries, least=1, most=MOST_QUERIES)
    beta = inside("failure", failure)
    return (4 * _log_inverse(beta / 2) + math.log(count)) / normal("epsilon", epsilon)


def _reach(scale: Fraction, failure: Fraction) -> int:
    """The scale times the log of 1/failure, rounded up."""
    return math.ceil(scale * Fraction(_log_inverse(failure)))


def _log_inverse(failure: Fraction) -> float:
    """The log of 1/failure, rounded up; float64 errs by far less than what is added."""
    # As a float a small failure would be zero.
    return (math.log(failure.denominator) - math.log(failure.numerator)) * (1 + 1e-12)
