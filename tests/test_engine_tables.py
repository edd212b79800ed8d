"""Every engine of the tests holds the table that it was given, nulls and odd values included."""

import math

import narwhals as nw
import pytest
from tests.engines import ENGINES, LAZY, SMALL, SPARK, java_is_there, spark_table

TABLE = {
    "real": ("real", [0.5, -0.0, math.inf, None]),
    "integer": ("integer", [2**63 - 1, 2**53 + 1, None, -(2**63)]),
    "text": ("text", ["", "O'Hara", None, 'ü\U0001f600\n\x00"\\%_']),
    "boolean": ("boolean", [True, None, False, True]),
}


def rows_of(engine, native):
    if engine == "numpy":
        return {name: plain(values.tolist()) for name, values in native.items()}
    frame = nw.from_native(native)
    frame = frame.collect("pyarrow") if engine in LAZY else frame
    return {name: plain(frame[name].to_list()) for name in frame.columns}


def plain(rows):
    return [None if repr(row) in ("nan", "<NA>", "None") else row for row in rows]


def canonical(rows):
    return sorted(zip(*(map(repr, column) for column in rows.values()), strict=True))


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_holds_the_table_that_it_was_given(engine):
    found = rows_of(engine, ENGINES[engine](TABLE))
    assert list(found) == list(TABLE)
    wanted = {name: rows for name, (_, rows) in TABLE.items()}
    assert canonical(found) == canonical(wanted)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_holds_a_table_without_rows(engine):
    empty = {name: (kind, []) for name, (kind, _) in TABLE.items()}
    assert rows_of(engine, ENGINES[engine](empty)) == {name: [] for name in TABLE}


@pytest.mark.skipif(not java_is_there(), reason="no Java")
def test_both_kinds_of_spark_session_share_one_java_process():
    assert SPARK.session().conf.get("spark.driver.memory") == SMALL["spark.driver.memory"]
    assert spark_table(TABLE, SPARK.connect()).count() == spark_table(TABLE).count() == 4
    assert type(SPARK.connect()).__module__ != type(SPARK.session()).__module__
