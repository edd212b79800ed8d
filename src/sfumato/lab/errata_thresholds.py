"""Errata about AboveThreshold and the histogram method that is built on it."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.accuracy import (
    above_threshold_alpha,
    above_threshold_radius,
    histogram_quantile_failure,
    published_above_threshold_alpha,
    published_histogram_failure,
    published_translated_alpha,
)
from sfumato.audit import compare
from sfumato.grid import Floats
from sfumato.lab.decile_errors import near_median
from sfumato.lab.erratum import Erratum, Finding, found
from sfumato.laws import SeededBits
from sfumato.mechanisms import AboveThreshold

DECILES = 9


def uniform(rows: int, seed: int) -> Floats:
    """So many sorted draws of the uniform law on [0, 1], always the same for a seed."""
    return np.sort((SeededBits(seed).words(rows) >> np.uint64(11)) * 2.0**-53)


def scan(epsilon: Fraction) -> AboveThreshold:
    """The published scan of queries of sensitivity 1: Laplace noise of scales 2/epsilon and 4/epsilon."""
    return AboveThreshold.general(epsilon, 1, one_sided=False)


def _loss(mechanism: AboveThreshold, left: list[int], right: list[int]) -> float:
    return compare(mechanism.law(np.array(left), 0), mechanism.law(np.array(right), 0)).epsilon().upper


def scan_is_private() -> Finding:
    """E1: the worst pair of the scan, and what half the noise would cost."""
    epsilon, before, high = Fraction(1), 30, 30
    mechanism = scan(epsilon)
    halved = AboveThreshold(
        moves=mechanism.moves,
        threshold_scale=mechanism.threshold_scale,
        query_scale=2 / epsilon,
        one_sided=False,
    )
    left, right = [high] * before + [0], [high + 1] * before + [-1]
    return found(
        "At ε = {epsilon:g} the exact loss of a pair of neighbours with {before} queries before the "
        "crossing is {loss:.4f}. With half the query noise it would be {halved:.4f}. For counts, which all "
        "move the same way, the published scales lose {counts:.4f} only.",
        epsilon=float(epsilon),
        before=before,
        loss=_loss(mechanism, left, right),
        halved=_loss(halved, left, right),
        counts=_loss(mechanism, left, [high + 1] * before + [0]),
    )


def returned_index() -> Finding:
    """E2: what the radius would be at the first and at the last place, and how it fails given the place."""
    queries, failure = 1000, Fraction(1, 20)
    first, last = (
        published_above_threshold_alpha(queries=place, failure=failure, epsilon=1) for place in (1, queries)
    )
    below = math.ceil(first) + 1
    law = scan(Fraction(1)).law(np.full(queries, -below), 0)
    return found(
        "At ε = {epsilon} and β = {failure:g} the radius is {first:.1f} if the first query is returned and "
        "{last:.1f} if query {queries:,} is: it is not known before. Let all queries be {below} below the "
        "threshold. The first is returned with probability {chance:.1e}, and then the statement fails for "
        "sure.",
        epsilon=1,
        failure=float(failure),
        first=first,
        last=last,
        queries=queries,
        below=below,
        chance=math.exp(float(law.logpmf(0))),
    )


def _crosses(queries: int, below: int) -> float:
    """How likely one of so many queries, all so far below the threshold, is told above it."""
    law = scan(Fraction(1)).law(np.full(queries, -below), 0)
    return -math.expm1(float(law.logpmf(queries)))


def translated_radius() -> Finding:
    """E3: how often the translated radius fails."""
    queries, failure = 1000, Fraction(1, 20)
    alpha = published_translated_alpha(queries=queries, failure=failure, epsilon=1)
    radius = above_threshold_radius(queries=queries, confidence=1 - failure, threshold_scale=2, query_scale=4)
    return found(
        "At ε = {epsilon}, β = {failure:g} and {queries:,} queries the radius is {alpha:.1f}. If all of "
        "them are that far below the threshold, one is told above with probability {chance:.3f}, not "
        "{failure:g}. At the radius that holds, {radius}, it is {kept:.4f}.",
        epsilon=1,
        failure=float(failure),
        queries=queries,
        alpha=alpha,
        chance=_crosses(queries, math.ceil(alpha)),
        radius=radius,
        kept=_crosses(queries, radius),
    )


def pseudo_code() -> Finding:
    """E4: where the answers of the pseudo-code lie."""
    rows, steps, order, lower, upper = 20, 10, 9, 100, 200
    width = (upper - lower) / steps
    counts = np.cumsum([rows // steps] * steps)
    mechanism = scan(Fraction(1, DECILES))
    once = mechanism.law(counts, rows * order // 10)
    copies = mechanism.law(np.tile(counts, order), rows * order // 10)
    return found(
        "For data between {lower} and {upper} in {steps} steps the median step starts at {right:g}; without "
        "the offset the answer is {wrong:g}. For {rows} records and ε = {epsilon} for the deciles, no count "
        "passes decile {order} with probability {none:.4f}. The query list then holds {order} copies, and "
        "the index is above {steps} with probability {beyond:.4f}.",
        lower=lower,
        upper=upper,
        steps=steps,
        right=lower + width * (steps // 2 - 1),
        wrong=width * (steps // 2 - 1),
        rows=rows,
        epsilon=1,
        order=order,
        none=math.exp(float(once.logpmf(steps))),
        beyond=float(copies.sf(steps - 1)) - math.exp(float(copies.logpmf(order * steps))),
    )


def histogram_theorem() -> Finding:
    """E7: how likely the median is near, exactly for seeded data, against what the theorem says."""
    rows, distance, failure, sets = 10_000, 0.1, Fraction(1, 20), 24
    small, budget = 1000, Fraction(304, 1000)
    few, many = (100_000, budget), (1_000_000, Fraction(35, 100))
    numbers: dict[str, float] = {}
    for name, (steps, epsilon) in (("few", few), ("many", many)):
        terms: dict[str, Any] = {"rows": rows, "steps": steps, "distance": distance, "failure": failure}
        near = [near_median(uniform(rows, seed), steps, epsilon, distance) for seed in range(sets)]
        scale = 2 * DECILES / epsilon
        radius = above_threshold_alpha(
            queries=steps, failure=failure, threshold_scale=scale, query_scale=2 * scale
        )
        numbers |= {
            f"{name}_steps": steps,
            f"{name}_epsilon": float(epsilon),
            f"{name}_claimed": 1 - published_histogram_failure(epsilon=epsilon, **terms),
            f"{name}_near": float(np.mean(near)),
            f"{name}_error": float(np.std(near, ddof=1) / math.sqrt(sets)),
            f"{name}_corrected": 1 - histogram_quantile_failure(order=Fraction(1, 2), radius=radius, **terms),
        }
    return found(
        "With n = {rows:,}, γ = {distance:g}, β = {failure:g}, K = {few_steps:,} and ε = {few_epsilon:g} "
        "the theorem says that the median is within γ with probability {few_claimed:.3f}. It is so with "
        "{few_near:.3f} (exact for given data, mean of {sets} data sets, standard error {few_error:.3f}). "
        "With K = {many_steps:,} and ε = {many_epsilon:g} it says {many_claimed:.3f}, and it is "
        "{many_near:.3f} (± {many_error:.3f}). The corrected bound promises {few_corrected:.2f} "
        "and {many_corrected:.2f} there, which is nothing. With K = {small:,} and ε = {few_epsilon:g} the "
        "looseness of the rest hides it: {small_claimed:.3f} is claimed, and {small_near:.3f} found.",
        rows=rows,
        distance=distance,
        failure=float(failure),
        sets=sets,
        small=small,
        small_claimed=1
        - published_histogram_failure(
            rows=rows, steps=small, distance=distance, failure=failure, epsilon=budget
        ),
        small_near=float(
            np.mean([near_median(uniform(rows, seed), small, budget, distance) for seed in range(4)])
        ),
        **numbers,
    )


def outside_the_bounds() -> Finding:
    """E13: how likely normal data leave their bounds."""
    from scipy.special import ndtr

    rows, bound = 1000, 3
    share = 2 * float(ndtr(-bound))
    return found(
        "Of {rows:,} standard normal values {expected:.1f} are expected outside ±{bound}, and at least one "
        "is there with probability {chance:.3f}.",
        rows=rows,
        expected=rows * share,
        bound=bound,
        chance=1 - (1 - share) ** rows,
    )


ERRATA = (
    Erratum(
        id="E1",
        source="C22",
        statement="AboveThreshold with Laplace noise of scales 2/ε and 4/ε is ε-DP.",
        verdict="holds",
        finding=scan_is_private,
        corrected="The same. In the proof |g - g'| is at most 1 and not equal to it, and the second run is "
        "on D'. For counts half the query noise is enough.",
        code="sfumato.mechanisms.AboveThreshold",
    ),
    Erratum(
        id="E2",
        source="C22",
        statement="Lemma 2.2.1.1: with probability 1 - β the scan errs by at most α = 8(log k + "
        "log(2/β))/ε, with k the returned index.",
        verdict="ill-posed",
        finding=returned_index,
        corrected="k must be the number of queries, fixed beforehand: α is random otherwise. The event is "
        "about f_i, and not about f_i plus its noise.",
        code="sfumato.accuracy.above_threshold_alpha",
    ),
    Erratum(
        id="E3",
        source="T",
        statement="The scan errs by at most α = (4 log(2/β) + log k)/ε; the shift of the noise has f_k(D) - "
        "f_k(D').",
        verdict="false",
        finding=translated_radius,
        corrected="8(log k + log(2/β))/ε, half of it for each noise, or 6 log(2/β)/ε + 4 log(k)/ε. The "
        "shift is g(D) - g(D') + f_k(D') - f_k(D).",
        code="sfumato.accuracy.above_threshold_radius",
    ),
    Erratum(
        id="E4",
        source="C22",
        statement="The pseudo-code of HistogramMethod answers for data in [a, b] with a step of [a, b].",
        verdict="false",
        finding=pseudo_code,
        corrected="Add the offset a; empty the list of queries for each decile; answer b, not a point below "
        "a, if no count passes.",
        code="sfumato.quantile_methods.FromHistogram",
    ),
    Erratum(
        id="E7",
        source="C22",
        statement="Theorem 2.2.3.1: a decile is further than γ away with probability at most β + "
        "2e^(-nγ²/12) + 2e^(-(nγ/2-α)²/(nγ)), α = 8(log K + log(2/β))/ε.",
        verdict="false",
        finding=histogram_theorem,
        corrected="Each decile has ε/9, so that 8 becomes 72, and the width of a step is added.",
        code="sfumato.accuracy.histogram_quantile_failure",
    ),
    Erratum(
        id="E13",
        source="C22",
        statement="The theorem for normal data holds on an interval [a, b].",
        verdict="false",
        finding=outside_the_bounds,
        corrected="As E7, and data outside [a, b] must be clamped first: a normal law always has some.",
        code="sfumato.accuracy.histogram_quantile_failure",
    ),
)
