"""Rows, codes and labels of pandas, Polars and PyArrow series, each by what its library does fast."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.data.codes import (
    Codes,
    Flags,
    Labels,
    integer_codes,
    listed_codes,
    object_codes,
    object_labels,
    ranked,
    relabelled,
    smallest_type,
    text_of,
)
from sfumato.data.stored_types import Stored, no_values, seconds_of
from sfumato.grid import Floats

# Up to so many categories Polars compares text faster than it looks it up.
_FEW = 3
# A list of texts, None for what is no text, and for each row a place in it, or -1.
Listed = tuple[NDArray[Any], list[str | None]]


def taken(series: Any, rows: Any) -> Any:
    """The rows of a wrapped series, unwrapped, of the same type."""
    native = series.to_native()
    if isinstance(rows, slice):
        return series[rows].to_native()
    if _stores_arrow(native):
        array = _arrow(series)
        # The offsets of short text overflow when much of it is put together, and of views no rows are taken.
        return (_plain_arrow(array, "large_string") if _is_text(array.type) else array).take(rows)
    if series.implementation.is_polars():
        # To look for rows in many chunks takes several times as long as to join these first.
        return native.rechunk()[rows]
    return series[rows].to_native()


def tallied_text(series: Any) -> Counter[Any] | None:
    """How often each text occurs, for series that list theirs; None for others."""
    native, listed = series.to_native(), _listed(series)
    if listed is not None:
        places, texts = listed
        counts = np.bincount(places[places >= 0], minlength=len(texts)).tolist()
    elif series.implementation.is_polars() and native.dtype == _polars().Enum:
        places, texts = native.drop_nulls().to_physical().to_numpy(), native.dtype.categories.to_list()
        counts = np.bincount(places, minlength=len(texts)).tolist()
    elif series.implementation.is_polars():
        table = native.drop_nulls().alias("text").value_counts(name="rows")
        texts, counts = _polars_texts(table["text"]), table["rows"].to_list()
    else:
        return None
    found: Counter[Any] = Counter()
    for text, count in zip(texts, counts, strict=True):
        found[(object, None) if text is None else (str, text)] += count
    return found


def text_codes(series: Any, categories: Sequence[str]) -> Codes:
    """Codes of a wrapped series of text."""
    listed = _listed(series)
    if listed is not None:
        return listed_codes(*listed, categories)
    native = series.to_native()
    if not series.implementation.is_polars():
        return object_codes(native.to_numpy(dtype=object), categories)
    return (
        _polars_codes(native, categories)
        if native.dtype == _polars().String
        else _physical(native, categories)
    )


def text_labels(series: Any) -> Labels:
    """Labels of a wrapped series of text."""
    native = series.to_native()
    if _stores_arrow(native):
        return _placed(_dictionary(_arrow(series)).indices)
    if series.implementation.is_polars():
        return _polars_labels(native)
    if hasattr(native, "cat"):
        places = native.cat.codes.to_numpy()
        return places, places >= 0
    return object_labels(native.to_numpy(dtype=object))


def whole_codes(series: Any, categories: Sequence[int]) -> Codes:
    """Codes of a wrapped series of integers, exactly."""
    values, present = whole_labels(series, narrow=True)
    if values.dtype.kind in "iu":
        return integer_codes(values, present, categories)
    # Wider than any integer of NumPy: as text, where every integer is written in one way.
    return text_codes(_as_text(series), [str(category) for category in categories])


def whole_labels(series: Any, *, narrow: bool = False) -> Labels:
    """The integers of a wrapped series themselves, or labels of them if they are wider than 64 bits."""
    import narwhals as nw

    if series.dtype in (nw.Int128, nw.UInt128):
        return (np.empty(0), np.empty(0, dtype=np.bool_)) if narrow else text_labels(_as_text(series))  # type: ignore[return-value]
    present: Flags = ~np.asarray(series.is_null().to_numpy(), dtype=np.bool_)
    # A column that cannot hold nulls is used as it is.
    filled = series if present.all() else series.fill_null(0)
    plain = {"signed": np.int64, "unsigned": np.uint64}
    wanted = plain["signed" if series.dtype.is_signed_integer() else "unsigned"]
    return np.asarray(filled.to_numpy()).astype(wanted, copy=False), present


def arrow_stored(native: Any, name: str) -> Stored | None:
    """What a type of Arrow makes of a column, where narwhals does not know the type; None for others.

    Raises:
        SchemaMismatch: a dictionary is of anything but text.
    """
    import pyarrow.types as types

    kind = native.type if hasattr(native, "type") else native.dtype.pyarrow_dtype
    if types.is_dictionary(kind) and not _is_text(kind):
        raise no_values(name, "a dictionary without text")
    if types.is_null(kind):
        return Stored("unknown")
    if types.is_date(kind):
        return Stored("integer", "date")
    return Stored("real") if types.is_decimal(kind) else None


def arrow_numbers(part: Any) -> Floats:
    """The float64 values of an Arrow array, NaN for null; of dates days, of datetimes seconds."""
    import pyarrow.types as types

    if types.is_decimal(part.type):
        # Arrow's own cast may be off by one step of float64; text is read to the nearest.
        part = part.cast("string")
    if types.is_date(part.type) or types.is_timestamp(part.type):
        missing = np.asarray(part.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
        whole = part.cast("int32").cast("int64") if types.is_date32(part.type) else part.cast("int64")
        ticks = np.asarray(whole.fill_null(0).to_numpy(zero_copy_only=False))
        if types.is_timestamp(part.type):
            return np.where(missing, np.nan, seconds_of(ticks, part.type.unit))
        days = ticks if types.is_date32(part.type) else ticks // 86_400_000
        return np.where(missing, np.nan, days.astype(np.float64))
    # Arrow's own cast refuses integers that float64 must round, which would tell of them.
    return np.asarray(part.cast("float64", safe=False).to_numpy(zero_copy_only=False))


def _as_text(series: Any) -> Any:
    import narwhals as nw

    return series.cast(nw.String)


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    held = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(held) or types.is_large_string(held) or types.is_string_view(held))


def _is_arrow(native: Any) -> bool:
    return type(native).__module__.partition(".")[0] == "pyarrow"


def _arrow(series: Any) -> Any:
    # Narwhals joins the chunks of a column of Arrow, and that raises where there are 2 GiB of short text.
    native = series.to_native()
    return native if _is_arrow(native) else series.to_arrow()


def _stores_arrow(native: Any) -> bool:
    stored = getattr(native, "dtype", None)
    return (
        _is_arrow(native) or hasattr(stored, "pyarrow_dtype") or getattr(stored, "storage", "") == "pyarrow"
    )


def _listed(series: Any) -> Listed | None:
    native = series.to_native()
    if _stores_arrow(native):
        encoded = _dictionary(_arrow(series))
        return _placed(encoded.indices)[0], [_decoded(text) for text in encoded.dictionary.to_pylist()]
    if not series.implementation.is_polars() and hasattr(native, "cat"):
        return native.cat.codes.to_numpy(), [_written(value) for value in native.cat.categories]
    return None


def _plain_arrow(array: Any, kind: str) -> Any:
    """Text of Arrow as another type of text or bytes, dictionaries written out."""
    import pyarrow as pa

    if not pa.types.is_dictionary(array.type):
        return array.cast(kind, safe=False)
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    return pa.chunked_array([_written_out(chunk, kind) for chunk in chunks], kind)


def _written_out(array: Any, kind: str) -> Any:
    return array.dictionary.cast(kind, safe=False).take(sound_places(array))


def sound_places(array: Any) -> Any:
    """The places of a dictionary array of Arrow, null for those that are not in the dictionary.

    Arrow does not check them, and raises when one is looked up.
    """
    import pyarrow as pa

    places = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
    sound = array.indices.is_valid().to_numpy(zero_copy_only=False) & (places >= 0)
    sound &= places < len(array.dictionary)
    return pa.array(np.where(sound, places, 0), mask=~sound)


def _dictionary(array: Any) -> Any:
    # Arrow does not check that text is UTF-8: it is told apart by its bytes.
    plain = _plain_arrow(array, "large_binary")
    joined = plain.combine_chunks() if hasattr(plain, "combine_chunks") else plain
    return joined.dictionary_encode()


def _placed(indices: Any) -> Labels:
    places = indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return places, places >= 0


def _decoded(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def _written(value: object) -> str | None:
    # A pandas category may be any object; a number is known by what is printed for it.
    try:
        text = text_of(value)
        return str(value) if text is None else text
    except Exception:  # whatever an object in the data raises must not get out: it is another value
        return None


def _polars() -> Any:
    import polars

    return polars


def _polars_texts(native: Any) -> list[str | None]:
    # A series that was made of Arrow's text may hold bytes that are no text, for which Polars panics.
    return [_decoded(text) for text in native.cast(_polars().String).cast(_polars().Binary).to_list()]


def _polars_codes(native: Any, categories: Sequence[str]) -> Codes:
    null = len(categories) + 1
    # Polars holds no text that UTF-8 cannot write, and raises for it.
    held = [i for i, category in enumerate(categories) if _is_utf8(category)]
    if len(held) <= _FEW:
        codes: Codes = np.full(len(native), len(categories), dtype=smallest_type(null))
        for i in held:
            np.putmask(codes, (native == categories[i]).fill_null(False).to_numpy(), i)
    else:
        listed = native.cast(_polars().Enum([categories[i] for i in held]), strict=False)
        places = listed.to_physical().fill_null(len(held)).to_numpy()
        codes = relabelled(places, [*held, len(categories)], None, len(categories))
    if native.null_count():
        codes = np.array(codes)
        np.putmask(codes, native.is_null().to_numpy(), null)
    return codes


def _physical(native: Any, categories: Sequence[str]) -> Codes:
    table: list[str | None]
    if native.dtype == _polars().Enum:
        table = native.dtype.categories.to_list()
    else:
        distinct = native.unique().drop_nulls()
        numbers = distinct.to_physical().to_list()
        table = [None] * (max(numbers, default=-1) + 1)
        for number, text in zip(numbers, _polars_texts(distinct), strict=True):
            table[number] = text
    codes = listed_codes(native.to_physical().fill_null(0).to_numpy(), table, categories)
    if native.null_count():
        np.putmask(codes, native.is_null().to_numpy(), len(categories) + 1)
    return codes


def _polars_labels(native: Any) -> Labels:
    pl = _polars()
    if native.dtype != pl.String:
        return native.to_physical().fill_null(0).to_numpy(), native.is_not_null().to_numpy()
    present = native.is_not_null().to_numpy()
    numbers, counts = ranked(_digests(native))
    one = np.empty(len(counts), dtype=np.int64)
    one[numbers] = np.arange(len(numbers))
    # Two texts of one digest would be one unit: every text is compared with one of its digest.
    if native.eq_missing(native.gather(one[numbers])).all():
        return numbers, present
    return native.cast(pl.Categorical).to_physical().fill_null(0).to_numpy(), present


def _digests(native: Any) -> NDArray[np.uint64]:
    digests: NDArray[np.uint64] = native.hash().to_numpy()
    return digests


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
