"""Every small data set and its neighbours, made of records that try each rule of admission."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from sfumato.data.admission import admit
from sfumato.data.column import Column
from sfumato.mechanisms import ClampedGeometric, GaussianMechanism, LaplaceMechanism
from sfumato.privacy import Neighbours
from sfumato.statistics import Count, FirstPassing, Histogram, MostCommon, Statistic
from sfumato.statistics.count import Condition
from sfumato.statistics.sum import Bounded

Records = tuple[Any, ...]
Mechanism = LaplaceMechanism | GaussianMechanism | ClampedGeometric


def universe(query: Statistic, cells: int) -> Records:
    """Records for a query: `cells` of its possible values, with nulls and values out of bounds."""
    if isinstance(query, Histogram | MostCommon) and query.categories is not None:
        return (*query.categories[:cells], _stranger(query.categories[0]), None)
    if isinstance(query, Condition) and query.equals is not None:
        listed = query.equals if isinstance(query.equals, tuple) else (query.equals,)
        return (*listed[:cells], _stranger(listed[0]), None)
    if isinstance(query, Condition) and query.between is not None:
        low, high = query.between
        return (low, high, low - 1.0, high + 1.0, math.nan)
    if isinstance(query, Count):
        return (0.0, 1.0, math.nan)
    if isinstance(query, Condition):
        return (True, False, None)
    if isinstance(query, FirstPassing):
        points = query.thresholds[:cells].tolist()
        return (*points, points[-1] + 1.0, -math.inf, math.nan)
    if isinstance(query, Bounded):
        low, high = float(query.lower), float(query.upper)
    elif isinstance(query, Histogram) and query.grid is not None:
        low, high = float(query.grid.lower), float(query.grid.upper)
    inside = [low + (high - low) * i / max(cells - 1, 1) for i in range(cells)]
    return (*inside, low - (high - low), math.inf, math.nan)


def column(chosen: tuple[int, ...], records: Records) -> Column:
    """The chosen records as a column of the type that holds all of them, nulls included."""
    values = [records[i] for i in chosen]
    kinds = {type(record) for record in records if record is not None}
    if kinds == {float}:
        return admit(np.array(values, dtype=np.float64))
    if kinds == {str}:
        return admit(np.array(values, dtype=object))
    missing = [value is None for value in values]
    filled = np.array([value or 0 for value in values], dtype=bool if kinds == {bool} else np.int64)
    return admit(np.ma.MaskedArray(filled, mask=missing))


def neighbouring_pairs(
    records: Records, size: int, neighbours: Neighbours
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every unordered pair of neighbouring multisets, as sorted indices into `records`.

    Under substitution both have `size` records; under add-remove the larger one has at most `size`.
    """
    indices = range(len(records))
    if neighbours == "add-remove":
        for smaller in range(size):
            for left in itertools.combinations_with_replacement(indices, smaller):
                yield from ((left, tuple(sorted((*left, added)))) for added in indices)
        return
    for common in itertools.combinations_with_replacement(indices, size - 1):
        for one, other in itertools.combinations(indices, 2):
            yield tuple(sorted((*common, one))), tuple(sorted((*common, other)))


def neighbouring_values(mechanism: Mechanism, cells: int) -> Iterator[tuple[Any, Any]]:
    """Integers and vectors of two integers that one record can move to each other, from `cells` starts."""
    if isinstance(mechanism, ClampedGeometric):
        yield from ((start, start + 1) for start in range(cells))
        return
    if isinstance(mechanism, GaussianMechanism):
        power, most, coordinates = 2, mechanism.sensitivity_squared, mechanism.coordinates
    else:
        power, most, coordinates = 1, mechanism.sensitivity, 2
    reach = math.isqrt(most) if power == 2 else most
    steps = sorted({1, *(reach * i // cells for i in range(cells + 1))})
    for start, first, second in itertools.product(range(cells), steps, steps):
        if not 0 < first**power + second**power <= most:
            continue
        if second == 0:
            yield start, start + first
        if coordinates > 1:
            yield _vector(start, -start), _vector(start + first, second - start)


def _vector(*entries: int) -> Any:
    return np.array(entries, dtype=np.int64 if max(map(abs, entries)) < 2**62 else object)


def _stranger(category: object) -> object:
    """A value of the same type that is no category."""
    return f"not {category}" if isinstance(category, str) else -(2**40)
