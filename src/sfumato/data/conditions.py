"""Public conditions on rows: what `where` may say, in words, and which rows meet it."""

from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.checks import Number, compact, exact, keep, shown
from sfumato.data.codes import Flags
from sfumato.data.column import Category, Column, checked_categories
from sfumato.data.matches import Matches
from sfumato.errors import InvalidParameter

# Beyond this, float64 has no number to compare with.
_LARGEST = 2**1023


@dataclass(frozen=True)
class Between:
    """A public range of numbers for `where`: both ends are inside it, and a null is not.

    Guarantee:
        Public parameters only; which rows are in the range is private, and so is how many they are.

    Args:
        low: the smallest number inside.
        high: the largest number inside, at least `low`.

    Raises:
        InvalidParameter: an end is no finite number, or low is above high.

    >>> Between(18, 65)
    Between(low=18, high=65)
    """

    low: Number
    high: Number

    def __post_init__(self) -> None:
        low, high = exact("low", self.low), exact("high", self.high)
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
    def words(self) -> str:
        """The range for people.

        >>> Between(18, 65).words
        '18 to 65'
        """
        return f"{compact(exact('low', self.low))} to {compact(exact('high', self.high))}"


def _plain(number: Number) -> Number:
    return number.item() if hasattr(number, "item") else number


@dataclass(frozen=True)
class Condition:
    """A public condition on one column: it holds one of some categories, or lies in a range."""

    column: str
    matches: Matches
    words: str

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
    if isinstance(given, Between):
        between = (float(exact("low", given.low)), float(exact("high", given.high)))
        return Condition(column, Matches(between=between), given.words)
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
    if categories is None or not condition.matches.equals:
        return
    declared = set(categories)
    strangers = [category for category in condition.matches.equals if category not in declared]
    if strangers:
        raise InvalidParameter(
            f"where must name declared categories of column {column.name!r}, which are "
            f"{shown(categories)}, got {shown(strangers[0])}"
        )
