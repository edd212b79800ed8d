"""Laws taken apart: the coordinates in which two laws differ, as scalar noise around a center, clamped."""

import math
from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from sfumato.errors import NotSupported
from sfumato.laws import Clamped, Geometric, Joint, Law, Point, Shifted

Pair = tuple[Law, Law]


class Bounds(NamedTuple):
    """The least and the largest possible outcome."""

    lower: float
    upper: float


def changed_coordinates(left: Law, right: Law) -> list[Pair]:
    """The pairs of scalar laws in which two laws with independent coordinates differ.

    Each pair is moved by the same integer, to where the center of the left law is 0.
    """
    if _shape(left) != _shape(right):
        # The form of the answer tells the two apart with certainty, as two points would.
        return [(Point(0), Point(1))]
    if isinstance(left, Joint) and isinstance(right, Joint):
        parts = zip(left.parts, right.parts, strict=True)
        return [pair for one, other in parts for pair in changed_coordinates(one, other)]
    if isinstance(left, Shifted) and isinstance(right, Shifted) and isinstance(left.center, np.ndarray):
        if left.noise == right.noise:
            places = np.flatnonzero(left.center != right.center).tolist()
        else:
            places = list(range(len(left.center)))
        return [pair for i in places for pair in changed_coordinates(_entry(left, i), _entry(right, i))]
    if key_of(left) == key_of(right):
        return []
    start = center_of(left)
    return [(_moved(left, -start), _moved(right, -start))]


def center_of(law: Law) -> int:
    """Where a scalar law was centered before it was clamped."""
    if isinstance(law, Clamped):
        return center_of(law.law)
    if isinstance(law, Point):
        return int(law.value)
    if isinstance(law, Shifted) and isinstance(law.center, int):
        return law.center
    raise _not_supported(law)


def noise_of(law: Law) -> Law:
    """The noise around the center of a scalar law; a point at 0 if there is none."""
    if isinstance(law, Clamped):
        return noise_of(law.law)
    return law.noise if isinstance(law, Shifted) else Point(0)


def bounds_of(law: Law) -> Bounds:
    """The range of a scalar law, of which every outcome is possible."""
    if isinstance(law, Point):
        return Bounds(law.value, law.value)
    if not isinstance(law, Clamped):
        one_sided = isinstance(noise_of(law), Geometric)
        return Bounds(center_of(law) if one_sided else -math.inf, math.inf)
    inner = bounds_of(law.law)
    lower = -math.inf if law.lower is None else law.lower
    upper = math.inf if law.upper is None else law.upper
    return Bounds(*(min(max(end, lower), upper) for end in inner))


def key_of(law: Law) -> Hashable:
    """Equal for scalar laws that are equal."""
    if isinstance(law, Clamped):
        return key_of(law.law), law.lower, law.upper
    if isinstance(law, Shifted) and isinstance(law.center, int):
        return law.noise, law.center
    if isinstance(law, Point):
        return law
    raise _not_supported(law)


def _shape(law: Law) -> Hashable:
    if isinstance(law, Joint):
        return tuple(_shape(part) for part in law.parts)
    if isinstance(law, Clamped):
        return _shape(law.law)
    return len(law.center) if isinstance(law, Shifted) and isinstance(law.center, np.ndarray) else "scalar"


def _entry(law: Shifted, index: int) -> Shifted:
    return Shifted(law.noise, int(law.center[index]))


def _moved(law: Law, by: int) -> Law:
    if isinstance(law, Clamped):
        lower, upper = (None if end is None else end + by for end in (law.lower, law.upper))
        return Clamped(_moved(law.law, by), lower, upper)
    if isinstance(law, Shifted):
        return Shifted(law.noise, law.center + by)
    return Point(center_of(law) + by)


def _not_supported(law: Law) -> NotSupported:
    return NotSupported(f"a law of type {type(law).__name__} cannot be audited yet")
