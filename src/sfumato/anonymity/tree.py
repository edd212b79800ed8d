"""Trees of categories: which names lie under which."""

import datetime
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from sfumato.anonymity.levels import MISSING, MOST_LEVELS, TOP, Level, Levels, levels_from, text
from sfumato.anonymity.rows import cell
from sfumato.checks import keep, shown
from sfumato.errors import InvalidParameter


@dataclass(frozen=True)
class Tree:
    """A tree of categories below "*": each level shows the ancestors one step nearer to "*".

    The leaves show at level 0, and "*" at the height of the tree. A leaf nearer to the top than others shows
    itself until the others are as near. The top is always "*"; a single name at the top is taken for it. A
    cell that is missing shows "null" up to the top, and is "*" there.

    Guarantee:
        A public fact: it is given by its user and never read from a table. Each level joins groups of
        the level below, and no more. No privacy follows from a hierarchy alone.

    Args:
        names: nested, {"Europe": {"Iberia": ["Spain", "Portugal"]}}, or child to parent, {"Spain": "Iberia"}.
        missing: the label of missing cells.

    Raises:
        InvalidParameter: a name has two parents or lies below itself, or the tree has no leaf or is too high.

    >>> tree = Tree({"Europe": ["Spain", "France"], "Asia": {"East": ["Japan", "Korea"]}})
    >>> tree.levels_of(["France", "Japan", "Korea"]).labels
    (('France', 'Japan', 'Korea'), ('France', 'East'), ('Europe', 'Asia'), ('*',))
    >>> tree.ancestor(["Japan", "Korea"]), tree.leaves("Asia"), tree.loss("Asia")
    ('East', ('Japan', 'Korea'), 0.5)
    """

    names: Mapping[str, Any]
    missing: str = MISSING

    def __post_init__(self) -> None:
        given: object = self.names
        if not isinstance(given, Mapping) or not given:
            raise InvalidParameter(f"a tree must be a mapping of names, got {shown(given)}")
        text("missing", self.missing)
        flat = all(isinstance(above, str) for above in self.names.values())
        pairs = self.names.items() if flat else _pairs(self.names)
        keep(self, names=_rooted(dict(_checked(pairs))))
        # From the top nothing leads to what lies below itself.
        lost = next((name for name in self.names if name not in self._depths), None)
        if lost is not None:
            raise InvalidParameter(f"a name must not lie below itself, as {shown(lost)} or one above it does")
        if self.height > MOST_LEVELS:
            words = f"at most {MOST_LEVELS} steps from a leaf to the top, got {self.height}"
            raise InvalidParameter(f"a tree must have {words}")
        if self.missing in self._depths:
            raise InvalidParameter(f"missing must not be a name of the tree, got missing={self.missing!r}")

    @property
    def root(self) -> str:
        """The name of the top, "*"."""
        return TOP

    @property
    def height(self) -> int:
        """The most steps from a leaf to the top."""
        return max(self._depths.values())

    def parent(self, name: str) -> str:
        """The name right above; that of the top is the top."""
        above: str = self.names.get(name, TOP)
        return above

    def children(self, name: str) -> tuple[str, ...]:
        """The names right below, in the order given; none below a leaf."""
        return self._below.get(name, ())

    def leaves(self, name: str) -> tuple[str, ...]:
        """The leaves at or below a name."""
        found, open_ = [], [name]
        while open_:
            one = open_.pop()
            under = self.children(one)
            open_.extend(reversed(under))
            found.extend([] if under else [one])
        return tuple(found)

    def ancestor(self, names: Iterable[str]) -> str:
        """The lowest name at or above all of these."""
        paths = [self.path(name) for name in dict.fromkeys(names)]
        common = TOP
        for step in zip(*paths, strict=False):
            if len(set(step)) > 1:
                break
            common = step[0]
        return common

    def path(self, name: str) -> tuple[str, ...]:
        """The names from the top down to this one."""
        if name not in self._depths:
            raise InvalidParameter("a name must be one of the tree")
        steps = [name]
        while steps[-1] != TOP:
            steps.append(self.parent(steps[-1]))
        return tuple(reversed(steps))

    def loss(self, name: str) -> float:
        """The share of all leaves at or below a name; 0 for a single leaf, 1 for the top."""
        count = self._counts[name]
        return 1.0 if name == TOP else 0.0 if count == 1 else count / self._counts[TOP]

    def leaf_names(self, values: Sequence[object], name: str = "column") -> list[str | None]:
        """The leaf of each value of a column, None where it is missing; refuses values that are no leaves."""
        leaves = self._depths.keys() - self._below.keys()
        found = [None if value is None else leaf_of(value, leaves) for value in values]
        unknown = sum(one is not None and one not in leaves for one in found)
        if unknown:
            words = f"has {unknown} distinct values that are no leaf of its tree"
            raise InvalidParameter(f"column {name!r} {words}: add them to the hierarchy")
        return found

    def levels_of(self, values: Sequence[object], name: str = "column") -> Levels:
        """The distinct values of a column at each level."""
        leaves = self.leaf_names(values, name)
        paths = [self.path(leaf) for leaf in leaves if leaf is not None]
        made = [
            Level([path[min(len(path) - 1, self.height - up)] for path in paths], str, self.loss)
            for up in range(self.height)
        ]
        return levels_from(made, [leaf is not None for leaf in leaves], name, self.missing)

    @cached_property
    def _below(self) -> dict[str, tuple[str, ...]]:
        below: dict[str, list[str]] = {}
        for name, above in self.names.items():
            below.setdefault(above, []).append(name)
        return {name: tuple(under) for name, under in below.items()}

    @cached_property
    def _depths(self) -> dict[str, int]:
        depths, open_ = {TOP: 0}, [TOP]
        while open_:
            name = open_.pop()
            for under in self._below.get(name, ()):
                depths[under] = depths[name] + 1
                open_.append(under)
        return depths

    @cached_property
    def _counts(self) -> dict[str, int]:
        counts = {name: int(name not in self._below) for name in self._depths}
        for name in sorted(self._depths, key=self._depths.__getitem__, reverse=True):
            if name != TOP:
                counts[self.parent(name)] += counts[name]
        return counts


def leaf(name: object) -> object:
    """A name as cells show it: numbers and dates may stand for themselves, 1.0 for 1."""
    if isinstance(name, Decimal):
        digits = cell(name)
        return digits.rstrip("0").rstrip(".") if "." in digits else digits
    return cell(name) if isinstance(name, int | float | datetime.date) else name


def leaf_of(value: object, leaves: Container[str]) -> str:
    """The leaf that a value of a column is: what its cell shows, or the shortest form of a decimal."""
    shown_ = cell(value)
    return shown_ if shown_ in leaves else str(leaf(value))


def _pairs(nested: Mapping[str, Any]) -> Iterator[tuple[object, object]]:
    open_: deque[tuple[object, object]] = deque([(nested, TOP)])
    while open_:
        inside, above = open_.popleft()
        if isinstance(inside, Mapping):
            for name, under in inside.items():
                yield name, above
                open_.append((under, name))
        elif isinstance(inside, list | tuple):
            for name in inside:
                yield leaf(name), above
        else:
            raise InvalidParameter("below a name of a tree must be a mapping or a list of names")


def _checked(pairs: Iterable[tuple[object, object]]) -> Iterator[tuple[str, str]]:
    seen = set()
    for name, above in pairs:
        if not isinstance(name, str) or not isinstance(above, str):
            raise InvalidParameter(f"names of a tree must be text, got {shown(name)} below {shown(above)}")
        if name == TOP:
            raise InvalidParameter('"*" must not lie below another name of a tree: it is the top')
        if name in seen:
            raise InvalidParameter(f"a name must be in a tree once, got {shown(name)} twice")
        seen.add(name)
        yield name, above


def _rooted(parents: dict[str, str]) -> dict[str, str]:
    """The same tree with "*" at its top."""
    tops = [name for name in dict.fromkeys(parents.values()) if name not in parents]
    first = [name for name, above in parents.items() if above == TOP]
    if TOP in tops and len(tops) == 1:
        # Nested names lie below "*"; a single one there, with names below it, is the top itself.
        lone = first[0] if len(first) == 1 and first[0] in parents.values() else None
        return {name: TOP if above == lone else above for name, above in parents.items() if name != lone}
    if len(tops) == 1:
        return {name: TOP if above == tops[0] else above for name, above in parents.items()}
    return {**{name: TOP for name in tops if name != TOP}, **parents}
