"""No text of others begins a formula in a spreadsheet or steers a terminal, and none is lost."""

import csv
import io
import unicodedata

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.safe_text import csv_bytes, csv_cell, visible

FORMULAS = [
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    '"=1',
    "'=1",
    "\ufeff=1",
    "＝1",
    "＋x",
]
FORMULAS += [
    "－x",
    "＠x",
    "−x",
    "\u200b=1",
    '=HYPERLINK("http://x","y")',
    "=cmd|' /C calc'!A0",
    "--1+1",
    "-x",
    "= ",
]
PLAIN = [
    "",
    "-",
    "-5",
    "+5",
    " -5",
    "-1.5e-3",
    "-1,5",
    "52.5,-13.4",
    "1;-2",
    "it's",
    "C:\\temp",
    "a=b",
    "a - b",
    "x@y.z",
]
PLAIN += ["👩‍👩‍👧 & Söhne", "10\xa0000", "שלום", "50%"]
LETTERS = st.sampled_from("=+-@＝－−,;'\"\\ ax15.\t\r\n\x1b\x00\x85\u202e\u2028\ufeff\u200b€")
STEERING = {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\ufeff", *map(chr, range(0x202A, 0x202F))}
STEERING |= set(map(chr, range(0x2066, 0x206A)))


def original(cell):
    """What a cell stands for, as docs/cli.md says."""
    if not cell.startswith("'"):
        return cell
    return cell[1:].encode("latin-1", "backslashreplace").decode("unicode_escape")


def begins_a_formula(cell):
    """What a spreadsheet may run, in plain Python."""
    bare = cell.lstrip(' \xa0"\xad\u200b\u200c\u200d\u2060')
    sign = unicodedata.normalize("NFKC", bare[:1]).replace("−", "-")
    if sign not in ("=", "+", "-", "@") or not sign or cell.strip(" ") == "-":
        return False
    try:
        return sign in "=@" or float(cell.strip(" ").replace(",", ".")) is None
    except ValueError:
        return True


@pytest.mark.parametrize("text", FORMULAS, ids=ascii)
def test_formulas_become_text(text):
    cell = csv_cell(text)
    assert cell.startswith("'")
    assert original(cell) == text


@pytest.mark.parametrize("text", PLAIN, ids=ascii)
def test_numbers_and_plain_texts_stay(text):
    assert csv_cell(text) == text


@given(st.text(LETTERS, max_size=12))
@example("a;=1+1")
@example("\\x1b")
@example(",\ufeff=1")
def test_every_cell_is_harmless_and_stands_for_one_text(text):
    cell = csv_cell(text)
    assert original(cell) == text
    assert not any(unicodedata.category(c) == "Cc" or c in STEERING for c in cell)
    # Programs that expect another separator cut the cell there.
    for part in cell.replace(";", ",").split(","):
        assert not begins_a_formula(part)


@given(st.lists(st.text(LETTERS, max_size=8) | st.none(), min_size=1, max_size=6))
def test_a_file_holds_the_cells_of_its_texts_and_the_numbers_as_they_are(texts):
    frame = pl.DataFrame({"=^x$": texts, "^x$": texts, "number": [-1.5] * len(texts)})
    rows = list(csv.reader(io.StringIO(csv_bytes(frame).decode(), newline="")))
    assert rows[0] == ["'=^x$", "^x$", "number"]
    cells = ["" if text is None else csv_cell(text) for text in texts]
    assert rows[1:] == [[cell, cell, "-1.5"] for cell in cells]


def test_categories_are_texts_too():
    frame = pl.DataFrame({"a": pl.Series(["=1", "b"], dtype=pl.Categorical), "b": [True, False]})
    assert csv_bytes(frame, separator=";") == b"a;b\n'=1;true\nb;false\n"


@given(st.text(LETTERS))
def test_text_on_a_terminal_has_no_control_characters_but_line_ends(text):
    shown = visible(text)
    assert not any(c != "\n" and (unicodedata.category(c) == "Cc" or c in STEERING) for c in shown)
    assert shown.count("\n") == text.count("\n")
