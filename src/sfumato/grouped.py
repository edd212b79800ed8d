"""One statistic of every group: a release for each key, paid for once."""

import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.data.column import Category
from sfumato.errors import InvalidParameter
from sfumato.privacy import Amount, ApproxDP, ComposedEvent, Event
from sfumato.query import Cost, Query
from sfumato.release import Release, printable

# Of the rows of no other key every part is None.
GroupKey = tuple[Category | None, ...]
# What these rows are called.
OTHER = "(other)"
# What is said in place of a table without rows.
NONE_NAMED = "no group is named: none was found to have enough people"
NOT_PRIVATE = "NOT PRIVATE: drawn with seeded bits, for tests and teaching only"
# Keys of the data may be long; a table for people shows so much of one.
_LONGEST = 100


def key_words(part: Category | None) -> str:
    """One part of a key for people, on one line and cut; what has the name of the other rows is quoted.

    >>> key_words("red"), key_words(None), key_words("(other)")
    ('red', '(other)', "'(other)'")
    """
    if part is None:
        return OTHER
    words = repr(part) if part == OTHER else printable(str(part))
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


def amount_of(cost: Cost) -> Amount:
    """A cost as an amount."""
    return cost if isinstance(cost, Amount) else Amount.of(cost)


def together(search: Amount, cost: Cost) -> Cost:
    """What a search for groups and their statistic cost."""
    total = search + amount_of(cost)
    return ApproxDP(total.epsilon, total.delta) if total.delta else total


@dataclass(frozen=True)
class Found:
    """How keys were found, and what that costs beside the statistic, which is paid for if none is found."""

    words: str
    cost: Amount
    event: Event
    query: Query
    private: bool = True

    @classmethod
    def of(cls, search: Any, query: Query, *, private: bool) -> "Found":
        """What readers should know of a search for the groups of a query."""
        return cls(search.words, search.cost, search.event, query, private)


@dataclass(frozen=True)
class GroupedRelease:
    """The releases of all groups, by key; groups without rows are among them.

    Guarantee:
        One person is in few groups, so that all of them together cost what one costs: `cost`, once.
        Proof: docs/proofs/parts.md.

    Args:
        by: the columns that make the groups.
        releases: the release of each key, in the order of the declared categories; the key of all other rows,
            if they were asked for, is None in every column.
        found: how keys were found, where that costs something. No key may be found.

    >>> from sfumato.privacy import PureDP
    >>> from sfumato.statistics import Count
    >>> of = lambda team, n: Release(
    ...     Count(budget=PureDP(1), neighbours="add-remove", among=(("team", team),)), (n,), private=True
    ... )
    >>> groups = GroupedRelease(("team",), {("red",): of("red", 42), ("blue",): of("blue", 0)})
    >>> groups["red"].value, groups.cost
    (42, PureDP(epsilon=1.0))
    """

    by: tuple[str, ...]
    releases: Mapping[GroupKey, Release]
    found: Found | None = None

    def __post_init__(self) -> None:
        if not self.releases and self.found is None:
            raise InvalidParameter("releases must hold at least one group, got none")

    def __getitem__(self, key: Category | GroupKey) -> Release:
        return self.releases[key if isinstance(key, tuple) else (key,)]

    def __iter__(self) -> Iterator[GroupKey]:
        return iter(self.releases)

    def __len__(self) -> int:
        return len(self.releases)

    @property
    def keys(self) -> tuple[GroupKey, ...]:
        """The keys that are answered, in order."""
        return tuple(self.releases)

    @property
    def cost(self) -> Cost:
        """What all groups together cost, with the search for their keys."""
        return self.query.cost if self.found is None else together(self.found.cost, self.query.cost)

    @property
    def event(self) -> Event:
        """What was done to all groups together, for an accountant."""
        if self.found is None:
            return self.query.event
        return ComposedEvent([self.found.event, self.query.event])

    @property
    def private(self) -> bool:
        """Whether none was drawn with seeded bits."""
        found = self.found is None or self.found.private
        return found and all(release.private for release in self.releases.values())

    @property
    def _any(self) -> Release | None:
        return next(iter(self.releases.values()), None)

    @property
    def query(self) -> Query:
        """One query for all groups, which differ in their words alone."""
        if self.found is not None:
            return self.found.query
        return next(iter(self.releases.values())).query  # type: ignore[return-value]

    def to_dict(self) -> dict[str, Any]:
        """All of it in JSON's types."""
        listed = [{"key": list(key), "release": release.to_dict()} for key, release in self.releases.items()]
        record = {"format": 1, "software": "sfumato", "by": list(self.by), "releases": listed}
        if self.found is not None:
            record |= {"found": self.found.words, "search": self.found.cost.to_dict()}
        return record

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        table = self._table()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        left = len(self.by) + 1
        lines = [self._title()]
        for row in table:
            cells = [
                cell.ljust(width) if place < left else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  " + "  ".join(cells).rstrip())
        lines += [f"  {name}: {text}" for name, text in self._facts()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        facts = "".join(f"<li><b>{name}</b>: {html.escape(text)}</li>" for name, text in self._facts())
        table = ""
        if self.releases:
            header, *rows = self._table()
            head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
            body = "".join(
                "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
            )
            table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<div><b>{html.escape(self._title())}</b>{table}<ul>{facts}</ul></div>"

    def _title(self) -> str:
        query = self.query
        by = ", ".join(map(printable, self.by))
        return f"{query.name.replace('_', ' ')} of {printable(query.column)} by {by}"

    def _table(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for key, release in self.releases.items():
            header, *numbers = release.table()
            if not rows:
                rows.append((*map(printable, self.by), "", *header[1:]))
            rows += [(*map(key_words, key), *row) for row in numbers]
        return rows

    def _facts(self) -> list[tuple[str, str]]:
        query, found = self.query, self.found
        own = [("cost", f"{self.cost!r}, {query.neighbours}")] if self._any is None else self._any.facts()
        if found is not None:
            # The cost of a release is that of the statistic; what stands behind it is true of both.
            told = own[0][1].removeprefix(repr(query.cost)).removeprefix(repr(self.cost))
            costs = f"{self.cost!r}{told}"
            own = [("cost", costs), ("groups", f"{found.words}; costs {found.cost.words} of this"), *own[1:]]
        if not self.releases:
            seeded = [] if self.private else [("note", NOT_PRIVATE)]
            return [("note", NONE_NAMED), *own, *seeded]
        notes = [note for release in self.releases.values() for note in release.notes]
        shared = [note for note in dict.fromkeys(notes) if notes.count(note) == len(self.releases)]
        others = len(set(notes)) - len(shared)
        listed = [fact for fact in own if fact[0] != "note"] + [("note", note) for note in shared]
        if others:
            listed.append(("note", "some groups have notes of their own; print one to read them"))
        return listed
