"""Which rows belong to which part: conditions, bounded contributions and groups, each found once and kept."""

from collections import OrderedDict
from collections.abc import Callable
from itertools import pairwise
from threading import Lock
from typing import TypeVar

import numpy as np

from sfumato.data.codes import Codes, Flags
from sfumato.data.column import Category, Column
from sfumato.data.conditions import Condition
from sfumato.data.contributions import kept
from sfumato.data.groups import key_codes, partition
from sfumato.grid import Ints
from sfumato.laws import Bits

Tested = tuple[tuple[Condition, Column], ...]
Grouped = tuple[tuple[Column, tuple[Category, ...]], ...]
T = TypeVar("T")

# An order of the rows takes eight bytes a row: so many are kept for the next query.
_ORDERS = 4
# Codes take one byte a row in most cases.
_CODES = 16


class Selections:
    """The rows of the parts of one data set; private, and filled only after a charge."""

    def __init__(self, ids: Column | None, most: int) -> None:
        self._ids, self._most = ids, most
        # By whether the bits were private: what test bits chose protects nobody.
        self._kept: dict[bool, Ints] = {}
        self._codes: OrderedDict[object, Codes] = OrderedDict()
        self._orders: OrderedDict[object, tuple[Ints, Ints]] = OrderedDict()
        self._lock = Lock()

    def split(self, column: Column, tested: Tested, grouped: Grouped, bits: Bits) -> tuple[Column, ...]:
        """The column in each part, in the order of the keys."""
        if self._ids is None and not tested and not grouped:
            return (column,)
        asked = (bits.private, tuple(condition for condition, _ in tested), _public(grouped))
        # One thread at a time, so that contributions are drawn once.
        with self._lock:
            rows, starts = _remembered(
                self._orders, asked, _ORDERS, lambda: self._order(tested, grouped, bits)
            )
        taken = column.take(rows)
        return tuple(taken.take(slice(int(start), int(stop))) for start, stop in pairwise(starts))

    def _order(self, tested: Tested, grouped: Grouped, bits: Bits) -> tuple[Ints, Ints]:
        rows = self._rows(tested, bits)
        if not grouped:
            found = np.arange(0) if rows is None else rows
            return found, np.array([0, len(found)])
        sizes = [len(categories) for _, categories in grouped]
        codes = key_codes([self._coded(*group) for group in grouped], sizes)
        order, starts = partition(codes if rows is None else codes[rows], int(np.prod(sizes)))
        return (order if rows is None else rows[order]), starts

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
