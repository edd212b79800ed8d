"""Expressions: derived columns and filters as small public trees, built by operators, never run as code."""

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.checks import checked_text, exact, shown
from sfumato.data.expression_words import canonical, in_words
from sfumato.data.moments import plain_moment
from sfumato.errors import InvalidParameter

Constant = float | str | bool | dt.date
MAX_DEPTH = 64
MAX_NODES = 1000
MAX_LISTED = 2**20
MAX_TEXT = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class Expression:
    """A number, a condition, a text or a date of every row, computed from columns; built by `col` and `when`.

    Guarantee:
        Public: it holds names and constants and no data, and nothing in it is run as code. Every engine gives
        the same float64 values bit for bit; docs/expressions.md has the rules.

    >>> hourly = col("salary") / col("hours")
    >>> hourly.words, hourly.columns
    ('salary / hours', ('hours', 'salary'))
    """

    operation: str
    inputs: tuple["Expression", ...] = ()
    # The name of a column, a constant, the constants of a list, or the two ends of a range.
    value: Any = None
    depth: int = field(init=False)
    nodes: int = field(init=False)

    # NumPy's numbers leave operators to the expression on the other side.
    __array_ufunc__ = None

    def __post_init__(self) -> None:
        depth = 1 + max((each.depth for each in self.inputs), default=0)
        nodes = 1 + sum(each.nodes for each in self.inputs)
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise InvalidParameter(
                f"an expression must have at most {MAX_NODES} parts, nested at most {MAX_DEPTH} deep, "
                f"got {nodes} parts, {depth} deep"
            )
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "nodes", nodes)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns that are used, sorted."""
        found: set[str] = {self.value} if self.operation == "column" else set()
        return tuple(sorted(found.union(*(each.columns for each in self.inputs))))

    @property
    def words(self) -> str:
        """The expression for people, in the form that plans take."""
        return in_words(self)

    def facts(self) -> list[Any]:
        """The meaning in JSON's types, exactly: the same for other spellings of the same."""
        return canonical(self)

    @property
    def key(self) -> str:
        """A text that is the same for two expressions just if their facts are; it can be hashed."""
        return json.dumps(self.facts())

    def equals(self, other: object) -> bool:
        """Whether the other expression means the same by its facts; `==` makes a condition instead."""
        return isinstance(other, Expression) and self.key == other.key

    def kind(self, kinds: Mapping[str, str]) -> str:
        """What it gives for columns of these kinds: "real", "boolean", or the kind of a bare column.

        Raises:
            SchemaMismatch: a column is missing, or of a kind that its place does not take.
            InvalidParameter: a constant does not fit what it is compared with.
        """
        from sfumato.data.expression_kinds import bind  # it is built on this file

        return bind(self, kinds).kind

    def __repr__(self) -> str:
        return f"<Expression {self.words}>"

    def __bool__(self) -> bool:
        raise InvalidParameter(
            "an expression is neither true nor false by itself: use & for and, | for or, ~ for not, "
            ".between for a < x < b, and .is_in for a list"
        )

    def __add__(self, other: object) -> "Expression":
        return _joined("add", self, other)

    def __radd__(self, other: object) -> "Expression":
        return _joined("add", other, self)

    def __sub__(self, other: object) -> "Expression":
        return _joined("subtract", self, other)

    def __rsub__(self, other: object) -> "Expression":
        return _joined("subtract", other, self)

    def __mul__(self, other: object) -> "Expression":
        return _joined("multiply", self, other)

    def __rmul__(self, other: object) -> "Expression":
        return _joined("multiply", other, self)

    def __truediv__(self, other: object) -> "Expression":
        return _joined("divide", self, other)

    def __rtruediv__(self, other: object) -> "Expression":
        return _joined("divide", other, self)

    def __neg__(self) -> "Expression":
        if self.operation == "literal" and type(self.value) is float:
            return Expression("literal", (), 0.0 - self.value)
        return Expression("negative", (self,))

    def __eq__(self, other: object) -> "Expression":  # type: ignore[override]
        return _joined("equal", self, other)

    def __ne__(self, other: object) -> "Expression":  # type: ignore[override]
        return ~(self == other)

    # An equal expression can not be found by a comparison that has no truth value; `key` can be hashed.
    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: object) -> "Expression":
        return _joined("less", self, other)

    def __gt__(self, other: object) -> "Expression":
        return _joined("less", other, self)

    def __le__(self, other: object) -> "Expression":
        return _joined("at_most", self, other)

    def __ge__(self, other: object) -> "Expression":
        return _joined("at_most", other, self)

    def __and__(self, other: object) -> "Expression":
        return _chained("and", self, other)

    def __rand__(self, other: object) -> "Expression":
        return _chained("and", other, self)

    def __or__(self, other: object) -> "Expression":
        return _chained("or", self, other)

    def __ror__(self, other: object) -> "Expression":
        return _chained("or", other, self)

    def __invert__(self) -> "Expression":
        return self.inputs[0] if self.operation == "not" else Expression("not", (self,))

    def __abs__(self) -> "Expression":
        return self.abs()

    def abs(self) -> "Expression":
        """The distance from zero."""
        return Expression("abs", (self,))

    def floor(self) -> "Expression":
        """The largest whole number that is not above."""
        return Expression("floor", (self,))

    def sqrt(self) -> "Expression":
        """The square root; null below zero."""
        return Expression("sqrt", (self,))

    def clip(self, low: object, high: object) -> "Expression":
        """The nearest number from `low` to `high`, both public numbers."""
        ends = (_number("low", low), _number("high", high))
        if ends[0] > ends[1]:
            raise InvalidParameter(f"low must be at most high, got low={shown(low)}, high={shown(high)}")
        return Expression("clip", (self,), ends)

    def between(self, low: object, high: object) -> "Expression":
        """Whether it lies from `low` to `high`, both inside."""
        return (self >= low) & (self <= high)

    def is_in(self, listed: Sequence[object]) -> "Expression":
        """Whether it equals one of some public numbers, texts, booleans or dates."""
        return Expression("in", (self,), _listed(listed))

    def is_null(self) -> "Expression":
        """Whether it is missing; never missing itself."""
        return Expression("is_null", (self,))

    def fill_null(self, value: object) -> "Expression":
        """The same, with another value where it is missing."""
        return Expression("fill_null", (self, as_expression(value)))

    def year(self) -> "Expression":
        """The year of a date."""
        return Expression("year", (self,))

    def month(self) -> "Expression":
        """The month of a date, from 1 to 12."""
        return Expression("month", (self,))

    def day(self) -> "Expression":
        """The day of the month of a date, from 1 to 31."""
        return Expression("day", (self,))

    def weekday(self) -> "Expression":
        """The day of the week of a date, from 1 for Monday to 7 for Sunday."""
        return Expression("weekday", (self,))


def col(name: str) -> Expression:
    """The column of this name, to compute or to compare with: a derived column, or a condition on rows.

    Guarantee:
        Public: a name and no data. What is built from it is checked against the kinds of the columns before
        any charge, and is never run as code.

    Args:
        name: the name of a column, exactly as the table has it.

    Raises:
        InvalidParameter: the name is no text.

    >>> import sfumato as sf
    >>> (sf.col("age") >= 18) & sf.col("region").is_in(["north", "south"])
    <Expression age >= 18 and region in ['north', 'south']>
    """
    return Expression("column", (), checked_text("name", name))


def when(condition: object, then: object, otherwise: object) -> Expression:
    """One value where a condition is true, another where it is false or missing.

    Guarantee:
        Public: built from names and constants, and holds no data.

    Args:
        condition: an expression that is true or false.
        then: an expression or a constant.
        otherwise: an expression or a constant of the same kind.

    Raises:
        InvalidParameter: a value is no expression and no constant.

    >>> import sfumato as sf
    >>> sf.when(sf.col("hours") > 0, sf.col("salary") / sf.col("hours"), 0)
    <Expression when(hours > 0, salary / hours, 0)>
    """
    return Expression("when", (as_expression(condition), as_expression(then), as_expression(otherwise)))


def as_expression(value: object) -> Expression:
    """An expression as it is, and a constant as an expression."""
    return (
        value if isinstance(value, Expression) else Expression("literal", (), constant("a constant", value))
    )


def constant(name: str, value: object) -> Constant:
    """A public constant: the nearest float64 of a number, a text, a boolean, a date or a time."""
    given = plain_moment(value)
    plain = given.item() if isinstance(given, np.generic) else given
    if isinstance(plain, bool):
        return plain
    if isinstance(plain, str):
        return checked_text(name, plain, MAX_TEXT)
    if isinstance(plain, dt.date):
        return plain
    if plain is None:
        raise InvalidParameter(f"{name} must be a value, got None: use is_null to ask whether one is missing")
    return _number(name, value)


def _number(name: str, value: object) -> float:
    number = exact(name, value)
    try:
        return float(number)
    except OverflowError:
        raise InvalidParameter(
            f"{name} must be a number that float64 can hold, got {name}={shown(value)}"
        ) from None


def _listed(listed: object) -> tuple[Constant, ...]:
    if isinstance(listed, str | bytes | Mapping) or not isinstance(listed, Sequence | np.ndarray):
        raise InvalidParameter(f"is_in needs a list of constants, got {shown(listed)}")
    if not 1 <= len(listed) <= MAX_LISTED:
        raise InvalidParameter(f"is_in needs a list of 1 to {MAX_LISTED} constants, got {len(listed)}")
    found = tuple(constant("a constant", item) for item in listed)
    if len({_family(item) for item in found}) > 1:
        raise InvalidParameter(f"is_in needs constants of one kind, got {shown(listed)}")
    return tuple(dict.fromkeys(found))


def _family(item: Constant) -> type:
    return dt.date if isinstance(item, dt.date) else type(item)


def _joined(operation: str, left: object, right: object) -> Expression:
    return Expression(operation, (as_expression(left), as_expression(right)))


def _chained(operation: str, left: object, right: object) -> Expression:
    # A long chain of conditions is wide and not deep.
    parts: list[Expression] = []
    for each in (as_expression(left), as_expression(right)):
        parts += each.inputs if each.operation == operation else (each,)
    return Expression(operation, tuple(parts))
