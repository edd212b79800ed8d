"""The worst neighbours that can be found where there are too many to look at them all."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from sfumato.audit.exact import Worst, WorstCase, law_on, least_cost, mechanism_cost, worst_case
from sfumato.audit.pairs import Mechanism, column, universe
from sfumato.checks import shown, whole
from sfumato.errors import InvalidParameter
from sfumato.laws import Bits, Law, SeededBits
from sfumato.mechanisms import ClampedGeometric, GaussianMechanism
from sfumato.privacy import Neighbours, check_neighbours
from sfumato.quantile_methods import AnyQuery
from sfumato.statistics import Statistic
from sfumato.statistics.sum import Bounded

Progress = Callable[[int, WorstCase], None]
Counts = tuple[int, ...]

# Up to so many neighbouring pairs are looked at one by one.
MOST_PAIRS = 20_000
# Places at which the records of a candidate lie, at most, besides what admission has rules for.
_PLACES = 5
# Laws that are kept, since neighbours share them.
_KEPT = 4_096
# How often a start that gets no worse is changed before another is taken.
_PATIENCE = 12


def search(
    target: AnyQuery | Mechanism,
    *,
    size: int,
    neighbours: Neighbours | None = None,
    tries: int = 400,
    seed: int = 0,
    progress: Progress | None = None,
) -> WorstCase:
    """The worst neighbouring pair that an adversarial search finds, for data too large to try all pairs.

    Records lie at a few places: equal, in clumps, in clumps at the ranks that are asked for, at the ends and
    out of the bounds, missing, with gaps from a billionth of the bounds to all of them. Every single change
    of such data is tried; then counts and places are changed, and what loses more is kept; after some changes
    in vain it starts again.

    Guarantee:
        `left` and `right` are neighbours with the loss that is reported, so that "VIOLATED" refutes the
        charge. The
        search is no proof: a pair that it does not find may lose more, and `pairs` says how many it looked
        at. The same seed gives the same pairs.

    Args:
        target: a query, or a mechanism.
        size: how many records a data set has; at most so many under add-remove.
        neighbours: the relation, where the query does not state it.
        tries: how many data sets are looked at, with all their neighbours.
        seed: which ones.
        progress: called after each data set with their number and the worst case so far.

    Raises:
        InvalidParameter: no neighbour relation, or a number out of range.

    >>> from sfumato.privacy import PureDP
    >>> from sfumato.statistics import Mean
    >>> query = Mean(budget=PureDP(1), bounds=(0, 10))
    >>> found = search(query, size=1000, neighbours="substitution", tries=5)
    >>> found.loss.verdict, round(found.loss.tightness, 6)
    ('holds', 1.0)
    """
    whole("size", size, least=1, most=1_000_000)
    whole("tries", tries, least=1, most=10**7)
    bits = SeededBits(whole("seed", seed, least=0, most=2**63))
    if not isinstance(target, Statistic):
        return _mechanism_search(target, size, tries, bits)
    relation = check_neighbours(neighbours or target.neighbours)
    rows = size if relation == "substitution" else None
    hunt = _Hunt(replace(target, neighbours=relation, rows=rows), size, relation, _Dice(bits))
    for done in range(1, tries + 1):
        hunt.step()
        if progress is not None:
            progress(done, hunt.found())
    return hunt.found()


def worst_found(
    target: AnyQuery | Mechanism,
    *,
    size: int,
    cells: int = 4,
    neighbours: Neighbours | None = None,
    tries: int = 400,
    seed: int = 0,
) -> WorstCase:
    """The worst of all neighbouring pairs where there are few enough, else the worst that a search finds.

    Guarantee:
        As `worst_case` if all pairs were tried, which "every" in the target says; else as `search`.

    Args:
        target, size, cells, neighbours: as for `worst_case`.
        tries, seed: as for `search`.

    >>> from sfumato.privacy import PureDP
    >>> from sfumato.statistics import Count
    >>> query = Count(budget=PureDP(1), neighbours="add-remove")
    >>> print(worst_found(query, size=3))
    every pair of count, add-remove: 30 pairs, worst loss 1.0000 of PureDP(epsilon=1.0), holds
    """
    if not isinstance(target, Statistic):
        found = worst_case(target, cells=cells)
        return replace(found, target=f"every pair of {found.target}")
    relation = check_neighbours(neighbours or target.neighbours)
    if size <= 10 and _pairs(len(universe(target, cells)), size, relation) <= MOST_PAIRS:
        found = worst_case(target, size=size, cells=cells, neighbours=relation)
        return replace(found, target=f"every pair of {found.target}")
    return search(target, size=size, neighbours=relation, tries=tries, seed=seed)


def _pairs(records: int, size: int, relation: Neighbours) -> int:
    if relation == "substitution":
        return math.comb(records + size - 2, size - 1) * math.comb(records, 2)
    return sum(math.comb(records + k - 1, k) * records for k in range(size))


class _Dice:
    """Small random choices of the search; no part of any release."""

    def __init__(self, bits: Bits) -> None:
        self._bits = bits

    def below(self, count: int) -> int:
        return self._bits.below(count)

    def unit(self) -> float:
        return self._bits.below(1 << 53) / (1 << 53)

    def one_of(self, values: Any) -> Any:
        return values[self.below(len(values))]


@dataclass(frozen=True)
class _Data:
    """So many records at each place."""

    places: tuple[Any, ...]
    counts: Counts

    def moved(self, source: int, to: int, number: int = 1) -> "_Data":
        counts = list(self.counts)
        counts[source] -= number
        counts[to] += number
        return _Data(self.places, tuple(counts))

    def added(self, to: int, number: int = 1) -> "_Data":
        counts = list(self.counts)
        counts[to] += number
        return _Data(self.places, tuple(counts))


class _Hunt:
    """Data sets one after the other, each with all its neighbours, from starts that are known to be bad."""

    def __init__(self, query: Any, size: int, relation: Neighbours, dice: _Dice) -> None:
        self._query, self._size, self._relation, self._dice = query, size, relation, dice
        self._records = universe(query, _PLACES)
        self._worst = Worst(least_cost(query))
        self._laws: dict[_Data, Law] = {}
        self._starts = self._first_starts()
        self._now: tuple[float, _Data] | None = None
        self._vain = 0

    def found(self) -> WorstCase:
        return self._worst.worst_case(f"search on {self._query.name}, {self._relation}", _records_of)

    def step(self) -> None:
        """Look at another data set: a start, or a change of the worst one since the last start."""
        if self._starts and (self._now is None or self._vain >= 2):
            self._take(self._starts.pop(0))
        elif self._now is None or self._vain >= _PATIENCE:
            self._take(self._random_start())
        else:
            tried = self._changed(self._now[1])
            loss = self._look(tried)
            # What is hardly better is kept for a while too, or the search would end in the first hollow.
            self._vain = 0 if loss > self._now[0] * (1 + 1e-6) else self._vain + 1
            if loss >= self._now[0] * (1 - 0.02 * self._dice.unit()):
                self._now = loss, tried

    def _take(self, data: _Data) -> None:
        self._now, self._vain = (self._look(data), data), 0

    def _look(self, data: _Data) -> float:
        """The worst loss between a data set and any of its neighbours at the same places."""
        here, worst = self._law(data), 0.0
        places = range(len(data.places))
        if self._relation == "substitution":
            others = [data.moved(i, j) for i in places if data.counts[i] for j in places if i != j]
        else:
            others = [data.added(i, -1) for i in places if data.counts[i]]
            if sum(data.counts) < self._size:
                others += [data.added(i) for i in places]
        for other in others:
            worst = max(worst, self._worst.add(here, self._law(other), (data, other)).amount)
        return worst

    def _law(self, data: _Data) -> Law:
        if data not in self._laws:
            if len(self._laws) > _KEPT:
                self._laws.clear()
            chosen = tuple(i for i, count in enumerate(data.counts) for _ in range(count))
            self._laws[data] = law_on(self._query, column(chosen, data.places))
        return self._laws[data]

    # --- where to look -------------------------------------------------------------------------------

    def _ends(self) -> tuple[float, float] | None:
        """The bounds of numbers, None where records are of another kind."""
        query = self._query
        if isinstance(query, Bounded) and query.bounds is not None:
            return float(query.lower), float(query.upper)
        grid = getattr(query, "grid", None)
        return None if grid is None else (float(grid.lower), float(grid.upper))

    def _orders(self) -> list[Fraction]:
        probs = getattr(self._query, "probs", None) or (Fraction(1, 2),)
        return [Fraction(p) for p in probs]

    def _first_starts(self) -> list[_Data]:
        """Equal records, two clumps, records at the ends, out of bounds, missing, at the ranks asked for."""
        size, records = self._size, self._records
        count = len(records)
        starts = [_Data(records, tuple(size if i == j else 0 for i in range(count))) for j in range(count)]
        half = size // 2
        starts += [_Data(records, _spread(count, {i: size - half, i + 1: half})) for i in range(count - 1)]
        if self._ends() is None:
            return starts
        ranked = [self._ranked(self._orders()[: _PLACES - 1], wide) for wide in range(_PLACES)]
        orders = self._orders()
        chosen = {orders[0], orders[len(orders) // 2], orders[-1]}
        # A few records on both sides of a rank asked for, with a wide empty run on one side of them.
        around = [self._around(q, wide) for q in sorted(chosen) for wide in (1, 2)]
        return around + ranked + starts

    def _around(self, order: Fraction, wide: int) -> _Data:
        below = min(max(math.floor(order * self._size) - 1, 0), self._size)
        middle = min(3, self._size - below)
        clumps = [below, middle, self._size - below - middle]
        return self._on_line([1.0 if i == wide else 1e-9 for i in range(4)], clumps)

    def _ranked(self, orders: list[Fraction], wide: int) -> _Data:
        """Clumps that end at the ranks asked for, with one wide empty run between them."""
        ranks = [0, *(math.floor(q * self._size) for q in sorted(orders)), self._size]
        clumps = [b - a for a, b in pairwise(ranks)]
        return self._on_line([1.0 if i == wide else 1e-9 for i in range(len(clumps) + 1)], clumps)

    def _on_line(self, gaps: list[float], clumps: list[int]) -> _Data:
        """Clumps with these relative gaps before, between and behind them; a null and a far value besides."""
        low, high = self._ends() or (0.0, 1.0)
        total = sum(gaps)
        spots = [low + (high - low) * at / total for at in accumulate(gaps[:-1])]
        extra = tuple(r for r in self._records if not (isinstance(r, float) and math.isfinite(r)))
        places = (*dict.fromkeys(spots), *extra)
        counts = [0] * len(places)
        for spot, clump in zip(spots, clumps, strict=True):
            counts[places.index(spot)] += clump
        return _Data(places, tuple(counts))

    def _random_start(self) -> _Data:
        dice = self._dice
        number = 2 + dice.below(_PLACES - 1)
        if self._ends() is None or dice.below(4) == 0:
            return _Data(self._records, _spread(len(self._records), self._clumps(len(self._records))))
        gaps = [10 ** (-9 * dice.unit()) for _ in range(number + 1)]
        gaps[dice.below(number + 1)] = 1.0
        clumps = self._clumps(number)
        return self._on_line(gaps, [clumps.get(i, 0) for i in range(number)])

    def _clumps(self, number: int) -> dict[int, int]:
        """Random counts, or counts that end near the ranks asked for."""
        dice, size = self._dice, self._size
        if dice.below(2):
            near = [math.floor(q * size) + dice.below(5) - 2 for q in self._orders()]
            cuts = sorted(min(max(near[dice.below(len(near))], 0), size) for _ in range(number - 1))
        else:
            cuts = sorted(dice.below(size + 1) for _ in range(number - 1))
        ends = [0, *cuts, size]
        return {i: b - a for i, (a, b) in enumerate(pairwise(ends))}

    def _changed(self, data: _Data) -> _Data:
        """One place moved, or some records moved from one place to another."""
        dice = self._dice
        count = len(data.places)
        filled = [i for i in range(count) if data.counts[i]]
        ends = self._ends()
        if ends is not None and dice.below(3) == 0:
            return self._with_another_place(data, ends)
        if not filled:
            return self._random_start()
        source, to = dice.one_of(filled), dice.below(count)
        most = data.counts[source]
        # Few records or many: ranks matter by ones near a target, and by thousands far from it.
        number = min(most, max(1, int(most ** dice.unit())))
        if self._relation == "add-remove" and dice.below(4) == 0:
            return data.added(source, -number)
        return data.moved(source, to, number)

    def _with_another_place(self, data: _Data, ends: tuple[float, float]) -> _Data:
        dice, (low, high) = self._dice, ends
        numbers = [
            i for i, place in enumerate(data.places) if isinstance(place, float) and math.isfinite(place)
        ]
        if not numbers:
            return self._random_start()
        which = dice.one_of(numbers)
        reach = (high - low) * 10 ** (-9 * dice.unit())
        base = dice.one_of([data.places[i] for i in numbers] + [low, high])
        place = min(max(base + (reach if dice.below(2) else -reach), low), high)
        places = list(data.places)
        if place in places:
            return data
        places[which] = place
        return _Data(tuple(places), data.counts)


def _spread(count: int, counts: dict[int, int]) -> Counts:
    return tuple(counts.get(i, 0) for i in range(count))


def _records_of(data: _Data) -> tuple[Any, ...]:
    """The records of a data set; many equal ones as they are."""
    return tuple(place for place, count in zip(data.places, data.counts, strict=True) for _ in range(count))


def _mechanism_search(mechanism: Mechanism, size: int, tries: int, bits: Bits) -> WorstCase:
    """Integers and vectors as far apart as one record can move them, from random starts."""
    if not hasattr(mechanism, "law"):
        raise InvalidParameter(f"target must be a query or a mechanism, got target={shown(mechanism)}")
    worst = Worst(mechanism_cost(mechanism))
    for _ in range(tries):
        start = bits.below(size + 1)
        if isinstance(mechanism, ClampedGeometric):
            pair: tuple[Any, Any] = start, start + 1
        elif isinstance(mechanism, GaussianMechanism):
            pair = start, start + math.isqrt(mechanism.sensitivity_squared)
        else:
            first = bits.below(mechanism.sensitivity + 1)
            moves = np.array([first, mechanism.sensitivity - first], dtype=object)
            pair = np.array([start, -start], dtype=object), moves + np.array([start, -start], dtype=object)
        worst.add(mechanism.law(pair[0]), mechanism.law(pair[1]), pair)
    return worst.worst_case(f"search on {type(mechanism).__name__}", lambda value: value)
