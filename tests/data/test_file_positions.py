"""How a line of a CSV file is read depends on the header and on the line alone, in every engine.

The property is: the rows of a file are the rows of its lines, each read alone below the header.
"""

import random
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.engines import SPARK

from sfumato import Histogram, PureDP
from sfumato.audit.exact import exact
from sfumato.data.field import Field
from sfumato.data.file_faults import FileFault
from sfumato.data.tables import open_table

Outcome = list[tuple[Any, ...]] | str

ENGINES = ["polars", "duckdb", pytest.param("spark", marks=pytest.mark.spark)]
BOM = "\ufeff".encode()
FIELDS = {"c": Field(categories=("a", "b")), "note": Field(kind="text"), "z": Field(kind="text")}
HEADER, PLAIN = b"c,note,z", b"a,plain,b"
ROW = ("a", "plain", "b")

CATEGORIES = ("Cc", "Cf", "Zs", "Zl", "Zp", "Pi", "Pf")
LETTERS = [chr(i) for i in range(sys.maxunicode + 1) if unicodedata.category(chr(i)) in CATEGORIES]
# Of private and unassigned characters the ends of some ranges.
SAMPLES = "\"'`#\\\ue000\uf8ff\U00100000\U0010fffd\u0378\u0870\ufffe\U0010ffff"
INVALID = [
    b"\x80",
    b"\xff",
    b"\xc3",
    b"\xc0\x80",
    b"\xe2\x80",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x98",
    b"\xf4\x90\x80\x80",
]
# No line holds a LF, which ends it.
ODD = [*(letter.encode() for letter in (*LETTERS, *SAMPLES) if letter != "\n"), *INVALID]


def expected(cells: tuple[bytes, ...], quoted: bool = False) -> Outcome:
    """What a line of these cells must be read as: nothing but text, or one kind of fault."""
    line = b",".join(cells)
    if b"\0" in line:
        return "binary"
    try:
        line.decode()
    except UnicodeDecodeError:
        return "encoding"
    if not quoted and b'"' in line:
        return "quoted line end" if any(cell.startswith(b'"') for cell in cells) else "quote"
    if not quoted and b"\r" in line.removesuffix(b"\r"):
        return "line ends"
    first, *others = (cell.decode() or None for cell in cells)
    if not quoted:
        others = [*others[:-1], (others[-1] or "").removesuffix("\r")]
    return [(first if first in ("a", "b", None) else "another value", *others)]


def odd_lines() -> Iterator[tuple[bytes, Outcome]]:
    """Lines with an odd character at the start, in the middle, at the end and in quotes."""
    for odd in ODD:
        for cells in ((odd + b"a", b"x", b"b"), (b"a", odd, b"b"), (b"a", b"x", b"b" + odd)):
            yield b",".join(cells), expected(cells)
        inner = odd.replace(b'"', b'""')
        yield b'"' + inner + b'",x,b', expected((odd, b"x", b"b"), quoted=True)


LINES = dict(odd_lines())
SOUND = {line: outcome for line, outcome in LINES.items() if not isinstance(outcome, str)}
FAULTY = {line: outcome for line, outcome in LINES.items() if isinstance(outcome, str)}


def read(path: Path, fields: dict[str, Field] = FIELDS, engine: Any = None) -> Outcome:
    """The rows of a table, with text that is no category as one word; or the kind of its fault."""
    try:
        found = open_table(path, fields, columns=list(fields), engine=engine)
    except FileFault as fault:
        return fault.fault
    if isinstance(found, dict):
        return list(zip(*(series.to_list() for series in found.values()), strict=True))
    if isinstance(found, pl.LazyFrame):
        rows = found.collect().rows()
    else:
        rows = [tuple(row) for row in (found.fetchall() if engine == "duckdb" else found.collect())]
    words = [field.categories for field in fields.values()]
    return [
        tuple(
            "another value" if known and cell not in (*known, None) else cell
            for cell, known in zip(row, words, strict=True)
        )
        for row in rows
    ]


def write(path: Path, lines: Iterable[bytes], header: bytes = HEADER, end: bytes = b"\n") -> Path:
    path.write_bytes(b"\n".join([header, *lines]) + end)
    return path


def counted(rows: Outcome) -> Counter[Any]:
    return Counter([rows] if isinstance(rows, str) else rows)


@pytest.fixture(autouse=True)
def small_pieces(request, monkeypatch):
    """Let engines cut files into small pieces, and start Spark for a test of it."""
    monkeypatch.setenv("POLARS_CSV_CHUNK_SIZE", "64")
    if "spark" not in request.node.name:
        yield
        return
    session = SPARK.session()
    names = "spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes"
    for name in names:
        session.conf.set(name, "2000")
    yield
    for name in names:
        session.conf.unset(name)


def test_every_kind_of_character_is_there():
    assert len(LETTERS) > 250
    assert {"\ufeff", "\x85", "\u2028", "\u2029", "\u200b", "\x1a", "«", "\u3000", "\0", "\r"} <= set(LETTERS)
    assert {*FAULTY.values()} == {"binary", "encoding", "quote", "quoted line end", "line ends"}
    assert len(FAULTY) < 50


def test_an_odd_line_is_read_alike_at_every_place_of_a_file(tmp_path):
    path = tmp_path / "people.csv"
    for place, (line, outcome) in enumerate(LINES.items()):
        if place % 4 == 0:
            assert read(write(path, [line])) == outcome, line
        # As first and as last line, after each kind of header and before each kind of end.
        end, top = (b"", b"\n", b"\r\n")[place % 3], (HEADER, BOM + HEADER, HEADER + b"\r")[place % 3]
        if line.endswith(b"\r"):
            end = b"\n"
        between = outcome if isinstance(outcome, str) else [*outcome, ROW, *outcome]
        assert read(write(path, [line, PLAIN, line], top, end)) == between, line
    everything = read(write(path, SOUND))
    assert everything == [row for outcome in SOUND.values() for row in outcome]
    for line, outcome in FAULTY.items():
        for lines in ([line, *SOUND], [*SOUND, line]):
            assert read(write(path, lines)) == outcome, line


@pytest.mark.parametrize("engine", ENGINES)
def test_an_odd_line_is_read_alike_at_every_place_by_every_engine(engine, tmp_path):
    # The first and last line of a file of its own, and one of many; where an engine cuts a file up, too.
    many, one = tmp_path / "many", tmp_path / "one.csv"
    many.mkdir()
    for place, line in enumerate(SOUND):
        write(many / f"{place}.csv", [line, PLAIN, line], (HEADER, BOM + HEADER)[place % 2])
    rows = [row for outcome in SOUND.values() for row in outcome]
    assert counted(read(many, engine=engine)) == counted([*rows, *rows, *[ROW] * len(rows)])
    for lines in (list(SOUND), random.Random(3).sample(sorted(SOUND), len(SOUND))):
        assert counted(read(write(one, lines), engine=engine)) == counted(rows)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_faulty_line_has_its_fault_at_every_place_in_every_engine(engine, tmp_path):
    lines = dict(list(FAULTY.items())[:: 1 if engine == "polars" else 5])
    for place, (line, fault) in enumerate(lines.items()):
        for others in ([PLAIN, line], [line, PLAIN])[place % 2 :: 1 if engine == "polars" else 2]:
            assert read(write(tmp_path / "people.csv", others), engine=engine) == fault, line


@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_in_one_column_every_line_is_a_row(engine, tmp_path):
    # Lines of blanks and empty ones too, which some readers of CSV pass over; and the header once more.
    texts = [odd.decode() for odd in ODD[: -len(INVALID)] if odd not in b'\0\r"']
    lines = ["", "\r", "note", "note\r", '""', " ", "\t", *texts, '"\r"', '"\r"\r', '"note"']
    cells = [None, None, "note", "note", None, " ", "\t", *texts, "\r", "\r", "note"]
    for end in (b"\n", b"\r\n"):
        path = write(tmp_path / "people.csv", map(str.encode, lines), b"note" + end[:-1], end)
        assert counted(read(path, {"note": FIELDS["note"]}, engine)) == counted([(cell,) for cell in cells])


@pytest.mark.parametrize("kind", ["integer", "real", "boolean", "date"])
def test_an_odd_number_is_read_alike_at_every_place(kind, tmp_path):
    number = {"boolean": b"1", "date": b"2026-01-31"}.get(kind, b"12")
    fields, path, seen = {"x": Field(kind=kind)}, tmp_path / "people.csv", set()
    plain = read(write(path, [number], b"x"), fields)
    for odd in ODD[:: 1 if kind == "integer" else 5]:
        for line in (odd + number, number + odd):
            alone = read(write(path, [line], b"x"), fields)
            seen.add(str(alone))
            whole = alone if isinstance(alone, str) else [*alone, *plain, *alone]
            assert read(write(path, [line, number, line], b"x"), fields) == whole, line
    assert {"values", "encoding"} <= seen


def test_lines_of_any_bytes_are_read_one_by_one(tmp_path):
    # The rows of a file are those of its lines; a file has a fault if a line has it.
    draw = random.Random(5)
    usual, odd = [b"a", b"b", b" ", b"1", BOM, "é".encode()], [b",", b'"', b'""', b"\r", b"\0", b"\xc3"]
    path = tmp_path / "people.csv"
    fields = {"c": FIELDS["c"], "note": FIELDS["note"]}
    reads = 0
    for _ in range(150):
        lines = []
        for _ in range(3):
            parts = [draw.choice(odd if draw.random() < 0.1 else usual) for _ in range(draw.randint(0, 4))]
            lines.append(b"".join([*parts, b",b", *draw.sample(odd, draw.random() < 0.1)]))
        parts = [read(write(path, [line], b"c,note"), fields) for line in lines]
        whole = read(write(path, lines, b"c,note"), fields)
        faults = [part for part in parts if isinstance(part, str)]
        reads += not faults
        assert whole == (faults[0] if faults else [row for part in parts for row in part]), lines
    assert reads > 30


@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_a_byte_order_mark_in_a_row_moves_a_histogram_by_what_is_charged(engine, tmp_path):
    fields = {"c": FIELDS["c"]}
    both, one = (
        read(write(tmp_path / name, lines, b"c,z"), fields, engine)
        for name, lines in (("both.csv", [b"b,1", BOM + b"a,1"]), ("one.csv", [BOM + b"a,1"]))
    )
    assert counted(both) == counted([("b",), ("another value",)])
    assert one == [("another value",)]
    query = Histogram(budget=PureDP(1), categories=("a", "b"), other=True, neighbours="add-remove")
    loss = exact(query, *([cell for (cell,) in rows] for rows in (both, one)))
    assert loss.verdict != "VIOLATED"
    # As it was when the mark was dropped in the first row.
    assert exact(query, ["b", "another value"], ["a"]).verdict == "VIOLATED"
