"""Experiments: mechanisms on data sets over settings, with exact risks where a law gives them."""

import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sfumato.accuracy.progress import steps
from sfumato.checks import checked_confidence, one_of, shown, whole
from sfumato.errors import InvalidParameter
from sfumato.grid import Floats
from sfumato.lab import datasets
from sfumato.lab.asked_trials import AskedSubject
from sfumato.lab.cache import Cache, content_of
from sfumato.lab.datasets import Source
from sfumato.lab.own import Own
from sfumato.lab.trials import RISKS, Expected, Randomness, Risk, Trial, losses
from sfumato.processes import results

Target = Literal["data", "population"]
# Of every draw, and what is expected of each data set.
_Losses = tuple[Floats, Expected | None]
# Data sets of one block are in memory at once.
BLOCK_VALUES = 2**23
MOST_CELLS = 100_000


def run(
    subject: Any,
    *,
    data: Any,
    sweep: Mapping[str, Sequence[Any]] | None = None,
    repeats: int = 100,
    sets: int = 1,
    risks: Sequence[Risk] = ("squared",),
    target: Target = "data",
    seed: int = 0,
    confidence: float = 0.95,
    jobs: int = 1,
    cache: bool | str | Path = False,
) -> Any:
    """The risks of mechanisms over settings as a tidy Polars frame, exact where laws give them.

    Guarantee:
        The same arguments give the same frame, in any number of processes, but for measured times. All
        subjects and settings with the same number of records see the same data sets. An exact value is the
        expected loss under the law itself, averaged over those data sets; the simulated mean differs from it
        by the chance of draws only, whose standard error is `noise_se`.

    Args:
        subject: a query such as `sf.Quantiles(...)`, an `Own` mechanism, or a mapping of names to these.
        data: a source such as `datasets.uniform(0, 200)`, or an array, which is one fixed data set.
        sweep: lists of settings by name, all combinations of which are run. "n" is the number of records and
            "data" a source; the others are fields of the query, with "epsilon" or "rho" for its budget, or
            parameters of the function.
        repeats: draws on each data set.
        sets: independent data sets of each combination.
        risks: "squared" (summed over coordinates), "absolute" (their mean), "sup" (the largest error), "rank"
            (mean distance to p n, in ranks), "coverage" (the share of intervals that hold the truth) and
            "time" (median seconds of one answer, never beside other processes).
        target: "data", or "population" for the quantile or mean of what the data are drawn from.
        seed: of data sets and draws; results are for study, never for a release.
        confidence: of the intervals that "coverage" counts.
        jobs: processes.
        cache: whether results are kept on disk by content, or the folder for it; times never are.

    Returns:
        A frame with a row for each subject, combination and risk: `subject`, the settings, `risk`, `exact`
        (null where the law does not give it), `exact_se` (by the choice of data sets), `mean`, `se`,
        `noise_se` (of `mean` around `exact`), `sets` and `repeats`.

    Raises:
        InvalidParameter: a setting that nobody has, no data, or a function that cannot be sent to a process.

    >>> import sfumato as sf
    >>> median = sf.Quantiles(probs=[0.5], budget=sf.PureDP(1), bounds=(0, 1))
    >>> frame = run(median, data=datasets.uniform(), sweep={"n": [100], "epsilon": [0.5, 1]}, repeats=50)
    >>> frame["epsilon"].to_list(), bool((frame["exact"].diff().drop_nulls() < 0).all())
    ([0.5, 1.0], True)
    """
    plan = _Plan(
        repeats=whole("repeats", repeats, least=1, most=10**9),
        sets=whole("sets", sets, least=1, most=10**7),
        risks=tuple(dict.fromkeys(one_of("risks", risk, RISKS) for risk in risks)),
        target=one_of("target", target, ("data", "population")),
        seed=whole("seed", seed, least=0, most=2**64 - 1),
        confidence=checked_confidence(confidence),
    )
    cells = list(_cells(subject, data, dict(sweep or {}), plan))
    kept = Cache.at(cache)
    whole("jobs", jobs, least=1, most=256)
    found: dict[int, list[dict[str, Any]]] = {}
    for place, cell in enumerate(cells):
        stored = kept.read(cell.key) if kept else None
        if stored is not None:
            found[place] = stored
    missing = [place for place in range(len(cells)) if place not in found]
    beside = 1 if "time" in plan.risks else jobs
    bar = steps(len(missing), "running experiments")
    for _, (place, rows) in zip(bar, results(_risks, [(i, cells[i]) for i in missing], beside), strict=False):
        found[place] = rows
        if kept:
            kept.write(cells[place].key, rows)
    return _frame([row for place in range(len(cells)) for row in _told(cells[place], found[place])])


@dataclass(frozen=True)
class _Plan:
    repeats: int
    sets: int
    risks: tuple[Risk, ...]
    target: Target
    seed: int
    confidence: float


@dataclass(frozen=True)
class _Cell:
    """One subject with one combination of settings."""

    name: str
    subject: Any
    source: Source
    n: int | None
    settings: dict[str, Any]
    shown: dict[str, Any]
    plan: _Plan

    @property
    def key(self) -> str | None:
        """What the results depend on, or None if that is not known or they depend on the machine."""
        if "time" in self.plan.risks:
            return None
        return content_of([self.name, self.subject, self.source.content, self.n, self.settings, self.plan])

    def randomness(self) -> Randomness:
        """Of the draws: other cells have others, whatever runs first."""
        told = json.dumps([self.plan.seed, self.name, self.n, self.source.name, _words(self.settings)])
        return Randomness.of(int.from_bytes(hashlib.sha256(told.encode()).digest()[:16], "big"))


def _words(settings: Mapping[str, Any]) -> list[list[str]]:
    return [[name, repr(value)] for name, value in sorted(settings.items())]


def _subjects(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        given = {_name(given): given}
    if not given:
        raise InvalidParameter("subject must be at least one mechanism, got an empty mapping")
    return {str(name): _subject(one) for name, one in given.items()}


def _name(given: Any) -> str:
    if isinstance(given, Own):
        return str(getattr(given.function, "__name__", "own"))
    return str(getattr(given, "name", "mechanism"))


def _subject(given: Any) -> Any:
    if isinstance(given, Own | AskedSubject):
        return given
    if hasattr(type(given), "bind"):
        return AskedSubject(given)
    hint = "; wrap a function as Own(function=..., probs=... or statistic=...)" if callable(given) else ""
    raise InvalidParameter(f"subject must be a query or an Own mechanism, got {shown(given)}{hint}")


def _source(given: Any) -> Source:
    if isinstance(given, Source):
        return given
    array = np.asarray(given) if isinstance(given, np.ndarray | list | tuple) else None
    if array is None or array.ndim != 1 or array.dtype.kind not in "iufb" or not len(array):
        raise InvalidParameter(
            "data must be a source such as datasets.uniform(0, 1), or an array of at least one number, got "
            f"{type(given).__name__}"
        )
    values = array.astype(np.float64)
    if not np.isfinite(values).all():
        raise InvalidParameter("data must be finite numbers, got some that are not")
    ends = float(values.min()), float(values.max())
    # A mechanism that needs bounds is given them by its own parameters.
    return datasets.fixed(values, bounds=(ends[0], ends[1] if ends[1] > ends[0] else ends[0] + 1))


def _cells(subject: Any, data: Any, sweep: dict[str, Any], plan: _Plan) -> Iterator[_Cell]:
    subjects = _subjects(subject)
    for name, values in sweep.items():
        listed = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str | bytes)
        if not listed or not len(values):
            raise InvalidParameter(
                f"sweep must map names to lists that are not empty, got {shown({name: values})}"
            )
    count = len(subjects) * math.prod(len(values) for values in sweep.values())
    if count > MOST_CELLS:
        raise InvalidParameter(f"sweep must give at most {MOST_CELLS:,} combinations, got {count:,}")
    for name, one in subjects.items():
        for combination in itertools.product(*sweep.values()):
            settings = {key: _plain(value) for key, value in zip(sweep, combination, strict=True)}
            told = {key: _shown(value) for key, value in settings.items()}
            source = _source(settings.pop("data", data))
            n = settings.pop("n", None)
            if n is None and not source.fixed:
                raise InvalidParameter('sweep must hold "n", the number of records, for data that are drawn')
            yield _Cell(name, one.at(settings), source, n, settings, told, plan)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _shown(value: Any) -> Any:
    if isinstance(value, Source):
        return value.name
    return value if isinstance(value, int | float | str | bool) else getattr(value, "name", str(value))


def _risks(cell: _Cell) -> list[dict[str, Any]]:
    """The rows of one cell, but for its name and settings."""
    plan, random = cell.plan, cell.randomness()
    rows = cell.source.draw(plan.sets, cell.n, plan.seed)
    block = max(BLOCK_VALUES // rows.shape[1], 1)
    parts: dict[Risk, list[_Losses]] = {risk: [] for risk in plan.risks}
    for start in range(0, len(rows), block):
        trial: Trial = cell.subject.trial(rows[start : start + block], cell.source.bounds)
        for risk, pair in _losses(trial, cell, random):
            parts[risk].append(pair)
    return [_summary(risk, parts[risk], plan) for risk in plan.risks]


def _losses(trial: Trial, cell: _Cell, random: Randomness) -> Iterator[tuple[Risk, _Losses]]:
    plan = cell.plan
    drawn = [risk for risk in plan.risks if risk not in ("coverage", "time")]
    truth = trial.truth() if plan.target == "data" else _population_truth(trial, cell)
    answers = trial.draw(plan.repeats, random) if drawn else np.empty(0)
    for risk in plan.risks:
        if risk == "time":
            yield risk, (trial.seconds(plan.repeats, random), None)
        elif risk == "coverage":
            yield risk, (trial.covered(plan.repeats, plan.confidence, truth, random), None)
        else:
            found = trial.ranks_off(answers).mean(axis=2) if risk == "rank" else losses(risk, answers, truth)
            yield risk, (found, trial.exact(risk) if plan.target == "data" else None)


def _population_truth(trial: Trial, cell: _Cell) -> Floats:
    known: Any = getattr(trial, "query", None) or getattr(trial, "own", None)
    probs = getattr(known, "probs", None)
    if probs:
        return np.array([[cell.source.quantile(order) for order in probs]])
    if getattr(known, "name", "") in ("mean", "exponential_mean", "inverse_mean", "proportion"):
        return np.array([[cell.source.mean]])
    raise InvalidParameter(f"target must be 'data' for {cell.name}, whose population value is not known")


def _summary(risk: Risk, parts: Sequence[_Losses], plan: _Plan) -> dict[str, Any]:
    found = np.concatenate([part for part, _ in parts])
    exact = [known for _, known in parts if known is not None]
    row: dict[str, Any] = {"risk": risk, "exact": None, "exact_se": None}
    row["mean"], row["se"] = _median(found.ravel()) if risk == "time" else _mean(found)
    within = found.var(axis=1, ddof=1) if plan.repeats > 1 else None
    if len(exact) == len(parts):
        known = np.concatenate([part.mean for part in exact])
        row["exact"] = float(known.mean())
        row["exact_se"] = _mean(known[:, None])[1] if plan.sets > 1 else 0.0
        # What the law says: draws tell too little where rare ones count for most of the risk.
        variances = [part.variance for part in exact if part.variance is not None]
        if len(variances) == len(parts):
            within = np.concatenate(variances)
        elif within is None and plan.sets > 1:
            within = (found[:, 0] - known) ** 2
    noise = None if within is None else math.sqrt(float(within.mean()) / found.size)
    row["noise_se"] = noise
    return {**row, "sets": plan.sets, "repeats": plan.repeats}


def _mean(found: Floats) -> tuple[float, float | None]:
    """The mean of all draws and its standard error, by data sets if there are several."""
    independent = found.mean(axis=1) if len(found) > 1 else found[0]
    if len(independent) < 2:
        return float(independent.mean()), None
    return float(independent.mean()), float(independent.std(ddof=1)) / math.sqrt(len(independent))


def _median(times: Floats) -> tuple[float, float | None]:
    """The median, and half the distance of the order statistics one standard deviation away."""
    ordered, count = np.sort(times), len(times)
    away = math.sqrt(count) / 2
    low, high = max(round(count / 2 - away), 0), min(round(count / 2 + away), count - 1)
    return float(np.median(ordered)), float(ordered[high] - ordered[low]) / 2 if count > 1 else None


def _told(cell: _Cell, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"subject": cell.name, **cell.shown, **row} for row in rows]


def _frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    import polars as pl

    numbers = ("exact", "exact_se", "mean", "se", "noise_se")
    mixed = {
        name: pl.Float64
        for name in rows[0]
        if all(isinstance(row[name], int | float) and not isinstance(row[name], bool) for row in rows)
        and any(isinstance(row[name], float) for row in rows)
    }
    return pl.DataFrame(rows, schema_overrides={**mixed, **dict.fromkeys(numbers, pl.Float64)}, strict=False)
