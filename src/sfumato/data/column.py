"""A column of private data, seen through its public kind and read in chunks of float64."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sfumato.checks import checked_text, shown
from sfumato.data.codes import WHOLE_LIMIT, Codes, Labels, number_codes, real_labels, smallest_type
from sfumato.data.moments import Reads
from sfumato.errors import InvalidParameter, SchemaMismatch
from sfumato.grid import Floats, Ints

# A list without a value is of no known kind: it must be answered like its neighbours, whatever they hold.
Kind = Literal["integer", "real", "boolean", "text", "unknown"]
Category = str | int | bool

# One chunk of float64 and its scratch fit in a core's second-level cache.
CHUNK = 2**16
MAX_CATEGORIES = 2**20


@dataclass(frozen=True, eq=False)
class Column:
    """A column of private data with its public facts: name, kind, whether it can hold nulls.

    `reads` says what its numbers stand for: "number", "date" (whole days since 1970-01-01) or "datetime"
    (seconds of UTC since then).

    `rows` is public under substitution and private under add-remove; nothing here tells it to anyone.
    """

    name: str
    kind: Kind
    nullable: bool
    rows: int
    _floats: Callable[[int, int], Floats] | None
    _tally: Callable[[], Counter[Any]]
    # Only a column that was admitted has rows that can be taken out of it.
    _take: Callable[[Any], "Column"] | None = None
    # Of text and of integers, which float64 does not hold; the others are coded by their floats.
    _codes: Callable[[Sequence[Any]], Codes] | None = None
    _labels: Callable[[], Labels] | None = None
    reads: Reads = "number"

    def __len__(self) -> int:
        return self.rows

    def require(self, *kinds: Kind, hint: str = "") -> None:
        """Refuse a column of another kind; the kind is a public fact."""
        if self.kind not in (*kinds, "unknown"):
            wanted = " or ".join(kinds)
            raise SchemaMismatch(f"column {self.name!r} must be {wanted}, but it stores {self.holds}{hint}")

    @property
    def holds(self) -> str:
        """What the column stores, in a word: its kind, or "date" or "datetime"."""
        return self.kind if self.reads == "number" else self.reads

    def require_categories(self, categories: Sequence[Category]) -> None:
        """Refuse categories that this kind of column can never hold."""
        if self.reads != "number":
            raise SchemaMismatch(
                f"column {self.name!r} stores {self.reads}, which has no categories; give a range of dates"
            )
        fitting = {"integer": int, "real": int, "boolean": bool, "text": str}.get(self.kind)
        if fitting is None:
            return
        if any(type(category) is not fitting for category in categories):
            raise SchemaMismatch(
                f"column {self.name!r} stores {self.kind}, so categories must be {fitting.__name__}, "
                f"got {shown(tuple(categories))}"
            )
        if self.kind == "real" and any(abs(int(category)) > 2**53 for category in categories):
            raise SchemaMismatch(
                f"column {self.name!r} stores real, which holds whole numbers up to 2**53 only"
            )

    def take(self, rows: Ints | slice) -> "Column":
        """The column of these rows: of the same name and kind, whatever they hold; a slice is no copy."""
        if self._take is None:
            raise SchemaMismatch(f"column {self.name!r} has no rows that can be taken")
        return self._take(rows)

    def codes(self, categories: Sequence[Category]) -> Codes:
        """For every row the place of its value among public categories.

        Any other value has the code `len(categories)`, and a null the one above it. A category of a type that
        the column never holds is the value of no row.
        """
        if self.kind == "unknown":
            return np.full(self.rows, len(categories) + 1, dtype=smallest_type(len(categories) + 1))
        fitting = {"boolean": bool, "text": str}.get(self.kind, int)
        held = [i for i, category in enumerate(categories) if type(category) is fitting]
        table = np.array([*held, len(categories), len(categories) + 1], dtype=np.int64)
        given = [categories[i] for i in held]
        # Below the limit no other integer is read as the same float.
        exact = self.kind in ("real", "boolean") or (
            self.kind == "integer" and all(abs(int(category)) < WHOLE_LIMIT for category in given)
        )
        if exact or self._codes is None:
            codes = number_codes(self.chunks(), self.rows, given)  # type: ignore[arg-type]
        else:
            codes = self._codes(given)
        if len(held) == len(categories):
            return codes
        return table.astype(smallest_type(len(categories) + 1)).take(codes)

    def labels(self) -> Labels:
        """Integers that are equal in two rows just if the values are, and which rows hold such a value.

        A null tells no unit apart, nor does a real that is no whole number below 2**53 in size.
        """
        if self._labels is not None:
            return self._labels()
        return real_labels(self.chunks(), self.rows)

    def chunks(self) -> Iterator[Floats]:
        """The values in order, as float64 with NaN for null."""
        if self._floats is None:
            self.require("integer", "real", "boolean")
            return
        for start in range(0, self.rows, CHUNK):
            yield self._floats(start, min(start + CHUNK, self.rows))

    def nulls(self) -> int:
        """How many rows are null or NaN."""
        if self._floats is None:
            return self.rows - sum(self._tally().values())
        return sum(int(np.count_nonzero(np.isnan(chunk))) for chunk in self.chunks())

    def tally(self, categories: Sequence[Category]) -> tuple[list[int], int]:
        """How many rows hold each public category, and how many hold another value (nulls in neither)."""
        if self.kind == "real":
            return self._tally_reals(categories)
        found = self._tally()
        counts = [found.pop((type(category), category), 0) for category in categories]
        return counts, sum(found.values())

    def _tally_reals(self, categories: Sequence[Category]) -> tuple[list[int], int]:
        # Codes such as 1 and 2 become reals when a table has nulls; they are found by search, not by sorting.
        order = np.argsort(np.array(categories, dtype=np.float64), kind="stable")
        listed = np.array(categories, dtype=np.float64)[order]
        counts, known = np.zeros(len(listed), dtype=np.int64), 0
        for chunk in self.chunks():
            place = np.minimum(np.searchsorted(listed, chunk), len(listed) - 1)
            counts += np.bincount(place[listed[place] == chunk], minlength=len(listed))
            known += len(chunk) - int(np.count_nonzero(np.isnan(chunk)))
        in_order = np.empty(len(listed), dtype=np.int64)
        in_order[order] = counts
        return in_order.tolist(), known - int(counts.sum())


def checked_categories(name: str, given: object) -> tuple[Category, ...]:
    """Distinct public categories of one type, from one or several."""
    several = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str | bytes)
    listed = tuple(_plain(item) for item in given) if several else (_plain(given),)  # type: ignore[attr-defined]
    if len(listed) > MAX_CATEGORIES:
        raise InvalidParameter(f"{name} must be at most {MAX_CATEGORIES}, got {len(listed)}")
    if not listed or not all(type(item) in (str, int, bool) for item in listed):
        raise InvalidParameter(f"{name} must be text, whole numbers or booleans, got {name}={shown(given)}")
    for item in listed:
        if isinstance(item, str):
            checked_text(name, item)
    if len(set(map(type, listed))) != 1 or len(set(listed)) != len(listed):
        raise InvalidParameter(f"{name} must be distinct and of one type, got {name}={shown(given)}")
    return listed  # type: ignore[return-value]


def _plain(item: object) -> object:
    # NumPy's scalars are what np.unique and iteration over arrays give.
    return item.item() if isinstance(item, np.generic) else item
