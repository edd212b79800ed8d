"""Groups: the public keys of some columns, and the rows of every key found in one pass."""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from sfumato.checks import checked_text, shown
from sfumato.data.codes import Codes, Flags, smallest_type
from sfumato.data.column import Category, Column
from sfumato.errors import InvalidParameter
from sfumato.grid import Ints

MAX_KEYS = 10_000
# Places below this are looked up in a table; others by search.
_TABLE = 2**22

Key = tuple[Category, ...]


def read_by(by: object) -> tuple[str, ...]:
    """Distinct names of columns."""
    if isinstance(by, str) or not isinstance(by, Sequence) or not all(isinstance(name, str) for name in by):
        raise InvalidParameter(f"by must be a list of column names, got by={shown(by)}")
    for name in by:
        checked_text("by", name)
    if len(set(by)) < len(by):
        raise InvalidParameter(f"by must be distinct column names, got by={shown(by)}")
    return tuple(by)


def all_keys(categories: Sequence[tuple[Category, ...]]) -> tuple[Key, ...]:
    """Every combination of the declared categories, the last column changing fastest.

    >>> all_keys([("a", "b"), (1, 2)])
    (('a', 1), ('a', 2), ('b', 1), ('b', 2))
    """
    count = math.prod(len(listed) for listed in categories)
    if count > MAX_KEYS:
        raise InvalidParameter(f"by must make at most {MAX_KEYS} groups, got {count} of declared categories")
    return tuple(product(*categories))


def key_codes(codes: Sequence[Codes], sizes: Sequence[int]) -> Codes:
    """For every row the place of its key among all keys; the number of keys if it has none."""
    count = math.prod(sizes)
    joined = codes[0].astype(smallest_type(count), copy=True)
    known = codes[0] < sizes[0]
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        # Places of rows without a key may wrap: they are overwritten.
        joined *= joined.dtype.type(size)
        joined += code.astype(joined.dtype, copy=False)
        known &= code < size
    np.putmask(joined, ~known, count)
    return joined


def listed_codes(columns: Sequence[Column], keys: Sequence[Key]) -> Codes:
    """For every row the place of its key in a list of distinct keys; the number of keys for any other row.

    A row with a null in a key column is among the others, as is one with a value that no key has.

    >>> from sfumato.data.admission import admit
    >>> by = [admit(["a", "b", "a", None]), admit([1, 2, 2, 1])]
    >>> listed_codes(by, [("b", 2), ("a", 1)]).tolist()
    [1, 0, 2, 2]
    """
    places = np.zeros(len(keys), dtype=np.int64)
    joined, known = np.zeros(len(columns[0]), dtype=np.int64), np.ones(len(columns[0]), dtype=np.bool_)
    for number, column in enumerate(columns):
        place = {value: i for i, value in enumerate(dict.fromkeys(key[number] for key in keys))}
        codes = column.codes(list(place))
        known &= codes < len(place)
        places = places * len(place) + np.array([place[key[number]] for key in keys], dtype=np.int64)
        joined = joined * len(place) + codes
        # Only the beginnings of listed keys are numbered on, so that no product of many columns overflows.
        listed, places = np.unique(places, return_inverse=True)
        joined, found = _places_in(listed, joined)
        known &= found
    order = np.empty(len(keys), dtype=np.int64)
    order[places] = np.arange(len(keys))
    joined[~known] = 0
    codes_of = order[joined] if len(keys) else joined
    return np.where(known, codes_of, len(keys)).astype(smallest_type(len(keys)))


def _places_in(listed: Ints, values: Ints) -> tuple[Ints, Flags]:
    """The place of every value in a sorted list, and whether it is there."""
    if not len(listed):
        return np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=np.bool_)
    if listed[-1] < _TABLE:
        table = np.full(int(listed[-1]) + 2, -1, dtype=np.int64)
        table[listed] = np.arange(len(listed))
        # What is above the last entry, or below nought, is none of them.
        found = table[np.where((values < 0) | (values > listed[-1]), listed[-1] + 1, values)]
        return found, found >= 0
    place = np.minimum(np.searchsorted(listed, values), len(listed) - 1)
    return place, listed[place] == values


def partition(codes: Codes, count: int) -> tuple[Ints, Ints]:
    """The row numbers in order of their codes, and where each code begins; rows of code `count` are left out.

    Rows of one code keep their order. Up to 2**16 codes this is a sort by counting.

    >>> rows, starts = partition(np.array([1, 0, 2, 1], dtype=np.uint8), 2)
    >>> rows.tolist(), starts.tolist()
    ([1, 0, 3], [0, 1, 3])
    """
    sizes = np.bincount(codes, minlength=count + 1)[:count]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return np.argsort(codes, kind="stable")[: starts[-1]], starts
