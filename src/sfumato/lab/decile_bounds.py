"""What is promised for the mean error of a decile of uniform data, by each theorem, before it is measured."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.accuracy import (
    above_threshold_alpha,
    histogram_mean_error,
    histogram_quantile_failure,
    inverse_sensitivity_population_tail,
    published_histogram_closed_mean_error,
    published_histogram_mean_error,
    published_histogram_rank_mean_error,
)
from sfumato.errors import InvalidParameter

# Each of the deciles has such a part of the budget.
PARTS = 9
CLOSED, BINOMIAL = "closed bound, histogram", "binomial bound, histogram"
TAIL = "bound, inverse sensitivity"
REPORT, SLIDE_THREE, SLIDE_FIVE = "report", "slide 3 of 5", "slide 5 of 5"
# Points at which a bound on a probability is summed up to one on a mean.
_POINTS = 120
# How the distance is divided between the draw and the sample, in parts of it.
_DIVISIONS = tuple(0.08 * part for part in range(1, 13))


def steps(rows: int) -> int:
    """How many steps the slides take: 1.5 n / log n."""
    return math.ceil(1.5 * rows / math.log(rows))


def failure(rows: int) -> float:
    """How likely the scan may leave its radius on the slides."""
    return 1 / (math.sqrt(rows) * math.log(rows))


def scan_radius(rows: int, epsilon: Any, *, cells: int | None = None, beta: Any = None) -> float:
    """How far in ranks the scan of one decile errs at most, for its ninth of the budget."""
    unit = PARTS / Fraction(str(epsilon))
    return above_threshold_alpha(
        queries=steps(rows) if cells is None else cells,
        failure=failure(rows) if beta is None else beta,
        threshold_scale=2 * unit,
        query_scale=4 * unit,
    )


def closed_mean(rows: int, order: Fraction, epsilon: Any) -> float:
    """The closed bound on the mean error of the histogram method."""
    return histogram_mean_error(
        rows=rows,
        steps=steps(rows),
        order=order,
        failure=failure(rows),
        radius=scan_radius(rows, epsilon),
    )


def binomial_mean(rows: int, order: Fraction, epsilon: Any) -> float | None:
    """The bound by binomial tails, summed over distances; None where the scan leaves no rank."""
    terms: dict[str, Any] = {"rows": rows, "steps": steps(rows), "order": order, "failure": failure(rows)}
    radius = scan_radius(rows, epsilon)

    def tail(distance: float) -> float:
        return histogram_quantile_failure(distance=distance, radius=radius, **terms)

    try:
        return _summed(tail, float(max(order, 1 - order)))
    except InvalidParameter:
        return None


def smooth_mean(rows: int, order: Fraction, epsilon: Any) -> float:
    """The bound on smooth inverse sensitivity, summed over distances, each divided as is best."""
    radius = 1 / (1000 * rows)
    reach = min(float(min(order, 1 - order)) / 2, 0.25)
    budget = float(epsilon) / PARTS

    def tail(distance: float) -> float:
        found = 1.0
        for part in _DIVISIONS:
            drift, step = (distance - radius) * part, (distance - radius) * (1 - part) / 2
            if drift > 0 and step > 0:
                found = min(
                    found,
                    inverse_sensitivity_population_tail(
                        rows=rows,
                        density=1,
                        reach=reach,
                        step=min(step, reach / 4),
                        drift=min(drift, reach),
                        radius=radius,
                        width=1,
                        epsilon=budget,
                    ),
                )
        return found

    return _summed(tail, float(max(order, 1 - order)))


def _summed(tail: Callable[[float], float], most: float) -> float:
    """The integral of a bound that falls with the distance, from above, on distances that grow evenly."""
    places = most * np.linspace(0, 1, _POINTS + 1) ** 2
    # A bound may rise again where its hypotheses end; a smaller distance's holds all the same.
    heights = np.minimum.accumulate([1.0, *(tail(float(place)) for place in places[1:-1])])
    return float(np.diff(places) @ heights)


def report_mean(rows: int, order: Fraction, epsilon: Any) -> float:
    """The bound of the report, for the steps and the failure of the slides."""
    return published_histogram_mean_error(
        rows=rows, steps=steps(rows), order=order, failure=failure(rows), epsilon=epsilon
    )


def slide_ranks(rows: int, order: Fraction, epsilon: Any) -> float | None:
    """The bound of slide 3 of 5; None where it is undefined."""
    try:
        return published_histogram_rank_mean_error(rows=rows, order=order, epsilon=epsilon)
    except InvalidParameter:
        return None


def slide_closed(rows: int, order: Fraction, epsilon: Any) -> float:
    """The bound of slide 5 of 5."""
    return published_histogram_closed_mean_error(rows=rows, order=order, epsilon=epsilon)
