"""What figures 14 to 17 of [A24] share: how long four ways to quantiles take, side by side."""

import statistics
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from sfumato.grid import Floats
from sfumato.lab import published_several as published
from sfumato.lab.datasets import uniform
from sfumato.lab.figure import Effort, Mode, Statement
from sfumato.lab.own import Own, with_own
from sfumato.lab.runs import subjects_of
from sfumato.lab.several_risks import asked_for, query, script
from sfumato.lab.trials import Randomness

ORDERS = tuple(Fraction(i, 5) for i in range(1, 5))
RECORDS, EPSILON, RUNS = 100, 1.0, 40
BOUNDS = (0.0, 1.0)
NAMES = {
    "independent": "IndExp",
    "joint": "JointExp",
    "recursive": "RecExp",
    "plain": "not private",
}
TITLED = {"plain": "quantiles that are not private"}


def plain(values: Floats) -> Floats:
    """The sample quantiles."""
    return published.quantiles(values, [float(p) for p in ORDERS])


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """The microseconds of each run, with the methods in turn, so that a busy machine is as slow for all.

    Every run follows a rehearsal. In mode "published" the mechanisms are those of the script, in floating
    point by NumPy; in mode "corrected" those of sfumato, from a column to the answers.
    """
    import polars as pl

    subjects: dict[str, Any] = {}
    for method in ("independent", "joint", "recursive"):
        theirs = script(getattr(published, method), ORDERS)
        subjects[method] = theirs if mode == "published" else query(method, ORDERS, EPSILON)
    subjects["plain"] = Own(function=plain, probs=ORDERS)
    rows = uniform(0.01, 0.99).draw(1, RECORDS, effort.seed)
    trials = {
        name: one.at({"epsilon": EPSILON}).trial(rows, BOUNDS)
        for name, one in subjects_of(with_own(subjects, asked_for(own, ORDERS))).items()
    }
    random = Randomness.of(effort.seed)
    found = [
        {"method": name, "run": number + 1, "microseconds": 1e6 * float(trial.seconds(1, random)[0, 0])}
        for number in range(effort.draws(RUNS, least=RUNS))
        for name, trial in trials.items()
    ]
    return pl.DataFrame(found)


def medians(table: Any) -> dict[str, float]:
    """The median time of each method."""
    by_method: dict[str, list[float]] = {}
    for row in table.iter_rows(named=True):
        by_method.setdefault(row["method"], []).append(row["microseconds"])
    return {name: statistics.median(times) for name, times in by_method.items()}


def chart(method: str, table: Any, mode: Mode) -> Any:
    """All times as strips, the method of the figure first."""
    from sfumato.charts import strips

    methods = [method, *(name for name in medians(table) if name != method)]
    by = {"published": "the script's mechanisms in NumPy", "corrected": "sfumato's exact samplers"}
    rows = [
        {"label": NAMES.get(name, name), "value": row["microseconds"]}
        for name in methods
        for row in table.iter_rows(named=True)
        if row["method"] == name
    ]
    return strips(
        rows,
        title=f"Run time of {TITLED.get(method, NAMES[method])}",
        subtitle=[f"{len(ORDERS)} quantiles of {RECORDS} records; {by[mode]}", "dots: runs; bars: medians"],
        unit="time of one answer, in microseconds",
        log=True,
    )


def chart_of(method: str) -> Any:
    """The chart of a figure about one method."""
    return partial(chart, method)


def ratio(words: str, upper: float, lower: float, *, least: float = 0.0, most: float = np.inf) -> Statement:
    """That a ratio of two medians is within limits, with the ratio in words."""
    found = upper / lower
    limits = [f"above {least:g}"] if least else []
    limits += [f"below {most:g}"] if np.isfinite(most) else []
    return Statement(f"{words}: {found:.3g}, {' and '.join(limits)}", bool(least < found < most))
