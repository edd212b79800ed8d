"""Tables of one file or many in every engine: the same rows everywhere, and faults before any charge."""

import gzip
import math
import os
import random
import sys
import traceback
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.engines import SPARK

import sfumato as sf
from sfumato.data import file_lazy, file_scans, files, tables
from sfumato.data.counts import Sums
from sfumato.data.dataset import Dataset
from sfumato.data.field import Field
from sfumato.data.file_bytes import csv_header
from sfumato.data.file_duckdb import DuckdbScanner
from sfumato.data.file_faults import FileFault
from sfumato.data.file_listing import NO_VALUE, listed
from sfumato.data.matches import Matches
from sfumato.data.tables import (
    ENGINES,
    open_table,
    table_fingerprint,
    table_format,
    table_header,
    table_stamp,
)
from sfumato.errors import InvalidParameter, MissingExtra
from sfumato.laws import SeededBits
from sfumato.quantile_methods import Quantiles

CANARY = "Kanarienvogel"
KEY = bytes(32)
SCHEMA = {
    "age": Field(kind="integer"),
    "pay": Field(kind="real"),
    "team": Field(kind="text", categories=("red", "blue")),
    "member": Field(kind="boolean"),
}
COLUMNS = tuple(SCHEMA)
ROWS: list[tuple[Any, ...]] = [
    (34, 1200.5, "red", True),
    (None, None, "a, b", None),
    (-7, math.inf, 'say "hi"', False),
    (2**62, 0.1, None, True),
]


@pytest.fixture(autouse=True)
def one_spark(request):
    """The session of the tests is the active one where Spark is asked for."""
    if "spark" in request.node.name:
        SPARK.session()


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    """All rows of a lazy or eager table, in an order that depends on nothing but them."""
    if isinstance(table, dict):
        found = list(zip(*(series.to_list() for series in table.values()), strict=True))
    elif isinstance(table, pl.LazyFrame):
        found = table.collect().rows()
    elif hasattr(table, "fetchall"):
        found = table.fetchall()
    else:
        found = [tuple(row) for row in table.collect()]
    return sorted(found, key=repr)


def frame(rows: list[tuple[Any, ...]] = ROWS) -> pl.DataFrame:
    types = {"age": pl.Int64, "pay": pl.Float64, "team": pl.String, "member": pl.Boolean}
    return pl.DataFrame(rows, schema=types, orient="row").with_columns(note=pl.lit("nothing"))


def write(table: pl.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.name.endswith(".csv.gz"):
        path.write_bytes(gzip.compress(table.write_csv().encode()))
    elif path.suffix == ".csv":
        table.write_csv(path)
    elif path.suffix == ".parquet":
        table.write_parquet(path)
    else:
        table.write_ipc(path, compression="zstd")


def refusal(path: Any, engine: Any, columns: tuple[str, ...] = COLUMNS, schema: Any = None) -> FileFault:
    with pytest.raises(FileFault) as caught:
        open_table(path, SCHEMA if schema is None else schema, columns=columns, engine=engine)
    error = caught.value
    assert (error.__cause__, error.__context__) == (None, None)
    assert CANARY not in repr(vars(error)) + "".join(traceback.format_exception(error))
    return error


FORMATS = ("csv", "csv.gz", "parquet", "arrow")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_gives_the_same_rows_in_every_engine(ending, engine, tmp_path):
    # One file, a folder of folders, a pattern, and partitions.
    write(frame(), tmp_path / f"one.{ending}")
    assert rows_of(open_table(tmp_path / f"one.{ending}", SCHEMA, columns=COLUMNS, engine=engine)) == sorted(
        ROWS, key=repr
    )
    for place, row in enumerate(ROWS):
        write(frame([row]), tmp_path / "plain" / f"deep {place}" / f"part.{ending}")
        write(frame([row]), tmp_path / "hive" / f"year={2020 + place % 2}" / f"k=x%20{place}" / f"p.{ending}")
    (tmp_path / "plain" / "_SUCCESS").write_bytes(b"")
    (tmp_path / "plain" / ".hidden.crc").write_bytes(b"\0")
    for path in (tmp_path / "plain", tmp_path / "pl*" / "**" / f"*.{ending}")[: 1 + (engine != "spark")]:
        assert rows_of(open_table(path, SCHEMA, columns=COLUMNS, engine=engine)) == sorted(ROWS, key=repr)
    wide = {**SCHEMA, "year": Field(kind="integer")}
    found = open_table(tmp_path / "hive", wide, columns=["k", "age", "year"], engine=engine)
    expected = [(f"x {place}", row[0], 2020 + place % 2) for place, row in enumerate(ROWS)]
    assert rows_of(found) == sorted(expected, key=repr)
    keys = open_table(tmp_path / "hive", wide, columns=["year"], engine=engine)
    assert rows_of(keys) == [(2020,), (2020,), (2021,), (2021,)]


def test_a_table_is_lazy_unless_it_is_one_small_file(tmp_path, monkeypatch):
    write(frame(), tmp_path / "a" / "one.csv")
    write(frame(), tmp_path / "one.parquet")
    write(frame(), tmp_path / "one.arrow")
    kinds = {
        path: type(open_table(tmp_path / path, SCHEMA, columns=["age"])).__name__
        for path in ("a/one.csv", "one.parquet", "one.arrow", "a", "a/*.csv")
    }
    assert list(kinds.values()) == ["dict", "dict", "LazyFrame", "LazyFrame", "LazyFrame"]
    monkeypatch.setattr(tables, "AT_ONCE", 10)
    assert isinstance(open_table(tmp_path / "one.parquet", SCHEMA, columns=["age"]), pl.LazyFrame)
    assert type(open_table(tmp_path / "one.parquet", SCHEMA, columns=["age"], engine="duckdb")).__name__ == (
        "DuckDBPyRelation"
    )


# Cells at every border of the grammar in docs/files.md.
NUMBERS = [
    *(
        "34",
        "+34",
        "-7",
        "007",
        " 34",
        "34 ",
        "\t34",
        " ",
        "\t",
        "NA",
        " NA",
        "NA ",
        "--7",
        "+-7",
        "- 7",
        "0x10",
    ),
    *("1_000", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"),
    *(
        "00000000000000000000000000012",
        "+",
        "-",
        "１２",
        "34.",
        "  +5",
        "-0",
        "1.5",
        ".5",
        "5.",
        "1e3",
        "1E3",
    ),
    *("1e+3", "1e-3", "e3", "1e", "1.e3", ".e3", ".", "inf", "-inf", "+inf", "INF", "infinity", "iNfiniTy"),
    *("nan", "NaN", "-nan", "1e400", "-1e400", "1e-400", "1 000", "7%", "0x1p3", "1d", "1f", "1.5 ", " inf"),
    *("1e99999999999999999999", "in", "na", "true", "nan(1)", "1.5.2", "9007199254740993", "0.1"),
    *("2.2250738585072011e-308", "179769313486231580793e289"),
]
TRUTHS = ["true", "True", "TRUE", "tRUE", "1", "0", "false", "False", "FALSE", "NA", " ", "1 ", " 1", "yes"]
CELLS = {
    "integer": NUMBERS,
    "real": [*NUMBERS, "0." + "1" * 800, "1" * 400],
    "boolean": TRUTHS,
    "text": ["NA", " ", "a", "  b ", "null", "é", "\\", "'", "#"],
}


def read_alone(path: Path, cell: str, kind: Any, engine: Any) -> Any:
    """What becomes of a single cell, or the kind of the fault."""
    path.write_bytes(f"x,y\n{cell},1\n".encode())
    try:
        found = open_table(path, {"x": Field(kind=kind)}, columns=["x"], engine=engine)
    except FileFault as fault:
        return fault.fault
    return [repr(row) for row in rows_of(found)]


@pytest.mark.parametrize("kind", CELLS)
def test_a_cell_is_read_as_by_the_eager_reader(kind, tmp_path):
    for cell in (*CELLS[kind], '""', "", *(f'"{cell}"' for cell in CELLS[kind][:4])):
        path = tmp_path / "people.csv"
        assert read_alone(path, cell, kind, "polars") == read_alone(path, cell, kind, None), cell


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", CELLS)
def test_sound_cells_are_the_same_values_in_all_engines_and_each_wrong_one_is_refused(kind, engine, tmp_path):
    path = tmp_path / "people.csv"
    results = {cell: read_alone(path, cell, kind, None) for cell in CELLS[kind]}
    sound = [cell for cell, found in results.items() if found != "values"]
    path.write_text("x,y\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(sound)))
    fields = {"x": Field(kind=kind), "y": Field(kind="integer")}
    found = {
        row[1]: repr(row[:1]) for row in rows_of(open_table(path, fields, columns=["x", "y"], engine=engine))
    }
    assert {cell: [found[i]] for i, cell in enumerate(sound)} == {cell: results[cell] for cell in sound}
    # Each wrong cell is counted, and nothing else is.
    wrong = [cell for cell in results if cell not in sound]
    path.write_text("x,y\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(results)))
    scans = file_scans.scanner(engine)
    pieces = listed(path).pieces
    header = csv_header(pieces[0].source)
    lines = scans.lines(file_scans.Lines(pieces, len(results), header, False, (0,)))
    wanted = file_scans.Wanted("x", file_scans.place(0), kind, "cell")
    assert scans.wrong(lines, [wanted]) == [len(results), len(wrong)]
    assert read_alone(path, wrong[0], kind, engine) == "values" if wrong else kind == "text"


LINES = [
    "a,1",
    "b,2",
    '"c",3',
    '"d,e",4',
    '"f""g",5',
    "'h,6",
    "#i,7",
    "\\,8",
    ",9",
    '"",0',
    " j ,",
    '"k\r",1',
]
SPOILT = ['l"m,1', '"n,1', "o,1,2", "p", '"q\n",1', '"r" ,1', ' "s",1', 't,"1', "", "\x00,1", "u\r"]


def mixed(draw: random.Random) -> list[str]:
    lines = [draw.choice(LINES) for _ in range(draw.randint(1, 6))]
    if draw.random() < 0.5:
        lines.insert(draw.randrange(len(lines) + 1), draw.choice(SPOILT))
    return lines


def _outcome(path: Path, fields: dict[str, Field], engine: Any) -> Any:
    """The rows of a file, or the kind of its fault."""
    try:
        return rows_of(open_table(path, fields, columns=list(fields), engine=engine))
    except FileFault as fault:
        return fault.fault


@pytest.mark.parametrize("engine", ENGINES)
def test_one_line_is_one_row_in_every_engine(engine, tmp_path):
    # What is read is what the eager reader gives, line by line; what it refuses is refused here.
    draw = random.Random(11)
    fields = {"note": Field(kind="text"), "x": Field(kind="integer")}
    read = 0
    for _ in range({"polars": 150, "duckdb": 60, "spark": 8}[engine]):
        path = tmp_path / "people.csv"
        path.write_bytes("\n".join(["note,x", *mixed(draw), *[""] * draw.randint(0, 1)]).encode())
        expected, found = (_outcome(path, fields, each) for each in (None, engine))
        assert found == expected
        read += isinstance(found, list)
    assert read > (2 if engine == "spark" else 15)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_engine_would_take_for_other_rows_is_refused(engine, tmp_path, monkeypatch):
    path = tmp_path / "people.csv"
    path.write_bytes(b"note,x\na,1\nb,2\n")
    monkeypatch.setattr(file_lazy, "csv_rows", lambda *_: 1)
    assert refusal(path, engine, ("note",), {}).fault == "parse"


def test_a_quote_over_lines_would_swallow_rows_without_the_check_of_lines(tmp_path, monkeypatch):
    path = tmp_path / "people.csv"
    path.write_bytes(b'note,x\n"a\n' + b"c,2\n" * 99 + b'b",1\n')
    for engine in ("polars", "duckdb"):
        assert refusal(path, engine, ("note",), {}).fault == "quoted line end"
    monkeypatch.setattr(file_lazy, "csv_rows", lambda *_: 1)
    assert len(rows_of(open_table(path, {}, columns=["note"], engine="polars"))) == 1


WRONG_FILES = {
    "text among numbers": (b"age,pay,team,member\nKanarienvogel,1,red,true\n", "values"),
    "a row too short": (b"age,pay,team,member\n1,Kanarienvogel\n", "ragged"),
    "Latin-1": ("age,pay,team,member\n1,1,Kanarienvogelé,true\n".encode("latin-1"), "encoding"),
    "half a letter at the end": (b"age,pay,team,member\n1,1,red,\xc3", "encoding"),
    "a NUL": (b"age,pay,team,member\n1,1,Kanarienvogel,true\n" * 2**11 + b"1,1,\0,\n", "binary"),
    "a truth that is none": (b"age,pay,team,member\n1,1,red,Kanarienvogel\n", "values"),
    "a huge header": (b"a," * 2**24, "header"),
    "a broken Parquet file": (b"PAR1Kanarienvogel", "parquet"),
    "a broken Arrow file": (b"ARROW1\0\0Kanarienvogel", "arrow"),
    "nothing": (b"", "empty"),
}


@pytest.mark.parametrize("engine", [None, "polars", "duckdb", "spark"])
@pytest.mark.parametrize("case", WRONG_FILES)
def test_a_wrong_file_in_a_folder_is_told_by_its_kind_and_name(case, engine, tmp_path, capfd):
    content, fault = WRONG_FILES[case]
    (tmp_path / "people").mkdir()
    (tmp_path / "people" / "bad").write_bytes(content)
    error = refusal(tmp_path / "people", engine)
    assert error.fault == fault
    assert CANARY not in "".join(capfd.readouterr())


def test_the_errors_of_engines_quote_data_and_so_must_not_get_out(tmp_path, monkeypatch):
    path = tmp_path / "people.csv"
    path.write_bytes(b"age,pay,team,member\n1,1,red,true\n")
    # As an engine does that meets a number where it should not.
    monkeypatch.setattr(DuckdbScanner, "wrong", lambda *_: int(CANARY))
    assert refusal(path, "duckdb").fault == "parse"
    monkeypatch.setattr(file_lazy, "guarded", lambda fault, work: work())
    with pytest.raises(ValueError, match=CANARY):
        open_table(path, SCHEMA, columns=COLUMNS, engine="duckdb")


def test_an_empty_folder_and_a_pattern_without_a_match_hold_no_files(tmp_path):
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "_SUCCESS").write_bytes(b"")
    for path in (tmp_path / "none", tmp_path / "*.csv", tmp_path / "n*" / "*.csv"):
        assert refusal(path, None).fault == "no files"
        with pytest.raises(FileFault):
            table_stamp(path)
    assert refusal(tmp_path / "no such", None).fault == "missing"


def test_files_of_other_columns_formats_or_types_are_refused_by_name(tmp_path):
    for name, table in {
        "other columns": frame().drop("pay"),
        "another format": frame(),
        "another type": frame().with_columns(pl.col("age").cast(pl.String)),
    }.items():
        write(frame(), tmp_path / name / "a.parquet")
        write(table, tmp_path / name / f"b.{'csv' if name == 'another format' else 'parquet'}")
        for engine in (None, "duckdb"):
            error = refusal(tmp_path / name, engine, schema={})
            assert error.fault == "mixed files", name
            assert f"{name}{os.sep}b." in str(error)
    assert refusal(tmp_path / "another type", None).fault == "stored type"
    assert refusal(tmp_path / "other columns", None, ("nobody",)).fault == "mixed files"


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_types_of_several_widths_and_orders_of_columns_are_one_table(engine, tmp_path):
    write(frame().with_columns(pl.col("age").cast(pl.Int64)), tmp_path / "t" / "a.parquet")
    narrow = frame(ROWS[:2]).with_columns(pl.col("age").cast(pl.Int16), pl.col("pay").cast(pl.Float32))
    write(narrow.select(reversed(narrow.columns)), tmp_path / "t" / "b.parquet")
    write(frame(ROWS[:1]).with_columns(pl.lit(None).alias("team")), tmp_path / "t" / "c.parquet")
    found = rows_of(open_table(tmp_path / "t", SCHEMA, columns=COLUMNS, engine=engine))
    none = (*ROWS[0][:2], None, ROWS[0][3])
    assert found == sorted([*ROWS, *ROWS[:2], none], key=repr)
    write(frame(), tmp_path / "c" / "a.csv")
    write(frame(ROWS[:2]).select("note", "team", "pay", "member", "age"), tmp_path / "c" / "b.csv")
    (tmp_path / "c" / "c.tsv").write_text("age\tpay\tteam\tmember\tnote\n7\t\tred\t1\tx\n")
    (tmp_path / "c" / "d.csv").write_text("age,pay,team,member,note\n")
    found = rows_of(open_table(tmp_path / "c", SCHEMA, columns=COLUMNS, engine=engine))
    assert found == sorted([*ROWS, *ROWS[:2], (7, None, "red", True)], key=repr)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_without_rows_has_its_columns(engine, tmp_path):
    (tmp_path / "people.csv").write_text("age,pay,team,member\n")
    found = open_table(tmp_path / "people.csv", SCHEMA, columns=COLUMNS, engine=engine)
    assert rows_of(found) == []
    names = found.collect_schema().names() if engine == "polars" else list(found.columns)
    assert names == list(COLUMNS)


ODD = ["a b", "ünï", "[x]", "st*r", "wh?t", "{c,d}", "it's", 'q"q', "back\\slash", "100%", "a=b", "$x", "`t`"]


@pytest.mark.parametrize("engine", ENGINES)
def test_any_letters_may_be_in_names(engine, tmp_path):
    folder = tmp_path / "d[1] é*" / "t"
    for place, name in enumerate(name for name in ODD if engine != "duckdb" or "\\" not in name):
        write(pl.DataFrame({'n.o`t"e': [place], "x": [1]}), folder / f"{name}.parquet")
    names = ['n.o`t"e']
    rows = len(list(folder.iterdir()))
    for path in (folder, folder / "*.parquet"):
        assert len(rows_of(open_table(path, {}, columns=names, engine=engine))) == rows
    assert len(rows_of(open_table(folder / "[[]x].parquet", {}, columns=names, engine=engine))) == 1
    assert len(rows_of(open_table(folder / "st*r.parquet", {}, columns=names, engine=engine))) == 1
    if engine == "duckdb":
        write(frame(), tmp_path / "d[1] é*" / "back\\slash.parquet")
        # Text, which PyArrow reads, is not asked for.
        assert refusal(tmp_path / "d[1] é*" / "back\\slash.parquet", engine, ("age",)).fault == "file name"


@pytest.mark.parametrize("engine", ENGINES)
def test_any_letters_may_be_in_keys(engine, tmp_path):
    odd = ODD if engine != "spark" else ODD[::2]
    for place, name in enumerate(odd):
        write(pl.DataFrame({"x": [place]}), tmp_path / "odd" / f"k={name}" / "p.parquet")
    found = rows_of(open_table(tmp_path / "odd", {}, columns=["x", "k"], engine=engine))
    assert [name for _, name in sorted(found)] == odd
    # Names that engines take apart themselves; a key above the table is no column of it.
    for top in ("plain", "age=7"):
        folder = tmp_path / top / "t"
        for place, name in enumerate(("01", "a%20b", "x%3Dy", "é", "1.5", NO_VALUE)):
            write(frame(ROWS[:1]).with_columns(x=pl.lit(place)), folder / f"k={name}" / "p.parquet")
        found = rows_of(open_table(folder, SCHEMA, columns=["x", "k", "age"], engine=engine))
        assert [row[1:] for row in found] == [(k, 34) for k in ("01", "a b", "x=y", "é", "1.5", None)]


def test_the_values_in_names_of_folders_are_not_told(tmp_path):
    write(frame(), tmp_path / "t" / "team=red" / "a.parquet")
    (tmp_path / "t" / f"team={CANARY}").mkdir()
    (tmp_path / "t" / f"team={CANARY}" / "b.parquet").write_bytes(b"PAR1")
    error = refusal(tmp_path / "t", None, ("age",))
    assert error.fault == "parquet"
    assert "team=..." in str(error)
    (tmp_path / "t" / f"team={CANARY}" / "b.parquet").unlink()
    write(frame(), tmp_path / "t" / f"team={CANARY}" / "b.parquet")
    assert refusal(tmp_path / "t", None, ("age",)).fault == "duplicate column"
    write(frame().drop("team"), tmp_path / "u" / f"team={CANARY}" / "b.parquet")
    schema = {"team": Field(kind="integer")}
    assert refusal(tmp_path / "u", None, ("team",), schema).fault == "values"
    write(frame().drop("team"), tmp_path / "u" / "plain" / "b.parquet")
    assert refusal(tmp_path / "u", None, ("age",)).fault == "mixed files"


def test_links_to_files_are_followed_but_nothing_is_read_twice(tmp_path):
    write(frame(), tmp_path / "one.parquet")
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.parquet").symlink_to(tmp_path / "one.parquet")
    assert len(rows_of(open_table(tmp_path / "t", SCHEMA, columns=COLUMNS))) == len(ROWS)
    (tmp_path / "t" / "b.parquet").symlink_to(tmp_path / "one.parquet")
    assert refusal(tmp_path / "t", None).fault == "special"
    (tmp_path / "t" / "b.parquet").unlink()
    (tmp_path / "t" / "sub").symlink_to(tmp_path / "t", target_is_directory=True)
    assert refusal(tmp_path / "t", None).fault == "special"
    (tmp_path / "t" / "sub").unlink()
    (tmp_path / "t" / "gone.parquet").symlink_to(tmp_path / "nowhere")
    assert refusal(tmp_path / "t", None).fault == "missing"
    os.mkfifo(tmp_path / "t" / "gone2.csv")
    (tmp_path / "t" / "gone.parquet").unlink()
    assert refusal(tmp_path / "t", None).fault == "special"


def test_a_change_between_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "t"
    write(frame(), folder / "a.csv")
    scan = file_scans.scanner

    def meanwhile(engine: Any) -> Any:
        write(frame(), folder / f"b{len(list(folder.iterdir()))}.csv")
        return scan(engine)

    monkeypatch.setattr(file_lazy, "scanner", meanwhile)
    for engine in ("polars", "duckdb"):
        assert refusal(folder, engine).fault == "changed"


def test_stamps_and_fingerprints_know_every_file_and_every_name(tmp_path):
    folder = tmp_path / "t"
    write(frame(), folder / "a.csv")
    write(frame(ROWS[:1]), folder / "b" / "c.csv")
    stamps, prints = {table_stamp(folder)}, {table_fingerprint(folder, KEY)}
    assert table_fingerprint(folder, KEY) in prints
    assert table_fingerprint(folder, bytes(31) + b"1") not in prints
    (folder / "_SUCCESS").write_bytes(b"")
    assert (table_stamp(folder) in stamps, table_fingerprint(folder, KEY) in prints) == (True, True)
    for change in (
        lambda: (folder / "a.csv").rename(folder / "z.csv"),
        lambda: (folder / "z.csv").write_bytes((folder / "z.csv").read_bytes() + b"1,1,red,true,\n"),
        lambda: (folder / "b" / "c.csv").unlink(),
        lambda: write(frame(), folder / "b" / "d.csv"),
    ):
        change()
        assert table_stamp(folder) not in stamps
        assert table_fingerprint(folder, KEY) not in prints
        stamps.add(table_stamp(folder))
        prints.add(table_fingerprint(folder, KEY))
    # Where one file ends and the next begins matters.
    for name, parts in {"u": (b"ab", b"c"), "v": (b"a", b"bc")}.items():
        (tmp_path / name).mkdir()
        for place, part in enumerate(parts):
            (tmp_path / name / f"{place}.csv").write_bytes(part)
    assert table_fingerprint(tmp_path / "u", KEY) != table_fingerprint(tmp_path / "v", KEY)
    alone = folder / "z.csv"
    assert table_fingerprint(alone, KEY) == files.fingerprint(alone, KEY)
    assert table_stamp(alone) == files.stamp(alone)


def test_a_header_tells_names_and_kinds_of_all_formats(tmp_path):
    for ending in FORMATS:
        write(frame(), tmp_path / ending / "year=2020" / f"a.{ending}")
        write(frame(), tmp_path / ending / "year=2021" / f"a.{ending}")
        kinds = dict(table_header(tmp_path / ending))
        assert kinds == {
            **{name: field.kind for name, field in SCHEMA.items()},
            "note": "text",
            "year": "integer",
        }
        assert table_format(tmp_path / ending) == ending.split(".")[0]


def test_what_is_stored_otherwise_is_refused_before_anything_is_read(tmp_path):
    write(frame().with_columns(age=pl.lit(0.5), member=pl.lit("yes")), tmp_path / "one.parquet")
    write(frame().with_columns(age=pl.lit([1]), member=pl.lit(1)), tmp_path / "one.arrow")
    for name in ("one.parquet", "one.arrow"):
        for column in ("age", "member"):
            for engine in ("polars", "duckdb"):
                assert refusal(tmp_path / name, engine, (column,)).fault == "stored type"


def test_spark_says_which_names_it_cannot_open(tmp_path):
    for name in ("_one.parquet", ".one.parquet", "a:b.parquet"):
        write(frame(), tmp_path / name)
        assert refusal(tmp_path / name, "spark").fault == "file name"
    (tmp_path / "a.csv").write_bytes(gzip.compress(b"age\n1\n"))
    assert refusal(tmp_path / "a.csv", "spark", ("age",)).fault == "file name"


def test_an_engine_that_is_missing_or_unknown_is_told(tmp_path, monkeypatch):
    write(frame(), tmp_path / "one.csv")
    for engine, package in (("duckdb", "duckdb"), ("spark", "pyspark.sql")):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, package, None)
            with pytest.raises(MissingExtra, match=rf"sfumato\[{engine}\]"):
                open_table(tmp_path / "one.csv", SCHEMA, columns=["age"], engine=engine)
    with pytest.raises(InvalidParameter, match="engine must be one of"):
        open_table(tmp_path / "one.csv", SCHEMA, columns=["age"], engine="sqlite")
    for columns in ((), ("age", "age")):
        with pytest.raises(InvalidParameter, match="distinct names"):
            open_table(tmp_path / "one.csv", SCHEMA, columns=columns)


DAYS = ["2026-01-31", " 1969-12-31", "0001-01-01", "9999-12-31", "NA", " ", "2024-02-29"]
NO_DAYS = ["2023-02-29", "2026-1-31", "31.01.2026", "2026-01-31 ", "0000-01-01", "2026-13-01", "20260131"]
TIMES = ["2026-01-31", "2026-01-31 12:00", "2026-01-31T12:00:05Z", "1969-12-31 23:59:59.999999", "NA"]
NO_TIMES = ["2026-01-31 24:00", "2026-01-31 12:00:60", "2026-01-31T12:00+01:00", "2026-02-30 12:00", "12:00"]
MOMENTS = {"date": (DAYS, NO_DAYS), "datetime": ([*TIMES, "2026-01-31T12:00:05.5"], NO_TIMES)}


@pytest.mark.parametrize("kind", MOMENTS)
def test_dates_are_the_same_in_all_readers(kind, tmp_path):
    path = tmp_path / "people.csv"
    sound, wrong = MOMENTS[kind]
    results = {cell: read_alone(path, cell, kind, None) for cell in (*sound, *wrong)}
    assert [cell for cell, found in results.items() if found == "values"] == wrong
    for cell in results:
        for engine in ("polars", "duckdb"):
            assert read_alone(path, cell, kind, engine) == results[cell], cell
    SPARK.session()
    path.write_text("x,y\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(sound)))
    fields = {"x": Field(kind=kind), "y": Field(kind="integer")}
    found = rows_of(open_table(path, fields, columns=["x", "y"], engine="spark"))
    assert {i: [repr((x,))] for x, i in found} == {i: results[cell] for i, cell in enumerate(sound)}
    path.write_text(f"x,y\n{wrong[0]},1\n")
    assert refusal(path, "spark", ("x",), fields).fault == "values"


@pytest.mark.parametrize("engine", [None, *ENGINES])
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_stored_dates_are_dates(ending, engine, tmp_path):
    when = [datetime(2026, 1, 31, 12, 30), None]
    stored = pl.DataFrame({"day": [datetime(2026, 1, 31).date(), None], "at": when})
    write(stored.with_columns(pl.col("at").dt.cast_time_unit("us")), tmp_path / f"one.{ending}")
    assert dict(table_header(tmp_path / f"one.{ending}")) == {"day": "date", "at": "datetime"}
    fields = {"day": Field(kind="date"), "at": Field(kind="datetime")}
    found = open_table(tmp_path / f"one.{ending}", fields, columns=["day", "at"], engine=engine)
    assert rows_of(found) == sorted(stored.rows(), key=repr)
    wrong = {"day": Field(kind="integer")}
    assert refusal(tmp_path / f"one.{ending}", engine, ("day",), wrong).fault == "stored type"


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("others", [(1.0, 3.5), (1.0, 3.5, None), (-2.0, 2.0**60)])
@pytest.mark.parametrize("nulls", ["drop", "lower", "upper"])
def test_values_of_other_rows_do_not_decide_how_a_nan_of_a_parquet_file_is_read(
    tmp_path, engine, others, nulls
):
    """The statistics of the file leave NaN out, and must not be taken for those of all rows."""
    import duckdb

    path = tmp_path / "people.parquet"
    values = [*others, math.nan, 2.0]
    pl.DataFrame({"id": values, "x": values}).write_parquet(path)
    table = pl.scan_parquet(path) if engine == "polars" else duckdb.read_parquet(str(path))
    arrays = {"id": np.array(values, dtype=float), "x": np.array(values, dtype=float)}
    queries = [
        sf.Sum(column="x", bounds=(0, 10), nulls=nulls, budget=sf.PureDP(1)),
        sf.Count(column="x", between=(0, 5), budget=sf.PureDP(1)),
        Quantiles(column="x", probs=(0.5,), bounds=(0, 10), nulls=nulls, budget=sf.PureDP(1)),
    ]
    for unit in ({"unit": "row"}, {"unit": "id", "rows_per_unit": 1}):
        for query in queries:
            drawn = []
            for frame in (arrays, table):
                data = sf.Dataset(frame, neighbours="add-remove", **unit)
                with sf.Session(data, budget=sf.PureDP(9), bits=SeededBits(5)) as session:
                    drawn.append(session.answer(query).outcome)
            assert drawn[0] == drawn[1], (unit, query)


WRITERS = {
    "polars": pl.DataFrame.write_parquet,
    "pyarrow": lambda f, path: pq.write_table(f.to_arrow(), path),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("dtype", [pl.Float32, pl.Float64])
def test_one_row_does_not_decide_how_the_nan_of_other_rows_is_read(writer, engine, dtype, tmp_path):
    # The statistics of a Parquet file leave NaN out; an infinity of one person shows that there may be some.
    sums = []
    for one in ([], [math.inf]):
        path = tmp_path / f"{len(one)}.parquet"
        pays = pl.Series([0.5, 1.0, 2.0, *[math.nan] * 100, *one], dtype=dtype)
        WRITERS[writer](pl.DataFrame({"pay": pays, "id": pays}), path)
        table = open_table(path, {}, columns=["pay", "id"], engine=engine)
        rows = Dataset(table, unit="row", neighbours="add-remove")
        people = Dataset(table, unit="id", rows_per_unit=1, neighbours="add-remove")
        ((pay,), (bounded,)) = (data.parts("pay", bits=SeededBits(1)) for data in (rows, people))
        sums.append((Matches(between=(0, 9)).sums(pay), Matches(between=(0, 9)).sums(bounded)))
    # Of all these pays, 1 and 2 alone are ids.
    assert sums[0] == (Sums(3, 3), Sums(2, 2))
    assert sums[1] == (Sums(4, 3), Sums(2, 2))


# Spark has no nanoseconds.
@pytest.mark.parametrize(
    ("engine", "unit"),
    [("polars", "us"), ("duckdb", "us"), ("spark", "us"), ("polars", "ns"), ("duckdb", "ns")],
)
def test_one_row_does_not_decide_how_the_infinite_datetimes_of_other_rows_are_read(engine, unit, tmp_path):
    # To DuckDB the smallest integer but one is minus infinity, and the smallest one is a date like others.
    counts = []
    for one in ([], [-(2**63)]):
        path = tmp_path / f"{len(one)}.parquet"
        ticks = pl.Series("when", [1, *[-(2**63) + 1] * 9, *one]).cast(pl.Datetime(unit))
        ticks.to_frame().write_parquet(path)
        table = open_table(path, {}, columns=["when"], engine=engine)
        data = Dataset(table, unit="row", neighbours="add-remove")
        (when,) = data.parts("when", bits=SeededBits(1))
        counts.append(Matches(between=(-1e300, -1.0)).sums(when))
    assert counts == [Sums(10, 9), Sums(11, 10)]


# --- ids with categories --------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("schema_is_told", [True, False])
@pytest.mark.parametrize("lazy", [False, True])
def test_ids_that_were_read_as_categories_are_no_units(tmp_path, ending, schema_is_told, lazy):
    rows = pl.DataFrame({"id": ["a", "b", "c", "c"], "x": [1, 2, 3, 4]})
    path = tmp_path / f"people.{ending}"
    rows.write_csv(path) if ending == "csv" else rows.write_parquet(path)
    about = {"unit": "id", "rows_per_unit": 1, "neighbours": "add-remove"}
    schema = {"id": sf.Field(categories=("a",)), "x": sf.Field(kind="integer")}
    table = tables.open_table(path, schema, columns=["id", "x"])
    found = pl.DataFrame(table).lazy() if lazy else table
    with pytest.raises(InvalidParameter, match=r"ids as they are stored, got unit='id'.*without"):
        sf.Dataset(found, **about, schema=schema if schema_is_told else None)
    # As ids are stored, categories are of no matter to them.
    sf.Dataset(rows, **about, schema=schema)
    sf.Dataset(rows.cast({"id": pl.Enum(["a", "b", "c"])}), **about)
    stored = tables.open_table(path, {**schema, "id": sf.Field(kind="text")}, columns=["id", "x"])
    sf.Dataset(stored, **about, schema=schema)
