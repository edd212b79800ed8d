"""The accuracy of a statistic before it is paid for: on any data, or on data like a public scenario."""

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from sfumato.accuracy.progress import steps
from sfumato.accuracy.scenario import Scenario
from sfumato.accuracy.simulation import MOST_SIMULATED, SEED, few_beyond, tails
from sfumato.accuracy.statement import Accuracy, How
from sfumato.checks import Number, checked_confidence, shown, whole
from sfumato.data.admission import admit
from sfumato.data.column import Column
from sfumato.data.counts import MAX_ROWS
from sfumato.errors import InvalidParameter
from sfumato.grid import Floats
from sfumato.laws import DiscreteLaplace, SeededBits
from sfumato.release import printable

DRAWS = 2000
# What noise does to these depends on the data, or is known by a bound only: a scenario tells more.
_BY_SCENARIO = {"mean", "proportion", "variance", "inverse_mean", "exponential_mean", "inverse_proportion"}
_COUNTS = {"count", "histogram", "first_passing"}
_ATTAINED = {"count", "sum", "mean", "proportion", "histogram"}


def foresee(query: Any, n: int | None, confidence: Number, scenario: Scenario | None) -> Accuracy:
    """How far the statistic would be off on any data, or on data like a scenario where that tells more."""
    level = checked_confidence(confidence)
    rows = query.rows if n is None else whole("n", n, least=0, most=MAX_ROWS)
    if scenario is not None and not isinstance(scenario, Scenario):
        raise InvalidParameter(f"scenario must be an accuracy.Scenario, got scenario={shown(scenario)}")
    if rows is None and query.sized:
        raise InvalidParameter("n must be given, a guess of the private number of values, got n=None")
    if query.sized and not rows:
        raise InvalidParameter(f"n must be at least 1, got n={rows}")
    if query.rows_are_public and rows != query.rows:
        query = replace(query, rows=rows)
    off = _error(query, rows or 0, level)
    labels = query.labels()
    stated = Accuracy(
        statistic=query.name,
        column=query.column,
        rows=rows,
        confidence=level,
        labels=labels,
        errors=(off,) * len(labels),
        how=_how(query, off),
        notes=_notes(query),
    )
    if scenario is None:
        return stated
    if query.name not in _BY_SCENARIO or (query.size_is_public and query.name in _ATTAINED):
        return replace(stated, notes=(*stated.notes, "the same on any data, so that no scenario is needed"))
    size = min(rows or 0, MOST_SIMULATED)
    drawn = _drawn(replace(query, rows=size) if query.rows_are_public else query, size, scenario)
    # Noise of a ratio or a moment falls with the number of values.
    figure, away = (float(part) * size / (rows or 1) for part in tails(drawn, level))
    capped = () if size == rows else (f"{size:,} values were taken for {rows:,}, and the error scaled",)
    return replace(
        stated,
        errors=(figure,),
        how="simulated",
        monte_carlo=away,
        scenario=scenario.words,
        notes=(*stated.notes, *capped, *few_beyond(DRAWS, level)),
    )


def _error(query: Any, rows: int, confidence: float) -> float:
    """The query's own error; for a ratio, whose own is one to first order, a bound.

    With noises X and Y on the two complementary sums, which add up to T, the share t errs by
    |(1 - t) X - t Y| / (T + X + Y). The numerator is largest for t = 0 or 1, within 1 of continuous noise:
    docs/proofs/mean.md. A hundredth of the failure is for the denominator.
    """
    if query.size_is_public or query.name not in ("mean", "proportion"):
        off = float(query.error(rows, confidence))
        return off if query.rows is None or query.name not in _COUNTS else min(off, float(query.rows))
    failure, noise = 1 - confidence, query.mechanism.noise
    width = query.lattice.width if query.name == "mean" else 1
    unit, rounding = 1.0, 0.0
    if query.name == "mean":
        unit, rounding = float(query.lattice.step * width), float(query.lattice.step * query.lattice.rounding)
    total = rows * width - 2 * noise.radius((1 - failure / 100) ** 0.5)
    share = min((1 + _continuous(noise, failure * 99 / 100)) / total, 1.0) if total > 0 else 1.0
    return min(unit * share + rounding, unit)


def _continuous(noise: Any, failure: float) -> float:
    """What continuous noise of the same scale passes with this probability, on either side."""
    if isinstance(noise, DiscreteLaplace):
        return -float(noise.scale) * math.log(failure)
    from scipy.special import ndtri

    return -math.sqrt(noise.sigma_squared) * float(ndtri(failure / 2))


def _how(query: Any, off: float) -> How:
    """Exact where the noise is all there is, and some data are far enough from both ends to clamp nothing."""
    if query.name not in _ATTAINED or (query.sized and not query.size_is_public):
        return "bound"
    if getattr(query, "total_is_public", False) and not query._one_count:
        return "bound"
    return "exact" if query.rows is None or 2 * off <= _widest(query) else "bound"


def _widest(query: Any) -> float:
    """How far apart the least and the largest possible answers are, if the number of rows is public."""
    if query.name == "proportion":
        return 1.0
    if query.name in _COUNTS:
        return float(query.rows)
    if not query.size_is_public:
        return math.inf
    return float((query.upper - query.lower) * (query.rows if query.name == "sum" else 1))


def _notes(query: Any) -> tuple[str, ...]:
    if query.name == "histogram" and query.total_is_public and not query._one_count:
        return ("of each noisy count, before counts are made to add up to the number of rows",)
    if query.name == "first_passing":
        return (f"the number of values on the wrong side of {query.count:,}",)
    return ()


@lru_cache(maxsize=64)
def _drawn(query: Any, size: int, scenario: Scenario) -> Floats:
    """Draws of the error on typical values."""
    column = _column(query, scenario.typical(size))
    query.check(column)
    view = query.look(column)
    truth, law, bits = _truth(query, column, view), query.law(view), SeededBits(SEED)
    drawn: Any = law.sample(bits, DRAWS)
    parts = drawn if isinstance(drawn, tuple) else (drawn,)
    errors = np.empty(DRAWS)
    for i in steps(DRAWS, f"simulating {query.name} of {printable(query.column)}"):
        errors[i] = abs(query.value(tuple(int(part[i]) for part in parts)) - truth)
    return errors


def _column(query: Any, values: Floats) -> Column:
    flags = getattr(query, "equals", 0) is None and query.between is None
    if not flags:
        return admit(values, query.column)
    if not np.isin(values, (0.0, 1.0)).all():
        raise InvalidParameter(
            "scenario must be bernoulli or other zeros and ones for a proportion of true values"
        )
    return admit(values > 0, query.column)


def _truth(query: Any, column: Column, view: Any) -> float:
    if query.name in ("proportion", "inverse_proportion"):
        return float(view.first / view.size)
    values = np.clip(np.concatenate(list(column.chunks())), float(query.lower), float(query.upper))
    return math.fsum(values) / len(values) if query.name != "variance" else float(values.var())
