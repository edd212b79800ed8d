"""How declared kinds become Polars types, and how a scan is collected without telling what it met."""

from typing import TYPE_CHECKING, Any, Literal

from sfumato.data.column import Category
from sfumato.data.field import Field

if TYPE_CHECKING:
    import polars as pl

FileKind = Literal["integer", "real", "boolean", "text", "date", "datetime"]
# All text that is none of the declared categories is read as one word that is none of them either.
OTHER = "another value"
# So many decimal digits always fit 64 bits.
EXACT_DIGITS = 18


def declared_kind(field: Field) -> FileKind | None:
    """The kind that a field declares, by itself, by its categories or by its bounds."""
    if field.kind is not None:
        return field.kind
    if field.categories:
        return _kind_of(field.categories[0])
    return "real" if field.bounds is not None else None


def _kind_of(category: Category) -> Literal["text", "boolean", "integer"]:
    if isinstance(category, str):
        return "text"
    return "boolean" if isinstance(category, bool) else "integer"


def enumerated(field: Field) -> "tuple[str, pl.Enum]":
    """The type of a column of these text categories, and its word for any other text."""
    import polars as pl

    words = [word for word in field.categories or () if isinstance(word, str)]
    other = OTHER
    while other in words:
        other += "*"
    return other, pl.Enum([*words, other])


def is_sorted_out(dtype: Any) -> bool:
    """Whether a type, of Polars or of narwhals, is that of declared categories with a word for all others."""
    words = [*dtype.categories] if type(dtype).__name__ == "Enum" else []
    return bool(words) and words[-1].rstrip("*") == OTHER


def sorted_out(column: "pl.Expr", field: Field) -> "pl.Expr":
    """Text as declared categories, one byte a row where they are few; other text is one more."""
    import polars as pl

    other, dtype = enumerated(field)
    known = column.cast(dtype, strict=False).fill_null(pl.lit(other, dtype=dtype))
    return pl.when(column.is_not_null()).then(known)


def final_type(kind: FileKind, field: Field) -> Any:
    """The Polars type in which a column of a kind arrives."""
    import polars as pl

    if kind == "text" and field.categories:
        return enumerated(field)[1]
    return polars_types().get(kind, pl.String)


def polars_types() -> dict[str, Any]:
    """The Polars types of all kinds but text."""
    import polars as pl

    numbers = {"integer": pl.Int64, "real": pl.Float64, "boolean": pl.Boolean}
    return {**numbers, "date": pl.Date, "datetime": pl.Datetime("us")}


def stored_kind(dtype: "pl.DataType") -> FileKind | None:
    """The kind of a stored type, or None if it is no number, boolean, text or date."""
    import polars as pl

    if dtype.is_integer() or _is_whole(dtype):
        return "integer"
    if dtype.is_numeric():
        return "real"
    if dtype == pl.Boolean:
        return "boolean"
    if dtype in (pl.Date, pl.Datetime):
        return "date" if dtype == pl.Date else "datetime"
    return "text" if dtype in (pl.String, pl.Categorical, pl.Enum) else None


def _is_whole(dtype: "pl.DataType") -> bool:
    import polars as pl

    return isinstance(dtype, pl.Decimal) and dtype.scale == 0 and (dtype.precision or 99) <= EXACT_DIGITS


def collected(scan: "pl.LazyFrame") -> "pl.DataFrame | None":
    """What a scan gives, or None: the errors of Polars quote the data, so none of them gets out of here."""
    import polars as pl

    try:
        return scan.collect(engine="streaming")
    except MemoryError:
        raise
    except (Exception, pl.exceptions.PanicException):  # PyArrow has errors of its own
        return None
