"""Audits of laws: the loss between those of two neighbouring data sets, and the worst of all small ones.

Pure losses are exact. For approximate and zCDP costs see `divergence.py`: lower bounds near the truth.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, cast

from sfumato.audit import listed
from sfumato.audit.divergence import comparison, concentrated, hockey_stick, laplace_exponent, log_ratio
from sfumato.audit.listed import Listed
from sfumato.audit.pairs import Mechanism, column, neighbouring_pairs, neighbouring_values, universe
from sfumato.checks import shown, whole
from sfumato.data.admission import admit
from sfumato.data.column import Column
from sfumato.data.dataset import Field
from sfumato.errors import InvalidParameter
from sfumato.grid import Floats
from sfumato.laws import Law
from sfumato.mechanisms import GaussianMechanism
from sfumato.privacy import ZCDP, Amount, ApproxDP, Neighbours, PureDP, check_neighbours
from sfumato.quantile_methods import AnyQuery
from sfumato.query import Cost
from sfumato.statistics import Statistic

# Laws are compared in float64: tails are right to about 1e-12 of their size, log ratios to about 1e-13.
ROUNDING = 1e-9
LOG_ROUNDING = 1e-12


@dataclass(frozen=True)
class Loss:
    """The privacy loss between two laws, in the currency of what was charged.

    `amount` is an epsilon for a pure charge, a delta at the charged epsilon for an approximate one, and a
    rho for zCDP; `charged` is what it may be at most. `exponent` is the same epsilon as an exact number,
    known for a pure charge on Laplace noise.

    Guarantee:
        A pure loss is exact: over all outcomes, and with `exponent` without any rounding. For approximate
        and zCDP costs `amount` is a lower bound near the truth: outcomes of wide laws are merged into
        blocks, and a rho is the largest of four Rényi orders. So "not `holds`" refutes a charge; "`holds`"
        proves a pure one, and is evidence for the others, whose proofs are in docs/proofs/gaussian.md.

    >>> loss = Loss(amount=0.5, charged=1.0, cost=PureDP(1))
    >>> loss.holds, loss.tightness
    (True, 0.5)
    """

    amount: float
    charged: float
    cost: Cost
    exponent: Fraction | None = None

    @property
    def holds(self) -> bool:
        """Whether the loss is at most the charge: exactly if known so, else up to the rounding of float64."""
        if self.exponent is not None and self.exponent > _pure_epsilon(self.cost):
            return False
        slack = 0.0 if isinstance(self.cost, ApproxDP) else LOG_ROUNDING
        return self.amount <= self.charged * (1 + ROUNDING) + slack

    @property
    def tightness(self) -> float:
        """The loss as a part of the charge: 1 means that no smaller charge would do."""
        if self.charged:
            return self.amount / self.charged
        return math.inf if self.amount else 0.0


@dataclass(frozen=True)
class WorstCase:
    """The largest loss over all neighbouring pairs of small data sets, and a pair that attains it.

    Guarantee:
        `left` and `right` are neighbours whose loss is `loss`, and none of the `pairs` compared has a larger
        one. What is exact and what is a lower bound is said at `Loss`.

    >>> from sfumato.mechanisms import LaplaceMechanism
    >>> worst = worst_case(LaplaceMechanism(sensitivity=1, scale=Fraction(2)))
    >>> worst.loss.exponent, worst.loss.holds, worst.pairs
    (Fraction(1, 2), True, 12)
    """

    target: str
    loss: Loss
    pairs: int
    left: Any
    right: Any

    def __str__(self) -> str:
        verdict = "holds" if self.loss.holds else "VIOLATED"
        worst = f"worst loss {self.loss.tightness:.4f} of {self.loss.cost!r}"
        return f"{self.target}: {self.pairs:,} pairs, {worst}, {verdict}"


def exact(target: AnyQuery | Mechanism, left: Any, right: Any) -> Loss:
    """The privacy loss of what a session would release, between two inputs that should be neighbours.

    Guarantee:
        The laws compared are those that a session draws from. Exact for pure costs; for approximate and zCDP
        costs a lower bound near the truth, because outcomes of wide laws are merged into blocks and four
        Rényi orders are looked at. Merging never increases a divergence, so that a loss above the charge is
        always a violation.

    Args:
        target: a query with its neighbour relation, or a mechanism.
        left, right: two columns of data for a query; two integers or integer vectors for a mechanism.

    Raises:
        InvalidParameter: no neighbour relation, two types of column, or, under substitution, two numbers of
            rows: such columns have public facts that differ and are no neighbours.
        NotSupported: an approximate cost of laws that differ in more than three coordinates.

    >>> from sfumato.mechanisms import LaplaceMechanism
    >>> round(exact(LaplaceMechanism(sensitivity=1, scale=Fraction(2)), 3, 4).amount, 12)
    0.5
    """
    if not isinstance(target, Statistic):
        return _loss(target.law(left), target.law(right), _mechanism_cost(target))
    relation = check_neighbours(target.neighbours)
    columns = admit(left), admit(right)
    if relation == "substitution" and columns[0].rows != columns[1].rows:
        rows = " and ".join(str(each.rows) for each in columns)
        raise InvalidParameter(f"left and right must have equally many rows under substitution, got {rows}")
    query, other = (target.bind(each, Field(), relation) for each in columns)
    if query != other:
        raise InvalidParameter("left and right must be columns of one type, both with room for nulls or none")
    first, second = (_law(query, each) for each in columns)
    return _loss(first, second, _least_cost(query))


def worst_case(
    target: AnyQuery | Mechanism, *, size: int = 3, cells: int = 4, neighbours: Neighbours | None = None
) -> WorstCase:
    """The largest loss over every neighbouring pair of data sets of at most `size` records.

    Records are `cells` values of the query's own domain, values out of bounds, infinities and nulls; they
    pass through admission, clamping and counting as data do. For a mechanism, pairs of integers and of
    integer vectors up to its sensitivity apart.

    Guarantee:
        No pair is left out. For pure costs the figure is exact; for approximate and zCDP costs it is a lower
        bound near the truth (outcomes of wide laws are merged into blocks, four Rényi orders are looked at).

    Args:
        target: a query, or a mechanism.
        size: how many records a data set has at most; exactly so many under substitution.
        cells: how many values inside the domain a record can have.
        neighbours: the relation, where the query does not state it.

    Raises:
        InvalidParameter: no neighbour relation, or a number out of range.

    >>> from sfumato.statistics import Mean
    >>> query = Mean(budget=PureDP(1), bounds=(0, 10))
    >>> print(worst_case(query, size=3, cells=4, neighbours="add-remove"))
    mean, add-remove: 252 pairs, worst loss 1.0000 of PureDP(epsilon=1.0), holds
    """
    whole("size", size, least=1, most=10)
    whole("cells", cells, least=1, most=20)
    if not isinstance(target, Statistic):
        return _worst_of_mechanism(target, cells)
    relation = check_neighbours(neighbours or target.neighbours)
    query = replace(target, neighbours=relation, rows=size if relation == "substitution" else None)
    records = universe(query, cells)

    @cache
    def law(indices: tuple[int, ...]) -> Law:
        return _law(query, column(indices, records))

    cost, seen = _least_cost(query), _Worst()
    for left, right in neighbouring_pairs(records, size, relation):
        seen.add(law(left), law(right), cost, (left, right))
    return seen.worst_case(
        f"{query.name}, {relation}", lambda indices: tuple(records[index] for index in indices)
    )


def _worst_of_mechanism(mechanism: Mechanism, cells: int) -> WorstCase:
    cost, seen = _mechanism_cost(mechanism), _Worst()
    for left, right in neighbouring_values(mechanism, cells):
        seen.add(mechanism.law(left), mechanism.law(right), cost, (left, right))
    return seen.worst_case(type(mechanism).__name__, lambda value: value)


class _Worst:
    """The largest loss so far. Many pairs of laws compare alike, and are compared once."""

    def __init__(self) -> None:
        self._losses: dict[Any, Loss] = {}
        self._lists: dict[int, tuple[Any, Floats]] = {}
        self._pairs = 0
        self._worst: tuple[Loss, Any] | None = None

    def add(self, left: Law, right: Law, cost: Cost, inputs: tuple[Any, Any]) -> None:
        self._pairs += 1
        if isinstance(left, Listed):
            loss = _listed_loss(self._listed(left), self._listed(right), cost)
        else:
            key = comparison(left, right)
            if key in self._losses:
                return
            loss = self._losses[key] = _loss(left, right, cost)
        # A violation that only exact numbers can tell comes before a loss that is larger by rounding.
        if self._worst is None or _rank(loss) > _rank(self._worst[0]):
            self._worst = loss, inputs

    def _listed(self, law: Any) -> Floats:
        # A law is compared with many neighbours; it is kept with its list, so that its id stays its own.
        if id(law) not in self._lists:
            self._lists[id(law)] = law, listed.log_probabilities(law)
        return self._lists[id(law)][1]

    def worst_case(self, target: str, shown_as: Callable[[Any], Any]) -> WorstCase:
        if self._worst is None:
            raise InvalidParameter("there are no neighbouring pairs to audit")
        loss, (left, right) = self._worst
        return WorstCase(target, loss, self._pairs, shown_as(left), shown_as(right))


def _rank(loss: Loss) -> tuple[bool, float]:
    return not loss.holds, loss.amount


def _law(query: Any, data: Column) -> Law:
    query.check(data)
    law: Law = query.law(query.look(data))
    return law


def _least_cost(query: Any) -> Cost:
    """The smaller of the cost that a query states and the price that a ledger takes for its event."""
    cost, event = query.cost, query.event
    if isinstance(cost, PureDP) and event.pure_epsilon is not None:
        return PureDP(min(cost.epsilon, event.pure_epsilon)) if event.pure_epsilon else Amount()
    if isinstance(cost, ZCDP):
        return ZCDP(min(cost.rho, event.rho)) if event.rho else Amount()
    return cast(Cost, cost)


def _mechanism_cost(mechanism: Mechanism) -> Cost:
    if isinstance(mechanism, GaussianMechanism):
        return ZCDP(mechanism.event.rho)
    return PureDP(mechanism.event.pure_epsilon)


def _pure_epsilon(cost: Cost) -> Fraction:
    return cost.epsilon if isinstance(cost, PureDP | Amount) else Fraction(0)


def _charged(cost: Cost) -> float:
    if isinstance(cost, Amount):
        return 0.0
    if isinstance(cost, ApproxDP):
        return float(cost.delta)
    return float(cost.epsilon if isinstance(cost, PureDP) else cost.rho)


def _loss(left: Law, right: Law, cost: Cost) -> Loss:
    if isinstance(left, Listed) and isinstance(right, Listed):
        return _listed_loss(listed.log_probabilities(left), listed.log_probabilities(right), cost)
    if isinstance(cost, ApproxDP):
        amount = hockey_stick(left, right, float(cost.epsilon))
    elif isinstance(cost, ZCDP):
        amount = concentrated(left, right)
    elif isinstance(cost, PureDP | Amount):
        return Loss(log_ratio(left, right), _charged(cost), cost, laplace_exponent(left, right))
    else:
        raise InvalidParameter(f"cost must be a budget, got {shown(cost)}")
    return Loss(amount, _charged(cost), cost)


def _listed_loss(left: Floats, right: Floats, cost: Cost) -> Loss:
    if isinstance(cost, ApproxDP):
        amount = listed.hockey_stick(left, right, float(cost.epsilon))
    elif isinstance(cost, ZCDP):
        amount = listed.concentrated(left, right)
    else:
        amount = listed.log_ratio(left, right)
    return Loss(amount, _charged(cost), cost)
