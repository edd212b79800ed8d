"""Group-bys of a lazy table, as keys and sums."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sfumato.data.column import Category

if TYPE_CHECKING:
    import narwhals as nw

ROWS = "sfumato_rows"


class Told(NamedTuple):
    """What a key column holds, which tells it apart from others, and how many values it can have.

    It holds one of the listed values or null; where none are listed, an integer from -2 on, or null.
    """

    what: Hashable
    size: int
    listed: tuple[Category, ...] | None = None


def listed_key(column: str, categories: Sequence[Category]) -> Told:
    """The key that is the category of a row, or none.

    >>> listed_key("team", ["red", "blue"]).size
    3
    """
    return Told(("listed", column, tuple(categories)), len(categories) + 1, tuple(categories))


@dataclass(frozen=True)
class KeySet:
    """One group-by: the columns that are its keys, and those that are summed beside the number of rows."""

    keys: tuple[str, ...]
    sums: tuple[str, ...] = ()


def grouped(frame: "nw.LazyFrame[Any]", each: KeySet) -> "nw.LazyFrame[Any]":
    """One group-by, not yet run."""
    import narwhals as nw

    wanted = [nw.len().alias(ROWS), *(nw.col(name).sum() for name in each.sums)]
    return frame.group_by(*each.keys).agg(*wanted) if each.keys else frame.select(*wanted)
