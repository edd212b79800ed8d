"""Audits of a query that is asked of every group, or of one: what one person can do to all answers."""

import itertools
from collections.abc import Iterator
from functools import cache
from typing import Any

from sfumato.audit.exact import Worst, WorstCase, law_on, least_cost
from sfumato.audit.pairs import Records, column, universe
from sfumato.checks import whole
from sfumato.data.field import Field
from sfumato.data.part import Part
from sfumato.laws import Joint, Law
from sfumato.privacy import Neighbours, check_neighbours
from sfumato.quantile_methods import AnyQuery

# A row: the number of its group, and that of its record.
Row = tuple[int, int]
Rows = tuple[Row, ...]
# The records of one group, as sorted numbers.
Indices = tuple[int, ...]


def worst_by_groups(
    query: AnyQuery,
    part: Part,
    *,
    groups: int = 2,
    asked: int | None = None,
    rows_per_unit: int | None = None,
    others: int = 1,
    cells: int = 2,
    records: Records | None = None,
) -> WorstCase:
    """The largest loss over every neighbouring pair of small tables, all groups answered together.

    Guarantee:
        No pair is left out: one person, with one row or up to `rows_per_unit` rows in any groups, is added,
        or under substitution replaced by another, next to any `others` rows. What is compared is the product
        of the laws that a session draws from, one for each group, with what is charged for all of them.

    Args:
        query: the query, with its neighbour relation.
        part: the public facts that each group is asked with; the words of its group are filled in.
        groups: how many groups a row can be in.
        asked: how many of them are asked about, the first ones; all unless given.
        rows_per_unit: how many rows one person can have; None for a unit of one row.
        others: how many rows other people have; under add-remove and with several rows also fewer.
        cells: how many values inside the domain a record can have; there are nulls and outliers too.
        records: the values of records instead.

    Raises:
        InvalidParameter: no neighbour relation, or a number out of range.

    >>> from sfumato.privacy import PureDP
    >>> from sfumato.statistics import Count
    >>> query = Count(budget=PureDP(1), neighbours="substitution")
    >>> print(worst_by_groups(query, Part(changes=2)))
    count by 2 groups, substitution: 90 pairs, worst loss 1.0000 of PureDP(epsilon=1.0), holds
    """
    relation = check_neighbours(query.neighbours)
    number = whole("groups", groups, least=1, most=10)
    keys = range(number if asked is None else whole("asked", asked, least=1, most=number))
    values = universe(query, whole("cells", cells, least=1, most=20)) if records is None else records
    # Groups are asked alike but for the words, so that one query stands for all of them.
    one = Part(part.changes, (*part.among, ("group", "each")))
    bound: Any = query.bind(column((0,), values), Field(), relation, one)

    @cache
    def law(indices: Indices) -> Law:
        return law_on(bound, column(indices, values))

    def inside(rows: Rows) -> list[Indices]:
        return [tuple(sorted(record for group, record in rows if group == key)) for key in keys]

    seen = Worst(least_cost(bound))
    known: set[tuple[tuple[Indices, Indices], ...]] = set()
    possible = list(itertools.product(range(number), range(len(values))))
    for common in _tables(possible, others, exactly=relation == "substitution" and rows_per_unit is None):
        for person, other in _people(possible, rows_per_unit, relation):
            left, right = (*common, *person), (*common, *other)
            pairs = list(zip(inside(left), inside(right), strict=True))
            # Groups that are the same drop out, and the order of the others does not matter.
            moved = tuple(sorted(pair for pair in pairs if pair[0] != pair[1]))
            seen.pairs += moved in known
            if moved not in known:
                before, after = (Joint(tuple(law(pair[side]) for pair in moved)) for side in (0, 1))
                seen.add(before, after, (left, right))
                known |= {moved, tuple(sorted((last, first) for first, last in moved))}
    return seen.worst_case(
        f"{query.name} by {number} groups, {relation}",
        lambda rows: tuple((group, values[record]) for group, record in rows),
    )


def _tables(rows: list[Row], most: int, *, exactly: bool) -> Iterator[Rows]:
    sizes = (most,) if exactly else range(most + 1)
    return itertools.chain(*(itertools.combinations_with_replacement(rows, size) for size in sizes))


def _people(rows: list[Row], rows_per_unit: int | None, relation: Neighbours) -> Iterator[tuple[Rows, Rows]]:
    """What one person has in two neighbouring tables; nothing in one of them under add-remove."""
    most = 1 if rows_per_unit is None else whole("rows_per_unit", rows_per_unit, least=1, most=10)
    people = [person for person in _tables(rows, most, exactly=False) if person]
    if relation == "add-remove":
        return (((), person) for person in people)
    return itertools.combinations(people, 2)
