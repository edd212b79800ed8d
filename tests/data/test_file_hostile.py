"""Files that are made to exhaust a reader: holes, endless lines, bombs, and tables with very many columns."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sfumato.data import file_csv, files, tables
from sfumato.data.field import Field
from sfumato.data.file_faults import FileFault
from sfumato.data.tables import open_table, table_header

NUMBERS = {"a": Field(kind="integer")}
ROWS = b"a,b\n" + b"1,2\n" * 20_000
MEBIBYTE = 2**20

# Prints the outcome of each file, and by how many bytes the memory of the process grew at its peak.
MEASURE = """
import json, resource, sys
import duckdb, polars, pyarrow
from sfumato.data.field import Field
from sfumato.data.file_faults import FileFault
from sfumato.data.tables import open_table, table_header

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def outcome(work):
    try:
        return work()
    except FileFault as fault:
        return fault.fault

engine, *paths = sys.argv[1:]
def total(path):
    table = open_table(path, {"a": Field(kind="integer")}, columns=["a"], engine=engine or None)
    return table.select(polars.all().sum()).collect(engine="streaming").item()

before = peak()
found = [outcome(lambda: total(path)) for path in paths]
for path in paths:
    outcome(lambda: table_header(path))
print(json.dumps([found, peak() - before]))
"""


def measured(paths: list[Path], engine: str = "", timeout: int = 120) -> tuple[list[Any], int]:
    """What becomes of the files in a process of its own, and how much memory that takes."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, engine, *map(str, paths)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=True,
    )
    found, grown = json.loads(done.stdout)
    return found, grown


def sparse(path: Path, size: int, start: bytes = b"") -> Path:
    """A file of some bytes and then of holes, which take no room on the disk and read as NUL."""
    with path.open("wb") as file:
        file.write(start)
        file.truncate(size)
    return path


def packed(path: Path, start: bytes, block: bytes, times: int) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(start)
        for _ in range(times):
            file.write(block)
    return path


def hostile_files(folder: Path, size: int) -> dict[Path, str]:
    """Files of a size, most of them small on the disk, with the fault of each."""
    long = folder / "an endless row.csv"
    with long.open("wb") as file:
        file.write(ROWS)
        for _ in range(64):
            file.write(b"x" * MEBIBYTE)
    times = size // MEBIBYTE
    return {
        sparse(folder / "holes.csv", 4 * size): "binary",
        sparse(folder / "rows and holes.csv", 4 * size, ROWS): "binary",
        sparse(folder / "a header and holes.csv", 4 * size, b"a,b\n"): "binary",
        long: "long line",
        packed(folder / "rows and holes.csv.gz", ROWS, bytes(MEBIBYTE), times): "binary",
        packed(folder / "an endless name.csv.gz", b"", b"x" * MEBIBYTE, times): "header",
    }


@pytest.mark.parametrize("engine", ["", pytest.param("duckdb", marks=pytest.mark.slow)])
def test_holes_and_endless_lines_are_refused_in_little_memory(engine, tmp_path):
    wanted = hostile_files(tmp_path, 2**28)
    found, grown = measured(list(wanted), engine)
    assert found == list(wanted.values())
    assert grown < 200 * MEBIBYTE


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["", "polars", "duckdb"])
def test_ten_gibibytes_of_holes_are_refused_in_little_memory(engine, tmp_path):
    paths = [sparse(tmp_path / f"{len(start)}.csv", 10 * 2**30, start) for start in (b"", b"a,b\n", ROWS)]
    found, grown = measured(paths, engine)
    assert found == ["binary"] * 3
    assert grown < 200 * MEBIBYTE


@pytest.mark.slow
def test_a_bomb_of_gzip_is_read_in_little_memory(tmp_path):
    # 2 MiB that unpack to a GiB, of which one column would take two.
    bomb = packed(tmp_path / "bomb.csv.gz", b"a,b\n", b"1,2\n" * 2**18, 2**10)
    assert bomb.stat().st_size < 8 * MEBIBYTE
    found, grown = measured([bomb], timeout=600)
    assert found == [2**28]
    assert grown < 600 * MEBIBYTE


def test_what_is_small_only_when_it_is_packed_is_left_to_polars(tmp_path, monkeypatch):
    text = packed(tmp_path / "people.csv.gz", b"a,b\n", b"1,2\n" * 2**18, 2)
    stored = tmp_path / "people.parquet"
    pl.select(a=pl.repeat(1, 2**19, dtype=pl.Int64)).write_parquet(stored)
    for path in (text, stored):
        assert path.stat().st_size < MEBIBYTE
        assert isinstance(open_table(path, NUMBERS, columns=["a"]), dict)
    monkeypatch.setattr(tables, "AT_ONCE", 2**18)
    for path in (text, stored):
        lazy = open_table(path, NUMBERS, columns=["a"])
        assert isinstance(lazy, pl.LazyFrame)
        assert lazy.sum().collect().item() == 2**19


def test_the_reader_of_whole_columns_refuses_a_bomb_of_gzip(tmp_path, monkeypatch):
    monkeypatch.setattr(file_csv, "MOST_UNPACKED", MEBIBYTE)
    bomb = packed(tmp_path / "people.csv.gz", b"a,b\n", b"1,2\n" * 2**18, 2)
    with pytest.raises(FileFault, match="unpacks to more than 1 MiB; unpack it first") as caught:
        files.read(bomb, NUMBERS, columns=["a"])
    assert caught.value.fault == "gzip"
    # Unpacked, its size is there for everyone to see.
    (tmp_path / "people.csv").write_bytes(gzip.decompress(bomb.read_bytes()))
    assert len(files.read(tmp_path / "people.csv", NUMBERS, columns=["a"])["a"]) == 2**19


WRITERS: dict[str, Callable[[pl.DataFrame, Path], object]] = {
    "csv": pl.DataFrame.write_csv,
    "parquet": pl.DataFrame.write_parquet,
    "arrow": pl.DataFrame.write_ipc,
}


def two_of_many(columns: int, ending: str, folder: Path) -> None:
    path = folder / f"wide.{ending}"
    WRITERS[ending](pl.DataFrame({f"c{i}": [i, 7] for i in range(columns)}), path)
    names = ["c1", f"c{columns - 1}"]
    assert len(table_header(path)) == columns
    for engine in (None, "polars", "duckdb"):
        fields = {name: Field(kind="integer") for name in names}
        table = open_table(path, fields, columns=names, engine=engine)
        if isinstance(table, dict):
            rows = list(zip(*(series.to_list() for series in table.values()), strict=True))
        else:
            rows = table.fetchall() if engine == "duckdb" else table.collect().rows()
        assert sorted(rows) == [(1, columns - 1), (7, 7)]


@pytest.mark.parametrize("ending", WRITERS)
def test_two_of_very_many_columns_are_read(ending, tmp_path):
    two_of_many(5_000, ending, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("ending", WRITERS)
def test_two_of_a_hundred_thousand_columns_are_read(ending, tmp_path):
    # A CSV file has a public limit, which is met here.
    two_of_many(65_536 if ending == "csv" else 100_000, ending, tmp_path)
