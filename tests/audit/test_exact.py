"""The audit as its users see it: two inputs, the worst of many, and what it refuses."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from sfumato.audit import Loss, exact, worst_case
from sfumato.audit.pairs import neighbouring_pairs, neighbouring_values, universe
from sfumato.data.dataset import Dataset
from sfumato.errors import InvalidParameter
from sfumato.laws import SeededBits, Shifted
from sfumato.mechanisms import ClampedGeometric, GaussianMechanism, LaplaceMechanism
from sfumato.privacy import ZCDP, Amount, ApproxDP, FreeEvent, PureDP, PureEvent
from sfumato.session import Session
from sfumato.statistics import Count, Histogram, Mean, Sum

LAPLACE = LaplaceMechanism(sensitivity=4, scale=Fraction(8))


def test_the_loss_between_two_inputs_of_a_mechanism_is_exact():
    loss = exact(LAPLACE, 0, 3)
    assert loss.exponent == Fraction(3, 8)
    assert loss.amount == pytest.approx(3 / 8, rel=1e-12)
    assert loss.cost == PureDP(0.5)
    assert loss.tightness == pytest.approx(0.75)
    assert loss.holds


def test_inputs_further_apart_than_the_sensitivity_do_not_hold():
    assert not exact(LAPLACE, 0, 5).holds
    assert not exact(LAPLACE, np.array([0, 0]), np.array([3, 2])).holds
    assert exact(LAPLACE, np.array([0, 0]), np.array([2, 2])).holds


def test_a_violation_below_the_rounding_of_floats_is_told_by_exact_numbers():
    sensitivity = 10**15
    mechanism = LaplaceMechanism(sensitivity=sensitivity, scale=Fraction(sensitivity))
    assert exact(mechanism, 0, sensitivity).holds
    assert exact(mechanism, 0, sensitivity + 1).amount == pytest.approx(1, abs=1e-12)
    assert not exact(mechanism, 0, sensitivity + 1).holds


def test_the_loss_between_two_columns_takes_the_number_of_rows_from_them():
    query = Mean(budget=PureDP(1), neighbours="substitution", nulls="lower", bounds=(0, 10))
    assert exact(query, [0.0, 5.0, 5.0], [10.0, 5.0, 5.0]).tightness == pytest.approx(1)
    assert exact(query, [0.0, 5.0], [0.0, 5.0]).amount == 0


def test_rows_that_are_no_neighbours_are_shown_as_such():
    query = Sum(budget=PureDP(1), neighbours="add-remove", bounds=(0, 10))
    assert not exact(query, [], [10.0, 10.0]).holds


def test_a_free_answer_holds_only_if_it_never_changes():
    free = Count(budget=PureDP(1), neighbours="substitution", nulls="lower")
    same, other = exact(free, [1.0, 2.0], [1.0, 3.0]), Loss(amount=0.1, charged=0.0, cost=Amount())
    assert same.cost == Amount()
    assert same.holds
    assert same.tightness == 0
    assert not other.holds
    assert other.tightness == math.inf


def test_a_query_is_bound_to_its_columns_as_a_session_binds_it():
    # No nulls rule: a column without room for nulls keeps its number of rows public, another does not.
    query = Mean(budget=PureDP(1), neighbours="substitution", bounds=(0, 10), rows=99)
    for left in (np.array([0, 5]), np.array([0.0, 5.0])):
        right = np.where(left == 0, 10, left).astype(left.dtype)
        data = Dataset({"values": left}, unit="row", neighbours="substitution")
        released = Session(data, budget=PureDP(1), bits=SeededBits(1)).answer(query)
        assert exact(query, left, right).cost == released.cost
        assert exact(query, left, right).tightness == pytest.approx(1)
        assert released.query.size_is_public == (left.dtype.kind == "i")
        assert len(released.outcome) == (1 if released.query.size_is_public else 2)


def test_columns_whose_public_facts_differ_are_refused():
    query = Mean(budget=PureDP(1), neighbours="substitution", bounds=(0, 10))
    with pytest.raises(InvalidParameter, match="equally many rows under substitution, got 1 and 2"):
        exact(query, [1.0], [1.0, 3.0])
    with pytest.raises(InvalidParameter, match="columns of one type"):
        exact(query, np.array([1, 2]), np.array([1.0, 2.0]))
    with pytest.raises(InvalidParameter, match="neighbours must be one of"):
        exact(Mean(budget=PureDP(1), bounds=(0, 10)), [1.0], [2.0])


@pytest.mark.parametrize("budget", [PureDP(2), ApproxDP(1, 1e-5), ZCDP(0.5)], ids=repr)
def test_the_worst_case_is_attained_by_the_inputs_that_it_names(budget):
    query = Sum(budget=budget, neighbours="add-remove", bounds=(-1, 3))
    worst = worst_case(query, size=2, cells=3)
    assert exact(query, list(worst.left), list(worst.right)).amount == worst.loss.amount
    assert "holds" in str(worst)


def test_a_violated_worst_case_says_so():
    # Rows that no neighbour relation covers: a sum audited with a charge for a smaller range.
    class Careless(LaplaceMechanism):
        def law(self, value):
            return super().law(2 * value)

    worst = worst_case(Careless(sensitivity=3, scale=Fraction(3)), cells=3)
    assert not worst.loss.holds
    assert "worst loss 2.0000" in str(worst)
    assert "VIOLATED" in str(worst)


def test_all_neighbouring_multisets_are_listed_once():
    substitution = list(neighbouring_pairs((0.0, 1.0, 2.0), 2, "substitution"))
    assert len(substitution) == 9
    assert len(set(substitution)) == len(substitution)
    assert all(len(left) == len(right) == 2 and left != right for left, right in substitution)
    added = list(neighbouring_pairs((0.0, 1.0), 2, "add-remove"))
    assert added == [((), (0,)), ((), (1,)), ((0,), (0, 0)), ((0,), (0, 1)), ((1,), (0, 1)), ((1,), (1, 1))]


@pytest.mark.parametrize(
    ("mechanism", "power", "most"),
    [
        (LAPLACE, 1, 4),
        (GaussianMechanism(sensitivity_squared=2, sigma_squared=Fraction(9), coordinates=2), 2, 2),
        (GaussianMechanism(sensitivity_squared=16, sigma_squared=Fraction(9), coordinates=1), 2, 16),
        (ClampedGeometric(scale=Fraction(2)), 1, 1),
    ],
    ids=repr,
)
def test_values_of_a_mechanism_are_as_far_apart_as_it_allows_and_no_further(mechanism, power, most):
    moves = [np.atleast_1d(right) - np.atleast_1d(left) for left, right in neighbouring_values(mechanism, 4)]
    assert max((np.abs(move) ** power).sum() for move in moves) == most
    wide = {np.count_nonzero(move) for move in moves}
    assert wide == ({1} if isinstance(mechanism, ClampedGeometric) or most == 16 else {1, 2})


def test_the_records_of_an_audit_try_every_rule_of_admission():
    numbers = universe(Sum(budget=PureDP(1), bounds=(0, 1)), 2)
    assert numbers[:2] == (0.0, 1.0)
    assert min(numbers) < 0
    assert math.inf in numbers
    assert any(math.isnan(number) for number in numbers)
    texts = universe(Histogram(budget=PureDP(1), categories=("a", "b")), 5)
    assert texts == ("a", "b", "not a", None)


def test_what_cannot_be_audited_is_refused():
    with pytest.raises(InvalidParameter):
        worst_case(Mean(budget=PureDP(1), bounds=(0, 1)))
    with pytest.raises(InvalidParameter):
        worst_case(LAPLACE, cells=0)
    many = Histogram(
        budget=ApproxDP(1, 1e-6), neighbours="add-remove", noise="gaussian", categories=tuple("abcd")
    )
    # Four records away is no neighbour, and four coordinates are compared all the same.
    assert exact(many, np.array([], dtype=str), np.array(list("abcd"))).verdict == "VIOLATED"


@dataclass(frozen=True, kw_only=True)
class ChangesShape(Histogram):
    """A mutant whose answer has as many numbers as the data decide."""

    def law(self, view):
        return Shifted(self.mechanism.noise, np.zeros(1 if view.sum() % 2 else 4, dtype=np.int64))


@dataclass(frozen=True, kw_only=True)
class Understates(Count):
    """A mutant that a ledger would be charged less for than it costs."""

    @property
    def event(self):
        return PureEvent(Fraction(1, 1000), "count")


@dataclass(frozen=True, kw_only=True)
class ClaimsToBeFree(Count):
    """A mutant that a ledger would not be charged for."""

    @property
    def event(self):
        return FreeEvent("it says so")


@pytest.mark.parametrize(
    "query",
    [
        ChangesShape(budget=PureDP(1), bounds=(0, 1), bins=4),
        ChangesShape(budget=ZCDP(1), bounds=(0, 1), bins=4),
        Understates(budget=PureDP(1)),
        ClaimsToBeFree(budget=PureDP(1)),
        ClaimsToBeFree(budget=ZCDP(1)),
    ],
    ids=lambda query: f"{type(query).__name__}-{type(query.budget).__name__}",
)
def test_a_query_that_hides_its_cost_is_caught(query):
    assert not worst_case(query, size=3, neighbours="add-remove").loss.holds
