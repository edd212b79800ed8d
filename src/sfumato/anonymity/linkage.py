"""Which rows the columns next to the quasi-identifiers single out: they leave a table as they are."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.partition import classes_of
from sfumato.release import printable

# The names that a message lists.
MOST_NAMES = 10


@dataclass(frozen=True, kw_only=True)
class Redundancy:
    """A column that undoes the coarsening of a quasi-identifier.

    Args:
        quasi: the quasi-identifier.
        determines: whether each value of the column belongs to one value of the quasi-identifier, as a code
            belongs to a name; else the column follows from it, as a region follows from a postcode.
        rows: how many rows have a label of several values that the column tells apart.
    """

    quasi: str
    determines: bool
    rows: int


@dataclass(frozen=True, kw_only=True)
class LinkableColumn:
    """What one column singles out, for someone who knows its value of a person.

    Args:
        column: its name.
        role: "sensitive", "keep", or "none" where it has no role.
        alone: how many rows have a value that no other row has.
        with_quasi: how many rows no other one equals in the quasi-identifiers and this column.
        redundant: the quasi-identifiers whose coarsening it undoes.
    """

    column: str
    role: str
    alone: int
    with_quasi: int
    redundant: tuple[Redundancy, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Linkage:
    """Which rows of a table can be singled out by the columns next to its quasi-identifiers.

    Guarantee:
        Exact counts over the rows of the table, in which null is a value of its own. A row that is singled
        out is found by whoever knows the values, for any k. No differential privacy.

    Args:
        rows: the number of rows.
        columns: a record for each column that is not a quasi-identifier.
        kept: how many rows are unique in the columns together that are kept or have no role.
        kept_with_quasi: the same with the quasi-identifiers.
        published: how many rows are unique in all columns.

    >>> from sfumato.anonymity import anonymize
    >>> table = {"age": [31, 33, 58, 59], "badge": [7, 8, 9, 9]}
    >>> found = anonymize(table, quasi=["age"], keep=["badge"], k=2).linkage
    >>> found.columns[0].alone, found.kept_with_quasi
    (2, 2)
    """

    rows: int
    columns: tuple[LinkableColumn, ...] = ()
    kept: int = 0
    kept_with_quasi: int = 0
    published: int = 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before the table is published, in sentences without a full stop."""
        found = []
        unique = sorted((one for one in self.columns if one.alone), key=lambda one: -one.alone)
        if unique:
            listed = listing([f"{one.column!r} {one.alone:,}" for one in unique])
            found.append(f"rows with a value that no other row has, of {self.rows:,}: {listed}")
        if self.kept_with_quasi:
            names = listing([repr(one.column) for one in self.columns if one.role != "sensitive"])
            found.append(
                f"{self.kept_with_quasi:,} of {self.rows:,} rows are unique in the quasi-identifiers with "
                f"{names}: whoever knows these values finds the row, for any k; declare such columns as "
                "quasi, or drop them"
            )
        for one in self.columns:
            for redundant in one.redundant:
                verb = "determines" if redundant.determines else "follows from"
                found.append(
                    f"{one.column!r} {verb} {redundant.quasi!r}, and undoes its coarsening in "
                    f"{redundant.rows:,} of {self.rows:,} rows; drop one of them, or declare both as quasi"
                )
        return tuple(found)

    def table(self) -> list[tuple[str, str, str, str]]:
        """Column, role, rows that it singles out alone and with the quasi-identifiers; then all together."""
        lines = [(one.column, one.role, f"{one.alone:,}", f"{one.with_quasi:,}") for one in self.columns]
        if sum(one.role != "sensitive" for one in self.columns) > 1:
            lines.append(("all but sensitive", "", f"{self.kept:,}", f"{self.kept_with_quasi:,}"))
        if len(self.columns) > 1:
            lines.append(("all columns", "", "", f"{self.published:,}"))
        return lines

    def parts(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The numbers with their names under a title, for people; none without columns."""
        title = "rows that other columns single out, alone / with the quasi-identifiers"
        facts = [
            (f"{printable(name)}{' (sensitive)' * (role == 'sensitive')}", " / ".join(filter(None, numbers)))
            for name, role, *numbers in self.table()
        ]
        return [(title, facts)] if facts else []

    def to_dict(self) -> dict[str, Any]:
        """The numbers in JSON's types."""
        return asdict(self)


@dataclass(frozen=True)
class CoarsenedColumn:
    """A published quasi-identifier: the code of each row's label, and of the value that it stands for."""

    name: str
    labels: NDArray[np.int32]
    values: NDArray[np.int32]


def linkage_of(
    classes: NDArray[Any],
    columns: Mapping[str, NDArray[Any]],
    roles: Mapping[str, str],
    quasi: Sequence[CoarsenedColumn] = (),
) -> Linkage:
    """Count the rows that columns single out.

    Args:
        classes: the class of each row, by what its quasi-identifiers show.
        columns: the codes of each other column, by its name.
        roles: the role of each of them.
        quasi: the quasi-identifiers that were coarsened.
    """
    codes = {name: _compact(column) for name, column in columns.items()}
    shown = _compact(classes)
    kept = [column for name, column in codes.items() if roles[name] != "sensitive"]
    found = tuple(
        LinkableColumn(
            column=name,
            role=roles[name],
            alone=_alone(column),
            with_quasi=_unique([shown, column]),
            redundant=tuple(one for each in quasi for one in _redundant(column, each)),
        )
        for name, column in codes.items()
    )
    return Linkage(
        rows=len(classes),
        columns=found,
        kept=_unique(kept) if kept else 0,
        kept_with_quasi=_unique([shown, *kept]) if kept else 0,
        published=_unique([shown, *codes.values()]),
    )


def _redundant(column: NDArray[np.int32], quasi: CoarsenedColumn) -> list[Redundancy]:
    for determines in (True, False):
        given, other = (column, quasi.values) if determines else (quasi.values, column)
        # Where most values are of one row, all else follows from them, and that means nothing.
        if 2 * _alone(given) > len(given) or not _follows(other, given):
            continue
        rows = _divided(quasi.labels, other)
        if rows:
            return [Redundancy(quasi=quasi.name, determines=determines, rows=rows)]
    return []


def _follows(other: NDArray[np.int32], given: NDArray[np.int32]) -> bool:
    """Whether each value of `given` goes with one value of `other`."""
    return not bool(np.count_nonzero(_some(given, other)[given] != other))


def _divided(labels: NDArray[np.int32], column: NDArray[np.int32]) -> int:
    """How many rows have a label that goes with several values of a column."""
    several = np.zeros(int(labels.max(initial=0)) + 1, dtype=np.bool_)
    several[labels[_some(labels, column)[labels] != column]] = True
    return int(np.count_nonzero(several[labels]))


def _some(given: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int32]:
    """For each value of `given` the value of `other` in some row that has it."""
    found = np.zeros(int(given.max(initial=0)) + 1, dtype=np.int32)
    found[given] = other
    return found


def _unique(columns: Sequence[NDArray[np.int32]]) -> int:
    """How many rows are alone in these columns."""
    return _alone(classes_of(columns, [int(one.max(initial=0)) + 1 for one in columns])[0])


def _alone(codes: NDArray[np.int32]) -> int:
    return int(np.count_nonzero(np.bincount(codes) == 1))


def _compact(codes: NDArray[Any]) -> NDArray[np.int32]:
    return classes_of([codes], [int(codes.max(initial=0)) + 1])[0]


def listing(names: Sequence[str]) -> str:
    """Names with commas between them, the first few of many."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")
