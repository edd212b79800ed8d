"""What every one-line function does: one budget, one column, one session."""

from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.checks import Number
from sfumato.data.admission import admit
from sfumato.data.column import Column
from sfumato.data.dataset import Dataset
from sfumato.errors import InvalidParameter, SchemaMismatch
from sfumato.laws import Bits
from sfumato.privacy import Budget, Neighbours, PureDP
from sfumato.quantile_methods import AnyQuery
from sfumato.release import Release
from sfumato.session import Session


def one_budget(epsilon: Number | None, budget: Budget | None) -> Budget:
    """The budget, given as itself or as a pure epsilon."""
    if (epsilon is None) == (budget is None):
        given = "neither" if budget is None else "both"
        raise InvalidParameter(f"epsilon or budget must be given, one of the two, got {given}")
    return PureDP(epsilon) if epsilon is not None else budget  # type: ignore[return-value]


def answer(values: Any, query: AnyQuery, neighbours: Neighbours, bits: Bits | None) -> Release:
    """Answer a query about one column in a session of its own."""
    name = _only_column(values)
    if name is None:
        column = admit(values)
        name, values = column.name, {column.name: column}
    data = Dataset(values, unit="row", neighbours=neighbours)
    # A query is checked whenever it is made anew, and most columns have the name that it has already.
    named = query if query.column == name else replace(query, column=name)
    return Session(data, budget=query.budget, bits=bits).answer(named)


def _only_column(values: Any) -> str | None:
    """The name of the one column of a table, in memory or in an engine; None for what is no table."""
    # The types of plain arrays and lists are known without loading anything.
    if isinstance(values, np.ndarray | list | tuple | range | Column):
        return None
    import narwhals as nw

    table = nw.from_native(values, pass_through=True)
    if not isinstance(table, nw.LazyFrame | nw.DataFrame):
        return None
    names = table.collect_schema().names()
    if len(names) != 1:
        raise SchemaMismatch(f"values must be one column, or a table of one, got a table of {len(names)}")
    return str(names[0])
