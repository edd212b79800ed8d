"""How far a scan for the first value above a threshold can be from the truth."""

import math
from fractions import Fraction

from sfumato.checks import Number, between, boolean, whole
from sfumato.laws.law import checked_scale
from sfumato.mechanisms.above_threshold import AboveThreshold
from sfumato.mechanisms.moves import SameDirection


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
    count = whole("queries", queries, least=1, most=2**40)
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


def _reach(scale: Fraction, failure: Fraction) -> int:
    """The scale times the log of 1/failure, rounded up; float64 errs by far less than what is added."""
    # As a float a small failure would be zero.
    log = math.log(failure.denominator) - math.log(failure.numerator)
    return math.ceil(scale * Fraction(log * (1 + 1e-12)))
