"""Hostile values of every stored type, hostile names, and canaries that no message may hold."""

import datetime as dt
import math
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tests.data.expression_trees import REALS, TEXTS
from tests.hostile import CANARY_NUMBER, CANARY_TEXT

import sfumato

SIGNALLING = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000001))[0]
CANARY_WHOLE = 987654
# What no message, warning, log or output may hold.
CANARIES = (CANARY_TEXT, "987654")


@dataclass(frozen=True)
class Stored:
    """A stored type: what it is declared as, its Arrow type, and values that break careless code.

    Dates and datetimes are written as the integers that are stored.
    """

    kind: str
    arrow: pa.DataType
    pool: tuple[Any, ...]


def _whole(arrow: pa.DataType, low: int, high: int) -> Stored:
    usual = (0, 1, 2, 3, 5, -1, None, CANARY_WHOLE, 2**53 + 1, low, high)
    return Stored("integer", arrow, tuple(each for each in usual if each is None or low <= each <= high))


def _short(number: float | None) -> float | None:
    with np.errstate(over="ignore"):
        return None if number is None else float(np.float32(number))


_REALS = (*REALS, 2.0, 5.0, SIGNALLING, CANARY_NUMBER)
_TEXTS = (*TEXTS, "a", "b", "c", "a", "b", "c", CANARY_TEXT)
_TEXTS += ("\ufeffa", "a\ufeff", "\ufeff", "\x1b[31m", "\u202ea", "a\u0301", " a", "a ", "a\u00a0", "\u200ba")
_TEXTS += (
    "NA",
    "null",
    "NaN",
    "a,b",
    "a;b",
    "a\tb",
    '"a"',
    "'a'",
    "=1+1",
    "@a",
    "\u2028a",
    "a\x85",
    "x" * 1001,
)
# Midnight of 0001-01-01 and of 10000-01-01 in days, and the first and last day that 32 bits hold.
_DAYS = (0, 1, 2, 3, -1, None, 10_957, -719_162, 2_932_896, -719_163, 2_932_897, -(2**31), 2**31 - 1)
_TICKS = (
    0,
    1,
    -1,
    10**6,
    2 * 10**6,
    3 * 10**6,
    None,
    10**15,
    253_402_300_799_999_999,
    -62_135_596_800_000_000,
)
_TICKS += (253_402_300_800_000_000, -62_135_596_800_000_001, 2**63 - 1, -(2**63) + 1, -(2**63))
_DECIMALS = tuple(
    Decimal(text) for text in ("0.00", "0.10", "1.00", "3.00", "-1.00", "2.50", "999999999999999999.99")
)

TYPES: dict[str, Stored] = {
    "int8": _whole(pa.int8(), -(2**7), 2**7 - 1),
    "int32": _whole(pa.int32(), -(2**31), 2**31 - 1),
    "int64": _whole(pa.int64(), -(2**63), 2**63 - 1),
    "uint8": _whole(pa.uint8(), 0, 2**8 - 1),
    "uint64": _whole(pa.uint64(), 0, 2**64 - 1),
    "float32": Stored("real", pa.float32(), tuple(_short(number) for number in _REALS)),
    "float64": Stored("real", pa.float64(), _REALS),
    "decimal": Stored("real", pa.decimal128(20, 2), (*_DECIMALS, None)),
    "boolean": Stored("boolean", pa.bool_(), (True, False, None)),
    "text": Stored("text", pa.string(), _TEXTS),
    "categorical": Stored("text", pa.dictionary(pa.int32(), pa.string()), _TEXTS),
    "date": Stored("date", pa.date32(), _DAYS),
    "datetime": Stored("datetime", pa.timestamp("us"), _TICKS),
    "datetime ns": Stored("datetime", pa.timestamp("ns"), _TICKS),
    "datetime in a zone": Stored("datetime", pa.timestamp("us", "Europe/Zurich"), _TICKS),
    "null": Stored("unknown", pa.null(), (None,)),
}


def _internal_names() -> tuple[str, ...]:
    """Names of columns that the package makes for itself: a user may have the same ones."""
    sources = Path(sfumato.__file__).parent.joinpath("data").glob("*.py")
    found = {name for path in sources for name in re.findall(r'"(_*sfumato_\w+)', path.read_text("utf-8"))}
    return tuple(sorted(found | {"sfumato_where_0"}))


INTERNAL = _internal_names()
# Patterns, wildcards, quotes of every engine, case variants, words of SQL, and what looks like nothing.
NAMES = (
    "x",
    "X",
    "y",
    "^x$",
    "^.*$",
    "*",
    "a.b",
    "a`b",
    'a"b',
    "it's",
    "a b",
    " ",
    "\u0130",
    "e\u0301",
    "\u00e9",
)
NAMES += ("select", "count", "row_number()", "\U0001f600", "$1", "{x}", "%s", "literal", "len", "index", "")
NAMES += ("\ufeffx", "x\ufeff", "=1+1", "__index_level_0__", "a,b", "a\\b", "1", "true", "\ud800", "a\nb")
PATTERNS = tuple(f"^{name}$" for name in INTERNAL)


def number_of(value: Any, stored: Stored) -> float | None:
    """The number that a stored value stands for, as docs/columns.md says; None where it is missing."""
    if value is None:
        return None
    if stored.kind == "datetime":
        micros = value // 1000 if stored.arrow.unit == "ns" else value
        return micros / 10**6
    try:
        number = float(value)
    except OverflowError:
        number = math.copysign(math.inf, value)
    return None if math.isnan(number) else number


def moment_of(value: Any, stored: Stored) -> Any:
    """The date or the naive datetime that a stored integer stands for; OverflowError beyond the calendar."""
    if value is None:
        return None
    if stored.kind == "date":
        return dt.date(1970, 1, 1) + dt.timedelta(days=value)
    micros = value // 1000 if stored.arrow.unit == "ns" else value
    return dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)


def array(values: Iterable[Any], stored: Stored) -> pa.Array:
    """The values in Arrow; dates and datetimes by their integers, which may lie beyond every calendar."""
    listed = list(values)
    if stored.kind == "date":
        return pa.array(listed, pa.int32()).view(stored.arrow)
    if stored.kind == "datetime":
        return pa.array(listed, pa.int64()).view(stored.arrow)
    if stored.kind == "real" and pa.types.is_floating(stored.arrow):
        filled = np.array([0.0 if value is None else value for value in listed], dtype=np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            filled = filled.astype(stored.arrow.to_pandas_dtype())
        return pa.array(filled, mask=np.array([value is None for value in listed], dtype=bool))
    return pa.array(listed, stored.arrow)
