"""Which rows other columns single out, counted again in plain Python; and no column without a role."""

from collections import Counter, defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.anonymity import anonymize, measure
from sfumato.anonymity.hierarchies import Prefix
from sfumato.errors import InvalidParameter

SEEDS = range(12)


def singled_out(table, names):
    """How many rows are unique in these columns."""
    counts = Counter(zip(*(table[name] for name in names), strict=True))
    return sum(count == 1 for count in counts.values())


def random_table(seed, size=60):
    drawn = np.random.default_rng(seed)
    place = drawn.integers(0, 9, size)
    return {
        "age": drawn.integers(20, 60, size).tolist(),
        "place": [f"{code}{code * 7 % 10}" for code in place],
        "badge": drawn.integers(0, 40, size).tolist(),
        "ward": [None if code == 3 else f"w{code % 3}" for code in drawn.integers(0, 12, size)],
        "ill": drawn.choice(["flu", "cold", "gout"], size).tolist(),
        "area": (place // 3).tolist(),
        "code": [str(7 * code) for code in place],
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_counts_are_those_of_plain_python(seed):
    table = random_table(seed)
    quasi, keep, sensitive = ["age", "place"], ["badge", "ward"], ["ill"]
    result = anonymize(table, quasi=quasi, keep=keep, sensitive=sensitive, drop=["area", "code"], k=5)
    found, out = result.linkage, result.table
    assert [(one.column, one.role) for one in found.columns] == [
        ("badge", "keep"),
        ("ward", "keep"),
        ("ill", "sensitive"),
    ]
    for one in found.columns:
        assert one.alone == singled_out(out, [one.column])
        assert one.with_quasi == singled_out(out, [*quasi, one.column])
    assert found.rows == len(out["age"])
    assert found.kept == singled_out(out, keep)
    assert found.kept_with_quasi == singled_out(out, [*quasi, *keep])
    assert found.published == singled_out(out, [*quasi, *keep, *sensitive])
    assert found.kept_with_quasi > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_table_that_is_measured_has_the_same_counts_for_columns_without_a_role(seed):
    table = random_table(seed)
    found = measure(table, quasi=["age"], sensitive=["ill"]).linkage
    assert {one.column: one.role for one in found.columns} == {
        **dict.fromkeys(["place", "badge", "ward", "area", "code"], "none"),
        "ill": "sensitive",
    }
    for one in found.columns:
        assert one.alone == singled_out(table, [one.column])
        assert one.with_quasi == singled_out(table, ["age", one.column])
    assert found.kept == singled_out(table, ["place", "badge", "ward", "area", "code"])
    assert found.published == singled_out(table, list(table))


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from("ab")), min_size=2, max_size=20)
)
def test_small_tables_are_counted_too(rows):
    table = dict(zip(["age", "x", "y"], map(list, zip(*rows, strict=True)), strict=True))
    result = anonymize(table, quasi=["age"], keep=["x"], sensitive=["y"], k=2)
    found, out = result.linkage, result.table
    assert found.kept_with_quasi == singled_out(out, ["age", "x"])
    assert found.published == singled_out(out, ["age", "x", "y"])


def narrowed(out, originals, quasi, column):
    """How many rows have a label of the quasi-identifier that goes with several values of a column."""
    seen = defaultdict(set)
    for label, value in zip(out[quasi], originals[column], strict=True):
        seen[label].add(value)
    return sum(len(seen[label]) > 1 for label in out[quasi])


@pytest.mark.parametrize("seed", SEEDS)
def test_columns_that_undo_a_coarsening_are_found(seed):
    table = random_table(seed, size=200)
    result = anonymize(
        table,
        quasi=["place"],
        keep=["code", "area", "ward"],
        drop=["age", "badge", "ill"],
        k=120,
        order="kept",
    )
    found = {one.column: one.redundant for one in result.linkage.columns}
    # A code for each place, and an area for several; the ward has nothing to do with it.
    assert found["ward"] == ()
    (code,), (area,) = found["code"], found["area"]
    assert (code.quasi, code.determines) == ("place", True)
    assert (area.quasi, area.determines) == ("place", False)
    assert code.rows == narrowed(result.table, table, "place", "place") > 0
    assert area.rows == narrowed(result.table, table, "place", "area") > 0
    text = " ".join(result.linkage.warnings)
    assert f"'code' determines 'place', and undoes its coarsening in {code.rows} of 200 rows" in text
    assert f"'area' follows from 'place', and undoes its coarsening in {area.rows} of 200 rows" in text


def test_what_is_not_coarsened_is_not_undone():
    table = {"place": ["a", "b"] * 10, "code": [1, 2] * 10}
    result = anonymize(table, quasi=["place"], keep=["code"], k=10)
    assert result.linkage.columns[0].redundant == ()
    assert result.linkage.warnings == ()


def test_a_near_unique_column_is_named_as_that_and_not_as_a_code_of_all_others():
    table = {"age": [20 + i // 4 for i in range(40)], "id": list(range(40))}
    result = anonymize(table, quasi=["age"], keep=["id"], k=8)
    (found,) = result.linkage.columns
    assert (found.alone, found.with_quasi, found.redundant) == (40, 40, ())
    first, second = result.linkage.warnings
    assert first == "rows with a value that no other row has, of 40: 'id' 40"
    assert second.startswith("40 of 40 rows are unique in the quasi-identifiers with 'id'")


def test_the_columns_of_the_report_of_the_issue_are_refused_and_then_counted():
    drawn = np.random.default_rng(19)
    size = 2_000
    education = drawn.integers(0, 16, size)
    table = pl.DataFrame(
        {
            "age": drawn.integers(17, 90, size),
            "sex": drawn.choice(["f", "m"], size),
            "education": [f"level {code}" for code in education],
            "weight": drawn.integers(10_000, 1_000_000, size),
            "education number": education + 1,
        }
    )
    quasi = ["age", "sex", "education"]
    with pytest.raises(InvalidParameter, match="got no role for 'weight', 'education number'"):
        anonymize(table, quasi=quasi, k=5)
    result = anonymize(table, quasi=quasi, keep=["weight", "education number"], k=5)
    weight, number = result.linkage.columns
    out = result.table.to_dict(as_series=False)
    assert weight.alone == singled_out(out, ["weight"]) > 0.95 * size
    assert result.linkage.kept_with_quasi == singled_out(out, out) > 0.95 * size
    assert number.redundant[0].determines
    text = str(result)
    assert f"'weight' {weight.alone:,}" in text
    assert "'education number' determines 'education'" in text
    assert result.to_dict()["linkage"]["kept_with_quasi"] == result.linkage.kept_with_quasi
    dropped = anonymize(table, quasi=quasi, drop=["weight", "education number"], k=5)
    assert dropped.linkage.warnings == ()
    assert dropped.linkage.published == 0


def test_rows_that_are_suppressed_do_not_count():
    table = {"place": ["11"] * 6 + ["22"] * 6 + ["93"], "x": [1] * 12 + [2]}
    levels = {"place": Prefix(width=2, levels=1)}
    asked = {"method": "full-domain", "hierarchies": levels, "suppression": 0.1}
    result = anonymize(table, quasi=["place"], keep=["x"], k=6, **asked)
    assert result.removed == 1
    assert result.linkage.columns[0].alone == 0


def test_many_columns_are_named_in_short():
    names = [f"c{i}" for i in range(30)]
    table = {"age": [1, 2], **{name: [1, 2] for name in names}}
    with pytest.raises(InvalidParameter, match=r"'c9' and 20 more\. Name each"):
        anonymize(table, quasi=["age"], k=2)
    assert "'c9' 2 and 20 more" in anonymize(table, quasi=["age"], keep=names, k=2).linkage.warnings[0]
