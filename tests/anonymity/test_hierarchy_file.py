"""Hierarchies in TOML: each kind is read, and what is wrong is named with file, line and key."""

from pathlib import Path

import pytest

from sfumato.anonymity.hierarchies import Cuts, Dates, Listed, Prefix, Ranges, Tree
from sfumato.anonymity.hierarchy_file import read_hierarchies
from sfumato.errors import InvalidParameter

WHOLE = """
[hierarchies.age]
kind = "ranges"
origin = 0
width = 0.1
factor = 2
levels = 4

[hierarchies.hours]
kind = "ranges"
cuts = [[20, 35, 40], [35]]

[hierarchies.country]
kind = "tree"
missing = "unknown"
[hierarchies.country.tree]
Asia = ["Japan", "Korea"]
Europe.Iberia = ["Spain", "Portugal"]
Europe.North = ["Norway"]

[hierarchies.city]
kind = "tree"
parents = { Paris = "France", Lyon = "France", Rome = "Italy" }

[hierarchies."post code"]
kind = "prefix"
width = 5
levels = 3

[hierarchies.born]
kind = "dates"
levels = ["month", "year"]

[hierarchies.job]
kind = "listed"
file = "jobs.csv"
delimiter = ";"

[hierarchies.sex]
kind = "listed"
rows = [["f", "*"], ["m", "*"]]
"""


def test_every_kind_is_read_as_it_is_written_in_python(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("nurse;care;*\ndoctor;care;*\nclerk;office;*\n", encoding="utf-8")
    (tmp_path / "all.toml").write_text(WHOLE, encoding="utf-8")
    assert read_hierarchies(tmp_path / "all.toml") == {
        "age": Ranges(width=0.1, origin=0, factor=2, levels=4),
        "hours": Cuts([[20, 35, 40], [35]]),
        "country": Tree(
            {"Asia": ["Japan", "Korea"], "Europe": {"Iberia": ["Spain", "Portugal"], "North": ["Norway"]}},
            missing="unknown",
        ),
        "city": Tree({"Paris": "France", "Lyon": "France", "Rome": "Italy"}),
        "post code": Prefix(width=5, levels=3),
        "born": Dates(levels=("month", "year")),
        "job": Listed([["nurse", "care", "*"], ["doctor", "care", "*"], ["clerk", "office", "*"]]),
        "sex": Listed([["f", "*"], ["m", "*"]]),
    }


def test_numbers_are_read_as_they_are_written(tmp_path: Path) -> None:
    file = tmp_path / "h.toml"
    file.write_text('[hierarchies.x]\nkind = "ranges"\nwidth = 0.1\nlevels = 1')
    assert read_hierarchies(file)["x"].levels_of([0.3]).labels[1] == ("[0.3, 0.4)",)


WRONG = [
    ('kind = "rangs"', "line 2: hierarchies.age.kind: must be one of 'ranges', 'tree'"),
    ("", "line 1: hierarchies.age.kind: must be one of"),
    ('kind = "ranges"\nwidth = 0', "line 3: hierarchies.age.width: width must be positive, got width=0"),
    ('kind = "ranges"\nwidht = 5', "line 3: hierarchies.age.widht: is no key .* did you mean width?"),
    ('kind = "ranges"', "line 1: hierarchies.age: width or cuts must be given"),
    ('kind = "ranges"\nwidth = 1\ncuts = [[1]]', "line 4: hierarchies.age.cuts: .* not be given together"),
    ('kind = "ranges"\ncuts = [[1]]\nlevels = 2', "line 4: hierarchies.age.levels: .* together with cuts"),
    ('kind = "ranges"\ncuts = [[1], [2]]', "line 3: hierarchies.age.cuts: cuts of a level must be"),
    ('kind = "tree"\ntree = { a = "b" }', "line 3: hierarchies.age.tree: tree must be nested"),
    ('kind = "tree"\nparents = { a = ["b"] }', "line 3: hierarchies.age.parents: parents must be"),
    ('kind = "tree"\n[hierarchies.age.tree]\nx = ["a"]\ny = ["a"]', "line 3: hierarchies.age.tree: .* once"),
    ('kind = "dates"\nlevels = ["week"]', "line 3: hierarchies.age.levels: levels must be some of day"),
    ('kind = "prefix"\nmask = "ab"', "line 3: hierarchies.age.mask: mask must be one character"),
    ('kind = "listed"\nfile = "none.csv"', "line 3: hierarchies.age.file: .*none.csv: cannot be read"),
    ('kind = "listed"\nfile = "bad.csv"', "line 3: hierarchies.age.file: a level must not split"),
    ('kind = "listed"\nfile = 3', "line 3: hierarchies.age.file: must be the path"),
    ('kind = "listed"\nfile = "bad.csv"\ndelimiter = "--"', "line 4: hierarchies.age.delimiter: must be one"),
    ('kind = "listed"\nrows = [["a", "b"]]\ndelimiter = ";"', "line 4: hierarchies.age.delimiter: goes with"),
    ('kind = "prefix"\nmissing = 3', "line 3: hierarchies.age.missing: missing must be text"),
]


@pytest.mark.parametrize(("body", "words"), WRONG)
def test_what_is_wrong_is_named_with_file_line_and_key(tmp_path: Path, body: str, words: str) -> None:
    (tmp_path / "bad.csv").write_text("a,x,p\nb,x,q\n")
    file = tmp_path / "h.toml"
    file.write_text(f"[hierarchies.age]\n{body}\n")
    with pytest.raises(InvalidParameter, match=f"h.toml, {words}"):
        read_hierarchies(file)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"x = ", "is no TOML"),
        (b"\xff\xfe", "UTF-8"),
        (b"k = 3", "tables .hierarchies.<column>. and no others, got 'k'"),
        (b"", "got none"),
        (b"hierarchies = 3", "got none"),
        (b"hierarchies = { age = 3 }", "hierarchies.age: must be a table"),
    ],
)
def test_files_without_hierarchies_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "h.toml"
    file.write_bytes(content)
    with pytest.raises(InvalidParameter, match=words):
        read_hierarchies(file)


def test_a_file_that_is_not_there_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="cannot be read"):
        read_hierarchies(tmp_path / "none.toml")
