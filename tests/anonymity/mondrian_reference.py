"""Mondrian as it is told: a plain recursion over lists of rows, and goals by their definitions."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

from sfumato.anonymity.goals import DistinctDiversity, EntropyDiversity, KAnonymity, RecursiveDiversity
from sfumato.anonymity.hierarchies import Tree
from sfumato.anonymity.partition import Partition
from sfumato.anonymity.rows import Rows


@dataclass(frozen=True)
class Row:
    """A row by its places among the distinct values, and by its values."""

    quasi: tuple[int, ...]
    sensitive: tuple[int, ...]


class Reference:
    """The algorithm as it is told, one segment after another; the options are mistakes it could have."""

    def __init__(
        self,
        rows: Rows,
        meets: Callable[[Sequence[Row]], bool],
        *,
        relaxed: bool = False,
        trees: dict[str, Tree] | None = None,
        upto: bool = False,
        narrowest: bool = False,
    ) -> None:
        self.rows, self.meets, self.relaxed, self.trees = rows, meets, relaxed, trees or {}
        self.upto, self.narrowest = upto, narrowest
        self.orders = [self._order(j) for j in range(len(rows.quasi))]

    def classes(self) -> list[list[Row]]:
        quasi = zip(*(coded.codes.tolist() for coded in self.rows.quasi), strict=True)
        sensitive = [coded.codes.tolist() for coded in self.rows.sensitive]
        held = zip(*sensitive, strict=True) if sensitive else (() for _ in range(self.rows.n))
        start = self._spread([Row(one, other) for one, other in zip(quasi, held, strict=True)])
        return self._cut(start)

    def _order(self, j: int) -> dict[int, tuple[int, ...]]:
        """By code, what a column is sorted by: the code, or in a tree the first code of every ancestor."""
        coded = self.rows.quasi[j]
        if coded.name not in self.trees:
            return {code: (code,) for code in range(len(coded.values))}
        paths = {code: self._path(coded.name, value) for code, value in enumerate(coded.values)}
        depth = max(map(len, paths.values()))
        order = {}
        for code, path in paths.items():
            heads = [path[:i] for i in range(1, depth + 1)]
            order[code] = tuple(min(c for c, p in paths.items() if p[: len(h)] == h) for h in heads)
        return order

    def _path(self, name: str, value: object) -> tuple[str, ...]:
        return ("*", "null") if value is None else self.trees[name].path(str(value))

    def _sorted(self, rows: list[Row], j: int) -> list[Row]:
        return sorted(rows, key=lambda row: self.orders[j][row.quasi[j]])

    def _spread(self, rows: list[Row]) -> list[Row]:
        alike = Counter()
        keys = []
        totals = Counter((row.quasi, row.sensitive) for row in rows)
        for row in rows:
            share = Fraction(2 * alike[row] + 1, 2 * totals[row.quasi, row.sensitive])
            alike[row] += 1
            place = tuple(self.orders[j][code] for j, code in enumerate(row.quasi))
            keys.append((place, share, row.sensitive))
        return [row for _, row in sorted(zip(keys, rows, strict=True), key=lambda pair: pair[0])]

    def _cut(self, rows: list[Row]) -> list[list[Row]]:
        axes = []
        for j, coded in enumerate(self.rows.quasi):
            values = {row.quasi[j] for row in rows}
            if coded.ordered and coded.name not in self.trees and None in coded.values:
                null = len(coded.values) - 1
                axes.append((float(null in values and len(values) > 1), j, True))
            axes.append((self.width(j, values), j, False))
        widest = sorted(axes, key=lambda axis: axis[0] if self.narrowest else -axis[0])
        for width, j, null in widest:
            if not width:
                continue
            parts = self._parts(rows, j, null)
            if all(self.meets(part) for part in parts):
                return [leaf for part in parts for leaf in self._cut(part)]
        return [rows]

    def width(self, j: int, values: set[int]) -> float:
        coded = self.rows.quasi[j]
        if len(values) == 1:
            return 0.0
        if coded.name in self.trees:
            return self.trees[coded.name].loss(self.node(j, values))
        if not coded.ordered:
            return (len(values) - 1) / (len(coded.values) - 1)
        if coded.values[max(values)] is None:
            return 1.0
        held: Any = [value for value in coded.values if value is not None]
        return float((coded.values[max(values)] - coded.values[min(values)]) / (held[-1] - held[0]))

    def node(self, j: int, values: set[int]) -> str:
        coded = self.rows.quasi[j]
        common = "*"
        for step in zip(*(self._path(coded.name, coded.values[code]) for code in values), strict=False):
            if len(set(step)) > 1:
                break
            common = step[0]
        return common

    def _parts(self, rows: list[Row], j: int, null: bool) -> list[list[Row]]:
        coded = self.rows.quasi[j]
        if null:
            absent = len(coded.values) - 1
            return [[r for r in rows if r.quasi[j] != absent], [r for r in rows if r.quasi[j] == absent]]
        ordered = self._sorted(rows, j)
        if coded.name in self.trees:
            level = self._path(coded.name, coded.values[ordered[0].quasi[j]]).index(
                self.node(j, {row.quasi[j] for row in rows})
            )
            parts: dict[str, list[Row]] = {}
            for row in ordered:
                parts.setdefault(self._path(coded.name, coded.values[row.quasi[j]])[level + 1], []).append(
                    row
                )
            return list(parts.values())
        if self.relaxed:
            return [ordered[: len(rows) // 2], ordered[len(rows) // 2 :]]
        median = ordered[len(rows) // 2].quasi[j]
        below = [row for row in ordered if row.quasi[j] < median]
        upto = [row for row in ordered if row.quasi[j] <= median]
        above = len(rows) - len(upto)
        first = below if len(below) > above and not (self.upto and above) else upto
        return [first, ordered[len(first) :]]

    def label(self, j: int, values: set[int]) -> str:
        coded = self.rows.quasi[j]
        texts = [shown(coded.values[code]) for code in sorted(values)]
        if len(texts) == 1:
            return texts[0]
        if coded.name in self.trees:
            return self.node(j, values)
        if not coded.ordered:
            assert len(texts) <= 6
            return "{" + ", ".join(texts) + "}"
        prefix = "null or " if texts[-1] == "null" else ""
        texts = texts[:-1] if prefix else texts
        return prefix + (texts[0] if len(texts) == 1 else f"[{texts[0]}, {texts[-1]}]")

    def loss(self, j: int, values: set[int]) -> float:
        coded = self.rows.quasi[j]
        if coded.ordered or coded.name in self.trees:
            return self.width(j, values)
        return len(values) / len(coded.values) if len(values) > 1 else 0.0

    def described(self) -> dict[tuple[str, ...], tuple[Counter[Row], tuple[float, ...]]]:
        """Label by label the rows and the losses, in the order of the classes."""
        found: dict[tuple[str, ...], tuple[Counter[Row], tuple[float, ...]]] = {}
        for part in self.classes():
            columns = [{row.quasi[j] for row in part} for j in range(len(self.rows.quasi))]
            labels = tuple(self.label(j, values) for j, values in enumerate(columns))
            losses = tuple(self.loss(j, values) for j, values in enumerate(columns))
            found.setdefault(labels, (Counter(), losses))[0].update(part)
        return found


def shown(value: object) -> str:
    if value is None:
        return "null"
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)


def described(
    partition: Partition, rows: Rows
) -> dict[tuple[str, ...], tuple[Counter[Row], tuple[float, ...]]]:
    """What `Reference.described` tells, of a partition."""
    members: list[Counter[Row]] = [Counter() for _ in range(partition.count)]
    for i, c in enumerate(partition.classes.tolist()):
        quasi = tuple(int(coded.codes[i]) for coded in rows.quasi)
        members[c][Row(quasi, tuple(int(coded.codes[i]) for coded in rows.sensitive))] += 1
    labels = list(zip(*partition.labels, strict=True))
    losses = [tuple(float(one[c]) for one in partition.losses) for c in range(partition.count)]
    assert len(set(labels)) == len(labels)
    return dict(zip(labels, zip(members, losses, strict=True), strict=True))


def meets_of(rows: Rows, goals: Sequence[Any]) -> Callable[[Sequence[Row]], bool]:
    """Whether a list of rows meets goals about k or the first sensitive column, by their definitions."""
    whole = Counter(rows.sensitive[0].codes.tolist()) if rows.sensitive else Counter()

    def meets(part: Sequence[Row]) -> bool:
        counts = Counter(row.sensitive[0] for row in part) if rows.sensitive else Counter()
        return bool(part) and all(_meets(goal, len(part), counts) for goal in goals)

    def _meets(goal: Any, n: int, counts: Counter[int]) -> bool:
        ranked = sorted(counts.values(), reverse=True)
        if isinstance(goal, KAnonymity):
            return n >= goal.k
        if isinstance(goal, DistinctDiversity):
            return len(ranked) >= goal.l
        if isinstance(goal, EntropyDiversity):
            return bool(Fraction(n**n, prod(c**c for c in ranked)) >= goal.l**n)
        if isinstance(goal, RecursiveDiversity):
            return bool(ranked[0] < goal.c * sum(ranked[goal.l - 1 :]))
        moved = [Fraction(counts[value], n) - Fraction(whole[value], rows.n) for value in sorted(whole)]
        return bool(sum(map(abs, moved)) / 2 <= goal.t)

    return meets
