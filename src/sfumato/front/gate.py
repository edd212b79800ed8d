"""What every one-line function does: one budget, one column, one session."""

from dataclasses import replace
from typing import Any

from sfumato.checks import Number
from sfumato.data.admission import admit
from sfumato.data.dataset import Dataset
from sfumato.errors import InvalidParameter
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
    column = admit(values)
    data = Dataset({column.name: column}, unit="row", neighbours=neighbours)
    # A query is checked whenever it is made anew, and most columns have the name that it has already.
    named = query if query.column == column.name else replace(query, column=column.name)
    return Session(data, budget=query.budget, bits=bits).answer(named)
