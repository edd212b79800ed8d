"""CSV files that differ in one line: if both are read, they differ in one row at most."""

import itertools
import random
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sfumato.data import file_bytes, file_csv, files
from sfumato.data.field import Field
from sfumato.data.file_bytes import Header, Source
from sfumato.data.file_faults import FileFault

Row = tuple[object, ...]

SCHEMA = {"x": Field(kind="integer"), "team": Field(kind="text", categories=("a", "b"))}
# Cells as they occur, and cells with a quote, a separator or a line end at every place that matters.
SOUND = ["a", "b", "", '"d"', '"g""h"', '""', '"r,s"', '""""', '","', "'", "#", "\r", '"\r"', '"\\""']
SPOILT = [
    'b"',
    '"c',
    'e"f',
    '"',
    '"""',
    'x"y"z',
    '"p\nq"',
    '"p\n',
    '\nq"',
    '"," ',
    ' "a"',
    '"a"b',
    '""a',
    'a""',
]
NUMBERS = ["1", "2", "3", "1", "2", "3", '"4"', "", '"5', '5"']
HEADERS = {
    "x,note": ["x"],
    "note,x": ["x"],
    "note,x,other": ["x", "note"],
    "note,team": ["team"],
    "team,note,other": ["other"],
    "note": ["note"],
}


def line(names: list[str], draw: random.Random, plain: float) -> str:
    if draw.random() < plain:
        return ",".join(str(draw.randint(1, 9)) if name == "x" else "a" for name in names)
    cells = draw.choice([SOUND, SPOILT])
    pools = {"x": NUMBERS, "team": ["a", "b", '"a"']}
    return ",".join(draw.choice(pools.get(name, cells)) for name in names)


def rows_of(path: Path, header: str, lines: list[str]) -> list[Row] | None:
    """The rows that are read from these lines below a header, or None if the file is refused."""
    path.write_bytes("\n".join([header, *lines, ""]).encode())
    try:
        found = files.read(path, SCHEMA, columns=HEADERS[header])
    except FileFault:
        return None
    return list(zip(*(series.to_list() for series in found.values()), strict=True))


def apart(some: list[Row], others: list[Row]) -> int:
    """How many rows are left when what both begin and end with is taken away."""
    while some and others and some[0] == others[0]:
        some, others = some[1:], others[1:]
    while some and others and some[-1] == others[-1]:
        some, others = some[:-1], others[:-1]
    return max(len(some), len(others))


def neighbours(names: list[str], lines: list[str], draw: random.Random) -> Iterator[list[str]]:
    for _ in range(2):
        i = draw.randrange(len(lines))
        yield [*lines[:i], line(names, draw, 0.3), *lines[i + 1 :]]
    # Where something is there to lose.
    odd = [i for i, text in enumerate(lines) if '"' in text] or [0]
    i = draw.choice(odd)
    yield [*lines[:i], line(names, draw, 1), *lines[i + 1 :]]
    yield lines[:i] + lines[i + 1 :]
    i = draw.randrange(len(lines) + 1)
    yield [*lines[:i], line(names, draw, 0.3), *lines[i:]]


def farthest(path: Path, *, tries: int, seed: int) -> tuple[int, int]:
    """The most rows by which two files differ that are both read and differ in a line; how many pairs."""
    draw = random.Random(seed)
    most = pairs = 0
    for _ in range(tries):
        header = draw.choice(list(HEADERS))
        names = header.split(",")
        lines = [line(names, draw, 0.6) for _ in range(draw.randint(1, 9))]
        before = rows_of(path, header, lines)
        if before is None:
            continue
        for others in neighbours(names, lines, draw):
            after = rows_of(path, header, others)
            if after is not None:
                pairs += 1
                most = max(most, apart(before, after))
        if most > 1:
            break
    return most, pairs


@pytest.mark.parametrize("block", [3, 2**18])
def test_one_line_changes_one_row_at_most(block, tmp_path, monkeypatch):
    monkeypatch.setattr(file_bytes, "BLOCK", block)
    most, pairs = farthest(tmp_path / "people.csv", tries=400, seed=block)
    assert most == 1
    assert pairs > 300


class _Anything(int):
    """A number that no number differs from, so that no height of a table is refused."""

    def __ne__(self, other: object) -> bool:
        return False


def _toggling(source: Source, header: Header) -> int:
    """The rows if every quote opens or closes, wherever it is, and line ends inside quotes are no ends."""
    body = b"".join(source.blocks())[header.size :].rstrip(b"\r\n")
    if body.count(b'"') % 2:
        raise FileFault(source.shown, "quote")
    bare = re.sub(rb'"[^"]*"', b"", body)
    rows = bare.split(b"\n") if body else []
    if any(row.count(header.separator.encode()) != len(header.names) - 1 for row in rows):
        raise FileFault(source.shown, "ragged")
    return _Anything(len(rows))


def test_a_count_for_which_every_quote_opens_or_closes_is_caught(tmp_path, monkeypatch):
    monkeypatch.setattr(file_csv, "csv_rows", _toggling)
    most, _ = farthest(tmp_path / "people.csv", tries=2_000, seed=1)
    assert most > 1


def test_two_lines_of_a_person_do_not_take_the_rows_between_them(tmp_path, monkeypatch):
    others = [f"a,{i % 9}" for i in range(100)]
    path = tmp_path / "people.csv"
    for first, last in (('"a', 'b",1'), ('5" pipe,1', '7" pipe,1'), ('"c,1', 'x"y"z,3'), ('a,"1', '1"')):
        assert rows_of(path, "note,x", [first, *others, last]) is None
    # A field of several lines would be the way to do it.
    monkeypatch.setattr(file_csv, "csv_rows", _toggling)
    assert len(rows_of(path, "note,x", others) or ()) == 100
    assert len(rows_of(path, "note,x", ['"a', *others, 'b",1']) or ()) == 1


@pytest.mark.parametrize("first", ['e"f,1', '"z,2', "a,1"])
def test_one_line_does_not_decide_which_stray_quotes_open(first, tmp_path):
    lines = [first, *["a,1"] * 1_000, '"c,2', *["a,5"] * 1_000, 'x"y"z,3']
    assert rows_of(tmp_path / "people.csv", "note,x", lines) is None


def test_one_line_would_decide_it_if_every_quote_opened_or_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(file_csv, "csv_rows", _toggling)
    below = [*["a,1"] * 1_000, '"c,2', *["a,5"] * 1_000, 'x"y"z,3']
    read = [rows_of(tmp_path / "people.csv", "note,x", [first, *below]) for first in ('e"f,1', '"z,2')]
    assert apart(read[0] or [], read[1] or []) > 1_000


def test_a_file_of_which_polars_makes_other_rows_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "people.csv"
    assert rows_of(path, "note,x", ["a,1"]) == [(1,)]
    for rows in (2, 4, 1_000):
        monkeypatch.setattr(file_csv, "csv_rows", lambda *_, n=rows: n)
        with pytest.raises(FileFault, match="cannot be read as a table"):
            files.read(path, SCHEMA, columns=["x"])


def test_a_file_is_read_line_by_line(tmp_path):
    # Stronger than the rule for neighbours: a file is read exactly if each line alone is, and as these are.
    draw = random.Random(7)
    path = tmp_path / "people.csv"
    alone: dict[tuple[str, str], list[Row] | None] = {}
    reads = 0
    for _ in range(400):
        header = draw.choice(list(HEADERS))
        lines = [line(header.split(","), draw, 0.5) for _ in range(draw.randint(2, 5))]
        if any("\n" in text for text in lines):
            lines = "\n".join(lines).split("\n")
        for text in lines:
            if (header, text) not in alone:
                alone[header, text] = rows_of(path, header, [text])
        parts = [alone[header, text] for text in lines]
        whole = rows_of(path, header, lines)
        if whole is not None:
            reads += 1
            assert whole == [row for part in parts for row in part or ()]
        assert (whole is None) == any(part is None for part in parts)
    assert reads > 50


class _Text(Source):
    """A file that is a text, in blocks of one length."""

    def blocks(self) -> Iterator[bytes]:
        for start in range(0, len(self.path), file_bytes.BLOCK):
            yield self.path[start : start + file_bytes.BLOCK].encode()


def _rows(text: str, fields: int) -> int | str:
    header = Header(tuple("xyz"[:fields]), ",", "", 0)
    try:
        return file_bytes.csv_rows(_Text(text, "text", "csv", False, ()), header)
    except FileFault as fault:
        return fault.fault


QUOTED = r'"(?:[^"\n]|"")*"'
FIELD = rf'(?:{QUOTED}|[^",\r\n]*)'


def _expected(text: str, fields: int) -> int | None:
    """The number of rows by the grammar of a line, one line after the other."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    row = re.compile(rf"(?:{FIELD},){{{fields - 1}}}{FIELD}\r?")
    return len(lines) if all(map(row.fullmatch, lines)) else None


@pytest.mark.parametrize("fields", [1, 2])
@pytest.mark.parametrize("block", [1, 4])
def test_every_short_text_has_the_rows_that_its_lines_have(fields, block, monkeypatch):
    monkeypatch.setattr(file_bytes, "BLOCK", block)
    sound = 0
    for length in range(8):
        for letters in itertools.product('a,"\n\r', repeat=length):
            text = "".join(letters)
            found, expected = _rows(text, fields), _expected(text, fields)
            sound += expected is not None
            assert (found if isinstance(found, int) else None) == expected, (text, found)
    assert sound > 500


def test_a_text_with_quoted_line_ends_alone_is_told_so():
    for text in ('"a\nb",1\n', 'a,"\n"\n', '"\r\n",""\n', 'a,"b\n', 'a,"b'):
        assert _rows(text, 2) == "quoted line end", text
    for text in ('a"b",1\n', '"a"b,1\n', 'a,b"\nc"\n', '"a"\r,1\n', '"a"\r\r\n', ' "a",1\n', '"a" ,1\n'):
        assert _rows(text, 2) == "quote", text


def test_parities_are_those_of_a_running_count():
    draw = np.random.default_rng(5)
    for length in (*range(1, 300), 5_000):
        flags = draw.random(length) < draw.random()
        assert file_bytes._parity(flags).tolist() == (np.cumsum(flags) % 2 == 1).tolist()
