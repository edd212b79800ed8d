r"""How far a choice by score is below the best: published theorems, and sharper ones that hold as well.

In all of them n candidates are given, of which m share the best score; a candidate whose score is g lower
weighs :math:`e^{-cg}`, with the rate c of the mechanism: :math:`\varepsilon/(2\Delta)`, or
:math:`\varepsilon/\Delta` for monotone scores. The loss is the best score less that of the candidate chosen.
"""

import math
from fractions import Fraction

from sfumato.checks import Number, between, normal, whole
from sfumato.mechanisms.exponential import MAX_CANDIDATES


def published_choice_loss(rate: Number, count: int, failure: Number, *, best: int = 1) -> float:
    r"""The loss that both mechanisms pass with a probability of at most `failure`, as textbooks have it.

    Statement: :math:`P(g \ge \frac1c(\ln\frac nm + t)) \le e^{-t}`, here with :math:`t = \ln(1/\beta)`.
    Source: [MT07], and [DR14] theorem 3.11, for the exponential mechanism; permute-and-flip loses no more.

    Guarantee:
        The loss is at least this with probability at most :math:`\beta`, `failure`, whatever the scores.
        Proof: docs/proofs/exponential.md.

    Args:
        rate: how much the log weight falls for a score lower by one.
        count: the number n of candidates.
        best: how many of them, m, share the best score at least.

    >>> round(published_choice_loss(0.5, 1000, 0.05), 2)
    19.81
    """
    c, n, m, beta = _checked(rate, count, failure, best)
    return (math.log(n / m) - math.log(beta)) / c


def exponential_choice_loss(rate: Number, count: int, failure: Number, *, best: int = 1) -> float:
    r"""The loss that the exponential mechanism passes with a probability of at most `failure`, sharp.

    Statement: :math:`P(g \ge t) \le B/(1+B)` with :math:`B = \frac{n-m}m e^{-ct}`, attained if all candidates
    that are not best lose t. Solved for t, and zero if that is negative.

    Guarantee:
        The loss is above this with probability at most `failure`; no smaller number will do for all scores.
        Proof: docs/proofs/exponential.md.

    Args:
        rate, count, best: as for `published_choice_loss`.

    >>> round(exponential_choice_loss(0.5, 1000, 0.05), 2)
    19.7
    """
    c, n, m, beta = _checked(rate, count, failure, best)
    odds = (n - m) * (1 - beta) / (m * beta)
    return max(math.log(odds), 0.0) / c if odds else 0.0


def flip_choice_loss(rate: Number, count: int, failure: Number, *, best: int = 1) -> float:
    r"""The loss that permute-and-flip passes with a probability of at most `failure`.

    Statement: :math:`P(g \ge t) \le \frac{n-m}{m+1} e^{-ct}`: a candidate that is not best is chosen only if
    its coin, of probability :math:`e^{-cg}`, comes up and all m best ones come after it in the random order.
    Solved for t, and zero if that is negative.

    Guarantee:
        The loss is above this with probability at most `failure`. Proof: docs/proofs/exponential.md.

    Args:
        rate, count, best: as for `published_choice_loss`.

    >>> round(flip_choice_loss(0.5, 1000, 0.05), 2)
    18.42
    """
    c, n, m, beta = _checked(rate, count, failure, best)
    odds = (n - m) / ((m + 1) * beta)
    return max(math.log(odds), 0.0) / c if odds else 0.0


def published_mean_choice_loss(rate: Number, count: int) -> float:
    r"""What both mechanisms lose on average, at most, as textbooks have it.

    Statement: :math:`E\,g \le \frac1c(\ln n + 1)`, the integral of `published_choice_loss` over its failures.

    Guarantee:
        The expected loss is at most this, whatever the scores. Proof: docs/proofs/exponential.md.

    Args:
        rate, count: as for `published_choice_loss`.

    >>> round(published_mean_choice_loss(0.5, 1000), 2)
    15.82
    """
    c, n, _, _ = _checked(rate, count, Fraction(1, 2), 1)
    return (math.log(n) + 1) / c


def exponential_mean_choice_loss(rate: Number, count: int, *, best: int = 1) -> float:
    r"""What the exponential mechanism loses on average, at most, sharp.

    Statement: :math:`E\,g \le \frac Vc` where :math:`V e^V = \frac{n-m}{me}`, attained if all candidates that
    are not best lose :math:`\frac{V+1}c`.

    Guarantee:
        The expected loss is at most this; no smaller number will do for all scores.
        Proof: docs/proofs/exponential.md.

    Args:
        rate, count, best: as for `published_choice_loss`.

    >>> round(exponential_mean_choice_loss(0.5, 1000), 2)
    8.84
    """
    c, n, m, _ = _checked(rate, count, Fraction(1, 2), best)
    return _lambert((n - m) / (m * math.e)) / c


def flip_mean_choice_loss(rate: Number, count: int, *, best: int = 1) -> float:
    r"""What permute-and-flip loses on average, at most.

    Statement: :math:`E\,g \le \frac1c \min(V, \frac{n-m}{(m+1)e})`, with the V of
    `exponential_mean_choice_loss`: it loses no more than the exponential mechanism [MS20], and a candidate is
    chosen with probability at most :math:`e^{-cg}/(m+1)`, where :math:`g e^{-cg} \le \frac1{ce}`. Two
    candidates attain the second.

    Guarantee:
        The expected loss is at most this, whatever the scores. Proof: docs/proofs/exponential.md.

    Args:
        rate, count, best: as for `published_choice_loss`.

    >>> round(flip_mean_choice_loss(0.5, 2), 4), round(exponential_mean_choice_loss(0.5, 2), 4)
    (0.3679, 0.5569)
    """
    c, n, m, _ = _checked(rate, count, Fraction(1, 2), best)
    return min(_lambert((n - m) / (m * math.e)), (n - m) / ((m + 1) * math.e)) / c


def _lambert(value: float) -> float:
    """The V >= 0 with V e^V = value, for a value >= 0, by Newton's method from above."""
    found = math.log1p(value)
    for _ in range(60):
        # The function is convex and increasing, so that every step stays above the root.
        found -= (found - value * math.exp(-found)) / (1 + found)
    return found


def _checked(rate: object, count: object, failure: object, best: object) -> tuple[float, int, int, float]:
    n = whole("count", count, least=1, most=MAX_CANDIDATES)
    m = whole("best", best, least=1, most=n)
    return normal("rate", rate), n, m, normal("failure", between("failure", failure, 0, 1))
