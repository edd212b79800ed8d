"""Audits of laws: the loss between those of two neighbouring data sets, and the worst of all small ones."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, Literal, cast

from sfumato.audit.compare import Comparison, cells_of, compare, is_listed
from sfumato.audit.coordinates import comparison_key
from sfumato.audit.divergence import FINER
from sfumato.audit.listings import Listing, listing
from sfumato.audit.pairs import Mechanism, column, neighbouring_pairs, neighbouring_values, universe
from sfumato.checks import shown, whole
from sfumato.data.admission import admit
from sfumato.data.column import Column
from sfumato.data.field import Field
from sfumato.data.part import Part
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import Law
from sfumato.mechanisms import GaussianMechanism, PartitionSelection
from sfumato.privacy import ZCDP, Amount, ApproxDP, Neighbours, PureDP, check_neighbours
from sfumato.quantile_methods import AnyQuery
from sfumato.query import Cost
from sfumato.statistics import Statistic

Verdict = Literal["holds", "VIOLATED", "undecided"]

# Laws are compared in float64: tails are right to about 1e-12 of their size, log ratios to about 1e-13.
ROUNDING = 1e-9
LOG_ROUNDING = 1e-12


@dataclass(frozen=True)
class Loss:
    """The privacy loss between two laws, in the currency of what was charged.

    `amount` is an epsilon for a pure charge, a delta at the charged epsilon for an approximate one, and a rho
    for zCDP; `charged` is what it may be at most. `upper` bounds the loss from above where `amount` is not
    all of it; None if it is. `exponent` is the same epsilon as an exact number, known for a pure charge on
    Laplace noise.

    Guarantee:
        The loss lies between `amount` and `upper`, so that "VIOLATED" refutes the charge on this pair and
        "holds" proves it, up to the rounding of float64 (none with `exponent`); what lies between is
        "undecided". Both are equal for pure costs, and for every cost of a law whose outcomes can be listed,
        but for the search over orders of a rho. What is exact elsewhere is said at `Comparison`.

    >>> loss = Loss(amount=0.5, charged=1.0, cost=PureDP(1))
    >>> loss.holds, loss.tightness, Loss(amount=0.5, charged=1.0, cost=PureDP(1), upper=2.0).verdict
    (True, 0.5, 'undecided')
    """

    amount: float
    charged: float
    cost: Cost
    exponent: Fraction | None = None
    upper: float | None = None

    @property
    def verdict(self) -> Verdict:
        """Whether the loss is at most the charge: proved, refuted, or neither."""
        if self.exponent is not None and self.exponent > _pure_epsilon(self.cost):
            return "VIOLATED"
        slack = 0.0 if isinstance(self.cost, ApproxDP) else LOG_ROUNDING
        most = self.charged * (1 + ROUNDING) + slack
        if self.amount > most:
            return "VIOLATED"
        return "holds" if self.upper is None or self.upper <= most else "undecided"

    @property
    def holds(self) -> bool:
        """Whether the loss is at most the charge, for certain."""
        return self.verdict == "holds"

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
        `left` and `right` are neighbours whose loss is at least `loss.amount`; the loss of none of the
        `pairs` that were compared is above `loss.upper`, or above the amount if that is None.

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
        worst = f"worst loss {self.loss.tightness:.4f} of {self.loss.cost!r}"
        return f"{self.target}: {self.pairs:,} pairs, {worst}, {self.loss.verdict}"


def exact(target: AnyQuery | Mechanism | PartitionSelection, left: Any, right: Any) -> Loss:
    """The privacy loss of what a session would release, between two inputs that should be neighbours.

    Guarantee:
        The laws compared are those that a session draws from. Exact for pure costs, but for recursive
        quantiles on grids too fine to list, of which it finds a loss that is attained; for approximate and
        zCDP costs between two certain bounds. So a loss above the charge is always a violation, and one that
        "holds" is proved for this pair.

    Args:
        target: a query with its neighbour relation, or a mechanism.
        left, right: two columns of data for a query; two integers or integer vectors for a mechanism; the
            numbers of people of the same keys for a selection of keys.

    Raises:
        InvalidParameter: no neighbour relation, two types of column, or, under substitution, two numbers of
            rows: such columns have public facts that differ and are no neighbours.
        NotSupported: laws whose outcomes can be neither listed nor taken apart.

    >>> from sfumato.mechanisms import LaplaceMechanism
    >>> round(exact(LaplaceMechanism(sensitivity=1, scale=Fraction(2)), 3, 4).amount, 12)
    0.5
    """
    if isinstance(target, PartitionSelection):
        from sfumato.audit.kept_keys import exact_selection  # here: it needs `Loss` of this file

        return exact_selection(target, left, right)
    if not isinstance(target, Statistic):
        return loss_of(compare(target.law(left), target.law(right)), mechanism_cost(target))
    relation = check_neighbours(target.neighbours)
    columns = admit(left), admit(right)
    if target.rows_are_public and columns[0].rows != columns[1].rows:
        rows = " and ".join(str(each.rows) for each in columns)
        raise InvalidParameter(f"left and right must have equally many rows under substitution, got {rows}")
    part = Part(target.changes, target.among)
    query, other = (target.bind(each, Field(), relation, part) for each in columns)
    if query != other:
        raise InvalidParameter("left and right must be columns of one type, both with room for nulls or none")
    first, second = (law_on(query, each) for each in columns)
    return loss_of(compare(first, second), least_cost(query))


def worst_case(
    target: AnyQuery | Mechanism | PartitionSelection,
    *,
    size: int = 3,
    cells: int = 4,
    neighbours: Neighbours | None = None,
) -> WorstCase:
    """The largest loss over every neighbouring pair of data sets of at most `size` records.

    Records are `cells` values of the query's own domain, values out of bounds, infinities and nulls; they
    pass through admission, clamping and counting as data do. For a mechanism, pairs of integers and of
    integer vectors up to its sensitivity apart; for a selection of keys, all numbers of people up to its
    threshold.

    Guarantee:
        No pair is left out. What is exact and what lies between two bounds is said at `Loss`.

    Args:
        target: a query, or a mechanism.
        size: how many records a data set has at most; exactly so many under substitution.
        cells: how many values inside the domain a record can have.
        neighbours: the relation, where the query does not state it.

    Raises:
        InvalidParameter: no neighbour relation, or a number out of range.
        NotSupported: the query is about a part, or one person can change several rows.

    >>> from sfumato.statistics import Mean
    >>> query = Mean(budget=PureDP(1), bounds=(0, 10))
    >>> print(worst_case(query, size=3, cells=4, neighbours="add-remove"))
    mean, add-remove: 252 pairs, worst loss 1.0000 of PureDP(epsilon=1.0), holds
    """
    whole("size", size, least=1, most=10)
    whole("cells", cells, least=1, most=20)
    if isinstance(target, PartitionSelection):
        from sfumato.audit.kept_keys import worst_selection  # here: it needs `Loss` of this file

        return worst_selection(target)
    if not isinstance(target, Statistic):
        return _worst_of_mechanism(target, cells)
    relation = check_neighbours(neighbours or target.neighbours)
    if target.changes is not None or target.among:
        raise NotSupported("worst_case audits a whole table of one row each: use audit.worst_by_groups")
    query = replace(target, neighbours=relation, rows=size if relation == "substitution" else None)
    records = universe(query, cells)

    @cache
    def law(indices: tuple[int, ...]) -> Law:
        return law_on(query, column(indices, records))

    seen = Worst(least_cost(query))
    for left, right in neighbouring_pairs(records, size, relation):
        seen.add(law(left), law(right), (left, right))
    return seen.worst_case(
        f"{query.name}, {relation}", lambda indices: tuple(records[index] for index in indices)
    )


def _worst_of_mechanism(mechanism: Mechanism, cells: int) -> WorstCase:
    seen = Worst(mechanism_cost(mechanism))
    for left, right in neighbouring_values(mechanism, cells):
        seen.add(mechanism.law(left), mechanism.law(right), (left, right))
    return seen.worst_case(type(mechanism).__name__, lambda value: value)


class Worst:
    """The largest loss so far. Many pairs of laws compare alike, and are compared once."""

    def __init__(self, cost: Cost) -> None:
        self.cost = cost
        self.pairs = 0
        self._losses: dict[Any, Loss] = {}
        self._lists: dict[int, tuple[Any, Listing]] = {}
        self._worst: tuple[Loss, Any] | None = None
        self._upper = 0.0

    def add(self, left: Law, right: Law, inputs: tuple[Any, Any]) -> Loss:
        """Compare two laws, and keep their inputs if there is none worse."""
        self.pairs += 1
        loss = self._loss(left, right)
        self._upper = max(self._upper, loss.amount if loss.upper is None else loss.upper)
        # A violation that only exact numbers can tell comes before a loss that is larger by rounding.
        if self._worst is None or _rank(loss) > _rank(self._worst[0]):
            self._worst = loss, inputs
        return loss

    def _loss(self, left: Law, right: Law) -> Loss:
        if is_listed(left) and is_listed(right):
            return loss_of(cells_of(self._listed(left), self._listed(right)), self.cost)
        key = comparison_key(left, right)
        if key is None:
            return loss_of(compare(left, right), self.cost)
        if key not in self._losses:
            self._losses[key] = loss_of(compare(left, right), self.cost)
        return self._losses[key]

    def _listed(self, law: Any) -> Listing:
        # A law is compared with many neighbours; it is kept with its list, so that its id stays its own.
        if id(law) not in self._lists:
            self._lists[id(law)] = law, listing(law)
        return self._lists[id(law)][1]

    def worst_case(self, target: str, shown_as: Callable[[Any], Any]) -> WorstCase:
        """The worst of all pairs that were added."""
        if self._worst is None:
            raise InvalidParameter("there are no neighbouring pairs to audit")
        loss, (left, right) = self._worst
        if self._upper > loss.amount:
            loss = replace(loss, upper=self._upper)
        return WorstCase(target, loss, self.pairs, shown_as(left), shown_as(right))


def _rank(loss: Loss) -> tuple[bool, float]:
    return loss.verdict == "VIOLATED", loss.amount


def law_on(query: Any, data: Column) -> Law:
    """The law that a session draws from."""
    query.check(data)
    law: Law = query.law(query.look(data))
    return law


def least_cost(query: Any) -> Cost:
    """The smaller of the cost that a query states and the price that a ledger takes for its event."""
    cost, event = query.cost, query.event
    if isinstance(cost, PureDP) and event.pure_epsilon is not None:
        return PureDP(min(cost.epsilon, event.pure_epsilon)) if event.pure_epsilon else Amount()
    if isinstance(cost, ZCDP):
        return ZCDP(min(cost.rho, event.rho)) if event.rho else Amount()
    return cast(Cost, cost)


def mechanism_cost(mechanism: Mechanism) -> Cost:
    """What the event of a mechanism charges."""
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


def loss_of(found: Comparison, cost: Cost) -> Loss:
    """The loss of a comparison in the currency of a cost."""
    if isinstance(cost, ApproxDP):
        for finer in FINER:
            between = found.finer_delta(cost.epsilon, finer)
            if not between.lower <= cost.delta < between.upper:
                break
    elif isinstance(cost, ZCDP):
        between = found.rho(thorough=False)
        if between.lower <= cost.rho < between.upper:
            between = found.rho()
    elif isinstance(cost, PureDP | Amount):
        between = found.epsilon()
    else:
        raise InvalidParameter(f"cost must be a budget, got {shown(cost)}")
    pure = isinstance(cost, PureDP | Amount)
    upper = between.upper if between.upper > between.lower else None
    return Loss(between.lower, _charged(cost), cost, found.exponent if pure else None, upper)
