"""Diversity: how many values of a sensitive column each class must have, and how evenly."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.class_counts import MOST, Flags, Ints, Tables, counts_of
from sfumato.anonymity.entropy import entropy_reaches
from sfumato.anonymity.rows import Rows
from sfumato.checks import exact, keep, positive, shown, whole
from sfumato.errors import InvalidParameter


@dataclass(frozen=True)
class DistinctDiversity:
    """Every class has at least l different values of a sensitive column.

    Guarantee:
        Who knows the class of a row is left with l values or more, of which one may be far more frequent. A
        null is a value of its own. No differential privacy. It stays met when any other class joins;
        docs/proofs/anonymity.md.

    Args:
        column: the sensitive column.
        l: the least number of values, 1 or more.

    Raises:
        InvalidParameter: l is not a whole number of at least 1.

    References:
        [MKGV07] for the definition.

    >>> DistinctDiversity("ill", 2).met(np.array([3, 3]), {"ill": np.array([[3, 0], [1, 2]])}).tolist()
    [False, True]
    """

    column: str
    l: int  # noqa: E741, the name in the literature

    def __post_init__(self) -> None:
        keep(self, column=sensitive_name(self.column), l=whole("l", self.l, least=1, most=MOST))

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def monotone(self) -> bool:
        """No value is lost when classes merge."""
        return True

    def bind(self, rows: Rows) -> "DistinctDiversity":
        """The goal itself, if the table has the column."""
        rows.column(self.column)
        return self

    def met(self, sizes: Ints, tables: Tables) -> Flags:
        """Which classes have l values."""
        return np.asarray(counts_of(tables, self.column).distinct >= self.l)


@dataclass(frozen=True)
class EntropyDiversity:
    r"""The entropy of a sensitive column in every class is at least log l.

    Guarantee:
        In every class :math:`\exp(-\sum_v q_v \log q_v) \ge l` for the shares :math:`q_v` of the values,
        compared exactly: two equally frequent values meet l = 2. No differential privacy. It stays met when
        classes that meet it merge, but not when one joins that does not; docs/proofs/anonymity.md.

    Args:
        column: the sensitive column.
        l: the least exponential of the entropy, any number of at least 1.

    Raises:
        InvalidParameter: l is not a number of at least 1.

    References:
        [MKGV07] for the definition.

    >>> EntropyDiversity("ill", 2).met(np.array([4, 4]), {"ill": np.array([[3, 1], [2, 2]])}).tolist()
    [False, True]
    """

    column: str
    l: Fraction  # noqa: E741, the name in the literature

    def __post_init__(self) -> None:
        keep(self, column=sensitive_name(self.column), l=_at_least_one("l", self.l))

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def monotone(self) -> bool:
        """A class of one value that joins lowers the entropy."""
        return self.l == 1

    def bind(self, rows: Rows) -> "EntropyDiversity":
        """The goal itself, if the table has the column."""
        rows.column(self.column)
        return self

    def met(self, sizes: Ints, tables: Tables) -> Flags:
        """Which classes have the entropy."""
        return entropy_reaches(counts_of(tables, self.column), self.l)


@dataclass(frozen=True)
class RecursiveDiversity:
    r"""The most frequent value of a class is below c times all but the l - 1 most frequent ones.

    Guarantee:
        In every class :math:`r_1 < c (r_l + \dots + r_m)` for the counts :math:`r_1 \ge r_2 \ge \dots` of the
        values of a sensitive column. No differential privacy. It stays met when classes that meet it merge,
        but not when one joins that does not; docs/proofs/anonymity.md.

    Args:
        column: the sensitive column.
        c: how many times, any positive number.
        l: from which place on values are added, 1 or more.

    Raises:
        InvalidParameter: c is not positive, or l is not a whole number of at least 1.

    References:
        [MKGV07] for the definition.

    >>> tables = {"ill": np.array([[2, 1], [2, 2]])}
    >>> RecursiveDiversity("ill", c=2, l=2).met(np.array([3, 4]), tables).tolist()
    [False, True]
    """

    column: str
    c: Fraction
    l: int  # noqa: E741, the name in the literature

    def __post_init__(self) -> None:
        times, place = positive("c", self.c), whole("l", self.l, least=1, most=MOST)
        keep(self, column=sensitive_name(self.column), c=times, l=place)

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def monotone(self) -> bool:
        """A class of one value that joins raises the most frequent value."""
        return self.l == 1 and self.c > 1

    def bind(self, rows: Rows) -> "RecursiveDiversity":
        """The goal itself, if the table has the column."""
        rows.column(self.column)
        return self

    def met(self, sizes: Ints, tables: Tables) -> Flags:
        """Which classes keep the inequality."""
        counts = counts_of(tables, self.column)
        first: NDArray[Any] = counts.largest
        rest: NDArray[Any] = counts.without_top(self.l - 1)
        if max(self.c.numerator.bit_length(), self.c.denominator.bit_length()) > 31:
            first, rest = first.astype(object), rest.astype(object)
        return np.asarray(first * self.c.denominator < self.c.numerator * rest, dtype=np.bool_)


def sensitive_name(column: object) -> str:
    """The name of a sensitive column, checked."""
    if not isinstance(column, str):
        raise InvalidParameter(f"column must be the name of a sensitive column, got column={shown(column)}")
    return column


def _at_least_one(name: str, value: object) -> Fraction:
    number = exact(name, value)
    if not 1 <= number <= MOST:
        raise InvalidParameter(f"{name} must be in [1, {MOST}], got {name}={shown(value)}")
    return number
