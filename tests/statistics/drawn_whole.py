"""Means and proportions that are drawn from weights, as their tests ask for them."""

from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.admission import admit

PUBLIC = {"neighbours": "substitution", "nulls": "lower"}
BOUNDS = (-2.5, 10.1)
LOW, HIGH = BOUNDS
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "inverse mean": (sf.InverseMean, {"bounds": BOUNDS}),
    "inverse mean, few points": (sf.InverseMean, {"bounds": BOUNDS, "points": 40}),
    "inverse mean, smooth": (sf.InverseMean, {"bounds": BOUNDS, "radius": 0.3}),
    "inverse mean, smooth by default": (sf.InverseMean, {"bounds": BOUNDS, "radius": None}),
    "inverse proportion": (sf.InverseProportion, {"between": (0, 5)}),
    "inverse proportion, smooth": (sf.InverseProportion, {"between": (0, 5), "radius": 2}),
    "exponential mean": (sf.ExponentialMean, {"bounds": BOUNDS}),
    "exponential mean, few points": (sf.ExponentialMean, {"bounds": BOUNDS, "points": 40}),
}
EXACT = {"between": (0, 5), "recalibrated": True}
RECALIBRATED = {"inverse proportion, recalibrated": (sf.InverseProportion, EXACT)}
ALL = {**KINDS, **RECALIBRATED}
every_kind = pytest.mark.parametrize("kind", ALL.values(), ids=ALL)


def query(kind: Any, rows: int | None = None, budget: Any = None, **given: Any) -> Any:
    make, own = kind
    return make(**{"budget": budget or sf.PureDP(1), "rows": rows, **PUBLIC, **own, **given})


def law_of(asked: Any, values: Any) -> Any:
    return asked.law(asked.look(admit(np.array(values, dtype=np.float64))))


def truth_of(asked: Any, values: Any) -> float:
    array = np.asarray(values, dtype=np.float64)
    if isinstance(asked, sf.InverseProportion):
        return float(((array >= 0) & (array <= 5)).mean())
    return float(np.clip(np.where(np.isnan(array), LOW, array), LOW, HIGH).mean())


def chances_of(asked: Any, values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Every possible answer, and its probability."""
    points = np.arange(asked.last + 1)
    chances = np.exp(law_of(asked, values).logpmf(points))
    assert chances.sum() == pytest.approx(1, abs=1e-9)
    if isinstance(asked, sf.InverseProportion):
        return points / asked.last, chances
    ends = [float(asked.lattice.value(end)) for end in (asked.lattice.low, asked.lattice.high)]
    return np.clip(ends[0] + (ends[1] - ends[0]) * points / asked.last, LOW, HIGH), chances
