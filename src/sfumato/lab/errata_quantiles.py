"""Errata about one private quantile: the exponential mechanism and smooth inverse sensitivity."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.accuracy import (
    epsilon_for_rank,
    exact_quantile_concentration,
    gap_ratio,
    inverse_sensitivity_quantile_tail,
    mean_squared_error,
    published_epsilon_for_value,
    published_quantile_rank_radius,
    quantile_rank_radius,
    quantile_rank_tail_exact,
)
from sfumato.audit import exact
from sfumato.audit.exact import law_on
from sfumato.data.admission import admit
from sfumato.grid import Floats
from sfumato.lab.errata_thresholds import uniform
from sfumato.lab.erratum import Erratum, Finding, found
from sfumato.lab.smooth_law import SmoothLaw
from sfumato.privacy import Neighbours, PureDP
from sfumato.quantile_methods import InverseSensitivity, Quantiles, Single

MEDIAN = Fraction(1, 2)
# A run of points so long that it alone decides what the weights add up to.
WIDE = 2**31


def loss_on_line(
    method: Any,
    orders: Sequence[Fraction],
    relation: Neighbours,
    gaps: Sequence[int],
    counts: tuple[Sequence[int], Sequence[int]],
    epsilon: Fraction | int,
) -> float:
    """The exact loss between two columns: how many records are at each place, with these gaps around them."""
    *places, end = (reach - 1 for reach in itertools.accumulate(gap + 1 for gap in gaps))
    query = Quantiles(
        probs=orders,
        method=method,
        budget=PureDP(epsilon),
        bounds=(0, end - 1),
        step=1,
        neighbours=relation,
        nulls="lower",
        verify=0,
    )
    left, right = (np.repeat(np.array(places, dtype=float), each) for each in counts)
    return exact(query, left, right).amount


def smooth_is_private() -> Finding:
    """E14: worst pairs of smooth inverse sensitivity under both relations."""
    method, gaps = InverseSensitivity(radius=5), (0, 100, WIDE, 0)
    replaced = loss_on_line(method, (MEDIAN,), "substitution", gaps, ((5, 7, 8), (4, 7, 9)), 1)
    added = loss_on_line(method, (MEDIAN,), "add-remove", gaps, ((1, 8, 7), (1, 8, 8)), 1)
    return found(
        "At ε = {epsilon} the exact audit finds pairs with a loss of {replaced:.4f} where a record is "
        "replaced, and {added:.4f} where one is added: the bound is attained and kept.",
        epsilon=1,
        replaced=replaced,
        added=added,
    )


def _smooth_tail(data: Floats, rank: int, radius: float, epsilon: float, reach: float) -> float:
    """The exact chance that smooth inverse sensitivity on [0, 1] is further than reach from a record."""
    return float(SmoothLaw.of(data, rank, radius, epsilon).beyond(data[rank - 1], np.array(reach)))


def smooth_tail() -> Finding:
    """E15: the bound over data and draws, and what is false about it for the population."""
    sets, worst, cases = 6, 0.0, 0
    for rows, order, budget, part, radius in itertools.product(
        (300, 1000, 3000), (0.3, 0.5), (0.5, 1, 4, 16), (4, 16), (0.001, 0.01)
    ):
        reach = 0.15 if order < 0.5 else 0.25
        step = reach / part
        bound = inverse_sensitivity_quantile_tail(
            rows=rows, density=1, reach=reach, step=step, radius=radius, width=1, epsilon=budget
        )
        rank = math.ceil(order * rows)
        tails = [
            _smooth_tail(uniform(rows, seed), rank, radius, budget, 2 * step + radius) for seed in range(sets)
        ]
        worst, cases = max(worst, float(np.mean(tails)) / bound), cases + 1
    many, step, radius = 10**8, 3e-6, 1e-6
    wide = inverse_sensitivity_quantile_tail(
        rows=many, density=1, reach=0.25, step=step, radius=radius, width=1, epsilon=16
    )
    away = exact_quantile_concentration(rows=many, order=MEDIAN, distance=2 * (2 * step + radius))
    return found(
        "In {cases} configurations of uniform data the chance of a miss is at most {worst:.2f} of the "
        "bound. The theorem is about the quantile of the sample: at n = {many:,} and u = {step:g} the bound "
        "is {bound:.1e}, and the quantile of the population is missed with a probability of "
        "{population:.2f} at least.",
        cases=cases,
        worst=worst,
        many=many,
        step=step,
        bound=wide,
        population=away - wide,
    )


def published_weights() -> Finding:
    """E24: exact audits of the published weights, which our queries have at a larger budget."""
    first, ninth = Fraction(1, 4), Fraction(9, 10)
    # Rates of one a rank: what the query would be charged for is what they cost.
    replaced = loss_on_line(Single(), (MEDIAN,), "substitution", (0, WIDE, 4, 0), ((9, 3, 8), (8, 3, 9)), 2)
    added = [
        loss_on_line(Single(), (order,), "add-remove", gaps, counts, 2 * max(order, 1 - order))
        for order, gaps, counts in (
            (MEDIAN, (4, WIDE, 0), ((10, 11), (11, 11))),
            (first, (0, WIDE, 4, 0), ((3, 9, 3), (4, 9, 3))),
            (ninth, (4, WIDE, 0), ((9, 0), (9, 1))),
        )
    ]
    return found(
        "For ε = {epsilon} the exact audit finds a loss of {replaced:.3f} if a record is replaced. If one "
        "is added it finds {median:.3f} for the median, {first:.3f} for order {first_order:g} and "
        "{ninth:.3f} for order {ninth_order:g}.",
        epsilon=1,
        replaced=replaced,
        median=added[0],
        first=added[1],
        first_order=float(first),
        ninth=added[2],
        ninth_order=float(ninth),
    )


def gaps_stay() -> Finding:
    """E25: what changes with the budget is the weight of a cell, and not its width."""
    rows, away, strong, weak = 100, 10, 1, Fraction(1, 10)
    data = admit(np.arange(1.0, rows + 1))
    ratios = []
    for epsilon in (strong, weak):
        query = Quantiles(
            probs=(MEDIAN,),
            method=Single(),
            budget=PureDP(epsilon),
            bounds=(0, rows + 1),
            step=Fraction(1, 10),
            neighbours="substitution",
            rows=rows,
            verify=0,
        )
        law: Any = law_on(query, data)
        middle = 10 * rows // 2 + 5
        ratios.append(math.exp(law.logpmf((middle,)) - law.logpmf((middle + 10 * away,))))
    return found(
        "On {rows} records at the whole numbers every gap is {gap}, at any ε. A point {away} ranks from the "
        "median is {strong_ratio:.1f} times less likely than one at the median for ε = {strong}, and "
        "{weak_ratio:.2f} times for ε = {weak:g}.",
        rows=rows,
        gap=1,
        away=away,
        strong_ratio=ratios[0],
        strong=strong,
        weak_ratio=ratios[1],
        weak=float(weak),
    )


def rank_error() -> Finding:
    """E26: the published radius on whole targets, where it holds, and on others, where it need not."""
    rows, whole_cases, broken = 40, 0, 0
    for seed in range(125):
        data = uniform(rows, seed)
        psi = gap_ratio(data, (0, 1))
        for rank, budget, failure in itertools.product((4, 10, 20, 36), (0.1, 1, 4), (0.5, 0.1, 0.05, 0.01)):
            radius = published_quantile_rank_radius(psi, budget, failure)
            # The next rank above the radius: a tail at exactly the radius may be larger.
            beyond = math.floor(radius) + 1
            chance = quantile_rank_tail_exact(data, (0, 1), target=rank, rate=budget / 2, distance=beyond)
            whole_cases, broken = whole_cases + 1, broken + (chance > failure)
    steep, likely = 10, Fraction(9, 10)
    radius = published_quantile_rank_radius(gap_ratio([0.5], (0, 1)), steep, likely)
    chance = quantile_rank_tail_exact(
        [0.5],
        (0, 1),
        target=MEDIAN,
        rate=Fraction(steep, 2),
        distance=Fraction(radius).limit_denominator(1000),
    )
    return found(
        "With the rate of half of ε and whole pn the statement fails {broken} times in {cases:,} exact "
        "checks. For one record in the middle, the median, ε = {budget} and β = {failure:g} it says "
        "{radius:.2f}, and the error is larger with probability {chance:g}: there the half is needed, "
        "{right:.2f} in all. With ties ψ is {ties}.",
        broken=broken,
        cases=whole_cases,
        budget=steep,
        failure=float(likely),
        radius=radius,
        chance=chance,
        right=quantile_rank_radius(gap_ratio([0.5], (0, 1)), Fraction(steep, 2), likely),
        ties=gap_ratio([0.5, 0.5], (0, 1)),
    )


def epsilon_chooser() -> Finding:
    """E27: the published budget, the one that a rank error needs, and what few records make of the first."""
    width, tolerance, failure, rows = 201, Fraction(201, 10), Fraction(1, 100), 1000
    published = published_epsilon_for_value(width, 1, tolerance, failure)
    few = np.array([50.0, 100.0, 151.0])
    # The value error of a median of three records, exactly: the share of the law more than v from the middle.
    edges = np.concatenate([[0.0], few, [float(width)]])
    weights = np.exp(-published / 2 * np.abs(np.arange(4) - 1.5))
    low, high = few[1] - float(tolerance), few[1] + float(tolerance)
    near = np.clip(np.minimum(edges[1:], high) - np.maximum(edges[:-1], low), 0, None)
    return found(
        "For values up to {width}, a tolerance of {tolerance:g} and a failure of {failure:g} the published "
        "ε is {published:.5f}, whatever n. A rank error of a tenth of n = {rows:,} on {width} public points "
        "needs {right:.3f}. On three records the published ε misses the tolerance with probability "
        "{missed:.2f}.",
        width=width,
        tolerance=float(tolerance),
        failure=float(failure),
        published=published,
        rows=rows,
        right=epsilon_for_rank(rows // 10, failure, width),
        missed=1 - float(weights @ near) / float(weights @ np.diff(edges)),
    )


def _squared_error(rows: int, width: float, order: float, rate: float, seed: int) -> float:
    """The exact mean squared error of the published weights around the sample quantile of the script."""
    data = width * uniform(rows, seed)
    place = order * (rows + 1)
    low = math.floor(place)
    quantile = data[low - 1] + (place - low) * (data[low] - data[low - 1])
    edges = np.concatenate([[0.0], data, [width]])
    return mean_squared_error(edges, -rate * np.abs(np.arange(rows + 1) - order * rows), float(quantile))


def squared_risks() -> Finding:
    """E44: mean squared errors of the first quartile, exact for given data, averaged over data sets."""
    width, epsilon, sizes, sets = 200, 0.2, (10, 100, 1000), (3000, 800, 300)
    risks, errors = [], []
    for rows, count in zip(sizes, sets, strict=True):
        each = [_squared_error(rows, width, 0.25, epsilon, seed) for seed in range(count)]
        risks.append(float(np.mean(each)))
        errors.append(float(np.std(each, ddof=1) / math.sqrt(count)))
    return found(
        "For the first quartile of uniform values up to {width} and ε = {epsilon:g} the mean squared error "
        "is {few:.0f} (± {few_error:.0f}) for {least} records, {some:.0f} (± {some_error:.0f}) for {middle} "
        "and {many:.2f} (± {many_error:.2f}) for {most:,}.",
        width=width,
        epsilon=epsilon,
        few=risks[0],
        few_error=errors[0],
        least=sizes[0],
        some=risks[1],
        some_error=errors[1],
        middle=sizes[1],
        many=risks[2],
        many_error=errors[2],
        most=sizes[2],
    )


ERRATA = (
    Erratum(
        id="E14",
        source="C22",
        statement="Theorem 3.1: ρ-smooth inverse sensitivity for a quantile is ε-DP.",
        verdict="holds",
        finding=smooth_is_private,
        corrected="The same, under both relations. The smooth form is due to [AD20], not to [MT07].",
        code="sfumato.quantile_methods.InverseSensitivity",
    ),
    Erratum(
        id="E15",
        source="C22",
        statement="Theorem 3.2.0.1: smooth inverse sensitivity is within 2u + ρ of the quantile but with an "
        "exponentially small probability.",
        verdict="holds",
        finding=smooth_tail,
        corrected="For the quantile of the sample, and u > 0. The proof reverses an inequality, has in/10 "
        "for (10-i)n/10, takes the wrong side of Chernoff's bound, and leaves the bounds of the data.",
        code="sfumato.accuracy.inverse_sensitivity_quantile_tail",
    ),
    Erratum(
        id="E24",
        source="A24",
        statement="QExp, which weighs a rank i by e^(-ε|i - pn|), is ε-DP.",
        verdict="false",
        finding=published_weights,
        corrected="It costs 2ε if records are replaced and 2 max(p, 1-p)ε if they are added or removed. The "
        "rates are ε/2 and ε/(2 max(p, 1-p)).",
        code="sfumato.quantile_methods.Single",
    ),
    Erratum(
        id="E25",
        source="A24",
        statement="When ε decreases, the gaps between consecutive records increase.",
        verdict="false",
        finding=gaps_stay,
        corrected="The gaps belong to the data. What changes are the weights of the cells: they become more "
        "equal.",
        code="sfumato.quantile_methods.Single",
    ),
    Erratum(
        id="E26",
        source="A24",
        statement="With probability 1 - β the rank error of QExp is at most 2(log ψ - log β)/ε, with ψ the "
        "range over the smallest gap.",
        verdict="false",
        finding=rank_error,
        corrected="True for the rate ε/2 and whole pn; add 1/2 otherwise. With ties it says nothing. ψ is "
        "private.",
        code="sfumato.accuracy.quantile_rank_radius",
    ),
    Erratum(
        id="E27",
        source="A24",
        statement="An ε for a wanted accuracy is found by setting the rank error equal to a part of the "
        "range of values.",
        verdict="false",
        finding=epsilon_chooser,
        corrected="Set it equal to a number of ranks, with a public number of points; a distance in values "
        "needs a public bound on the density. The smallest gap of the data is private.",
        code="sfumato.accuracy.epsilon_for_rank",
    ),
    Erratum(
        id="E44",
        source="A24",
        statement="The risk of QExp is of the order of 90 in figure 9, and of 100 in figure 8.",
        verdict="false",
        finding=squared_risks,
        corrected="In figure 9, with 1000 records, it is about 2. In figure 8 it falls from thousands to 2 "
        "as n grows.",
        code="sfumato.accuracy.mean_squared_error",
    ),
)
