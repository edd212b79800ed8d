"""Exact, JSON-safe records of budgets and events: a format number, a type tag, and numbers as text."""

import re
from collections.abc import Mapping
from fractions import Fraction

from sfumato.checks import decimal, shown
from sfumato.errors import InvalidParameter

FORMAT = 1
MAX_TEXT = 200
# Long enough for any amount (see definitions.MAX_AMOUNT_BITS), below the digit limit of Python's int().
_RATIO = re.compile(r"[0-9]{1,2500}(/[0-9]{1,2500})?")


def write_record(tag: str, values: Mapping[str, object]) -> dict[str, object]:
    """A record; numbers become text because a JSON reader elsewhere may round them to float64."""
    return {"format": FORMAT, "type": tag, **{name: str(value) for name, value in values.items()}}


def read_tag(record: object, kinds: Mapping[str, tuple[str, ...]], what: str) -> str:
    """The type tag of a record, after checking its format, its tag and its exact set of fields."""
    if not isinstance(record, Mapping):
        raise InvalidParameter(f"{what} must be a mapping, got {type(record).__name__}")
    if type(record.get("format")) is not int or record["format"] != FORMAT:
        raise InvalidParameter(f"format of {what} must be {FORMAT}, got format={shown(record.get('format'))}")
    tag = record.get("type")
    if not isinstance(tag, str) or tag not in kinds:
        raise InvalidParameter(f"type of {what} must be one of {', '.join(kinds)}, got type={shown(tag)}")
    if set(record) != {"format", "type", *kinds[tag]}:
        raise InvalidParameter(f"{what} of type {tag} must have exactly the fields {', '.join(kinds[tag])}")
    return tag


def read_fraction(record: Mapping[str, object], name: str) -> Fraction:
    """An exact number of a record: digits, or a ratio of them."""
    text = record[name]
    if not isinstance(text, str) or not _RATIO.fullmatch(text):
        raise InvalidParameter(f'{name} must be exact text such as "1/10", got {name}={shown(text)}')
    top, _, bottom = text.partition("/")
    if bottom and int(bottom) == 0:
        raise InvalidParameter(f"{name} must have a denominator above zero, got {name}={shown(text)}")
    return Fraction(int(top), int(bottom or "1"))


def read_integer(record: Mapping[str, object], name: str) -> int:
    """A whole number of a record."""
    value = read_fraction(record, name)
    if value.denominator != 1:
        raise InvalidParameter(f"{name} must be a whole number, got {name}={shown(value)}")
    return value.numerator


def short_text(name: str, value: object) -> str:
    """Printable text of bounded length."""
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_TEXT or not value.isprintable():
        raise InvalidParameter(
            f"{name} must be printable text of 1 to {MAX_TEXT} characters, got {name}={shown(value)}"
        )
    return value


def plain(value: int | Fraction | str) -> str:
    """A value as it is printed: a whole number without a point, else the decimal of a fraction."""
    if isinstance(value, Fraction):
        return decimal(value) if value.denominator != 1 else str(value.numerator)
    return repr(value)
