"""One statistic of every group: a release for each public key, paid for once."""

import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.data.column import Category
from sfumato.errors import InvalidParameter
from sfumato.privacy import Event
from sfumato.query import Cost
from sfumato.release import Release, printable

Key = tuple[Category, ...]


@dataclass(frozen=True)
class GroupedRelease:
    """The releases of all groups, by key; groups without rows are among them.

    Guarantee:
        One person is in few groups, so that all of them together cost what one costs: `cost`, once.
        Proof: docs/proofs/parts.md.

    Args:
        by: the columns that make the groups.
        releases: the release of each key, in the order of the declared categories.

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
    releases: Mapping[Key, Release]

    def __post_init__(self) -> None:
        if not self.releases:
            raise InvalidParameter("releases must hold at least one group, got none")

    def __getitem__(self, key: Category | Key) -> Release:
        return self.releases[key if isinstance(key, tuple) else (key,)]

    def __iter__(self) -> Iterator[Key]:
        return iter(self.releases)

    def __len__(self) -> int:
        return len(self.releases)

    @property
    def keys(self) -> tuple[Key, ...]:
        """The public keys, in order."""
        return tuple(self.releases)

    @property
    def cost(self) -> Cost:
        """What all groups together cost."""
        return self._any.cost

    @property
    def event(self) -> Event:
        """What was done to all groups together, for an accountant."""
        return self._any.event

    @property
    def private(self) -> bool:
        """Whether none was drawn with seeded bits."""
        return all(release.private for release in self.releases.values())

    @property
    def _any(self) -> Release:
        return next(iter(self.releases.values()))

    def to_dict(self) -> dict[str, Any]:
        """All of it in JSON's types."""
        listed = [{"key": list(key), "release": release.to_dict()} for key, release in self.releases.items()]
        return {"format": 1, "software": "sfumato", "by": list(self.by), "releases": listed}

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        header, *rows = self._table()
        widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
        left = len(self.by) + 1
        lines = [self._title()]
        for row in (header, *rows):
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
        header, *rows = self._table()
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        facts = "".join(f"<li><b>{name}</b>: {html.escape(text)}</li>" for name, text in self._facts())
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<div><b>{html.escape(self._title())}</b>{table}<ul>{facts}</ul></div>"

    def _title(self) -> str:
        query = self._any.query
        by = ", ".join(map(printable, self.by))
        return f"{query.name.replace('_', ' ')} of {printable(query.column)} by {by}"

    def _table(self) -> list[tuple[str, ...]]:
        rows = [(*map(printable, self.by), "", *self._any.table()[0][1:])]
        for key, release in self.releases.items():
            names = tuple(printable(str(part)) for part in key)
            rows += [(*names, *row) for row in release.table()[1:]]
        return rows

    def _facts(self) -> list[tuple[str, str]]:
        own = self._any.facts()
        notes = [note for release in self.releases.values() for note in release.notes]
        shared = [note for note in dict.fromkeys(notes) if notes.count(note) == len(self.releases)]
        others = len(set(notes)) - len(shared)
        listed = [fact for fact in own if fact[0] != "note"] + [("note", note) for note in shared]
        if others:
            listed.append(("note", "some groups have notes of their own; print one to read them"))
        return listed
