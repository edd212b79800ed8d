"""Several group-bys of one frame by every light engine, against counts of plain rows, and small tables."""

import math
from collections import Counter

import duckdb
import narwhals as nw
import pytest
from tests.engines import LIGHT

from sfumato.data import engines
from sfumato.data.engines import aggregate, count_rows, engine_name, guarded, null_columns, small_table
from sfumato.data.key_sets import ROWS, KeySet, Told, listed_key
from sfumato.data.rounds import Unanswered
from sfumato.errors import EngineFault, InvalidParameter

QUOTED = 'a "quoted" name'
TABLE = {
    "team": ("text", ["red", "blue", None, "red", "red", "it's"]),
    "member": ("boolean", [True, None, False, True, False, True]),
    QUOTED: ("integer", [0, 1, -1, 1, 1, -2]),
    "x": ("integer", [2**40, -1, 0, 5, 7, 9]),
    "y": ("integer", [1, 1, 1, 1, 1, 1]),
}
TOLD = {
    "team": listed_key("team", ["red", "blue", "it's"]),
    "member": listed_key("member", [True, False]),
    QUOTED: Told(("cell", QUOTED), 4),
}
SETS = [
    KeySet(("team", QUOTED)),
    KeySet((), ("x", "y")),
    KeySet(("member",)),
    KeySet(("team",), ("y",)),
    KeySet((QUOTED,)),
    KeySet(("team",)),
    KeySet(("member", "team"), ("x",)),
]


def modelled(each):
    found = Counter()
    sums = {}
    for row in zip(*(rows for _, rows in TABLE.values()), strict=True):
        named = dict(zip(TABLE, row, strict=True))
        key = tuple(named[name] for name in each.keys)
        found[key] += 1
        before = sums.get(key, (0,) * len(each.sums))
        sums[key] = tuple(total + named[name] for total, name in zip(before, each.sums, strict=True))
    return {key: (count, *sums[key]) for key, count in found.items()}


def told(table, each):
    rows = [tuple(row[name] for name in (*each.keys, ROWS, *each.sums)) for row in table.rows(named=True)]
    width = len(each.keys)
    return {row[:width]: tuple(map(int, row[width:])) for row in rows}


@pytest.mark.parametrize("engine", LIGHT)
@pytest.mark.parametrize("most", [60, 2], ids=["at once", "few keys at a time"])
def test_group_bys_together_tell_what_each_would_by_itself(engine, most, monkeypatch):
    monkeypatch.setattr(engines, "_MOST_KEYS", most)
    frame = nw.from_native(LIGHT[engine](TABLE))
    for sets in (SETS, *([each] for each in SETS)):
        for each, table in zip(sets, aggregate(frame, sets, TOLD), strict=True):
            assert told(table, each) == modelled(each), (engine, each)


def test_an_engine_that_is_not_named_takes_one_group_by_after_the_other(monkeypatch):
    frame = nw.from_native(LIGHT["duckdb"](TABLE))
    monkeypatch.setattr(engines, "engine_name", lambda frame: "another")
    for each, table in zip(SETS, aggregate(frame, SETS, TOLD), strict=True):
        assert told(table, each) == modelled(each)


def test_statements_have_few_keys_keep_sums_apart_and_give_tables_in_order():
    sets = [KeySet((f"k{i}",), ("x",) if i % 3 == 0 else ()) for i in range(100)]
    statements = []

    def run(batch):
        statements.append(batch)
        return [each.keys[0] for each in batch]

    found = engines._in_order(sets, lambda each: bool(each.sums), run)
    assert found == [each.keys[0] for each in sets]
    assert [len(batch) for batch in statements] == [60, 6, 34]
    assert all(len({bool(each.sums) for each in batch}) == 1 for batch in statements)
    # Keys that many sets share count once.
    assert len(engines._in_order([KeySet(("a", "b"))] * 100, lambda each: False, lambda batch: batch)) == 100


@pytest.mark.parametrize("engine", LIGHT)
def test_small_tables_hold_what_they_are_given(engine):
    columns = {"text": ["a", "it's", '"'], "number": [-0.0, math.inf, 0.1], "place": [0, -(2**62), 7]}
    frame = nw.from_native(LIGHT[engine](TABLE))
    rows = small_table(frame, columns).collect().rows()
    assert sorted(rows) == sorted(zip(*columns.values(), strict=True))


def test_a_connection_of_duckdb_without_python_variables_has_small_tables_too():
    database = duckdb.connect(config={"python_enable_replacements": "false"})
    frame = nw.from_native(database.sql("select 1 as x"))
    columns = {
        "text": ["a", "it's"],
        "number": [0.1 + 0.2, -math.inf],
        "place": [2**62, -1],
        "flag": [True, False],
    }
    rows = small_table(frame, columns).collect().rows()
    assert sorted(rows) == sorted(zip(*columns.values(), strict=True))
    database.close()


@pytest.mark.parametrize("engine", LIGHT)
def test_rows_are_counted_and_columns_of_nulls_are_known(engine):
    frame = nw.from_native(LIGHT[engine](TABLE))
    assert count_rows(frame) == 6
    assert null_columns(frame) == frozenset()
    assert engine_name(frame) == engine.split()[0]
    if engine == "duckdb":
        empty = nw.from_native(duckdb.sql("select null as nothing, 1 as x, null::double as y"))
        assert null_columns(empty) == {"nothing"}
    else:
        import polars as pl

        assert null_columns(nw.from_native(pl.LazyFrame({"nothing": [None], "x": [1]}))) == {"nothing"}


def test_what_an_engine_raises_is_told_by_its_kind_and_what_is_ours_gets_out():
    frame = nw.from_native(LIGHT["polars lazy"](TABLE))

    class Panic(BaseException):
        pass

    for error in (ValueError("a secret"), Panic("a secret")):
        with pytest.raises(EngineFault) as raised:
            guarded(frame, lambda error=error: (_ for _ in ()).throw(error))
        assert str(raised.value) == f"polars could not answer: {type(error).__name__}"
        assert raised.value.__context__ is None
    for error in (InvalidParameter("column must be ours"), Unanswered(), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            guarded(frame, lambda error=error: (_ for _ in ()).throw(error))
