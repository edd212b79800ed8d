"""Files of any bytes: each is read or refused by a fault, and none tells a value."""

from pathlib import Path

import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.data.test_file_faults import CANARY, SCHEMA, TABLE, everything_told

from sfumato.data import files
from sfumato.data.file_faults import FileFault


def fault_or_table(path: Path, columns: tuple[str, ...]) -> FileFault | dict[str, pl.Series]:
    try:
        return files.read(path, SCHEMA, columns=columns)
    except FileFault as error:
        return error


FUZZ = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FUZZ
@given(content=st.binary(max_size=200) | st.text(alphabet='1,"\n\r;. Kaé\0', max_size=60).map(str.encode))
def test_any_bytes_below_a_header_are_read_or_refused_by_a_fault(content, tmp_path, capfd):
    path = tmp_path / "people.csv"
    path.write_bytes(b"age,note\n" + content)
    found = fault_or_table(path, ("age", "note"))
    if isinstance(found, FileFault):
        assert found.__context__ is None
    else:
        assert len(found["age"]) == len(found["note"])
    assert capfd.readouterr() == ("", "")


@FUZZ
@given(content=st.binary(max_size=40) | st.text(alphabet='1,"\n\r;. Kaé\0\t', max_size=30).map(str.encode))
def test_any_bytes_have_a_header_or_a_fault(content, tmp_path, capfd):
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    try:
        names = [name for name, _ in files.header(path)]
    except FileFault as error:
        names = [error.fault]
    assert names
    assert len(set(names)) == len(names)
    assert capfd.readouterr() == ("", "")


@FUZZ
@given(place=st.integers(0, len(TABLE) - 1), byte=st.integers(0, 255))
def test_a_parquet_file_with_a_changed_byte_is_read_or_refused_by_a_fault(place, byte, tmp_path, capfd):
    path = tmp_path / "people.parquet"
    path.write_bytes(TABLE[:place] + bytes([byte]) + TABLE[place + 1 :])
    found = fault_or_table(path, tuple(SCHEMA))
    told = everything_told(found) if isinstance(found, FileFault) else ""
    assert CANARY not in told + "".join(capfd.readouterr())
