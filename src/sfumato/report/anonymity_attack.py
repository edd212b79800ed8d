"""The homogeneity attack, worked on an anonymised table: who knows the class of a person learns the rest."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.anonymity.class_counts import ClassCounts
from sfumato.anonymity.partition import classes_of
from sfumato.anonymity.rows import cell, rows_of

# A fictional ward of twelve people: three classes of four, and everybody of the second has one illness.
TEXTBOOK = {
    "age": ["[18, 30]"] * 4 + ["[31, 45]"] * 4 + ["[46, 70]"] * 4,
    "postcode": ["10***"] * 4 + ["20***"] * 4 + ["10***"] * 4,
    "illness": ["asthma", "flu", "fracture", "flu", *["diabetes"] * 4, "flu", "stroke", "stroke", "asthma"],
}
TEXTBOOK_ROLES = (("age", "postcode"), "illness")


@dataclass(frozen=True)
class Exposed:
    """A class and what an intruder who knows that a person is in it believes: a value, and how surely."""

    labels: tuple[str, ...]
    value: str
    rows: int
    share: Fraction

    @property
    def certain(self) -> bool:
        """Whether all rows of the class have the value."""
        return self.share == 1


@dataclass(frozen=True)
class Attack:
    """What the rows of an anonymised table give away of one sensitive column."""

    quasi: tuple[str, ...]
    column: str
    # Classes of one value, the largest first, and at most so many as were asked for.
    exposed: tuple[Exposed, ...]
    # How many such classes there are, and how many rows are in them.
    classes_exposed: int
    rows_exposed: int
    # The class in which one value has the largest share.
    surest: Exposed
    classes: int
    rows: int
    # How often a guess of the most frequent value of each row's class is right, and of the whole table.
    guessed: Fraction
    blind: Fraction


def homogeneity(table: Any, quasi: tuple[str, ...], column: str, *, most: int = 1_000) -> Attack:
    """The attack on one sensitive column, by the published table alone; at most so many classes are listed.

    >>> found = homogeneity(TEXTBOOK, *TEXTBOOK_ROLES)
    >>> found.rows_exposed, found.exposed[0].value
    (4, 'diabetes')
    """
    rows = rows_of(table, quasi, [column])
    classes, keys = classes_of([one.codes for one in rows.quasi], [len(one.values) for one in rows.quasi])
    secret = rows.sensitive[0]
    found = ClassCounts.of(classes, len(keys), secret.codes, len(secret.values))
    sizes = found.sizes
    # The first of each class, once the most frequent value comes first.
    order = np.lexsort((found.codes, -found.counts, found.owners))
    firsts = order[np.searchsorted(found.owners[order], np.arange(len(keys)))]
    best, top = found.codes[firsts], found.counts[firsts]

    def exposed(place: int) -> Exposed:
        shown = zip(rows.quasi, keys[place].tolist(), strict=True)
        return Exposed(
            labels=tuple(cell(one.values[code]) for one, code in shown),
            value=cell(secret.values[int(best[place])]),
            rows=int(sizes[place]),
            share=Fraction(int(top[place]), int(sizes[place])),
        )

    alone = np.flatnonzero(top == sizes)
    largest = alone[np.argsort(-sizes[alone], kind="stable")][:most]
    # The surest, of these the largest, of these the first.
    surest = int(np.lexsort((np.arange(len(keys)), -sizes, -top / sizes))[0])
    return Attack(
        quasi=tuple(quasi),
        column=column,
        exposed=tuple(exposed(place) for place in largest.tolist()),
        classes_exposed=len(alone),
        rows_exposed=int(sizes[alone].sum()),
        surest=exposed(surest),
        classes=len(keys),
        rows=rows.n,
        guessed=Fraction(int(top.sum()), rows.n),
        blind=Fraction(int(secret.counts.max()), rows.n),
    )
