"""Names of columns inside engines: places, and never the names that a table was given.

Engines do not always take a name literally. Polars reads `^x$` and `*` as patterns, DuckDB and Spark read `x`
and `X` as one column, Spark reads `a.b` as a field of `a`. Columns that are computed on the way have names,
too. A table is therefore renamed by place before anything else is done with it: no name of a user can select
another column, hide one, or be taken for one that is computed.
"""

import hashlib
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from sfumato.data.conditions import Filter
from sfumato.data.engines import engine_name

if TYPE_CHECKING:
    import narwhals as nw


def stored_name(place: int) -> str:
    """The name of the column that a table has at a place."""
    return f"sfumato_column_{place}"


def derived_name(place: int) -> str:
    """The name of the column that a data set derives at a place."""
    return f"sfumato_derived_{place}"


def filter_name(made: Filter) -> str:
    """The name of a column of flags: the same for filters of the same meaning, and for no others."""
    return f"sfumato_filter_{hashlib.sha256(made.key.encode()).hexdigest()}"


def by_place(
    frame: "nw.LazyFrame[Any]", needed: Collection[str] | None = None
) -> "tuple[nw.LazyFrame[Any], tuple[str, ...]]":
    """The frame with columns that are named by their places, and the names that they had.

    DuckDB reads statistics of every column that a query names, and fails for values out of range in them: of
    a relation there only the columns `needed` are left, by their new names; None means all.
    """
    import narwhals as nw

    engine, native = engine_name(frame), frame.to_native()
    given: tuple[str, ...]
    if engine in ("duckdb", "spark"):
        given = tuple(native.columns)
        places = [stored_name(place) for place in range(len(given))]
        if engine == "spark":
            return nw.from_native(native.toDF(*places)), given
        # `#1` is the first column, whatever its name.
        wanted = [
            f"#{place} as {name}" for place, name in enumerate(places, 1) if needed is None or name in needed
        ]
        return nw.from_native(native.project(", ".join(wanted))), given
    given = tuple(frame.collect_schema().names())
    return frame.rename({name: stored_name(place) for place, name in enumerate(given)}), given
