"""What a plan would cost and how accurate it would be, before anything is read or paid."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sfumato.batch import Batch
from sfumato.checks import checked_confidence, compact, decimal, whole
from sfumato.data.counts import MAX_ROWS
from sfumato.errors import SfumatoError
from sfumato.plan.allocation import allocate
from sfumato.plan.binding import assumed_rows, bound, charged, groups
from sfumato.plan.checking import check
from sfumato.plan.model import Plan
from sfumato.privacy import Amount, ApproxDP, Budget
from sfumato.query import Cost
from sfumato.release import printable

UNKNOWN = "not known: give rows in [data], or n_hint, as a public guess"


@dataclass(frozen=True)
class QueryPreview:
    """One query of a plan before it is paid for.

    Guarantee:
        Follows from public facts; nothing was read or spent.

    Args:
        name: of the result.
        statistic, column: what is asked of what.
        where: the conditions, as (column, words).
        by: the columns of the groups.
        groups: how many groups there are, which cost this once together; 1 without groups, 0 where the data
            hold their keys.
        cost: of the query; nothing for a public number.
        accuracy: in words, for each group where there are groups.
        error: how far the answer is off, in its own units; None for quantiles and choices.
        rank_error: the same for quantiles, in ranks.
        rows: the number of rows that the accuracy is told for; None where it does not matter.
        guess: whether these rows are a guess, as for groups.
        described: the mechanism in words.
        divided: which part of its cost verifies intervals, in words; nothing where none does.

    >>> QueryPreview("people", "count", "age", (), (), 1, Amount(), "exact", 0.0, None, None, False, "").cost
    Amount()
    """

    name: str
    statistic: str
    column: str
    where: tuple[tuple[str, str], ...]
    by: tuple[str, ...]
    groups: int
    cost: Cost
    accuracy: str
    error: float | None
    rank_error: float | None
    rows: int | None
    guess: bool
    described: str
    divided: str = ""

    @property
    def in_each(self) -> str:
        """For which groups the accuracy is told."""
        return f"in each of {self.groups:,} groups" if self.groups else "in each group that is named"

    def to_dict(self) -> dict[str, Any]:
        """The same in JSON's types, with exact costs."""
        return {
            "name": self.name,
            "statistic": self.statistic,
            "column": self.column,
            "where": [list(pair) for pair in self.where],
            "by": list(self.by),
            "groups": self.groups,
            "cost": self.cost.to_dict(),
            "accuracy": self.accuracy,
            "error": self.error,
            "rank_error": self.rank_error,
            "rows": self.rows,
            "guess": self.guess,
            "described": self.described,
            "divided": self.divided,
        }


@dataclass(frozen=True)
class PlanPreview:
    """A plan before it is paid for: what each query costs and how accurate it is, and the whole.

    Guarantee:
        Follows from public facts; nothing was read or spent. `price` is what a ledger would be charged, at
        most `budget`.

    Args:
        title, dataset: of the plan.
        budget: what the plan may cost.
        price: what all queries cost together.
        composition: the proof that prices them, in words.
        factor: by which shares grew, because all queries are paid for as one batch.
        confidence: of every accuracy.
        queries: in the order of the plan.

    >>> from sfumato.privacy import PureDP
    >>> PlanPreview("Ages", "people", PureDP(1), Amount(), "sum of epsilon", Fraction(1), 0.95, ()).price
    Amount()
    """

    title: str
    dataset: str
    budget: Budget
    price: Amount
    composition: str
    factor: Fraction
    confidence: float
    queries: tuple[QueryPreview, ...]

    def __str__(self) -> str:
        lines = [f"{printable(self.title)}: {_amount_words(self.price)} of {_amount_words(self.budget)}"]
        rows = [
            ("", "cost", f"accuracy at {100 * self.confidence:.6g} % confidence"),
            *map(_row, self.queries),
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(2)]
        lines += [f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in rows]
        lines += [f"  {printable(query.name)}: {query.divided}" for query in self.queries if query.divided]
        lines.append(f"  priced by: {self.composition}")
        if self.factor > 1:
            factor = compact(self.factor)
            lines.append(
                f"  shares are {factor} times as large as one by one, because all are paid for together"
            )
        if any(query.guess and query.rows is not None for query in self.queries):
            lines.append("  * for so many rows, a guess")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """The same in JSON's types, with exact costs."""
        return {
            "title": self.title,
            "dataset": self.dataset,
            "budget": self.budget.to_dict(),
            "price": self.price.to_dict(),
            "composition": self.composition,
            "factor": str(self.factor),
            "confidence": self.confidence,
            "queries": [query.to_dict() for query in self.queries],
        }


def preview(
    plan: Plan, rows: int | None = None, *, confidence: float = 0.95, budget: Budget | None = None
) -> PlanPreview:
    """What each query of a plan costs and how accurate it will be, and what all cost together.

    Guarantee:
        Reads no data but the header of the file, if it is there, and spends nothing.

    Args:
        plan: as `read` gives it.
        rows: the number of rows, or a public guess of it, in place of that of the plan.
        confidence: of the accuracies.
        budget: another one in place of that of the plan.

    Raises:
        PlanError: the plan asks for what cannot be answered, or for more than its budget pays for.

    >>> from sfumato.plan import parse
    >>> plan = parse('''
    ... version = 1
    ... title = "Ages"
    ... data = { path = "people.csv", name = "people", unit = "row", neighbours = "add-remove" }
    ... budget.epsilon = 0.5
    ... columns.age = { type = "integer", bounds = [0, 120] }
    ... queries = [{ statistic = "mean", column = "age", share = 0.2 }, { statistic = "count" }]
    ... ''')
    >>> print(preview(plan, rows=10_000))
    Ages: epsilon 0.5 of epsilon 0.5
                     cost         accuracy at 95 % confidence
      mean of age    epsilon 0.1  within 0.3668 (a bound on any data), 10,000 rows *
      count of rows  epsilon 0.4  within 7 (exact)
      priced by: sum of epsilon
      * for so many rows, a guess
    """
    level = checked_confidence(confidence)
    if rows is not None:
        whole("rows", rows, least=0, most=MAX_ROWS)
    check(plan)
    cap = plan.budget.value if budget is None else budget
    allocation = allocate(plan, rows, cap)
    queries = [bound(plan, i, part, rows) for i, part in enumerate(allocation.budgets)]
    paid = tuple(charged(plan, i, part, rows) for i, part in enumerate(allocation.budgets))
    batch = Batch(paid, plan.data.neighbours, cap if isinstance(cap, ApproxDP) else None)
    price = batch.cost if isinstance(batch.cost, Amount) else Amount.of(batch.cost)
    foreseen = tuple(
        replace(_foreseen(plan, i, query, rows, level), cost=paid[i].cost) for i, query in enumerate(queries)
    )
    words = batch.composition
    return PlanPreview(plan.title, plan.data.name, cap, price, words, allocation.factor, level, foreseen)


def _foreseen(plan: Plan, index: int, query: Any, rows: int | None, confidence: float) -> QueryPreview:
    table = plan.queries[index]
    n, guess = assumed_rows(plan, index, rows)
    error, ranks = None, None
    try:
        found = query.accuracy(n, confidence=confidence)
        words, error, ranks = found.within, found.error, found.rank_error
        # A bound that says nothing is no number that JSON could hold.
        ranks = None if ranks is not None and not math.isfinite(ranks) else ranks
        sized = found.rows is not None and (query.sized or found.rank_error is not None)
    except SfumatoError:
        sized = query.sized
        words = UNKNOWN
        if n is not None or not query.sized:
            error = float(query.error(n or 0, confidence))
            words = query.accuracy_words(error)
    if isinstance(query.cost, Amount):
        words = "exact: a public number"
    return QueryPreview(
        name=table.title,
        statistic=table.statistic,
        column=query.column,
        where=tuple(query.among)[: 1 if isinstance(table.where, str) else len(table.where)],
        by=table.by,
        groups=groups(plan, table),
        cost=query.cost,
        accuracy=words,
        error=error,
        rank_error=ranks,
        rows=n if sized else None,
        guess=guess,
        described=query.described if _describable(query) else "",
        divided=getattr(query, "divided", "") if _describable(query) else "",
    )


def _describable(query: Any) -> bool:
    try:
        return bool(query.described)
    except SfumatoError:
        return False


def _row(query: QueryPreview) -> tuple[str, str, str]:
    about = "" if query.rows is None else f", {query.rows:,} rows{' *' * query.guess}"
    each = f" {query.in_each}" if query.by else ""
    return printable(query.name), _amount_words(query.cost), query.accuracy + each + about


def _amount_words(cost: Cost) -> str:
    numbers = {name: getattr(cost, name, Fraction(0)) for name in ("epsilon", "delta", "rho")}
    return ", ".join(f"{name} {decimal(size)}" for name, size in numbers.items() if size) or "nothing"
