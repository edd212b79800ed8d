"""Gaussian noise on several numbers uses all of its delta: by the exact audit 1 % less is too little."""

from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import pytest

from sfumato.audit import worst_by_groups, worst_case
from sfumato.data.part import Part
from sfumato.laws import DiscreteGaussian
from sfumato.mechanisms import GaussianMechanism
from sfumato.privacy import ZCDP, Amount, ApproxDP, PureDP, accountant_for
from sfumato.quantile_methods import Quantiles
from sfumato.quantile_methods.tree import Tree
from sfumato.statistics import Histogram, Mean, Variance

BUDGET = ApproxDP(1, 1e-6)
CATEGORIES = {"noise": "gaussian", "categories": ("a", "b", "c")}
WIDE = {"noise": "gaussian", "bounds": (-1, 3)}
TREE = Tree(leaves=4, branching=2, noise="gaussian")
MEDIAN = Quantiles(budget=BUDGET, probs=(0.5,), method=TREE, bounds=(0, 3), step=1, n_hint=4)
CASES = {
    "histogram": (Histogram(budget=BUDGET, **CATEGORIES), "substitution"),
    "histogram at epsilon 1/4": (Histogram(budget=ApproxDP(0.25, 1e-3), **CATEGORIES), "substitution"),
    "histogram at epsilon 6": (Histogram(budget=ApproxDP(6, 1e-9), **CATEGORIES), "substitution"),
    "tree, substitution": (MEDIAN, "substitution"),
    "tree, add-remove": (MEDIAN, "add-remove"),
    "variance": (Variance(budget=BUDGET, nulls="lower", **WIDE), "substitution"),
    "mean and spread": (Mean(budget=BUDGET, interval_share="auto", **WIDE), "add-remove"),
}


def less_noise():
    noise = property(lambda m: DiscreteGaussian(m.sigma_squared * Fraction(99, 100) ** 2))
    return patch.object(GaussianMechanism, "noise", noise)


@pytest.mark.parametrize("name", CASES)
def test_no_less_noise_would_do(name):
    query, relation = CASES[name]
    worst = worst_case(query, size=2, cells=3, neighbours=relation)
    assert worst.loss.holds
    # The noise of a tree also covers one count that moves by 2, which costs a little more than four by 1.
    assert worst.loss.tightness > 0.99
    with less_noise():
        assert worst_case(query, size=2, cells=3, neighbours=relation).loss.verdict == "VIOLATED"


PEOPLE = {
    "histogram": Histogram(budget=BUDGET, nulls="lower", **CATEGORIES),
    "tree": replace(MEDIAN, nulls="lower"),
    "tree under zCDP": replace(MEDIAN, nulls="lower", budget=ZCDP(0.1)),
}


@pytest.mark.parametrize(
    ("name", "relation", "changes"),
    [
        ("histogram", "add-remove", 2),
        ("histogram", "substitution", 4),
        ("tree", "add-remove", 2),
        pytest.param("tree", "substitution", 4, marks=pytest.mark.slow),
        ("tree under zCDP", "substitution", 4),
    ],
)
def test_no_less_noise_would_do_for_people_with_two_rows(name, relation, changes):
    query = replace(PEOPLE[name], neighbours=relation)

    def worst():
        return worst_by_groups(query, Part(changes), rows_per_unit=2, others=0, cells=1)

    assert worst().loss.holds
    assert worst().loss.tightness > 0.97
    with less_noise():
        assert worst().loss.verdict == "VIOLATED"


@pytest.mark.parametrize("budget", [BUDGET, ZCDP(0.1), PureDP(1)], ids=repr)
@pytest.mark.parametrize("relation", ["add-remove", "substitution"])
def test_what_a_tree_of_people_is_charged_is_its_budget(budget, relation):
    noise = "auto" if isinstance(budget, PureDP) else "gaussian"
    method = replace(TREE, noise=noise)
    query = replace(MEDIAN, method=method, budget=budget, nulls="lower", neighbours=relation, changes=4)
    assert query.cost == budget
    accountant = accountant_for(budget)
    accountant.charge(query.event, budget)
    assert accountant.remaining == Amount()
