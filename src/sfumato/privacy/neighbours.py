"""Which two data sets count as neighbours: the relation that gives every guarantee its meaning."""

from typing import Literal, cast, get_args

from sfumato.checks import one_of

__all__ = ["MEANINGS", "Neighbours", "check_neighbours"]

Neighbours = Literal["substitution", "add-remove"]

MEANINGS: dict[str, str] = {
    "substitution": "one row is replaced by any other; the number of rows is public",
    "add-remove": "one row is added or removed; the number of rows is private",
}


def check_neighbours(value: object) -> Neighbours:
    """`value` if it names a neighbour relation.

    Guarantee:
        Returns "substitution" or "add-remove"; nothing is guessed from other spellings, because a guess
        could halve the protection.

    Raises:
        InvalidParameter: `value` is neither.

    References:
        [DR14].

    >>> check_neighbours("substitution")
    'substitution'
    """
    names: tuple[object, ...] = get_args(Neighbours)
    return cast(Neighbours, one_of("neighbours", value, names))
