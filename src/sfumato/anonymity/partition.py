"""Classes of rows that show the same: which row is in which, what each class shows, and what that loses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.rows import Rows, cell

SUPPRESSED = -1


@dataclass(frozen=True, eq=False, kw_only=True)
class Partition:
    """Classes of rows: `labels[j][c]` is what quasi-identifier j shows for class c.

    `classes` has the class of every row, -1 for a suppressed one. The numbering depends on what the classes
    hold and never on the order of the rows. `losses[j][c]` is the normalised certainty penalty of that cell,
    in [0, 1]. `levels` and `heights` are those of full-domain generalisation, None for others.
    """

    classes: NDArray[np.int32]
    labels: tuple[tuple[str, ...], ...]
    losses: tuple[NDArray[np.float64], ...]
    levels: tuple[int, ...] | None = None
    heights: tuple[int, ...] | None = None

    @property
    def n(self) -> int:
        """The number of rows, suppressed ones included."""
        return len(self.classes)

    @property
    def count(self) -> int:
        """The number of classes of kept rows."""
        return len(self.labels[0])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many rows each class has."""
        return class_sizes(self.classes, self.count)

    @property
    def suppressed(self) -> int:
        """The number of suppressed rows."""
        return int(np.count_nonzero(self.classes < 0))


def class_sizes(classes: NDArray[Any], count: int) -> NDArray[np.int64]:
    """How many rows each of `count` classes has; rows of class -1 are left out."""
    shifted = np.bincount(np.asarray(classes) + 1, minlength=count + 1)
    return shifted[1:].astype(np.int64, copy=False)


def classes_of(
    columns: Sequence[NDArray[Any]], sizes: Sequence[int]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Rows of equal codes as classes in the order of their codes, and the codes of each class.

    `sizes[j]` is above every code of column j. The second result has a row for each class.

    >>> classes, keys = classes_of([np.array([1, 0, 1]), np.array([2, 2, 2])], [2, 3])
    >>> classes.tolist(), keys.tolist()
    ([1, 0, 1], [[0, 2], [1, 2]])
    """
    key, span = np.zeros(len(columns[0]), dtype=np.int64), 1
    for codes, size in zip(columns, sizes, strict=True):
        if span * size >= 2**62:
            key, span = _compressed(key, span)
        key = key * size + codes
        span *= size
    classes, count = _compressed(key, span)
    places = classes.astype(np.int32)
    # Any row of a class will do: its codes are those of the class.
    some = np.zeros(count, dtype=np.int64)
    some[places] = np.arange(len(places))
    keys = np.empty((count, len(columns)), dtype=np.int32)
    for j, codes in enumerate(columns):
        keys[:, j] = codes[some]
    return places, keys


def _compressed(key: NDArray[np.int64], span: int) -> tuple[NDArray[np.int64], int]:
    """Keys below `span` as their places among the distinct ones."""
    if span <= 4 * len(key) + 1000:
        held = np.flatnonzero(np.bincount(key, minlength=span))
        place = np.zeros(span, dtype=np.int64)
        place[held] = np.arange(len(held))
        return place[key], len(held)
    distinct, inverse = np.unique(key, return_inverse=True)
    return inverse.reshape(-1).astype(np.int64, copy=False), len(distinct)


def as_it_is(rows: Rows) -> Partition:
    """The classes of a table without any generalisation: equal values, no loss."""
    sizes = [len(coded.values) for coded in rows.quasi]
    classes, keys = classes_of([coded.codes for coded in rows.quasi], sizes)
    labels = []
    for j, coded in enumerate(rows.quasi):
        texts = [cell(value) for value in coded.values]
        labels.append(tuple(texts[code] for code in keys[:, j].tolist()))
    losses = tuple(np.zeros(len(keys)) for _ in rows.quasi)
    return Partition(classes=classes, labels=tuple(labels), losses=losses)
