"""Theorems read for a query: the error that each allows it, at its budget and for so many values."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from sfumato.accuracy.histogram_method import (
    histogram_mean_error,
    histogram_quantile_failure,
    published_histogram_closed_mean_error,
    published_histogram_failure,
    published_histogram_mean_error,
)
from sfumato.accuracy.mean_risk import mean_risk
from sfumato.accuracy.quantile_smooth import inverse_sensitivity_quantile_tail
from sfumato.accuracy.quantile_tail import gap_ratio, published_quantile_rank_radius, quantile_rank_radius
from sfumato.accuracy.scenario import Scenario
from sfumato.accuracy.simulation import SEED
from sfumato.laws import SeededBits
from sfumato.privacy import ApproxDP, PureDP

# How finely the free distances of theorems are searched for the best one.
_REACHES = 40
# The smallest gap is looked for in so many sets of values, of so many values at most.
_SETS, _MOST_GAPS = 8, 200_000


def root_risk(query: Any, n: int, scenario: Scenario | None) -> float | None:
    """The root of the mean squared error of a mean around the population's, where n is public."""
    if not query.size_is_public:
        return None
    kind, delta = "laplace", None
    if isinstance(query.budget, ApproxDP) and not isinstance(query.cost, PureDP):
        kind, delta = "analytic gaussian", query.budget.delta
    elif not isinstance(query.budget, PureDP | ApproxDP):
        return None
    width = query.upper - query.lower
    variance, epsilon = _variance(query, scenario), query.budget.epsilon
    return math.sqrt(mean_risk(kind, n, variance, width, epsilon, delta))


def sampling_error(query: Any, n: int, scenario: Scenario | None) -> float:
    """The root of the mean squared error of the mean of the data around the population's."""
    return math.sqrt(_variance(query, scenario) / n)


def _variance(query: Any, scenario: Scenario | None) -> float:
    """The variance of the clamped values; the largest that the bounds allow where nothing is assumed."""
    if scenario is None:
        return float(query.upper - query.lower) ** 2 / 4
    return max(scenario.moments((query.lower, query.upper))[1], 1e-300)


def published_gap_radius(query: Any, n: int, confidence: float, scenario: Scenario) -> float:
    """The published rank error of independent draws, by the gaps of likely values; every order alone."""
    ratio, each = _gaps(query, n, scenario), query.chosen.terms(query.facts).range
    return published_quantile_rank_radius(ratio, each, 1 - confidence)


def corrected_gap_radius(query: Any, n: int, confidence: float, scenario: Scenario) -> float:
    """The same as it is proved: the largest of all orders, each alone."""
    ratio, rates = _gaps(query, n, scenario), query.chosen.constants(query.facts)
    return max(quantile_rank_radius(ratio, rate, 1 - confidence) for rate in rates)


def _gaps(query: Any, n: int, scenario: Scenario) -> float:
    """The range over the smallest gap of data like the scenario; infinite where the grid has ties."""
    ratio = _largest_ratio(scenario, n, (query.lower, query.upper)) if n <= _MOST_GAPS else math.inf
    return ratio if ratio <= query.facts.grid.cells else math.inf


@lru_cache(maxsize=64)
def _largest_ratio(scenario: Scenario, n: int, ends: tuple[Fraction, Fraction]) -> float:
    bits = SeededBits(SEED)
    return max(gap_ratio(scenario.drawn(n, bits), ends) for _ in range(1 if scenario.fixed else _SETS))


def histogram_distance(query: Any, n: int, confidence: float, scenario: Scenario) -> float | None:
    """The distance from the population's quantile that a histogram keeps, by the corrected theorem."""
    width = float(query.upper - query.lower)
    found = []
    for terms in _scans(query, n, (1 - confidence) / 2, scenario):
        failure = partial(_histogram_failure, terms)
        found.append(_first(failure, width, 1 - confidence))
    return _largest(found)


def _histogram_failure(terms: dict[str, Any], distance: float) -> float:
    return histogram_quantile_failure(distance=distance, **terms)


def _largest(found: list[float | None]) -> float | None:
    """The largest of some bounds, or None if one is missing."""
    known = [bound for bound in found if bound is not None]
    return max(known) if known and len(known) == len(found) else None


def published_histogram_distance(query: Any, n: int, confidence: float, scenario: Scenario) -> float | None:
    """The same by the published theorem, which is about uniform data and distances up to a tenth."""
    if not _is_uniform(query, scenario) or not _is_pure(query):
        return None
    width, cells = float(query.upper - query.lower), query.chosen.cells(query.facts).cells
    failure = (1 - confidence) / 2
    terms = {"rows": n, "steps": cells, "failure": failure, "epsilon": query.budget.epsilon}
    # It does not fall with the distance everywhere; the smallest that it allows is what it promises.
    for i in range(400):
        distance = 0.1 * 10 ** (-4 + i / 100)
        if published_histogram_failure(distance=min(distance, 0.1), **terms) <= 1 - confidence:
            return width * distance
    return None


def histogram_mean(query: Any, n: int, scenario: Scenario) -> float | None:
    """The mean distance from the quantile of uniform data, by the corrected theorem."""
    if not _is_uniform(query, scenario):
        return None
    width, failure = float(query.upper - query.lower), min(1 / math.sqrt(n), 0.5)
    bounds = []
    for terms in _scans(query, n, failure, scenario):
        known = {name: terms[name] for name in ("rows", "steps", "order", "failure", "radius", "middle")}
        bounds.append(width * histogram_mean_error(**known))
    return max(bounds, default=None)


def published_histogram_mean(query: Any, n: int, scenario: Scenario) -> float | None:
    """The mean distance from the quantile of uniform data as the report has it, at its best failure."""
    if not _is_uniform(query, scenario) or not _is_pure(query):
        return None
    width, cells, epsilon = (
        float(query.upper - query.lower),
        query.chosen.cells(query.facts).cells,
        query.budget.epsilon,
    )
    return max(
        min(
            width
            * published_histogram_mean_error(rows=n, steps=cells, order=q, failure=10.0**-i, epsilon=epsilon)
            for i in range(1, 9)
        )
        for q in query.orders
    )


def published_histogram_slides(query: Any, n: int, scenario: Scenario) -> float | None:
    """The mean distance from the quantile of uniform data as the slides have it, in closed form."""
    if not _is_uniform(query, scenario) or not _is_pure(query):
        return None
    width, epsilon = float(query.upper - query.lower), query.budget.epsilon
    return max(
        width * published_histogram_closed_mean_error(rows=n, order=q, epsilon=epsilon) for q in query.orders
    )


def smooth_distance(query: Any, n: int, confidence: float, scenario: Scenario) -> float | None:
    """The distance from the data's quantile that smooth inverse sensitivity keeps, for a known density."""
    facts, lower, upper = query.facts, float(query.lower), float(query.upper)
    radius = float(query.chosen.reach(facts) * facts.grid.step)
    if radius <= 0 or not _has_density(scenario):
        return None
    found: list[float | None] = []
    for order, rate in zip(query.orders, query.chosen.constants(facts), strict=True):
        center = float(scenario.quantile(float(order)))
        room = min(center - lower, upper - center)
        kept = [
            _smooth_step(
                scenario,
                center,
                room / 2 * 10 ** (-3 * i / _REACHES),
                2 * rate,
                radius,
                n,
                upper - lower,
                confidence,
            )
            for i in range(_REACHES)
        ]
        found.append(min((2 * step + radius for step in kept if step is not None), default=None))
    return _largest(found)


def _smooth_step(
    scenario: Scenario,
    center: float,
    reach: float,
    epsilon: Any,
    radius: float,
    n: int,
    width: float,
    confidence: float,
) -> float | None:
    """The smallest step for which the theorem promises the confidence, for one reach."""
    density = min(_density(scenario, center + side * 2 * reach) for side in (-1, 1))
    if not density > 0:
        return None
    density, reach = min(density, 1 / (4 * reach)), min(reach, width / 4)
    terms = {
        "rows": n,
        "density": density,
        "reach": reach,
        "radius": radius,
        "width": width,
        "epsilon": epsilon,
    }
    return _first(
        lambda step: inverse_sensitivity_quantile_tail(step=step, **terms), reach / 4, 1 - confidence
    )


def _first(failure: Callable[[float], float], most: float, allowed: float) -> float | None:
    """The smallest distance whose failure is allowed, within a thousandth, where failures fall."""
    if failure(most) > allowed:
        return None
    low, high = most * 1e-9, most
    while high > 1.001 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if failure(middle) <= allowed else (middle, high)
    return high


def _scans(query: Any, n: int, failure: float, scenario: Scenario) -> list[dict[str, Any]]:
    """What the theorems about histograms ask for, for each order; none where a scan goes downwards."""
    method, facts = query.chosen, query.facts
    grid, scans = method.cells(facts), method.scans(facts)
    if any(scan.downwards for scan in scans):
        return []
    points = grid.step * (grid.cells - 1) == grid.upper - grid.lower
    return [
        {
            "rows": n,
            "steps": grid.cells,
            "order": scan.order,
            "failure": failure,
            "radius": max(scan.rank_error(grid.cells, 1 - failure), 1),
            "law": scenario,
            "bounds": (query.lower, query.upper),
            "middle": not (method.published or points),
        }
        for scan in scans
    ]


def _is_pure(query: Any) -> bool:
    return isinstance(query.budget, PureDP)


def _is_uniform(query: Any, scenario: Scenario) -> bool:
    ends = {"low": float(query.lower), "high": float(query.upper)}
    return scenario.kind == "uniform" and dict(scenario.parameters) == ends


def _has_density(scenario: Scenario) -> bool:
    return scenario.kind in _DENSITIES


def _density(scenario: Scenario, value: float) -> float:
    """The density of a law with one mode: smallest at the ends of every interval."""
    return _DENSITIES[scenario.kind](value, **dict(scenario.parameters))


def _uniform(value: float, *, low: float, high: float) -> float:
    return 1 / (high - low) if low <= value <= high else 0.0


def _normal(value: float, *, mean: float, sd: float) -> float:
    return math.exp(-(((value - mean) / sd) ** 2) / 2) / (sd * math.sqrt(2 * math.pi))


def _lognormal(value: float, *, mu: float, sigma: float) -> float:
    return _normal(math.log(value), mean=mu, sd=sigma) / value if value > 0 else 0.0


def _exponential(value: float, *, mean: float) -> float:
    return math.exp(-value / mean) / mean if value >= 0 else 0.0


_DENSITIES: dict[str, Callable[..., float]] = {
    "uniform": _uniform,
    "normal": _normal,
    "lognormal": _lognormal,
    "exponential": _exponential,
}
