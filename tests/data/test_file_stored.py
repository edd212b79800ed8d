"""Stored decimals with more digits than their type declares, in files that DuckDB scans."""

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.data.file_duckdb import _within_digits
from sfumato.data.tables import open_table

MANY = sf.PureDP(10**6)


def decimals(dtype, values, valid=None):
    size = dtype.byte_width
    data = b"".join(value.to_bytes(size, "little", signed=True) for value in values)
    mask = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    return pa.Array.from_buffers(dtype, len(values), [mask, pa.py_buffer(data)])


def extremes(dtype):
    bits, top = 8 * dtype.byte_width, 10**dtype.precision - 1
    return [2 ** (bits - 1) - 1, -(2 ** (bits - 1)), top + 1, -top - 1, top, -top, 1, -1, 0, top]


TYPES = [pa.decimal128(15, 2), pa.decimal128(18, 1), pa.decimal64(9, 3), pa.decimal32(4, 1)]


@pytest.mark.parametrize("dtype", TYPES)
def test_a_decimal_with_too_many_digits_is_the_largest_of_its_type(dtype, tmp_path):
    top = 10**dtype.precision - 1
    written = extremes(dtype)
    # Bounds of the question: what is below 0 counts as 0.
    expected = sum(min(max(value, 0), top) for value in written)
    with pa.ipc.new_file(f"{tmp_path}/given.arrow", pa.schema({"x": dtype})) as file:
        file.write_table(pa.table({"x": decimals(dtype, written)}))
    bounds = (0, float(f"1e{dtype.precision - dtype.scale}"))
    for _ in range(20):
        table = open_table(f"{tmp_path}/given.arrow", {}, columns=["x"], engine="duckdb")
        data = sf.Dataset(table, unit="row", neighbours="add-remove")
        found = sf.Session(data, budget=MANY).answer(sf.Sum(budget=MANY, column="x", bounds=bounds))
        assert found.value == pytest.approx(expected / 10**dtype.scale, rel=1e-3)


@pytest.mark.parametrize("dtype", TYPES)
def test_nulls_and_offsets_of_decimals_are_kept(dtype):
    top = 10**dtype.precision - 1
    written = extremes(dtype)
    valid = np.arange(len(written)) % 3 > 0
    whole = decimals(dtype, written, valid)
    clipped = [min(max(value, -top), top) for value in written]
    kept = [value if known else None for value, known in zip(clipped, valid, strict=True)]
    for start in range(len(written)):
        found = _within_digits(whole.slice(start)).to_pylist()
        scaled = [None if value is None else int(value.scaleb(dtype.scale)) for value in found]
        assert scaled == kept[start:]
