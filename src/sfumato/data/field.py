"""The public facts of one column, as a curator declares them."""

from dataclasses import dataclass
from typing import Any, Literal

from sfumato.checks import Number, keep, one_of, pair, positive, shown
from sfumato.data.column import Category, Column, checked_categories
from sfumato.data.counts import NULL_RULES, NullRule
from sfumato.data.moments import Moment, Reads, public_text, read_moment, reading
from sfumato.errors import InvalidParameter
from sfumato.grid import exact_bounds

Declared = Literal["integer", "real", "text", "boolean", "date", "datetime"]
# Codes such as 1 and 2 are stored as reals where a table has nulls; a Python list has no other numbers.
STORED: dict[Declared, tuple[str, ...]] = {
    "integer": ("integer", "real"),
    "real": ("integer", "real"),
    "text": ("text",),
    "boolean": ("boolean",),
    "date": ("integer",),
    "datetime": ("real",),
}
_CATEGORY: dict[Declared, type] = {"integer": int, "real": int, "text": str, "boolean": bool}
Bound = Number | Moment | str


@dataclass(frozen=True)
class Field:
    """The public facts of one column: bounds or categories, and what becomes of nulls.

    Guarantee:
        Holds what you declare and never looks at the data; a wrong declaration is refused at once.

    Args:
        bounds: (lower, upper) of a column of numbers or dates, from public knowledge. Dates may be
            `datetime.date`, `datetime.datetime` (without a time zone taken as UTC) or, where `kind` says so,
            ISO text; they are kept as exact numbers, of days or of seconds since 1970-01-01.
        categories: the public list of values of a text, integer or boolean column.
        nulls: "drop", "lower" or "upper"; see `sfumato.Mean`.
        kind: the declared type: "integer", "real", "text", "boolean", "date" or "datetime"; None for that of
            the data, or of the bounds if these are dates.
        step: the distance of possible values of a numeric column, from public knowledge; of dates in days,
            of datetimes in seconds.

    Raises:
        InvalidParameter: a fact is out of range, or does not fit the declared type.

    >>> Field(bounds=(0, 120), nulls="drop", kind="integer")
    Field(bounds=(0, 120), categories=None, nulls='drop', kind='integer', step=None)
    >>> Field(bounds=("1970-01-02", "1970-12-31"), kind="date").bounds
    (Fraction(1, 1), Fraction(364, 1))
    """

    bounds: tuple[Any, Any] | None = None
    categories: tuple[Category, ...] | None = None
    nulls: NullRule | None = None
    kind: Declared | None = None
    step: Number | None = None

    def __post_init__(self) -> None:
        if self.bounds is not None:
            self._read_bounds(pair("bounds", self.bounds))
        if self.categories is not None:
            object.__setattr__(self, "categories", checked_categories("categories", self.categories))
        if self.nulls is not None:
            one_of("nulls", self.nulls, NULL_RULES)
        if self.kind is not None:
            self._check_kind(one_of("kind", self.kind, tuple(STORED)))
        if self.step is not None:
            keep(self, step=positive("step", self.step))

    @property
    def reads(self) -> Reads:
        """What the numbers of the column stand for, as declared."""
        return self.kind if self.kind in ("date", "datetime") else "number"

    def holds(self, column: Column) -> bool:
        """Whether a column is of the declared type, as far as its own type tells."""
        if self.kind is None or column.kind == "unknown":
            return True
        return column.kind in STORED[self.kind] and column.reads == self.reads

    def _read_bounds(self, bounds: tuple[Any, Any]) -> None:
        kinds = {reading(bound) for bound in bounds} - {"number"}
        if self.kind is None and len(kinds) == 1:
            keep(self, kind=kinds.pop())
        if self.kind in ("date", "datetime"):
            reads = self.reads
            keep(self, bounds=tuple(read_moment("bounds", bound, reads) for bound in bounds))
        elif kinds:
            raise InvalidParameter(
                f"bounds must be numbers for kind={self.kind!r}, got bounds={shown(self.bounds)}"
            )
        exact_bounds(*pair("bounds", self.bounds))

    @property
    def bound_texts(self) -> tuple[str, str] | None:
        """The bounds for people: dates as ISO text.

        >>> Field(bounds=("2020-01-01", "2020-12-31"), kind="date").bound_texts
        ('2020-01-01', '2020-12-31')
        """
        if self.bounds is None:
            return None
        low, high = (public_text(end, self.reads) for end in exact_bounds(*pair("bounds", self.bounds)))
        return low, high

    def _check_kind(self, kind: Declared) -> None:
        if kind in ("date", "datetime"):
            if self.categories is not None:
                raise InvalidParameter(f"categories must be None for kind={kind!r}: dates have bounds")
            return
        if kind in ("text", "boolean"):
            for fact in ("bounds", "step"):
                value = getattr(self, fact)
                if value is not None:
                    raise InvalidParameter(
                        f"{fact} must be None for kind={kind!r}, got {fact}={shown(value)}"
                    )
        if self.categories is not None and type(self.categories[0]) is not _CATEGORY[kind]:
            raise InvalidParameter(
                f"categories must be {_CATEGORY[kind].__name__} for kind={kind!r}, "
                f"got categories={shown(self.categories)}"
            )
