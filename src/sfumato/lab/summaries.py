"""What an experiment tells of its draws: means with their standard errors, as the rows of a frame."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.grid import Floats
from sfumato.lab.trials import Expected, Risk

# What the columns of a frame are called, apart from the settings.
RESULTS = ("subject", "risk", "exact", "exact_se", "mean", "se", "noise_se", "sets", "repeats")


@dataclass(frozen=True)
class Seen:
    """A risk on a block of data sets: of each the mean loss, its variance, and what is expected."""

    mean: Floats
    variance: Floats | None
    expected: Expected | None
    # Kept for the median of times alone.
    losses: Floats | None

    @classmethod
    def of(cls, risk: Risk, found: Floats, expected: Expected | None) -> "Seen":
        """What is told of the losses: (sets, repeats)."""
        variance = found.var(axis=1, ddof=1) if found.shape[1] > 1 else None
        return cls(found.mean(axis=1), variance, expected, found if risk == "time" else None)


def complete(stored: Any, risks: Sequence[Risk], *, sets: int, repeats: int) -> bool:
    """Whether something is the rows of a cell; what another hand wrote into a cache may be anything."""
    return (
        isinstance(stored, list)
        and all(isinstance(row, dict) and set(row) == set(RESULTS[1:]) for row in stored)
        and [row["risk"] for row in stored] == list(risks)
        and all(isinstance(row[name], float | None) for row in stored for name in RESULTS[2:7])
        and all((row["sets"], row["repeats"]) == (sets, repeats) for row in stored)
    )


def summary(risk: Risk, parts: Sequence[Seen], *, sets: int, repeats: int) -> dict[str, Any]:
    """The row of a risk: what was seen and expected in all blocks of data sets, with standard errors."""
    means = np.concatenate([part.mean for part in parts])
    variances = [part.variance for part in parts if part.variance is not None]
    within = np.concatenate(variances) if variances else None
    exact = [part.expected for part in parts if part.expected is not None]
    row: dict[str, Any] = {"risk": risk, "exact": None, "exact_se": None}
    row["mean"], row["se"] = float(means.mean()), _se(means)
    if sets == 1 and within is not None:
        row["se"] = math.sqrt(float(within[0]) / repeats)
    if risk == "time":
        times = [part.losses.ravel() for part in parts if part.losses is not None]
        row["mean"], row["se"] = _median(np.concatenate(times))
        within = None  # of the mean, which is not what is told
    if len(exact) == len(parts):
        known = np.concatenate([part.mean for part in exact])
        row["exact"] = float(known.mean())
        row["exact_se"] = _se(known) if sets > 1 else 0.0
        # What the law says: draws tell too little where rare ones count for most of the risk.
        lawful = [part.variance for part in exact if part.variance is not None]
        if len(lawful) == len(parts):
            within = np.concatenate(lawful)
        elif within is None and sets > 1:
            within = (means - known) ** 2
    size = sets * repeats
    row["noise_se"] = None if within is None else math.sqrt(float(within.mean()) / size)
    return {**row, "sets": sets, "repeats": repeats}


def _se(independent: Floats) -> float | None:
    """The standard error of the mean of independent numbers."""
    if len(independent) < 2:
        return None
    return float(independent.std(ddof=1)) / math.sqrt(len(independent))


def _median(times: Floats) -> tuple[float, float | None]:
    """The median, and half the distance of the order statistics one standard deviation away."""
    ordered, count = np.sort(times), len(times)
    away = math.sqrt(count) / 2
    low, high = max(round(count / 2 - away), 0), min(round(count / 2 + away), count - 1)
    return float(np.median(ordered)), float(ordered[high] - ordered[low]) / 2 if count > 1 else None


def frame_of(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as a Polars frame, each of whose columns has one type."""
    import polars as pl

    numbers = ("exact", "exact_se", "mean", "se", "noise_se")
    kinds: dict[str, Any] = dict.fromkeys(numbers, pl.Float64)
    for name in set(rows[0]) - set(RESULTS):
        given = {type(row[name]) for row in rows} - {type(None)}
        if given == {int, float}:
            kinds[name] = pl.Float64
        elif len(given) > 1 or (given == {int} and any(abs(row[name] or 0) >= 2**63 for row in rows)):
            # A column has one type: words can tell all of them.
            rows = [{**row, name: None if row[name] is None else str(row[name])} for row in rows]
            kinds[name] = pl.String
    return pl.DataFrame(rows, schema_overrides=kinds, infer_schema_length=None)
