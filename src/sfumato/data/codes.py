"""Codes: the place of every row's value in a public list of categories, and labels that tell values apart.

Nothing here raises for what the data hold: what is neither null nor a category has the code of another value.
"""

import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.grid import Floats, Ints

Codes = NDArray[np.unsignedinteger[Any]]
Flags = NDArray[np.bool_]
# Rows of one label hold one value; the flags say which rows hold a value that tells a unit.
Labels = tuple[NDArray[np.integer[Any]], Flags]

# Up to so many categories one comparison each is faster than a search.
FEW = 16
# Float64 tells whole numbers apart below this.
WHOLE_LIMIT = 2**53


def smallest_type(largest: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds a code; sorting by it stably takes one pass for each 16 bits."""
    return np.min_scalar_type(largest)


def number_codes(chunks: Iterable[NDArray[Any]], rows: int, categories: Sequence[int | bool]) -> Codes:
    """Codes of numbers that come in chunks of one type that holds every category; NaN is null."""
    others, null = len(categories), len(categories) + 1
    found = np.full(rows, others, dtype=smallest_type(null))
    order, listed, start = np.empty(0, dtype=np.int64), np.empty(0), 0
    for chunk in chunks:
        code = found[start : start + len(chunk)]
        if not start:
            given = np.array(categories, dtype=chunk.dtype)
            order = np.argsort(given, kind="stable")
            listed = given[order]
        if others <= FEW:
            for i in range(others):
                np.putmask(code, chunk == listed[i], order[i])
        else:
            place = np.minimum(np.searchsorted(listed, chunk), others - 1)
            np.copyto(code, order[place], where=listed[place] == chunk, casting="unsafe")
        if chunk.dtype.kind == "f":
            np.putmask(code, np.isnan(chunk), null)
        start += len(chunk)
    return found


def integer_codes(values: NDArray[Any], present: Flags | None, categories: Sequence[int]) -> Codes:
    """Codes of integers of any width, exactly; rows that are not present are null."""
    limits = np.iinfo(values.dtype)
    # What the type cannot hold no row has: it keeps its code, which nobody gets.
    held = [i for i, category in enumerate(categories) if limits.min <= category <= limits.max]
    chunks = (values[start : start + 2**16] for start in range(0, len(values), 2**16))
    codes = number_codes(chunks, len(values), [categories[i] for i in held])
    return relabelled(codes, [*held, len(categories), len(categories) + 1], present, len(categories))


def relabelled(codes: Codes, table: Sequence[int], present: Flags | None, categories: int) -> Codes:
    """Codes taken through a table; rows that are not present become null."""
    null = categories + 1
    if list(table) != list(range(len(table))) or codes.dtype != smallest_type(null):
        codes = np.array(table, dtype=smallest_type(null)).take(codes)
    if present is not None:
        np.putmask(codes, ~present, null)
    return codes


def listed_codes(labels: NDArray[Any], texts: Sequence[str | None], categories: Sequence[str]) -> Codes:
    """Codes of rows that point into a list of texts, where a null text is no text; a label of -1 is null."""
    place = {category: i for i, category in enumerate(categories)}
    others = len(place)
    table = [others if text is None else place.get(text, others) for text in texts]
    # The last entry is what -1 points at.
    return np.array([*table, others + 1], dtype=smallest_type(others + 1)).take(labels)


def array_codes(array: NDArray[Any], categories: Sequence[str]) -> Codes:
    """Codes of a NumPy array of text of fixed width."""
    plain = np.asarray(array)
    if len(categories) <= FEW:
        codes = np.full(len(array), len(categories), dtype=smallest_type(len(categories) + 1))
        for i, category in enumerate(categories):
            # NumPy takes zeros at the end for padding, and compares them so.
            if not category.endswith("\0"):
                np.putmask(codes, plain == np.array(category), i)
    else:
        distinct, labels = np.unique(_points(plain), return_inverse=True)
        codes = listed_codes(labels, array_texts(distinct.view(_native(plain))), categories)
    if isinstance(array, np.ma.MaskedArray):
        np.putmask(codes, np.ma.getmaskarray(array), len(categories) + 1)
    return codes


def array_labels(array: NDArray[Any]) -> Labels:
    """Labels of a NumPy array of text of fixed width."""
    labels = np.unique(_points(np.asarray(array)), return_inverse=True)[1]
    return labels, ~np.ma.getmaskarray(array)


def array_texts(array: NDArray[Any]) -> list[str | None]:
    """The text of every row, None where the stored points are no Unicode: reading them would raise."""
    points = array.view(np.uint32).reshape(len(array), array.dtype.itemsize // 4)
    sound = np.all(points <= sys.maxunicode, axis=1).tolist()
    return [str(array[i]) if sound[i] else None for i in range(len(array))]


def _native(array: NDArray[Any]) -> np.dtype[Any]:
    return array.dtype.newbyteorder("=")


def _points(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array.astype(_native(array)))


def object_codes(values: Iterable[Any], categories: Sequence[str]) -> Codes:
    """Codes of Python objects: what is no text is another value, so that no object can raise."""
    place = {category: i for i, category in enumerate(categories)}
    others = len(place)
    codes = [others + 1 if is_null(v) else place.get(text_of(v), others) for v in values]  # type: ignore[arg-type]
    return np.array(codes, dtype=smallest_type(others + 1))


def object_labels(values: Iterable[Any]) -> Labels:
    """Labels of Python objects: text only; what is no text tells no unit."""
    seen: dict[str, int] = {}
    labels = [-1 if (text := text_of(v)) is None else seen.setdefault(text, len(seen)) for v in values]
    found = np.array(labels, dtype=np.int64)
    return found, found >= 0


def text_of(value: object) -> str | None:
    """The text of an object that is text, whatever its own methods would do."""
    return str.__str__(value) if issubclass(type(value), str) else None


def is_null(value: object) -> bool:
    """Whether an object stands for a missing value."""
    # pandas' NA and NaT are known by name, so that pandas need not be imported.
    nan = issubclass(type(value), float) and math.isnan(float.__float__(value))  # type: ignore[arg-type]
    return value is None or nan or type(value).__name__ in ("NAType", "NaTType")


def real_labels(chunks: Iterable[Floats], rows: int) -> Labels:
    """Labels of reals: whole numbers that float64 tells apart; any other value tells no unit."""
    labels, known, start = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.bool_), 0
    for chunk in chunks:
        # A comparison with NaN is False, and of the rest only whole numbers below the limit are cast. NumPy
        # would warn of a signalling NaN, and so tell of it.
        with np.errstate(all="ignore"):
            sound = (np.abs(chunk) < WHOLE_LIMIT) & (np.floor(chunk) == chunk)
        np.copyto(labels[start : start + len(chunk)], chunk, where=sound, casting="unsafe")
        known[start : start + len(chunk)] = sound
        start += len(chunk)
    return labels, known


def ranked(values: NDArray[Any]) -> tuple[Ints, Ints]:
    """The number of every row's value among the distinct ones in order, and how many rows each has.

    >>> [part.tolist() for part in ranked(np.array([7, 3, 7]))]
    [[1, 0, 1], [1, 2]]
    """
    order = np.argsort(values)
    in_order = values[order]
    new = np.zeros(len(values), dtype=np.bool_)
    np.not_equal(in_order[1:], in_order[:-1], out=new[1:])
    numbers = np.empty(len(values), dtype=np.int64)
    numbers[order] = np.cumsum(new)
    return numbers, np.bincount(numbers)
