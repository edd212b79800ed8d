"""Stored values that no library makes by itself and every file can hold, with harmless ones of the same type.

Arrow arrays are made from their buffers, so that nothing checks them: extremes of all widths, signalling NaN,
times outside of every calendar, text that is no UTF-8, codes of no dictionary. The last row is null in both.
"""

from typing import Any

import numpy as np
import pyarrow as pa

ROWS = 8
Pair = tuple[pa.Array, pa.Array]


def _repeated(values: list[Any]) -> list[Any]:
    return [values[i % len(values)] for i in range(ROWS)]


def _stored(kind: pa.DataType, data: bytes) -> pa.Array:
    valid = np.packbits(np.arange(ROWS) < ROWS - 1, bitorder="little").tobytes()
    return pa.Array.from_buffers(kind, ROWS, [pa.py_buffer(valid), pa.py_buffer(data)])


def _pair(kind: pa.DataType, values: list[int], size: int, *, signed: bool = True) -> Pair:
    """An array of some stored integers, and one of zeros."""
    data = b"".join(value.to_bytes(size, "little", signed=signed) for value in _repeated(values))
    return _stored(kind, data), _stored(kind, bytes(size * ROWS))


def _extremes(kind: pa.DataType, *, signed: bool = True) -> Pair:
    bits = kind.bit_width
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return _pair(kind, [low, high, low + 1, high - 1, 0], bits // 8, signed=signed)


def _decimals(kind: pa.DataType, *, beyond: bool) -> Pair:
    size, top = kind.byte_width, 10**kind.precision - 1
    largest = 2 ** (8 * size - 1) - 1
    return _pair(kind, [largest, -largest - 1, top + 1, 0] if beyond else [top, -top, 0, 1, -1], size)


BYTES = [b"\xff\xfe", b"a", b"\xed\xa0\x80", b"", b"\xc0\x80", b"\x00", b"\xf5\x80\x80\x80"]


def _text(kind: pa.DataType, values: list[bytes | None]) -> pa.Array:
    plain = {pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}.get(kind, pa.binary())
    held = pa.array(values, plain)
    return pa.Array.from_buffers(kind, len(held), held.buffers(), held.null_count)


def _texts(kind: pa.DataType) -> Pair:
    return _text(kind, [*_repeated(BYTES)[:-1], None]), _text(kind, [*[b"a"] * (ROWS - 1), None])


def _dictionaries(index: pa.DataType, codes: list[int]) -> Pair:
    listed = _text(pa.string(), [b"\xff", b"a", None, b"\0"])
    found = ([*_repeated(codes)[:-1], None], [*[1] * (ROWS - 1), None])
    hostile, harmless = (
        pa.DictionaryArray.from_arrays(pa.array(each, index), listed, safe=False) for each in found
    )
    return hostile, harmless


def _plain(kind: pa.DataType, hostile: list[Any], harmless: Any) -> Pair:
    rows = [*_repeated(hostile)[:-1], None], [*[harmless] * (ROWS - 1), None]
    return pa.array(rows[0], kind), pa.array(rows[1], kind)


def _extension(kind: pa.DataType, pair: Pair) -> Pair:
    hostile, harmless = (pa.ExtensionArray.from_storage(kind, each) for each in pair)
    return hostile, harmless


_FLOATS = {
    "float16": (pa.float16(), 2, [0x7D01, 0xFE55, 0x7C00, 0xFC00, 1, 0x8000, 0x7BFF]),
    "float32": (pa.float32(), 4, [0x7FA00001, 0xFFC12345, 0x7F800000, 0xFF800000, 1, 2**31, 0x7F7FFFFF]),
    "float64": (
        pa.float64(),
        8,
        [0x7FF4 << 48 | 1, 0xFFF8 << 48 | 77, 0x7FF0 << 48, 0xFFF0 << 48, 1, 2**63, (0x7FF0 << 48) - 1],
    ),
}
_DECIMALS = {
    "decimal32": pa.decimal32(5, 2),
    "decimal64": pa.decimal64(18, 3),
    "decimal128": pa.decimal128(38, 10),
    "short decimal128": pa.decimal128(15, 2),
    "tens decimal128": pa.decimal128(10, -5),
    "decimal256": pa.decimal256(76, 5),
}
_ZONES = ("UTC", "Europe/Paris", "+14:30", "Mars/Olympus", "no zone")

# By name: what is hostile, and zeros in its place.
RECORDS: dict[str, Pair] = {
    **{f"int{w}": _extremes(getattr(pa, f"int{w}")()) for w in (8, 16, 32, 64)},
    **{f"uint{w}": _extremes(getattr(pa, f"uint{w}")(), signed=False) for w in (8, 16, 32, 64)},
    **{name: _pair(kind, values, size, signed=False) for name, (kind, size, values) in _FLOATS.items()},
    **{name: _decimals(kind, beyond=False) for name, kind in _DECIMALS.items()},
    **{f"{name} beyond its digits": _decimals(kind, beyond=True) for name, kind in _DECIMALS.items()},
    "bool": _plain(pa.bool_(), [True, False, None], False),
    "date32": _extremes(pa.date32()),
    "date64": _extremes(pa.date64()),
    **{f"time32 {unit}": _extremes(pa.time32(unit)) for unit in ("s", "ms")},
    **{f"time64 {unit}": _extremes(pa.time64(unit)) for unit in ("us", "ns")},
    **{f"timestamp {unit}": _extremes(pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    **{f"timestamp {unit} UTC": _extremes(pa.timestamp(unit, "UTC")) for unit in ("s", "ms", "ns")},
    **{f"timestamp us {zone}": _extremes(pa.timestamp("us", zone)) for zone in _ZONES},
    **{f"duration {unit}": _extremes(pa.duration(unit)) for unit in ("s", "ms", "us", "ns")},
    "interval": _pair(pa.month_day_nano_interval(), [2**127 - 1, -(2**127), 0], 16),
    "string": _texts(pa.string()),
    "large string": _texts(pa.large_string()),
    "string view": _texts(pa.string_view()),
    "binary": _plain(pa.binary(), BYTES, b"a"),
    "large binary": _plain(pa.large_binary(), BYTES, b"a"),
    "binary view": _plain(pa.binary_view(), BYTES, b"a"),
    "fixed binary": _plain(pa.binary(2), [b"\xff\xff", b"\0\0"], b"aa"),
    "dictionary": _dictionaries(pa.int8(), [0, 1, 2, 3]),
    "wide dictionary": _dictionaries(pa.uint64(), [3, 2, 1, 0]),
    "dictionary with codes beyond it": _dictionaries(pa.int8(), [0, 100, -1, 1]),
    "dictionary of integers": (
        pa.array([*_repeated([2**63 - 1, -(2**63)])[:-1], None]).dictionary_encode(),
        pa.array([*[0] * (ROWS - 1), None]).dictionary_encode(),
    ),
    "list": _plain(pa.list_(pa.int64()), [[2**62, None], []], [0]),
    "large list": _plain(pa.large_list(pa.string()), [["\0"], []], ["a"]),
    "fixed list": _plain(pa.list_(pa.int64(), 2), [[2**62, None]], [0, 0]),
    "struct": _plain(pa.struct({"a": pa.int64()}), [{"a": 2**63 - 1}, {"a": None}], {"a": 0}),
    "struct of times": tuple(  # type: ignore[dict-item]
        pa.StructArray.from_arrays(each, ["a", "b"])
        for each in zip(_extremes(pa.timestamp("us")), _extremes(pa.date32()), strict=True)
    ),
    "map": _plain(pa.map_(pa.string(), pa.int64()), [[("k", 2**62)], []], [("a", 0)]),
    "null": (pa.nulls(ROWS), pa.nulls(ROWS)),
    "run ends": tuple(  # type: ignore[dict-item]
        pa.RunEndEncodedArray.from_arrays(pa.array([3, ROWS], pa.int32()), pa.array(values, pa.int64()))
        for values in ([2**63 - 1, None], [0, None])
    ),
    "uuid": _extension(pa.uuid(), _plain(pa.binary(16), [b"\xff" * 16, b"\0" * 16], b"a" * 16)),
    "json": _extension(pa.json_(), _texts(pa.string())),
    "bool8": _extension(pa.bool8(), _extremes(pa.int8())),
    "opaque": _extension(pa.opaque(pa.int64(), "kind", "maker"), _extremes(pa.int64())),
    "union": tuple(  # type: ignore[dict-item]
        pa.UnionArray.from_sparse(pa.array(_repeated([0, 1]), pa.int8()), list(each))
        for each in zip(_extremes(pa.int64()), _extremes(pa.date32()), strict=True)
    ),
}


def records(names: Any, *, hostile: bool) -> pa.Table:
    """A table of some of these columns, beside a value `v` and an id `u` that are harmless."""
    columns = {name: RECORDS[name][0 if hostile else 1] for name in names}
    plain = {"v": pa.array([1] * ROWS, pa.int64()), "u": pa.array([1, 1, 2, 3, 4, 5, 6, 7], pa.int64())}
    return pa.table({**plain, **columns})
