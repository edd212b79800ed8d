"""Hierarchies: how the values of a column become coarser, level by level, up to "*"."""

import calendar
import datetime
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sfumato.anonymity.levels import (
    MISSING,
    MOST_LEVELS,
    TOP,
    Hierarchy,
    Level,
    Levels,
    levels_from,
    no_loss,
    text,
)
from sfumato.anonymity.ranges import Cuts, Ranges
from sfumato.anonymity.tree import Tree, leaf, leaf_of
from sfumato.checks import keep, shown, whole
from sfumato.errors import InvalidParameter

__all__ = ["Cuts", "Dates", "Hierarchy", "Listed", "Prefix", "Ranges", "Tree"]

UNITS = ("day", "month", "quarter", "year", "decade")


@dataclass(frozen=True, kw_only=True)
class Prefix:
    """Text or whole numbers of which each level hides one more character at the end: 7501*, 750**.

    Level 0 is the text itself. Level i shows its first `width` - i characters and the mask for the others;
    shorter text is masked up to the same width. The last level is "*". Whole numbers get zeros in front
    to have the width: 1013 is 01013. A cell that is missing shows "null" up to the top.

    Guarantee:
        Each level joins groups of the level below. The loss of a group is the share of the column's distinct
        values in it. No privacy follows from a hierarchy alone.

    Args:
        width: the number of characters; that of the longest value if it is not given.
        levels: how many levels hide characters before the top; by default all but one character.
        mask: the character that stands for a hidden one.
        missing: the label of missing cells.

    Raises:
        InvalidParameter: a parameter breaks its rule; a value is longer than the width, negative or no text.

    >>> Prefix(width=5, levels=2).levels_of(["75013", "75014", "20000"]).labels[1:]
    (('7501*', '2000*'), ('750**', '200**'), ('*',))
    """

    width: int | None = None
    levels: int | None = None
    mask: str = TOP
    missing: str = MISSING

    def __post_init__(self) -> None:
        most = MOST_LEVELS
        if self.width is not None:
            most = whole("width", self.width, least=1, most=10**6)
            keep(self, width=most)
        if self.levels is not None:
            keep(self, levels=whole("levels", self.levels, least=1, most=min(most, MOST_LEVELS)))
        if len(text("mask", self.mask)) != 1:
            raise InvalidParameter(f"mask must be one character, got mask={shown(self.mask)}")
        text("missing", self.missing)

    def levels_of(self, values: Sequence[object], name: str = "column") -> Levels:
        """The distinct values of a column at each level."""
        held = [value for value in values if value is not None]
        wrong = sum(not isinstance(one, str) and not _natural(one) for one in held)
        if wrong:
            words = f"column {name!r} has {wrong} distinct values that are neither"
            raise InvalidParameter(f"prefixes need text or whole numbers of at least 0: {words}")
        longest = max((len(str(value)) for value in held), default=1)
        width = longest if self.width is None else self.width
        if longest > width:
            long = sum(len(str(value)) > width for value in held)
            words = f"column {name!r} has {long} distinct values that are longer"
            raise InvalidParameter(f"width must be that of the longest value: width={width}, but {words}")
        texts = [value if isinstance(value, str) else str(value).zfill(width) for value in held]
        made = [Level(texts, str, no_loss)]
        count = min(max(width - 1, 1), MOST_LEVELS) if self.levels is None else self.levels
        for hidden in range(1, min(count, width) + 1):
            keys = [one[: width - hidden].ljust(width, self.mask) for one in texts]
            made.append(Level(keys, str, _share_of(keys, texts)))
        return levels_from(made, [value is not None for value in values], name, self.missing)


@dataclass(frozen=True, kw_only=True)
class Dates:
    """Dates as days, months, quarters, years and decades: 2024-05-13, 2024-05, 2024-Q2, 2024, 2020s, "*".

    Level 0 shows the first of `levels`: with "day" a time of day is never shown, with "month" no day is.
    Takes dates, datetimes and ISO 8601 text. A time with a zone counts as its day in UTC. A cell that is
    missing shows "null" up to the top.

    Guarantee:
        Periods are those of the calendar and never read from the table. Each level joins periods of the
        level below. The loss of a period is its days against those between the first and the last date of the
        table, at most 1. No privacy follows from a hierarchy alone.

    Args:
        levels: some of "day", "month", "quarter", "year", "decade", in this order.
        missing: the label of missing cells.

    Raises:
        InvalidParameter: levels are unknown or out of order, or a column holds what is no date.

    >>> Dates(levels=("month", "year")).levels_of(["2024-05-13", "2024-06-01", None]).labels
    (('2024-05', '2024-06', 'null'), ('2024', 'null'), ('*',))
    """

    levels: Sequence[str] = UNITS
    missing: str = MISSING

    def __post_init__(self) -> None:
        asked = list(self.levels) if isinstance(self.levels, list | tuple) else [self.levels]
        if not asked or asked != [unit for unit in UNITS if unit in asked]:
            words = f"got levels={shown(self.levels)}"
            raise InvalidParameter(f"levels must be some of {', '.join(UNITS)}, in this order, {words}")
        keep(self, levels=tuple(asked), missing=text("missing", self.missing))

    def levels_of(self, values: Sequence[object], name: str = "column") -> Levels:
        """The distinct values of a column at each level."""
        read = [None if value is None else _date(value) for value in values]
        wrong = sum(day is None and value is not None for day, value in zip(read, values, strict=True))
        if wrong:
            words = f"column {name!r} has {wrong} distinct values that are none"
            raise InvalidParameter(f"dates are needed: {words}")
        days = [day for day in read if day is not None]
        extent = (max(days) - min(days)).days if days else 0
        made = []
        for unit in self.levels:
            # Values of one day need not be next to each other: groups are in the order of time all the same.
            firsts = [_first(unit, day) for day in days]
            made.append(Level(firsts, _period_label(unit), _period_loss(unit, extent)))
        return levels_from(made, [value is not None for value in values], name, self.missing)


@dataclass(frozen=True)
class Listed:
    """A hierarchy that is written out: for each value a row of its labels, the finest first.

    Level 0 is the value itself. If the last labels are not all "*", a level "*" follows. A missing cell
    shows "null" up to the top.

    Guarantee:
        Labels are those given and never read from the table. Rows with one label at a level have one
        label at all later levels. The loss of a group is its share of the rows, 0 if it has one. No privacy
        follows from a hierarchy alone.

    Args:
        rows: each of a value and its labels, all of one length of at least 2.
        missing: the label of missing cells.

    Raises:
        InvalidParameter: rows differ in length, a value is there twice, a level splits a group of the level
            below, or a column holds values that are not listed.

    >>> Listed([["a1", "a"], ["a2", "a"], ["b1", "b"]]).levels_of(["a1", "b1"]).labels
    (('a1', 'b1'), ('a', 'b'), ('*',))
    """

    rows: Sequence[Sequence[str]]
    missing: str = MISSING

    def __post_init__(self) -> None:
        text("missing", self.missing)
        given: object = self.rows
        if not isinstance(given, list | tuple) or not given:
            raise InvalidParameter(f"rows must be a list of rows of labels, got {shown(given)}")
        read = []
        for place, row in enumerate(given, start=1):
            if not isinstance(row, list | tuple) or not 2 <= len(row) <= MOST_LEVELS:
                words = f"2 to {MOST_LEVELS} labels, the value first, got {shown(row)} as row {place}"
                raise InvalidParameter(f"rows must be lists of {words}")
            if len(row) != len(given[0]):
                words = f"got {len(row)} in row {place} and {len(given[0])} in row 1"
                raise InvalidParameter(f"rows must have equally many labels, {words}")
            labels = tuple(leaf(label) for label in row)
            if not isinstance(labels[0], str) or not all(isinstance(one, str) and one for one in labels[1:]):
                raise InvalidParameter(f"rows must hold text, got {shown(row)} as row {place}")
            read.append(tuple(map(str, labels)))
        values = [row[0] for row in read]
        if len(set(values)) < len(values):
            twice = next(value for value, count in Counter(values).items() if count > 1)
            raise InvalidParameter(f"rows must list each value once, got {shown(twice)} twice")
        _check_levels(read)
        keep(self, rows=tuple(read))

    def levels_of(self, values: Sequence[object], name: str = "column") -> Levels:
        """The distinct values of a column at each level."""
        listed = {row[0]: row for row in self.rows}
        texts = [None if value is None else leaf_of(value, listed) for value in values]
        wrong = sum(one is not None and one not in listed for one in texts)
        if wrong:
            words = f"has {wrong} distinct values that its hierarchy does not list"
            raise InvalidParameter(f"column {name!r} {words}: add them to it")
        height = len(self.rows[0])
        while height > 1 and all(row[height - 1] == TOP for row in self.rows):
            height -= 1  # the top is added below
        used = [listed[one] for one in texts if one is not None]
        made = []
        for level in range(height):
            all_keys = [row[level] for row in self.rows]
            share = no_loss if level == 0 else _share_of(all_keys, all_keys)
            made.append(Level([row[level] for row in used], str, share))
        return levels_from(made, [one is not None for one in texts], name, self.missing)


def _check_levels(rows: Sequence[Sequence[str]]) -> None:
    for low, high in pairwise(range(len(rows[0]))):
        above: dict[str, str] = {}
        for row in rows:
            if above.setdefault(row[low], row[high]) != row[high]:
                words = f"{shown(row[low])} of level {low} is in {shown(above[row[low]])} and elsewhere"
                raise InvalidParameter(f"a level must not split a group of the level below: {words}")


def _share_of(keys: Sequence[str], leaves: Sequence[str]) -> Callable[[str], float]:
    counts, total = Counter(keys), len(leaves)
    return lambda key: 0.0 if counts[key] == 1 else counts[key] / total


def _natural(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _date(value: object) -> datetime.date | None:
    try:
        if isinstance(value, str):
            value = datetime.datetime.fromisoformat(value)
        if isinstance(value, datetime.datetime):
            return (value if value.tzinfo is None else value.astimezone(datetime.UTC)).date()
    except (ValueError, OverflowError):
        return None
    return value if isinstance(value, datetime.date) else None


def _first(unit: str, day: datetime.date) -> datetime.date:
    """The first day of the period; a decade may begin before the calendar does."""
    if unit == "day":
        return day
    if unit == "month":
        return day.replace(day=1)
    if unit == "quarter":
        return day.replace(month=day.month - (day.month - 1) % 3, day=1)
    year = day.year if unit == "year" else max(day.year // 10 * 10, 1)
    return datetime.date(year, 1, 1)


def _last(unit: str, first: datetime.date) -> datetime.date:
    if unit == "day":
        return first
    if unit in ("month", "quarter"):
        month = first.month + (2 if unit == "quarter" else 0)
        return first.replace(month=month, day=calendar.monthrange(first.year, month)[1])
    return datetime.date(first.year if unit == "year" else first.year // 10 * 10 + 9, 12, 31)


def _period_label(unit: str) -> Callable[[datetime.date], str]:
    def label(first: datetime.date) -> str:
        if unit == "day":
            return first.isoformat()
        if unit == "month":
            return first.isoformat()[:7]
        if unit == "quarter":
            return f"{first.year:04d}-Q{(first.month + 2) // 3}"
        return f"{first.year:04d}" if unit == "year" else f"{first.year // 10 * 10:04d}s"

    return label


def _period_loss(unit: str, extent: int) -> Callable[[datetime.date], float]:
    def loss(first: datetime.date) -> float:
        between = (_last(unit, first) - first).days
        return 0.0 if between == 0 else 1.0 if between >= extent else between / extent

    return loss
