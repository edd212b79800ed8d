"""Which rows of a lazy table a question is about, and which groups they make: public facts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.data.conditions import ColumnRef, Condition
from sfumato.data.groups import Key
from sfumato.grid import Ints

if TYPE_CHECKING:
    import narwhals as nw


@dataclass(frozen=True)
class GroupKeys:
    """The keys of some columns, in order; with `other` all rows of no key make one more group, the last.

    >>> GroupKeys(("team",), (("red",), ("blue",)), other=True).count
    3
    """

    by: tuple[str, ...] = ()
    keys: tuple[Key, ...] = ((),)
    other: bool = False

    @property
    def count(self) -> int:
        """How many groups there are."""
        return len(self.keys) + self.other

    def values(self, place: int) -> tuple[Any, ...]:
        """The values that the keys have in one of the columns."""
        return self._values[place]

    @cached_property
    def _values(self) -> tuple[tuple[Any, ...], ...]:
        columns = zip(*self.keys, strict=True) if self.keys else [()] * len(self.by)
        return tuple(tuple(dict.fromkeys(column)) for column in columns)

    def groups_of(self, columns: "Sequence[nw.Series[Any]]") -> Ints:
        """The group of every row of a small table, by its key columns; -1 for none."""
        if not self.by:
            raise ValueError("a table without keys has one group")
        rest = len(self.keys) if self.other else -1
        rows = len(columns[0])
        codes, found = np.zeros(rows, dtype=np.int64), []
        for i, column in enumerate(columns):
            place = places_of(self.values(i))
            found.append(np.array([place.get(value, -1) for value in column.to_list()], dtype=np.int64))
            # Numbered anew, so that no product of many columns overflows.
            codes = np.unique(codes * (len(place) + 1) + found[-1], return_inverse=True)[1]
        _, firsts, codes = np.unique(codes, return_index=True, return_inverse=True)
        group_of: dict[Key | None, int] = {key: group for group, key in enumerate(self.keys)}
        groups = [group_of.get(self._key([int(part[row]) for part in found]), rest) for row in firsts]
        return np.array(groups, dtype=np.int64)[codes]

    def _key(self, places: Sequence[int]) -> Key | None:
        if min(places) < 0:
            return None
        return tuple(self.values(i)[place] for i, place in enumerate(places))


def places_of(values: Sequence[Any]) -> dict[Any, int]:
    """The place of each value in a list; of integers also as text, which is how wide ones cross over.

    >>> places_of((7, 2**70))["7"], places_of(("a", "b"))["b"]
    (0, 1)
    """
    places = {value: at for at, value in enumerate(values)}
    wide = {str(value): at for at, value in enumerate(values) if type(value) is int}
    return {**wide, **places}


@dataclass(frozen=True)
class Portion:
    """The rows that meet public conditions, in groups."""

    where: tuple[Condition, ...] = ()
    groups: GroupKeys = GroupKeys()

    @property
    def columns(self) -> tuple[ColumnRef, ...]:
        """The columns that tell which rows these are.

        >>> Portion(groups=GroupKeys(("team",), (("red",),))).columns
        ('team',)
        """
        return (*(condition.column for condition in self.where), *self.groups.by)


WHOLE_TABLE = Portion()
