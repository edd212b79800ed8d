"""Every type of column has one rule, the same in every engine, to the last bit."""

import datetime as dt
import random
import warnings
from decimal import Decimal
from zoneinfo import ZoneInfo

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato.data import stored_types
from sfumato.data.admission import admit
from sfumato.data.column import Column
from sfumato.data.lazy_table import LazyTable
from sfumato.data.moments import moment_number
from sfumato.errors import SchemaMismatch

UTC = dt.UTC
PARIS, LORD_HOWE = ZoneInfo("Europe/Paris"), ZoneInfo("Australia/Lord_Howe")
INF, NAN = float("inf"), float("nan")
WHOLE = [0, 1, -1, 2**53 + 1, -(2**53) - 1, 2**53 + 3, 2**63 - 1, -(2**63), None]
FLOATS = [0.0, -0.0, 0.1, 5e-324, 2.0**-1040, 1.7976931348623157e308, INF, -INF, NAN, None]
DATES = [
    dt.date(1970, 1, 1),
    dt.date(1969, 12, 31),
    dt.date(1, 1, 1),
    dt.date(9999, 12, 31),
    dt.date(1582, 10, 10),
    dt.date(2000, 2, 29),
    dt.date(1900, 3, 1),
    None,
]
NAIVE = [
    dt.datetime(1970, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(1, 1, 1, 0, 0, 0, 1),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
    # What clocks skip in Paris and on Lord Howe Island, and what they show twice.
    dt.datetime(2020, 3, 29, 2, 30, 0, 123_456),
    dt.datetime(2020, 10, 25, 2, 30),
    dt.datetime(2020, 10, 4, 2, 15, 0, 123_456),
    None,
]
AWARE = [
    dt.datetime(2020, 3, 29, 1, 59, 59, 999_999, tzinfo=PARIS),
    dt.datetime(2020, 3, 29, 3, 0, tzinfo=PARIS),
    dt.datetime(2020, 10, 25, 2, 30, tzinfo=PARIS),
    dt.datetime(2020, 10, 25, 2, 30, fold=1, tzinfo=PARIS),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    dt.datetime(1900, 1, 1, 0, 0, 0, 5, tzinfo=UTC),
    None,
]


def _random_decimals(precision: int, scale: int, seed: int) -> list[Decimal | None]:
    chosen = random.Random(seed)
    sizes = [chosen.randrange(1, precision + 1) for _ in range(200)]
    digits = [chosen.randrange(-(10**size) + 1, 10**size) for size in sizes]
    return [*(Decimal((0 if d >= 0 else 1, tuple(map(int, str(abs(d)))), -scale)) for d in digits), None]


DECIMALS = {
    f"decimal {p},{s}": (p, s, _random_decimals(p, s, 7 * p + s))
    for p, s in ((15, 6), (18, 6), (38, 0), (38, 10), (38, 38))
}


def _wide(seed: int) -> int:
    chosen = random.Random(seed)
    return chosen.choice((-1, 1)) * chosen.randrange(2 ** chosen.randrange(66, 127))


HUGE = [
    *(2**k + d for k in (53, 63, 64, 100, 126) for d in (-1, 0, 1, 2**11 + 1)),
    *(_wide(seed) for seed in range(300)),
    -(2**127),
    None,
]

# By name: the kind, what it reads as, the type of Arrow, and the values.
ARROW = {
    **{
        f"int{w}": (
            "integer",
            "number",
            getattr(pa, f"int{w}")(),
            [2 ** (w - 1) - 1, -(2 ** (w - 1)), 0, None],
        )
        for w in (8, 16, 32)
    },
    "int64": ("integer", "number", pa.int64(), WHOLE),
    "uint64": ("integer", "number", pa.uint64(), [0, 2**64 - 1, 2**63 + 1025, 2**53 + 1, None]),
    "float64": ("real", "number", pa.float64(), FLOATS),
    "float32": (
        "real",
        "number",
        pa.float32(),
        [0.0, -0.0, np.float32(0.1), np.float32(1e-40), INF, -INF, NAN, None],
    ),
    "boolean": ("boolean", "number", pa.bool_(), [True, False, None]),
    "date": ("integer", "date", pa.date32(), DATES),
    "datetime us": ("real", "datetime", pa.timestamp("us"), NAIVE),
    "datetime ms": ("real", "datetime", pa.timestamp("ms"), [v and v.replace(microsecond=0) for v in NAIVE]),
    "datetime ns": (
        "real",
        "datetime",
        pa.timestamp("ns"),
        [-1, -1000, -1001, 999, 1_500, -500, 500, 1_601_000_000_123_456_789, None],
    ),
    "datetime Paris": ("real", "datetime", pa.timestamp("us", "Europe/Paris"), AWARE),
    **{name: ("real", "number", pa.decimal128(p, s), values) for name, (p, s, values) in DECIMALS.items()},
}
# Spark has no unsigned integers and no nanoseconds.
NOT_IN_SPARK = ("uint64", "datetime ns")


def expected(name: str) -> list[float]:
    """The float64 that the rule asks for, by Python's exact arithmetic; NaN for null."""
    return [NAN if value is None else _number(name, value) for value in ARROW[name][3]]


def _number(name: str, value: object) -> float:
    if name == "datetime ns":
        return float(value // 1000) / 1e6
    if isinstance(value, dt.datetime):
        return float(int(moment_number(value) * 10**6)) / 1e6
    if isinstance(value, dt.date):
        return float(value.toordinal() - dt.date(1970, 1, 1).toordinal())
    return float(value)


def bits_of(values: object) -> list[str]:
    """Floats to the last bit; every NaN is one thing."""
    return ["null" if value is None or np.isnan(value) else float(value).hex() for value in values]


def read(column: Column) -> list[str]:
    return bits_of(np.concatenate([np.empty(0), *column.chunks()]))


@pytest.fixture(scope="module")
def spark():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sql = pytest.importorskip("pyspark.sql")
        session = (
            sql.SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "Australia/Lord_Howe")
            .config("spark.sql.ansi.enabled", "true")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


def lazily(native: object, name: str = "x") -> list[str]:
    """The numbers of a column of a lazy table, by the expression for its engine, in the order of `i`."""
    table = LazyTable(nw.from_native(native))
    asked = table.number("i").alias("i"), table.number(name).alias("number")
    found = table.frame.select(*asked).collect("pyarrow").sort("i")
    return bits_of(found["number"].to_list())


def arrow_table(name: str) -> pa.Table:
    _, _, stored, values = ARROW[name]
    return pa.table({"i": list(range(len(values))), "x": pa.array(values, stored)})


@pytest.mark.parametrize("name", ARROW)
def test_a_column_in_memory_is_read_by_the_rule_whatever_library_holds_it(name):
    kind, reads, _, _ = ARROW[name]
    arrow, wanted = arrow_table(name)["x"], bits_of(expected(name))
    held = {
        "arrow": arrow,
        "polars": pl.from_arrow(arrow),
        "pandas with arrow": arrow.to_pandas(types_mapper=pd.ArrowDtype),
    }
    for library, series in held.items():
        column = admit(series, "x")
        assert (column.kind, column.reads, column.nullable) == (kind, reads, True), library
        assert read(column) == wanted, library
        last = np.array([len(wanted) - 2, 0])
        assert read(column.take(last)) == [wanted[-2], wanted[0]], library
        assert column.take(last).reads == reads, library


@pytest.mark.parametrize("name", ARROW)
def test_polars_lazy_tables_give_the_same_numbers_to_the_last_bit(name):
    assert lazily(pl.from_arrow(arrow_table(name)).lazy()) == bits_of(expected(name))


@pytest.mark.parametrize("name", ARROW)
def test_duckdb_gives_the_same_numbers_to_the_last_bit(name):
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'Asia/Kolkata'")
        connection.register("held", arrow_table(name))
        assert lazily(connection.table("held")) == bits_of(expected(name))


@pytest.mark.parametrize("name", [name for name in ARROW if name not in NOT_IN_SPARK])
def test_spark_gives_the_same_numbers_to_the_last_bit_whatever_its_time_zone(name, spark):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, _, stored, values = ARROW[name]
        native = {"boolean": "boolean", "float32": "float", "float64": "double", "date": "date"}.get(name)
        native = native or {"int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint"}.get(
            name
        )
        if native is None and "decimal" in name:
            native = f"decimal({stored.precision},{stored.scale})"
        native = native or ("timestamp" if "Paris" in name else "timestamp_ntz")
        rows = [(i, _plain(value)) for i, value in enumerate(values)]
        frame = spark.createDataFrame(rows, f"i int, x {native}")
        assert lazily(frame) == bits_of(expected(name))


def _plain(value: object) -> object:
    return float(value) if isinstance(value, np.floating) else value


@pytest.mark.parametrize("stored", ["HUGEINT", "Int128"])
def test_integers_of_128_bits_are_rounded_once_to_the_nearest(stored):
    wanted = bits_of([None if value is None else float(value) for value in HUGE])
    if stored == "Int128":
        table = pl.DataFrame({"i": range(len(HUGE)), "x": pl.Series(HUGE, dtype=pl.Int128)})
        assert read(admit(table["x"])) == wanted
        assert lazily(table.lazy()) == wanted
        return
    with duckdb.connect() as connection:
        listed = ", ".join(
            f"({i}, {'NULL' if v is None else repr(str(v))}::HUGEINT)" for i, v in enumerate(HUGE)
        )
        relation = connection.sql(f"SELECT * FROM (VALUES {listed}) v(i, x)")
        assert lazily(relation) == wanted
        # The engine's own cast rounds two halves: what is tested can fail.
        own = connection.sql("SELECT x::DOUBLE AS x FROM relation ORDER BY i").fetchall()
        assert bits_of([row[0] for row in own]) != wanted


def test_arrow_and_duckdb_would_miss_the_nearest_number_of_a_decimal_by_themselves():
    _, _, stored, values = ARROW["decimal 38,0"]
    wanted = bits_of([NAN if value is None else float(value) for value in values])
    array = pa.array(values, stored)
    assert bits_of(array.cast("float64").to_pylist()) != wanted
    assert read(admit(array)) == wanted


def test_infinite_datetimes_of_duckdb_are_farther_than_any_other():
    with duckdb.connect() as connection:
        for stored in ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"):
            held = "(0, '-infinity'), (1, '2020-01-01'), (2, 'infinity'), (3, NULL)"
            text = f"SELECT i, x::{stored} AS x FROM (VALUES {held}) v(i, x)"
            low, middle, high, null = lazily(connection.sql(text))
            assert null == "null"
            assert (
                float.fromhex(low) <= -(2**31) + 1 < float.fromhex(middle) < 2**31 - 1 <= float.fromhex(high)
            )


def test_dates_far_outside_the_calendar_raise_nothing_on_spark(spark):
    frame = spark.sql("SELECT * FROM (VALUES (0, 2147483647), (1, -2147483648), (2, 0)) v(i, d)")
    assert lazily(frame.selectExpr("i", "date_from_unix_date(d) AS x")) == bits_of(
        [2.0**31 - 1, -(2.0**31), 0.0]
    )


@pytest.mark.parametrize("engine", ["polars", "duckdb", "spark"])
def test_categories_are_text_and_flags_are_booleans_in_every_engine(engine, spark):
    rows = [(0, "a", True), (1, "b", False), (2, None, None)]
    if engine == "spark":
        frame = nw.from_native(spark.createDataFrame(rows, "i int, t string, f boolean"))
    elif engine == "duckdb":
        connection = duckdb.connect()
        values = "(0, 'a', true), (1, 'b', false), (2, NULL, NULL)"
        frame = nw.from_native(
            connection.sql(f"SELECT i, t::ENUM('a', 'b') t, f::BOOLEAN f FROM (VALUES {values}) v(i, t, f)")
        )
    else:
        table = pl.DataFrame(rows, schema=["i", "t", "f"], orient="row")
        frame = nw.from_native(table.with_columns(pl.col("t").cast(pl.Categorical)).lazy())
    schema = frame.collect_schema()
    asked = frame.select(
        nw.col("i"), stored_types.text("t", schema["t"]), stored_types.flag("f", schema["f"])
    )
    found = asked.collect("pyarrow").sort("i")
    assert (found["t"].to_list(), found["f"].to_list()) == (["a", "b", None], [True, False, None])
    assert stored_types.stored("t", schema["t"]).kind == "text"
    assert stored_types.stored("f", schema["f"]).kind == "boolean"
    with pytest.raises(SchemaMismatch, match="'t' must be boolean"):
        stored_types.flag("t", schema["t"])
    with pytest.raises(SchemaMismatch, match="'f' must be text"):
        stored_types.text("f", schema["f"])


@pytest.mark.parametrize(
    "dtype",
    [
        nw.Time(),
        nw.Duration(),
        nw.Binary(),
        nw.List(nw.Int64),
        nw.Struct({"a": nw.Int64}),
        nw.Unknown(),
        nw.Object(),
    ],
    ids=str,
)
def test_types_without_numbers_text_or_dates_are_refused_in_words(dtype):
    for asked in (stored_types.stored, stored_types.number):
        with pytest.raises(
            SchemaMismatch, match=r"column 'x' stores .*, which is not a number, boolean, text or date"
        ):
            asked("x", dtype)


def test_a_column_of_nothing_but_nulls_is_of_no_known_kind():
    assert stored_types.stored("x", nw.Unknown(), empty=True).kind == "unknown"
    for series in (pl.Series([None, None]), pa.array([None, None])):
        column = admit(series)
        assert (column.kind, column.rows, column.nulls()) == ("unknown", 2, 2)


@pytest.mark.parametrize(
    ("array", "kind", "wanted"),
    [
        (np.array(["1969-12", "1970-02", "NaT"], "M8[M]"), "date", [-31.0, 31.0, NAN]),
        (np.array(["1969", "1972"], "M8[Y]"), "date", [-365.0, 730.0]),
        (np.array([2**62, -(2**62)], "M8[Y]"), "date", [365242500000.0, -365242500000.0]),
        (np.array([1, "NaT"], "M8[h]"), "datetime", [3600.0, NAN]),
        (np.array([2**62, -(2**62)], "M8[s]"), "datetime", [9223372036854.0, -9223372036854.0]),
        (np.array([-1, 10**15], "M8[fs]"), "datetime", [-1e-6, 1.0]),
        (np.ma.MaskedArray(np.array([5, 7], "M8[D]"), mask=[True, False]), "date", [NAN, 7.0]),
    ],
    ids=["months", "years", "far years", "hours", "far seconds", "femtoseconds", "masked"],
)
def test_numpy_dates_of_any_unit_are_days_and_datetimes_are_seconds(array, kind, wanted):
    column = admit(array)
    assert column.reads == kind
    assert read(column) == bits_of(wanted)


def test_lists_of_dates_and_of_datetimes_are_columns_of_them():
    assert read(admit(DATES)) == bits_of(expected("date"))
    assert read(admit(NAIVE)) == bits_of(expected("datetime us"))
    assert read(admit(AWARE)) == bits_of(expected("datetime Paris"))
    assert read(admit(pd.Series(AWARE[:4]).dt.tz_convert("Asia/Kolkata"))) == read(admit(AWARE[:4]))
    assert read(admit([pd.NaT, pd.Timestamp(1_999, unit="ns")])) == bits_of([NAN, 1e-6])
    assert (admit(DATES).kind, admit(DATES).reads, admit(NAIVE).kind) == ("integer", "date", "real")


@pytest.mark.parametrize(
    "mixed", [[DATES[0], NAIVE[0]], [NAIVE[0], AWARE[0]], [DATES[0], 1.0], [DATES[0], "2020-01-01"]]
)
def test_a_list_of_two_kinds_of_dates_is_refused_without_a_value(mixed):
    with pytest.raises(SchemaMismatch, match="column 'x' must be") as caught:
        admit(mixed, "x")
    assert "1970" not in str(caught.value)


class Hostile(dt.tzinfo):
    """A time zone that raises whatever is asked."""

    def utcoffset(self, when):
        raise RuntimeError("CANARY")

    dst = tzname = utcoffset


def test_a_time_zone_that_raises_makes_a_value_missing_and_nothing_else():
    assert read(admit([dt.datetime(2020, 1, 1, tzinfo=Hostile()), AWARE[1]]))[0] == "null"


def test_decimals_of_any_width_are_reals_and_objects_stay_text():
    for stored in (pa.decimal32(5, 2), pa.decimal64(10, 2), pa.decimal128(20, 2), pa.decimal256(60, 2)):
        column = admit(pa.array([Decimal("1.25"), None], stored))
        assert (column.kind, read(column)) == ("real", bits_of([1.25, NAN]))
    assert read(admit([Decimal("0.1"), Decimal("sNaN"), None])) == bits_of([0.1, NAN, NAN])
    assert admit(pd.Series([Decimal("0.1")], dtype=object)).kind == "text"
    assert admit(pd.Series([dt.date(2020, 1, 1)], dtype=object)).kind == "text"


def test_microseconds_are_divided_and_never_multiplied_by_a_reciprocal():
    micros = np.random.default_rng(5).integers(-(2**57), 2**57, 20_000)
    table = pl.DataFrame({"i": np.arange(20_000), "x": pl.Series(micros).cast(pl.Datetime("us"))})
    wanted = bits_of(micros.astype(np.float64) / 1e6)
    assert lazily(table.lazy()) == wanted
    assert read(admit(table["x"])) == read(admit(micros.astype("M8[us]"))) == wanted
    # What Polars makes of a constant: what is tested can fail.
    assert (
        bits_of(table.lazy().select(pl.col("x").cast(pl.Int64).cast(pl.Float64) / 1e6).collect()["x"])
        != wanted
    )
