"""How often intervals at 95 % hold, on data that people have: heaps, gaps, constants, skew and few values.

Each cell is one shape of data, number of values, epsilon and relation between neighbours. Data sets are
fixed, several for each cell, because an interval must hold on any of them; what is random is the release.
Population intervals take a fresh sample for each release.
"""

import argparse
import itertools
import math
import os
import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from timing import finish, show, verdict

import sfumato as sf
from sfumato.data.admission import admit
from sfumato.laws import SeededBits
from sfumato.query import raw

GOAL, LEVEL = 0.945, 0.95
BOUNDS = (0.0, 100.0)
SIZES = (30, 100, 1_000, 100_000)
EPSILONS = (0.1, 1.0, 10.0)
RELATIONS = ("substitution", "add-remove")
# How many quantiles are asked for at once.
NUMBERS = (1, 3, 9, 49)
MANY, FEW, QUICK, DATA_SETS = 2_000, 300, 100, 3
# Statistics that take less than a millisecond.
CHEAP = ("count", "proportion", "mean", "histogram")

Values = np.ndarray


def heaps(count: int, n: int, generator: np.random.Generator) -> Values:
    """Values at a few points: round salaries."""
    places = np.sort(generator.choice(np.arange(1, 20), count, replace=False)) * 5.0
    return generator.choice(places, n, p=generator.dirichlet(np.full(count, 3.0)))


def zeros(n: int, generator: np.random.Generator) -> Values:
    return np.where(generator.random(n) < 0.7, 0.0, generator.exponential(10, n))


def gap(n: int, generator: np.random.Generator) -> Values:
    return np.where(np.arange(n) % 2, generator.random(n) * 10, 90 + generator.random(n) * 10)


SHAPES: dict[str, Callable[[int, np.random.Generator], Values]] = {
    "constant": lambda n, generator: np.full(n, 35.0),
    "all at the lower bound": lambda n, generator: np.full(n, BOUNDS[0]),
    "all at the upper bound": lambda n, generator: np.full(n, BOUNDS[1]),
    **{f"{count} heap{'s' * (count > 1)}": partial(heaps, count) for count in range(1, 7)},
    "70 % zeros": zeros,
    "Pareto": lambda n, generator: 1 + generator.pareto(1.5, n),
    "two ranges with a gap": gap,
    "discrete uniform": lambda n, generator: generator.integers(0, 101, n).astype(float),
    "lognormal": lambda n, generator: np.exp(generator.normal(2.5, 0.8, n)),
}


@dataclass(frozen=True)
class Cell:
    """One combination that is measured."""

    statistic: str
    shape: str
    n: int
    epsilon: float
    relation: str
    number: int = 0

    def data(self, seed: int) -> Values:
        """A data set, clamped to the bounds; the same for the same seed."""
        return np.clip(SHAPES[self.shape](self.n, np.random.default_rng(seed)), *BOUNDS)

    def query(self, **options: Any) -> Any:
        """The question, with the public facts filled in."""
        public = {"rows": self.n} if self.relation == "substitution" else {}
        about = {"budget": sf.PureDP(self.epsilon), "neighbours": self.relation, **public}
        return STATISTICS[self.statistic].query(self, {**about, **options})


@dataclass(frozen=True)
class Statistic:
    """How a statistic is asked for, and its values in the data."""

    query: Callable[[Cell, dict[str, Any]], Any]
    truth: Callable[[Values, Cell], Values]


def orders(number: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(i, number + 1) for i in range(1, number + 1))


def order_statistics(values: Values, cell: Cell) -> Values:
    ordered = np.sort(values)
    return ordered[[max(math.ceil(q * len(values)), 1) - 1 for q in orders(cell.number)]]


def quantiles(cell: Cell, facts: dict[str, Any]) -> sf.Quantiles:
    hint = {} if cell.relation == "substitution" else {"n_hint": cell.n}
    return sf.Quantiles(
        probs=orders(cell.number), bounds=BOUNDS, verify="auto", nulls="lower", **hint, **facts
    )


LOW = (0.0, 20.0)
STATISTICS = {
    "quantiles": Statistic(quantiles, order_statistics),
    "count": Statistic(
        lambda cell, facts: sf.Count(between=LOW, nulls="lower", **facts),
        lambda values, cell: np.array([(values <= LOW[1]).sum()]),
    ),
    "proportion": Statistic(
        lambda cell, facts: sf.Proportion(between=LOW, nulls="lower", **facts),
        lambda values, cell: np.array([(values <= LOW[1]).mean()]),
    ),
    "sum": Statistic(
        lambda cell, facts: sf.Sum(bounds=BOUNDS, nulls="lower", **facts),
        lambda values, cell: np.array([values.sum()]),
    ),
    "mean": Statistic(
        lambda cell, facts: sf.Mean(bounds=BOUNDS, nulls="lower", **facts),
        lambda values, cell: np.array([values.mean()]),
    ),
    "variance": Statistic(
        lambda cell, facts: sf.Variance(bounds=BOUNDS, nulls="lower", **facts),
        lambda values, cell: np.array([values.var()]),
    ),
    "histogram": Statistic(
        lambda cell, facts: sf.Histogram(bins=10, bounds=BOUNDS, nulls="lower", **facts),
        lambda values, cell: np.histogram(values, 10, range=BOUNDS)[0],
    ),
}


# What the population's value is known for.
OF_POPULATIONS = ("quantiles", "proportion", "mean")
POPULATION = 20_001


@dataclass(frozen=True)
class Measured:
    """How often the number that was covered least often was covered, in how many runs, and the mean width."""

    covered: float
    runs: int
    width: float

    @property
    def missed(self) -> bool:
        """Whether that is below the goal by more than two standard errors."""
        return self.covered < GOAL - 2 * math.sqrt(GOAL * (1 - GOAL) / self.runs)


def counted(found: list[tuple[Any, Any, Values]]) -> Measured:
    low, high, truth = (
        np.array([np.atleast_1d(part) for part in each], float) for each in zip(*found, strict=True)
    )
    # Ends are rounded to float64.
    slack = 1e-9 * np.maximum(np.abs(truth), 1.0)
    covered = (low - slack <= truth) & (truth <= high + slack)
    return Measured(float(covered.mean(axis=0).min()), len(covered), float((high - low).mean()))


def of_data(cell: Cell, runs: int, seed: int) -> Measured:
    """Intervals of the data's values, on some fixed data sets."""
    query, bits, found = cell.query(), SeededBits(seed), []
    for number in range(DATA_SETS):
        values = cell.data(seed + number)
        law, truth = query.law(query.look(admit(values))), STATISTICS[cell.statistic].truth(values, cell)
        for _ in range(-(-runs // DATA_SETS)):
            found.append((*query.interval(raw(law.sample(bits)), LEVEL), truth))
    return counted(found)


def of_population(cell: Cell, runs: int, seed: int) -> Measured:
    """Intervals of a population's values, from a fresh sample for each release."""
    query, bits, found = cell.query(), SeededBits(seed), []
    generator = np.random.default_rng(seed)
    population = Cell(cell.statistic, cell.shape, POPULATION, cell.epsilon, cell.relation, cell.number).data(
        seed
    )
    truth = STATISTICS[cell.statistic].truth(population, cell)
    for _ in range(runs):
        values = generator.choice(population, cell.n)
        outcome = raw(query.law(query.look(admit(values))).sample(bits))
        found.append((*query.population_interval(outcome, LEVEL), truth))
    return counted(found)


def of_people(cell: Cell, runs: int, seed: int) -> Measured:
    """Intervals where people have up to three rows, all of which count, in groups that are found."""
    bits, found = SeededBits(seed), []
    values = cell.data(seed)
    generator = np.random.default_rng(seed)
    table = {"x": values, "id": np.arange(cell.n) // 3, "group": generator.integers(0, 2, cell.n)}
    schema = {"group": sf.Field(categories=(0, 1))}
    data = sf.Dataset(table, unit="id", rows_per_unit=3, neighbours=cell.relation, schema=schema)
    query = cell.query(column="x", rows=None, neighbours=None, budget=sf.ApproxDP(cell.epsilon, 1e-6))
    asked = sf.Question(query=query, by=["group"], groups=sf.Groups(keys="private"))
    for _ in range(runs):
        session = sf.Session(data, budget=sf.ApproxDP(cell.epsilon, 1e-6), bits=bits)
        for (key,), release in session.answer_all([asked])[0].releases.items():
            inside = values[table["group"] == key]
            found.append((*release.interval(LEVEL), STATISTICS[cell.statistic].truth(inside, cell)))
    return counted(found) if found else Measured(1.0, 1, 0.0)


ABOUT = {"data": of_data, "population": of_population, "people and groups": of_people}


def cells(about: str, *, quick: bool) -> Iterator[Cell]:
    shapes = ("all at the upper bound", "4 heaps", "two ranges with a gap") if quick else SHAPES
    sizes = (1_000,) if quick else SIZES if about == "data" else (100, 1_000)
    epsilons = (1.0,) if quick else EPSILONS
    for shape, n, epsilon, relation in itertools.product(shapes, sizes, epsilons, RELATIONS):
        for statistic in STATISTICS if about != "population" else OF_POPULATIONS:
            numbers = NUMBERS if about == "data" and not quick else (1, 3)
            for number in numbers if statistic == "quantiles" else (0,):
                yield Cell(statistic, shape, n, epsilon, relation, number)


@dataclass(frozen=True)
class Task:
    """A cell to be measured, and what its intervals are about."""

    about: str
    cell: Cell
    quick: bool

    @property
    def runs(self) -> int:
        if self.quick:
            return QUICK
        return MANY if self.about == "data" and self.cell.statistic in CHEAP else FEW

    def measured(self) -> Measured:
        """How often intervals hold; once more, with ten times the runs, where chance may be to blame."""
        found = ABOUT[self.about](self.cell, self.runs, 1)
        return ABOUT[self.about](self.cell, 10 * self.runs, 1_000) if found.missed else found


def main() -> None:
    options = arguments()
    tasks = [
        Task(about, cell, options.quick)
        for about in options.about or ABOUT
        for cell in cells(about, quick=options.quick)
        if not options.only or cell.statistic in options.only
    ]
    if options.cells:
        tasks = random.Random(1).sample(tasks, min(options.cells, len(tasks)))
    # Long ones first, so that no process is left with them at the end.
    tasks.sort(key=lambda task: -task.cell.n * max(task.cell.number, 1))
    least: dict[tuple[str, str], dict[tuple[int, float], Measured]] = {}
    missed = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for done, (task, found) in enumerate(zip(tasks, pool.map(Task.measured, tasks), strict=True), 1):
            kept = least.setdefault((task.about, titled(task.cell)), {})
            place = task.cell.n, task.cell.epsilon
            kept[place] = min(kept.get(place, found), found, key=lambda each: each.covered)
            if found.missed:
                missed.append((task.about, task.cell, found))
            if sys.stderr.isatty():
                print(f"\r{done:,} of {len(tasks):,} cells", end="", file=sys.stderr)
    for about in dict.fromkeys(task.about for task in tasks):
        report(about, {title: each for (of, title), each in sorted(least.items()) if of == about})
    lines = [
        (f"{about}: {titled(cell)}, {cell.shape}", f"{cell.n:,}", f"{cell.epsilon:g}", f"{found.covered:.1%}")
        for about, cell, found in missed
    ]
    if lines:
        show("Cells below the goal", ("cell", "n", "epsilon", "covered"), lines)
    print(f"{len(tasks):,} cells, 95 % intervals, goal {GOAL:.1%}: {verdict(not missed)}")
    finish()


def titled(cell: Cell) -> str:
    asked = f"{cell.number} quantile{'s' * (cell.number > 1)}" if cell.number else cell.statistic
    return f"{asked}, {cell.relation}"


def report(about: str, found: dict[str, dict[tuple[int, float], Measured]]) -> None:
    """The least coverage over the shapes."""
    places = sorted({place for each in found.values() for place in each})
    header = tuple(f"{n:,}; {epsilon:g}" for n, epsilon in places)
    rows = [
        (title, *(f"{100 * each[place].covered:.1f}" if place in each else "" for place in places))
        for title, each in found.items()
    ]
    show(
        f"Least coverage over {len(SHAPES)} shapes, in %, of the {about}, by n and epsilon",
        ("", *header),
        rows,
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few shapes and sizes")
    parser.add_argument("--only", nargs="*", choices=[*STATISTICS], help="names of statistics")
    parser.add_argument("--about", nargs="*", choices=[*ABOUT], help="what intervals are about")
    parser.add_argument(
        "--cells", type=int, help="how many cells to measure, drawn at random; all unless given"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    return parser.parse_args()


if __name__ == "__main__":
    main()
