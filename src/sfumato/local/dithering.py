"""Real numbers on a public scale of steps: by exact random rounding to a neighbour, or by bins."""

import math
from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import MAX_BITS, exact
from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits, Integers
from sfumato.laws.coins import Uniform, ratio_coin
from sfumato.local.cost import exact_number
from sfumato.local.design import UNREADABLE, Floats, listed


def dithered(values: Any, *, lower: Fraction, upper: Fraction, steps: int, bits: Bits) -> Integers:
    """The grid point 0..steps of each value: one of its two neighbours, with the value as exact mean."""
    scale = _Scale(values, lower, upper, steps)
    words = bits.words(len(scale.at))
    point = np.floor(scale.at)
    share = scale.at - point
    uniform = words * 2.0**-64
    places = (point + (uniform < share)).astype(np.int64)
    # Floats only filter: what their rounding leaves open is decided by integers, on the same uniform.
    unsure = scale.near_point | (np.abs(uniform - share) <= scale.margin)
    for i in np.flatnonzero(unsure).tolist():
        at = scale.exactly(i)
        below = math.floor(at)
        places[i] = below + Uniform(bits, int(words[i]), 64).below(ratio_coin(at - below))
    return places


def binned(values: Any, *, lower: Fraction, upper: Fraction, steps: int) -> Integers:
    """The bin 0..steps-1 of each value; a bin holds its lower end, the last one both."""
    scale = _Scale(values, lower, upper, steps)
    places = np.floor(scale.at).astype(np.int64)
    for i in np.flatnonzero(scale.near_point).tolist():
        places[i] = math.floor(scale.exactly(i))
    return np.minimum(places, steps - 1)


class _Scale:
    """Values in steps above the lower bound, clamped to the bounds: as floats, and one by one exactly."""

    def __init__(self, values: Any, lower: Fraction, upper: Fraction, steps: int) -> None:
        self._lower, self._step, self._steps = lower, (upper - lower) / steps, steps
        self._items, numbers = _numbers(values)
        clamped = np.clip(numbers, float(lower), float(upper))
        # A few roundings of 2^-53 of the largest number in play, in steps; 2^-47 leaves room to spare.
        size = max(abs(float(lower)), abs(float(upper))) / float(self._step) + steps + 1
        self.margin = 2.0**-47 * size
        self.at: Floats = np.clip((clamped - float(lower)) / float(self._step), 0.0, float(steps))
        self.near_point: NDArray[np.bool_] = np.abs(self.at - np.round(self.at)) <= self.margin

    def exactly(self, i: int) -> Fraction:
        item = self._items[i]
        if isinstance(item, float) and math.isinf(item):
            return Fraction(self._steps if item > 0 else 0)
        at = (exact("truth", item) - self._lower) / self._step
        return min(max(at, Fraction(0)), Fraction(self._steps))


def _numbers(values: Any) -> tuple[list[Any], Floats]:
    items: list[Any] = []
    try:
        items = [_read(item) for item in listed("truths", values)]
        array = np.array([float(item) for item in items])
    except Exception:  # whatever a stranger's type raises may show its value, so none of it goes on
        array = np.array([math.nan])
    if np.isnan(array).any():
        # Raised here, where no cause is attached whose message would show the value.
        raise InvalidParameter(UNREADABLE.format(rule=f"a number of at most {MAX_BITS} bits, and not NaN"))
    return items, array


def _read(item: Any) -> int | float | Fraction:
    if type(item) is float or (type(item) is int and abs(item) < 2**63):
        return item
    if isinstance(item, float) or (isinstance(item, np.floating) and np.isinf(item)):
        return float(item)
    whole = isinstance(item, Integral) and not isinstance(item, bool)
    value = Fraction(int(item)) if whole else exact_number("truth", item)
    # Bounds are at most 2^400 in size, so what is far beyond is beyond them.
    if abs(value) < 2**500:
        return value
    return math.inf if value > 0 else -math.inf
