"""Errata about the mean errors on the slides: by ranks, in closed form, and of a naive median."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.accuracy import (
    naive_median_loss,
    published_histogram_closed_mean_error,
    published_histogram_rank_mean_error,
)
from sfumato.lab.errata_thresholds import DECILES, scan, uniform
from sfumato.lab.erratum import Erratum, Finding, found
from sfumato.laws import DiscreteLaplace


def _many_rows_error(rows: int, order: float, epsilon: float) -> float:
    """The mean error of one decile by the method of the slides for so many rows that counts are as expected.

    The steps are so many that the scan is a process in time: its integrals are sums over a fine grid.
    """
    steps = 1.5 * rows / math.log(rows)
    threshold, query = 2 * DECILES / epsilon / rows, 4 * DECILES / epsilon / rows
    places = (np.arange(8000) + 0.5) / 8000
    shares = (np.arange(400) + 0.5) / 400
    noise = threshold * np.where(shares < 0.5, np.log(2 * shares), -np.log(2 * (1 - shares)))
    gaps = (order + noise[:, None] - places) / query
    stays = np.where(gaps > 0, np.log1p(-np.exp(-np.abs(gaps)) / 2), gaps - math.log(2))
    survival = np.exp(np.cumsum(stays, axis=1) * steps / len(places))
    # E|A - d| = d + the integral of the sign of x - d times P(A > x).
    return order + float((np.sign(places - order) * survival).mean(axis=1).mean())


def _mean_error(rows: int, epsilon: Fraction, sets: int) -> float:
    """The mean error of the median by the method of the slides, exactly for given data."""
    steps = math.ceil(1.5 * rows / math.log(rows))
    mechanism, edges = scan(epsilon / DECILES), np.append(np.arange(steps) / steps, 1.0)
    errors = []
    for seed in range(sets):
        counts = np.searchsorted(uniform(rows, seed), np.arange(1, steps + 1) / steps)
        chances = np.exp(mechanism.law(counts, rows // 2).logpmf(np.arange(steps + 1)))
        errors.append(float(chances @ np.abs(edges - 0.5)))
    return float(np.mean(errors))


def slides_by_ranks() -> Finding:
    """E16: the radius of a ninth of the budget, usual data, and data so many that the bound fails."""
    rows, epsilon = 10_000, 1
    alpha = 8 * math.log(3 * rows**1.5) / epsilon
    usual = [(1000, Fraction(1)), (1000, Fraction(3)), (2000, Fraction(1, 2))]
    ratios = [
        _mean_error(n, e, 4) / published_histogram_rank_mean_error(rows=n, order=Fraction(1, 2), epsilon=e)
        for n, e in usual
    ]
    huge, order, tiny = 10**12, 0.7, 1.2e-9
    return found(
        "At n = {rows:,} and ε = {epsilon} the radius must be {right:.0f} ranks and not {alpha:.0f}: the "
        "first decile, at rank {decile:,}, has no rank left. On data of usual size the error stays below "
        "the bound all the same: in {cases} cases it is at most {ratio:.2f} of it. For n = {huge:.0e}, "
        "decile {seventh:g} and ε = {tiny:g} it claims {claimed:.3f}, and the error is {error:.3f}.",
        rows=rows,
        epsilon=epsilon,
        right=DECILES * alpha,
        alpha=alpha,
        decile=rows // 10,
        cases=len(usual),
        ratio=max(ratios),
        huge=huge,
        seventh=10 * order,
        tiny=tiny,
        claimed=published_histogram_rank_mean_error(rows=huge, order=order, epsilon=tiny),
        error=_many_rows_error(huge, order, tiny),
    )


def slides_closed() -> Finding:
    """E17: the closed form against what it must dominate."""
    terms: dict[str, Any] = {"rows": 10_000, "order": Fraction(1, 2), "epsilon": Fraction(1, 5)}
    rows, epsilon = 10_000, 0.2
    closed = published_histogram_closed_mean_error(**terms)
    printed = 16 * math.log(3) * math.log(rows) / (rows * epsilon)
    meant = 16 * (math.log(3) + 1.5 * math.log(rows)) / (rows * epsilon)
    return found(
        "At n = {rows:,}, ε = {epsilon:g} and the median it is {closed:.3f}, below the {ranks:.3f} of the "
        "expression by ranks. The printed term is {printed:.3f} where {meant:.3f} is meant; with it the sum "
        "is {repaired:.3f}.",
        rows=rows,
        epsilon=epsilon,
        closed=closed,
        ranks=published_histogram_rank_mean_error(**terms),
        printed=printed,
        meant=meant,
        repaired=closed - printed + meant,
    )


def naive_median() -> Finding:
    """E18: the mean size of Laplace noise."""
    epsilon, unit = Fraction(1, 2), 1000
    law = DiscreteLaplace(unit / epsilon)
    reach = np.arange(1, 60 * int(law.scale))
    return found(
        "At ε = {epsilon:g}, for a median in the unit interval, the formula says {formula:g}; the law of "
        "the noise on a lattice of {unit:,} steps has the mean size {lattice:.4f}.",
        epsilon=float(epsilon),
        formula=naive_median_loss(1, epsilon),
        unit=unit,
        lattice=2 * float(np.exp(law.logpmf(reach)) @ reach) / unit,
    )


ERRATA = (
    Erratum(
        id="E16",
        source="S22",
        statement="Slides 3 and 4 of 5: the mean error of a decile is at most a sum over the order "
        "statistics at α = 8 log(3n√n)/ε ranks from it.",
        verdict="false",
        finding=slides_by_ranks,
        corrected="72 log(3n√n)/ε. It is undefined where no rank is left. The sum of both sides, where the "
        "larger would do, hides the mistake on data of usual size.",
        code="sfumato.accuracy.histogram_mean_error",
    ),
    Erratum(
        id="E17",
        source="S22",
        statement="Slide 5 of 5: the closed form has the term (16/ε) log(3) log(n)/n.",
        verdict="false",
        finding=slides_closed,
        corrected="2α/n = (16/(nε))(log 3 + 1.5 log n), and nine times that for a ninth of the budget.",
        code="sfumato.accuracy.histogram_mean_error",
    ),
    Erratum(
        id="E18",
        source="S22",
        statement="A median in [0, 1] with Laplace noise for its worst sensitivity has the mean error 1/ε.",
        verdict="holds",
        finding=naive_median,
        corrected="The same. The integral is over the whole line, or twice the half line.",
        code="sfumato.accuracy.naive_median_loss",
    ),
)
