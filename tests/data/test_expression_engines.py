"""Expressions mean the same in every engine, bit for bit: the oracle's values, on hostile columns."""

import datetime as dt
import math
import warnings

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.data import expression_trees
from tests.data.expression_trees import KINDS, arrow_table, bits_of, expected, hostile_rows, trees
from tests.engines import SPARK

from sfumato.data import stored_types
from sfumato.data.admission import admit
from sfumato.data.engines import engine_name, readable
from sfumato.data.expression_frames import as_frame_expr, with_expressions
from sfumato.data.expression_values import derived, rows_where
from sfumato.data.expressions import col, when

ROWS = hostile_rows()
SPARK_TYPES = {
    "real": "double",
    "integer": "bigint",
    "text": "string",
    "boolean": "boolean",
    "date": "date",
    "datetime": "timestamp_ntz",
}


def duckdb_relation():
    database = duckdb.connect()
    database.register("given", arrow_table(ROWS))
    database.execute("CREATE TABLE people AS SELECT * FROM given")
    return database.table("people")


def spark_frame(session):
    schema = ", ".join(f"`{name}` {SPARK_TYPES[kind]}" for name, kind in KINDS.items())
    rows = [(*row, place) for place, row in enumerate(ROWS)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return session.createDataFrame(rows, f"{schema}, row bigint").repartition(3)


FRAMES = {
    "polars": lambda: pl.DataFrame(pl.from_arrow(arrow_table(ROWS))).lazy(),
    "duckdb": duckdb_relation,
    "spark": lambda: spark_frame(SPARK.session()),
    "spark connect": lambda: spark_frame(SPARK.connect()),
}


@pytest.fixture(scope="module", params=FRAMES)
def frame(request):
    return nw.from_native(FRAMES[request.param]())


def computed(frame, expressions, change=None):
    """What the engine gives for every expression, in the order of the rows."""
    schema, engine, frame = dict(frame.collect_schema()), engine_name(frame), readable(frame)
    readers = {
        "number": lambda name: stored_types.number(name, schema[name], engine),
        "text": lambda name: stored_types.text(name, schema[name]),
        "flag": lambda name: stored_types.flag(name, schema[name]),
    }
    kinds = {**KINDS, "row": "integer"}
    made = {f"e{place}": each for place, each in enumerate(expressions)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        if change is None:
            wanted = with_expressions(frame, made, kinds, **readers, engine=engine)
        else:
            exprs = {
                name: as_frame_expr(each, kinds, **readers, engine=engine) for name, each in made.items()
            }
            wanted = frame.select("row", *(change(expr).alias(name) for name, expr in exprs.items()))
        options = {"engine": "streaming"} if engine == "polars" and change is None else {}
        found = wanted.select("row", *made).collect("pyarrow", **options).sort("row")
    types = {str(found.schema[f"e{place}"]) for place in range(len(expressions))}
    assert types <= {"Float64", "Boolean"}
    return [bits_of(found[f"e{place}"].to_list()) for place in range(len(expressions))]


def eager(expression, columns):
    """What the table in memory gives."""
    column = derived(expression, columns, "made")
    values = [value for chunk in column.chunks() for value in chunk.tolist()]
    if column.kind == "boolean":
        return [None if value != value else bool(value) for value in values]
    return bits_of(None if value != value else value for value in values)


def admitted(table):
    return {name: admit(table[name], name) for name in KINDS}


TABLES = {
    "pyarrow": arrow_table(ROWS),
    "polars": pl.DataFrame(pl.from_arrow(arrow_table(ROWS))),
    "pandas": arrow_table(ROWS).to_pandas(types_mapper=pd.ArrowDtype),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_random_expression_has_its_meaning_in_memory(table):
    columns = admitted(table)
    for tree in trees(seed=11, count=400):
        assert eager(tree, columns) == expected(tree, ROWS), tree.words


def test_a_filter_keeps_just_the_rows_where_it_is_true():
    columns = admitted(TABLES["pyarrow"])
    for tree in trees(seed=12, count=200)[1::2]:
        kept = rows_where(tree, columns).tolist()
        assert kept == [value is True for value in expected(tree, ROWS)], tree.words


def test_every_random_expression_has_its_meaning_in_every_engine(frame):
    count = 20 if engine_name(frame) == "spark" else 100
    given = trees(seed=13, count=count)
    for start in range(0, count, 20):
        batch = given[start : start + 20]
        for tree, found in zip(batch, computed(frame, batch), strict=True):
            assert found == expected(tree, ROWS), tree.words


LISTED = {
    "nothing divided by nothing": col("x") / col("x"),
    "by zero": 1 / (col("x") * 0),
    "of infinities": col("x") - col("x"),
    "an overflow": col("x") * 1e308 * 10,
    "a cast of large integers": col("n").floor(),
    "a negative root": (col("x") - 3).sqrt(),
    "a sign of zero": -(col("x") * 0),
    "a comparison of nothing": (col("x") - col("x")) == (col("x") - col("x")),
    "a denied null": ~col("x").is_in([1, 2]),
    "a long list": ~col("x").is_in([*range(40), 0.1]),
    "texts of a long list": ~col("t").is_in([f"{i}" for i in range(40)] + ["north", "é", "a\0b"]),
    "text that is another": col("t") != "north",
    "null when": when(col("b"), 1, 2),
    "constants": when(col("b"), 1, 2) + (col("n") * 0 + 0.1) * 3,
    "a date": col("d") == dt.date(2000, 2, 29),
    "a time": col("s") > "1969-12-31T23:59:59.999999",
    "a clipped infinity": col("x").clip(-5, 5),
    "year": col("s").year() * 10_000 + col("s").month() * 100 + col("s").day(),
}


def test_every_listed_trap_has_its_meaning_in_every_engine(frame):
    for (name, tree), found in zip(LISTED.items(), computed(frame, list(LISTED.values())), strict=True):
        assert found == expected(tree, ROWS), name


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_one_expression_of_an_engine_means_the_same_as_columns_on_the_way(engine):
    frame = nw.from_native(FRAMES[engine]())
    given = trees(seed=15, count=60, largest=100)
    assert computed(frame, given, lambda made: made) == [expected(tree, ROWS) for tree in given]


def test_every_listed_trap_has_its_meaning_in_memory():
    for name, tree in LISTED.items():
        assert eager(tree, admitted(TABLES["pyarrow"])) == expected(tree, ROWS), name


def test_the_comparison_would_see_one_bit_and_one_null():
    frame = nw.from_native(FRAMES["polars"]())
    tree = col("x") + 0.3
    wanted = expected(tree, ROWS)
    assert computed(frame, [tree]) == computed(frame, [tree], lambda made: made) == [wanted]
    assert computed(frame, [tree], lambda made: made + made * 2.0**-52) != [wanted]
    assert computed(frame, [tree], lambda made: made.fill_null(0.0)) != [wanted]
    assert computed(frame, [tree], lambda made: made * -1.0 * -1.0) == [wanted]


BROKEN = {
    "a quotient by zero that is not null": (
        "divide",
        lambda left, right: left / right if right else math.inf,
    ),
    "a strict comparison": ("at_most", lambda left, right: left < right),
    "a root of the size": ("sqrt", lambda value: math.sqrt(abs(value))),
    "a floor towards zero": ("floor", lambda value: value if math.isinf(value) else float(int(value))),
    "a week from Sunday": ("weekday", lambda value: float(value.isoweekday() % 7)),
    "a sum that is off by a bit": ("add", lambda left, right: (left + right) * (1 + 2.0**-52)),
    "an equality of bits": ("equal", lambda left, right: str(left) == str(right)),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_random_expressions_tell_every_broken_rule(broken, monkeypatch):
    columns, given = admitted(TABLES["pyarrow"]), trees(seed=11, count=400)
    operation, rule = BROKEN[broken]
    monkeypatch.setitem(expression_trees.COMPUTED, operation, rule)
    assert any(eager(tree, columns) != expected(tree, ROWS) for tree in given)


def test_random_expressions_tell_two_values_from_three(monkeypatch):
    columns, given = admitted(TABLES["pyarrow"]), trees(seed=11, count=400)

    def two_valued(operation, values):
        return None if None in values else (all if operation == "and" else any)(values)

    monkeypatch.setattr(expression_trees, "kleene", two_valued)
    assert any(eager(tree, columns) != expected(tree, ROWS) for tree in given)


def test_a_quotient_by_a_constant_is_rounded_once_where_polars_would_multiply_by_an_inverse():
    # All rows choose the same divisor, which Polars then keeps as a scalar.
    frame = nw.from_native(pl.LazyFrame({"x": [0.1 * place for place in range(1, 200)]}))
    values = frame.collect()["x"].to_list()
    readers = {"number": nw.col, "text": nw.col, "flag": nw.col}
    for divisor in (6, when(col("x") > 0, 6, 3), when(col("x").is_null(), 3, 6)):
        tree = col("x") / divisor
        made = frame.select(as_frame_expr(tree, {"x": "real"}, **readers).alias("q")).collect()
        staged = with_expressions(frame, {"q": tree}, {"x": "real"}, **readers).collect()
        assert made["q"].to_list() == staged["q"].to_list() == [value / 6 for value in values]
    plain = frame.select(nw.col("x") / 6.0).collect()["x"].to_list()
    assert plain != [value / 6 for value in values], "Polars divides exactly now: the detour can go"


def test_rows_can_be_taken_out_of_a_derived_column_in_any_order():
    columns = admitted(TABLES["pyarrow"])
    order = [5, 5, 90, 0, 13]
    for tree in trees(seed=14, count=60):
        whole = derived(tree, columns, "made")
        values = np.concatenate(list(whole.chunks()))
        for rows in (np.array(order), slice(3, 50), np.array([], dtype=np.int64)):
            taken = whole.take(rows)
            assert taken.rows == len(values[rows])
            assert (taken.kind, taken.nullable, taken.name) == (whole.kind, whole.nullable, "made")
            np.testing.assert_array_equal(np.concatenate([*taken.chunks(), np.empty(0)]), values[rows])
            again = taken.take(slice(1, 3))
            np.testing.assert_array_equal(np.concatenate([*again.chunks(), np.empty(0)]), values[rows][1:3])
