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
