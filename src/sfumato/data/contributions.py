"""Bounded contributions: at most so many rows, or groups, of every unit, by a secret uniform choice."""

import numpy as np

from sfumato.data.codes import Codes, Flags, Labels, ranked
from sfumato.data.column import Column
from sfumato.grid import Ints
from sfumato.laws import Bits
from sfumato.laws.bits import Words

# Labels that span at most so many times the rows are counted in a table; others are sorted.
_SPAN = 8
# So many keys are drawn at a time.
_BLOCK = 2**18


def kept(ids: Column, most: int, bits: Bits) -> Ints:
    """The numbers of the rows that are kept, in order: of every unit at most `most`, uniformly chosen.

    A unit is a distinct id; rows without one are left out. A unit with at most `most` rows keeps them all.
    The choices of the units are independent, and each set of `most` rows of a unit has the same probability,
    exactly, given uniform bits. Proof: docs/proofs/contributions.md.

    >>> from sfumato.data.admission import admit
    >>> from sfumato.laws import SeededBits
    >>> kept(admit(["ann", "bob", None, "bob"]), 2, SeededBits(1)).tolist()
    [0, 1, 3]
    """
    units, counts, known = unit_numbers(ids.labels())
    keep = np.ones(len(units), dtype=np.bool_) if known is None else known.copy()
    crowded = counts > most
    if crowded.any():
        many = crowded[units]
        many &= keep
        rows = np.flatnonzero(many)
        # Numbered anew, so that their numbers are short and leave bits for the keys.
        numbers = np.cumsum(crowded) - 1
        keep[rows] = False
        keep[rows[chosen(numbers[units[rows]], int(numbers[-1]) + 1, most, bits)]] = True
    return np.flatnonzero(keep)


def kept_groups(labels: Labels, codes: Codes | Ints, count: int, most: int, bits: Bits) -> Flags | None:
    """Which rows are in a group that their unit keeps: of every unit at most `most` groups, uniformly chosen.

    Args:
        labels: the units of the rows, as `Column.labels` tells them.
        codes: the group of every row, 0..count-1; a row of another code is in no group, and stays.
        count: how many groups there are.
        most: how many groups of a unit are kept; all their rows stay. A row without a unit stays in none.
        bits: what chooses.

    Returns:
        None for all rows, where no unit is in more groups. The choices of the units are independent, and each
        set of `most` groups of a unit has the same probability, exactly, given uniform bits.
        Proof: docs/proofs/contributions.md.

    >>> from sfumato.laws import SeededBits
    >>> ids = (np.array([7, 7, 7, 8]), np.array([True] * 4))
    >>> flags = kept_groups(ids, np.array([0, 0, 1, 1], dtype=np.uint8), 2, 1, SeededBits(1))
    >>> flags.tolist() in ([True, True, False, True], [False, False, True, True])
    True
    """
    units, sizes, known = unit_numbers(labels)
    here = codes < count
    if known is not None:
        here &= known
    pairs = units * count + codes
    places = np.bincount(distinct_in_order(pairs[here]) // count, minlength=len(sizes))
    crowded = places > most
    if not crowded.any():
        return known
    here &= crowded[units]
    rows = np.flatnonzero(here)
    which, _ = ranked(pairs[rows])
    # Of several rows the last one written counts: backwards, that is the first.
    first = np.empty(int(which.max()) + 1, dtype=np.int64)
    first[which[::-1]] = np.arange(len(rows))[::-1]
    # In the order of the table and not of the labels, which libraries number each in their own way.
    leads = np.zeros(len(rows), dtype=np.bool_)
    leads[first] = True
    order = which[leads]
    numbers = np.cumsum(crowded) - 1
    owners = numbers[units[rows[leads]]]
    stays = np.zeros(len(first), dtype=np.bool_)
    stays[order[chosen(owners, int(numbers[-1]) + 1, most, bits)]] = True
    keep = np.ones(len(units), dtype=np.bool_) if known is None else known.copy()
    keep[rows] = stays[which]
    return keep


def distinct_in_order(values: Ints) -> Ints:
    """The distinct values, smallest first."""
    ordered = np.sort(values)
    new = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    distinct: Ints = ordered[new]
    return distinct


def unit_numbers(labels: Labels) -> tuple[Ints, Ints, Flags | None]:
    """The number of every row's unit, how many rows each unit has, and which rows have one (None: all)."""
    values, known = labels
    if known.all():
        present, everyone = values, None
    else:
        present, everyone = values[known], known
    if not len(present):
        return np.zeros(len(values), dtype=np.int64), np.zeros(1, dtype=np.int64), known
    low, high = int(present.min()), int(present.max())
    if high - low < _SPAN * len(present) + 1024:
        # Subtracted in 64 bits, signed or not as the labels are, where the difference is known to fit.
        wide = present if present.dtype.itemsize == 8 else present.astype(np.int64)
        numbers = (wide - wide.dtype.type(low)).astype(np.int64, copy=False)
        counts = np.bincount(numbers)
    else:
        numbers, counts = ranked(present)
    if everyone is None:
        return numbers, counts, None
    units = np.zeros(len(values), dtype=np.int64)
    units[known] = numbers
    return units, counts, known


def chosen(units: Ints, count: int, most: int, bits: Bits, width: int = 64) -> Ints:
    """The places of `most` rows of each of the units 0..count-1, which all have more, uniformly chosen.

    Every row draws a key, and a unit keeps the rows with the smallest keys. Where the last key kept equals
    the first one left out, a fair choice among the rows with this key decides.
    """
    shift = np.uint64((count - 1).bit_length())
    unit_bits = np.uint64(64) - shift
    keys = _keys(len(units), min(width, int(unit_bits)), bits)
    if shift:
        keys |= units.astype(np.uint64) << unit_bits
    order = np.argsort(keys)
    sizes = np.bincount(units, minlength=count)
    starts = np.cumsum(sizes) - sizes
    ends = starts + most
    ranked = keys[order]
    for end in ends[ranked[ends] == ranked[ends - 1]].tolist():
        _settle(order, ranked, end, bits)
    first: Ints = order[np.add.outer(starts, np.arange(most)).ravel()]
    return first


def _keys(count: int, width: int, bits: Bits) -> Words:
    keys = np.empty(count, dtype=np.uint64)
    for start in range(0, count, _BLOCK):
        block = keys[start : start + _BLOCK]
        np.right_shift(bits.words(len(block)), np.uint64(64 - width), out=block)
    return keys


def _settle(order: Ints, ranked: Words, end: int, bits: Bits) -> None:
    """Put a uniform choice of the rows whose keys tie across `end` before it."""
    first, stop = np.searchsorted(ranked, ranked[end], "left"), np.searchsorted(ranked, ranked[end], "right")
    for i in range(int(first), end):
        other = i + bits.below(int(stop) - i)
        order[[i, other]] = order[[other, i]]
