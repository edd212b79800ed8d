"""The search finds what is known to be there: pairs that lose all of the charge, and defects."""

from fractions import Fraction
from unittest.mock import patch

import pytest
from tests.quantile_methods.mutants import QUANTILE_MUTANTS

from sfumato.audit import exact, search, worst_case, worst_found
from sfumato.errors import InvalidParameter
from sfumato.mechanisms import ClampedGeometric, GaussianMechanism, LaplaceMechanism
from sfumato.privacy import ZCDP, ApproxDP, PureDP
from sfumato.quantile_methods import (
    FromHistogram,
    Independent,
    InverseSensitivity,
    Joint,
    Quantiles,
    Recursive,
    Single,
    Tree,
)
from sfumato.statistics import Count, Histogram, Mean, Sum, Variance

F = Fraction
QUARTILES = (F(1, 4), F(1, 2), F(3, 4))
both = pytest.mark.parametrize("relation", ["substitution", "add-remove"])


def ask(method, probs, relation, **others):
    """On the finest grid of the bounds, which so few values would not get unasked."""
    finest = F(100, 2**32 - 1)
    given = {
        "budget": PureDP(1),
        "bounds": (0, 100),
        "step": finest,
        "nulls": "lower",
        "n_hint": 100,
        "verify": 0,
    }
    return Quantiles(probs=probs, method=method, neighbours=relation, **{**given, **others})


@both
@pytest.mark.parametrize(
    ("method", "probs", "size", "tries"),
    [
        (Single(), (F(1, 2),), 20, 12),
        (Single(), (F(1, 4),), 3000, 12),
        (Single(), (F(1, 4),), 1000, 12),
        (InverseSensitivity(), (F(9, 10),), 300, 40),
        (Joint(), (F(1, 3), F(2, 3)), 12, 12),
        (Recursive(), QUARTILES, 20, 4),
        (FromHistogram(steps=8), (F(3, 10),), 20, 60),
        (Tree(leaves=16), (F(1, 2),), 100, 10),
    ],
    ids=str,
)
def test_the_search_comes_near_the_charge_and_never_passes_it(method, probs, size, tries, relation):
    found = search(ask(method, probs, relation), size=size, tries=tries)
    print(found)
    assert found.loss.verdict != "VIOLATED", (found.left, found.right)
    assert found.loss.tightness >= 0.9
    # The laws of a recursion on a fine grid are looked at from below.
    assert found.loss.holds == (method.name != "recursive")


@pytest.mark.parametrize("budget", [ZCDP(0.05), ApproxDP(1, 1e-6)], ids=repr)
def test_other_budgets_are_proved_on_every_pair_that_is_looked_at(budget):
    for method, size in ((Single(), 50), (Independent(), 20)):
        found = search(
            ask(method, QUARTILES[: 1 if size == 50 else 3], "substitution", budget=budget),
            size=size,
            tries=10,
        )
        assert found.loss.verdict == "holds", str(found)


@both
@pytest.mark.parametrize(
    "query",
    [
        Count(budget=PureDP(1), between=(0, 1)),
        Sum(budget=PureDP(1), bounds=(-1, 3)),
        Mean(budget=PureDP(1), bounds=(0, 10), nulls="lower"),
        Variance(budget=PureDP(1), bounds=(0, 10)),
        Histogram(budget=PureDP(1), bounds=(0, 3), bins=3),
        Histogram(budget=PureDP(1), categories=("a", "b", "c")),
    ],
    ids=lambda query: query.name,
)
def test_statistics_of_thousands_of_records_lose_what_small_ones_do(query, relation):
    found = search(query, size=2000, neighbours=relation, tries=12)
    small = worst_case(query, size=3, cells=3, neighbours=relation)
    assert found.loss.holds
    assert found.loss.tightness >= 0.9 * small.loss.tightness


DEFECTS = {
    "weights of the published algorithm": (Single(), (F(1, 2),), "substitution", 1.9),
    "target rounded up": (Single(), (F(1, 2),), "add-remove", 1.9),
    "target rounded down": (Single(), (F(1, 2),), "add-remove", 1.9),
    "constants of add-remove under substitution": (Single(), (F(1, 2),), "substitution", 1.9),
    "full budget for every order": (Independent(), QUARTILES, "substitution", 2.0),
    "inverse sensitivity at twice its constant": (InverseSensitivity(), (F(1, 2),), "add-remove", 1.9),
    "joint constant of a single quantile": (Joint(), (F(1, 3), F(2, 3)), "substitution", 1.5),
    "recursion charged for one level": (Recursive(), QUARTILES, "add-remove", 1.2),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_the_search_finds_the_defect(name):
    method, probs, relation, least = DEFECTS[name]
    with QUANTILE_MUTANTS[name].defect():
        found = search(ask(method, probs, relation), size=21, tries=4 if method.name == "recursive" else 24)
        again = exact(ask(method, probs, relation), list(found.left), list(found.right))
    print(f"{name}: {found}")
    assert found.loss.verdict == "VIOLATED"
    assert found.loss.amount >= least
    # The pair that it names shows the same loss by itself.
    assert again.amount == pytest.approx(found.loss.amount, rel=1e-9)


def test_the_same_seed_looks_at_the_same_pairs():
    query = ask(Single(), (F(1, 3),), "add-remove")
    one, again, other = (search(query, size=30, tries=30, seed=seed) for seed in (1, 1, 2))
    assert (one.left, one.right, one.pairs) == (again.left, again.right, again.pairs)
    assert one.pairs != other.pairs


def test_progress_is_told_after_every_data_set():
    told = []
    query = Mean(budget=PureDP(1), bounds=(0, 1), neighbours="add-remove")
    search(query, size=5, tries=7, progress=lambda done, worst: told.append((done, worst.pairs)))
    assert [done for done, _ in told] == list(range(1, 8))
    assert told == sorted(told)


@pytest.mark.parametrize(
    "mechanism",
    [
        LaplaceMechanism(sensitivity=4, scale=F(8)),
        GaussianMechanism(sensitivity_squared=9, sigma_squared=F(50), coordinates=1),
        ClampedGeometric(scale=F(2), lower=0, upper=20),
    ],
    ids=repr,
)
def test_mechanisms_are_searched_too(mechanism):
    found = search(mechanism, size=10, tries=20)
    assert found.loss.holds
    assert found.loss.tightness >= 0.9


def test_all_pairs_are_tried_where_there_are_few_and_a_search_elsewhere():
    query = Count(budget=PureDP(1), neighbours="add-remove")
    few = worst_found(query, size=3)
    assert few.target.startswith("every pair")
    assert few.pairs == worst_case(query, size=3).pairs
    many = worst_found(query, size=500, tries=4)
    assert many.target.startswith("search")
    with patch("sfumato.audit.search.MOST_PAIRS", 3):
        assert worst_found(query, size=3, tries=2).target.startswith("search")


def test_what_cannot_be_searched_is_refused():
    with pytest.raises(InvalidParameter, match="size"):
        search(Count(budget=PureDP(1), neighbours="add-remove"), size=0)
    with pytest.raises(InvalidParameter, match="neighbours"):
        search(Count(budget=PureDP(1)), size=3)
    with pytest.raises(InvalidParameter, match="target"):
        search("a query", size=3)
