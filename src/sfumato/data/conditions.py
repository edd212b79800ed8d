"""Public conditions on rows: what `where` may say, in words, and which rows meet it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sfumato.checks import Number, checked_text, exact, keep, shown
from sfumato.data.codes import Flags
from sfumato.data.column import Category, Column, checked_categories
from sfumato.data.expressions import Expression
from sfumato.data.matches import Matches
from sfumato.data.moments import Moment, Reads, moment_number, plain_moment, public_text, reading
from sfumato.errors import InvalidParameter

# Beyond this, float64 has no number to compare with.
_LARGEST = 2**1023


@dataclass(frozen=True)
class Between:
    """A public range of numbers or dates for `where`: both ends are inside it, and a null is not.

    Guarantee:
        Public parameters only; which rows are in the range is private, and so is how many they are.

    Args:
        low: the smallest number or earliest date inside.
        high: the largest number or latest date inside, at least `low`.

    Raises:
        InvalidParameter: an end is no finite number and no date, low is above high, or they are of two kinds.

    >>> Between(18, 65)
    Between(low=18, high=65)
    """

    low: Number | Moment
    high: Number | Moment

    def __post_init__(self) -> None:
        if reading(self.low) != reading(self.high):
            raise InvalidParameter(
                "low and high must be of one kind, two numbers, two dates or two datetimes, "
                f"got low={shown(self.low)}, high={shown(self.high)}"
            )
        low, high = self.ends
        if max(abs(low), abs(high)) > _LARGEST:
            raise InvalidParameter(
                f"low and high must be below 2**1023, got {shown(self.low)}, {shown(self.high)}"
            )
        if low > high:
            raise InvalidParameter(
                f"low must be at most high, got low={shown(self.low)}, high={shown(self.high)}"
            )
        # NumPy's scalars become Python's, which print and compare the same everywhere.
        keep(self, low=_plain(self.low), high=_plain(self.high))

    @property
    def reads(self) -> Reads:
        """What the ends are: numbers, dates or datetimes."""
        return reading(self.low)

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """The exact numbers of the ends; of dates days, of datetimes seconds.

        >>> from datetime import date
        >>> Between(date(1970, 1, 2), date(1970, 1, 31)).ends
        (Fraction(1, 1), Fraction(30, 1))
        """
        if self.reads == "number":
            return exact("low", self.low), exact("high", self.high)
        return moment_number(self.low), moment_number(self.high)  # type: ignore[arg-type]

    @property
    def words(self) -> str:
        """The range for people.

        >>> Between(18, 65).words
        '18 to 65'
        """
        low, high = (public_text(end, self.reads) for end in self.ends)
        return f"{low} to {high}"


def _plain(number: Any) -> Any:
    moment = plain_moment(number)
    return moment.item() if hasattr(moment, "item") else moment


@dataclass(frozen=True)
class Filter:
    """A column of flags that is computed for one question: it has no name, and so no user's name is its own.

    Two filters are equal if their expressions mean the same.

    >>> from sfumato.data.expressions import col
    >>> Filter(col("age") >= 18) == Filter(col("age") >= 18), Filter(col("age") >= 18) == "age >= 18"
    (True, False)
    """

    expression: Expression = field(compare=False)
    key: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        keep(self, key=self.expression.key)


ColumnRef = str | Filter


@dataclass(frozen=True)
class Condition:
    """A public condition on one column: it is true, holds one of some categories, or lies in a range."""

    column: ColumnRef
    matches: Matches
    words: str
    reads: Reads = "number"

    @property
    def about(self) -> str:
        """The names of the columns that it is about."""
        # What is no name at all is refused later, as a column that is not there.
        made = self.column
        return ", ".join(made.expression.columns) if isinstance(made, Filter) else made

    def rows(self, column: Column) -> Flags:
        """Which rows meet the condition; a null never does."""
        return self.matches.rows(column)


def read_conditions(where: object) -> tuple[Condition, ...]:
    """The conditions of a mapping from columns to a category, to several, or to a range.

    >>> [condition.words for condition in read_conditions({"team": ["red", "blue"], "age": Between(18, 65)})]
    ['red or blue', '18 to 65']
    """
    if not isinstance(where, Mapping):
        raise InvalidParameter(f"where must map columns to conditions, got where={shown(where)}")
    return tuple(_read(name, given) for name, given in where.items())


def _read(column: str, given: object) -> Condition:
    if isinstance(column, str):  # any other name is that of no column
        checked_text("where", column)
    if isinstance(given, Between):
        low, high = given.ends
        return Condition(column, Matches(between=(float(low), float(high))), given.words, given.reads)
    categories = checked_categories(f"where of {shown(column)}", given)
    return Condition(column, Matches(equals=categories), " or ".join(map(category_words, categories)))


def category_words(category: Category) -> str:
    """A category for people.

    >>> category_words("red"), category_words(7), category_words(True)
    ('red', '7', 'true')
    """
    return str(category).lower() if isinstance(category, bool) else str(category)


def check_condition(condition: Condition, column: Column, categories: tuple[Category, ...] | None) -> None:
    """Refuse a condition that the kind of the column or its declared categories rule out."""
    condition.matches.require(column)
    if condition.reads not in ("number", column.reads) and column.kind != "unknown":
        raise InvalidParameter(
            f"where must fit column {column.name!r}, which stores {column.holds}, got a {condition.reads}"
        )
    if categories is None or not condition.matches.equals:
        return
    declared = set(categories)
    strangers = [category for category in condition.matches.equals if category not in declared]
    if strangers:
        raise InvalidParameter(
            f"where must name declared categories of column {column.name!r}, which are "
            f"{shown(categories)}, got {shown(strangers[0])}"
        )
