"""Full-domain generalisation: all rows at one level of each column, and what such levels keep and lose.

Rows that are equal at the lowest levels are counted once, and the counts are added up from finer levels to
coarser ones, so that the cost of looking at levels is that of their classes, not of the rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor, prod

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.class_counts import ClassCounts
from sfumato.anonymity.goals import Checker, Goal
from sfumato.anonymity.levels import Hierarchy, star
from sfumato.anonymity.partition import Partition, class_sizes, classes_of
from sfumato.anonymity.rows import Rows
from sfumato.checks import exact, shown
from sfumato.errors import InvalidParameter

Node = tuple[int, ...]
# Tables of counts that are held to start from, besides the finest one.
_HELD = 32


@dataclass(frozen=True)
class Judged:
    """What one level of each column keeps and loses.

    `loss` and `discernibility` count suppressed rows in full. `pairs` is the sum of the squared sizes of
    all classes, suppressed ones too: it never falls when levels rise. `barred` is the part of the suppressed
    rows that never grows when levels rise.
    """

    node: Node
    suppressed: int
    barred: int
    loss: float
    discernibility: int
    pairs: int


@dataclass(frozen=True, eq=False)
class _Counts:
    """Classes by the codes that they show, with their rows and the rows of each sensitive value."""

    codes: NDArray[np.int32]
    sizes: NDArray[np.int64]
    sensitive: Mapping[str, ClassCounts]

    @property
    def entries(self) -> int:
        """How many counts there are: what they cost to hold and to add up."""
        return len(self.sizes) + sum(len(table.counts) for table in self.sensitive.values())


class Lattice:
    """All choices of one level for each column of a table."""

    def __init__(
        self,
        rows: Rows,
        hierarchies: Mapping[str, Hierarchy],
        goals: Checker | Sequence[Goal],
        suppression: object,
    ) -> None:
        share = exact("suppression", suppression)
        if not 0 <= share <= 1:
            raise InvalidParameter(f"suppression must be in [0, 1], got suppression={shown(suppression)}")
        names = [coded.name for coded in rows.quasi]
        unknown = next((name for name in hierarchies if name not in names), None)
        if unknown is not None:
            raise InvalidParameter(f"hierarchies must be of quasi-identifiers, got {unknown!r}")
        self.rows, self.suppression = rows, share
        self.most = floor(share * rows.n)
        self.checker = goals if isinstance(goals, Checker) else Checker(rows, goals)
        self.levels = tuple(
            hierarchies[coded.name].levels_of(coded.values, coded.name)
            if coded.name in hierarchies
            else star(coded.values, coded.name)
            for coded in rows.quasi
        )
        self.heights = tuple(levels.height for levels in self.levels)
        self._held: dict[Node, _Counts] = {}

    @property
    def count(self) -> int:
        """How many choices there are."""
        return prod(height + 1 for height in self.heights)

    @cached_property
    def lasting(self) -> Checker:
        """The goals by which higher levels suppress no more rows: with suppression only monotone ones."""
        if self.most == 0 or self.checker.monotone:
            return self.checker
        return Checker(self.rows, [goal for goal in self.checker.goals if goal.monotone])

    @cached_property
    def mean_losses(self) -> tuple[NDArray[np.float64], ...]:
        """For each column the average loss of its cells at each level, with no row suppressed."""
        means = []
        for coded, levels in zip(self.rows.quasi, self.levels, strict=True):
            cells = [losses[codes] for losses, codes in zip(levels.losses, levels.codes, strict=True)]
            means.append(np.array(cells) @ coded.counts / self.rows.n)
        return tuple(means)

    @cached_property
    def log_pairs(self) -> tuple[NDArray[np.float64], ...]:
        """For each column alone the logarithm of the sum of its squared group sizes at each level."""
        found = []
        for coded, levels in zip(self.rows.quasi, self.levels, strict=True):
            sizes = [np.bincount(codes, weights=coded.counts) for codes in levels.codes]
            found.append(np.log([each @ each for each in sizes]))
        return tuple(found)

    def serves(self, suppressed: int) -> bool:
        """Whether so many suppressed rows are no more than may be, and not all."""
        return suppressed <= self.most and suppressed < self.rows.n

    def judged(self, node: Node) -> Judged:
        """What these levels keep and lose."""
        counts = self._counts(node)
        sizes, width = counts.sizes, len(node)
        lasting = self._met(counts, self.lasting)
        met = lasting if self.lasting is self.checker else self._met(counts, self.checker)
        kept = sizes[met]
        lost = np.zeros(len(kept))
        for j, level in enumerate(node):
            lost += self.levels[j].losses[level][counts.codes[met, j]]
        suppressed = self.rows.n - int(kept.sum())
        return Judged(
            node,
            suppressed,
            self.rows.n - int(sizes[lasting].sum()),
            float(kept @ lost + suppressed * width) / (self.rows.n * width),
            int(kept @ kept) + self.rows.n * suppressed,
            int(sizes @ sizes),
        )

    def partition(self, node: Node) -> Partition:
        """The classes of all rows at these levels; rows of classes that miss a goal are suppressed."""
        columns = [
            levels.codes[level][coded.codes]
            for levels, level, coded in zip(self.levels, node, self.rows.quasi, strict=True)
        ]
        classes, keys = classes_of(columns, self._sizes(node))
        met = self.checker.met(classes, len(keys))
        numbers = np.where(met, np.cumsum(met) - 1, -1).astype(np.int32)
        kept = keys[met]
        labels, losses = [], []
        for j, (levels, level) in enumerate(zip(self.levels, node, strict=True)):
            texts = levels.labels[level]
            labels.append(tuple(texts[code] for code in kept[:, j].tolist()))
            losses.append(levels.losses[level][kept[:, j]])
        return Partition(
            classes=numbers[classes],
            labels=tuple(labels),
            losses=tuple(losses),
            levels=node,
            heights=self.heights,
        )

    def refused(self) -> InvalidParameter:
        """The error that no levels serve."""
        share = f"suppression={shown(self.suppression)}"
        return InvalidParameter(
            f"the goals must be within reach of the hierarchies, but with {share} no levels meet them: "
            "allow more suppression, or ask for less"
        )

    def _sizes(self, node: Node) -> list[int]:
        return [len(levels.labels[level]) for levels, level in zip(self.levels, node, strict=True)]

    def _met(self, counts: _Counts, checker: Checker) -> NDArray[np.bool_]:
        met = counts.sizes >= checker.k
        if checker.sizes_only or not met.any():
            return met
        # Sensitive values are counted only where sizes leave the answer open.
        open_ = np.flatnonzero(met)
        place = np.cumsum(met) - 1
        tables = {}
        for name, table in counts.sensitive.items():
            held = met[table.owners]
            owners = place[table.owners[held]]
            tables[name] = ClassCounts(
                len(open_), table.values, owners, table.codes[held], table.counts[held]
            )
        met[open_] = checker.met_tables(counts.sizes[open_], tables)
        return met

    def _counts(self, node: Node) -> _Counts:
        if node in self._held:
            return self._held[node]
        below = [
            (counts.entries, held)
            for held, counts in self._held.items()
            if all(low <= high for low, high in zip(held, node, strict=True))
        ]
        if below:
            source = min(below)[1]
            found = self._risen(self._held[source], source, node)
        else:
            found = self._risen(self._finest, (0,) * len(node), node)
        # Coarse tables are small: many are held for the price of the finest.
        room = 2 * self._finest.entries
        self._held[node] = found
        while len(self._held) > _HELD or sum(held.entries for held in self._held.values()) > room:
            self._held.pop(next(iter(self._held)))
        return found

    @cached_property
    def _finest(self) -> _Counts:
        bottom = (0,) * len(self.levels)
        columns = [
            levels.codes[0][coded.codes] for levels, coded in zip(self.levels, self.rows.quasi, strict=True)
        ]
        classes, keys = classes_of(columns, self._sizes(bottom))
        sensitive = {}
        for name in self.checker.columns:
            coded = self.rows.column(name)
            sensitive[name] = ClassCounts.of(classes, len(keys), coded.codes, len(coded.values))
        return _Counts(keys, class_sizes(classes, len(keys)), sensitive)

    def _risen(self, counts: _Counts, low: Node, high: Node) -> _Counts:
        if low == high:
            return counts
        columns = [
            levels.steps(below, above)[counts.codes[:, j]]
            for j, (levels, below, above) in enumerate(zip(self.levels, low, high, strict=True))
        ]
        classes, keys = classes_of(columns, self._sizes(high))
        sensitive = {}
        for name, table in counts.sensitive.items():
            pairs, both = classes_of([classes[table.owners], table.codes], [len(keys), table.values])
            owners, codes = both.astype(np.int64).T
            sensitive[name] = ClassCounts(
                len(keys), table.values, owners, codes, _added(pairs, table.counts, len(both))
            )
        return _Counts(keys, _added(classes, counts.sizes, len(keys)), sensitive)


def _added(classes: NDArray[np.int32], rows: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The rows of each class; sums of float64 are exact below 2^53."""
    return np.bincount(classes, weights=rows, minlength=count).astype(np.int64)
