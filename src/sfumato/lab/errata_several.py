"""Errata about several quantiles at once: independent draws and the recursion."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.audit.exact import law_on
from sfumato.data.admission import admit
from sfumato.lab.errata_quantiles import WIDE, loss_on_line
from sfumato.lab.erratum import Erratum, Finding, found
from sfumato.laws import SeededBits
from sfumato.privacy import PureDP
from sfumato.quantile_methods import Independent, Quantiles, Recursive
from sfumato.quantile_methods.recursive import branches


def full_budgets() -> Finding:
    """E23: what the budget for each of several draws costs, and what a largest estimate says."""
    from scipy.special import betaincinv

    quartiles = tuple(Fraction(k, 4) for k in (1, 2, 3))
    cost = loss_on_line(
        Independent(), quartiles, "substitution", (0, 4, WIDE, 0), ((1, 8, 1), (0, 8, 2)), len(quartiles)
    )
    rows, count, draws = 100, 11, 300
    orders = tuple(Fraction(k, count + 1) for k in range(1, count + 1))
    data = np.asarray(betaincinv(2, 2, (np.arange(rows) + 0.5) / rows))
    truth = data[[math.ceil(order * rows) - 1 for order in orders]]
    query = Quantiles(
        probs=orders,
        budget=PureDP(1),
        bounds=(0, 1),
        step=Fraction(1, 2**20),
        neighbours="substitution",
        rows=rows,
        verify=0,
    )
    figures = {}
    for name, method in (("independent", Independent()), ("recursive", Recursive())):
        asked = replace(query, method=method)
        law: Any = law_on(asked, admit(data))
        bits = SeededBits(23)
        answers = [asked.value(law.sample(bits)) for _ in range(draws)]
        drawn = np.array(answers, dtype=float)
        figures[name] = drawn.max(axis=1).mean(), np.abs(drawn - truth).max(axis=1).mean()
    return found(
        "Three quartiles drawn with ε = {epsilon} each cost {cost:.3f} together, by the exact audit. On "
        "{rows} values of a beta law, {count} orders and ε = {epsilon} in all, the largest estimate is "
        "{independent_top:.2f} on average by independent draws and {recursive_top:.2f} by the recursion, "
        "whereas the largest errors are {independent_error:.2f} and {recursive_error:.2f}.",
        epsilon=1,
        cost=cost,
        rows=rows,
        count=count,
        independent_top=float(figures["independent"][0]),
        recursive_top=float(figures["recursive"][0]),
        independent_error=float(figures["independent"][1]),
        recursive_error=float(figures["recursive"][1]),
    )


def calls() -> Finding:
    """E28: the calls and the levels of the recursion."""
    few, many = 9, 1000
    counted = []
    for count in (few, many):
        orders = tuple(Fraction(k, count + 1) for k in range(1, count + 1))
        query = Quantiles(
            probs=orders,
            method=Recursive(),
            budget=PureDP(1),
            bounds=(0, 1),
            neighbours="substitution",
            rows=100,
            verify=0,
        )
        counted.append((len(branches(query.facts)), count.bit_length()))
    return found(
        "For {few} quantiles there are {few_calls} calls in {few_levels} levels, and the binary logarithm "
        "is {few_log:.2f}. For {many:,} there are {many_calls:,} calls in {many_levels} levels.",
        few=few,
        few_calls=counted[0][0],
        few_levels=counted[0][1],
        few_log=math.log2(few),
        many=many,
        many_calls=counted[1][0],
        many_levels=counted[1][1],
    )


ERRATA = (
    Erratum(
        id="E23",
        source="A24",
        statement="Figures 12 and 13 compare IndExp and RecExp at one ε. The script that is thought to draw "
        "them gives ε to each quantile of IndExp, sums the last estimate without its square, and takes the "
        "largest estimate for the largest error.",
        verdict="misleading",
        finding=full_budgets,
        corrected="IndExp has ε/m for each of m quantiles; errors are compared, and all of them are "
        "squared; right branches of RecExp search their own interval.",
        code="sfumato.quantile_methods.Independent",
    ),
    Erratum(
        id="E28",
        source="A24",
        statement="RecExp makes about log2(m) calls for m quantiles.",
        verdict="false",
        finding=calls,
        corrected="m calls in floor(log2 m) + 1 levels. The levels are what is paid for, because the parts "
        "of a level share no record; if records are replaced, two parts change, and the rates of the nodes "
        "must allow for it.",
        code="sfumato.quantile_methods.Recursive",
    ),
)
