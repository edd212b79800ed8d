"""Numbers as ranges with public ends, each level wider than the one below."""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from sfumato.anonymity.levels import MISSING, MOST_LEVELS, Level, Levels, levels_from, no_loss, text
from sfumato.anonymity.rows import cell
from sfumato.checks import Number, compact, exact, keep, positive, shown, whole
from sfumato.errors import InvalidParameter

# Float64 decides in which range a number lies, unless it is so near to an end, for the sizes involved.
_NEAR = 1e-12


@dataclass(frozen=True, kw_only=True)
class Ranges:
    """Ranges [a, b) of public widths: of `width` at level 1, `factor` times wider at each next, then "*".

    Level 0 is the number itself. An end belongs to the range that begins there. A cell that is missing shows
    "null" up to the top.

    Guarantee:
        The ends follow from the parameters and never from the table. They are exact: 0.3 lies in [0.3, 0.4).
        Each level joins ranges of the level below. No privacy follows from a hierarchy alone.

    Args:
        width: of the ranges at level 1.
        origin: where a range begins at every level.
        factor: how many ranges of a level make one of the next, 2 or more.
        levels: how many levels of ranges there are between the number and "*".
        missing: the label of missing cells.

    Raises:
        InvalidParameter: a parameter breaks its rule, or a column holds what is no number.

    >>> Ranges(width=5, levels=2).levels_of([20, 24, 25, 37]).labels[1:]
    (('[20, 25)', '[25, 30)', '[35, 40)'), ('[20, 30)', '[30, 40)'), ('*',))
    """

    width: Number
    origin: Number = 0
    factor: int = 2
    levels: int = 3
    missing: str = MISSING

    def __post_init__(self) -> None:
        keep(
            self,
            width=positive("width", self.width),
            origin=exact("origin", self.origin),
            factor=whole("factor", self.factor, least=2, most=10**9),
            levels=whole("levels", self.levels, least=1, most=MOST_LEVELS),
            missing=text("missing", self.missing),
        )

    def levels_of(self, values: Sequence[object], name: str = "column") -> Levels:
        """The distinct values of a column at each level."""
        present, numbers = numbers_of(values, name)
        width, origin = Fraction(self.width), Fraction(self.origin)
        places = _places(numbers, origin, width)
        low, high = _extent(numbers)
        made = [Level(numbers, cell, no_loss)]
        for _ in range(self.levels):
            label, loss = _between(origin, width, low, high)
            made.append(Level(places, label, loss))
            places = [place // self.factor for place in places]
            width *= self.factor
        return levels_from(made, present, name, self.missing)


@dataclass(frozen=True)
class Cuts:
    """Ranges between public cut points, the finest level first; beyond the ends they are open.

    A cut belongs to the range that begins there: cuts at 18 and 65 make "< 18", "[18, 65)" and ">= 65".
    Level 0 is the number itself, the last is "*". A cell that is missing shows "null" up to the top.

    Guarantee:
        The cuts are given by their user and never read from the table. No privacy follows from a
        hierarchy alone.

    Args:
        cuts: for each level the increasing cut points, all of them cut points of the level below.
        missing: the label of missing cells.

    Raises:
        InvalidParameter: cuts do not increase, or a level has a cut that the level below does not have.

    >>> Cuts([[18, 30, 65], [18, 65]]).levels_of([9, 18, 40, 70]).labels[1:]
    (('< 18', '[18, 30)', '[30, 65)', '>= 65'), ('< 18', '[18, 65)', '>= 65'), ('*',))
    """

    cuts: Sequence[Sequence[Number]]
    missing: str = MISSING

    def __post_init__(self) -> None:
        given: object = self.cuts
        if not isinstance(given, list | tuple) or not 1 <= len(given) <= MOST_LEVELS:
            raise InvalidParameter(f"cuts must be a list of levels, 1 to {MOST_LEVELS}, got {shown(given)}")
        read: list[tuple[Fraction, ...]] = []
        for level, points in enumerate(given, start=1):
            if not isinstance(points, list | tuple) or not points:
                raise InvalidParameter(f"cuts must be lists of numbers, got {shown(points)} at level {level}")
            found = tuple(exact("a cut", point) for point in points)
            if any(after <= before for before, after in pairwise(found)):
                raise InvalidParameter(f"cuts must increase, got {shown(points)} at level {level}")
            added = set(found) - set(read[-1]) if read else set()
            if added:
                words = f"got {compact(min(added))} at level {level} alone"
                raise InvalidParameter(f"cuts of a level must be cuts of the level below, {words}")
            read.append(found)
        keep(self, cuts=tuple(read), missing=text("missing", self.missing))

    def levels_of(self, values: Sequence[object], name: str = "column") -> Levels:
        """The distinct values of a column at each level."""
        present, numbers = numbers_of(values, name)
        low, high = _extent(numbers)
        first, last = Fraction(self.cuts[0][0]), Fraction(self.cuts[0][-1])
        made = [Level(numbers, cell, no_loss)]
        for points in self.cuts:
            ends = [Fraction(point) for point in points]
            label, loss = _at_cuts(ends, low, high, first, last)
            made.append(Level(_above(numbers, ends), label, loss))
        return levels_from(made, present, name, self.missing)


def numbers_of(values: Sequence[object], name: str) -> tuple[list[bool], list[Number]]:
    """Where a column has values, and these; an error that counts them if some are no numbers."""
    present = [value is not None for value in values]
    numbers = [
        value
        for value in values
        if isinstance(value, int | float | Fraction | Decimal)
        and not isinstance(value, bool)
        and (isinstance(value, int | Fraction) or math.isfinite(value))
    ]
    wrong = sum(present) - len(numbers)
    if wrong:
        raise InvalidParameter(
            f"ranges need numbers: column {name!r} has {wrong} distinct values that are none"
        )
    return present, numbers


def _extent(numbers: Sequence[Number]) -> tuple[Fraction, Fraction]:
    if not numbers:
        return Fraction(0), Fraction(0)
    return exact("value", min(numbers)), exact("value", max(numbers))


def _places(numbers: Sequence[Number], origin: Fraction, width: Fraction) -> list[int]:
    """The number of the range in which each number lies, exactly: the floor of (number - origin) / width."""
    wholes = [number for number in numbers if type(number) is int]
    if origin.denominator == width.denominator == 1 and len(wholes) == len(numbers):
        start, size = origin.numerator, width.numerator
        return [(number - start) // size for number in wholes]
    start_float, size_float = _nearest_float(origin), _nearest_float(width)
    return [_place(number, origin, width, start_float, size_float) for number in numbers]


def _place(number: Number, origin: Fraction, width: Fraction, start: float, size: float) -> int:
    if isinstance(number, float) and size > 0:
        about = (number - start) / size
        near = _NEAR * (1 + abs(about) + (abs(number) + abs(start)) / size)
        if near < 0.25 and abs(about - round(about)) > near:
            return math.floor(about)
    return math.floor((exact("value", number) - origin) / width)


def _between(
    origin: Fraction, width: Fraction, low: Fraction, high: Fraction
) -> tuple[Callable[[int], str], Callable[[int], float]]:
    lost = _share(width, high - low)
    if origin.denominator == width.denominator == 1:
        start, size = origin.numerator, width.numerator
        return lambda place: f"[{start + place * size}, {start + (place + 1) * size})", lambda place: lost

    def label(place: int) -> str:
        begin, end = origin + place * width, origin + (place + 1) * width
        return f"[{compact(begin)}, {compact(end)})"

    return label, lambda place: lost


def _nearest_float(number: Fraction) -> float:
    """The float next to a number, infinity if it is beyond all of them."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _above(numbers: Sequence[Number], cuts: Sequence[Fraction]) -> list[int]:
    """How many cuts are at or below each number, exactly."""
    if all(type(number) is int for number in numbers):
        least_whole = [math.ceil(cut) for cut in cuts]
        return [bisect_right(least_whole, number) for number in numbers]
    if all(type(number) is float for number in numbers):
        least = [_least_float(cut) for cut in cuts]
        return [bisect_right(least, number) for number in numbers]
    return [bisect_right(cuts, exact("value", number)) for number in numbers]


def _least_float(cut: Fraction) -> float:
    """The smallest float that is at least `cut` when it is read from its shortest decimal form."""
    least = math.nextafter(_nearest_float(cut), -math.inf)
    while math.isfinite(least) and exact("value", least) < cut:
        least = math.nextafter(least, math.inf)
    return least


def _at_cuts(
    cuts: Sequence[Fraction], low: Fraction, high: Fraction, first: Fraction, last: Fraction
) -> tuple[Callable[[int], str], Callable[[int], float]]:
    def label(place: int) -> str:
        if place == 0:
            return f"< {compact(cuts[0])}"
        if place == len(cuts):
            return f">= {compact(cuts[-1])}"
        return f"[{compact(cuts[place - 1])}, {compact(cuts[place])})"

    def loss(place: int) -> float:
        # An open range ends with the table, or with the finest cuts where these reach further.
        begin = min(low, first) if place == 0 else cuts[place - 1]
        end = max(high, last) if place == len(cuts) else cuts[place]
        return _share(end - begin, high - low)

    return label, loss


def _share(width: Fraction, extent: Fraction) -> float:
    """The normalised certainty penalty of a range: its width against the extent of the table, at most 1."""
    return 1.0 if width >= extent else float(width / extent)
