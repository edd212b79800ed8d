"""Re-identification: how likely who knows the quasi-identifiers of a person picks the person's row."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import whole


@dataclass(frozen=True, kw_only=True)
class Risk:
    """Which rows can be picked out by their quasi-identifiers, for someone who knows that they are there.

    Guarantee:
        The numbers of a prosecutor: who knows the quasi-identifiers of a person of the table picks one row of
        the class at random. They hold for that attack alone and say nothing of sensitive values.

    Args:
        histogram: how many classes there are of each size, by size.

    >>> risk = Risk(histogram=((1, 2), (3, 1)))
    >>> risk.highest, risk.average, risk.uniques, risk.share_below(3)
    (1.0, 0.6, 2, 0.4)
    """

    histogram: tuple[tuple[int, int], ...]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(size * count for size, count in self.histogram)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return sum(count for _, count in self.histogram)

    @property
    def highest(self) -> float:
        """The risk of a row in the smallest class: 1 over its size; 0 without rows."""
        return 1 / self.histogram[0][0] if self.histogram else 0.0

    @property
    def average(self) -> float:
        """The average risk of a row, the share of rows that are expected to be picked: classes over rows."""
        return self.classes / self.rows if self.histogram else 0.0

    @property
    def uniques(self) -> int:
        """How many rows are alone in their class."""
        return dict(self.histogram).get(1, 0)

    def share_below(self, k: int) -> float:
        """The share of rows in classes of fewer than k rows, whose risk is above 1/k."""
        least = whole("k", k, least=1, most=2**31 - 1)
        below = sum(size * count for size, count in self.histogram if size < least)
        return float(Fraction(below, self.rows)) if self.histogram else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The numbers in JSON's types."""
        return {"highest": self.highest, "average": self.average, "uniques": self.uniques}


def class_histogram(sizes: NDArray[Any]) -> tuple[tuple[int, int], ...]:
    """How many classes there are of each size, by size; empty classes are none.

    >>> class_histogram(np.array([3, 1, 1, 0]))
    ((1, 2), (3, 1))
    """
    found, counts = np.unique(sizes[sizes > 0], return_counts=True)
    return tuple(zip(found.tolist(), counts.tolist(), strict=True))
