"""The privacy contract: every statistic, relation, budget, null rule and noise, on all small data sets."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb
from typing import Any

from sfumato.audit import WorstCase, worst_case
from sfumato.audit.pairs import universe
from sfumato.audit.shipped import BUDGETS as MAIN
from sfumato.audit.shipped import CHOICES, NULLS, QUESTIONS, RELATIONS, refused
from sfumato.ledger import MemoryLedger
from sfumato.privacy import ZCDP, Amount, ApproxDP, Budget, PureDP
from sfumato.statistics import MostCommon, Variance
from sfumato.statistics.public_size import PublicSize

# The main budget of each kind meets every noise and two shapes (size, cells); the others a smaller one.
OTHERS: tuple[Budget, ...] = (
    PureDP(0.01),
    PureDP(Fraction(1, 3)),
    PureDP(7),
    ApproxDP(0.1, 1e-9),
    ApproxDP(4, 0.01),
    ZCDP(0.002),
    ZCDP(3),
)
SHAPES = {True: ((4, 3), (3, 5)), False: ((3, 3),)}
# Three values, a null: data sets can be larger where there are few different records.
FEW_RECORDS, LARGER = 5, 2


@dataclass(frozen=True)
class Case:
    """One statistic with all its parameters, and which small data sets it is audited on."""

    query: Any
    size: int
    cells: int

    @property
    def pairs(self) -> int:
        """How many neighbouring pairs there are, by counting and not by listing them."""
        records = len(universe(self.query, self.cells))
        if self.query.neighbours == "substitution":
            return comb(records + self.size - 2, self.size - 1) * comb(records, 2)
        return sum(comb(records + k - 1, k) * records for k in range(self.size))

    def audit(self) -> WorstCase:
        return worst_case(self.query, size=self.size, cells=self.cells)

    def __str__(self) -> str:
        asked = self.query
        return (
            f"{asked.budget!r}, nulls {asked.nulls}, {asked.noise} noise, {self.size} of {self.cells} cells"
        )


def cases(question: str, relation: str, budget: Budget) -> Iterator[Case]:
    kind, parameters = QUESTIONS[question]
    main = budget in MAIN
    for nulls in NULLS:
        if refused(kind, relation, nulls):
            continue  # refused by public facts; test_inverse_sensitivity.py shows it
        for noise in ("auto",) if kind in CHOICES else noises(budget) if main else noises(budget)[:1]:
            query = kind(budget=budget, neighbours=relation, nulls=nulls, noise=noise, **parameters)
            for size, cells in SHAPES[main and not issubclass(kind, PublicSize)]:
                few = len(universe(query, cells)) <= FEW_RECORDS and kind not in CHOICES
                yield Case(query, size + LARGER * few, cells)


def noises(budget: Budget) -> tuple[str, ...]:
    """The choices that a budget allows; the one with the least slack first."""
    if isinstance(budget, PureDP):
        return ("laplace", "auto")
    return ("gaussian", "auto", "laplace") if isinstance(budget, ApproxDP) else ("gaussian", "auto")


def assert_private(case: Case) -> WorstCase:
    """No pair of neighbours loses more than was charged, and the ledger charges what is stated."""
    worst = case.audit()
    assert worst.pairs == case.pairs
    assert worst.loss.holds, f"{worst}\n  {case}\n  {worst.left}\n  {worst.right}"
    rows = case.size if case.query.neighbours == "substitution" else None
    query = replace(case.query, rows=rows)
    price = MemoryLedger(query.budget, neighbours=query.neighbours).charge(query).price
    stated = query.cost if isinstance(query.cost, Amount) else Amount.of(query.cost)
    assert price == stated == amount_of(worst), f"charged {price!r}, stated {stated!r}: {case}"
    return worst


def amount_of(worst: WorstCase) -> Amount:
    """What the audit compared the loss with."""
    cost = worst.loss.cost
    return cost if isinstance(cost, Amount) else Amount.of(cost)


def must_be_tight(case: Case, worst: WorstCase) -> bool:
    """Whether the proof says that some pair attains a pure charge."""
    free = not isinstance(worst.loss.cost, PureDP)
    # The joint bound of the two moments is attained by values 1 and -1/2, which 5 cells contain.
    moments = isinstance(case.query, Variance) and case.query.size_is_public
    # Of two categories the worse one attains it; weights attain it in the range of the log ratio only.
    if isinstance(case.query, MostCommon) and (case.query.method != "flip" or len(case.query.options) > 2):
        return False
    return not free and (not moments or case.cells == 5) and not isinstance(case.query, PublicSize)


EVERYTHING = [
    (question, relation, budget)
    for question in QUESTIONS
    for relation in RELATIONS
    for budget in (*MAIN, *OTHERS)
]


def all_pairs() -> int:
    """How many neighbouring pairs of data sets the contract looks at."""
    return sum(case.pairs for parameters in EVERYTHING for case in cases(*parameters))
