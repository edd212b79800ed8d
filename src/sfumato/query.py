"""What a statistic must offer to be released, audited, previewed and stored."""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.data.column import Column
from sfumato.data.field import Field
from sfumato.data.part import WHOLE, Part
from sfumato.laws import Law
from sfumato.privacy import (
    ZCDP,
    Amount,
    ApproxDP,
    Budget,
    Event,
    Neighbours,
    PureDP,
    budget_from_dict,
)

Outcome = tuple[int, ...]
Label = str | int | float | bool
Answer = float | int | NDArray[Any] | Label | tuple[Label, ...] | None
Interval = tuple[Any, Any]
Cost = Budget | Amount

# No exponents: "1e999999999" is short to write and a billion digits to read.
_RATIO = re.compile(r"-?[0-9]{1,1000}(/[0-9]{1,1000})?")


class Charged(Protocol):
    """What a ledger needs to know of anything that is paid for: a statistic, a stream, a choice."""

    name: ClassVar[str]

    @property
    def column(self) -> str: ...
    @property
    def neighbours(self) -> Neighbours | None: ...
    @property
    def event(self) -> Event: ...
    @property
    def cost(self) -> Cost: ...


class Released(Charged, Protocol):
    """What a release needs to know of what was asked: all of it is post-processing by public facts."""

    @property
    def described(self) -> str: ...

    @property
    def parts_drawn(self) -> int:
        """How many integers an outcome has, at most."""
        ...

    def possible(self, outcome: Outcome) -> bool:
        """Whether the law could have drawn this outcome, by its shape and its public range."""
        ...

    def value(self, outcome: Outcome) -> Answer: ...

    def interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Where the data's own value lies; NotSupported where the answer is no number."""
        ...

    def population_interval(self, outcome: Outcome, confidence: float) -> Interval: ...
    def labels(self) -> tuple[str, ...]: ...
    def notes(self, outcome: Outcome) -> tuple[str, ...]: ...


class Query(Released, Protocol):
    """A statistic asked for: public parameters only, so that its cost and accuracy are known before the data.

    `law(look(column))` is the joint law of a raw integer outcome. Everything after the draw (`value`,
    `interval`, `notes`) is post-processing of that outcome by public facts.
    """

    @property
    def sized(self) -> bool:
        """Whether the accuracy depends on the number of values, which may be private."""
        ...

    @property
    def rows(self) -> int | None: ...

    @property
    def budget(self) -> Budget: ...
    @property
    def changes(self) -> int | None: ...
    @property
    def among(self) -> tuple[tuple[str, str], ...]: ...

    def bind(self, column: Column, field: Field, neighbours: Neighbours, part: Part = WHOLE) -> Self:
        """The query with the public facts of a data set, and of the part that is asked about, filled in."""
        ...

    def check(self, column: Column) -> None:
        """Refuse a column of the wrong kind, before anything is charged."""
        ...

    def look(self, column: Column) -> Any:
        """Read the data: the integers that the law is centred on."""
        ...

    def law(self, view: Any) -> Law:
        """The law of the raw outcome."""
        ...

    def error(self, rows: int, confidence: float) -> float: ...

    def accuracy(self, n: int | None = None, *, confidence: Any = 0.95, scenario: Any = None) -> Any:
        """The accuracy before paying, an `accuracy.Accuracy`; NotSupported if the answer is no number."""
        ...

    def accuracy_words(self, error: float) -> str: ...


def raw(drawn: Any) -> Outcome:
    """The outcome that a law drew, whatever its shape, as a tuple of Python integers.

    >>> raw((1, 2)), raw(3), raw(np.array([4, 5]))
    ((1, 2), (3,), (4, 5))
    """
    if isinstance(drawn, np.ndarray):
        return tuple(drawn.tolist())
    return tuple(int(part) for part in drawn) if isinstance(drawn, tuple) else (int(drawn),)


def encode(value: Any) -> Any:
    """A public parameter in JSON; exact numbers stay exact."""
    if isinstance(value, PureDP | ApproxDP | ZCDP):
        return {"budget": value.to_dict()}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if is_dataclass(value) and not isinstance(value, type):
        # An option that carries parameters: its name, then each parameter with its name.
        options = ([field.name, encode(getattr(value, field.name))] for field in fields(value))
        return [value.name, *options]  # type: ignore[attr-defined]
    return [encode(item) for item in value] if isinstance(value, tuple) else value


def decode(value: Any) -> Any:
    """The inverse of `encode`; KeyError, TypeError or ValueError for anything else."""
    if isinstance(value, Mapping):
        ((tag, content),) = value.items()
        if tag == "fraction" and _RATIO.fullmatch(content):
            return Fraction(content)
        return budget_from_dict(value["budget"])
    return tuple(decode(item) for item in value) if isinstance(value, list) else value


def parameters(query: Any) -> dict[str, Any]:
    """Every public parameter of a query, by name, in JSON."""
    return {field.name: encode(getattr(query, field.name)) for field in fields(query)}
