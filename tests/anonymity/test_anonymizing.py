"""A table in, the same kind out: classes that meet the goals, all rows, and no trace of their order."""

import json
from collections import Counter
from dataclasses import replace
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato.anonymity.mondrian as mondrian_file
from sfumato.anonymity import DistinctDiversity, KAnonymity, Settings, anonymize, measure
from sfumato.anonymity.hierarchies import Dates, Prefix, Ranges, Tree
from sfumato.errors import InvalidParameter, NotSupported, SchemaMismatch

QUASI = ["age", "sex", "place"]
OTHERS = ["name", "ill", "cost"]
HIERARCHIES = {
    "age": Ranges(width=5, levels=4),
    "sex": Tree({"f": "any", "m": "any"}),
    "place": Prefix(width=3),
}
METHODS = ["mondrian", "mondrian-relaxed", "full-domain", "datafly"]


def people(size=120, seed=3):
    drawn = np.random.default_rng(seed)
    return {
        "name": [f"p{i}" for i in range(size)],
        "age": drawn.integers(18, 70, size),
        "sex": drawn.choice(["f", "m"], size),
        "place": drawn.choice(["101", "102", "201", "202"], size),
        "ill": drawn.choice(["flu", "cold", "gout"], size),
        "cost": drawn.normal(100, 20, size).round(2),
    }


def options(method):
    if method.startswith("mondrian"):
        return {"method": method}
    return {"method": method, "hierarchies": HIERARCHIES, "suppression": 0.1}


def lists(table):
    """The columns of a table of any kind as lists."""
    if isinstance(table, pl.LazyFrame):
        table = table.collect()
    if isinstance(table, pa.Table):
        return table.to_pydict()
    if isinstance(table, pl.DataFrame):
        return table.to_dict(as_series=False)
    return {name: list(table[name]) for name in table}


def rows(table, names):
    columns = lists(table)
    return list(zip(*(columns[name] for name in names), strict=True))


KINDS = {
    "lists": lambda table: {name: list(values) for name, values in table.items()},
    "arrays": lambda table: {name: np.asarray(values) for name, values in table.items()},
    "pandas": lambda table: pd.DataFrame(table, index=np.arange(7, 7 + len(table["age"]))),
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "pyarrow": pa.table,
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_comes_back_as_the_kind_that_it_was_with_the_same_rows(kind, method):
    given = KINDS[kind](people())
    asked = {
        "quasi": QUASI,
        "k": 4,
        "sensitive": ["ill"],
        "keep": ["cost"],
        "drop": ["name"],
        **options(method),
    }
    result = anonymize(given, **asked)
    assert type(result.table) is type(given)
    assert list(lists(result.table)) == ["age", "sex", "place", "ill", "cost"]
    plain = anonymize(KINDS["lists"](people()), **asked)
    names = [*QUASI, "ill", "cost"]
    assert rows(result.table, names) == rows(plain.table, names)
    assert all(isinstance(cell, str) for name in QUASI for cell in lists(result.table)[name])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("seed", "size", "k"), [(1, 40, 2), (2, 75, 3), (3, 200, 10), (4, 30, 15), (5, 9, 9)]
)
def test_every_class_has_k_rows_and_no_row_is_lost_or_changed(method, seed, size, k):
    table = people(size, seed)
    result = anonymize(table, quasi=QUASI, k=k, sensitive=["ill"], keep=["name", "cost"], **options(method))
    sizes = Counter(rows(result.table, QUASI))
    assert min(sizes.values()) >= k
    kept = Counter(rows(result.table, ["name", "ill", "cost"]))
    before = Counter(rows(table, ["name", "ill", "cost"]))
    assert kept <= before
    assert sum(kept.values()) == size - result.partition.suppressed == result.after.rows
    assert result.partition.suppressed <= result.settings.suppression * size
    for found, given in ((result.after, result.table), (result.before, table)):
        assert found == replace(measure(given, quasi=QUASI, sensitive=["ill"]), linkage=None)


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_the_rows_leaves_no_trace(method):
    table = people(150)
    # Many rows are equal in all quasi-identifiers and in the sensitive column, and differ in others.
    table["age"] = np.repeat([20, 40, 60], 50)
    shuffled = np.random.default_rng(9).permutation(150)
    moved = {name: np.asarray(values)[shuffled] for name, values in table.items()}
    roles = {"quasi": QUASI, "sensitive": ["ill"], "keep": ["cost"], "drop": ["name"]}
    asked = {**roles, "k": 4, **options(method)}
    names = [*QUASI, "ill", "cost"]
    assert rows(anonymize(table, **asked).table, names) == rows(anonymize(moved, **asked).table, names)
    kept = [rows(anonymize(one, order="kept", **asked).table, names) for one in (table, moved)]
    assert kept[0] != kept[1]
    assert Counter(kept[0]) == Counter(kept[1])


def test_rows_keep_their_order_if_that_is_asked_for_and_labels_hold_their_values():
    table = people()
    result = anonymize(
        pl.DataFrame(table), quasi=QUASI, k=5, order="kept", keep=["ill", "cost"], drop=["name"]
    )
    assert result.table["cost"].to_list() == list(table["cost"])
    for name in QUASI:
        for value, label in zip(table[name], result.table[name], strict=True):
            assert holds(label, value), (label, value)


def holds(label, value):
    if label.startswith("["):
        low, high = map(float, label[1:-1].split(", "))
        return low <= value <= high
    return str(value) in label[1:-1].split(", ") if label.startswith("{") else label == str(value)


def test_types_of_columns_that_are_not_coarsened_stay_as_they_are():
    table = pd.DataFrame(people())
    table["ill"] = table["ill"].astype("category")
    table["seen"] = pd.date_range("2024-01-01", periods=len(table))
    table["small"] = np.arange(len(table), dtype=np.int16)
    others = ["name", "sex", "place", "cost"]
    result = anonymize(table, quasi=["age"], k=4, sensitive=["ill"], keep=[*others, "seen", "small"]).table
    assert result.dtypes.drop("age").equals(table.dtypes.drop("age"))
    assert list(result.index) == list(range(len(table)))
    frame = pl.DataFrame(people()).with_columns(pl.col("cost").cast(pl.Float32), tags=pl.lit([1, 2]))
    out = anonymize(frame, quasi=["age"], k=4, keep=[*others, "ill", "tags"]).table
    assert out.schema == {**frame.schema, "age": pl.String}


def test_a_class_that_misses_a_goal_never_leaves(monkeypatch):
    whole = mondrian_file.mondrian

    def too_fine(rows, goals, **more):
        found = whole(rows, goals, **more)
        classes = found.classes.copy()
        classes[0] = found.count
        labels = tuple((*texts, "alone") for texts in found.labels)
        losses = tuple(np.append(lost, 0.0) for lost in found.losses)
        return replace(found, classes=classes, labels=labels, losses=losses)

    monkeypatch.setattr(mondrian_file, "mondrian", too_fine)
    with pytest.raises(AssertionError, match="does not meet the goals"):
        anonymize(people(), quasi=QUASI, k=4, drop=OTHERS)


def test_goals_on_sensitive_columns_are_met_together():
    table = people(200)
    goals = [DistinctDiversity("ill", 3)]
    result = anonymize(table, quasi=QUASI, k=5, goals=goals, drop=["name", "cost"])
    assert result.settings.sensitive == ("ill",)
    found = {}
    for *key, ill in rows(result.table, [*QUASI, "ill"]):
        found.setdefault(tuple(key), []).append(ill)
    assert all(len(ills) >= 5 and len(set(ills)) == 3 for ills in found.values())
    # Without the goal there are classes that miss it, so that the test can fail.
    without = anonymize(table, quasi=QUASI, k=5, sensitive=["ill"], drop=["name", "cost"])
    assert without.after.column("ill").distinct < 3


# Suppression


def outlier(strange):
    """A table of which so many rows fit no class."""
    ages = [30] * 20 + [40] * 20 + [90 + i for i in range(strange)]
    return {"age": ages, "ill": ["flu", "cold"] * (len(ages) // 2) + ["flu"] * (len(ages) % 2)}


FLAT = {"age": Ranges(width=1, levels=1)}


def test_suppressed_rows_are_removed_or_shown_as_stars():
    asked = {"quasi": ["age"], "k": 4, "method": "full-domain", "hierarchies": FLAT, "suppression": 0.2}
    asked["keep"] = ["ill"]
    removed = anonymize(outlier(5), **asked)
    assert removed.partition.suppressed == 5
    assert removed.removed == 5
    assert len(removed.table["age"]) == 40
    starred = anonymize(outlier(5), suppressed="star", **asked)
    assert Counter(starred.table["age"]) == {"30": 20, "40": 20, "*": 5}
    assert starred.removed == 0
    assert starred.after.k == 5


def test_too_few_stars_are_removed_and_told():
    asked = {"quasi": ["age"], "k": 4, "method": "full-domain", "hierarchies": FLAT, "suppression": 0.2}
    asked["keep"] = ["ill"]
    result = anonymize(outlier(3), suppressed="star", **asked)
    assert "*" not in result.table["age"]
    assert result.notes == ("3 suppressed rows do not meet the goals as a class of stars: removed",)
    assert result.after.k == 20


@pytest.mark.parametrize("method", ["full-domain", "datafly"])
def test_a_suppression_of_everything_is_refused(method):
    with pytest.raises(InvalidParameter, match=r"suppression=1\.0 no levels meet"):
        anonymize(
            {"age": list(range(10))}, quasi=["age"], k=11, method=method, hierarchies=FLAT, suppression=1
        )


# Edges


def test_one_row_is_a_class_of_one():
    result = anonymize({"age": [30]}, quasi=["age"], k=1)
    assert result.table == {"age": ["30"]}


def test_nulls_are_a_value_of_their_own():
    table = pl.DataFrame({"age": [None] * 4 + [30] * 4, "void": [None] * 8})
    result = anonymize(table, quasi=["age", "void"], k=4)
    assert Counter(result.table.rows()) == {("null", "null"): 4, ("30", "null"): 4}
    floats = anonymize({"age": np.array([np.nan] * 3 + [1.5] * 3)}, quasi=["age"], k=3)
    assert Counter(floats.table["age"].tolist()) == {"null": 3, "1.5": 3}


def test_dates_and_booleans_are_coarsened():
    table = pl.DataFrame(
        {"born": pl.Series([1, 2, 40, 41]).cast(pl.Date), "here": [True, True, False, False]}
    )
    assert anonymize(table, quasi=["born", "here"], k=2).table.rows() == [
        ("[1970-01-02, 1970-01-03]", "true"),
        ("[1970-01-02, 1970-01-03]", "true"),
        ("[1970-02-10, 1970-02-11]", "false"),
        ("[1970-02-10, 1970-02-11]", "false"),
    ]
    levels = {"born": Dates(levels=("day", "month"))}
    months = anonymize(table, quasi=["born"], k=2, drop=["here"], method="full-domain", hierarchies=levels)
    assert months.table["born"].to_list() == ["1970-01"] * 2 + ["1970-02"] * 2


def test_columns_of_any_type_may_stand_beside_the_coarsened_ones():
    frame = pl.DataFrame(
        {"age": [1, 2, 3], "tags": [[3], None, [1]], "far": [np.inf, np.nan, 1.0], "raw": [b"a"] * 3}
    )
    found = anonymize(frame, quasi=["age"], k=3, keep=["tags", "far", "raw"]).table
    assert found.schema == {**frame.schema, "age": pl.String}
    assert sorted(map(repr, found["tags"].to_list())) == sorted(map(repr, frame["tags"].to_list()))
    mixed = pd.DataFrame({"age": [1, 2], "any": [1, "x"]})
    assert set(anonymize(mixed, quasi=["age"], k=2, keep=["any"]).table["any"]) == {1, "x"}


def test_a_mapping_may_hold_arrays_of_every_kind():
    table = {
        "age": pd.Series([3, 1, 2], index=[7, 8, 9]),
        "polars": pl.Series([30, 10, 20]),
        "arrow": pa.array([30, 10, 20]),
        "tuple": (30, 10, 20),
        "range": range(3),
    }
    found = anonymize(table, quasi=["age"], k=3, keep=["polars", "arrow", "tuple", "range"]).table
    assert found["age"].tolist() == ["[1, 3]"] * 3
    assert found["polars"].to_list() == found["arrow"].to_pylist() == list(found["tuple"]) == [10, 20, 30]
    assert found["range"] == [1, 2, 0]


def test_what_is_noted_of_the_whole_table_does_not_leave():
    frame = pd.DataFrame({"age": [1, 2, 3, 4]})
    frame.attrs["owner"] = "Ada"
    assert anonymize(frame, quasi=["age"], k=2).table.attrs == {}
    assert frame.attrs == {"owner": "Ada"}
    # What pandas notes in a table of PyArrow tells how many rows there were.
    table = pa.table({"age": [1, 2, 3, 4]}, metadata={b"pandas": b'{"stop": 4}'})
    assert anonymize(table, quasi=["age"], k=2).table.schema.metadata is None
    assert table.schema.metadata
    field = pa.field("pay", pa.int64(), metadata={b"of": b"Ada"})
    noted = pa.table([[1, 2], [3, 4]], schema=pa.schema([pa.field("age", pa.int64()), field]))
    assert anonymize(noted, quasi=["age"], keep=["pay"], k=2).table.schema.field("pay").metadata is None


def test_the_table_that_was_given_stays_as_it_was():
    frame = pd.DataFrame(
        {
            "age": pd.array([3, None, 2, 1, 4], dtype="Int64"),
            "sex": pd.Categorical(["f", "m", "m", "f", "f"]),
            "seen": pd.date_range("2024-01-01", periods=5, tz="Europe/Berlin"),
            "flag": pd.array([True, None, False, True, True], dtype="boolean"),
            "month": pd.period_range("2024-01", periods=5, freq="M"),
            "thin": pd.arrays.SparseArray([0, 0, 1, 0, 0]),
        },
        index=pd.MultiIndex.from_arrays([range(5), list("abcde")]),
    )
    before = frame.copy(deep=True)
    for method in ("mondrian", "mondrian-relaxed"):
        keep = ["seen", "flag", "month", "thin"]
        found = anonymize(frame, quasi=["age", "sex"], k=2, keep=keep, method=method).table
        pd.testing.assert_frame_equal(frame, before)
        assert found.dtypes[2:].equals(frame.dtypes[2:])
        assert sorted(found["seen"]) == sorted(frame["seen"])
    lists = {"age": [3, 1, 2, 4], "x": [[1], [2], [3], [4]]}
    anonymize(lists, quasi=["age"], k=2, keep=["x"])
    assert lists == {"age": [3, 1, 2, 4], "x": [[1], [2], [3], [4]]}


def test_rows_are_sorted_by_all_columns_however_many_values_these_have():
    drawn = np.random.default_rng(4)
    # Their numbers of values multiply to more than 64 bits hold.
    table = {name: drawn.permutation(3_000) for name in "abcdefgh"}
    table["a"] = drawn.integers(0, 2, 3_000)
    found = anonymize({"age": [1] * 3_000, **table}, quasi=["age"], k=3_000, keep=list("abcdefgh")).table
    assert rows(found, "abcdefgh") == sorted(rows(table, "abcdefgh"))
    assert rows(found, "abcdefgh") != rows(table, "abcdefgh")


def test_a_value_that_looks_like_a_star_is_counted_with_the_stars():
    table = {"age": ["*"] * 4 + ["a"] * 4 + ["b"]}
    asked = {"quasi": ["age"], "k": 4, "method": "full-domain", "suppression": 0.2, "suppressed": "star"}
    result = anonymize(table, **asked)
    assert Counter(result.table["age"]) == {"*": 5, "a": 4}


WRONG = [
    ({"quasi": []}, "quasi must name at least one column"),
    ({"quasi": "age"}, "quasi must be a list of column names, got quasi='age'"),
    ({"quasi": ["age", 3]}, "quasi must be a list of column names, got 3 among them"),
    ({"quasi": ["age", "height"]}, "quasi must name columns of the table, got quasi with 'height'"),
    ({"keep": ["id"]}, "keep must name columns of the table, got keep with 'id'"),
    ({"keep": []}, "must name every column of the table; got no role for 'name', 'ill', 'cost'. Name each"),
    ({"sensitive": ["pay"]}, "sensitive must name columns of the table, got sensitive with 'pay'"),
    ({"drop": ["id"]}, "drop must name columns of the table, got drop with 'id'"),
    ({"sensitive": ["age"]}, "a column must have one role, got 'age' twice in quasi and sensitive"),
    ({"drop": ["sex"]}, "got 'sex' twice in quasi and drop"),
    ({"quasi": ["age", "age"]}, "got 'age' twice in quasi"),
    ({"goals": [DistinctDiversity("age", 2)]}, "got 'age' twice in quasi and sensitive"),
    ({"k": 0}, r"k must be in \[1, 2147483647\], got k=0"),
    ({"k": True}, "k must be a whole number, got k=True"),
    ({"k": 2.5}, "k must be a whole number, got k=2.5"),
    ({"k": None}, "goals must have at least one goal, or k be given"),
    ({"goals": KAnonymity(2)}, "goals must be a list of goals"),
    ({"goals": [5]}, "goals must be goals, such as KAnonymity"),
    ({"k": 200}, "the table has 120 rows, got: at least 200 rows in each class"),
    ({"method": "magic"}, "method must be one of 'mondrian', .*, got method='magic'"),
    ({"suppressed": "hide"}, "suppressed must be one of 'remove', 'star'"),
    ({"order": "random"}, "order must be one of 'sorted', 'kept'"),
    ({"metric": "beauty"}, "metric must be one of 'loss'"),
    ({"suppression": 0.1}, "suppression must be 0 for method='mondrian'"),
    ({"suppression": -1, "method": "datafly"}, r"suppression must be in \[0, 1\].*got suppression=-1"),
    ({"suppression": "all", "method": "datafly"}, "suppression must be a number"),
    ({"hierarchies": {"cost": FLAT["age"]}}, r"hierarchies must be of quasi-identifiers .*, got 'cost'"),
    ({"hierarchies": [3]}, r"hierarchies must be a mapping .*, got hierarchies=\[3\]"),
    ({"hierarchies": {"age": 5}, "method": "datafly"}, "hierarchies must be such as .*, got 5 for 'age'"),
    ({"hierarchies": FLAT}, "hierarchies must be trees for method='mondrian'.*'age'"),
]


@pytest.mark.parametrize(("changed", "words"), WRONG)
def test_what_cannot_be_done_is_refused_with_its_reason(changed, words):
    with pytest.raises(InvalidParameter, match=words):
        anonymize(people(), **{"quasi": QUASI, "k": 3, "keep": OTHERS, **changed})


def test_tables_that_are_none_are_refused():
    with pytest.raises(InvalidParameter, match="at least one row"):
        anonymize({"age": []}, quasi=["age"], k=1)
    with pytest.raises(InvalidParameter, match="at least one row"):
        anonymize(pl.DataFrame({"age": []}, schema={"age": pl.Int64}), quasi=["age"], k=1)
    with pytest.raises(InvalidParameter, match="table must be a pandas, Polars or PyArrow table"):
        anonymize([[1, 2]], quasi=["age"], k=1)
    with pytest.raises(InvalidParameter, match="distinct names, got 'age' twice"):
        anonymize(pd.DataFrame([[1, 2]], columns=["age", "age"]), quasi=["age"], k=1)
    with pytest.raises(InvalidParameter, match="names are text"):
        anonymize(pd.DataFrame([[1, 2]], columns=["age", 7]), quasi=["age"], k=1)
    with pytest.raises(InvalidParameter, match="distinct names, got 'age' twice"):
        anonymize(pa.Table.from_arrays([pa.array([1])] * 2, names=["age", "age"]), quasi=["age"], k=1)
    with pytest.raises(InvalidParameter, match="names are text"):
        anonymize({"age": [1], 7: [1]}, quasi=["age"], k=1)
    with pytest.raises(SchemaMismatch, match="one length"):
        anonymize({"age": [1, 2], "sex": ["f"]}, quasi=["age"], k=1, keep=["sex"])
    with pytest.raises(SchemaMismatch, match="column 'sex' must be an array, got str"):
        anonymize({"age": [1, 2], "sex": "fm"}, quasi=["age"], k=1, keep=["sex"])
    with pytest.raises(InvalidParameter, match="the table has 1 row, got"):
        anonymize({"age": [1]}, quasi=["age"], k=2)
    with pytest.raises(InvalidParameter, match="goals must be a list of goals"):
        Settings(quasi=("age",), goals=5)
    with pytest.raises(SchemaMismatch, match="'tags'"):
        anonymize(pl.DataFrame({"tags": [[1], [2]]}), quasi=["tags"], k=1)


def test_a_table_in_an_engine_is_refused():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select 1 as age")
    with pytest.raises(NotSupported, match="published row by row"):
        anonymize(relation, quasi=["age"], k=1)


# What a result says


def test_the_kinds_of_columns_are_told_and_the_larger_k_counts():
    table = {"age": [1, 2], "pay": [1.5, 2.5], "sex": ["f", "m"], "here": [True, False]}
    known = [("age", "integer"), ("pay", "real"), ("sex", "text"), ("here", "boolean")]
    for given in (table, pl.DataFrame(table), pd.DataFrame(table), pa.table(table)):
        result = anonymize(given, quasi=["age"], k=1, goals=[KAnonymity(2)], drop=["pay", "sex", "here"])
        assert list(result.columns) == known
        assert result.settings.k == 2
    arrays = {name: np.array(values) for name, values in table.items()}
    assert list(anonymize(arrays, quasi=["age"], k=1, keep=["pay", "sex", "here"]).columns) == known
    days = pl.DataFrame({"age": [1], "day": [date(2024, 1, 1)], "at": [datetime(2024, 1, 1)]})
    found = anonymize(days, quasi=["age"], k=1, keep=["day", "at"])
    assert list(found.columns[1:]) == [("day", "date"), ("at", "datetime")]


def test_a_result_prints_draws_and_is_plain_data():
    result = anonymize(people(), quasi=QUASI, k=4, sensitive=["ill"], keep=["cost"], drop=["name"])
    text = str(result)
    assert text.startswith("120 of 120 rows kept in ")
    assert "at least 4 rows in each class" in text
    assert "not differential privacy" in text
    assert "<pre>" in result._repr_html_()
    record = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert record["after"]["k"] == result.after.k >= 4
    panels = result.plot().to_dict()["vconcat"]
    assert [panel["title"]["text"] for panel in panels] == ["before", "after"]
