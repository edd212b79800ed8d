"""What every design of randomised response offers, to the respondent and to the analyst."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits, Integers
from sfumato.local.cost import LocalDP, Odds, epsilon_of

Floats = NDArray[np.float64]
# Answers in a row: one integer each, or one row of bits each.
Outputs = NDArray[np.int64]
# The exact probabilities of every answer, by the place of the truth.
Matrix = tuple[tuple[Fraction, ...], ...]

FORMAT = 1
UNREADABLE = "the truth must be {rule}; it is not shown here, because it is not public"


class Design(ABC):
    """What all designs share: a cost that follows from exact odds, and a record of their parameters."""

    TYPE: ClassVar[str]
    # Whether the innocuous answer of a question is a trait that others may know.
    trait: bool = False

    @property
    @abstractmethod
    def odds(self) -> Odds:
        """The largest ratio of the probabilities of one answer under two truths."""

    @property
    def epsilon(self) -> Odds:
        """The logarithm of the worst odds, rounded up to 12 decimals; infinite without protection."""
        return epsilon_of(self.odds)

    @property
    def cost(self) -> LocalDP:
        """What one answer costs its respondent."""
        return LocalDP(self.epsilon)

    @abstractmethod
    def words(self) -> str:
        """The design in words."""

    def to_dict(self) -> dict[str, Any]:
        """The design in JSON's types, numbers as exact text; `design_from_dict` reads it back."""
        values = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]
        return {"format": FORMAT, "type": self.TYPE, **values}


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.to_dict() if isinstance(value, Design) else value


class Channel(Design):
    """A design that one respondent's device can follow: from a truth to a randomised answer."""

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """What is estimated: "yes", or each category."""

    @property
    @abstractmethod
    def support(self) -> tuple[Fraction, Fraction]:
        """The probability that an answer supports a label that is the truth, and one that is not."""

    @property
    @abstractmethod
    def exclusive(self) -> bool:
        """Whether an answer supports exactly one label."""

    @property
    def rounded(self) -> bool:
        """Whether a truth is rounded at random before the channel, which adds noise of its own."""
        return False

    @property
    def span(self) -> tuple[Fraction, Fraction]:
        """What shares of 0 and 1 stand for: 0 and 1, or the bounds of a mean."""
        return Fraction(0), Fraction(1)

    @abstractmethod
    def matrix(self) -> Matrix:
        """The exact probability of every answer, one row for each place of a truth."""

    @abstractmethod
    def place(self, truths: Any, bits: Bits) -> Integers:
        """The places of truths among those that the channel knows; a wrong truth is refused unseen."""

    @abstractmethod
    def draw(self, places: Integers, bits: Bits) -> Outputs:
        """A randomised answer for each place, exactly by the matrix."""

    @abstractmethod
    def spoken(self, output: Outputs) -> Any:
        """One answer as it is sent."""

    @abstractmethod
    def heard(self, answers: Any) -> Outputs:
        """Answers as they were received, checked."""

    @abstractmethod
    def counted(self, outputs: Outputs) -> tuple[int, ...]:
        """How many answers support each label."""


def listed(name: str, values: Any) -> Sequence[Any]:
    """A sequence as it is, an array or a series as a list; text and single values are refused."""
    items = values
    for method in ("to_list", "tolist", "to_pylist"):  # Polars and pandas, NumPy, Arrow
        if not isinstance(values, Sequence) and callable(getattr(values, method, None)):
            items = getattr(values, method)()
            break
    if isinstance(items, str | bytes) or not isinstance(items, Sequence):
        raise InvalidParameter(f"{name} must be a sequence, got {name} of type {type(values).__name__}")
    return items
