"""Errata about the lemmas under the histogram method: sample deciles, counts in strips, mean errors."""

import itertools
import math
from fractions import Fraction
from typing import Any

from sfumato.accuracy import (
    Scenario,
    above_threshold_alpha,
    exact_quantile_concentration,
    histogram_mean_error,
    min_count,
    published_histogram_mean_error,
    published_min_count,
    published_quantile_concentration,
    quantile_concentration,
)
from sfumato.accuracy.order_statistics import at_most
from sfumato.lab.erratum import Erratum, Finding, found

ORDERS = tuple(Fraction(i, 10) for i in range(1, 10))


def uniform_deciles() -> Finding:
    """E5: the published bound, ours, and the exact probability."""
    cases = list(itertools.product((20, 100, 500, 2000), ORDERS, (0.02, 0.05, 0.1, 0.15, 0.2)))
    broken = ours_broken = 0
    for rows, order, gamma in cases:
        exact = exact_quantile_concentration(rows=rows, order=order, distance=gamma / 2)
        broken += exact > published_quantile_concentration(rows=rows, distance=gamma / 2)
        ours_broken += exact > quantile_concentration(rows=rows, order=order, distance=gamma / 2)
    rows, gamma, median = 2000, 0.1, Fraction(1, 2)
    published = published_quantile_concentration(rows=rows, distance=gamma / 2)
    ours = quantile_concentration(rows=rows, order=median, distance=gamma / 2)
    return found(
        "In {cases} cases the exact probability is above the bound {broken} times, and above ours "
        "{ours_broken} times. At n = {rows:,} and γ = {gamma:g} the median has {exact:.1e} exactly, "
        "{ours:.1e} by ours and {published:.2f} by the published one, whose exponent is {factor:.0f} times "
        "smaller.",
        cases=len(cases),
        broken=broken,
        ours_broken=ours_broken,
        rows=rows,
        gamma=gamma,
        exact=exact_quantile_concentration(rows=rows, order=median, distance=gamma / 2),
        ours=ours,
        published=published,
        factor=math.log(ours / 2) / math.log(published / 2),
    )


def counts_in_strips() -> Finding:
    """E6: where more records are wanted than expected."""
    rows, gamma, least = 100, Fraction(1, 50), 5
    terms: dict[str, Any] = {"rows": rows, "share": gamma / 2, "least": least}
    return found(
        "At n = {rows}, γ = {gamma:g} and α = {least} one of the two strips has too few records with "
        "probability {exact:.3f} by itself; the lemma claims {published:.4f} for both. With the hypothesis "
        "added the bound is {ours:g} there, and claims nothing.",
        rows=rows,
        gamma=float(gamma),
        least=least,
        exact=at_most(least - 1, rows, float(gamma) / 2),
        published=published_min_count(**terms),
        ours=min_count(**terms),
    )


def mean_error() -> Finding:
    """E8: where the bound is vacuous, and where it is false."""
    rows, alpha = 10_000, 60
    repaired = 2 * alpha / rows + 4 / rows * (math.sqrt(math.pi * alpha) + 4 * math.exp(-alpha / 4))
    many, order, steps = 10**6, Fraction(9, 10), 2
    claimed = published_histogram_mean_error(
        rows=many, steps=steps, order=order, failure=Fraction(1, 20), epsilon=80
    )
    # The left edges are 0 and 1/2.
    least = float(order - Fraction(steps - 1, steps))
    return found(
        "At n = {rows:,} and α = {alpha} the last term is {last:.0e}; what can stand in its place is "
        "{repaired:.4f}. The width of a step is missing, so that the bound can be false: with n = {many:,}, "
        "{steps} steps, ε = {epsilon} and decile {ninth} it claims {claimed:.3f}, and the nearest left edge "
        "is {least:g} away.",
        rows=rows,
        alpha=alpha,
        last=8 * math.exp(alpha) / rows,
        repaired=repaired,
        many=many,
        steps=steps,
        epsilon=80,
        ninth=int(10 * order),
        claimed=claimed,
        least=least,
    )


def rate() -> Finding:
    """E9: how fast the published and the corrected bound grow with n."""
    small, large, epsilon = 10**4, 10**6, 1

    def published(rows: int) -> float:
        root = Fraction(1, math.isqrt(rows))
        return published_histogram_mean_error(
            rows=rows, steps=rows, order=Fraction(1, 2), failure=root, epsilon=epsilon
        )

    def corrected(rows: int) -> float:
        root = Fraction(1, math.isqrt(rows))
        radius = above_threshold_alpha(queries=rows, failure=root, threshold_scale=18, query_scale=36)
        return histogram_mean_error(rows=rows, steps=rows, order=Fraction(1, 2), failure=root, radius=radius)

    far = 10**10
    return found(
        "With β one over the root of n, as many steps as records and ε = {epsilon} the published bound "
        "grows like n to the power {published:.2f} between n = {small:,} and {large:,}. The corrected one "
        "falls like n to the power {corrected:.2f} between n = {large:,} and {far:,}.",
        epsilon=epsilon,
        published=math.log(published(large) / published(small)) / math.log(large / small),
        small=small,
        large=large,
        corrected=math.log(corrected(far) / corrected(large)) / math.log(far / large),
        far=far,
    )


def normal_deciles() -> Finding:
    """E10: the formula against the inverse of the distribution function."""
    from scipy.special import erfinv, ndtri

    deciles = [math.sqrt(2) * float(erfinv(2 * float(order) - 1)) for order in ORDERS]
    apart = max(abs(each - float(ndtri(float(order)))) for each, order in zip(deciles, ORDERS, strict=True))
    return found(
        "The ninth decile is {ninth:.4f}. All nine agree with the inverse of the normal distribution "
        "function to {digits} digits at least.",
        ninth=deciles[-1],
        digits=min(math.floor(-math.log10(max(apart, 1e-16))), 12),
    )


def normal_concentration() -> Finding:
    """E11: the domain of the lemma, a constant of its proof, and the bound that replaces it."""
    law = Scenario.named("normal", mean=0, sd=1)
    below = sum(float(law.quantile(float(order))) < -1e-9 for order in ORDERS)
    cases = list(
        itertools.product(
            (10, 50, 200, 1000, 5000, 20_000), ORDERS, (0.02, 0.05, 0.1, 0.2, 0.4, 0.64, 0.9, 1.28)
        )
    )
    broken = 0
    for rows, order, gamma in cases:
        terms: dict[str, Any] = {"rows": rows, "order": order, "distance": gamma / 2, "law": law}
        broken += exact_quantile_concentration(**terms) > quantile_concentration(**terms)
    return found(
        "The domain is empty for {below} deciles of nine, and a single point for the median. The proof "
        "needs a constant of one at least, says five, and has {constant:.2f}. The bound that replaces the "
        "lemma is exceeded {broken} times in {cases} exact cases, over all deciles.",
        below=below,
        constant=25 / (6 * math.pi),
        broken=broken,
        cases=len(cases),
    )


def normal_strips() -> Finding:
    """E12: counts in strips beside the deciles of normal data."""
    from scipy.special import ndtr, ndtri

    cases = list(
        itertools.product(
            (20, 100, 500, 2000, 10_000), ORDERS, (0.1, 0.2, 0.5, 0.8, 1.2), (0.2, 0.5, 0.9, 1.5)
        )
    )
    broken = without = 0
    for rows, order, gamma, part in cases:
        decile = float(ndtri(float(order)))
        share = float(ndtr(decile + gamma) - ndtr(decile + gamma / 2))
        least = max(part * rows * share, 1e-9)
        exact = at_most(math.ceil(least) - 1, rows, share)
        broken += exact > min_count(rows=rows, share=share, least=least)
        without += exact > published_min_count(rows=rows, share=share, least=least)
    return found(
        "With the mass of each strip in the place of its cubic expansion, the bound is exceeded {broken} "
        "times in {cases} exact cases. Without the condition that as many records are expected as wanted it "
        "would be exceeded {without} times.",
        broken=broken,
        cases=len(cases),
        without=without,
    )


ERRATA = (
    Erratum(
        id="E5",
        source="C22",
        statement="Lemma 2.2.3.1: a decile of n uniform values is further than γ/2 from its own with "
        "probability at most 2e^(-nγ²/12).",
        verdict="holds",
        finding=uniform_deciles,
        corrected="2e^(-nγ²/2), by Hoeffding's inequality.",
        code="sfumato.accuracy.quantile_concentration",
    ),
    Erratum(
        id="E6",
        source="C22",
        statement="Lemma 2.2.3.2: two strips of width γ/2 have α records each but with probability "
        "2e^(-(nγ/2-α)²/(nγ)).",
        verdict="false",
        finding=counts_in_strips,
        corrected="True for α ≤ nγ/2, which must be required.",
        code="sfumato.accuracy.min_count",
    ),
    Erratum(
        id="E8",
        source="C22",
        statement="The mean error of a decile d is at most dβ + 2√(3π/n) + 8e^α/n.",
        verdict="false",
        finding=mean_error,
        corrected="max(d, 1-d)β + h + α/n + √(π/(2n)), with the α of one decile. What is integrated is no "
        "bound for distances below 2α/n or above 1/10.",
        code="sfumato.accuracy.histogram_mean_error",
    ),
    Erratum(
        id="E9",
        source="C22",
        statement="The mean error is dβ + O(1/√n).",
        verdict="misleading",
        finding=rate,
        corrected="True for fixed β, K and ε only. O(n^(-1/2) + log(n)/(nε)) for the corrected bound.",
        code="sfumato.accuracy.histogram_mean_error",
    ),
    Erratum(
        id="E10",
        source="C22",
        statement="The deciles of N(0, 1) are √2 erfinv(2i/10 - 1).",
        verdict="holds",
        finding=normal_deciles,
        corrected="The same.",
        code="sfumato.accuracy.Scenario",
    ),
    Erratum(
        id="E11",
        source="C22",
        statement="The lemma η bounds the deviation of a decile d_i of normal data, for γ in [0, d_i].",
        verdict="not proved",
        finding=normal_concentration,
        corrected="Use the bound of E5 with the normal distribution function, for all deciles. The last "
        "step of the proof replaces a factor by a larger one in the wrong direction.",
        code="sfumato.accuracy.quantile_concentration",
    ),
    Erratum(
        id="E12",
        source="C22",
        statement="The lemma μ bounds the number of normal values near a decile, by the cube of a bracket.",
        verdict="holds",
        finding=normal_strips,
        corrected="Where the bracket is not negative, which must be required. The mass of the strip is "
        "simpler, and needs no sign of d_i.",
        code="sfumato.accuracy.min_count",
    ),
)
