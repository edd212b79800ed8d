"""Goals of an anonymisation: what every class of rows must have; compared exactly.

Classes merge when a table is generalised further. With nothing suppressed every goal here stays met when
classes that meet it merge. With suppression a class that was suppressed can come back by merging with one
that met the goal, and spoil it: then only k-anonymity and distinct diversity stay met (`monotone`).
Proofs: docs/proofs/anonymity.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.class_counts import MOST, ClassCounts, Flags, Ints, Tables, counts_of
from sfumato.anonymity.diversity import (
    DistinctDiversity,
    EntropyDiversity,
    RecursiveDiversity,
    sensitive_name,
)
from sfumato.anonymity.partition import class_sizes
from sfumato.anonymity.rows import Rows
from sfumato.checks import exact, keep, one_of, shown, whole
from sfumato.errors import InvalidParameter

__all__ = [
    "Checker",
    "Closeness",
    "DistinctDiversity",
    "EntropyDiversity",
    "Goal",
    "KAnonymity",
    "RecursiveDiversity",
]

Distance = Literal["auto", "ordered", "equal"]
DISTANCES: tuple[Distance, ...] = ("auto", "ordered", "equal")

# Floats decide where they differ by more than this, integers where they are closer.
_MARGIN = 1e-9


class Goal(Protocol):
    """What every class must have; `met` tells it of classes by their sizes and their sensitive values."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The sensitive columns that the goal is about."""
        ...

    @property
    def monotone(self) -> bool:
        """Whether a class that meets the goal still does after any other class joins it."""
        ...

    def bind(self, rows: Rows) -> "Goal":
        """The goal with what it needs to know of the whole table."""
        ...

    def met(self, sizes: Ints, tables: Tables) -> Flags:
        """Which classes meet the goal; `tables` has the counts of sensitive values, a row for each class."""
        ...


@dataclass(frozen=True)
class KAnonymity:
    """Every class has at least k rows.

    Guarantee:
        A row shares what its quasi-identifiers show with k - 1 others or more. This is no differential
        privacy: rows of a class may all have the same sensitive value, and what is published can be combined
        with other tables. It stays met when any other class joins; docs/proofs/anonymity.md.

    Args:
        k: the least number of rows, 1 or more.

    Raises:
        InvalidParameter: k is not a whole number of at least 1.

    References:
        [Swe02] for the definition.

    >>> KAnonymity(3).met(np.array([2, 3]), {}).tolist()
    [False, True]
    """

    k: int

    def __post_init__(self) -> None:
        keep(self, k=whole("k", self.k, least=1, most=MOST))

    @property
    def columns(self) -> tuple[str, ...]:
        """No sensitive column."""
        return ()

    @property
    def monotone(self) -> bool:
        """Sizes only grow."""
        return True

    def bind(self, rows: Rows) -> "KAnonymity":
        """The goal itself: it needs nothing of the table."""
        return self

    def met(self, sizes: Ints, tables: Tables) -> Flags:
        """Which classes have k rows."""
        return sizes >= self.k


@dataclass(frozen=True)
class Closeness:
    r"""The values of a sensitive column in every class are distributed nearly as in the whole table.

    Guarantee:
        The earth mover's distance between the shares of values in a class and in the whole table, suppressed
        rows included, is at most t. For ordered values it is
        :math:`\frac{1}{m-1} \sum_i |\sum_{j \le i} (q_j - p_j)|` with the m values of the table in order,
        null the last; at equal distances it is :math:`\frac12 \sum_j |q_j - p_j|`. Compared exactly. No
        differential privacy. Measured against the kept rows alone a class may be farther than t. It stays met
        when classes that meet it merge, but not when one joins that does not; docs/proofs/anonymity.md.

    Args:
        column: the sensitive column.
        t: the largest distance, from 0 to 1.
        distance: "ordered", "equal", or "auto" for ordered numbers and dates and equal others.

    Raises:
        InvalidParameter: t is not in [0, 1], or the distance is unknown.

    References:
        [LLV07] for the definition and both distances.

    >>> from sfumato.anonymity.rows import rows_of
    >>> rows = rows_of({"sex": ["f", "f", "m", "m"], "ill": ["a", "b", "a", "a"]}, ["sex"], ["ill"])
    >>> Checker(rows, [Closeness("ill", t=0.25)]).met(rows.quasi[0].codes, 2).tolist()
    [True, True]
    """

    column: str
    t: Fraction
    distance: Distance = "auto"
    # Set by `bind`: how many rows of the whole table have each value.
    whole: tuple[int, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        threshold = exact("t", self.t)
        if not 0 <= threshold <= 1:
            raise InvalidParameter(f"t must be in [0, 1], got t={shown(self.t)}")
        keep(self, column=sensitive_name(self.column), t=threshold)
        one_of("distance", self.distance, DISTANCES)

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def monotone(self) -> bool:
        """A class far from the whole table that joins increases the distance."""
        return self.t == 1

    def bind(self, rows: Rows) -> "Closeness":
        """The goal with the counts of the whole table and the distance that fits its column."""
        coded = rows.column(self.column)
        chosen: Distance = "ordered" if coded.ordered else "equal"
        distance = chosen if self.distance == "auto" else self.distance
        return replace(self, distance=distance, whole=tuple(coded.counts.tolist()))

    def met(self, sizes: Ints, tables: Tables) -> Flags:
        """Which classes are near the whole table; the goal must be bound."""
        if self.whole is None or self.distance == "auto":
            raise InvalidParameter("a goal of closeness must be bound to rows before classes are tested")
        counts = counts_of(tables, self.column)
        moved, scale = counts.moved(np.array(self.whole, dtype=np.int64), ordered=self.distance == "ordered")
        rows = sum(self.whole)
        # An empty class is at no distance.
        found = moved / np.maximum(counts.sizes * float(rows) * scale, 1)
        near: NDArray[np.float64] = np.asarray(found, dtype=np.float64)
        met: Flags = np.asarray(near <= float(self.t))
        for i in np.flatnonzero(np.abs(near - float(self.t)) < _MARGIN).tolist():
            most = self.t.numerator * int(counts.sizes[i]) * rows * scale
            met[i] = int(moved[i]) * self.t.denominator <= most
        return met


class Checker:
    """Goals bound to the rows of a table: which classes meet all of them."""

    def __init__(self, rows: Rows, goals: Sequence[Goal]) -> None:
        self.rows = rows
        self.goals = tuple(goal.bind(rows) for goal in goals)
        self.columns = tuple(dict.fromkeys(name for goal in self.goals for name in goal.columns))
        self._coded = {name: rows.column(name) for name in self.columns}

    @property
    def k(self) -> int:
        """The least number of rows that a class must have."""
        return max([1, *(goal.k for goal in self.goals if isinstance(goal, KAnonymity))])

    @property
    def sizes_only(self) -> bool:
        """Whether sizes of classes decide all: no goal is about a sensitive column."""
        return not self.columns

    @property
    def monotone(self) -> bool:
        """Whether classes that meet the goals still do after any class joins: suppressed ones too."""
        return all(goal.monotone for goal in self.goals)

    def met(self, classes: NDArray[Any], count: int, rows: NDArray[Any] | None = None) -> Flags:
        """Which of `count` classes meet all goals; `classes` has the class of every row, -1 for none.

        With `rows`, the places of some rows, `classes` has the class of each of these alone. An empty class
        meets nothing.
        """
        sizes = class_sizes(classes, count)
        met = sizes >= self.k
        if self.sizes_only or not met.any():
            return met
        # Sensitive values are counted only where sizes leave the answer open.
        open_ = np.flatnonzero(met)
        place = np.full(count + 1, -1, dtype=np.int64)
        place[open_] = np.arange(len(open_))
        renumbered = place[classes]
        kept = np.flatnonzero(renumbered >= 0)
        held = kept if rows is None else rows[kept]
        tables = {
            name: ClassCounts.of(renumbered[kept], len(open_), coded.codes[held], len(coded.values))
            for name, coded in self._coded.items()
        }
        met[open_] = self.met_tables(sizes[open_], tables)
        return met

    def met_tables(self, sizes: Ints, tables: Tables) -> Flags:
        """Which classes meet all goals, by their sizes and their counts of sensitive values."""
        met = np.asarray(sizes >= self.k)
        for goal in self.goals:
            if not isinstance(goal, KAnonymity):
                met &= goal.met(sizes, tables)
        return met
