"""Errata about the exponential mechanism for a mean: its utility, its normaliser and its limit."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.accuracy import (
    central_normaliser,
    independent_gap_tail,
    published_even_normaliser,
    published_independent_gap_limit,
    truncated_laplace_level,
)
from sfumato.audit import compare
from sfumato.lab.erratum import Erratum, Finding, found
from sfumato.laws import Choice, Clamped, DiscreteLaplace, SeededBits, Shifted
from sfumato.mechanisms import ExponentialMechanism


def deaf_utility() -> Finding:
    """E31: the exact loss of a mechanism whose utility does not look at the data."""
    rows = 10
    mechanism = ExponentialMechanism(sensitivity=Fraction(1), epsilon=Fraction(1), variant="exponential")
    answers = range(rows + 1)
    laws: list[Any] = [
        mechanism.law([-abs(answer - center) for answer in answers]) for center in (rows // 2, 0, 1)
    ]
    deaf, first, second = laws
    return found(
        "On {rows} records of nought or one the mechanism with this utility loses exactly {deaf:g} between "
        "all neighbours, because its answer has nothing to do with them. With the mean of the data in the "
        "place of the half it loses {heard:.3f} of the {epsilon} that is charged.",
        rows=rows,
        deaf=compare(deaf, deaf).epsilon().upper,
        heard=compare(first, second).epsilon().upper,
        epsilon=1,
    )


def mean_moves() -> Finding:
    """E32: how far one more record moves a mean, over all small sets."""
    values, most = [Fraction(k, 4) for k in range(5)], 4
    moved = {0: Fraction(0)}
    sets = 0
    for size in range(1, most):
        for chosen in itertools.combinations_with_replacement(values, size):
            sets += 1
            mean = Fraction(sum(chosen)) / size
            steps: list[Fraction] = [abs(Fraction(sum(chosen) + more) / (size + 1) - mean) for more in values]
            moved[size] = max(moved.get(size, Fraction(0)), *steps)
    return found(
        "Over {sets} small sets that are not empty, one more record moves the mean by {largest:g} at most, "
        "and by {later:.3f} once there are {most} records. It moves by {empty:g} only if the empty set is "
        "given a bound for its mean.",
        sets=sets,
        largest=float(max(moved.values())),
        later=float(moved[most - 1]),
        most=most,
        empty=float(max(values) - min(values)),
    )


def truncated() -> Finding:
    """E33: the exact loss of the truncated and of the clamped law."""
    rows, steps, epsilon = 100, 400, Fraction(2, 5)
    noise, top = DiscreteLaplace(steps / epsilon), rows * steps
    points = np.arange(top + 1)

    def cut(center: int) -> Choice:
        logs = np.asarray(Shifted(noise, center).logpmf(points))
        return Choice(np.exp(logs - logs.max()))

    clamped = [Clamped(Shifted(noise, center), 0, top) for center in (0, steps)]
    return found(
        "At ε' = {epsilon:g} and n = {rows} the truncated law costs {formula:.3f} by the formula, and "
        "{audited:.3f} by the audit of a grid of {points:,} points. The clamped law costs {clamped:g}.",
        epsilon=float(epsilon),
        rows=rows,
        formula=truncated_laplace_level(rows, epsilon),
        audited=compare(cut(0), cut(steps)).epsilon().upper,
        points=top + 1,
        clamped=compare(*clamped).epsilon().upper,
    )


def even_normaliser() -> Finding:
    """E34: the sum of the weights for an even number of cells."""
    rows, epsilon, half = 20, 0.8, 7
    rate, cells = rows * epsilon / 2, 2 * half
    total = sum(math.exp(-rate * abs(k / cells - 0.5)) for k in range(cells))
    return found(
        "For n = {rows}, ε = {epsilon:g} and L = {half} the weights add up to {total:.2f}, as the corrected "
        "formula says ({closed:.2f}). The published line says {published:.2f}. The equivalent that follows "
        "it is {equivalent:.2f} there, and right for large L.",
        rows=rows,
        epsilon=epsilon,
        half=half,
        total=total,
        closed=central_normaliser(rate, cells),
        published=published_even_normaliser(rate, cells),
        equivalent=8 * half * (1 - math.exp(-rate / 2)) / (rows * epsilon),
    )


def independent_draws() -> Finding:
    """E35: two independent draws of the limit, and of a grid."""
    rate, gap, cells, size, steep = 8, 0.05, 1000, 20_000, 400
    points = np.arange(cells)
    law = Choice(np.exp(-rate * np.abs(points / cells - 0.5)))
    drawn = np.asarray(law.sample(SeededBits(35), 2 * size)).reshape(2, size)
    seen = float(np.mean(drawn[0] - drawn[1] >= gap * cells))
    return found(
        "For λ = {rate} and η = {gap:g} the limit is {limit:.4f}; {size:,} pairs of independent draws on "
        "{cells} points give {seen:.3f}. For λ = {steep} it is {steep_limit:.1e}, and no expression that "
        "starts with {published:g} can fall so far.",
        rate=rate,
        gap=gap,
        limit=independent_gap_tail(rate, gap),
        size=size,
        cells=cells,
        seen=seen,
        steep=steep,
        steep_limit=independent_gap_tail(steep, gap),
        published=published_independent_gap_limit(),
    )


ERRATA = (
    Erratum(
        id="E31",
        source="A24",
        statement="A private mean of data in [0, 1] is drawn with the utility u(X, o) = -|o - 1/2|.",
        verdict="ill-posed",
        finding=deaf_utility,
        corrected="u(X, o) = -|o - mean(X)|. With 1/2 the utility does not depend on X and its sensitivity "
        "is 0.",
        code="sfumato.statistics.ExponentialMean",
    ),
    Erratum(
        id="E32",
        source="A24",
        statement="Under addition and removal the utility of a mean in [0, 1] has the sensitivity 1.",
        verdict="false",
        finding=mean_moves,
        corrected="It is 1/2 on sets that are not empty. Where the size is private, use a noisy sum and a "
        "noisy count.",
        code="sfumato.statistics.Mean",
    ),
    Erratum(
        id="E33",
        source="A24",
        statement="The limit of the exponential mean is the Laplace mechanism of degree ε' = ε/2.",
        verdict="false",
        finding=truncated,
        corrected="The limit is a Laplace law that is truncated to [0, 1]. Its exact level is ε' + log(2 - "
        "e^(-ε')) for large n. Clamped instead of truncated it is ε'.",
        code="sfumato.accuracy.truncated_laplace_level",
    ),
    Erratum(
        id="E34",
        source="A24",
        statement="For N = 2L points the normaliser has the factor 1 + 2q/(1 - q)², q = e^(nε/(4L)).",
        verdict="false",
        finding=even_normaliser,
        corrected="The factor is (q + 1)/(q - 1).",
        code="sfumato.accuracy.central_normaliser",
    ),
    Erratum(
        id="E35",
        source="A24",
        statement="P(Y_N - Y ≥ η) tends to an expression that starts with 1/8, so that Y_N does not "
        "converge to Y in probability.",
        verdict="false",
        finding=independent_draws,
        corrected="For independent draws the limit has a closed form that falls to 0. That there is no "
        "convergence is true of independent draws; coupled by their quantiles they converge almost surely.",
        code="sfumato.accuracy.independent_gap_tail",
    ),
)
