"""Experiments: mechanisms on data sets over settings, with exact risks where a law gives them."""

import hashlib
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
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
from sfumato.lab.summaries import RESULTS, Seen, complete, frame_of, summary
from sfumato.lab.trials import RISKS, Expected, Randomness, Risk, Trial, losses
from sfumato.processes import results

Target = Literal["data", "population"]
# Data sets of one block, and the answers on them, are in memory at once.
BLOCK_VALUES = 2**23
MOST_CELLS = 100_000
MOST_RECORDS = 10**8


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
            (mean distance to p n in ranks, of which a value has several if records equal it), "coverage" (the
            share of intervals that hold the truth) and "time" (median seconds of one answer, never beside
            other processes).
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
        InvalidParameter: a setting that no subject takes, no data, a function that returns something else
            than finite numbers, or one that cannot be sent to a process.

    >>> import sfumato as sf
    >>> median = sf.Quantiles(
    ...     probs=[0.5], method="single", budget=sf.PureDP(1), bounds=(0, 1), verify=0
    ... )
    >>> frame = run(median, data=datasets.uniform(), sweep={"n": [100], "epsilon": [0.5, 1]}, repeats=50)
    >>> frame["epsilon"].to_list(), bool((frame["exact"].diff().drop_nulls() < 0).all())
    ([0.5, 1.0], True)
    """
    plan = _Plan(
        repeats=whole("repeats", repeats, least=1, most=10**7),
        sets=whole("sets", sets, least=1, most=10**7),
        risks=_checked_risks(risks),
        target=one_of("target", target, ("data", "population")),
        seed=whole("seed", seed, least=0, most=2**64 - 1),
        confidence=checked_confidence(confidence),
    )
    cells = list(_cells(subject, data, _checked_sweep(sweep), plan))
    kept = Cache.at(cache)
    whole("jobs", jobs, least=1, most=256)
    found: dict[int, list[dict[str, Any]]] = {}
    for place, cell in enumerate(cells):
        stored: Any = kept.read(cell.key) if kept else None
        if complete(stored, plan.risks, sets=plan.sets, repeats=plan.repeats):
            found[place] = stored
    missing = [place for place in range(len(cells)) if place not in found]
    beside = 1 if "time" in plan.risks else jobs
    bar = steps(len(missing), "running experiments")
    # Closed at once if something is wrong: other processes would go on.
    with closing(results(_risks, [(i, cells[i]) for i in missing], beside)) as coming:
        for _, (place, rows) in zip(bar, coming, strict=False):
            found[place] = rows
            if kept:
                kept.write(cells[place].key, rows)
    return frame_of([row for place in range(len(cells)) for row in _told(cells[place], found[place])])


def _checked_risks(risks: Any) -> tuple[Risk, ...]:
    if not isinstance(risks, Sequence) or isinstance(risks, str | bytes) or not risks:
        raise InvalidParameter(f"risks must be a list of at least one risk, got risks={shown(risks)}")
    return tuple(dict.fromkeys(one_of("risks", risk, RISKS) for risk in risks))


def _checked_sweep(sweep: Any) -> dict[str, Any]:
    if sweep is None:
        return {}
    if not isinstance(sweep, Mapping):
        raise InvalidParameter(f"sweep must be a mapping of names to lists, got sweep={shown(sweep)}")
    for name, values in sweep.items():
        listed = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str | bytes)
        if not isinstance(name, str) or not listed or not len(values):
            raise InvalidParameter(
                f"sweep must map names to lists that are not empty, got {shown({name: values})}"
            )
        if name in RESULTS:
            raise InvalidParameter(
                f"sweep must not use names that the frame has for results ({', '.join(RESULTS)}), got "
                f"{shown(name)}"
            )
    return dict(sweep)


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
    # Public ones, which an array has not.
    bounds: tuple[float, float] | None
    n: int | None
    settings: dict[str, Any]
    shown: dict[str, Any]
    plan: _Plan

    @property
    def key(self) -> str | None:
        """What the results depend on, or None if that is not known or they depend on the machine."""
        if "time" in self.plan.risks:
            return None
        source = [self.source.name, self.source.content, self.bounds]
        return content_of([self.name, self.subject, source, self.n, self.settings, self.plan])

    def randomness(self) -> Randomness:
        """Of the draws: other cells have others, whatever runs first."""
        told = json.dumps([self.plan.seed, self.name, self.n, self.source.name, _words(self.settings)])
        return Randomness.of(int.from_bytes(hashlib.sha256(told.encode()).digest()[:16], "big"))


def _words(settings: Mapping[str, Any]) -> list[list[str]]:
    return [[name, _stable(value)] for name, value in sorted(settings.items())]


def _stable(value: Any, words: Callable[[Any], str] = repr) -> str:
    """A value in words that are the same in every process."""
    if isinstance(value, set | frozenset):
        return str(sorted(map(_stable, value)))
    return re.sub(r" at 0x[0-9a-fA-F]+", "", words(value))


def subjects_of(given: Any) -> dict[str, Any]:
    """Mechanisms by name."""
    if not isinstance(given, Mapping):
        given = {_name(given): given}
    if not given:
        raise InvalidParameter("subject must be at least one mechanism, got an empty mapping")
    for name in given:
        if not isinstance(name, str) or not name.strip():
            raise InvalidParameter(f"subject must map names to mechanisms, got the name {shown(name)}")
    return {name: _subject(one) for name, one in given.items()}


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
    listed = isinstance(given, np.ndarray | list | tuple) and not np.ma.isMaskedArray(given)
    try:
        array = np.asarray(given) if listed else None
    except ValueError:  # lists of different lengths
        array = None
    if array is None or array.ndim != 1 or array.dtype.kind not in "iufb" or not len(array):
        raise InvalidParameter(
            "data must be a source such as datasets.uniform(0, 1), or an array of at least one number, got "
            f"{type(given).__name__}"
        )
    values = array.astype(np.float64)
    if not np.isfinite(values).all():
        raise InvalidParameter("data must be finite numbers, got some that are not")
    # Of the source alone: bounds that were read from data are given to no mechanism.
    low, high = float(values.min()), float(values.max())
    return datasets.fixed(values, bounds=(low, high if high > low else low + 1))


def _cells(subject: Any, data: Any, sweep: dict[str, Any], plan: _Plan) -> Iterator[_Cell]:
    subjects = subjects_of(subject)
    for name in sweep:
        if name not in ("n", "data") and not any(one.takes(name) for one in subjects.values()):
            raise InvalidParameter(f"sweep must name settings that a subject takes, got {shown(name)}")
    count = len(subjects) * math.prod(len(values) for values in sweep.values())
    if count > MOST_CELLS:
        raise InvalidParameter(f"sweep must give at most {MOST_CELLS:,} combinations, got {count:,}")
    for name, one in subjects.items():
        for combination in itertools.product(*sweep.values()):
            settings = {key: _plain(value) for key, value in zip(sweep, combination, strict=True)}
            told = {key: _shown(value) for key, value in settings.items()}
            given = settings.pop("data", data)
            source = _source(given)
            bounds = source.bounds if isinstance(given, Source) else None
            n = settings.pop("n", None)
            if n is None and not source.fixed:
                raise InvalidParameter('sweep must hold "n", the number of records, for data that are drawn')
            if n is not None:
                whole("n", n, least=1, most=MOST_RECORDS)
            ready = one.at(settings)
            ready.require_settings()
            yield _Cell(name, ready, source, bounds, n, settings, told, plan)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _shown(value: Any) -> Any:
    if isinstance(value, Source):
        return value.name
    if value is None or isinstance(value, int | float | str | bool):
        return value
    name = getattr(value, "name", None) or getattr(value, "__name__", None)
    return name if isinstance(name, str) else _stable(value, str)


def _risks(cell: _Cell) -> list[dict[str, Any]]:
    """The rows of one cell, but for its name and settings."""
    plan, random = cell.plan, cell.randomness()
    parts: dict[Risk, list[Seen]] = {risk: [] for risk in plan.risks}
    try:
        for rows in cell.source.blocks(plan.sets, cell.n, plan.seed, most=_block(cell)):
            trial: Trial = cell.subject.trial(rows, cell.bounds)
            for risk, found, expected in _losses(trial, cell, random):
                parts[risk].append(Seen.of(risk, found, expected))
    except Exception as error:
        error.add_note(f"This was {cell.name} with {cell.shown}.")
        raise
    return [summary(risk, parts[risk], sets=plan.sets, repeats=plan.repeats) for risk in plan.risks]


def _block(cell: _Cell) -> int:
    """How many data sets fit in memory with the answers on them."""
    known: Any = getattr(cell.subject, "query", cell.subject)
    coordinates = len(getattr(known, "probs", None) or (0,))
    records = cell.source.size if cell.n is None else cell.n
    return max(BLOCK_VALUES // max(records or 1, cell.plan.repeats * coordinates), 1)


def _losses(trial: Trial, cell: _Cell, random: Randomness) -> Iterator[tuple[Risk, Floats, Expected | None]]:
    """Of every risk the losses of all draws, and what is expected of each data set."""
    plan = cell.plan
    drawn = [risk for risk in plan.risks if risk not in ("coverage", "time")]
    truth = trial.truth() if plan.target == "data" else trial.population(cell.source)
    if truth is None:
        raise InvalidParameter(f"target must be 'data' for {cell.name}, whose population value is not known")
    answers = trial.draw(plan.repeats, random) if drawn else np.empty((0, 0, truth.shape[1]))
    if answers.shape[2] != truth.shape[1]:
        raise InvalidParameter(
            f"{cell.name} must answer as many numbers as it estimates, {truth.shape[1]}, got "
            f"{answers.shape[2]}; a function for any orders takes them as probs"
        )
    for risk in plan.risks:
        if risk == "time":
            yield risk, trial.seconds(plan.repeats, random), None
        elif risk == "coverage":
            yield risk, trial.covered(plan.repeats, plan.confidence, truth, random), None
        else:
            found = trial.ranks_off(answers).mean(axis=2) if risk == "rank" else losses(risk, answers, truth)
            yield risk, found, trial.exact(risk, truth)


def _told(cell: _Cell, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"subject": cell.name, **cell.shown, **row} for row in rows]
