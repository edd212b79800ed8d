"""How often intervals hold, how wide they are beside the best for the same outputs, and what a share costs.

For each statistic, distribution, number of rows and epsilon: 2,000 releases of fresh data at 95 % confidence.
The best interval is the released value plus and minus the smallest constant that holds in 95 % of the same
runs; it knows the distribution, which no release tells. Widths of integers count the points
inside; below a millionth of the bounds a width counts as a point.
"""

import argparse
import math
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy import stats
from timing import finish, show, verdict

import sfumato as sf
from sfumato.laws import SeededBits

GOAL_COVERAGE, GOAL_RATIO = 0.93, 1.5
DECILES = tuple(i / 10 for i in range(1, 10))
BINS = 10


@dataclass(frozen=True)
class Family:
    law: object
    bounds: tuple[float, float]
    integers: bool = False

    def sample(self, n: int, generator: np.random.Generator) -> np.ndarray:
        values = self.law.rvs(n, random_state=generator)
        return values.astype(np.int64) if self.integers else values

    def share(self) -> float:
        return float(self.law.cdf(self.law.median()))

    def mean(self) -> float:
        places = (np.arange(10**6) + 0.5) / 10**6
        return float(np.clip(self.law.ppf(places), *self.bounds).mean())


class Constant:
    """A law of one value, which SciPy does not have."""

    def __init__(self, value: float) -> None:
        self.value = value

    def rvs(self, size: int, random_state: object = None) -> np.ndarray:
        return np.full(size, self.value)

    def cdf(self, value: float) -> float:
        return float(value >= self.value)

    def ppf(self, shares: object) -> np.ndarray:
        return np.full(np.shape(shares), self.value)

    def median(self) -> float:
        return self.value


FAMILIES = {
    "uniform": Family(stats.uniform(), (0, 1)),
    "normal": Family(stats.norm(50, 10), (0, 100)),
    "lognormal": Family(stats.lognorm(1), (0, 50)),
    "Poisson": Family(stats.poisson(5), (0, 50), integers=True),
    "constant": Family(Constant(0.35), (0, 1)),
}


@dataclass(frozen=True)
class Question:
    """A statistic: how it is released, its value in the data and in the population, and what one point is."""

    release: Callable[[np.ndarray, Family, dict], sf.Release]
    data: Callable[[np.ndarray, Family], np.ndarray]
    population: Callable[[Family], np.ndarray] | None
    unit: Callable[[Family], float]


def order_statistics(values: np.ndarray, probs: tuple[float, ...]) -> np.ndarray:
    ordered = np.sort(values)
    return ordered[[math.ceil(round(p * len(values), 6)) - 1 for p in probs]]


def histogram_counts(values: np.ndarray, family: Family) -> np.ndarray:
    inside = np.clip(values, *family.bounds)
    return np.histogram(inside, BINS, range=family.bounds)[0]


def point(family: Family) -> float:
    return 1.0 if family.integers else (family.bounds[1] - family.bounds[0]) * 1e-6


def below(family: Family) -> tuple[float, float]:
    return family.bounds[0], float(family.law.median())


def clipped_mean(values: np.ndarray, family: Family) -> np.ndarray:
    return np.array([np.clip(values, *family.bounds).mean()])


def questions(share: object) -> dict[str, Question]:
    return {
        "count": Question(
            lambda x, family, how: sf.count(x, between=below(family), **how),
            lambda x, family: np.array([(x <= below(family)[1]).sum()]),
            None,
            lambda family: 1.0,
        ),
        "proportion": Question(
            lambda x, family, how: sf.proportion(x, between=below(family), **how),
            lambda x, family: np.array([(x <= below(family)[1]).mean()]),
            lambda family: np.array([family.share()]),
            lambda family: 0.0,
        ),
        "mean": Question(
            lambda x, family, how: sf.mean(x, bounds=family.bounds, interval_share=share, **how),
            clipped_mean,
            lambda family: np.array([family.mean()]),
            lambda family: 0.0,
        ),
        "histogram": Question(
            lambda x, family, how: sf.histogram(x, bins=BINS, bounds=family.bounds, **how),
            histogram_counts,
            None,
            lambda family: 1.0,
        ),
        "median": Question(
            lambda x, family, how: sf.median(x, bounds=family.bounds, interval_share=share, verify=0, **how),
            lambda x, family: order_statistics(x, (0.5,)),
            lambda family: np.array([family.law.median()]),
            point,
        ),
        "deciles": Question(
            lambda x, family, how: sf.deciles(x, bounds=family.bounds, interval_share=share, verify=0, **how),
            lambda x, family: order_statistics(x, DECILES),
            lambda family: family.law.ppf(DECILES),
            point,
        ),
    }


@dataclass(frozen=True)
class Cell:
    """What happened in one cell: for each number, how often it was covered, its width and the best width."""

    covered: np.ndarray
    width: np.ndarray
    best: np.ndarray

    @classmethod
    def of(cls, runs: list[tuple[np.ndarray, ...]], unit: float) -> "Cell":
        value, low, high, truth = (np.array(part, dtype=float) for part in zip(*runs, strict=True))
        # Ends are rounded to float64; the data's value is in the cell of a point, or rounded as well.
        slack = 1e-3 * unit * (unit < 1) + 1e-9 * np.abs(truth)
        covered = (low - slack <= truth) & (truth <= high + slack)
        errors = np.sort(np.abs(value - truth), axis=0)
        best = 2 * errors[math.ceil(0.95 * len(errors)) - 1]
        return cls(covered.mean(axis=0), (high - low).mean(axis=0) + unit, best + unit)

    @property
    def ratio(self) -> float:
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(np.nan_to_num(self.width / self.best, nan=1.0, posinf=np.inf).mean())


def measure(task: tuple[str, str, int, float, int, object, str]) -> dict[str, Cell]:
    name, kind, n, epsilon, runs, share, nulls = task
    family, question = FAMILIES[kind], questions(share)[name]
    generator, bits = np.random.default_rng(1), SeededBits(2)
    how = {"epsilon": epsilon, "nulls": nulls, "bits": bits}
    found: dict[str, list[tuple[np.ndarray, ...]]] = {"data": [], "population": []}
    truth = None if question.population is None else question.population(family)
    for _ in range(runs):
        values = family.sample(n, generator)
        release = question.release(values, family, how)
        value = np.atleast_1d(release.value)
        found["data"].append((value, *map(np.atleast_1d, release.interval()), question.data(values, family)))
        if truth is not None:
            found["population"].append((value, *map(np.atleast_1d, release.population_interval()), truth))
    unit = question.unit(family)
    return {about: Cell.of(kept, unit) for about, kept in found.items() if kept}


def main() -> None:
    options = arguments()
    sizes, epsilons = ((1000,), (1.0,)) if options.quick else ((10**3, 10**5), (0.1, 1.0))
    tasks = [
        (name, kind, n, epsilon, options.runs, options.share, options.nulls)
        for name in options.only or questions(0)
        for n in sizes
        for epsilon in epsilons
        for kind in FAMILIES
    ]
    rows: dict[str, list[tuple[str, ...]]] = {}
    with ProcessPoolExecutor(options.jobs) as pool:
        for task, cells in zip(tasks, pool.map(measure, tasks), strict=True):
            for about, cell in cells.items():
                least, ratio = float(cell.covered.min()), cell.ratio
                judged = verdict(least >= GOAL_COVERAGE and ratio <= GOAL_RATIO, short=options.quick)
                row = (f"{task[1]}, n = {task[2]:,}, epsilon = {task[3]:g}", f"{least:.1%}", f"{ratio:.2f}")
                rows.setdefault(f"{task[0]}, {about}", []).append((*row, judged))
    for title, lines in rows.items():
        show(title, ("data", "least coverage", "width / best", "goals 93 %, 1.5"), lines)
    finish()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few runs of small data, not judged")
    parser.add_argument("--runs", type=int, help="releases of each cell")
    parser.add_argument("--share", default="auto", help="interval_share of means and quantiles")
    parser.add_argument(
        "--nulls", default="lower", help="rule for nulls; drop makes the number of values private"
    )
    parser.add_argument("--only", nargs="*", help="names of statistics")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    options.share = options.share if options.share == "auto" else float(options.share)
    options.runs = options.runs or (40 if options.quick else 2000)
    return options


if __name__ == "__main__":
    main()
