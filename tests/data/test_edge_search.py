"""Places among public edges: every engine against `np.searchsorted`, at the edges and next to them."""

import subprocess
import sys
import warnings
from dataclasses import replace
from fractions import Fraction

import duckdb
import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.data.edge_search import FEW_EDGES, EdgeSearch, Scale
from sfumato.data.engines import small_table
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.grid import Edges, Grid
from sfumato.quantile_methods.unbounded import _edges

INF, TINY, HUGE = np.inf, 5e-324, np.finfo(np.float64).max
SIDES = ("left", "right")


def floats(edges: Edges):
    return np.array([float(edge) for edge in edges.edges])


def unbounded(ratio, unit=1, largest=2**60, lower=None):
    """The points of the quantile method for data without bounds."""
    exact = None if lower is None else Fraction(lower)
    return floats(_edges(Fraction(ratio), Fraction(unit), Fraction(largest), exact))


def neighbours(count, start=1.0):
    """Floats next to each other."""
    return start + np.arange(count) * np.spacing(start)


def clusters(count):
    rng = np.random.default_rng(7)
    return np.sort((rng.normal(size=(count, 1)) + 1e-7 * rng.normal(size=(count, 100))).ravel())


EDGES = {
    "two": np.array([0.1, 0.3]),
    "few of all sizes": np.array([-HUGE, -1e-300, -TINY, 0.0, TINY, 0.1, 0.3, 1e15 + 0.3, 1e300]),
    "one more than few": np.linspace(-1, 1, FEW_EDGES + 1),
    "uniform": np.linspace(0, 1, 3001),
    "uniform, 10^5": np.linspace(-3, 7, 10**5),
    "unbounded, both signs": unbounded("1.01"),
    "unbounded, 2^200": unbounded("1.05", largest=2**200),
    "unbounded, tiny": unbounded("1.05", unit="1e-170", largest=Fraction("1e-170") * 2**200),
    "unbounded, from 5": unbounded("1.1", lower=5),
    "geometric": floats(Grid.geometric(Fraction(1, 2**300), 2**300, ratio=1.1)),
    "clustered": clusters(30),
    "normal": np.sort(np.random.default_rng(3).normal(size=2000)),
    "neighbours": neighbours(200),
    "neighbours, far from others": np.array([-1e300, *neighbours(300), 1e300]),
    "subnormal": np.arange(-40, 60) * TINY,
    "all of float64": np.linspace(-1, 1, 101) * HUGE,
    "equal": np.repeat([1.0, 2.0, 3.0], 20),
}
# Spark runs a job for every table: the hardest of each kind.
ON_SPARK = ("few of all sizes", "unbounded, 2^200", "neighbours, far from others", "subnormal", "normal")


def probes(edges):
    """Every edge, both its neighbours, what lies between, and all that is special."""
    points = edges if len(edges) <= 12_000 else np.concatenate([edges[:50], edges[::97], edges[-50:]])
    between = points[:-1] / 2 + points[1:] / 2
    special = [INF, -INF, 0.0, -0.0, TINY, -TINY, 2.2e-308, HUGE, -HUGE, 1.0, -1e-200, 1e200]
    with np.errstate(over="ignore"):
        return np.concatenate(
            [points, np.nextafter(points, INF), np.nextafter(points, -INF), between, special]
        )


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


def rows_of(values):
    """Values with the numbers of their rows, and two rows without a value at the end."""
    return pa.table({"row": np.arange(len(values) + 2), "x": pa.array([*values.tolist(), None, None])})


def on_polars(rows):
    return pl.from_arrow(rows).lazy()


def on_duckdb(rows, setting=None):
    connection = duckdb.connect()
    connection.register("given", rows)
    connection.execute("create table kept as select * from given")
    connection.unregister("given")
    if setting:
        connection.execute(setting)
    return connection.table("kept")


def on_locked_duckdb(rows):
    return on_duckdb(rows, "set enable_external_access = false")


def places(search, native, number=None):
    """The places of the rows in order, None for nulls; the caller's columns must be there and no other."""
    frame = nw.from_native(native)
    number = nw.col("x") if number is None else number
    found = search.apply(frame, number, "place", lambda columns: small_table(frame, columns))
    assert isinstance(found, nw.LazyFrame)
    schema = found.collect_schema()
    assert set(schema.names()) == {*frame.collect_schema().names(), "place"}
    assert schema["place"] == nw.Int64
    counted = found.select("row", "place").collect(backend="pyarrow")
    table = dict(zip(counted["row"].to_list(), counted["place"].to_list(), strict=True))
    assert len(table) == len(counted)
    return [table[row] for row in range(len(table))]


def expected(edges, values, side):
    return [*np.searchsorted(edges, values, side=side).tolist(), None, None]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", EDGES)
@pytest.mark.parametrize("engine", [on_polars, on_duckdb])
def test_engines_find_the_places_of_searchsorted(engine, kind, side):
    edges = EDGES[kind]
    values = probes(edges)
    assert places(EdgeSearch.of(edges, side), engine(rows_of(values))) == expected(edges, values, side)


@pytest.mark.filterwarnings("ignore::FutureWarning:pyspark")
@pytest.mark.parametrize("kind", ON_SPARK)
def test_spark_finds_the_places_of_searchsorted(spark, kind):
    edges = EDGES[kind]
    values = probes(edges)
    first = nw.from_native(spark.createDataFrame(rows_of(values)))
    left, right = (EdgeSearch.of(edges, side) for side in SIDES)
    frame = left.apply(first, nw.col("x"), "left", lambda columns: small_table(first, columns))
    frame = right.apply(frame, nw.col("x"), "right", lambda columns: small_table(first, columns))
    assert frame.collect_schema() == {"row": nw.Int64, "x": nw.Float64, "left": nw.Int64, "right": nw.Int64}
    found = frame.collect(backend="pyarrow").sort("row")
    for side in SIDES:
        assert found[side].to_list() == expected(edges, values, side)


@pytest.mark.parametrize("kind", ["uniform", "neighbours, far from others"])
def test_a_locked_connection_reads_the_tables_from_text(kind):
    edges = EDGES[kind]
    values = probes(edges)
    found = places(EdgeSearch.of(edges, "right"), on_locked_duckdb(rows_of(values)))
    assert found == expected(edges, values, "right")


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", EDGES)
def test_the_reference_in_numpy_finds_them_too(kind, side):
    edges = EDGES[kind]
    values = probes(edges)
    assert EdgeSearch.of(edges, side).np_places(values).tolist() == expected(edges, values, side)[:-2]


real = st.floats(allow_nan=False)


@given(
    edges=st.lists(real.filter(np.isfinite), min_size=FEW_EDGES + 1, max_size=120).map(sorted),
    others=st.lists(real, max_size=20),
    side=st.sampled_from(SIDES),
)
@settings(max_examples=60, deadline=None)
def test_any_edges_and_any_values_give_the_places_of_searchsorted(edges, others, side):
    edges = np.array(edges)
    values = np.array([*probes(edges), *others])
    assert EdgeSearch.of(edges, side).np_places(values).tolist() == expected(edges, values, side)[:-2]


@pytest.mark.parametrize("kind", EDGES)
def test_buckets_never_go_down(kind):
    # The hypothesis of the proof, at the edges and at all their neighbours.
    scale = EdgeSearch.of(EDGES[kind], "right").scale
    if scale is not None:
        assert (np.diff(scale.of(np.sort(probes(EDGES[kind])))) >= 0).all()


@pytest.mark.parametrize("engine", [on_polars, on_duckdb])
def test_engines_compute_the_same_buckets_bit_for_bit(engine):
    edges = EDGES["unbounded, both signs"]
    values = np.concatenate([probes(edges), np.random.default_rng(5).standard_cauchy(20_000) * 1e3])
    for roots, per_unit in [(0, 1.0), (2, 4.0), (6, 1.0), (10, 0.3)]:
        # As many buckets as integers of float64 allow show the last bits of what is computed.
        scale = Scale.over(edges, center=0.7, per_unit=per_unit, roots=roots, buckets=2**52)
        frame = scale.place(nw.from_native(engine(rows_of(values))), "x", "bucket")
        found = frame.sort("row").select("bucket").collect(backend="pyarrow")["bucket"].to_list()
        assert found == [*scale.of(values).tolist(), None, None]


@pytest.mark.filterwarnings("ignore::FutureWarning:pyspark")
def test_spark_computes_the_same_buckets_bit_for_bit(spark):
    edges = EDGES["unbounded, both signs"]
    values = np.concatenate([probes(edges), np.random.default_rng(5).standard_cauchy(20_000) * 1e3])
    scale = Scale.over(edges, center=0.7, per_unit=0.3, roots=10, buckets=2**52)
    frame = scale.place(nw.from_native(spark.createDataFrame(rows_of(values))), "x", "bucket")
    found = frame.sort("row").select("bucket").collect(backend="pyarrow")["bucket"].to_list()
    assert found == [*scale.of(values).tolist(), None, None]


@pytest.mark.parametrize("engine", [on_polars, on_duckdb])
@pytest.mark.parametrize("edges", [np.array([0.0, 2.0]), np.arange(100.0)])
def test_nan_is_null_and_integers_are_numbers(engine, edges):
    rows = pa.table({"row": [0, 1, 2, 3], "x": [np.nan, 2.0, INF, None], "n": [2, 0, -5, None]})
    search = EdgeSearch.of(edges, "right")
    assert places(search, engine(rows)) == [None, int(search.np_places([2.0])[0]), len(edges), None]
    assert places(search, engine(rows), nw.col("n")) == [int(search.np_places([2.0])[0]), 1, 0, None]


@pytest.mark.parametrize("engine", [on_polars, on_duckdb])
@pytest.mark.parametrize("kind", ["two", "uniform", "neighbours, far from others"])
def test_columns_with_any_names_survive(engine, kind):
    values = np.array([0.2, 5.0, 0.3])
    rows = rows_of(values)
    names = ("place_0", "PLACE_1", "place__2", "base", "edge0", "sfumato_rows")
    for name in names:
        rows = rows.append_column(name, rows["x"])
    frame = nw.from_native(engine(rows))
    search = EdgeSearch.of(EDGES[kind], "right")
    found = search.apply(frame, nw.col("x"), "cell", lambda columns: small_table(frame, columns))
    again = search.apply(found, nw.col("base"), "cell again", lambda columns: small_table(frame, columns))
    table = again.sort("row").collect(backend="pyarrow").to_native()
    assert set(table.column_names) == {"row", "x", *names, "cell", "cell again"}
    assert all(table[name].to_pylist() == [0.2, 5.0, 0.3, None, None] for name in names)
    assert table["cell"].to_pylist() == table["cell again"].to_pylist()
    assert table["cell"].to_pylist() == expected(EDGES[kind], values, "right")
    with pytest.raises(InvalidParameter, match="new column"):
        search.apply(frame, nw.col("x"), "BASE", lambda columns: small_table(frame, columns))


def test_one_table_serves_edges_that_follow_a_rule():
    rule = (
        "uniform",
        "uniform, 10^5",
        "unbounded, both signs",
        "unbounded, 2^200",
        "geometric",
        "neighbours",
    )
    for kind in rule:
        search = EdgeSearch.of(EDGES[kind], "right")
        assert len(search.levels) == 1
        assert len(search.levels[0].edges) <= 2
        assert len(search.levels[0].base) <= 8 * len(EDGES[kind]) + 1


def test_tables_of_the_finest_grids_stay_small():
    finest = (unbounded("1.001", largest=2**200), np.linspace(0, 1, 2**20 + 1))
    for edges in finest:
        search = EdgeSearch.of(edges, "left")
        assert sum(len(level.base) for level in search.levels) <= 2**21
        values = probes(edges)
        assert np.array_equal(search.np_places(values), np.searchsorted(edges, values, side="left"))


def test_edges_that_are_no_edges_are_refused():
    with pytest.raises(InvalidParameter, match="increasing"):
        EdgeSearch.of([1.0, 0.0], "right")
    with pytest.raises(InvalidParameter, match="finite"):
        EdgeSearch.of([1.0, INF], "right")
    with pytest.raises(InvalidParameter, match="finite"):
        EdgeSearch.of([np.nan, 1.0], "right")
    with pytest.raises(InvalidParameter, match="side"):
        EdgeSearch.of([1.0], "middle")
    with pytest.raises(NotSupported, match="1048577"):
        EdgeSearch.of(np.arange(2**20 + 2), "right")
    with pytest.raises(NotSupported, match="got 0"):
        EdgeSearch.of([], "right")


class OneBucketFurther(Scale):
    def of(self, values):
        return np.minimum(super().of(values) + 1, self.buckets - 1)


def swapped(search):
    return replace(search, side="left" if search.side == "right" else "right")


def one_bucket_further(search):
    return replace(search, scale=OneBucketFurther(**vars(search.scale)))


def one_more_at_the_base(search):
    *first, last = search.levels
    return replace(search, levels=(*first, replace(last, base=last.base + 1)))


def without_an_edge(search):
    *first, last = search.levels
    edges = last.edges.copy()
    edges[0, np.flatnonzero(np.isfinite(edges[0]))[0]] = INF
    return replace(search, levels=(*first, replace(last, edges=edges)))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("mutant", [swapped, one_bucket_further, one_more_at_the_base, without_an_edge])
@pytest.mark.parametrize("kind", ["uniform", "unbounded, both signs", "neighbours, far from others"])
def test_mistakes_in_a_plan_are_noticed(kind, mutant, side):
    edges = EDGES[kind]
    values = probes(edges)
    broken = mutant(EdgeSearch.of(edges, side)).np_places(values)
    assert not np.array_equal(broken, np.searchsorted(edges, values, side=side))


@pytest.mark.parametrize("engine", [on_polars, on_duckdb])
def test_a_swapped_side_is_noticed_in_engines(engine):
    for kind in ("two", "uniform"):
        values = probes(EDGES[kind])
        broken = swapped(EdgeSearch.of(EDGES[kind], "right"))
        assert places(broken, engine(rows_of(values))) != expected(EDGES[kind], values, "right")


def test_an_infinite_number_would_reach_absent_edges(monkeypatch):
    monkeypatch.setattr(EdgeSearch, "_seen", lambda self, numbers: numbers)
    edges = EDGES["normal"]
    assert EdgeSearch.of(edges, "right").np_places(np.array([INF]))[0] > len(edges)


def test_the_search_loads_no_engine():
    code = "import sys, sfumato.data.edge_search; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "sfumato.data.edge_search" in loaded.stdout.split()
    assert not {"duckdb", "pyspark", "polars", "pyarrow", "narwhals"} & set(loaded.stdout.split())
