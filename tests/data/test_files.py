"""Files that can be read: their columns, of the declared kinds, in every way to write a table."""

import csv
import gzip
import io
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.data import file_bytes, file_csv, files
from sfumato.data.admission import admit
from sfumato.data.dataset import Dataset
from sfumato.data.field import Field
from sfumato.data.file_faults import FileFault

INTEGER = Field(kind="integer")
REAL = Field(kind="real")
TEXT = Field(kind="text")
BOOLEAN = Field(kind="boolean")
TEAM = Field(kind="text", categories=("red", "blue"))
SCHEMA = {"age": INTEGER, "pay": REAL, "team": TEAM, "note": TEXT, "member": BOOLEAN}
PEOPLE = (
    "age,pay,team,note,member\n"
    "34,1200.5,red,naïve,true\n"
    ",,,,\n"
    "NA,NA,NA,NA,NA\n"
    '-7,NaN,green,"a, ""b"" c",FALSE\n'
    '"45"," 1e3","blue","",1\n'
)
VALUES = {
    "age": [34, None, None, -7, 45],
    "pay": [1200.5, None, None, np.nan, 1000.0],
    "team": ["red", None, "another value", "another value", "blue"],
    "note": ["naïve", None, "NA", 'a, "b" c', None],
    "member": [True, None, None, False, True],
}


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def lists(path: Path, schema: dict[str, Field] = SCHEMA) -> dict[str, list[object]]:
    return {name: series.to_list() for name, series in files.read(path, schema, columns=list(schema)).items()}


WRITINGS = {
    "plain": ("people.csv", PEOPLE.encode()),
    "with a byte-order mark": ("people.csv", b"\xef\xbb\xbf" + PEOPLE.encode()),
    "without its last line end": ("people.csv", PEOPLE[:-1].encode()),
    "in gzip": ("people.csv.gz", gzip.compress(PEOPLE.encode())),
    "in gzip with a byte-order mark": ("people.csv.gz", gzip.compress(b"\xef\xbb\xbf" + PEOPLE.encode())),
    "in gzip without saying so": ("people.csv", gzip.compress(PEOPLE.encode())),
    "in two pieces of gzip": (
        "people.csv.gz",
        gzip.compress(PEOPLE[:40].encode()) + gzip.compress(PEOPLE[40:].encode()),
    ),
    "under another name": ("people.txt", PEOPLE.encode()),
}


@pytest.mark.parametrize("writing", WRITINGS)
def test_the_same_table_is_read_from_every_writing(writing, tmp_path):
    name, content = WRITINGS[writing]
    found = lists(write(tmp_path / name, content))
    assert repr(found) == repr(VALUES)


@pytest.mark.parametrize(
    ("mark", "name"), [(";", "a.csv"), ("\t", "a.csv"), ("\t", "a.tsv"), ("\t", "a.tsv.gz")]
)
def test_the_header_says_which_mark_separates_fields(mark, name, tmp_path):
    text = f"age{mark}note\n34{mark}a, b\n"
    content = gzip.compress(text.encode()) if name.endswith("gz") else text.encode()
    assert lists(write(tmp_path / name, content), {"age": INTEGER, "note": TEXT}) == {
        "age": [34],
        "note": ["a, b"],
    }


def test_commas_in_the_header_of_a_tab_file_belong_to_its_names(tmp_path):
    path = write(tmp_path / "people.tsv", "age, years\tnote\n34\tx\n")
    assert lists(path, {"age, years": INTEGER}) == {"age, years": [34]}
    quoted = write(tmp_path / "people.csv", '"age, years";note\n34;x\n')
    assert lists(quoted, {"age, years": INTEGER}) == {"age, years": [34]}


def test_windows_line_ends_are_no_part_of_a_field(tmp_path):
    path = write(tmp_path / "people.csv", 'age,note\r\n34,x\r\n45,"y"\r\n,\r\n')
    assert lists(path, {"age": INTEGER, "note": TEXT}) == {"age": [34, 45, None], "note": ["x", "y", None]}
    path = write(tmp_path / "people.csv", "note,age\r\nx,34\r\ny,45")
    assert lists(path, {"age": INTEGER, "note": TEXT}) == {"age": [34, 45], "note": ["x", "y"]}


def test_columns_have_the_declared_types_and_categories_take_a_byte(tmp_path):
    found = files.read(write(tmp_path / "people.csv", PEOPLE), SCHEMA, columns=list(SCHEMA))
    enum = pl.Enum(["red", "blue", "another value"])
    assert [s.dtype for s in found.values()] == [pl.Int64, pl.Float64, enum, pl.String, pl.Boolean]
    assert found["team"].to_physical().dtype.is_unsigned_integer()
    assert [s.name for s in found.values()] == list(SCHEMA)


def test_only_the_columns_asked_for_are_read_and_in_that_order(tmp_path):
    path = write(tmp_path / "people.csv", PEOPLE)
    assert list(files.read(path, SCHEMA, columns=["note", "age"])) == ["note", "age"]


@pytest.mark.parametrize(
    ("field", "dtype"),
    [
        (Field(bounds=(0, 9)), pl.Float64),
        (Field(categories=(1, 2)), pl.Int64),
        (Field(categories=(True, False)), pl.Boolean),
        (Field(categories=("1", "2")), pl.Enum(["1", "2", "another value"])),
        (Field(), pl.String),
    ],
)
def test_a_kind_that_is_not_declared_follows_from_public_facts(field, dtype, tmp_path):
    path = write(tmp_path / "people.csv", "x\n1\n0\n")
    assert files.read(path, {"x": field}, columns=["x"])["x"].dtype == dtype
    assert files.read(path, {}, columns=["x"])["x"].dtype == pl.String


def test_another_value_is_never_a_declared_one_and_never_null(tmp_path):
    path = write(tmp_path / "people.csv", "x\nanother value\nanother value*\nred\n\ngreen\n")
    field = Field(categories=("another value", "red"))
    found = files.read(path, {"x": field}, columns=["x"])["x"]
    assert found.to_list() == ["another value", "another value*", "red", None, "another value*"]
    counts, others = admit(found).tally(field.categories)
    assert (list(counts), others) == ([1, 1], 2)


def test_many_categories_and_words_of_any_length_are_told_apart(tmp_path):
    words = tuple(f"a rather long word with the number {i}" for i in range(1_000))
    path = write(tmp_path / "people.csv", "x\n" + "\n".join(words) + "\n")
    found = files.read(path, {"x": Field(categories=words)}, columns=["x"])["x"]
    assert found.to_list() == list(words)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        (" 7", 7),
        ("+7", 7),
        ("-0", 0),
        ("007", 7),
        ('"7"', 7),
        ("  ", None),
        ("NA", None),
        ("", None),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", FileFault),
        ("7.0", FileFault),
        ("7e3", FileFault),
        ("7 ", FileFault),
        ("0x7", FileFault),
        ("1_000", FileFault),
        ("NaN", FileFault),
        ("null", FileFault),
        ("-", FileFault),
        ("٧", FileFault),
    ],
)
def test_what_a_whole_number_is(text, value, tmp_path):
    path = write(tmp_path / "people.csv", f"x,y\n{text},1\n")
    if value is FileFault:
        with pytest.raises(FileFault, match="column 'x' is declared integer, but the file holds text there"):
            lists(path, {"x": INTEGER})
    else:
        assert lists(path, {"x": INTEGER}) == {"x": [value]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7.0),
        (" 7.5", 7.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e400", np.inf),
        ("-inf", -np.inf),
        ("Infinity", np.inf),
        ("NaN", np.nan),
        ("NA", None),
        ("", None),
        ("0.1", 0.1),
        ("123456789012345678901", 123456789012345678901.0),
        ("null", FileFault),
        ("1,5", FileFault),
        ("1 000", FileFault),
        ("$7", FileFault),
        ("7%", FileFault),
    ],
)
def test_what_a_number_is(text, value, tmp_path):
    path = write(tmp_path / "people.csv", f"x;y\n{text};1\n")
    if value is FileFault:
        with pytest.raises(FileFault, match="column 'x' is declared real, but the file holds text there"):
            lists(path, {"x": REAL})
    else:
        assert repr(lists(path, {"x": REAL})) == repr({"x": [value]})


@pytest.mark.parametrize("text", ["yes", "t", "tRUE", "1.0", " true", "2"])
def test_what_a_boolean_is_not(text, tmp_path):
    path = write(tmp_path / "people.csv", f"x,y\n{text},1\n")
    with pytest.raises(FileFault, match="column 'x' is declared boolean, but the file holds text there"):
        lists(path, {"x": BOOLEAN})


def test_a_real_is_the_nearest_float_to_its_decimal(tmp_path):
    numbers = [
        *np.random.default_rng(1).normal(0, 1e5, 2_000).tolist(),
        0.1,
        1e-320,
        2**53 + 1.0,
        1.7976931348623157e308,
    ]
    path = write(tmp_path / "people.csv", "x\n" + "\n".join(map(repr, numbers)) + "\n")
    assert lists(path, {"x": REAL})["x"] == numbers


def test_a_header_alone_is_a_table_without_rows(tmp_path):
    for text in ("age,team\n", "age,team", "age,team\r\n", "\ufeffage,team\n"):
        path = write(tmp_path / "people.csv", text)
        found = files.read(path, SCHEMA, columns=["age", "team"])
        assert [len(s) for s in found.values()] == [0, 0]
        assert [s.dtype for s in found.values()] == [pl.Int64, pl.Enum(["red", "blue", "another value"])]
        assert files.header(path) == (("age", None), ("team", None))


def test_ten_thousand_columns_are_no_trouble(tmp_path):
    names = [f"name {i}" for i in range(10_000)]
    rows = [[str(i + j) for i in range(10_000)] for j in range(3)]
    path = write(tmp_path / "wide.csv", "\n".join(",".join(row) for row in [names, *rows]) + "\n")
    assert lists(path, {"name 9999": INTEGER, "name 0": TEXT}) == {
        "name 9999": [9999, 10000, 10001],
        "name 0": ["0", "1", "2"],
    }
    found = files.header(path)
    assert len(found) == 10_000
    assert found[7] == ("name 7", "integer")
    write(path, path.read_bytes() + b"1,2\n")
    with pytest.raises(FileFault, match="more or fewer fields"):
        lists(path, {"name 0": INTEGER})


def test_names_may_hold_spaces_quotes_separators_and_any_letters(tmp_path):
    names = ["my age", 'say "hi"', '"', "größe", "年齢", "a;b", "x,y", " pad ", "'"]
    path = tmp_path / "people.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, range(9), range(9, 18)])
    schema = dict.fromkeys(names, INTEGER)
    assert lists(path, schema) == {name: [i, i + 9] for i, name in enumerate(names)}
    assert files.header(path) == tuple((name, "integer") for name in names)


def test_columns_without_a_name_are_passed_over(tmp_path):
    path = write(tmp_path / "people.csv", ",age,,\n0,34,,\n1,45,,\n")
    assert files.header(path) == (("age", "integer"),)
    assert lists(path, {"age": INTEGER}) == {"age": [34, 45]}
    with pytest.raises(FileFault, match="has no column ''"):
        files.read(path, {}, columns=[""])


def test_very_long_lines_and_fields_are_read(tmp_path):
    long = "x" * 5_000_000
    path = write(tmp_path / "people.csv", f'age,note\n1,{long}\n2,"{long},,"\n3,y\n')
    found = files.read(path, {"age": INTEGER}, columns=["age", "note"])
    assert found["age"].to_list() == [1, 2, 3]
    assert found["note"].str.len_bytes().to_list() == [5_000_000, 5_000_002, 1]


def test_empty_lines_of_a_single_column_are_empty_cells(tmp_path):
    assert lists(write(tmp_path / "a.csv", "x\n1\n\n2\n"), {"x": INTEGER}) == {"x": [1, None, 2]}
    assert lists(write(tmp_path / "a.csv", "x\n1\n\n2"), {"x": INTEGER}) == {"x": [1, None, 2]}
    assert lists(write(tmp_path / "a.csv", "x\n1\n\n\n"), {"x": INTEGER}) == {"x": [1, None, None]}


CELLS = st.text(alphabet='ab1,;"\r é', max_size=4)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(CELLS, CELLS, CELLS | st.just("\n")), max_size=6),
    ends=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    block=st.sampled_from([1, 2, 3, 7, 64]),
)
def test_what_a_csv_writer_wrote_is_what_is_read(rows, ends, quoting, block, tmp_path, monkeypatch):
    if quoting == csv.QUOTE_MINIMAL:  # the writer leaves a CR bare, which nobody can tell from a line end
        rows = [tuple(cell.replace("\r", "") for cell in row) for row in rows]
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=ends, quoting=quoting).writerows([("x", "y", "z"), *rows])
    path = write(tmp_path / "people.csv", text.getvalue())
    # The shape is counted block by block; where blocks end must not matter.
    monkeypatch.setattr(file_bytes, "BLOCK", block)
    if any("\n" in cell for row in rows for cell in row):
        with pytest.raises(FileFault, match="has a line end inside quotes"):
            files.read(path, {}, columns=["x"])
        return
    found = files.read(path, {}, columns=["x", "y", "z"])
    for i, series in enumerate(found.values()):
        assert series.to_list() == [row[i] or None for row in rows]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    end=st.sampled_from(["", "\n", "\n\n"]),
    block=st.sampled_from([1, 2, 5, 64]),
    cell=st.sampled_from(["1", '"1"', '","', '""""']),
)
def test_a_row_of_another_length_is_refused_wherever_it_is(lengths, end, block, cell, tmp_path, monkeypatch):
    body = "\n".join(",".join([cell] * length) for length in lengths)
    path = write(tmp_path / "people.csv", "x,y,z\n" + body + end)
    monkeypatch.setattr(file_bytes, "BLOCK", block)
    if set(lengths) == {3} and end != "\n\n":
        assert len(files.read(path, {}, columns=["x"])["x"]) == len(lengths)
    else:
        with pytest.raises(FileFault, match="more or fewer fields"):
            files.read(path, {}, columns=["x"])


def test_without_the_count_of_fields_short_rows_would_pass(tmp_path, monkeypatch):
    path = write(tmp_path / "people.csv", "x,y,z\n1,2,3\n4\n")
    monkeypatch.setattr(file_csv, "csv_rows", lambda source, header: 2)
    assert files.read(path, {}, columns=["x"])["x"].to_list() == ["1", "4"]


def test_a_header_tells_kinds_and_never_values(tmp_path):
    path = write(tmp_path / "people.csv", "a,b,c,d,e\ntrue,1,1.5,,x\nFalse,NA,2,NA,\n")
    assert [kind for _, kind in files.header(path)] == ["boolean", "integer", "real", None, "text"]
    write(path, "a\n" + "1\n" * 1_000 + "x\n")
    assert files.header(path) == (("a", "integer"),)
    write(path, "a\n" + "1\n" * 999 + "x\n")
    assert files.header(path) == (("a", "text"),)


def _stored(path: Path) -> Path:
    frame = pl.DataFrame(
        {
            "tiny": pl.Series([1, None], dtype=pl.Int8),
            "wide": pl.Series([2**63, None], dtype=pl.UInt64),
            "whole": pl.Series([Decimal(7), None], dtype=pl.Decimal(10, 0)),
            "money": pl.Series([Decimal("7.25"), None], dtype=pl.Decimal(10, 2)),
            "single": pl.Series([0.5, None], dtype=pl.Float32),
            "flag": [True, None],
            "word": ["red", "green"],
            "code": pl.Series(["red", None], dtype=pl.Categorical),
            "kind": pl.Series(["blue", None], dtype=pl.Enum(["blue", "red"])),
            "none": pl.Series([None, None], dtype=pl.Null),
            "day": [date(2024, 1, 1), None],
            "list": [[1], None],
        }
    )
    frame.write_parquet(path)
    return path


@pytest.mark.parametrize("name", ["people.parquet", "people.pq", "people.csv", "people"])
def test_parquet_columns_are_read_by_their_stored_types(name, tmp_path):
    path = _stored(tmp_path / name)
    kinds = ("integer",) * 3 + ("real",) * 2 + ("boolean",) + ("text",) * 3 + (None, "date", None)
    assert tuple(kind for _, kind in files.header(path)) == kinds
    found = files.read(
        path, {"word": TEAM, "code": TEAM, "kind": TEAM}, columns=[n for n, k in files.header(path) if k]
    )
    assert {n: s.to_list() for n, s in found.items()} == {
        "tiny": [1, None],
        "wide": [2**63, None],
        "whole": [7, None],
        "money": [7.25, None],
        "single": [0.5, None],
        "flag": [True, None],
        "word": ["red", "another value"],
        "code": ["red", None],
        "kind": ["blue", None],
        "day": [date(2024, 1, 1), None],
    }
    enum = pl.Enum(["red", "blue", "another value"])
    assert [s.dtype for s in found.values()] == [
        pl.Int64,
        pl.UInt64,
        pl.Int64,
        pl.Float64,
        pl.Float64,
        pl.Boolean,
        enum,
        enum,
        enum,
        pl.Date,
    ]


@pytest.mark.parametrize("kind", ["integer", "real", "text", "boolean"])
def test_a_parquet_column_without_a_value_has_the_declared_kind(kind, tmp_path):
    path = _stored(tmp_path / "people.parquet")
    found = files.read(path, {"none": Field(kind=kind)}, columns=["none"])["none"]
    assert found.to_list() == [None, None]
    assert admit(found).kind == kind
    day = files.read(path, {"none": Field(kind="date")}, columns=["none"])["none"]
    assert day.dtype == pl.Date


def test_integers_of_a_parquet_file_may_be_declared_real(tmp_path):
    path = _stored(tmp_path / "people.parquet")
    assert lists(path, {"tiny": REAL, "wide": REAL}) == {"tiny": [1.0, None], "wide": [2.0**63, None]}


@pytest.mark.parametrize("name", ["list", "none"])
def test_a_parquet_type_that_is_no_number_boolean_or_text_is_refused_by_its_name(name, tmp_path):
    path = _stored(tmp_path / "people.parquet")
    with pytest.raises(
        FileFault, match=f"column '{name}' is declared number, boolean, text or date, but the file stores"
    ):
        files.read(path, {}, columns=[name])


def test_a_parquet_file_without_rows_is_a_table(tmp_path):
    pl.DataFrame(schema={"age": pl.Int64}).write_parquet(tmp_path / "people.parquet")
    assert lists(tmp_path / "people.parquet", {"age": INTEGER}) == {"age": []}


def test_a_data_set_takes_what_was_read(tmp_path):
    path = write(tmp_path / "people.csv", PEOPLE)
    frame = files.read(path, SCHEMA, columns=list(SCHEMA))
    data = Dataset(frame, unit="row", neighbours="substitution", schema=SCHEMA)
    assert [data.column(name).kind for name in SCHEMA] == ["integer", "real", "text", "text", "boolean"]
    assert len(data.column("age")) == 5
