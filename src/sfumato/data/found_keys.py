"""The keys that data hold, and how many units each has: private, until a selection has shown some of them.

A key is a combination of values of text, integers, booleans, or reals that are whole numbers below 2**53. A
row with a null in a key column has no key, nor has one with a text of more than 1,000 characters or one that
UTF-8 cannot write. Each of these decisions looks at one row. Keys come in the order of their values, whatever
library or engine holds the table, so that what is drawn for them in turn is the same.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.checks import MAX_NAME, is_text
from sfumato.data.codes import Labels
from sfumato.data.column import Category, Column, Kind
from sfumato.data.contributions import distinct_in_order, unit_numbers
from sfumato.data.groups import Key
from sfumato.data.lazy_contributions import whole_or_null
from sfumato.errors import SchemaMismatch
from sfumato.grid import Ints

if TYPE_CHECKING:
    import narwhals as nw

_KINDS: tuple[Kind, ...] = ("integer", "real", "boolean", "text")
_NO_KEYS = "column {!r} stores {}, which makes no groups: they need text, whole numbers or booleans"
_UNITS = "sfumato_units"


def found_keys(
    by: Sequence[Column], labels: Labels | None = None, rows: Ints | None = None
) -> tuple[list[Key], Ints]:
    """The distinct keys of some rows, in order, and the number of units of each; of rows, without labels.

    Args:
        by: the columns that make the keys.
        labels: the units of all rows of these columns; rows of no unit count for no key.
        rows: the numbers of the rows that count; None for all.

    >>> from sfumato.data.admission import admit
    >>> keys, units = found_keys([admit(["b", "a", "b", None])], admit([1, 1, 1, 2]).labels())
    >>> keys, units.tolist()
    ([('a',), ('b',)], [1, 1])
    """
    if rows is not None:
        by = [column.take(rows) for column in by]
        labels = None if labels is None else (labels[0][rows], labels[1][rows])
    codes, keys = numbered(by)
    return counted(codes, keys, labels)


def numbered(by: Sequence[Column]) -> tuple[Ints, list[Key]]:
    """The number of every row's key among the keys that are there, in order; their number if it has none."""
    require_keys(by)
    rows = len(by[0])
    known = np.ones(rows, dtype=np.bool_)
    joined = np.zeros(rows, dtype=np.int64)
    # For every key so far the places of its values, a row for each column.
    parts: list[Ints] = []
    values: list[list[Category]] = []
    for column in by:
        codes, listed = _values(column)
        known &= codes < len(listed)
        values.append(listed)
        # Numbered anew after each column, so that no product of many columns overflows.
        present = joined[known] * max(len(listed), 1) + codes[known]
        pairs, numbers = _numbered(present)
        before, last = pairs // max(len(listed), 1), pairs % max(len(listed), 1)
        parts = [*(part[before] for part in parts), last]
        joined = np.zeros(rows, dtype=np.int64)
        joined[known] = numbers
    names = [[listed[i] for i in part.tolist()] for listed, part in zip(values, parts, strict=True)]
    keys = list(zip(*names, strict=True))
    return np.where(known, joined, len(keys)), keys


def counted(codes: Ints, keys: Sequence[Key], labels: Labels | None) -> tuple[list[Key], Ints]:
    """The keys that rows of these codes have, and how many units each has; how many rows, without labels."""
    present = codes < len(keys)
    if labels is None:
        counts = np.bincount(codes[present], minlength=len(keys))
    else:
        units, _, known = unit_numbers(labels)
        if known is not None:
            present &= known
        pairs = distinct_in_order(units[present] * max(len(keys), 1) + codes[present])
        counts = np.bincount(pairs % max(len(keys), 1), minlength=len(keys))
    there = np.flatnonzero(counts)
    return [keys[i] for i in there.tolist()], counts[there]


def require_keys(by: Sequence[Column]) -> None:
    """Refuse columns of kinds that make no keys; the kind is a public fact."""
    for column in by:
        column.require(*_KINDS, hint="; found groups need one of these")
        if column.reads != "number":
            raise SchemaMismatch(_NO_KEYS.format(column.name, column.reads))


def _values(column: Column) -> tuple[Ints, list[Category]]:
    """The place of every row's value among the distinct ones in order; their number for none."""
    labels, known = column.labels()
    listed: list[Category]
    if column.kind in ("real", "boolean", "unknown"):
        distinct, numbers = _numbered(labels[known].astype(np.int64, copy=False))
        listed = distinct.tolist()
        if column.kind == "boolean":
            listed = [bool(value) for value in listed]
    else:
        units, sizes, _ = unit_numbers((labels[known], known[known]))
        one = np.full(len(sizes), -1, dtype=np.int64)
        one[units] = np.flatnonzero(known)
        # One row of each label tells its value: what is slow is done for distinct ones alone.
        few = column.take(one[one >= 0])
        listed = sorted(
            value for kind, value in few._tally() if kind is int or (kind is str and is_text(value))
        )
        table = np.zeros(len(sizes), dtype=np.int64)
        table[one >= 0] = few.codes(listed)
        # A text that names no key has the code above all of them, and so has a row that counts as null.
        numbers = np.minimum(table[units], len(listed))
    codes = np.full(len(known), len(listed), dtype=np.int64)
    codes[known] = numbers
    return codes, listed


def _numbered(values: Ints) -> tuple[Ints, Ints]:
    """The distinct values in order, and the place of every value among them."""
    numbers, sizes, _ = unit_numbers((values, np.ones(len(values), dtype=np.bool_)))
    if not len(values):
        return values, numbers
    present = sizes > 0
    places = np.cumsum(present) - 1
    distinct = np.empty(int(places[-1]) + 1, dtype=np.int64)
    found = places[numbers]
    distinct[found] = values
    return distinct, found


def lazy_found_keys(
    frame: "nw.LazyFrame[Any]",
    by: Sequence[str],
    dtypes: Mapping[str, Any] | None = None,
    ids: str | None = None,
    least: int = 1,
) -> tuple[list[Key], Ints]:
    """The same of a lazy frame, by one group-by in its engine; keys of fewer than `least` units stay there.

    Args:
        frame: rows that were bounded before, if they belong to units.
        by: the columns that make the keys.
        dtypes: the types of the columns, if they are known already.
        ids: the column that tells units apart; None where each row is one.
        least: a public number of units below which a key is never shown, and so need not cross over.

    >>> import narwhals as nw, polars as pl
    >>> table = nw.from_native(pl.LazyFrame({"team": ["b", "a", "b", None], "id": [1, 1, 1, 2]}))
    >>> keys, units = lazy_found_keys(table, ["team"], ids="id")
    >>> keys, units.tolist()
    ([('a',), ('b',)], [1, 1])
    """
    types = frame.collect_schema() if dtypes is None else dtypes
    wanted = keys_frame(frame, by, types, ids, least)
    table = wanted.collect() if wanted.implementation.is_polars() else wanted.collect("pyarrow")
    return read_keys(table, [types[name] for name in by])


def keys_frame(
    frame: "nw.LazyFrame[Any]",
    by: Sequence[str],
    dtypes: Mapping[str, Any],
    ids: str | None = None,
    least: int = 1,
) -> "nw.LazyFrame[Any]":
    """The group-by of `lazy_found_keys`, not yet run; `read_keys` reads what it gives."""
    import narwhals as nw

    keys = [f"sfumato_key{i}" for i in range(len(by))]
    read = [key_or_null(name, dtypes[name]).alias(key) for name, key in zip(by, keys, strict=True)]
    if ids is not None:
        unit = whole_or_null(ids, dtypes[ids])
        read.append((nw.col(ids) if unit is None else unit).alias(_UNITS))
    table = frame.select(*read)
    for name in keys if ids is None else [*keys, _UNITS]:
        table = table.filter(~nw.col(name).is_null())
    units = nw.len() if ids is None else nw.col(_UNITS).n_unique()
    return table.group_by(*keys).agg(units.alias(_UNITS)).filter(nw.col(_UNITS) >= least)


def read_keys(table: "nw.DataFrame[Any]", dtypes: Sequence[Any]) -> tuple[list[Key], Ints]:
    """Keys and units of the table that `keys_frame` gives, in order, for key columns of these types."""
    read = [_read(table[f"sfumato_key{i}"], dtype) for i, dtype in enumerate(dtypes)]
    units = table[_UNITS].to_list()
    found = sorted(each for each in zip(zip(*read, strict=True), units, strict=True) if None not in each[0])
    return [key for key, _ in found], np.array([count for _, count in found], dtype=np.int64)


def key_or_null(name: str, dtype: Any) -> "nw.Expr":
    """A column as it makes keys: null for what makes none."""
    import narwhals as nw

    if dtype in (nw.String, nw.Categorical, nw.Enum):
        text = nw.col(name).cast(nw.String)
        return nw.when(text.str.len_chars() <= MAX_NAME).then(text)
    if dtype == nw.Boolean:
        return nw.col(name)
    if not dtype.is_numeric():
        raise SchemaMismatch(_NO_KEYS.format(name, type(dtype).__name__.lower()))
    whole = whole_or_null(name, dtype)
    if whole is not None:
        return whole
    # Integers of 128 bits cross over as text: Arrow has none.
    return nw.col(name).cast(nw.String) if dtype in (nw.Int128, nw.UInt128) else nw.col(name)


def _read(series: "nw.Series[Any]", dtype: Any) -> list[Any]:
    import narwhals as nw

    if dtype in (nw.Int128, nw.UInt128):
        return [int(text) for text in series.to_list()]
    if series.dtype != nw.String:
        return series.to_list()
    # Neither Arrow nor Polars checks that a text is UTF-8, and both would raise when it is read.
    return [_decoded(text) for text in series.cast(nw.Binary).to_list()]


def _decoded(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None
