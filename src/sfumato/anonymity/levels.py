"""A column at each level of its hierarchy: which values show the same label, and what is lost by it."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.rows import cell
from sfumato.checks import shown
from sfumato.errors import InvalidParameter

# What is shown where a value is hidden altogether, and where there was none.
TOP, MISSING = "*", "null"
# Of one hierarchy; a column of so many levels is not read by people any more.
MOST_LEVELS = 60


@dataclass(frozen=True)
class Levels:
    """The values of a column at each level, from the finest (0) to the top, where all of them are one.

    Guarantee:
        Each level joins groups of the level below and splits none; no two groups of a level share a label.
        The loss of a value never falls from a level to the next.

    Args:
        codes: of shape (height + 1, number of values): the group of each value at each level.
        labels: what each group of each level shows.
        losses: the normalised certainty penalty of each group, in [0, 1].
        name: of the column, for messages.

    Raises:
        InvalidParameter: a level splits a group of the level below, or labels are not told apart.

    >>> import numpy as np
    >>> codes = np.array([[0, 1, 2], [0, 0, 1], [0, 0, 0]], dtype=np.int32)
    >>> losses = (np.zeros(3), np.array([0.5, 0.0]), np.ones(1))
    >>> Levels(codes, (("a", "b", "c"), ("ab", "c"), ("*",)), losses).height
    2
    """

    codes: NDArray[np.int32]
    labels: tuple[tuple[str, ...], ...]
    losses: tuple[NDArray[np.float64], ...]
    name: str = "column"

    def __post_init__(self) -> None:
        for level, labels in enumerate(self.labels):
            if len(set(labels)) < len(labels):
                words = f"two groups of level {level} have one label: name them apart, or set `missing`"
                raise InvalidParameter(f"hierarchy of {self.name!r}: {words}")
        for level in range(self.height):
            self.steps(level, level + 1)
        if len(self.labels[-1]) > 1:
            raise InvalidParameter(f"hierarchy of {self.name!r}: the last level must be one group")
        lost = [losses[codes] for losses, codes in zip(self.losses, self.codes, strict=True)]
        falling = any((after < before).any() for before, after in pairwise(lost))
        if falling or not all(((each >= 0) & (each <= 1)).all() for each in lost):
            words = "losses must be in [0, 1] and not fall from a level to the next"
            raise InvalidParameter(f"hierarchy of {self.name!r}: {words}")

    @property
    def height(self) -> int:
        """The number of the top level."""
        return len(self.labels) - 1

    def steps(self, low: int, high: int) -> NDArray[np.int32]:
        """For each group of level `low` the group of level `high` that holds it."""
        groups = np.full(len(self.labels[low]), -1, dtype=np.int32)
        groups[self.codes[low]] = self.codes[high]
        if (groups[self.codes[low]] != self.codes[high]).any():
            words = f"level {high} must not split a group of level {low}"
            raise InvalidParameter(f"hierarchy of {self.name!r}: {words}")
        return groups


class Hierarchy(Protocol):
    """What generalises a column."""

    def levels_of(self, values: Sequence[object], name: str = "column") -> Levels:
        """The distinct values of a column at each level."""
        ...


@dataclass(frozen=True)
class Level:
    """One level as it is made: the group of each value by a key, and the label and loss of a key."""

    keys: Sequence[Hashable]
    label: Callable[..., str]
    loss: Callable[..., float]


def levels_from(made: Sequence[Level], present: Sequence[bool], name: str, missing: str) -> Levels:
    """Levels below a common top "*"; where a value is missing, it is a group of its own up to the top.

    Args:
        made: with keys for the values that are present, in their order.
        present: for each value of the column, whether there is one.
    """
    codes = np.empty((len(made) + 1, len(present)), dtype=np.int32)
    there = np.asarray(present, dtype=bool)
    labels: list[tuple[str, ...]] = []
    losses = []
    for row, level in zip(codes, made, strict=False):
        places = {key: place for place, key in enumerate(dict.fromkeys(level.keys))}
        texts = [level.label(key) for key in places]
        lost = [level.loss(key) for key in places]
        row[there] = np.fromiter(map(places.__getitem__, level.keys), np.int32, len(level.keys))
        if not there.all():
            row[~there] = len(texts)
            texts, lost = [*texts, missing], [*lost, 0.0]
        labels.append(tuple(texts))
        losses.append(np.array(lost, dtype=np.float64))
    codes[-1] = 0
    top = min(len(present), 1)
    return Levels(codes, (*labels, (TOP,) * top), (*losses, np.ones(top)), name)


def star(values: Sequence[object], name: str, missing: str = MISSING) -> Levels:
    """The two levels of a column without a hierarchy: the value itself, and "*"."""
    present = [value is not None for value in values]
    keys = [value for value in values if value is not None]
    return levels_from([Level(keys, cell, no_loss)], present, name, missing)


def no_loss(key: object) -> float:
    """What is lost where a value is shown as it is."""
    return 0.0


def text(name: str, value: object) -> str:
    """A parameter that must be text and not empty."""
    if not isinstance(value, str) or not value:
        raise InvalidParameter(f"{name} must be text, got {name}={shown(value)}")
    return value
