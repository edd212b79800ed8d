"""Fingerprints: the same content has the same one, under one key, and nothing in the data can stop it."""

import hashlib
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.data import files

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


def test_a_long_file_is_sampled_with_its_size_and_its_ends(tmp_path):
    size = files.BLOCK * files.BLOCKS * 3 + 17
    path = tmp_path / "long.csv"
    with path.open("wb") as file:
        file.truncate(size)
    seen = {files.fingerprint(path, KEY)}
    for place in (0, files.BLOCK - 1, size - 1):
        with path.open("r+b") as file:
            file.seek(place)
            file.write(b"x")
        seen.add(files.fingerprint(path, KEY))
    os.truncate(path, size - 1)
    seen.add(files.fingerprint(path, KEY))
    assert len(seen) == 5


def test_a_file_of_just_what_is_hashed_whole_shows_every_byte(tmp_path):
    path = tmp_path / "long.csv"
    path.write_bytes(bytes(files.BLOCK * files.BLOCKS))
    seen = {files.fingerprint(path, KEY)}
    for place in range(0, files.BLOCK * files.BLOCKS, files.BLOCK * 50 + 12_345):
        with path.open("r+b") as file:
            file.seek(place)
            file.write(b"x")
        seen.add(files.fingerprint(path, KEY))
    assert len(seen) == 7


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
