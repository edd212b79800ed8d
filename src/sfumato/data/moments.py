"""Dates and datetimes as exact numbers, and back as ISO text: days, or seconds of UTC, since 1970-01-01."""

import math
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from sfumato.checks import decimal, exact, shown
from sfumato.errors import InvalidParameter

# What the numbers of a column stand for: themselves, days since 1970-01-01, or seconds of UTC since then.
Reads = Literal["number", "date", "datetime"]
READS: tuple[Reads, ...] = ("number", "date", "datetime")
Moment = date | datetime
UNITS: dict[Reads, str] = {"number": "", "date": " days", "datetime": " seconds"}

_FIRST_DAY = date(1970, 1, 1)
_FIRST_SECOND = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# Intervals at least this many seconds wide are told to the second.
_COARSE = 10
# A number of days beyond this has no date that NumPy can write.
_FARTHEST: dict[Reads, int] = {"date": 10**9, "datetime": 9 * 10**12}


def plain_moment(value: object) -> object:
    """NumPy's dates and datetimes as Python's; anything else as it is."""
    if isinstance(value, np.datetime64) and not np.isnat(value):
        days = np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D")
        held = value.astype("datetime64[D]" if days else "datetime64[us]").item()
        return held if isinstance(held, date) else value
    return value


def reading(value: object) -> Reads:
    """What a public value is: a date, a datetime, or neither.

    >>> reading(date(2020, 1, 31)), reading(datetime(2020, 1, 31)), reading(7)
    ('date', 'datetime', 'number')
    """
    plain = plain_moment(value)
    if isinstance(plain, datetime):
        return "datetime"
    return "date" if isinstance(plain, date) else "number"


def moment_number(value: Moment) -> Fraction:
    """A date as whole days since 1970-01-01; a datetime as seconds, one without a time zone taken as UTC.

    >>> moment_number(date(1970, 1, 2)), moment_number(datetime(1970, 1, 1, 0, 0, 1, 500_000))
    (Fraction(1, 1), Fraction(3, 2))
    """
    plain: Any = plain_moment(value)
    if not isinstance(plain, datetime):
        return Fraction((plain - _FIRST_DAY).days)
    # Differences of aware datetimes are those of the instants, and never leave the calendar's range.
    instant = plain if plain.utcoffset() is not None else plain.replace(tzinfo=UTC)
    return Fraction((instant - _FIRST_SECOND) // _MICROSECOND, 10**6)


def read_numbers(name: str, values: Iterable[Any]) -> tuple[Reads, tuple[Any, ...]]:
    """Public numbers, or dates as their exact numbers, with what they are; a mixture is refused.

    >>> read_numbers("bounds", (date(1970, 1, 1), date(1971, 1, 1)))
    ('date', (Fraction(0, 1), Fraction(365, 1)))
    >>> read_numbers("bounds", (0, 10))
    ('number', (0, 10))
    """
    listed = tuple(values)
    kinds = {reading(value) for value in listed}
    if not kinds or kinds == {"number"}:
        return "number", listed
    if len(kinds) > 1:
        found = ", ".join(sorted(kinds))
        raise InvalidParameter(
            f"{name} must be of one kind, all numbers, all dates or all datetimes, got {found}"
        )
    return kinds.pop(), tuple(moment_number(value) for value in listed)


def read_moment(name: str, value: object, reads: Reads) -> Fraction:
    """The exact number of a date or datetime that was declared: as such, as ISO text or as the number itself.

    >>> read_moment("bounds", "1970-01-31", "date"), read_moment("bounds", "1970-01-01T00:01", "datetime")
    (Fraction(30, 1), Fraction(60, 1))
    """
    given = plain_moment(value)
    if isinstance(given, str):
        given = _parsed(name, given, reads)
    if isinstance(given, date):
        if reads == "date" and isinstance(given, datetime):
            raise InvalidParameter(f"{name} must be dates without a time of day, got {shown(given)}")
        midnight = reads == "datetime" and not isinstance(given, datetime)
        return moment_number(given) * (86_400 if midnight else 1)
    number = exact(name, given)
    if reads == "date" and number.denominator != 1:
        raise InvalidParameter(f"{name} must be whole days for dates, got {shown(value)}")
    return number


def _parsed(name: str, text: str, reads: Reads) -> Moment:
    try:
        return date.fromisoformat(text) if reads == "date" else datetime.fromisoformat(text)
    except ValueError:
        example = "2020-01-31" if reads == "date" else "2020-01-31T12:00:00"
        raise InvalidParameter(f"{name} must be ISO text such as {example!r}, got {shown(text)}") from None


def written(number: Any, reads: Reads, width: float = math.inf, whole: Any = round) -> str:
    """A number of days or seconds as ISO text: to the day, or to the second if an interval is that wide.

    >>> written(18262.4, "date"), written(1580428800, "datetime"), written(0.25, "datetime", 1.0)
    ('2020-01-01', '2020-01-31T00:00:00', '1970-01-01T00:00:00.250000')
    """
    if number is None or not math.isfinite(number):
        return "none"
    if abs(number) > _FARTHEST[reads]:
        return f"{float(number):.6g}{UNITS[reads]} since 1970-01-01"
    if reads == "date":
        return str(np.datetime64(whole(number), "D"))
    if width >= _COARSE:
        return str(np.datetime64(whole(number), "s"))
    return str(np.datetime64(whole(Fraction(number) * 10**6), "us"))


def public_text(number: Fraction, reads: Reads) -> str:
    """A public number of a column for people, exactly: a date, a datetime, or the number itself.

    >>> public_text(Fraction(30), "date"), public_text(Fraction(1, 2), "datetime")
    ('1970-01-31', '1970-01-01T00:00:00.500000')
    >>> public_text(Fraction(250_000), "number"), public_text(Fraction(1, 2), "date")
    ('250000', '0.5')
    """
    unit = 1 if reads == "date" else 10**6
    if reads == "number" or (number * unit).denominator != 1 or abs(number) > _FARTHEST[reads]:
        whole_number = number.denominator == 1 and abs(number) < 10**24
        return str(number.numerator) if whole_number else decimal(number)
    return written(number, reads, math.inf if number.denominator == 1 else 0.0)


def as_datetime64(value: Any, reads: Reads) -> Any:
    """Numbers of days or seconds as NumPy's datetime64, to the nearest day or second; NaT for no number."""
    unit = {"date": "D", "datetime": "s"}[reads]
    numbers = np.asarray(np.nan if value is None else value, dtype=np.float64)
    known = np.isfinite(numbers)
    nearest = np.rint(np.clip(np.where(known, numbers, 0.0), -_FARTHEST[reads], _FARTHEST[reads]))
    moments: Any = np.asarray(nearest.astype(np.int64).astype(f"datetime64[{unit}]"))
    moments[~known] = "NaT"
    return moments if moments.ndim else moments[()]
