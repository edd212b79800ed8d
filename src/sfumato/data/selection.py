"""Which rows belong to which part: conditions, bounded contributions and groups, each found once and kept."""

import math
from collections import OrderedDict
from collections.abc import Callable
from itertools import pairwise, product
from threading import Lock
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.data.codes import Codes, Flags
from sfumato.data.column import Category, Column
from sfumato.data.conditions import Condition
from sfumato.data.contributions import kept, kept_groups
from sfumato.data.found_keys import counted, numbered
from sfumato.data.groups import Key, key_codes, listed_codes, partition
from sfumato.grid import Ints
from sfumato.laws import Bits

Tested = tuple[tuple[Condition, Column], ...]
Grouped = tuple[tuple[Column, tuple[Category, ...]], ...]
Packed = NDArray[np.uint8]
T = TypeVar("T")

# An order of the rows takes eight bytes a row: so many are kept for the next query.
_ORDERS = 4
# Codes take one byte a row in most cases.
_CODES = 16


class Selections:
    """The rows of the parts of one data set; private, and filled only after a charge."""

    def __init__(self, ids: Column | None, most: int, groups: int | None = None) -> None:
        self._ids, self._most, self._most_groups = ids, most, groups
        # By whether the bits were private: what test bits chose protects nobody.
        self._kept: dict[bool, Ints] = {}
        # Which rows are in groups that their units keep, in bits; None for all. Never dropped, so that a
        # question that is asked again is answered from the same rows.
        self._groups: dict[object, Packed | None] = {}
        self._codes: OrderedDict[object, Codes] = OrderedDict()
        self._orders: OrderedDict[object, tuple[Ints, Ints]] = OrderedDict()
        self._lock = Lock()

    def split(
        self,
        column: Column,
        tested: Tested,
        grouped: Grouped,
        bits: Bits,
        *,
        keys: tuple[Key, ...] | None = None,
        other: bool = False,
    ) -> tuple[Column, ...]:
        """The column in each part, in the order of the keys.

        Args:
            column: what is split.
            tested: conditions that its rows meet, with their columns.
            grouped: the columns that make the groups, with their public categories.
            bits: what chooses rows and groups of units.
            keys: the keys of these columns that are answered; None for all combinations of the categories,
                which are found faster, and are the same question if they are listed.
            other: whether all rows of no key, a null among them, make one more part, the last.
        """
        if self._ids is None and not tested and not grouped:
            return (column,)
        listed = [categories for _, categories in grouped]
        if keys is not None and len(keys) == math.prod(map(len, listed)) and keys == tuple(product(*listed)):
            keys = None
        met = tuple(condition for condition, _ in tested)
        asked = (bits.private, met, _public(grouped), keys, other)
        # One thread at a time, so that contributions are drawn once.
        with self._lock:
            rows, starts = _remembered(
                self._orders, asked, _ORDERS, lambda: self._order(tested, grouped, bits, keys, other)
            )
        taken = column.take(rows)
        return tuple(taken.take(slice(int(start), int(stop))) for start, stop in pairwise(starts))

    def found(self, by: tuple[Column, ...], tested: Tested, bits: Bits) -> tuple[list[Key], Ints]:
        """The keys that rows have which meet the conditions, in order, and the number of units of each.

        Reads private data. Rows and groups of units are bounded first; without units, rows are counted.
        """
        with self._lock:
            codes, keys = numbered(by)
            rows = self._rows(tested, bits)
            names = tuple(column.name for column in by)
            stays = self._stays(("found", names), codes, len(keys), bits)
            labels = None if self._ids is None else self._ids.labels()
        if rows is None:
            return counted(codes, keys, labels)
        if stays is not None:
            rows = rows[stays[rows]]
        units = None if labels is None else (labels[0][rows], labels[1][rows])
        return counted(codes[rows], keys, units)

    def _order(
        self, tested: Tested, grouped: Grouped, bits: Bits, keys: tuple[Key, ...] | None, other: bool
    ) -> tuple[Ints, Ints]:
        rows = self._rows(tested, bits)
        if not grouped:
            found = np.arange(0) if rows is None else rows
            return found, np.array([0, len(found)])
        if keys is None:
            sizes = [len(categories) for _, categories in grouped]
            codes, count = key_codes([self._coded(*group) for group in grouped], sizes), math.prod(sizes)
        else:
            codes, count = listed_codes([column for column, _ in grouped], keys), len(keys)
        # Rows of no key have the next code, and so are the last group or none.
        count += other
        stays = self._stays((_public(grouped), keys, other), codes, count, bits)
        if rows is not None and stays is not None:
            rows = rows[stays[rows]]
        order, starts = partition(codes if rows is None else codes[rows], count)
        return (order if rows is None else rows[order]), starts

    def _stays(self, groups: object, codes: Codes | Ints, count: int, bits: Bits) -> Flags | None:
        """Which rows are in groups that their units keep, chosen once for these groups; None for all."""
        if self._ids is None or self._most_groups is None:
            return None
        asked = (bits.private, groups)
        if asked not in self._groups:
            rows = self._rows((), bits)
            labels, known = self._ids.labels()
            here = slice(None) if rows is None else rows
            flags = kept_groups((labels[here], known[here]), codes[here], count, self._most_groups, bits)
            if flags is not None:
                every = np.zeros(len(codes), dtype=np.bool_)
                every[here] = flags
                self._groups[asked] = np.packbits(every)
            else:
                self._groups[asked] = None
        packed = self._groups[asked]
        return None if packed is None else np.unpackbits(packed, count=len(codes)).view(np.bool_)

    def _rows(self, tested: Tested, bits: Bits) -> Ints | None:
        """The rows that are kept and meet every condition, in order; None for all."""
        met: Flags | None = None
        for condition, column in tested:
            flags = condition.rows(column)
            met = flags if met is None else met & flags
        if self._ids is None:
            return None if met is None else np.flatnonzero(met)
        if bits.private not in self._kept:
            self._kept[bits.private] = kept(self._ids, self._most, bits)
        rows = self._kept[bits.private]
        return rows if met is None else rows[met[rows]]

    def _coded(self, column: Column, categories: tuple[Category, ...]) -> Codes:
        return _remembered(self._codes, (column.name, categories), _CODES, lambda: column.codes(categories))


def _public(grouped: Grouped) -> tuple[object, ...]:
    return tuple((column.name, categories) for column, categories in grouped)


def _remembered(memory: OrderedDict[object, T], key: object, most: int, find: Callable[[], T]) -> T:
    if key not in memory:
        memory[key] = find()
        if len(memory) > most:
            memory.popitem(last=False)
    memory.move_to_end(key)
    return memory[key]
