"""Fingerprints: the same content has the same one, under one key, and nothing in the data can stop it."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.data import files
from sfumato.data.file_bytes import BLOCK, Source

PEOPLE = "age,team\n34,red\n45,blue\n"
KEY = bytes(range(32))


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_the_same_bytes_have_the_same_fingerprint_and_others_another(tmp_path):
    one, two = written(tmp_path / "one.csv", PEOPLE), written(tmp_path / "two", PEOPLE)
    assert files.fingerprint(one, KEY) == files.fingerprint(two, KEY)
    assert files.fingerprint(one, KEY) != files.fingerprint(one, bytes(32))
    assert files.fingerprint(one, KEY) != hashlib.blake2b(PEOPLE.encode()).hexdigest()
    seen = {files.fingerprint(one, KEY)}
    for i in range(len(PEOPLE.encode())):
        changed = bytearray(PEOPLE.encode())
        changed[i] ^= 1
        seen.add(files.fingerprint(written(two, bytes(changed)), KEY))
    assert len(seen) == len(PEOPLE.encode()) + 1
    assert files.fingerprint(written(two, b""), KEY) not in seen


def test_every_byte_of_a_long_file_counts(tmp_path):
    size = BLOCK * 9 + 17
    path = tmp_path / "long.csv"
    path.write_bytes(bytes(size))
    seen = {files.fingerprint(path, KEY)}
    places = [0, BLOCK - 1, BLOCK, size - 1, *range(12_345, size, BLOCK // 3)]
    for place in places:
        with path.open("r+b") as file:
            file.seek(place)
            file.write(b"x")
        seen.add(files.fingerprint(path, KEY))
    os.truncate(path, size - 1)
    seen.add(files.fingerprint(path, KEY))
    assert len(seen) == len(places) + 2


def test_a_fingerprint_is_the_keyed_hash_of_the_bytes(tmp_path):
    content = bytes(range(256)) * 3_000
    keyed = hashlib.blake2b(content, digest_size=32, key=KEY, person=b"file")
    assert files.fingerprint(written(tmp_path / "a.csv", content), KEY) == keyed.hexdigest()


def test_a_file_that_changes_while_it_is_hashed_is_refused(tmp_path, monkeypatch):
    path = written(tmp_path / "people.csv", PEOPLE)
    blocks = Source.blocks

    def meanwhile(source: Source) -> Iterator[bytes]:
        yield from blocks(source)
        written(path, PEOPLE + "1,red\n")

    monkeypatch.setattr(Source, "blocks", meanwhile)
    with pytest.raises(files.FileFault, match="was changed while it was read"):
        files.fingerprint(path, KEY)


def test_a_stamp_differs_after_a_change_of_content_size_or_place(tmp_path):
    path = written(tmp_path / "people.csv", PEOPLE)
    before = files.stamp(path)
    assert files.stamp(str(path)) == before
    path.read_bytes()
    assert files.stamp(path) == before
    # A clock may tick too seldom to show two writings at once, so the time is set.
    os.utime(path, ns=(0, before[-1] + 1))
    assert files.stamp(path) != before
    os.utime(path, ns=(0, before[-1]))
    assert files.stamp(path) == before
    with path.open("ab") as file:
        file.write(b"1,red\n")
    os.utime(path, ns=(0, before[-1]))
    assert files.stamp(path) != before
    other = written(tmp_path / "other.csv", PEOPLE)
    os.utime(other, ns=(0, before[-1]))
    os.replace(other, path)
    assert files.stamp(path) != before
    for wrong, words in ((tmp_path / "none.csv", "does not exist"), (tmp_path, "is a directory")):
        with pytest.raises(files.FileFault, match=words):
            files.stamp(wrong)


@pytest.mark.parametrize("key", [b"short", "x" * 32, None, bytes(65)])
def test_a_key_must_be_long_bytes_and_is_not_told(key, tmp_path):
    for tell in (lambda: files.fingerprint(tmp_path, key), lambda: files.frame_fingerprint({}, key)):
        with pytest.raises(ValueError, match=r"^key must be 16 to 64 bytes$"):
            tell()


def test_a_frame_has_the_same_fingerprint_in_every_library():
    pandas = pytest.importorskip("pandas")
    arrow = pytest.importorskip("pyarrow")
    values, words = list(range(10_000)), ["a", "b"] * 5_000
    frames = [
        {"x": values, "y": words},
        {"y": np.array(words), "x": np.array(values)},
        {"x": pl.Series(values), "y": pl.Series(words)},
        {"x": pandas.Series(values, index=values[::-1]), "y": pandas.Series(words)},
        {"x": arrow.array(values), "y": arrow.chunked_array([words])},
    ]
    assert len({files.frame_fingerprint(frame, KEY) for frame in frames}) == 1
    others = [
        {"x": values},
        {"x": values, "z": words},
        {"x": values[:-1], "y": words[:-1]},
        {"x": [*values[:-1], 0], "y": words},
    ]
    assert len({files.frame_fingerprint(frame, KEY) for frame in [frames[0], *others]}) == 5


def test_nothing_in_a_frame_makes_its_fingerprint_fail():
    class Stubborn:
        def __str__(self) -> str:
            raise RuntimeError("Kanarienvogel")

    assert len(files.frame_fingerprint({"x": [Stubborn(), None, "\ud800", 10**5000]}, KEY)) == 64
