"""What an observer may look at in an outcome: each feature is a number, and thresholds on it are events."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.audit.outcomes import NUMBER, Outcomes
from sfumato.grid import Floats
from sfumato.laws.bits import Integers

Values = Floats | Integers

# Beyond so many numbers in an outcome, those whose means differ most are looked at.
MOST_COORDINATES = 64
MODULI = (2, 3, 5, 16)
# More distinct numbers than this are put into cells by rank.
MOST_DISTINCT = 1024
_CELLS = 64
_COMMON = 256
# An odd multiplier close to 2^64 divided by the golden ratio spreads the bits of a word.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Feature:
    """A named function of outcomes to numbers."""

    name: str
    of: Callable[[Outcomes], Values]


# Cells tell kinds apart by themselves.
_KIND = Feature("its kind", lambda table: np.zeros(len(table)))


@dataclass(frozen=True, eq=False)
class Cells:
    """A feature cut into cells: the edges, the gaps between them, NaN, and each kind that is no number."""

    edges: Values
    kinds: Integers

    @property
    def count(self) -> int:
        """How many cells there are."""
        return 2 * len(self.edges) + 3 + len(self.kinds)

    def of(self, values: Values, kinds: Integers) -> Integers:
        """The cell of each value."""
        found = self.edges.searchsorted(values, "left") + self.edges.searchsorted(values, "right")
        past = 2 * len(self.edges) + 1
        if values.dtype.kind == "f":
            found[np.isnan(values)] = past
        special = np.flatnonzero(kinds != NUMBER)
        if special.size:
            place = np.searchsorted(self.kinds, kinds[special])
            known = np.append(self.kinds, -1)[place] == kinds[special]
            found[special] = past + 1 + np.where(known, place, len(self.kinds))
        return found

    def words(self, chosen: Integers, way: int) -> str:
        """The chosen cells for people; `way` is 0 if they are the lowest, 1 if the highest, 2 if any."""
        # An odd cell is an edge; an even one lies between two, or at an end of the line.
        index, at_edge = divmod(int(chosen[-1]), 2)
        ordered = chosen.max() <= 2 * len(self.edges) and self.edges.dtype.kind == "f"
        if ordered and way == 0 and (at_edge or index < len(self.edges)):
            return f"{'at most' if at_edge else 'below'} {self.edges[index]:g}"
        if ordered and way == 1 and (at_edge or index > 0):
            return f"{'at least' if at_edge else 'above'} {self.edges[index + at_edge - 1]:g}"
        return f"in one of {len(chosen)} cells"

    @classmethod
    def fit(cls, values: Values, kinds: Integers) -> "Cells":
        """Cells that follow the values: each of few, else quantiles, tails and the commonest values."""
        plain = values[kinds == NUMBER]
        ordered = np.sort(plain[~np.isnan(plain)] if plain.dtype.kind == "f" else plain)
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if ordered.size else ordered
        edges = ordered[starts.astype(np.int64)]
        if len(edges) > MOST_DISTINCT:
            counts = np.diff(np.append(starts, len(ordered)))
            common = np.argsort(counts, kind="stable")[-_COMMON:]
            last = len(ordered) - 1
            tails = np.minimum(2 ** np.arange(int(np.log2(last)) + 1) - 1, last)
            ranks = np.concatenate([np.linspace(0, last, _CELLS + 1).astype(np.int64), tails, last - tails])
            edges = np.unique(np.concatenate([ordered[ranks], edges[common[counts[common] >= 8]]]))
        return cls(edges, np.unique(kinds[kinds != NUMBER]))


def features(left: Outcomes, right: Outcomes) -> Iterator[Feature]:
    """The features worth a look, by what the outcomes to learn from are."""
    for place, name in enumerate(left.names):
        yield Feature(name, _mark(place))
    if left.width == 0:
        yield _KIND
    elif left.width == 1:
        yield from _of_number("the number", 0, left, right)
    else:
        chosen = _coordinates(left, right)
        for place in chosen:
            yield Feature(f"number {place}", _coordinate(place))
        for place in chosen[:8]:
            yield from _low_order(f"number {place}", place, left, right)
        yield from _of_rows(left, right)


def lattice_features(left: Outcomes, right: Outcomes) -> Iterator[Feature]:
    """Low-order bits alone: which multiples of powers of two the numbers are."""
    for place in range(min(left.width, MOST_COORDINATES)):
        yield from _low_order(f"number {place}" if left.width > 1 else "the number", place, left, right)
    yield _KIND  # for numbers without low-order bits to look at


def _of_number(name: str, place: int, left: Outcomes, right: Outcomes) -> Iterator[Feature]:
    yield Feature(name, _coordinate(place))
    yield from _low_order(name, place, left, right)


def _low_order(name: str, place: int, left: Outcomes, right: Outcomes) -> Iterator[Feature]:
    seen = np.concatenate([left.numbers[:, place], right.numbers[:, place]])
    seen = seen[np.isfinite(seen)]
    unit = _unit(seen)
    if seen.size and np.abs(seen).max() < 2.0**53 * unit and unit >= 2.0**-1000:
        for modulus in MODULI:
            yield Feature(f"{name} in units of {unit:g}, modulo {modulus}", _residue(place, unit, modulus))
    if not _whole(seen):
        yield Feature(f"the low-order bits of {name}", lambda table: _grain(table.numbers[:, place]))


def _whole(numbers: Floats) -> bool:
    return bool((numbers == np.floor(numbers)).all())


def _unit(numbers: Floats) -> float:
    """The largest power of two, at most 1, of which all numbers are multiples."""
    if _whole(numbers):
        return 1.0
    lowest = _lowest_bit(numbers[numbers != 0]).min(initial=0)
    return float(np.ldexp(1.0, max(int(lowest), -1074)))


def _residue(place: int, unit: float, modulus: int) -> Callable[[Outcomes], Floats]:
    def residue(table: Outcomes) -> Floats:
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(np.mod(np.floor(table.numbers[:, place] / unit), modulus))

    return residue


def _lowest_bit(numbers: Floats) -> Integers:
    """The exponent of the lowest bit that is set in each non-zero float."""
    fraction, exponent = np.frexp(numbers)
    whole = np.abs(fraction * 2.0**53).astype(np.int64)
    low = np.where(whole > 0, whole & -whole, 1)
    return np.asarray(np.log2(low).astype(np.int64) + exponent - 53)


def _grain(numbers: Floats) -> Floats:
    """Magnitude and lowest bit of each float, as one number."""
    finite = np.isfinite(numbers)
    kept = np.where(finite & (numbers != 0), numbers, 1.0)
    _, exponent = np.frexp(kept)
    both = exponent * 4096.0 + _lowest_bit(kept)
    return np.where(finite, np.where(numbers == 0, 1e9, both), numbers)


def _coordinate(place: int) -> Callable[[Outcomes], Floats]:
    return lambda table: table.numbers[:, place]


def _mark(place: int) -> Callable[[Outcomes], Floats]:
    return lambda table: table.marks[:, place]


def _coordinates(left: Outcomes, right: Outcomes) -> list[int]:
    if left.width <= MOST_COORDINATES:
        return list(range(left.width))
    largest = np.max([_largest(each.numbers) for each in (left, right)], axis=0)
    one, other = _moments(left.numbers, largest), _moments(right.numbers, largest)
    apart = np.abs(one[0] - other[0]) / np.sqrt(one[1] + other[1] + 1e-300)
    return [int(place) for place in np.argsort(-apart, kind="stable")[:MOST_COORDINATES]]


def _largest(numbers: Floats) -> Floats:
    finite = np.where(np.isfinite(numbers), np.abs(numbers), 0.0)
    return np.asarray(finite.max(axis=0, initial=1e-290))


def _moments(numbers: Floats, unit: Floats) -> tuple[Floats, Floats]:
    """Means and variances in units so large that no square overflows."""
    kept = np.where(np.isfinite(numbers), numbers, 0.0) / unit
    return kept.mean(axis=0), kept.var(axis=0)


def _of_rows(left: Outcomes, right: Outcomes) -> Iterator[Feature]:
    """Features of several numbers together."""
    with_all: list[tuple[str, Callable[[Floats], Values]]] = [
        ("the sum", lambda rows: np.nansum(rows, axis=1)),
        ("the largest number", lambda rows: np.fmax.reduce(rows, axis=1)),
        ("the smallest number", lambda rows: np.fmin.reduce(rows, axis=1)),
        ("the place of the largest", lambda rows: rows.argmax(axis=1)),
        ("the place of the smallest", lambda rows: rows.argmin(axis=1)),
        ("the order of the numbers", lambda rows: _hash(np.argsort(rows, axis=1, kind="stable"))),
        ("which neighbours are equal", lambda rows: _hash(rows[:, 1:] == rows[:, :-1])),
        ("how many are equal", lambda rows: _repeats(rows)),
        ("which numbers are missing", lambda rows: _hash(np.isnan(rows))),
        ("all numbers together", _hash),
    ]
    width = left.width
    for place in range(min(width - 1, MOST_COORDINATES)):
        with_all.append((f"number {place + 1} minus number {place}", _difference(place)))
    for length in range(2, min(width, 16)):
        with_all.append((f"the first {length} numbers", _prefix(length)))
    for name, function in with_all:
        yield Feature(name, _on_rows(function))
    yield _log_ratio_sum(left, right)


def _on_rows(function: Callable[[Floats], Values]) -> Callable[[Outcomes], Values]:
    def of(table: Outcomes) -> Values:
        with np.errstate(invalid="ignore", over="ignore"):
            return function(table.numbers)

    return of


def _difference(place: int) -> Callable[[Floats], Floats]:
    return lambda rows: rows[:, place + 1] - rows[:, place]


def _prefix(length: int) -> Callable[[Floats], Integers]:
    return lambda rows: _hash(rows[:, :length])


def _repeats(rows: Floats) -> Floats:
    ordered = np.sort(rows, axis=1)
    return np.asarray((ordered[:, 1:] == ordered[:, :-1]).sum(axis=1), dtype=np.float64)


def _hash(rows: Values) -> Integers:
    """One word for a row. Rows that share it are merged, which can only lower a bound."""
    exact = np.ascontiguousarray(rows, dtype=np.float64) + 0.0  # one zero
    words = exact.view(np.uint64)
    mixed = np.zeros(len(words), dtype=np.uint64)
    for column in words.T:
        mixed = (mixed ^ column) * _SPREAD
        mixed ^= mixed >> np.uint64(29)
    return mixed.view(np.int64)


def _log_ratio_sum(left: Outcomes, right: Outcomes) -> Feature:
    """The sum over places of the log ratio learnt there: the best score if the numbers are independent."""
    learnt = []
    for place in _coordinates(left, right):
        one, other = left.numbers[:, place], right.numbers[:, place]
        cells = Cells.fit(np.concatenate([one, other]), np.concatenate([left.kinds, right.kinds]))
        counts = [
            np.bincount(cells.of(each.numbers[:, place], each.kinds), minlength=cells.count) + 1.0
            for each in (left, right)
        ]
        learnt.append((place, cells, np.log(counts[0] / counts[1])))

    def score(table: Outcomes) -> Floats:
        total = np.zeros(len(table))
        for place, cells, ratios in learnt:
            total += ratios[cells.of(table.numbers[:, place], table.kinds)]
        return np.round(total, 9)

    return Feature("the sum of the log ratios of its numbers", score)
