"""The kinds of values that a plan file holds, each read exactly and refused in plain words."""

import datetime
import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any

from pydantic import AfterValidator, PlainValidator, StringConstraints, WithJsonSchema

from sfumato.checks import exact
from sfumato.data.column import Category
from sfumato.data.moments import moment_number, reading
from sfumato.errors import InvalidParameter

Real = int | Fraction
# A number as a column holds, or a date, for columns of these.
End = Any
MOST_ITEMS = 100_000


def seen(value: object) -> str:
    """A value of the file for a message, as TOML writes it, on a short line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        text = f"[{', '.join(map(seen, value[:20]))}{', ...' * (len(value) > 20)}]"
    elif isinstance(value, dict):
        text = "a table"
    elif isinstance(value, datetime.date | datetime.time):
        text = "a date or time"
    elif isinstance(value, int) and value.bit_length() > 200:
        text = "a very long number"
    elif isinstance(value, Fraction):
        text = str(float(value))
    else:
        text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def read_number(value: object) -> Real:
    """A finite number, exactly as written: 0.1 is 1/10."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
        raise ValueError(f"must be a number, got {seen(value)}")
    if isinstance(value, int) and value.bit_length() <= 1024:
        return value
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        raise ValueError(f"must be a finite number, got {seen(value)}")
    try:
        return exact("it", value)
    except InvalidParameter:
        raise ValueError("must be a number of at most a few hundred digits, got a longer one") from None


def read_end(value: object) -> End:
    """A number, or a date or datetime: of TOML itself or as ISO text."""
    if isinstance(value, str):
        for read in (datetime.date.fromisoformat, datetime.datetime.fromisoformat):
            try:
                return read(value)
            except ValueError:
                continue
        raise ValueError(f"must be a number, got {seen(value)}, or a date such as 2020-01-31")
    return value if isinstance(value, datetime.date) else read_number(value)


def _of_one_kind(value: object, ends: tuple[End, ...]) -> tuple[End, ...]:
    kinds = {reading(end) for end in ends}
    if kinds == {"date", "datetime"}:
        # A day among datetimes is its start.
        midnight = datetime.time()
        return tuple(
            end if isinstance(end, datetime.datetime) else datetime.datetime.combine(end, midnight)
            for end in ends
        )
    if len(kinds) > 1:
        raise ValueError(f"must be all numbers, all dates or all datetimes, got {seen(value)}")
    return ends


def _number_of(end: End) -> Any:
    return end if reading(end) == "number" else moment_number(end)


def read_positive(value: object) -> Real:
    """A number above 0."""
    number = read_number(value)
    if number <= 0:
        raise ValueError(f"must be above 0, got {seen(value)}")
    return number


def read_share(value: object) -> Real:
    """A share of the budget: above 0 and at most 1."""
    number = read_number(value)
    if not 0 < number <= 1:
        raise ValueError(f"must be a share of the budget, above 0 and at most 1, got {seen(value)}")
    return number


def read_inside(value: object) -> Real:
    """A number strictly between 0 and 1."""
    number = read_number(value)
    if not 0 < number < 1:
        raise ValueError(f"must be inside (0, 1), got {seen(value)}")
    return number


def read_whole(least: int, most: int) -> Any:
    """A reader of whole numbers in a range."""

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"must be a whole number, got {seen(value)}")
        if not least <= value <= most:
            raise ValueError(f"must be a whole number from {least:,} to {most:,}, got {seen(value)}")
        return value

    return read


def _items(value: object, what: str, read: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"must be a list of {what}, got {seen(value)}")
    if not 1 <= len(value) <= MOST_ITEMS:
        raise ValueError(f"must be a list of 1 to {MOST_ITEMS:,} {what}, got {len(value):,}")
    return tuple(read(item) for item in value)


def read_numbers(value: object) -> tuple[Real, ...]:
    """A list of numbers."""
    return _items(value, "numbers", read_number)


def read_increasing(value: object) -> tuple[End, ...]:
    """A list of numbers or dates, each above the one before."""
    listed = _of_one_kind(value, _items(value, "numbers", read_end))
    if any(low >= high for low, high in pairwise(map(_number_of, listed))):
        raise ValueError(f"must be increasing numbers, got {seen(value)}")
    return listed


def read_orders(value: object) -> tuple[Real, ...]:
    """Orders of quantiles, each inside (0, 1)."""
    listed = read_numbers(value)
    if not all(0 < order < 1 for order in listed):
        raise ValueError(f"must be inside (0, 1), for the extremes of data cannot be told, got {seen(value)}")
    return listed


def read_pair(value: object) -> tuple[End, End]:
    """A lower and an upper end."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"must be two numbers, [lower, upper], got {seen(value)}")
    low, high = _of_one_kind(value, tuple(read_end(end) for end in value))
    if _number_of(low) > _number_of(high):
        raise ValueError(f"must be [lower, upper] with the lower number first, got {seen(value)}")
    return low, high


def read_bounds(value: object) -> tuple[End, End]:
    """Two different ends."""
    low, high = read_pair(value)
    if low == high:
        raise ValueError(f"must be two different numbers, [lower, upper], got {seen(value)}")
    return low, high


def read_category(value: object) -> Category:
    """One category: text, a whole number, true or false."""
    if not isinstance(value, str | int):
        raise ValueError(f"must be text, a whole number, true or false, got {seen(value)}")
    if isinstance(value, str) and len(value) > 1000:
        raise ValueError("must be text of at most 1,000 characters, got a longer one")
    if isinstance(value, int) and value.bit_length() > 63:
        raise ValueError("must be a whole number of at most 64 bits, got a longer one")
    return value


def read_categories(value: object) -> tuple[Category, ...]:
    """A list of distinct categories of one type."""
    listed = _items(value, "categories", read_category)
    if len(set(map(type, listed))) > 1:
        raise ValueError(f"must be all text, all whole numbers or all true and false, got {seen(value)}")
    twice = next((item for item, times in Counter(listed).items() if times > 1), None)
    if twice is not None:
        raise ValueError(f"must name each category once, but {seen(twice)} is there twice")
    return listed


def read_one_or_more(value: object) -> tuple[Category, ...]:
    """A category or a list of them."""
    return read_categories(value if isinstance(value, list | tuple) else [value])


def read_interval_share(value: object) -> Any:
    """A share or the word auto."""
    if value == "auto":
        return "auto"
    if isinstance(value, str):
        raise ValueError(f"must be a number from 0 to 0.99 or 'auto', got {seen(value)}")
    number = read_number(value)
    if not 0 <= number < 1:
        raise ValueError(f"must be a number from 0 to 0.99 or 'auto', got {seen(value)}")
    return number


def read_method(value: object) -> Any:
    """The name of a method, or a table with its name and its options."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        for key, option in value.items():
            if not isinstance(option, str | int | float | Decimal):
                raise ValueError(f"must have plain options, got {key} = {seen(option)}")
        return (value["name"], *((key, _plain(value[key])) for key in value if key != "name"))
    raise ValueError(f"must be the name of a method or {{ name = ..., option = ... }}, got {seen(value)}")


def _plain(option: object) -> object:
    return option if isinstance(option, str | bool) else read_number(option)


def parse_expression(text: str) -> Any:
    """The expression that a text says."""
    from sfumato.data.expression_text import parse

    return parse(text)


def expression_text(value: object) -> str:
    """A text that is an expression; refused with the place where it is none."""
    if not isinstance(value, str):
        raise ValueError(f"must be an expression in quotes, such as 'salary / hours', got {seen(value)}")
    try:
        parse_expression(value)
    except InvalidParameter as error:
        raise ValueError(str(error)) from None
    return value


def _printable(text: str) -> str:
    if not text.isprintable() or not text.strip():
        raise ValueError("must be printable characters on one line")
    return text


def _clean(text: str) -> str:
    if not all(letter.isprintable() or letter in "\n\t" for letter in text):
        raise ValueError("must hold no control characters")
    return text


_NUMBER = {"type": "number"}
_ORDER: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
_CATEGORY: dict[str, Any] = {"type": ["string", "integer", "boolean"]}
_END: dict[str, Any] = {"type": ["number", "string"]}
_TWO: dict[str, Any] = {"type": "array", "items": _END, "minItems": 2, "maxItems": 2}
_LIST: dict[str, Any] = {"type": "array", "items": _CATEGORY, "minItems": 1, "uniqueItems": True}
_SHARE: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}


def whole_number(least: int, most: int) -> Any:
    """The type of a whole number in a range, for a model and for the JSON Schema."""
    schema = {"type": "integer", "minimum": least, "maximum": most}
    return Annotated[int, PlainValidator(read_whole(least, most)), WithJsonSchema(schema)]


Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_printable)]
Text = Annotated[str, StringConstraints(max_length=20_000), AfterValidator(_clean)]
Expressed = Annotated[str, PlainValidator(expression_text), WithJsonSchema({"type": "string"})]
Number = Annotated[Real, PlainValidator(read_number), WithJsonSchema(_NUMBER)]
Positive = Annotated[
    Real, PlainValidator(read_positive), WithJsonSchema({"type": "number", "exclusiveMinimum": 0})
]
Inside = Annotated[
    Real,
    PlainValidator(read_inside),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
]
Share = Annotated[Real, PlainValidator(read_share), WithJsonSchema(_SHARE)]
Increasing = Annotated[
    tuple[End, ...],
    PlainValidator(read_increasing),
    WithJsonSchema({"type": "array", "items": _END, "minItems": 1}),
]
Orders = Annotated[
    tuple[Real, ...],
    PlainValidator(read_orders),
    WithJsonSchema({"type": "array", "items": _ORDER, "minItems": 1}),
]
Pair = Annotated[tuple[End, End], PlainValidator(read_pair), WithJsonSchema(_TWO)]
Bounds = Annotated[tuple[End, End], PlainValidator(read_bounds), WithJsonSchema(_TWO)]
Categories = Annotated[tuple[Category, ...], PlainValidator(read_categories), WithJsonSchema(_LIST)]
OneOrMore = Annotated[
    tuple[Category, ...], PlainValidator(read_one_or_more), WithJsonSchema({"anyOf": [_CATEGORY, _LIST]})
]
IntervalShare = Annotated[
    Any,
    PlainValidator(read_interval_share),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0, "maximum": 0.99}, {"const": "auto"}]}),
]
Method = Annotated[
    Any,
    PlainValidator(read_method),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
            ]
        }
    ),
]
