"""Bounded contributions inside an engine: at most so many rows, or groups, of every unit, by a keyed hash.

The choice is a function of the unit's own rows and of a secret key, so that every pass over a table makes the
same one and no other unit sways it. Proof: docs/proofs/contributions.md. Nothing is collected.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.data.codes import WHOLE_LIMIT
from sfumato.data.column import Category
from sfumato.data.groups import Key
from sfumato.data.siphash import siphash
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import Bits

if TYPE_CHECKING:
    import narwhals as nw

KEY_BYTES = 32
_UNIT, _INNER, _OUTER = "sfumato_unit", "sfumato_inner", "sfumato_outer"
_COPY, _RANK = "sfumato_copy", "sfumato_rank"
_GROUP = "sfumato_group"
_OWN = (_UNIT, _INNER, f"{_INNER}1", f"{_INNER}2", _OUTER, _COPY, _RANK)


def secret_key(bits: Bits) -> bytes:
    """A fresh key of 256 bits; of seeded bits it is a test key.

    >>> from sfumato.laws import SystemBits
    >>> len(secret_key(SystemBits()))
    32
    """
    return bits.words(KEY_BYTES // 8).tobytes()


def bounded(frame: "nw.LazyFrame[Any]", ids: str, most: int, key: bytes) -> "nw.LazyFrame[Any]":
    """The rows of a lazy frame with at most `most` of every unit, chosen by a keyed hash of their content.

    Rows without an id are left out, and columns that hold no plain values (lists, bytes, structures), since
    rows are told apart by all columns that remain. The order of the rows is not kept.

    Args:
        frame: a table in Polars, DuckDB or Spark, with plain names such as those of `lazy_names.by_place`.
        ids: the column that tells units apart: integers, text, or reals that are whole numbers.
        most: how many rows of a unit remain.
        key: 32 secret bytes, of `secret_key`; the same key makes the same choice.

    Raises:
        NotSupported: the engine has no keyed choice here.

    >>> import narwhals as nw, polars as pl
    >>> table = nw.from_native(pl.LazyFrame({"id": [1, 1, 1, 2, None], "x": [5, 6, 7, 8, 9]}))
    >>> bounded(table, "id", 2, bytes(32)).collect().group_by("id").agg(nw.len()).sort("id").rows()
    [(1, 2), (2, 1)]
    """
    table, names, dtypes, unit = _with_units(frame, ids)
    content = sorted(names)
    return _chosen(table, names, dtypes, unit, content, most, _derived(key, "rows", content), groups=False)


def bounded_groups(
    frame: "nw.LazyFrame[Any]", ids: str, by: Sequence[str], most: int, key: bytes
) -> "nw.LazyFrame[Any]":
    """The rows of a lazy frame with at most `most` groups of every unit, chosen by a keyed hash.

    A group is a combination of values of the columns `by`, where a null is a value of its own. All rows of a
    group that is kept stay. Rows without an id and columns that hold no plain values are left out.

    >>> import narwhals as nw, polars as pl
    >>> table = nw.from_native(pl.LazyFrame({"id": [1, 1, 1, 1], "team": ["a", "a", "b", "c"]}))
    >>> bounded_groups(table, "id", ["team"], 2, bytes(32)).collect()["team"].n_unique()
    2
    """
    table, names, dtypes, unit = _with_units(frame, ids)
    missing = [name for name in by if name not in names]
    if missing or not by:
        raise InvalidParameter(f"by must be columns of plain values, got {list(by)}")
    # By name, and not in the order of the question, so that the same groups are the same choice.
    content = sorted({ids, *by})
    return _chosen(table, names, dtypes, unit, content, most, _derived(key, "groups", content), groups=True)


def bounded_listed(
    frame: "nw.LazyFrame[Any]",
    ids: str,
    values: "Sequence[nw.Expr]",
    keys: Sequence[Key],
    most: int,
    key: bytes,
    *,
    other: bool,
) -> "nw.LazyFrame[Any]":
    """The rows of a lazy frame with at most `most` groups of every unit, for groups by a list of keys.

    Args:
        frame: a table in Polars, DuckDB or Spark.
        ids: the column that tells units apart.
        values: the key columns as text, integers or booleans; null for a value of no key.
        keys: the keys, in any order.
        most: how many groups of a unit remain.
        key: 32 secret bytes, of `secret_key`.
        other: whether all rows of no key are one more group; if not, they are left out.

    >>> import narwhals as nw, polars as pl
    >>> table = nw.from_native(pl.LazyFrame({"id": [1, 1, 1, 1], "team": ["a", "b", "c", "d"]}))
    >>> teams, keys = [nw.col("team")], [("a",), ("b",)]
    >>> kept = bounded_listed(table, "id", teams, keys, 1, bytes(32), other=True).collect()["team"].to_list()
    >>> sorted(kept) in (["a"], ["b"], ["c", "d"])
    True
    """
    import narwhals as nw

    texts = []
    for place, value in enumerate(values):
        text = value.cast(nw.String)
        if any(type(each[place]) is bool for each in keys):
            # Engines write flags each in their own way.
            text = nw.when(~value.is_null()).then(nw.when(value).then(nw.lit("1")).otherwise(nw.lit("0")))
        texts += [text.str.len_chars().cast(nw.String), nw.lit(":"), text]
    listed = ["".join(map(_told, each)) for each in keys]
    group = nw.concat_str(*texts)
    names = list(frame.collect_schema().names())
    table = frame.with_columns(nw.when(group.is_in(listed)).then(group).alias(_GROUP))
    if not other:
        table = table.filter(~nw.col(_GROUP).is_null())
    found = bounded_groups(table, ids, [_GROUP], most, key)
    return found.select(*(name for name in found.collect_schema().names() if name in names))


def _told(value: Category) -> str:
    text = str(int(value)) if type(value) is bool else str(value)
    return f"{len(text)}:{text}"


def _derived(key: bytes, use: str, content: Sequence[str]) -> bytes:
    """A key for one use, so that choices of rows and of groups are independent."""
    if len(key) != KEY_BYTES:
        raise InvalidParameter(f"key must be {KEY_BYTES} bytes, got {len(key)}")
    told = "".join(f"{len(name)}:{name}" for name in (use, *content))
    return hashlib.blake2b(told.encode(), key=key, digest_size=KEY_BYTES).digest()


def _with_units(
    frame: "nw.LazyFrame[Any]", ids: str
) -> "tuple[nw.LazyFrame[Any], list[str], Mapping[str, Any], str]":
    """The rows that have an id, the names and types of the plain columns, and the column that tells units."""
    import narwhals as nw

    dtypes = dict(frame.collect_schema())
    names = [name for name, dtype in dtypes.items() if _is_plain(dtype)]
    # Engines read other names as patterns or paths, and take two for one that differ in case alone.
    if odd := sorted(name for name in dtypes if not name.isidentifier() or name.lower() in _OWN):
        raise InvalidParameter(f"columns must have plain names that are not used inside, got {odd[:5]}")
    if ids not in names:
        raise InvalidParameter(f"ids must be a column of integers, text or reals, got {ids!r}")
    unit = whole_or_null(ids, dtypes[ids])
    table = frame.select(*names)
    if unit is None:
        return table.filter(~nw.col(ids).is_null()), names, dtypes, ids
    return table.with_columns(unit.alias(_UNIT)).filter(~nw.col(_UNIT).is_null()), names, dtypes, _UNIT


def whole_or_null(name: str, dtype: Any) -> "nw.Expr | None":
    """A column of reals as integers, null for all but whole numbers below 2**53; None for other types."""
    import narwhals as nw

    if not dtype.is_numeric() or dtype.is_integer():
        return None
    number = nw.col(name).cast(nw.Float64)
    limit = nw.lit(float(WHOLE_LIMIT))
    # Engines hold that NaN is larger than any number, or compare it to nothing: both leave it out.
    sound = (number < limit) & (number > -limit) & (number.floor() == number)
    return nw.when(sound).then(number).cast(nw.Int64)


def _is_plain(dtype: Any) -> bool:
    import narwhals as nw

    written = (nw.Boolean, nw.String, nw.Categorical, nw.Enum, nw.Date, nw.Datetime, nw.Time)
    return bool(dtype.is_numeric()) or dtype in written


def _chosen(
    table: "nw.LazyFrame[Any]",
    names: Sequence[str],
    dtypes: Mapping[str, Any],
    unit: str,
    content: Sequence[str],
    most: int,
    key: bytes,
    *,
    groups: bool,
) -> "nw.LazyFrame[Any]":
    engine = table.implementation
    if engine.is_polars():
        found = _by_polars(table.to_native(), dtypes, unit, content, most, key, groups=groups)
        return _wrapped(found.select(*names))
    if engine.is_duckdb() or engine.is_spark_like():
        dialect = _DuckDB() if engine.is_duckdb() else _Spark()
        found = _by_sql(dialect, table.to_native(), names, dtypes, unit, content, most, key, groups=groups)
        return _wrapped(found)
    raise NotSupported(
        f"rows per unit are bounded by Polars, DuckDB and Spark, and not by {engine.value}: "
        "give the table to one of these, or in memory"
    )


def _wrapped(native: Any) -> "nw.LazyFrame[Any]":
    import narwhals as nw

    frame: nw.LazyFrame[Any] = nw.from_native(native).lazy()
    return frame


class _DuckDB:
    def name(self, column: str) -> str:
        doubled = column.replace('"', '""')
        return f'"{doubled}"'

    def text(self, column: str, dtype: Any) -> str:
        return f"cast({self.name(column)} as varchar)"

    def apart(self, column: str, dtype: Any) -> str:
        import narwhals as nw

        # By its bytes: DuckDB takes some texts that are not UTF-8 for one when it sorts them.
        return f"encode({self.name(column)})" if dtype == nw.String else self.name(column)

    def length(self, text: str) -> str:
        return f"strlen({text})"

    def digest(self, text: str) -> str:
        return f"sha256({text})"

    def with_column(self, table: Any, expression: str, column: str) -> Any:
        return table.project(f"*, {expression} as {self.name(column)}")

    def filtered(self, table: Any, condition: str, names: Sequence[str]) -> Any:
        return table.filter(condition).project(", ".join(map(self.name, names)))


class _Spark:
    # SQL in text and not functions, so that classic sessions and Spark Connect take the same path.
    def name(self, column: str) -> str:
        doubled = column.replace("`", "``")
        return f"`{doubled}`"

    def text(self, column: str, dtype: Any) -> str:
        if getattr(dtype, "time_zone", None) is not None:
            # As local time two instants of an hour that is repeated in autumn would be one text.
            return f"cast(unix_micros({self.name(column)}) as string)"
        return f"cast({self.name(column)} as string)"

    def apart(self, column: str, dtype: Any) -> str:
        return self.name(column)

    def length(self, text: str) -> str:
        return f"cast(octet_length({text}) as string)"

    def digest(self, text: str) -> str:
        return f"sha2({text}, 256)"

    def with_column(self, table: Any, expression: str, column: str) -> Any:
        return table.selectExpr("*", f"{expression} as {self.name(column)}")

    def filtered(self, table: Any, condition: str, names: Sequence[str]) -> Any:
        return table.where(condition).selectExpr(*map(self.name, names))


def _by_sql(
    dialect: _DuckDB | _Spark,
    table: Any,
    names: Sequence[str],
    dtypes: Mapping[str, Any],
    unit: str,
    content: Sequence[str],
    most: int,
    key: bytes,
    *,
    groups: bool,
) -> Any:
    """SHA-256 with the key as its first block, of texts of which none begins another."""
    secret, by = key.hex(), f"partition by {dialect.apart(unit, dtypes.get(unit))}"
    parts = [f"'{secret}r'"]
    for column in content:
        text = dialect.text(column, dtypes[column])
        # With its length before it, no text of one column can be read as that of two.
        told = f"concat('v', {dialect.length(text)}, ':', {text})"
        parts.append(f"case when {dialect.name(column)} is null then 'n' else {told} end")
    table = dialect.with_column(table, dialect.digest(f"concat({', '.join(parts)})"), _INNER)
    if groups:
        ranked = f"dense_rank() over ({by} order by {_INNER})"
    else:
        # Rows of one content are numbered and hashed again, so that each of them has a chance of its own.
        order = f"over ({by} order by {_INNER})"
        table = dialect.with_column(table, f"row_number() {order} - rank() {order}", _COPY)
        again = dialect.digest(f"concat('{secret}c', {_INNER}, {dialect.text(_COPY, None)}, ';')")
        table = dialect.with_column(table, f"case when {_COPY} = 0 then {_INNER} else {again} end", _OUTER)
        ranked = f"row_number() over ({by} order by {_OUTER})"
    return dialect.filtered(dialect.with_column(table, ranked, _RANK), f"{_RANK} <= {most}", names)


def _by_polars(
    table: Any,
    dtypes: Mapping[str, Any],
    unit: str,
    content: Sequence[str],
    most: int,
    key: bytes,
    *,
    groups: bool,
) -> Any:
    """SipHash-2-4 of two digests of 64 bits that Polars makes of the content with two secret seeds."""
    import narwhals as nw
    import polars as pl

    fields: list[Any] = []
    for name in content:
        column = pl.col(name)
        # Numbers of categories depend on the rest of the table; their text does not.
        fields.append(column.cast(pl.String) if dtypes[name] in (nw.Categorical, nw.Enum) else column)
        if dtypes[name].is_float():
            # Polars gives both zeros one digest, but one divided by them is not the same.
            fields.append((1 / column < 0).alias(f"{_COPY} {name}"))
    row = pl.struct(fields)
    seeds = np.frombuffer(key[:16], dtype="<u8").tolist()
    first, second = (f"{_INNER}{i}" for i in (1, 2))
    table = table.with_columns(row.hash(seeds[0]).alias(first), row.hash(seeds[1]).alias(second))
    number: Any = pl.lit(0, dtype=pl.UInt64)
    if not groups:
        # Rows of one content are numbered, so that each of them has a chance of its own.
        table = table.with_columns(_joined(first, second).alias(_INNER)).sort(_INNER)
        place = pl.int_range(pl.len())
        starts = pl.when(pl.col(_INNER).ne_missing(pl.col(_INNER).shift(1))).then(place).forward_fill()
        number = (place - starts).cast(pl.UInt64)

    def hashed(rows: Any) -> Any:
        words = [rows.struct.field(name).to_numpy() for name in (first, second, _COPY)]
        return pl.Series(siphash(key[16:], words))

    outer = pl.struct(first, second, _COPY).map_batches(hashed, return_dtype=pl.UInt64, is_elementwise=True)
    table = table.with_columns(number.alias(_COPY)).with_columns(outer.alias(_OUTER))
    # Two rows or groups of one hash are told apart by their digests: no tie is left to the order of a table.
    table = table.with_columns(_joined(_OUTER, second).alias(_RANK))
    if groups:
        return table.filter(pl.col(_RANK).rank("dense").over(unit) <= most)
    return table.filter(pl.int_range(pl.len()).over(unit, order_by=_RANK) < most)


def _joined(high: str, low: str) -> Any:
    """Two columns of 64 bits as one of 127, by which a sort is fast."""
    import polars as pl

    return (pl.col(high) // 2).cast(pl.Int128) * 2**64 + pl.col(low).cast(pl.Int128)
