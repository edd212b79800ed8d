"""Which rows a query is about, and how many of them one person can change: public facts both."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A table or a part of it, as the calibration of a query has to know it.

    Args:
        changes: how many rows one person can add or remove, at most, over all parts together; None for one
            row of this part that is added, removed or, under substitution, replaced. Under substitution half
            of them leave and half join.
        among: the public conditions that its rows meet, as (column, words); none for the whole table. How
            many rows a part has is private.

    >>> Part(among=(("team", "red"),)).whole, WHOLE.whole
    (False, True)
    """

    changes: int | None = None
    among: tuple[tuple[str, str], ...] = ()

    @property
    def whole(self) -> bool:
        """Whether it is the whole table."""
        return not self.among


WHOLE = Part()


def groups_changed(rows: int | None, groups: int | None, *, replaced: bool) -> int:
    """In how many groups one person can change rows: each row is in one, and a person in so many at most.

    Args:
        rows: how many rows of a unit are kept; None where each row is a unit.
        groups: how many groups of a unit are kept; None for no bound.
        replaced: whether a unit is replaced by another, which leaves some groups and joins others.

    >>> groups_changed(10, 3, replaced=False), groups_changed(2, 3, replaced=True)
    (3, 4)
    """
    own = 1 if rows is None else rows if groups is None else min(rows, groups)
    return 2 * own if replaced else own
