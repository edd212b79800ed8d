"""Cuts of many segments of rows at once, until no cut is allowed: the engine of Mondrian."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.mondrian_columns import Column, Treed

Ints = NDArray[np.int64]
# From the rows of the parts, part after part, and the size of each: which parts meet the goals.
Fits = Callable[[NDArray[np.int32], Ints], NDArray[np.bool_]]

# Segments are cut in groups of so many rows: their codes stay in the processor's cache.
GROUP_ROWS = 2**16
# Segment, value and place of a row in one number, if they fit.
KEY_BITS = 62
# Values are ticked off in tables of so many cells a row, or sorted.
CELLS = 4
# NumPy sorts and gathers without the lock of Python; with more threads than this they wait for it.
WORKERS = 4


@dataclass(frozen=True, eq=False)
class Leaves:
    """The rows class after class, the sizes of the classes, and their lowest and highest codes by column."""

    rows: NDArray[np.int32]
    sizes: Ints
    low: NDArray[np.int32]
    high: NDArray[np.int32]


# Where classes begin in the result, and the classes.
Ended = tuple[Ints, Leaves]


@dataclass(frozen=True, eq=False)
class _Group:
    """Segments of rows, one after another; a segment's place is the number of rows before it in the end."""

    codes: NDArray[np.int32]
    rows: NDArray[np.int32]
    sizes: Ints
    places: Ints


@dataclass(frozen=True, eq=False)
class _Axis:
    """A way to cut: the values of a column, or whether they are null."""

    column: int
    null: bool


@dataclass(frozen=True, eq=False)
class _Parts:
    """Segments sorted by the codes that cut them: their rows, and where their parts begin."""

    rows: Ints
    sizes: Ints
    owners: Ints


class Cutter:
    """Cuts rows by columns until every segment is a class; `least` rows is the smallest part."""

    def __init__(self, columns: Sequence[Column], *, least: int, fits: Fits | None, relaxed: bool) -> None:
        self._columns = columns
        self._axes = [
            _Axis(j, null)
            for j, column in enumerate(columns)
            for null in ((True, False) if column.null >= 0 else (False,))
        ]
        self._column_of = np.array([axis.column for axis in self._axes])
        self._null_of = np.array([columns[axis.column].null if axis.null else -1 for axis in self._axes])
        self._in_tree = np.array([isinstance(columns[axis.column], Treed) for axis in self._axes])
        self._value_bits = max(column.size for column in columns).bit_length()
        self._least, self._fits, self._relaxed = least, fits, relaxed

    def leaves(self, order: NDArray[np.int32]) -> Leaves:
        """The classes of all rows; where ties are dealt, earlier rows of `order` go to the lower part."""
        from sfumato.accuracy.progress import steps

        n = len(order)
        codes = np.stack([column.codes[order] for column in self._columns])
        found: list[Ended] = []
        done, told, bar = 0, 0, steps(101, "cutting classes")
        with ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, WORKERS)) as pool:
            running = {pool.submit(self._worked, _Group(codes, order, np.array([n]), np.array([0])))}
            del codes
            while running:
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    groups, ended = future.result()
                    running |= {pool.submit(self._worked, group) for group in groups}
                    found += ended
                    done += sum(len(leaves.rows) for _, leaves in ended)
                while told < 100 * done // n:
                    told = next(bar)
            for _ in bar:  # a bar that is not at its end would stay on the screen
                pass
        return _joined(found)

    def _worked(self, group: _Group) -> tuple[list[_Group], list[Ended]]:
        """A large group cut once, and what is left of it in groups; a small one cut to the end."""
        found = []
        while len(group.rows):
            large = len(group.rows) > GROUP_ROWS
            group, ended = self._cut(group)
            found.append(ended)
            if large:
                return list(self._divided(group)), found
        return [], found

    def _divided(self, group: _Group) -> Iterator[_Group]:
        ends = np.cumsum(group.sizes)
        first = 0
        while first < len(ends):
            start = int(ends[first - 1]) if first else 0
            after = max(int(np.searchsorted(ends, start + GROUP_ROWS, side="right")), first + 1)
            stop = int(ends[after - 1])
            segments = slice(first, after)
            codes, rows = group.codes[:, start:stop], group.rows[start:stop]
            yield _Group(codes, rows, group.sizes[segments], group.places[segments])
            first = after

    def _cut(self, group: _Group) -> tuple[_Group, Ended]:
        """One cut of every segment that has an allowed one, and the segments that have none."""
        starts = _starts(group.sizes)
        low = np.minimum.reduceat(group.codes, starts, axis=1)
        high = np.maximum.reduceat(group.codes, starts, axis=1)
        widths = self._widths(group, low, high)
        tried = np.argsort(-widths, axis=0, kind="stable")
        pending = np.flatnonzero((group.sizes >= 2 * self._least) & (widths.max(axis=0) > 0))
        uncut = np.ones(len(group.sizes), dtype=bool)
        rows: list[Ints] = []
        sizes: list[Ints] = []
        places: list[Ints] = []
        for axes in tried:
            axis = axes[pending]
            wide = widths[axis, pending] > 0
            pending, axis = pending[wide], axis[wide]
            if not len(pending):
                break
            parts = self._parts(group, starts, pending, axis)
            met = self._met(group, parts)
            allowed = np.logical_and.reduceat(met, np.flatnonzero(np.diff(parts.owners, prepend=-1)))
            chosen = allowed[parts.owners]
            within = _starts(parts.sizes) - _starts(group.sizes[pending])[parts.owners]
            places.append((group.places[pending][parts.owners] + within)[chosen])
            sizes.append(parts.sizes[chosen])
            rows.append(parts.rows if allowed.all() else parts.rows[np.repeat(chosen, parts.sizes)])
            uncut[pending[allowed]] = False
            pending = pending[~allowed]
        ended = np.flatnonzero(uncut)
        leaves = group.rows if uncut.all() else group.rows[_members(starts, group.sizes, ended)]
        done = Leaves(leaves, group.sizes[ended], low[:, ended], high[:, ended])
        none = np.zeros(0, dtype=np.int64)
        index = rows[0] if len(rows) == 1 else np.concatenate([none, *rows])
        if len(index) < len(group.rows):
            codes = np.take(group.codes, index, axis=1)
        else:
            codes = group.codes
            for row in codes:  # in place, and so without a second table
                row[:] = row[index]
        going = _Group(
            codes, group.rows[index], np.concatenate([none, *sizes]), np.concatenate([none, *places])
        )
        return going, (group.places[ended], done)

    def _widths(self, group: _Group, low: NDArray[np.int32], high: NDArray[np.int32]) -> NDArray[np.float64]:
        widths = np.empty((len(self._axes), len(group.sizes)))
        for a, axis in enumerate(self._axes):
            column, lowest, highest = self._columns[axis.column], low[axis.column], high[axis.column]
            if axis.null:
                widths[a] = (lowest < column.null) & (highest == column.null)
                continue
            seen = None
            if column.counted:
                seen = _distinct(group.codes[axis.column], group.sizes, lowest, highest)
            widths[a] = column.widths(lowest, highest, seen)
        return widths

    def _parts(self, group: _Group, starts: Ints, pending: Ints, axis: Ints) -> _Parts:
        """What the pending segments fall into when each is cut along its axis."""
        sizes = group.sizes[pending]
        members = _members(starts, group.sizes, pending)
        values = _chosen(group.codes, self._column_of[axis], sizes, members)
        null = self._null_of[axis]
        if (null >= 0).any():
            nulls = np.repeat(null, sizes)
            values = np.where(nulls >= 0, values == nulls, values)
        order, keys = _sorted(values, sizes, self._value_bits)
        firsts = _starts(sizes)
        middle = keys[firsts + sizes // 2]
        below = np.searchsorted(keys, middle, side="left") - firsts
        upto = np.searchsorted(keys, middle, side="right") - firsts
        lower = np.where(below > sizes - upto, below, upto)
        if self._relaxed:
            lower = np.where(null >= 0, lower, sizes // 2)
        if self._in_tree[axis].any():
            begins = np.flatnonzero(self._begin(axis, sizes, firsts + lower, keys))
            owners = np.repeat(np.arange(len(sizes)), sizes)[begins]
        else:
            begins = np.stack([firsts, firsts + lower], axis=1).reshape(-1)
            owners = np.repeat(np.arange(len(sizes)), 2)
        rows = order if len(members) == len(group.rows) else members[order]
        return _Parts(rows, np.diff(begins, append=len(members)), owners)

    def _begin(self, axis: Ints, sizes: Ints, halves: Ints, keys: Ints) -> NDArray[np.bool_]:
        """Which rows begin a part, where some segments are cut by trees and the others at `halves`."""
        firsts, in_tree = _starts(sizes), self._in_tree[axis]
        begin = np.zeros(len(keys), dtype=bool)
        begin[firsts] = True
        begin[halves[~in_tree]] = True
        for a in np.unique(axis[in_tree]).tolist():
            column, here = self._columns[self._axes[a].column], np.flatnonzero(axis == a)
            assert isinstance(column, Treed)
            at = _members(firsts, sizes, here)
            values = (keys[at] & ((1 << self._value_bits) - 1)).astype(np.int32)
            ends = np.cumsum(sizes[here])
            above = column.lowest(values[ends - sizes[here]], values[ends - 1])
            nodes = column.levels[np.repeat(above - 1, sizes[here]), values]
            begin[at] |= np.diff(nodes, prepend=-1) != 0
        return begin

    def _met(self, group: _Group, parts: _Parts) -> NDArray[np.bool_]:
        met: NDArray[np.bool_] = parts.sizes >= self._least
        if self._fits is not None:
            met &= self._fits(group.rows[parts.rows], parts.sizes)
        return met


def _starts(sizes: Ints) -> Ints:
    return np.cumsum(sizes) - sizes


def _members(starts: Ints, sizes: Ints, segments: Ints) -> Ints:
    """The places of the rows of some segments."""
    if len(segments) == len(sizes):
        return np.arange(int(sizes.sum()))
    chosen = sizes[segments]
    return np.repeat(starts[segments] - _starts(chosen), chosen) + np.arange(int(chosen.sum()))


def _chosen(codes: NDArray[np.int32], columns: Ints, sizes: Ints, members: Ints) -> NDArray[Any]:
    """The codes of rows, segment after segment, each segment in its own column."""
    values: NDArray[np.int32]
    if len(columns) == 1:
        values = codes[columns[0]]
        return values if len(members) == len(values) else values[members]
    values = np.empty(len(members), dtype=np.int32)
    chosen = np.repeat(columns, sizes)
    for j in np.unique(columns).tolist():
        here = np.flatnonzero(chosen == j)
        values[here] = codes[j, members[here]]
    return values


def _sorted(values: NDArray[Any], sizes: Ints, value_bits: int) -> tuple[Ints, Ints]:
    """The stable order of the rows by segment and value, and their keys (segment, value) in that order."""
    keys = np.repeat(np.arange(len(sizes)) << value_bits, sizes)
    keys |= values
    place_bits = len(keys).bit_length()
    if len(sizes).bit_length() + value_bits + place_bits > KEY_BITS:
        order = np.argsort(keys, kind="stable")
        return order, keys[order]
    # The place in the lowest bits: sorting numbers is faster than sorting places by numbers.
    keys <<= place_bits
    keys |= np.arange(len(keys))
    keys.sort()
    order = keys & ((1 << place_bits) - 1)
    keys >>= place_bits
    return order, keys


def _distinct(codes: NDArray[np.int32], sizes: Ints, low: NDArray[np.int32], high: NDArray[np.int32]) -> Ints:
    """How many distinct codes each segment has."""
    spans = (high - low).astype(np.int64) + 1
    bases = _starts(spans)
    cells = np.repeat(bases - low, sizes) + codes
    held = int(spans.sum())
    if held <= CELLS * len(codes):
        seen = np.zeros(held, dtype=bool)
        seen[cells] = True
        return np.add.reduceat(seen, bases, dtype=np.int64)
    cells.sort()
    new = np.diff(cells, prepend=-1) != 0
    return np.add.reduceat(new, _starts(sizes), dtype=np.int64)


def _joined(found: list[Ended]) -> Leaves:
    """All leaves in the order of their places: that of the cuts, lower parts first."""
    places = np.concatenate([where for where, _ in found])
    order = np.argsort(places)
    sizes = np.concatenate([leaves.sizes for _, leaves in found])
    rows = np.empty(int(sizes.sum()), dtype=np.int32)
    for where, leaves in found:
        if len(where):
            rows[np.repeat(where - _starts(leaves.sizes), leaves.sizes) + np.arange(len(leaves.rows))] = (
                leaves.rows
            )
    low = np.concatenate([leaves.low for _, leaves in found], axis=1)[:, order]
    high = np.concatenate([leaves.high for _, leaves in found], axis=1)[:, order]
    return Leaves(rows, sizes[order], low, high)
