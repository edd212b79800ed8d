"""Group-bys of Polars by batches, against counts of plain rows: all kinds of keys, batches and tables."""

import os
from collections import Counter

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from sfumato.data import polars_batches
from sfumato.data.engines import aggregate
from sfumato.data.key_sets import ROWS, KeySet, Told, listed_key
from sfumato.data.polars_batches import by_polars
from sfumato.errors import EngineFault

# Integers that 64 bits do not hold are told by their text, and so are the others of their column.
WIDE = (2**70, -(2**65), 7)
KEYS = {
    "team": ((("red", "blue", "")), ("red", "blue", "", None), pl.String),
    "member": ((False, True), (True, False, None), pl.Boolean),
    "flag": ((True,), (True, None), pl.Boolean),
    "code": ((5, -3, 2**62), (5, -3, 2**62, None), pl.Int64),
    "wide": (WIDE, (*map(str, WIDE), None), pl.String),
    # No row holds what its type has no room for.
    "out of range": ((2**70, 4, 2**80), (4, None), pl.Int64),
}
CELLS = {"cell": 6, "block": 1}
TOLD = {name: listed_key(name, listed) for name, (listed, _, _) in KEYS.items()}
TOLD |= {name: Told(("cell", name), cells + 2) for name, cells in CELLS.items()}
SETS = [
    *(KeySet((name,)) for name in TOLD),
    KeySet(("team", "member", "cell")),
    KeySet(("cell", "wide", "out of range")),
    KeySet(("team",), ("points",)),
    KeySet((), ("points", "ones")),
    KeySet(("cell", "code"), ("ones",)),
]


def rows_of(size, seed=1):
    """Rows of random keys: those that a scan makes, where a null cell and a row outside have places too."""
    generator = np.random.default_rng(seed)

    def drawn(values):
        return [values[place] for place in generator.integers(0, len(values), size)]

    columns = {name: pl.Series(drawn(values), dtype=dtype) for name, (_, values, dtype) in KEYS.items()}
    cells = {name: pl.Series(drawn([-2, None, *range(last)]), dtype=pl.Int64) for name, last in CELLS.items()}
    points = pl.Series(generator.integers(-(2**39), 2**39, size))
    return pl.DataFrame({**columns, **cells, "points": points, "ones": pl.Series([1] * size, dtype=pl.Int64)})


def modelled(frame, each):
    """Counts and sums by key, of plain rows; a null cell is cell -1."""
    found = Counter() if each.keys else Counter({(): np.zeros(1 + len(each.sums), dtype=object)})
    for row in frame.rows(named=True):
        key = tuple(-1 if name in CELLS and row[name] is None else row[name] for name in each.keys)
        found[key] = found[key] + np.array([1, *(row[name] for name in each.sums)], dtype=object)
    return {key: tuple(values) for key, values in found.items()}


def told(table, each):
    """The small table in the same form."""
    found = {}
    for row in table.rows(named=True):
        key = tuple(-1 if name in CELLS and row[name] is None else row[name] for name in each.keys)
        assert key not in found, "every key has one row"
        found[key] = (row[ROWS], *(row[name] for name in each.sums))
    return found


def assert_like_rows(frame, sets=SETS, known=TOLD):
    tables = by_polars(nw.from_native(frame.lazy()), sets, known)
    assert len(tables) == len(sets)
    for each, table in zip(sets, tables, strict=True):
        assert told(table, each) == modelled(frame, each), each


@pytest.mark.parametrize("size", [1, 2, 50, 3000])
def test_all_keys_and_sums_are_those_of_the_rows(size):
    assert_like_rows(rows_of(size))


@pytest.mark.parametrize("each", SETS, ids=str)
def test_a_group_by_alone_tells_the_same(each):
    assert_like_rows(rows_of(60), [each])


def test_many_batches_and_sums_that_are_joined_often_tell_the_same(monkeypatch):
    joined = []
    whole = polars_batches._Groups._join
    monkeypatch.setattr(polars_batches, "BATCH", 64)
    monkeypatch.setattr(polars_batches, "_PENDING", 20)
    monkeypatch.setattr(polars_batches._Groups, "_join", lambda self: (joined.append(1), whole(self))[1])
    assert_like_rows(pl.concat([rows_of(100, seed) for seed in range(20)], rechunk=False))
    assert len(joined) > 10


def test_tables_of_many_keys_tell_the_same_without_places_for_all(monkeypatch):
    monkeypatch.setattr(polars_batches, "MOST_CELLS", 10)
    assert_like_rows(rows_of(300))
    # Some keys by themselves have more values than that, which is how refinements are known.
    monkeypatch.setattr(polars_batches, "MOST_CELLS", 5)
    assert_like_rows(rows_of(300))


def test_a_table_without_rows_has_its_columns_and_a_sum_of_nothing():
    empty = rows_of(0)
    assert_like_rows(empty)
    tables = by_polars(nw.from_native(empty.lazy()), SETS, TOLD)
    for each, table in zip(SETS, tables, strict=True):
        assert set(table.columns) == {*each.keys, ROWS, *each.sums}
        assert len(table) == (0 if each.keys else 1)
        for key in each.keys:
            assert table[key].dtype == nw.from_native(empty)[key].dtype


def test_sums_of_many_batches_are_wider_than_64_bits():
    each = KeySet((), ("points",))
    groups = polars_batches._Groups(each, pl.Schema({"points": pl.Int64}))
    for _ in range(9):
        groups.add(pl.DataFrame({"points": [2**62, 2**61]}))
    assert groups.table().rows() == [(18, 9 * (2**62 + 2**61))]


def test_a_key_that_is_said_to_have_too_few_values_is_told_wrong():
    # Mutants of what is said of keys: the checks above must see them.
    few = {**TOLD, "team": TOLD["team"]._replace(size=TOLD["team"].size - 1)}
    swapped = {**TOLD, "member": TOLD["member"]._replace(listed=(True,))}
    frame, sets = rows_of(100), [KeySet(("code", "team")), KeySet(("member",))]
    with pytest.raises((AssertionError, ValueError)):
        assert_like_rows(frame, sets[:1], few)
    with pytest.raises((AssertionError, ValueError)):
        assert_like_rows(frame, sets[1:], swapped)


def test_nulls_and_the_first_listed_value_have_places_of_their_own(monkeypatch):
    # A mutant: a null counts as the first cell, or as a row outside.
    monkeypatch.setattr(polars_batches, "_FIRST", -1)
    with pytest.raises((AssertionError, ValueError)):
        assert_like_rows(rows_of(100), [KeySet(("cell",))])


@pytest.mark.parametrize(
    "sets", [SETS, SETS[:1], [KeySet((), ("points",))]], ids=["many", "a count", "a sum"]
)
def test_a_file_that_ends_too_early_is_no_table_of_fewer_rows(sets, tmp_path, capfd):
    path = tmp_path / "rows.parquet"
    pl.concat([rows_of(500, seed) for seed in range(20)]).write_parquet(path, row_group_size=500)
    frame = nw.from_native(pl.scan_parquet(path))
    assert sum(aggregate(frame, sets, TOLD)[0][ROWS].to_list()) == 10_000
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(EngineFault, match=r"^polars could not answer: \w+$"):
        aggregate(frame, sets, TOLD)
    capfd.readouterr()
