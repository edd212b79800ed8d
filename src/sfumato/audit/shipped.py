"""The catalogue of everything that the package ships, with what each promises and how it is audited.

The tables below follow the registries: what is in a registry and has no line here fails the tests.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from sfumato.audit.exact import worst_case
from sfumato.audit.groups import worst_by_groups
from sfumato.audit.pairs import universe
from sfumato.audit.shipped_local import local_targets
from sfumato.audit.shipped_mechanisms import mechanism_targets
from sfumato.audit.target import Target, in_words
from sfumato.data.counts import NullRule
from sfumato.data.part import Part
from sfumato.privacy import ZCDP, ApproxDP, Budget, Neighbours, PureDP
from sfumato.quantile_methods import METHODS, Quantiles
from sfumato.statistics import (
    Count,
    ExponentialMean,
    FirstPassing,
    Histogram,
    InverseMean,
    InverseProportion,
    Mean,
    MostCommon,
    Proportion,
    Sum,
    Variance,
)
from sfumato.statistics.public_size import PublicSize

RELATIONS: tuple[Neighbours, ...] = ("substitution", "add-remove")
NULLS: tuple[NullRule, ...] = ("drop", "lower", "upper")
# One budget of each kind.
BUDGETS: tuple[Budget, ...] = (PureDP(1), ApproxDP(1, 1e-6), ZCDP(0.1))

# Every statistic, asked in each way that has a sensitivity or a clamp of its own.
QUESTIONS: dict[str, tuple[Any, dict[str, Any]]] = {
    "count": (Count, {}),
    "count between": (Count, {"between": (0, 1)}),
    "count equals": (Count, {"equals": ("a", "b")}),
    "proportion": (Proportion, {}),
    "proportion equals": (Proportion, {"equals": (3, 5)}),
    "sum over zero": (Sum, {"bounds": (-1, 3)}),
    "sum above zero": (Sum, {"bounds": (1, 3)}),
    "sum below zero": (Sum, {"bounds": (-7, -2)}),
    "mean": (Mean, {"bounds": (-1, 3)}),
    "mean with its spread": (Mean, {"bounds": (-1, 3), "interval_share": Fraction(1, 10)}),
    "variance": (Variance, {"bounds": (-1, 3)}),
    "histogram of 3 bins": (Histogram, {"bins": 3, "bounds": (0, 3)}),
    "histogram of 2 bins": (Histogram, {"bins": 2, "bounds": (0, 3)}),
    "histogram of edges": (Histogram, {"edges": (0, 0.1, 2, 7)}),
    "histogram of categories": (Histogram, {"categories": ("a", "b")}),
    "histogram with other": (Histogram, {"categories": ("a", "b"), "other": True}),
    "most common of two": (MostCommon, {"categories": ("a", "b")}),
    "most common of three": (MostCommon, {"categories": ("a", "b", "c")}),
    "most common by weights": (MostCommon, {"categories": ("a", "b", "c"), "method": "exponential"}),
    "two most common": (MostCommon, {"categories": ("a", "b", "c"), "picks": 2, "method": "base2"}),
    "inverse mean": (InverseMean, {"bounds": (-1, 3), "points": 30}),
    "inverse proportion": (InverseProportion, {}),
    "first passing": (FirstPassing, {"at": (0, 1, 2.5), "count": 1}),
    "first passing from above": (FirstPassing, {"at": (0, 1), "count": 2, "from_above": True}),
    "exponential mean": (ExponentialMean, {"bounds": (-1, 3), "points": 30}),
}
# Statistics that choose an option, and so have no noise to choose.
CHOICES: tuple[Any, ...] = (MostCommon, InverseMean, InverseProportion, ExponentialMean, FirstPassing)

# Every quantile method with options under which all outcomes can be listed.
METHOD_OPTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "single": ({}, {"flip": True}),
    "independent": ({},),
    "joint": ({"subcells": 1}, {"subcells": 2}),
    "interpolated": ({"subcells": 1, "drawn": 2}, {"subcells": 2, "drawn": 1}),
    "recursive": ({"subcells": 1}, {"subcells": 2}),
    "histogram": ({"steps": 8}, {"steps": 8, "published": True}),
    "inverse_sensitivity": ({}, {"radius": 1}),
    "unbounded": ({"ratio": 4, "lower": 0, "largest": 50}, {"ratio": 4, "largest": 4}),
    "tree": ({"leaves": 4, "branching": 2},),
    "equi_depth": ({"leaves": 4, "subcells": 1}, {"leaves": 2, "parts": 2, "subcells": 2}),
}
# At this delta three pieces are bought by squares, and one by its epsilon.
QUANTILE_RULES: tuple[tuple[Budget, NullRule], ...] = (
    (PureDP(1), "drop"),
    (PureDP(1), "lower"),
    (ZCDP(0.1), "drop"),
    (ApproxDP(1, 0.1), "lower"),
)
MEDIAN, TAIL = (Fraction(1, 2),), (Fraction(9, 10),)
QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
# What is audited with the counts that verify it too: one order, which has a frame then, and several.
VERIFIED = (("single", MEDIAN), ("joint", QUARTILES), ("recursive", QUARTILES))
# Records and the upper bound of their integers, for one order and for several.
_SHAPES = ((3, 2), (3, 2))
_OTHER_SHAPES = {
    "histogram": ((3, 2), (2, 1)),
    "unbounded": ((3, 2), (2, 1)),
    "tree": ((3, 2), (3, 1)),
    "equi_depth": ((3, 1), (3, 1)),
}
# Asked of all groups at once: the statistics whose noise is scaled in different ways.
GROUPED = ("count", "sum over zero", "mean with its spread", "histogram of 2 bins", "most common of two")
# Who is protected: rows, or people with two of them, and how many rows they can change in all groups.
UNITS: tuple[tuple[str, Neighbours, int | None, Part], ...] = (
    ("rows", "substitution", None, Part(2)),
    ("rows", "add-remove", None, Part()),
    ("people with 2 rows", "substitution", 2, Part(4)),
    ("people with 2 rows", "add-remove", 2, Part(2)),
)
# Data sets can be larger where there are few different records.
_FEW_RECORDS = 5


def shipped(*, quick: bool = False) -> tuple[Target, ...]:
    """Everything that the package ships: each statistic, quantile method, mechanism and local design.

    Guarantee:
        Whatever is in the registries of the package has a target here; a test compares the two. Statistics
        come under both neighbour relations, every kind of budget and every rule for nulls, but for those that
        they refuse; quantile methods under both relations and the rules of `QUANTILE_RULES`.

    Args:
        quick: smaller data sets and fewer choices, for a first look.

    >>> sorted({target.group for target in shipped()})
    ['local', 'mechanisms', 'quantiles', 'statistics']
    >>> len(shipped(quick=True)) < len(shipped())
    True
    """
    return (
        *_statistics(quick),
        *_by_groups(quick),
        *_quantiles(quick),
        *mechanism_targets(quick=quick),
        *local_targets(),
    )


def refused(kind: Any, relation: Neighbours, nulls: NullRule) -> bool:
    """Whether a statistic needs a number of values that is private here, and says so before any data."""
    return issubclass(kind, PublicSize) and (relation == "add-remove" or nulls == "drop")


def _noises(kind: Any, budget: Budget, quick: bool) -> tuple[Any, ...]:
    # With one count, an approximate budget buys Laplace noise unless it is told otherwise.
    if kind in CHOICES or not isinstance(budget, ApproxDP):
        return ("auto",)
    return ("gaussian",) if quick else ("auto", "gaussian")


def _statistics(quick: bool) -> Iterator[Target]:
    for title, (kind, parameters) in QUESTIONS.items():
        for budget, relation, nulls in itertools.product(BUDGETS, RELATIONS, NULLS):
            if refused(kind, relation, nulls):
                continue
            for noise in _noises(kind, budget, quick):
                query = kind(budget=budget, neighbours=relation, nulls=nulls, noise=noise, **parameters)
                size, cells = (2, 2) if quick else (3, 3)
                few = len(universe(query, cells)) <= _FEW_RECORDS and kind not in CHOICES
                size += 2 * (few and not quick)
                chosen = "" if noise == "auto" else f", {noise} noise"
                yield _target("statistics", title, f"{relation}, nulls {nulls}{chosen}", query, size, cells)


def _by_groups(quick: bool) -> Iterator[Target]:
    budgets = BUDGETS[:1] if quick else (BUDGETS[0], BUDGETS[2])
    for title, budget, (unit, relation, rows, part) in itertools.product(GROUPED, budgets, UNITS):
        kind, given = QUESTIONS[title]
        query = kind(budget=budget, neighbours=relation, nulls="lower", **given)
        # Of people with two rows there are many, and pairs of them more.
        others, cells = (0, 1) if rows else (1, 2)
        yield Target(
            group="statistics",
            subject=query.name,
            title=f"{title} by groups",
            detail=f"{relation} of {unit}",
            cost=replace(query, changes=part.changes).cost,
            run=partial(worst_by_groups, query, part, rows_per_unit=rows, others=others, cells=cells),
        )


def _quantiles(quick: bool) -> Iterator[Target]:
    for name, method in METHODS.items():
        one, several = _OTHER_SHAPES.get(name, _SHAPES)
        for options, orders in _asked(name, quick):
            size, top = (2, 1) if quick else one if len(orders) == 1 else several
            for (budget, nulls), relation in itertools.product(QUANTILE_RULES, RELATIONS):
                query = Quantiles(
                    probs=orders,
                    method=method(**options),
                    budget=budget,
                    neighbours=relation,
                    nulls=nulls,
                    bounds=(0, top),
                    step=1,
                    n_hint=4,
                    verify=0,
                )
                chosen = "".join(f", {key} {value}" for key, value in options.items())
                asked = f"order{'s' * (len(orders) > 1)} {' '.join(map(str, orders))}"
                detail = f"{asked}, {relation}, nulls {nulls}{chosen}"
                yield _target("quantiles", name, detail, query, size, top + 1)
                if name == "single" and orders == MEDIAN and not options:
                    framed = replace(query, interval_share=Fraction(1, 5))
                    yield _target("quantiles", name, f"{detail}, interval share 1/5", framed, size, top + 1)
                if (name, orders) in VERIFIED and options == METHOD_OPTIONS[name][0]:
                    counted = replace(query, verify=Fraction(1, 4))
                    yield _target("quantiles", name, f"{detail}, verify 1/4", counted, size, top + 1)


def _asked(name: str, quick: bool) -> Iterator[tuple[dict[str, Any], tuple[Fraction, ...]]]:
    """The first options of a method meet two sets of orders, the others the median."""
    first, *others = METHOD_OPTIONS.get(name, ({},))
    yield from ((options, MEDIAN) for options in (first, *others))
    if not quick:
        yield first, TAIL if name == "single" else QUARTILES


def _target(group: str, title: str, detail: str, query: Any, size: int, cells: int) -> Target:
    rows = size if query.neighbours == "substitution" else None
    cost = replace(query, rows=rows).cost
    # A budget can buy more than is needed: a public count is free, and some noise is pure.
    paid = "" if cost == query.budget else f", under {in_words(query.budget)}"
    return Target(
        group=group,
        subject=title if group == "quantiles" else query.name,
        title=title,
        detail=detail + paid,
        cost=cost,
        run=partial(worst_case, query, size=size, cells=cells),
    )
