"""Errata about inverse sensitivity of a proportion: its loss, its lower bound, and what "optimal" means."""

import math
from fractions import Fraction

import numpy as np

from sfumato.accuracy import bernoulli_inverse_loss, is_unbiased, unbiased_lower_bound
from sfumato.lab.erratum import Erratum, Finding, found
from sfumato.laws import Choice
from sfumato.mechanisms import ClampedGeometric


def _law(rows: int, matches: int, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """The counts and their probabilities under inverse sensitivity."""
    counts = np.arange(rows + 1)
    weights = np.exp(-epsilon / 2 * np.abs(counts - matches))
    return counts, np.exp(Choice(weights).logpmf(counts))


def normaliser() -> Finding:
    """E36: the sum of the weights against its closed form."""
    rows, matches, epsilon = 10, 3, 1.0
    r = math.exp(-epsilon / 2)
    total = sum(r ** abs(k - matches) for k in range(rows + 1))
    closed = (1 + r - r ** (matches + 1) - r ** (rows - matches + 1)) / (1 - r)
    return found(
        "For {rows} records, {matches} of which match, and ε = {epsilon:g}, the weights add up to "
        "{total:.6f} term by term, and to {closed:.6f} by the formula.",
        rows=rows,
        matches=matches,
        epsilon=epsilon,
        total=total,
        closed=closed,
    )


def unbiased() -> Finding:
    """E37: at the end of the range another constant is nearer than the truth."""
    rows, matches, epsilon = 3, 0, 0.1
    counts, chances = _law(rows, matches, epsilon)
    away = [float(chances @ np.abs(counts - other)) / rows for other in (matches, matches + 1)]
    sizes, budgets = (3, 10, 50), (0.1, 1)
    cases = [(n, s, e) for n in sizes for s in range(n + 1) for e in budgets]
    return found(
        "With {rows} records, none of which matches, and ε = {epsilon:g}, the answer is {truth:.3f} away "
        "from the truth on average, and {other:.3f} away from one record more. Of {cases} cases (n in "
        "{least}, {middle} and {most}, every s, two ε) the law is biased in {biased}.",
        rows=rows,
        epsilon=epsilon,
        truth=away[0],
        other=away[1],
        cases=len(cases),
        least=sizes[0],
        middle=sizes[1],
        most=sizes[2],
        biased=sum(not is_unbiased(*case) for case in cases),
    )


def lower_bound() -> Finding:
    """E38: the published lower bound is half of one that holds too."""
    rows, epsilon = 1, 1
    ours = unbiased_lower_bound(rows, epsilon)
    published = 1 / (2 * rows * (math.exp(2 * epsilon) + 1))
    sizes, budgets = (3, 10, 50), (0.1, 1, 3)
    cases = [(n, s, e) for n in sizes for s in range(n + 1) for e in budgets]
    kept = [bernoulli_inverse_loss(*case) / unbiased_lower_bound(case[0], case[2]) for case in cases]
    return found(
        "At ε = {epsilon} the published bound is {published:.4f}/n, and {ours:.4f}/n, {ratio:g} times as "
        "much, can be proved. In {cases} cases the loss of inverse sensitivity is at least {least:.2f} "
        "times the larger one.",
        epsilon=epsilon,
        published=published,
        ours=ours,
        ratio=ours / published,
        cases=len(cases),
        least=min(kept),
    )


def equivalent() -> Finding:
    """E39: the constant of the loss for many records."""
    rows, epsilon = 500, 1
    return found(
        "At ε = {epsilon} and n = {rows} the exact loss is {exact:.3f}/n. The published equivalent is "
        "{published:.3f}/n, too large by the factor {factor:.4f}, which is the square root of e to the ε.",
        epsilon=epsilon,
        rows=rows,
        exact=rows * bernoulli_inverse_loss(rows, rows // 2, epsilon),
        published=2 / (1 - math.exp(-epsilon)),
        factor=2 / (1 - math.exp(-epsilon)) / (rows * bernoulli_inverse_loss(rows, rows // 2, epsilon)),
    )


def plotted() -> Finding:
    """E40: the curve of the script has a bracket in the wrong place."""
    rows, epsilon = 500, 1
    equivalent = 2 / (1 - math.exp(-epsilon))
    meant, typed = 4 * (math.exp(2 * epsilon) + 1), 4 * math.exp(2 * epsilon + 1)
    return found(
        "At ε = {epsilon} the bracket turns {meant:.2f} into {typed:.2f}, and the curve is {curve:.3f}/n. "
        "The exact loss is {exact:.3f}/n.",
        epsilon=epsilon,
        meant=meant,
        typed=typed,
        curve=equivalent * typed / meant,
        exact=rows * bernoulli_inverse_loss(rows, rows // 2, epsilon),
    )


def optimal() -> Finding:
    """E41: the loss over the lower bound, and over the loss of the clamped geometric mechanism."""
    rows, epsilon = 500, 1
    exact = bernoulli_inverse_loss(rows, rows // 2, epsilon)
    counts = np.arange(rows + 1)
    chances = np.exp(ClampedGeometric(scale=Fraction(1, epsilon), upper=rows).law(rows // 2).logpmf(counts))
    geometric = float(chances @ np.abs(counts - rows // 2)) / rows
    small, large, many = 0.01, 8, 10**7
    ratio = {
        e: bernoulli_inverse_loss(many, many // 2, e) / unbiased_lower_bound(many, e) for e in (small, large)
    }
    return found(
        "The loss is {ratio:.1f} times the lower bound at ε = {epsilon}, {small_ratio:.0f} times at ε = "
        "{small:g} and {large_ratio:,.0f} times at ε = {large}, for any n. At ε = {epsilon} the clamped "
        "geometric mechanism loses {geometric:.4f}/n, which is less by the factor {better:.4f}.",
        ratio=exact / unbiased_lower_bound(rows, epsilon),
        epsilon=epsilon,
        small=small,
        small_ratio=ratio[small],
        large=large,
        large_ratio=ratio[large],
        geometric=rows * geometric,
        better=exact / geometric,
    )


ERRATA = (
    Erratum(
        id="E36",
        source="A24",
        statement="Inverse sensitivity of a proportion has the normaliser (1 + r - r^(s+1) - r^(n-s+1))/(1 "
        "- r), with r = e^(-ε/2) and s matching records.",
        verdict="holds",
        finding=normaliser,
        corrected="The same.",
        code="sfumato.accuracy.bernoulli_inverse_loss",
    ),
    Erratum(
        id="E37",
        source="A24",
        statement="Inverse sensitivity of a proportion is unbiased: no constant is nearer to it on average "
        "than the true share.",
        verdict="false",
        finding=unbiased,
        corrected="It is unbiased at s if and only if r - r^(n-s+1) ≤ 1 - r^(s+1) and r - r^(s+1) ≤ 1 - "
        "r^(n-s+1). This fails near both ends.",
        code="sfumato.accuracy.is_unbiased",
    ),
    Erratum(
        id="E38",
        source="A24",
        statement="No unbiased ε-DP share of n records has a mean absolute error below 1/(2n(e^(2ε) + 1)).",
        verdict="holds",
        finding=lower_bound,
        corrected="1/(n(e^(2ε) + 1)), twice as much, for the same mechanisms.",
        code="sfumato.accuracy.unbiased_lower_bound",
    ),
    Erratum(
        id="E39",
        source="A24",
        statement="The loss of inverse sensitivity on a proportion is equivalent to 2/(n(1 - e^(-ε))).",
        verdict="false",
        finding=equivalent,
        corrected="1/(n sinh(ε/2)): the sum of l r^l is r/(1 - r)^2, and the r above the line was lost.",
        code="sfumato.accuracy.bernoulli_inverse_loss",
    ),
    Erratum(
        id="E40",
        source="A24",
        statement="Figure 24 shows the equivalent of the loss. The script that is thought to draw it has "
        "4e^(2ε+1) where 4(e^(2ε) + 1) is meant.",
        verdict="false",
        finding=plotted,
        corrected="The curve 1/(n sinh(ε/2)).",
        code="sfumato.accuracy.bernoulli_inverse_loss",
    ),
    Erratum(
        id="E41",
        source="A24",
        statement="Inverse sensitivity is optimal for a proportion, because its loss and the lower bound "
        "are both of order 1/n.",
        verdict="misleading",
        finding=optimal,
        corrected="It has the best rate in n. Its constant over the bound is (e^(2ε) + 1)/sinh(ε/2), "
        "without limit for small and for large ε, and the clamped geometric mechanism is better by 2 "
        "cosh(ε/2).",
        code="sfumato.mechanisms.ClampedGeometric",
    ),
)
