"""Fewer group-bys for the same counts: what another one's small table tells is added up from it."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfumato.data.key_sets import ROWS, KeySet

if TYPE_CHECKING:
    import narwhals as nw

# A group-by with up to so many keys takes an engine about as long as one with a few.
MOST_GROUPS = 2**16


def merged(sets: Sequence[KeySet], sizes: Mapping[str, int]) -> tuple[list[KeySet], list[int]]:
    """Group-bys that tell what all the sets ask, and for each set which one tells it.

    `sizes` says how many values a key can have, a public fact. Sets of few keys are joined, and one that has
    more keys tells others; sets with sums stay as they are, since a sum by more keys takes longer.

    >>> sets = [KeySet(("cell",)), KeySet(("team",)), KeySet(("sex",)), KeySet(("team", "cell"))]
    >>> merged(sets, {"cell": 2**16, "team": 3, "sex": 3})
    ([KeySet(keys=('team', 'cell'), sums=()), KeySet(keys=('team', 'sex'), sums=())], [0, 1, 1, 0])
    """
    found: list[KeySet] = []
    told: dict[int, int] = {}
    many = [
        place for place, each in enumerate(sets) if each.sums or _groups(each.keys, sizes) > MOST_GROUPS // 2
    ]
    for place in sorted(many, key=lambda place: -len(sets[place].keys)):
        each = sets[place]
        above = (at for at, other in enumerate(found) if set(each.keys) <= set(other.keys) and not other.sums)
        at = None if each.sums else next(above, None)
        if at is None:
            at = len(found)
            found.append(each)
        told[place] = at
    few = len(found)
    for place, each in enumerate(sets):
        if place in told:
            continue
        at = next((at for at in range(few, len(found)) if _fits(found[at], each, sizes)), len(found))
        if at == len(found):
            found.append(each)
        else:
            found[at] = _joined(found[at], each)
        told[place] = at
    return found, [told[place] for place in range(len(sets))]


def _groups(keys: Sequence[str], sizes: Mapping[str, int]) -> int:
    return math.prod(sizes[key] for key in keys)


def _joined(left: KeySet, right: KeySet) -> KeySet:
    return KeySet(tuple(dict.fromkeys((*left.keys, *right.keys))))


def _fits(left: KeySet, right: KeySet, sizes: Mapping[str, int]) -> bool:
    return _groups(_joined(left, right).keys, sizes) <= MOST_GROUPS


def told_by(table: "nw.DataFrame[Any]", of: KeySet, wanted: KeySet) -> "nw.DataFrame[Any]":
    """The small table of one set, from that of another that tells it."""
    import narwhals as nw

    if of.keys == wanted.keys:
        return table
    added = [nw.col(name).sum() for name in (ROWS, *wanted.sums)]
    return table.group_by(*wanted.keys).agg(*added) if wanted.keys else table.select(*added)
