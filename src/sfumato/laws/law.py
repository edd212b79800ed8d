"""What a law is: probabilities, tails, moments and an exact sampler in one object."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import between, positive, shown
from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits

Floats = NDArray[np.float64]
S = TypeVar("S")

# Above this the low part and the coin of a candidate no longer fit one word with room to spare.
MAX_SCALE = Fraction(2**52)


@runtime_checkable
class Law(Protocol):
    """A probability distribution on a discrete set, with an exact sampler.

    Outcomes are integers for scalar laws, integer vectors or tuples for others. Where a method takes one
    outcome it also takes an array of them, and gives an array of floats.

    Guarantee:
        `sample` follows exactly the distribution that `logpmf` describes, given uniform bits; `logpmf`,
        `cdf` and `sf` are correct to a relative error of about 1e-12.

    >>> from sfumato.laws import Point
    >>> isinstance(Point(3), Law)
    True
    """

    def logpmf(self, outcome: Any) -> Any:
        """The log probability of an outcome; minus infinity outside the support."""

    def cdf(self, outcome: Any) -> Any:
        """P(X <= outcome)."""

    def sf(self, outcome: Any) -> Any:
        """P(X > outcome), accurate in the far tail."""

    @property
    def mean(self) -> Any:
        """The expectation."""

    @property
    def variance(self) -> Any:
        """The variance."""

    def radius(self, confidence: float) -> int:
        """The smallest integer t with P(|X - centre| <= t) >= confidence, for scalar laws."""

    def sample(self, bits: Bits, size: int | None = None) -> Any:
        """One outcome, or `size` independent ones."""


def elementwise(method: Callable[[S, Floats], Floats]) -> Callable[[S, Any], Any]:
    """A method on float arrays as a method on an integer or an integer array of any size."""

    @wraps(method)
    def on_integers(self: S, outcome: Any) -> Any:
        # Far outcomes overflow to minus infinity in the exponent, which is their correct log probability.
        with np.errstate(over="ignore", under="ignore"):
            values = method(self, as_floats(outcome))
        return float(values) if np.ndim(values) == 0 else values

    return on_integers


def as_floats(outcome: Any) -> Floats:
    """Integers of any size as float64; beyond its range they become infinite."""
    array = np.asarray(outcome)
    if array.dtype.kind in "iu":
        return array.astype(np.float64)
    if array.dtype.kind == "O" and all(_is_integer(value) for value in array.flat):
        return np.array([_nearest(int(value)) for value in array.flat], dtype=np.float64).reshape(array.shape)
    if array.size == 0:
        return array.astype(np.float64)
    raise InvalidParameter("outcome must be an integer or an array of integers")


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _nearest(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def log_cdf(law: Law, outcome: Any) -> Any:
    """log P(X <= outcome): the law's own `logcdf` where it has one, which does not underflow."""
    own = getattr(law, "logcdf", None)
    return own(outcome) if own is not None else _log(law.cdf(outcome))


def log_sf(law: Law, outcome: Any) -> Any:
    """log P(X > outcome): the law's own `logsf` where it has one, which does not underflow."""
    own = getattr(law, "logsf", None)
    return own(outcome) if own is not None else _log(law.sf(outcome))


def _log(probability: Any) -> Any:
    with np.errstate(divide="ignore"):
        values = np.log(probability)
    return float(values) if np.ndim(values) == 0 else values


def checked_scale(name: str, value: object) -> Fraction:
    """A noise scale: positive and at most 2^52."""
    scale = positive(name, value)
    if scale > MAX_SCALE:
        raise InvalidParameter(f"{name} must be at most 2^52, got {name}={shown(value)}")
    return scale


def nearest_float(value: Fraction) -> float:
    """The nearest float of a positive number, at most 1e300 so that products with zero stay zero."""
    return float(value) if value < 10**300 else 1e300


def smallest_radius(beyond: Callable[[int], float], confidence: float) -> int:
    """The smallest t >= 0 with beyond(t) <= 1 - confidence, where `beyond` decreases."""
    failure = float(1 - between("confidence", confidence, 0, 1))
    # The tails err by 1e-12 at most; rounding against ourselves keeps the promised coverage.
    limit = failure * (1 - 1e-11)
    if beyond(0) <= limit:
        return 0
    low, high = 0, 1
    while beyond(high) > limit:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if beyond(middle) > limit else (low, middle)
    return high
