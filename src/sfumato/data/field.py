"""The public facts of one column, as a curator declares them."""

from dataclasses import dataclass
from typing import Literal

from sfumato.checks import Number, keep, one_of, pair, positive, shown
from sfumato.data.column import Category, checked_categories
from sfumato.data.counts import NULL_RULES, NullRule
from sfumato.errors import InvalidParameter
from sfumato.grid import exact_bounds

Declared = Literal["integer", "real", "text", "boolean"]
# Codes such as 1 and 2 are stored as reals where a table has nulls; a Python list has no other numbers.
STORED: dict[Declared, tuple[str, ...]] = {
    "integer": ("integer", "real"),
    "real": ("integer", "real"),
    "text": ("text",),
    "boolean": ("boolean",),
}
_CATEGORY: dict[Declared, type] = {"integer": int, "real": int, "text": str, "boolean": bool}


@dataclass(frozen=True)
class Field:
    """The public facts of one column: bounds or categories, and what becomes of nulls.

    Guarantee:
        Holds what you declare and never looks at the data; a wrong declaration is refused at once.

    Args:
        bounds: (lower, upper) of a numeric column, from public knowledge.
        categories: the public list of values of a text, integer or boolean column.
        nulls: "drop", "lower" or "upper"; see `sfumato.Mean`.
        kind: the declared type: "integer", "real", "text" or "boolean"; None for that of the data.
        step: the distance of possible values of a numeric column, from public knowledge.

    Raises:
        InvalidParameter: a fact is out of range, or does not fit the declared type.

    >>> Field(bounds=(0, 120), nulls="drop", kind="integer")
    Field(bounds=(0, 120), categories=None, nulls='drop', kind='integer', step=None)
    """

    bounds: tuple[Number, Number] | None = None
    categories: tuple[Category, ...] | None = None
    nulls: NullRule | None = None
    kind: Declared | None = None
    step: Number | None = None

    def __post_init__(self) -> None:
        if self.bounds is not None:
            exact_bounds(*pair("bounds", self.bounds))
        if self.categories is not None:
            object.__setattr__(self, "categories", checked_categories("categories", self.categories))
        if self.nulls is not None:
            one_of("nulls", self.nulls, NULL_RULES)
        if self.kind is not None:
            self._check_kind(one_of("kind", self.kind, tuple(STORED)))
        if self.step is not None:
            keep(self, step=positive("step", self.step))

    def _check_kind(self, kind: Declared) -> None:
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
