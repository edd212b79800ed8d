"""Files that cannot be read as declared: each has a clear message of its kind, and none tells a value."""

import gzip
import io
import os
import stat
import subprocess
import sys
import traceback
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.data import file_csv, files
from sfumato.data.admission import admit
from sfumato.data.field import Field
from sfumato.data.file_faults import FAULTS, FileFault
from sfumato.errors import InvalidParameter, SchemaMismatch, SfumatoError

# No header, path or message holds these by chance.
CANARY = "Kanarienvogel"
NUMBER = "73194628"
SCHEMA = {
    "age": Field(kind="integer"),
    "pay": Field(kind="real"),
    "team": Field(kind="text", categories=("red", "blue")),
    "note": Field(kind="text"),
    "member": Field(kind="boolean"),
}
TOP = "age,pay,team,note,member\n"
ROW = f"{NUMBER},{NUMBER}.5,{CANARY},{CANARY},true"
SHORT = f"{NUMBER},1,red,{CANARY}"
GOOD = f"{TOP}{ROW}\n".encode()
LONG = (TOP + f"{ROW}\n" * 5_000).encode()
LATIN = f"1,1,red,{CANARY}é,true\n".encode("latin-1")
SEMICOLONS = f"{TOP.replace(',', ';')}1;{NUMBER},5;red;x;true\n".encode()
PACKED = gzip.compress(LONG)
OLD_WORKBOOK = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + CANARY.encode() * 99
WHOLE = "column 'age' is declared integer, but the file holds text there that is no whole number of 64 bits"
REAL = "column 'pay' is declared real, but the file holds text there that is no number"


def _workbook() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as book:
        book.writestr("[Content_Types].xml", "<Types/>")
        book.writestr("xl/worksheets/sheet1.xml", CANARY)
    return file.getvalue()


def _archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as book:
        book.writestr("people.csv", GOOD.decode())
    return file.getvalue()


def _parquet(**columns: object) -> bytes:
    file = io.BytesIO()
    others = {"age": [1], "pay": [1.0], "team": ["red"], "note": [CANARY], "member": [True]}
    pl.DataFrame({**others, **columns}).write_parquet(file)
    return file.getvalue()


_WORDS = pl.Series([CANARY], dtype=pl.Enum([CANARY, NUMBER]))
TABLE = _parquet(
    age=[int(NUMBER)] * 2_000,
    pay=[1.5] * 2_000,
    team=[CANARY] * 2_000,
    note=[f"{CANARY}{i}" for i in range(2_000)],
    member=[True] * 2_000,
)


def people(*rows: str) -> bytes:
    return (TOP + "".join(f"{row}\n" for row in rows)).encode()


OPEN = ("quoted line end", "has a line end inside quotes, or a quote that is not closed in its line")

# Each with its bytes, the kind of its fault, and words of the message.
Wrong = dict[str, tuple[bytes, str, str]]

WRONG_TEXT: Wrong = {
    "no bytes": (b"", "empty", "is empty: it has no header"),
    "only line ends": (b"\xef\xbb\xbf\r\n\r\n", "empty", "no header"),
    "a new workbook": (_workbook(), "excel", "is an Excel workbook; save it as CSV UTF-8"),
    "an old workbook": (OLD_WORKBOOK, "excel", "is an Excel workbook; save it as CSV UTF-8"),
    "a zip archive": (_archive(), "archive", "unpack it"),
    "zstandard": (b"\x28\xb5\x2f\xfd" + CANARY.encode(), "compression", "gzip"),
    "a table packed twice": (gzip.compress(gzip.compress(GOOD)), "compression", "gzip"),
    "UTF-16": (GOOD.decode().encode("utf-16"), "utf-16", "is UTF-16 text; save it as CSV UTF-8"),
    "UTF-16 without a mark": (GOOD.decode().encode("utf-16-le"), "binary", "NUL"),
    "Latin-1": (GOOD + LATIN, "encoding", "is not UTF-8 text; save it as CSV UTF-8"),
    "Latin-1 in a header": (GOOD.replace(b"note", b"n\xe9"), "encoding", "not UTF-8"),
    "Latin-1 far down": (LONG + LATIN, "encoding", "not UTF-8"),
    "a NUL at the start": (GOOD + b"1,1,red,\0,true\n", "binary", "NUL bytes"),
    "a NUL far down": (LONG + b"1,1,red,\0,true\n", "binary", "NUL bytes"),
    "old Macintosh line ends": (GOOD.replace(b"\n", b"\r"), "line ends", "CR alone"),
    "a CR in a row": (
        people(ROW, f"1,1,red,{CANARY}\r{CANARY},true"),
        "line ends",
        "a CR in a row outside quotes",
    ),
    "two CR at the end of a row": (people(ROW, f"{ROW}\r\r"), "line ends", "CR alone"),
    "a long line": (people(ROW, ROW * 10**6), "long line", "has a line of more than 16 MiB"),
    "a field too many": (people(ROW, f"{ROW},1"), "ragged", "rows with more or fewer fields"),
    "a field too many at first": (people(f"{ROW},1", ROW), "ragged", "rows with more or fewer fields"),
    "a field too few": (people(ROW, SHORT, ROW), "ragged", "rows with more or fewer fields"),
    "a field too few at first": (people(SHORT, ROW), "ragged", "rows with more or fewer fields"),
    "a field too few at the end": (people(ROW, SHORT)[:-1], "ragged", "rows with more or fewer fields"),
    "one too many, one too few": (people(f"{ROW},1", SHORT), "ragged", "rows with more or fewer fields"),
    "an empty line inside": (people(ROW, "", ROW), "ragged", "rows with more or fewer fields"),
    "an empty line at the end": (people(ROW, ""), "ragged", "remove empty lines, also at the end"),
    "an empty line after CR LF": (people(f"{ROW}\r", "\r"), "ragged", "remove empty lines"),
    "ragged far down": (LONG + SHORT.encode(), "ragged", "rows with more or fewer fields"),
    "a quote never closed": (people(f'1,1,red,"{CANARY},true', ROW), *OPEN),
    "a quote never closed at the end": (people(ROW, f'1,1,red,x,"{CANARY}')[:-1], *OPEN),
    "a quote never closed in the header": (f'age,"pay\n{ROW}'.encode(), *OPEN),
    "a name of two lines": (f'age,"pay\n{CANARY}"\n1,2\n'.encode(), *OPEN),
    "a field of two lines": (people(ROW, f'1,1,red,"{CANARY}\n{NUMBER}",true', ROW), *OPEN),
    "a field of two lines far down": (LONG + f'1,1,red,"\r\n{CANARY}",true\n'.encode(), *OPEN),
    "a field over two rows": (people(f'1,1,red,"{CANARY}', f'{CANARY}",true'), *OPEN),
    "text after a quote": (people(f'1,1,red,"{CANARY}"x,true'), "quote", "text beside a quoted field"),
    "text before a quote": (people(f'1,1,red,x"{CANARY}",true'), "quote", "text beside a quoted field"),
    "a space before a quote": (people(f'1,1,red, "{CANARY}",true'), "quote", "text beside a quoted field"),
    "inches": (people(f'1,1,red,5" {CANARY},true', f'1,1,red,7" {CANARY},true'), "quote", "text beside"),
    "a quote in a name": (f'age,p"a"y\n{NUMBER},1\n'.encode(), "quote", "text beside a quoted field"),
    "an endless header": (b"a," * 2**24, "header", "must begin with one line of column names"),
    "too many columns": (
        (",".join(f"c{i}" for i in range(70_000)) + "\n").encode(),
        "header",
        "must have at most 65,536 columns; got 70,000. Save it as Parquet",
    ),
    "a header without a name": (f",,\n{ROW}".encode(), "header", "must begin with one line of column names"),
    "an endless name": (b"a" * 2**15 + b",b\n1,2\n", "header", "must begin with one line of column names"),
    "two columns of a name": (
        f"age,age\n{NUMBER},1\n".encode(),
        "duplicate column",
        "two columns named 'age'",
    ),
    "a row for a header, with a number twice": (
        f"{NUMBER},{CANARY},{NUMBER}\n1,2,3\n".encode(),
        "duplicate column",
        "has two columns of one name; its first line must hold the names",
    ),
    "a row for a header, with a word twice": (
        f"{NUMBER},{CANARY},{CANARY}\n1,2,3\n".encode(),
        "duplicate column",
        "has two columns of one name; its first line must hold the names",
    ),
    "text among integers": (people(f"{CANARY},1,red,x,true"), "values", WHOLE),
    "text among integers far down": (LONG + f"{CANARY},1,red,x,true\n".encode(), "values", WHOLE),
    "a decimal among integers": (people(f"{NUMBER}.0,1,red,x,true"), "values", WHOLE),
    "an integer beyond 64 bits": (people(f"{NUMBER * 3},1,red,x,true"), "values", WHOLE),
    "thousands separators": (people(f'"{NUMBER},000",1,red,x,true'), "values", WHOLE),
    "text among reals": (people(f"1,{CANARY},red,x,true"), "values", REAL),
    "a decimal comma": (SEMICOLONS, "values", REAL),
    "text among booleans": (people(f"1,1,red,x,{CANARY}"), "values", "column 'member' is declared boolean"),
}

WRONG_GZIP: Wrong = {
    "no bytes in gzip": (gzip.compress(b""), "empty", "no header"),
    "gzip cut short": (PACKED[:-20], "gzip", "is compressed by gzip, but cut short or damaged"),
    "gzip without its checksum": (PACKED[:-8], "gzip", "cut short or damaged"),
    "gzip with a wrong checksum": (PACKED[:-8] + bytes(8), "gzip", "cut short or damaged"),
    "gzip with a flipped byte": (PACKED[:20] + bytes([PACKED[20] ^ 255]) + PACKED[21:], "gzip", "damaged"),
    "a row too short in gzip": (
        gzip.compress(LONG + SHORT.encode()),
        "ragged",
        "rows with more or fewer fields",
    ),
    "a workbook in gzip": (gzip.compress(_workbook()), "excel", "is an Excel workbook"),
}

WRONG_PARQUET: Wrong = {
    "a file of CSV called Parquet": (GOOD, "parquet", "is no Parquet file"),
    "an empty file called Parquet": (b"", "parquet", "is no Parquet file"),
    "Parquet without its end": (TABLE[:-9], "parquet", "cut short"),
    "half of a Parquet file": (TABLE[: len(TABLE) // 2], "parquet", "cut short"),
    "the first four bytes of Parquet": (TABLE[:4], "parquet", "cut short"),
    "Parquet with a damaged page": (TABLE[:4] + bytes(64) + TABLE[68:], "parquet", "damaged"),
    "a list": (
        _parquet(age=[[int(NUMBER)]]),
        "stored type",
        "'age' is declared integer, but the file stores List",
    ),
    "a struct": (_parquet(note=[{CANARY: 1}]), "stored type", "declared text, but the file stores Struct"),
    "categories for integers": (_parquet(age=_WORDS), "stored type", "integer, but the file stores Enum"),
    "a list of categories": (
        _parquet(note=_WORDS.implode()),
        "stored type",
        "text, but the file stores List",
    ),
    "reals for integers": (
        _parquet(age=[0.5]),
        "stored type",
        "declared integer, but the file stores Float64",
    ),
    "text for reals": (_parquet(pay=[NUMBER]), "stored type", "declared real, but the file stores String"),
}

WRONG = {
    case: (name, *facts)
    for name, cases in (
        ("people.csv", WRONG_TEXT),
        ("people.csv.gz", WRONG_GZIP),
        ("people.parquet", WRONG_PARQUET),
    )
    for case, facts in cases.items()
}


def refusal(path: Path | str, columns: tuple[str, ...] = tuple(SCHEMA)) -> FileFault:
    with pytest.raises(FileFault) as caught:
        files.read(path, SCHEMA, columns=columns)
    return caught.value


def everything_told(error: BaseException) -> str:
    """All that a log could show of an error: message, arguments, fields, causes, traceback."""
    told = [repr(error), str(error), repr(error.args), repr(vars(error))]
    told += traceback.format_exception(error)
    for other in (error.__cause__, error.__context__):
        told += [everything_told(other)] if other is not None else []
    return "\n".join(told)


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_gets_a_clear_message_without_a_value(case, tmp_path, capfd):
    name, content, fault, words = WRONG[case]
    path = tmp_path / name
    path.write_bytes(content)
    error = refusal(path)
    assert (error.fault, error.path) == (fault, str(path))
    assert str(error).startswith(f"{path} ")
    assert words in str(error)
    printed = "".join(capfd.readouterr())
    for canary in (CANARY, NUMBER):
        assert canary not in everything_told(error) + printed
    assert (error.__context__, error.__cause__) == (None, None)
    assert isinstance(error, SfumatoError)


@pytest.mark.parametrize("case", WRONG)
def test_the_header_of_a_wrong_file_tells_no_value_either(case, tmp_path, capfd):
    name, content, fault, _ = WRONG[case]
    path = tmp_path / name
    path.write_bytes(content)
    try:
        told, found = repr(files.header(path)), fault
    except FileFault as error:
        told, found = everything_told(error), error.fault
    # What the header needs is refused in the same words; what only reading finds may pass.
    assert found == fault
    assert not any(canary in told + "".join(capfd.readouterr()) for canary in (CANARY, NUMBER))


def _careless() -> None:
    try:
        int(CANARY)
    except ValueError:
        raise FileFault("people.csv", "parse") from None


def test_the_check_for_canaries_can_fail():
    with pytest.raises(FileFault) as caught:
        _careless()
    assert CANARY in everything_told(caught.value)


def test_the_errors_of_polars_quote_the_data_and_so_must_not_get_out(tmp_path, monkeypatch):
    path = tmp_path / "people.csv"
    path.write_bytes(WRONG_TEXT["text among integers"][0])
    monkeypatch.setattr(file_csv, "collected", lambda scan: scan.collect())
    with pytest.raises(pl.exceptions.ComputeError) as caught:
        files.read(path, SCHEMA, columns=["age"])
    assert CANARY in everything_told(caught.value)


def test_every_kind_of_fault_is_met_by_a_test():
    elsewhere = "missing, directory, special, permission, unreadable, changed, missing column, parse"
    elsewhere += ", arrow, no files, mixed files, file name"  # tests/data/test_tables.py
    assert {*elsewhere.split(", "), *(case[2] for case in WRONG.values())} == set(FAULTS)


@pytest.mark.parametrize("tell", [lambda p: files.read(p, SCHEMA, columns=["age"]), files.header])
def test_a_missing_file_and_a_directory_are_told_apart(tell, tmp_path):
    with pytest.raises(FileFault, match="does not exist") as caught:
        tell(tmp_path / "none.csv")
    assert caught.value.fault == "missing"
    with pytest.raises(FileFault, match="is a directory") as caught:
        tell(tmp_path)
    assert caught.value.fault == "directory"
    with pytest.raises(FileFault, match="does not exist"):
        tell(str(tmp_path / "no\0name.csv"))
    (tmp_path / "file").write_bytes(GOOD)
    with pytest.raises(FileFault, match="does not exist"):
        tell(tmp_path / "file" / "people.csv")


def test_addresses_and_patterns_are_names_of_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert refusal("https://example.org/people.csv").fault == "missing"
    (tmp_path / "one.csv").write_bytes(GOOD)
    assert refusal("*.csv").fault == "missing"
    (tmp_path / "o*[e].csv").write_bytes(GOOD)
    assert len(files.read("o*[e].csv", SCHEMA, columns=["age"])["age"]) == 1


def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    assert refusal(tmp_path / "pipe.csv").fault == "special"
    assert refusal("/dev/null").fault == "special"


def test_a_file_that_may_not_be_read_says_so(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(GOOD)
    path.chmod(0)
    if os.access(path, os.R_OK):  # as root, who may read everything
        _as_nobody(path)
    else:
        assert refusal(path).fault == "permission"
    path.chmod(stat.S_IRUSR | stat.S_IWUSR)


def _as_nobody(path: Path) -> None:
    code = (
        "import os, polars\n"
        "from sfumato.data import files\n"
        "os.setuid(65534)\n"
        "try: files.header('people.csv')\n"
        "except files.FileFault as error: print(error.fault, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=path.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "permission people.csv cannot be opened: this user may not read it\n", done.stderr


def test_an_error_of_the_system_while_reading_is_told_without_its_text(tmp_path, monkeypatch):
    path = tmp_path / "people.csv"
    path.write_bytes(GOOD)
    monkeypatch.setattr("builtins.open", _failing)
    assert refusal(path).fault == "unreadable"


def _failing(*args: object, **options: object) -> object:
    raise OSError(5, CANARY)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "people.csv"
    path.write_bytes(GOOD)
    count = file_csv.csv_rows

    def meanwhile(*args: object) -> object:
        found = count(*args)
        path.write_bytes(GOOD + f"{ROW}\n".encode())
        return found

    monkeypatch.setattr(file_csv, "csv_rows", meanwhile)
    assert refusal(path).fault == "changed"


def test_a_fault_that_no_column_shows_alone_is_still_told(tmp_path, monkeypatch):
    path = tmp_path / "people.csv"
    path.write_bytes(GOOD)
    answers = iter([None] + [pl.DataFrame()] * 5)
    monkeypatch.setattr(file_csv, "collected", lambda scan: next(answers))
    error = refusal(path)
    assert error.fault == "parse"
    assert "cannot be read as a table" in str(error)


def test_a_missing_column_lists_the_first_twenty_names(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(",".join(f"name{i}" for i in range(30)) + "\n" + ",".join([CANARY] * 30))
    error = refusal(path, ("age",))
    assert (error.fault, error.column) == ("missing column", "age")
    assert "has no column 'age'; its columns are 'name0', 'name1'" in str(error)
    assert "'name19', ..." in str(error)
    assert "name20" not in str(error)
    pl.DataFrame({"other": [1]}).write_parquet(tmp_path / "people.parquet")
    assert "its columns are 'other'" in str(refusal(tmp_path / "people.parquet", ("age",)))


def test_a_first_row_in_place_of_a_header_is_not_told(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(f"{NUMBER},1.5,red,{CANARY},true\n" * 3)
    error = refusal(path)
    assert error.fault == "missing column"
    assert "its first line must hold the names of the columns" in str(error)
    assert not any(canary in everything_told(error) for canary in (CANARY, NUMBER))


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (pl.Series([[CANARY]], dtype=pl.List(pl.Enum([CANARY]))), "List"),
        (pl.Series([{CANARY: 1}]), "Struct"),
        (np.array([(1,)], dtype=[(CANARY, "i8")]), "void"),
        (np.array([CANARY.encode()]), "bytes_"),
        (np.array([1], dtype="timedelta64[D]"), "timedelta64"),
    ],
)
def test_a_column_that_is_no_number_or_text_is_refused_by_the_bare_name_of_its_type(values, name):
    with pytest.raises(SchemaMismatch) as caught:
        admit(values, "x")
    assert str(caught.value) == f"column 'x' stores {name}, which is not a number, boolean, text or date"


def test_two_parquet_columns_of_a_name_are_refused(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = arrow.Table.from_arrays([arrow.array([1]), arrow.array([2])], names=["age", "age"])
    parquet.write_table(table, tmp_path / "people.parquet")
    assert refusal(tmp_path / "people.parquet", ("age",)).fault in ("duplicate column", "parquet")


def test_columns_must_be_distinct_and_some(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(GOOD)
    for columns in ([], ["age", "age"]):
        with pytest.raises(InvalidParameter, match="columns must be distinct names"):
            files.read(path, SCHEMA, columns=columns)


def test_a_fault_outside_the_needed_columns_is_one_only_if_it_spoils_the_table(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(TOP + f"{CANARY},{CANARY},red,x,{CANARY}\n")
    assert files.read(path, SCHEMA, columns=["team"])["team"].to_list() == ["red"]
    path.write_text(TOP + "1,1,red,x,true\n1,1,red\n")
    assert refusal(path, ("age",)).fault == "ragged"
