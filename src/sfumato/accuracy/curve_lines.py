"""Which curves exist for which query: its own errors, and the theorems that are about it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sfumato.accuracy import curve_bounds as bounds
from sfumato.accuracy.inverse import parameter
from sfumato.accuracy.inverse_sensitivity import bernoulli_inverse_loss, unbiased_lower_bound
from sfumato.accuracy.proportion_losses import (
    bernoulli_inverse_equivalent,
    published_bernoulli_inverse_equivalent,
)
from sfumato.accuracy.scenario import Scenario
from sfumato.accuracy.selection import (
    exponential_choice_loss,
    exponential_mean_choice_loss,
    flip_choice_loss,
    flip_mean_choice_loss,
    published_choice_loss,
    published_mean_choice_loss,
)
from sfumato.accuracy.statement import Accuracy
from sfumato.errors import InvalidParameter, NotSupported

# A mean error is an average over confidences: the area under the curve of the errors that are kept.
_CONFIDENCES = 64
_HOW = {"exact": "exact", "simulated": "simulated", "bound": "bound on any data"}


@dataclass(frozen=True)
class Setting:
    """One place of a curve: the query at its budget, the number on the other axis, and what is assumed."""

    query: Any
    n: int | None
    confidence: float
    scenario: Scenario | None
    measure: str

    @property
    def rows(self) -> int:
        """The number of values, for theorems that need one."""
        if self.n is None:
            raise InvalidParameter("n must be given, a guess of the private number of values, got n=None")
        return self.n

    @property
    def assumed(self) -> Scenario:
        """The scenario, for theorems that need one."""
        if self.scenario is None:
            raise NotSupported("this theorem is about data like a scenario, got scenario=None")
        return self.scenario

    def largest(self, unit: str) -> float:
        """The largest error that an answer can have."""
        if unit == "ranks":
            return float(self.rows)
        bounded = getattr(self.query, "bounds", None) is not None and self.query.name in ("mean", "quantiles")
        return float(self.query.upper - self.query.lower) if bounded else 1.0 if unit == "share" else math.inf

    def foreseen(self, confidence: float | None = None, *, any_data: bool = False) -> Accuracy:
        """What the query itself knows of its accuracy."""
        level = self.confidence if confidence is None else confidence
        found: Accuracy = self.query.accuracy(
            self.n, confidence=level, scenario=None if any_data else self.scenario
        )
        return found


@dataclass(frozen=True)
class Line:
    """One curve: its name, its kind for the eye, the error that it states at a setting, and in which unit."""

    name: str
    kind: str
    error: Callable[[Setting], float | None]
    unit: str = ""
    own: bool = False


def is_choice(query: Any) -> bool:
    """Whether an option is chosen, and no number released."""
    return hasattr(query, "options") and hasattr(query, "picks")


def lines_of(own: Setting) -> list[Line]:
    """The curves: the query's own first, then theorems about it."""
    query = own.query
    if is_choice(query):
        return _choice(own)
    method = query.chosen.name if query.name == "quantiles" and not query.sized else ""
    by_value = own.scenario is not None and (
        method in ("histogram", "inverse_sensitivity") or own.measure == "mean"
    )
    figure = "error" if query.name != "quantiles" or by_value else "rank_error"
    lines = [_own_line(own, figure)]
    assumes = own.scenario is not None and own.measure == "kept" and lines[0].kind != "bound"
    if assumes and not by_value and own.foreseen(any_data=True).how == "bound":
        lines.append(Line(_HOW["bound"], "bound", lambda at: _figure(at.foreseen(any_data=True), figure)))
    table = _THEOREMS.get((query.name, method, own.measure), [])
    if query.name == "mean" and own.scenario is None:
        # Bounds alone allow half of the values at each end, and a curve of that would mislead.
        table = []
    shares = query.name in ("proportion", "inverse_proportion")
    unit = "ranks" if figure == "rank_error" else "share" if shares else query.column
    return [replace(line, unit=unit, own=i == 0) for i, line in enumerate([*lines, *table])]


def _own_line(own: Setting, figure: str) -> Line:
    how = own.foreseen().how
    if own.query.name == "inverse_proportion" and own.measure == "mean" and _is_plain(own.query):
        return Line(
            "exact",
            "exact",
            lambda at: bernoulli_inverse_loss(at.rows, _matches(at), at.query.budget.epsilon),
        )
    if own.measure == "mean":
        return Line(_HOW[how], how, lambda at: _mean(at, figure))
    return Line(_HOW[how], how, lambda at: _figure(at.foreseen(), figure))


def _figure(accuracy: Accuracy, figure: str) -> float | None:
    found: float | None = getattr(accuracy, figure)
    return found


def _mean(at: Setting, figure: str) -> float | None:
    """The largest mean error of all numbers, as the average over confidences of what is kept with each."""
    name = "errors" if figure == "error" else "ranks"
    kept = [getattr(at.foreseen((i + 0.5) / _CONFIDENCES), name) for i in range(_CONFIDENCES)]
    return None if None in kept else max(math.fsum(column) for column in zip(*kept, strict=True)) / len(kept)


def _is_plain(query: Any) -> bool:
    return not query.recalibrated and not query.radius and parameter(query.budget)[0] == "epsilon"


def _matches(at: Setting) -> int:
    """How many values match: half of them, or as many as the scenario says."""
    share = 0.5 if at.scenario is None or at.scenario.kind != "bernoulli" else at.scenario.mean
    return round(share * at.rows)


def _only_plain(error: Callable[[int, float], float]) -> Callable[[Setting], float | None]:
    return lambda at: error(at.rows, float(at.query.budget.epsilon)) if _is_plain(at.query) else None


def _choice(own: Setting) -> list[Line]:
    mean = own.measure == "mean"
    sharp: Any
    if own.query.method == "flip":
        sharp, named = (flip_mean_choice_loss if mean else flip_choice_loss), "sharper bound"
    else:
        sharp, named = (exponential_mean_choice_loss if mean else exponential_choice_loss), "sharp bound"
    printed: Any = published_mean_choice_loss if mean else published_choice_loss

    def at(loss: Any) -> Callable[[Setting], float]:
        def error(setting: Setting) -> float:
            rate = setting.query.mechanism.each.rate
            failure = (1 - Fraction(setting.confidence)) / setting.query.picks
            return float(loss(rate, setting.rows, *(() if mean else (failure,))))

        return error

    first, second = Line(named, "bound", at(sharp)), Line("published bound [MT07]", "published", at(printed))
    return [replace(line, unit="score", own=True) for line in (first, second)]


# By the name of the statistic, its method and the measure: the theorems that say something about it.
_GAPS = [
    Line(
        "published bound [A24]",
        "published",
        lambda at: bounds.published_gap_radius(at.query, at.rows, at.confidence, at.assumed),
    ),
    Line(
        "corrected bound, by gaps",
        "second",
        lambda at: bounds.corrected_gap_radius(at.query, at.rows, at.confidence, at.assumed),
    ),
]
_THEOREMS: dict[tuple[str, str, str], list[Line]] = {
    ("mean", "", "kept"): [
        Line(
            "population, root mean square",
            "second",
            lambda at: bounds.root_risk(at.query, at.rows, at.scenario),
        ),
        Line("sampling alone", "reference", lambda at: bounds.sampling_error(at.query, at.rows, at.scenario)),
    ],
    ("quantiles", "single", "kept"): _GAPS,
    ("quantiles", "independent", "kept"): _GAPS,
    ("quantiles", "histogram", "kept"): [
        Line(
            "corrected bound, population",
            "bound",
            lambda at: bounds.histogram_distance(at.query, at.rows, at.confidence, at.assumed),
        ),
        Line(
            "published bound [C22]",
            "published",
            lambda at: bounds.published_histogram_distance(at.query, at.rows, at.confidence, at.assumed),
        ),
    ],
    ("quantiles", "histogram", "mean"): [
        Line(
            "corrected bound, population",
            "bound",
            lambda at: bounds.histogram_mean(at.query, at.rows, at.assumed),
        ),
        Line(
            "published bound [C22]",
            "published",
            lambda at: bounds.published_histogram_mean(at.query, at.rows, at.assumed),
        ),
        Line(
            "published bound [S22]",
            "second",
            lambda at: bounds.published_histogram_slides(at.query, at.rows, at.assumed),
        ),
    ],
    ("quantiles", "inverse_sensitivity", "kept"): [
        Line(
            "corrected bound [C22]",
            "bound",
            lambda at: bounds.smooth_distance(at.query, at.rows, at.confidence, at.assumed),
        ),
    ],
    ("inverse_proportion", "", "mean"): [
        Line("published limit [A24]", "published", _only_plain(published_bernoulli_inverse_equivalent)),
        Line("corrected limit", "bound", _only_plain(bernoulli_inverse_equivalent)),
        Line("lower bound", "lower bound", _only_plain(unbiased_lower_bound)),
    ],
}
