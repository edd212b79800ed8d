"""Mondrian: a table is cut along its widest columns, as long as every part meets the goals."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.goals import Checker, Goal
from sfumato.anonymity.levels import Hierarchy
from sfumato.anonymity.mondrian_columns import Column, column_of
from sfumato.anonymity.mondrian_cuts import Cutter, Leaves
from sfumato.anonymity.partition import Partition, classes_of
from sfumato.anonymity.rows import Rows
from sfumato.checks import boolean
from sfumato.errors import InvalidParameter


def mondrian(
    rows: Rows, goals: Sequence[Goal], *, relaxed: bool = False, trees: Mapping[str, Hierarchy] | None = None
) -> Partition:
    """Classes of rows by cuts along the widest column, as fine as the goals allow.

    The table is one segment at first. A segment is cut along the quasi-identifier in which it is widest, if
    every part then meets all goals; otherwise along the next, ties in the order of `rows`; and if no column
    allows a cut, it is a class. Widths are shares of the column's: the length of the interval of numbers
    or dates, the number of further categories, the leaves below a node of a tree.

    Numbers and dates are cut at their median, which goes to the side that leaves the parts more equal (at a
    tie to the lower). Categories without a tree are cut in the same way in their sorted order, null the last.
    Categories in a tree fall into the nodes below the lowest node that they have in common. Nulls among
    numbers are parted from these as soon as that is allowed; where it is not, they stay with the highest,
    and the cell, "null or [20, 30]", counts as wide as the whole column.

    If relaxed, rows at the median are dealt so that the lower part has half of the rows: first those that are
    low in the columns cut before, the latest first, then in the others in their order. Rows that are equal in
    all columns are dealt in an order that spreads the combinations of sensitive values evenly.

    Guarantee:
        Every class meets all goals, every row is in a class, and the classes do not depend on the order of
        the rows: only rows that are equal in all coded columns may change places. If k is the only goal, no
        class of the strict form has a threshold in a column without a tree that would leave k rows on both
        sides. No differential privacy: the bounds of the classes are values of rows, and one row can move
        many of them.

    Args:
        rows: the coded table.
        goals: what every class must meet.
        relaxed: whether rows with the same value may be parted.
        trees: for columns of categories, by name.

    Raises:
        InvalidParameter: the whole table does not meet a goal, or a tree is of no column or lacks a value.

    References:
        [LDR06] for the strict and the relaxed form.

    >>> from sfumato.anonymity.goals import KAnonymity
    >>> from sfumato.anonymity.rows import rows_of
    >>> rows = rows_of({"age": [24, 31, 28, 60, 55], "sex": ["f", "m", "f", "f", "m"]}, ["age", "sex"])
    >>> partition = mondrian(rows, [KAnonymity(2)])
    >>> partition.classes.tolist(), partition.labels
    ([0, 0, 0, 1, 1], (('[24, 31]', '[55, 60]'), ('{f, m}', '{f, m}')))
    """
    boolean("relaxed", relaxed)
    trees = trees or {}
    names = [coded.name for coded in rows.quasi]
    for name in trees:
        if name not in names:
            raise InvalidParameter(f"trees must be of quasi-identifiers, got one for {name!r}")
    checker = Checker(rows, goals)
    _check_whole(rows, checker)
    columns = [column_of(coded, trees.get(coded.name)) for coded in rows.quasi]

    def fits(members: NDArray[np.int32], sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
        return checker.met(np.repeat(np.arange(len(sizes)), sizes), len(sizes), members)

    cutter = Cutter(columns, least=checker.k, fits=None if checker.sizes_only else fits, relaxed=relaxed)
    order = _dealt(rows, columns) if relaxed else np.arange(rows.n, dtype=np.int32)
    return _partition(columns, cutter.leaves(order))


def _check_whole(rows: Rows, checker: Checker) -> None:
    for goal in checker.goals:
        if not Checker(rows, [goal]).met(np.zeros(rows.n, dtype=np.int32), 1)[0]:
            raise InvalidParameter(
                f"goals must be met by the whole table of {rows.n} rows, which does not meet {goal!r}"
            )


def _dealt(rows: Rows, columns: Sequence[Column]) -> NDArray[np.int32]:
    """An order of the rows by their values, in which equal rows have their sensitive values evenly spread."""
    equal, _ = classes_of([column.codes for column in columns], [column.size for column in columns])
    if not rows.sensitive:
        return np.argsort(equal, kind="stable").astype(np.int32)
    kinds, keys = classes_of(
        [coded.codes for coded in rows.sensitive], [len(coded.values) for coded in rows.sensitive]
    )
    alike, _ = classes_of([equal, kinds], [len(equal), len(keys)])
    order = np.argsort(alike, kind="stable")
    counts = np.bincount(alike)
    nth = np.empty(len(order))
    nth[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    # The i-th of c rows of a kind comes after the share (i + 1/2) / c of its equals.
    return np.lexsort((kinds, (2 * nth + 1) / (2 * counts[alike]), equal)).astype(np.int32)


def _partition(columns: Sequence[Column], leaves: Leaves) -> Partition:
    classes = np.empty(len(leaves.rows), dtype=np.int32)
    classes[leaves.rows] = np.repeat(np.arange(len(leaves.sizes), dtype=np.int32), leaves.sizes)
    shown: list[tuple[Any, NDArray[np.float64]]] = [
        column.shown(leaves.low[j], leaves.high[j], classes) for j, column in enumerate(columns)
    ]
    if len(set(zip(*(labels for labels, _ in shown), strict=True))) < len(leaves.sizes):
        # Parts of equal rows can show the same: they are one class, and it meets the goals that both meet.
        texts = list(zip(*(labels for labels, _ in shown), strict=True))
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        joined = np.array([places[text] for text in texts], dtype=np.int32)
        classes = joined[classes]
        kept = np.flatnonzero(np.diff(np.maximum.accumulate(joined), prepend=-1))
        shown = [(tuple(labels[c] for c in kept.tolist()), losses[kept]) for labels, losses in shown]
    return Partition(
        classes=classes,
        labels=tuple(labels for labels, _ in shown),
        losses=tuple(losses for _, losses in shown),
    )
