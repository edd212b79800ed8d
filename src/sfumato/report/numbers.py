"""The numbers of a result as its readers see them: rounded, labelled, in a table."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.release import Release
from sfumato.report.words import group_name, label_title, labels, plain

# A table with more columns than this is read down and not across.
_MOST_COLUMNS = 10


@dataclass(frozen=True)
class Cell:
    """One released number with its interval, as numbers for a chart and as text for a table."""

    label: str
    value: float
    low: float
    high: float
    shown: str
    ends: tuple[str, str] | None

    @property
    def drawn(self) -> bool:
        """Whether it has a place on an axis."""
        return self.ends is not None and math.isfinite(self.value)

    @property
    def words(self) -> str:
        """The number and its interval in words."""
        return self.shown if self.ends is None else f"{self.shown} ({self.ends[0]} to {self.ends[1]})"


@dataclass(frozen=True)
class Group:
    """The numbers of one group, or of all rows if there are no groups."""

    key: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def name(self) -> str:
        """The group in one line."""
        return " · ".join(self.key)


@dataclass(frozen=True)
class Table:
    """A table: its columns, and rows of headers and cells; `across` says that columns are not all numbers."""

    corner: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], tuple[Cell, ...]], ...]
    matrix: bool
    intervals: bool

    @property
    def wide(self) -> bool:
        """Whether a phone shows a part of it at a time."""
        return self.matrix and len(self.columns) > 2


def groups(releases: Sequence[tuple[tuple[Any, ...], Release]]) -> tuple[Group, ...]:
    """The numbers of every group, in order."""
    return tuple(Group(tuple(map(group_name, key)), tuple(_cells(release))) for key, release in releases)


EMPTY = Table((), (), (), matrix=False, intervals=False)


def table(query: Any, by: Sequence[str], found: Sequence[Group]) -> Table:
    """The table of a result: a matrix of groups and labels where it is narrow enough, and else a list."""
    names = labels(query)
    head = tuple(plain(str(one).replace("_", " ")) for one in by)
    intervals = any(cell.ends for group in found for cell in group.cells)
    if len(names) == 1:
        label = "" if by else "statistic"
        rows = [(group.key or (names[0],), group.cells) for group in found]
        return Table(head or (label,), ("value",), tuple(rows), False, intervals)
    if not by:
        single = [((cell.label,), (cell,)) for cell in found[0].cells]
        return Table((label_title(query),), ("value",), tuple(single), False, intervals)
    if min(len(names), len(found)) > _MOST_COLUMNS:
        long = [((*group.key, cell.label), (cell,)) for group in found for cell in group.cells]
        return Table((*head, label_title(query)), ("value",), tuple(long), False, intervals)
    if len(names) <= len(found):
        across = [(group.key, group.cells) for group in found]
        return Table(head, tuple(names), tuple(across), True, intervals)
    down = [((label,), tuple(group.cells[i] for group in found)) for i, label in enumerate(names)]
    return Table((label_title(query),), tuple(group.name for group in found), tuple(down), True, intervals)


def _cells(release: Release) -> Iterator[Cell]:
    query: Any = release.query
    names = labels(query)
    for place, ((_, value, low, high), (_, *texts)) in enumerate(
        zip(release.numbers(), release.texts(), strict=True)
    ):
        label = names[place] if place < len(names) else ""
        if low is None:
            shown = "none" if value is None else plain(value)
            yield Cell(label, math.nan, math.nan, math.nan, shown, None)
            continue
        ends = (_end(low, texts[1]), _end(high, texts[2]))
        yield Cell(label, float(value), float(low), float(high), texts[0], ends)


def _end(number: float, text: str) -> str:
    return "unbounded" if math.isinf(number) else text
