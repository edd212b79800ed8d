"""Groups: the public keys of some columns, and the rows of every key found in one pass."""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from sfumato.checks import shown
from sfumato.data.codes import Codes, smallest_type
from sfumato.data.column import Category
from sfumato.errors import InvalidParameter
from sfumato.grid import Ints

MAX_KEYS = 10_000

Key = tuple[Category, ...]


def read_by(by: object) -> tuple[str, ...]:
    """Distinct names of columns."""
    if isinstance(by, str) or not isinstance(by, Sequence) or not all(isinstance(name, str) for name in by):
        raise InvalidParameter(f"by must be a list of column names, got by={shown(by)}")
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
