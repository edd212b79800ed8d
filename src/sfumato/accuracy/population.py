"""A public assumption about a population: its quantiles and its shares, whichever of the two is given."""

import math
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from sfumato.checks import exact, pair, shown
from sfumato.errors import InvalidParameter

# Halvings from the largest float to the smallest: more than float64 can tell apart.
_HALVINGS = 2200


@runtime_checkable
class WithQuantiles(Protocol):
    """What knows its quantiles, as a `Scenario` does."""

    def quantile(self, shares: Any) -> Any:
        """The value at or below which each share lies."""


# A distribution function, what knows its quantiles, or the uniform law.
Population = Callable[[float], float] | WithQuantiles | None


def checked_bounds(value: object) -> tuple[float, float]:
    """Two finite floats, the lower one first."""
    lower, upper = (float(_within("bounds", end)) for end in pair("bounds", value))
    if not lower < upper:
        raise InvalidParameter(f"bounds must be increasing, got bounds={shown(value)}")
    return lower, upper


def _within(name: str, value: object) -> Any:
    number = exact(name, value)
    if abs(number) > 10**300:
        raise InvalidParameter(f"{name} must be in [-1e300, 1e300], got {name}={shown(value)}")
    return number


def quantile_of(law: Population, order: float, bounds: tuple[float, float]) -> float:
    """The quantile of the law at an order; without a law, of the uniform one on the bounds."""
    if law is None:
        return bounds[0] + order * (bounds[1] - bounds[0])
    if isinstance(law, WithQuantiles):
        return _quantile(law, order)
    low, high = bounds
    width = high - low
    while _share(law, low) >= order:
        low, width = _outwards(low, -width), 2 * width
    while _share(law, high) < order:
        high, width = _outwards(high, width), 2 * width
    return _halve(low, high, lambda value: _share(law, value) < order)[1]


def share_bounds(law: Population, value: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Two numbers between which the share of the law at or below a value is, equal but for rounding."""
    if law is None:
        share = min(max((value - bounds[0]) / (bounds[1] - bounds[0]), 0.0), 1.0)
        return share, share
    if isinstance(law, WithQuantiles):
        if _quantile(law, 0.0) > value:
            return 0.0, 0.0
        if _quantile(law, 1.0) <= value:
            return 1.0, 1.0
        return _halve(0.0, 1.0, lambda share: _quantile(law, share) <= value)
    share = _share(law, value)
    return share, share


def shares_around(
    law: Population, low: float, high: float, bounds: tuple[float, float]
) -> tuple[float, float]:
    """The shares at or below a lower and a higher value, each rounded towards the other."""
    below, above = share_bounds(law, low, bounds), share_bounds(law, high, bounds)
    if low <= high and below[0] > above[1]:
        raise InvalidParameter(f"law must not decrease, got more at or below {low} than {high}")
    return below[1], above[0]


def _halve(low: float, high: float, is_low: Callable[[float], bool]) -> tuple[float, float]:
    """The two neighbouring floats between which a condition changes."""
    for _ in range(_HALVINGS):
        middle = low / 2 + high / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if is_low(middle) else (low, middle)
    return low, high


def _outwards(end: float, step: float) -> float:
    if abs(end + step) > 1e300:
        raise InvalidParameter("law must be a distribution function: from 0 to 1 between -1e300 and 1e300")
    return end + step


def _quantile(law: WithQuantiles, share: float) -> float:
    try:
        found = float(np.asarray(law.quantile(share), dtype=np.float64).item())
    except (TypeError, ValueError):
        found = math.nan
    if math.isnan(found):
        raise InvalidParameter(f"law must have a quantile for each share, got none for the share {share}")
    return found


def _share(law: Any, value: float) -> float:
    if not callable(law):
        raise InvalidParameter(
            f"law must be a distribution function, or have quantiles, or be None, got law={shown(law)}"
        )
    try:
        found = float(law(value))
    except (TypeError, ValueError):
        found = math.nan
    if not 0 <= found <= 1:
        raise InvalidParameter(f"law must give a share in [0, 1] for each value, got another at {value}")
    return found
