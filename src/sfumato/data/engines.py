"""What each engine does in its own way: several group-bys in one scan, and small tables; nothing above knows.

Whatever narwhals wraps as a lazy frame works; an engine that is not named here takes one scan for each
group-by. Errors of engines quote data and plans, so none of them gets out of here.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.data.key_sets import ROWS, KeySet, Told, grouped
from sfumato.data.merging import merged, told_by
from sfumato.data.polars_batches import by_polars
from sfumato.data.rounds import Unanswered
from sfumato.data.stored_types import duckdb_value, holds_values
from sfumato.data.warning_filters import all_warnings
from sfumato.errors import EngineFault, NotSupported, SfumatoError

if TYPE_CHECKING:
    import narwhals as nw

T = TypeVar("T")

_SET = "sfumato_set"
_FRAME = "sfumato_frame"
# The number of a grouping set is a 64-bit integer.
_MOST_KEYS = 60


def engine_name(frame: "nw.LazyFrame[Any]") -> str:
    """What the engine of a frame is called."""
    name = str(frame.implementation.value).lower()
    return "spark" if name.startswith("pyspark") else name


def guarded(frame: "nw.LazyFrame[Any]", work: Callable[[], T]) -> T:
    """What some work of the engine gives; whatever it raises is told by its kind alone."""
    try:
        # Engines warn of versions and types; a warning may quote what it met. One thread at a time also suits
        # the relations of DuckDB, which share a connection that takes one statement at a time.
        with all_warnings("ignore"):
            return work()
    except (KeyboardInterrupt, SystemExit, GeneratorExit, SfumatoError, Unanswered):
        raise
    except BaseException as error:  # a panic of Polars is no Exception
        kind = type(error).__name__
    # Outside of the handler: an error that is chained shows the one before.
    raise EngineFault(f"{engine_name(frame)} could not answer: {kind}")


def aggregate(
    frame: "nw.LazyFrame[Any]", sets: Sequence[KeySet], told: Mapping[str, Told]
) -> "list[nw.DataFrame[Any]]":
    """Each group-by as a small table with the number of rows; `told` says what the keys hold.

    One scan for all of them, but that DuckDB takes one for counts and one for sums.
    """
    return guarded(frame, lambda: _aggregate(frame, sets, told))


def _aggregate(
    frame: "nw.LazyFrame[Any]", sets: Sequence[KeySet], told: Mapping[str, Told]
) -> "list[nw.DataFrame[Any]]":
    engine = engine_name(frame)
    if engine == "polars":
        return by_polars(frame, sets, told)
    if engine not in ("duckdb", "spark"):
        return [grouped(frame, each).collect() for each in sets]
    by_sets = _by_duckdb if engine == "duckdb" else _by_spark

    def run(batch: list[KeySet]) -> "list[nw.DataFrame[Any]]":
        return by_sets(frame, batch) if len(batch) > 1 else [grouped(frame, batch[0]).collect()]

    fewer, places = merged(sets, {name: key.size for name, key in told.items()})
    # DuckDB adds every sum for every set, which takes longer than to read the columns once more.
    tables = _in_order(fewer, lambda each: engine == "duckdb" and bool(each.sums), run)
    return [told_by(tables[place], fewer[place], each) for place, each in zip(places, sets, strict=True)]


def _in_order(
    sets: Sequence[KeySet],
    apart: Callable[[KeySet], bool],
    run: "Callable[[list[KeySet]], list[nw.DataFrame[Any]]]",
) -> "list[nw.DataFrame[Any]]":
    """The tables of all sets, in order, by as few statements as can be; some sets are kept apart."""
    batches: list[list[int]] = []
    for place in sorted(range(len(sets)), key=lambda place: apart(sets[place])):
        last = [sets[at] for at in batches[-1]] if batches else []
        keys = {key for each in (*last, sets[place]) for key in each.keys}
        # The number of a grouping set has a bit for each key.
        if not last or len(keys) > _MOST_KEYS or apart(last[-1]) != apart(sets[place]):
            batches.append([])
        batches[-1].append(place)
    found: dict[int, nw.DataFrame[Any]] = {}
    for batch in batches:
        found |= dict(zip(batch, run([sets[place] for place in batch]), strict=True))
    return [found[place] for place in range(len(sets))]


def _columns(sets: Sequence[KeySet]) -> tuple[list[str], list[str]]:
    keys = list(dict.fromkeys(key for each in sets for key in each.keys))
    return keys, list(dict.fromkeys(name for each in sets for name in each.sums))


def _by_duckdb(frame: "nw.LazyFrame[Any]", sets: Sequence[KeySet]) -> "list[nw.DataFrame[Any]]":
    keys, sums = _columns(sets)
    listed = ", ".join(map(_quoted, keys))
    asked = [f"grouping_id({listed}) as {_SET}", listed, f"count(*) as {ROWS}"]
    asked += [f"sum({_quoted(name)}) as {_quoted(name)}" for name in sums]
    groups = ", ".join(f"({', '.join(map(_quoted, each.keys))})" for each in sets)
    text = f"select {', '.join(asked)} from {_FRAME} group by grouping sets ({groups})"
    return _apart(frame.to_native().query(_FRAME, text).to_arrow_table(), keys, sets)


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _by_spark(frame: "nw.LazyFrame[Any]", sets: Sequence[KeySet]) -> "list[nw.DataFrame[Any]]":
    sql: Any
    if frame.implementation.is_pyspark_connect():
        from pyspark.sql.connect import functions as sql
    else:
        from pyspark.sql import functions as sql

    keys, sums = _columns(sets)
    native: Any = frame.to_native()
    groups = [[sql.col(key) for key in each.keys] for each in sets]
    wanted = [sql.grouping_id().alias(_SET), sql.count(sql.lit(1)).alias(ROWS)]
    wanted += [sql.sum(name).alias(name) for name in sums]
    table = native.groupingSets(groups, *(sql.col(key) for key in keys)).agg(*wanted)
    return _apart(table.toArrow(), keys, sets)


def _apart(table: Any, keys: Sequence[str], sets: Sequence[KeySet]) -> "list[nw.DataFrame[Any]]":
    """The rows of each set: its number has a one for every key that is not in it, the first key highest."""
    import narwhals as nw

    whole = nw.from_native(table, eager_only=True)
    found = []
    for each in sets:
        number = sum(1 << (len(keys) - 1 - i) for i, key in enumerate(keys) if key not in each.keys)
        found.append(whole.filter(nw.col(_SET) == number).select(*each.keys, ROWS, *each.sums))
    return found


def readable(frame: "nw.LazyFrame[Any]", given: Sequence[str] = ()) -> "nw.LazyFrame[Any]":
    """The columns that questions can be about, in types of which every value can be read and compared.

    All others are left out first: to read a value may fail, and so tell of it. Text is compared letter by
    letter, since a collation would take two people for one. `given` has the names that users know columns by.

    Raises:
        NotSupported: text of Spark has a collation.
    """
    import narwhals as nw

    engine, native, schema = engine_name(frame), frame.to_native(), frame.collect_schema()
    if engine == "spark":
        kinds = [getattr(each.dataType, "collation", "UTF8_BINARY") for each in native.schema]
        names = given or schema.names()
        if collated := sorted(n for n, kind in zip(names, kinds, strict=True) if kind != "UTF8_BINARY"):
            raise NotSupported(f"text must be without a collation, got columns {collated[:5]}: cast them")
    kept = [name for name, dtype in schema.items() if holds_values(dtype)]
    if not kept:
        # Its rows can still be counted.
        return frame
    if engine != "duckdb":
        return frame.select(*kept)
    declared = dict(zip(native.columns, map(str, native.types), strict=True))
    wanted = (
        f"{duckdb_value(_quoted(name), declared[name], schema[name])} as {_quoted(name)}" for name in kept
    )
    found: nw.LazyFrame[Any] = nw.from_native(native.project(", ".join(wanted)))
    return found


def null_columns(frame: "nw.LazyFrame[Any]") -> frozenset[str]:
    """The columns whose type holds nulls alone, which narwhals does not tell from types it does not know."""
    engine, native = engine_name(frame), frame.to_native()
    if engine == "polars":
        import polars as pl

        return frozenset(name for name, dtype in native.collect_schema().items() if dtype == pl.Null)
    if engine == "duckdb":
        named = zip(native.columns, native.types, strict=True)
        return frozenset(name for name, dtype in named if str(dtype).strip('"') == "NULL")
    if engine == "spark":
        return frozenset(each.name for each in native.schema if each.dataType.typeName() == "void")
    return frozenset()


def count_rows(frame: "nw.LazyFrame[Any]") -> int:
    """How many rows a frame has."""
    import narwhals as nw

    return guarded(frame, lambda: int(frame.select(nw.len().alias(ROWS)).collect().item()))


def small_table(frame: "nw.LazyFrame[Any]", columns: Mapping[str, Any]) -> "nw.LazyFrame[Any]":
    """A table of few rows in the engine of a frame, for a join."""
    import narwhals as nw

    engine, native = engine_name(frame), frame.to_native()
    if engine not in ("polars", "duckdb", "spark"):
        raise NotSupported(f"this question needs Polars, DuckDB or Spark, got {engine}")
    made = {"polars": _polars_table, "duckdb": _duckdb_table, "spark": _spark_table}[engine]
    return guarded(frame, lambda: nw.from_native(made(native, columns)))


def _polars_table(native: Any, columns: Mapping[str, Any]) -> Any:
    import polars as pl

    return pl.LazyFrame(columns)


def _spark_table(native: Any, columns: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    # Every executor gets a copy, and the rows of the frame stay where they are.
    return native.sparkSession.createDataFrame(pa.table(columns)).hint("broadcast")


def _duckdb_table(relation: Any, columns: Mapping[str, Any]) -> Any:
    import duckdb
    import pyarrow as pa

    sfumato_rows = pa.table(columns)
    try:
        # Found by the name of the variable, on the connection of the relation, and kept with the result.
        return relation.query(_FRAME, "select * from sfumato_rows")
    except duckdb.Error:
        # A connection without access to Python's variables reads the same from text, more slowly.
        lists = (
            f"unnest([{', '.join(map(_word, column.to_pylist()))}]) as {_quoted(name)}"
            for name, column in zip(sfumato_rows.column_names, sfumato_rows.columns, strict=True)
        )
        return relation.query(_FRAME, f"select {', '.join(lists)}")


def _word(value: Any) -> str:
    if isinstance(value, str):
        doubled = value.replace("'", "''")
        return f"'{doubled}'"
    if isinstance(value, float):
        return f"'{value!r}'::double"
    return f"{value}::bigint" if type(value) is int else str(value).lower()
