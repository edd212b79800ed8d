"""The table that leaves: rows in an order, generalised columns as text, of the kind that came."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.partition import classes_of
from sfumato.anonymity.rows import Coded, coded_column
from sfumato.errors import InvalidParameter, NotSupported, SchemaMismatch

# Names of columns, each with its kind where it is one that a plan knows.
Columns = tuple[tuple[str, str | None], ...]
STAR = "*"
# Keys below this can be multiplied and added to without an overflow.
_WIDEST = 2**62


def eager(table: Any) -> Any:
    """A mapping as it is, a frame by narwhals; Polars collects a lazy one."""
    import narwhals as nw

    if isinstance(table, Mapping):
        _require_names(list(table))
        return table
    try:
        frame = nw.from_native(table)
        names = list(frame.collect_schema().names() if isinstance(frame, nw.LazyFrame) else frame.columns)
    except TypeError:
        raise InvalidParameter(
            "table must be a pandas, Polars or PyArrow table or a mapping of arrays, "
            f"got {type(table).__name__}"
        ) from None
    except (nw.exceptions.DuplicateError, ValueError):
        # What a frame of two columns of one name raises depends on its kind.
        frame, listed = None, getattr(table, "column_names", None)
        names = list(table.columns if listed is None else listed)
    _require_names(names)
    if frame is None:
        raise InvalidParameter("table must be one that narwhals reads, got one that it refuses")
    if isinstance(frame, nw.LazyFrame):
        if not frame.implementation.is_polars():
            raise NotSupported(
                f"a table in {frame.implementation.value} stays in its engine, but an anonymised table is "
                "published row by row: read it into memory first"
            )
        return frame.collect()
    return frame


def _require_names(names: Sequence[object]) -> None:
    if any(not isinstance(name, str) for name in names):
        raise InvalidParameter("table must have columns whose names are text, got another kind of name")
    twice = [name for name, many in Counter(names).items() if many > 1]
    if twice:
        raise InvalidParameter(f"table must have columns of distinct names, got {twice[0]!r} twice")


def columns_in(table: Any) -> Columns:
    """The names and kinds of the columns of what `eager` gave; no value is told."""
    if isinstance(table, Mapping):
        return tuple((str(name), _kind_of_array(values)) for name, values in table.items())
    return tuple((name, _kind(dtype)) for name, dtype in table.schema.items())


def _kind(dtype: Any) -> str | None:
    import narwhals as nw

    if dtype.is_integer():
        return "integer"
    if dtype.is_numeric():
        return "real"
    kinds = {nw.Boolean: "boolean", nw.Date: "date", nw.Datetime: "datetime"}
    found = next((name for kind, name in kinds.items() if dtype == kind), None)
    return found or ("text" if dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object) else None)


def _kind_of_array(values: Any) -> str | None:
    import narwhals as nw

    if isinstance(values, np.ndarray):
        letters = {"i": "integer", "u": "integer", "f": "real", "b": "boolean", "U": "text", "M": "datetime"}
        if values.dtype.kind in letters:
            return letters[values.dtype.kind]
    elif not isinstance(values, list | tuple):
        try:
            return _kind(nw.from_native(values, series_only=True).dtype)
        except TypeError:
            return None
    first = next((value for value in values if value is not None), "")
    names = {bool: "boolean", int: "integer", float: "real", str: "text"}
    return names.get(type(first), "date" if hasattr(first, "isoformat") else "text")


def by_content(
    columns: Iterable[NDArray[Any]],
    n: int,
    classes: NDArray[Any] | None = None,
    kept: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """The kept of n rows by class, then by the codes of columns: no trace of the order in which rows came."""
    rows = np.arange(n) if kept is None else kept
    key, span = np.zeros(len(rows), dtype=np.int64), 1
    for column in (*(() if classes is None else (classes,)), *columns):
        codes = column if kept is None else column[kept]
        many = int(codes.max(initial=0)) + 1
        if span * many >= _WIDEST:
            found, distinct = classes_of([key], [span])
            key, span = found.astype(np.int64), len(distinct)
        # In one number, which is sorted several times as fast as one column after another.
        key = key * many + codes
        span *= many
    return rows[np.argsort(key, kind="stable")]


def content_codes(table: Any, name: str) -> NDArray[Any]:
    """A column of any type as codes that follow from what it holds."""
    values = table[name] if isinstance(table, Mapping) else table[name].to_native()
    try:
        coded: Coded = coded_column(name, values)
    except Exception:  # libraries refuse what they do not know in ways of their own
        # Lists, infinities and mixtures have no order of their own, but their texts do.
        texts = values.tolist() if hasattr(values, "tolist") else list(values)
        return np.unique(np.array([repr(text) for text in texts], dtype=np.str_), return_inverse=True)[1]
    return coded.codes


def released(
    table: Any, names: Sequence[str], order: NDArray[np.int64], shown: Mapping[str, tuple[Sequence[str], Any]]
) -> Any:
    """The columns of these names with the rows of this order; those of `shown` as labels by class.

    Args:
        table: what `eager` gave.
        names: of the columns to release, in order.
        order: the places of the rows to release.
        shown: for each generalised column its labels, and the place of the label of every row.
    """
    if isinstance(table, Mapping):
        return {name: _picked(name, table[name], order, shown.get(name)) for name in names}
    import narwhals as nw

    some = table.select(*names)[order]
    columns = []
    for name in names:
        if name not in shown:
            continue
        labels, places = shown[name]
        listed = nw.new_series(name, list(labels), nw.String, backend=table.implementation)
        columns.append(listed[places[order]])
    if some.implementation.is_pandas_like():
        # By place: pandas would match rows by their index.
        native = _bare(some.to_native())
        for series in columns:
            native[series.name] = series.to_native().array
        # What is noted of the whole table may name people, or tell how many rows there were.
        native.attrs = {}
        return native
    native = some.with_columns(*columns).to_native()
    return _without_notes(native) if some.implementation.is_pyarrow() else native


def _without_notes(table: Any) -> Any:
    """A table of PyArrow without what is noted of it and of its columns."""
    import pyarrow as pa

    schema = pa.schema([field.remove_metadata() for field in table.schema])
    return pa.Table.from_arrays(table.columns, schema=schema)


def _bare(native: Any) -> Any:
    return native.reset_index(drop=True) if hasattr(native, "reset_index") else native


def _picked(
    name: str, values: Any, order: NDArray[np.int64], labels: tuple[Sequence[str], Any] | None
) -> Any:
    import narwhals as nw

    if labels is not None:
        texts, places = labels
        found = [texts[place] for place in places[order].tolist()]
        return type(values)(found) if isinstance(values, list | tuple) else np.array(found, dtype=object)
    if isinstance(values, np.ndarray):
        return values[order]
    if isinstance(values, list | tuple | range):
        kind = list if isinstance(values, range) else type(values)
        return kind(values[place] for place in order.tolist())
    if nw.dependencies.is_into_series(values):
        return _bare(nw.from_native(values, series_only=True)[order].to_native())
    if not hasattr(values, "take"):
        raise SchemaMismatch(f"column {name!r} must be an array, got {type(values).__name__}")
    return values.take(order)
