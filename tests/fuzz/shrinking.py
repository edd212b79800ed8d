"""A smaller case with the same fault: fewer questions, rows, columns and public facts."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz.cases import Case, Column
from tests.fuzz.tables import needed

MOST_TRIES = 60


def shrunk(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The smallest case that still fails, by leaving out one thing after the other."""
    tries, smaller = 0, True
    while smaller and tries < MOST_TRIES:
        smaller = False
        for candidate in _smaller(case):
            tries += 1
            if tries > MOST_TRIES:
                break
            if fails(candidate):
                case, smaller = candidate, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    for place in range(len(case.asks) if len(case.asks) > 1 else 0):
        yield replace(case, asks=case.asks[:place] + case.asks[place + 1 :])
    for place, (where, _) in enumerate(case.rows):
        if where == "both":
            yield replace(case, rows=case.rows[:place] + case.rows[place + 1 :])
    for ask in case.asks:
        for change in ({"where": None}, {"by": (), "groups": None}, {"groups": None}):
            if any(getattr(ask, name) is not value for name, value in change.items()):
                others = tuple(replace(each, **change) if each is ask else each for each in case.asks)
                yield replace(case, asks=others)
    named = {ask.column for ask in case.asks}
    for name in case.derived:
        if name not in named:
            kept = {each: facts for each, facts in case.schema.items() if each != name}
            yield replace(case, derived={}, schema=kept)
    if not case.derived and not any(hasattr(ask.where, "columns") for ask in case.asks) and case.roles:
        yield replace(case, roles={})
    for column in case.columns:
        if column.name not in needed(case):
            yield _without(case, column)
    if case.groups_per_unit is not None:
        yield replace(case, groups_per_unit=None)
    for name in case.schema:
        yield replace(case, schema={each: facts for each, facts in case.schema.items() if each != name})
    if case.route != "session":
        yield replace(case, route="session")


def _without(case: Case, column: Column) -> Case:
    place = case.columns.index(column)
    rows = tuple((where, row[:place] + row[place + 1 :]) for where, row in case.rows)
    schema = {name: facts for name, facts in case.schema.items() if name != column.name}
    return replace(case, columns=case.columns[:place] + case.columns[place + 1 :], rows=rows, schema=schema)
