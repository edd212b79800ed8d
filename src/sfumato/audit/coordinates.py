"""Laws taken apart: the independent coordinates in which two laws differ, and noise around a center."""

import math
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from sfumato.errors import NotSupported
from sfumato.laws import Clamped, DiscreteGaussian, DiscreteLaplace, Geometric, Joint, Law, Point, Shifted
from sfumato.quantile_methods.crossings import ScansLaw
from sfumato.quantile_methods.framed import FramedLaw
from sfumato.quantile_methods.independent import NodesLaw

Pair = tuple[Law, Law]
# Audits compare every outcome of thousands of laws: more than this would take minutes.
MOST_OUTCOMES = 20_000
# Noise whose log ratio is monotone between the centers, and whose tails are known.
NOISES = (DiscreteLaplace, DiscreteGaussian, Geometric)


class Bounds(NamedTuple):
    """The least and the largest possible outcome."""

    lower: float
    upper: float


def changed_coordinates(left: Law, right: Law) -> list[Pair]:
    """The pairs of laws in which two laws with independent coordinates differ.

    Scalar noise is compared around 0: see `moved`. Other laws are compared as they are.
    """
    if _shape(left) != _shape(right):
        # The form of the answer tells the two apart with certainty, as two points would.
        return [(Point(0), Point(1))]
    if isinstance(left, Joint) and isinstance(right, Joint):
        return _among(left.parts, right.parts)
    if isinstance(left, NodesLaw) and isinstance(right, NodesLaw):
        return _among(left.nodes, right.nodes)
    if isinstance(left, FramedLaw) and isinstance(right, FramedLaw):
        return _among((left.own, left.outer), (right.own, right.outer))
    if isinstance(left, ScansLaw) and isinstance(right, ScansLaw) and left.count > MOST_OUTCOMES:
        return _among(*([scan.law(law.counts) for scan in law.scans] for law in (left, right)))
    if isinstance(left, Shifted) and isinstance(right, Shifted) and isinstance(left.center, np.ndarray):
        if left.noise == right.noise:
            places = np.flatnonzero(left.center != right.center).tolist()
        else:
            places = list(range(len(left.center)))
        return [pair for i in places for pair in changed_coordinates(_entry(left, i), _entry(right, i))]
    if is_noise(left) and is_noise(right) and key_of(left) == key_of(right):
        return []
    return [(left, right)]


def comparison_key(left: Law, right: Law) -> Hashable | None:
    """What a comparison of noise depends on: two pairs of laws with the same key are equally far apart."""
    pairs = changed_coordinates(left, right)
    if not all(is_noise(one) and is_noise(other) for one, other in pairs):
        return None
    return tuple(tuple(key_of(law) for law in moved(one, other)[:2]) for one, other in pairs)


def moved(left: Law, right: Law) -> tuple[Law, Law, int]:
    """Two scalar laws moved together, to where the center of the left one is 0, and the way back."""
    start = center_of(left)
    return _moved(left, -start), _moved(right, -start), start


def is_noise(law: Law) -> bool:
    """Whether a law is a point, or noise around a center, clamped or not."""
    if isinstance(law, Clamped):
        return is_noise(law.law)
    if isinstance(law, Shifted):
        return isinstance(law.center, int) and isinstance(law.noise, NOISES)
    return isinstance(law, Point)


def _among(left: Any, right: Any) -> list[Pair]:
    return [pair for one, other in zip(left, right, strict=True) for pair in changed_coordinates(one, other)]


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


def _shape(law: Any) -> Hashable:
    if isinstance(law, Joint):
        return tuple(_shape(part) for part in law.parts)
    if isinstance(law, NodesLaw | ScansLaw):
        return len(law.nodes if isinstance(law, NodesLaw) else law.scans)
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
