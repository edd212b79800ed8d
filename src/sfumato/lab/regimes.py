"""Which quantile method is the most accurate where: rank errors over data, sizes, orders and budgets."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.grid import Floats
from sfumato.lab import published_several as published
from sfumato.lab.asked_trials import AskedSubject
from sfumato.lab.datasets import Source, lognormal, normal, poisson, uniform
from sfumato.lab.figure import Effort, Mode
from sfumato.lab.judging import STANDARD_ERRORS
from sfumato.lab.own import Own, with_own
from sfumato.lab.runs import run
from sfumato.lab.several_risks import FLAT, Orders, asked_for, orders, without_data
from sfumato.lab.trials import Randomness
from sfumato.privacy import PureDP
from sfumato.quantile_methods import Quantiles

Row = Mapping[str, Any]

# A tight domain, two that are wider than their data, and integers.
SOURCES: dict[str, Source] = {
    "uniform": uniform(),
    "normal": normal(0, 1, (-10, 10)),
    "lognormal": lognormal(0, 1, (0, 1000)),
    "ties": poisson(20, (0, 100)),
}
METHODS = ("independent", "joint", "recursive", "inverse_sensitivity", "histogram")
EPSILONS = (0.1, 1.0)
SIZES, COUNTS = (1_000, 10_000, 100_000), (1, 3, 9, 99)
# So fine that the grid is a line. That which small budgets get by themselves is coarse on wide domains.
POINTS = 2**30
# The script's JointExp sums over all pairs of cells.
PUBLISHED_SIZES, PUBLISHED_COUNTS = (100, 400), (1, 3, 9)
PUBLISHED_METHODS = ("independent", "joint", "recursive")
AUTO = "auto"


@dataclass(frozen=True)
class Place:
    """A kind of data, its size, how many orders and the budget; and how much is drawn there."""

    data: str
    n: int
    count: int
    epsilon: float
    sets: int
    repeats: int

    @property
    def orders(self) -> Orders:
        """The orders that are asked for."""
        return orders(self.count)

    def query(self, method: str) -> Quantiles:
        """The query by a method, with the cost declared if a record is replaced."""
        low, high = SOURCES[self.data].bounds
        ties = self.data == "ties"
        return Quantiles(
            probs=self.orders,
            method=method,
            budget=PureDP(self.epsilon),
            bounds=(low, high),
            neighbours="substitution",
            step=1 if ties else (Fraction(high) - Fraction(low)) / POINTS,
            on_points=ties,
            verify=0,
        )


def places(mode: Mode, effort: Effort) -> Iterator[Place]:
    """Where errors are measured; with little effort not where it takes long, or tells little more."""
    sizes, counts = (SIZES, COUNTS) if mode == "corrected" else (PUBLISHED_SIZES, PUBLISHED_COUNTS)
    kinds = SOURCES if mode == "corrected" else ("uniform", "normal", "lognormal")
    for data, n, count, epsilon in itertools.product(kinds, sizes, counts, EPSILONS):
        long = n > 10_000 or count == 3 or (count == 99 and (n > 1_000 or epsilon < 1))
        if effort.share < 1 and long:
            continue
        sets, repeats = (12, 10) if count < 99 else (4, 6)
        if n > 10_000:
            sets //= 2
        yield Place(data, n, count, epsilon, effort.draws(sets, least=2), effort.draws(repeats, least=4))


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """The mean rank error of each method at each place, one row each."""
    import polars as pl

    rows: list[dict[str, Any]] = []
    for place in places(mode, effort):
        rows += _at(place, mode, effort, own)
    numbers = dict.fromkeys(("exact", "exact_se", "mean", "se", "noise_se"), pl.Float64)
    return pl.DataFrame(rows, schema_overrides=numbers)


@dataclass(frozen=True)
class Cell:
    """What was measured at one place, by method."""

    data: str
    n: int
    count: int
    epsilon: float
    by_method: Mapping[str, Row]

    @property
    def compared(self) -> dict[str, Row]:
        """The methods that are compared by name: without `auto`, and without draws that know no data."""
        return {name: row for name, row in self.by_method.items() if name in METHODS}

    @property
    def best(self) -> str:
        """The method with the least mean error."""
        return min(self.compared, key=lambda name: float(self.compared[name]["mean"]))

    @property
    def entered(self) -> dict[str, Row]:
        """These methods, and those of a reader's own."""
        return {name: row for name, row in self.by_method.items() if name not in (AUTO, FLAT)}

    @property
    def least(self) -> Row:
        """Its row."""
        return self.compared[self.best]

    @property
    def informative(self) -> bool:
        """Whether the best answers are twice as good as sorted numbers that know nothing of the data."""
        return bool(self.least["mean"] < self.by_method[FLAT]["mean"] / 2)

    @property
    def telling(self) -> bool:
        """Whether there is something to tell apart: informative, and not right already."""
        return self.informative and bool(self.least["mean"] >= 1)

    @property
    def exponent(self) -> float:
        """g = ε n / (4 (m + 1)): what a joint draw has for a gap between two orders."""
        return self.epsilon * self.n / (4 * (self.count + 1))

    @property
    def joint_by_rule(self) -> bool:
        """Whether the rule says a joint draw: g >= 3 log(m + 1)."""
        return self.exponent >= 3 * math.log(self.count + 1)

    def near(self, name: str, other: str) -> bool:
        """Whether one error is at most another but for 15 %, half a rank and 4 standard errors."""
        one, two = self.by_method[name], self.by_method[other]
        room = STANDARD_ERRORS * math.hypot(one["noise_se"], two["noise_se"]) + 0.5
        return bool(one["mean"] <= 1.15 * two["mean"] + room)

    @property
    def alike(self) -> bool:
        """Whether three or more methods are as good as the best."""
        return sum(self.near(name, self.best) for name in self.compared) >= 3


def cells(table: Any) -> list[Cell]:
    """The places of a frame."""
    found: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in table.iter_rows(named=True):
        found.setdefault((row["data"], row["n"], row["orders"], row["epsilon"]), {})[row["method"]] = row
    return [
        Cell(data, n, count, epsilon, by_method) for (data, n, count, epsilon), by_method in found.items()
    ]


def _at(place: Place, mode: Mode, effort: Effort, own: Mapping[str, Any]) -> list[dict[str, Any]]:
    source = SOURCES[place.data]
    answered = {}
    subjects: dict[str, Any]
    if mode == "published":
        subjects = {name: _own(scaled, place, mechanism=name) for name in PUBLISHED_METHODS}
    else:
        subjects = {name: place.query(name) for name in METHODS if name != "histogram"}
        # Its law can be listed, which takes longer than to draw from it.
        subjects["histogram"] = _own(drawn, place, query=place.query("histogram"))
        chosen = _chosen(place)
        answered[AUTO] = chosen
        if chosen not in subjects and chosen != "single":
            subjects[AUTO] = place.query(AUTO)
    subjects[FLAT] = without_data(place.orders)
    frame = run(
        with_own(subjects, asked_for(own, place.orders)),
        data=source,
        sweep={"n": [place.n], "epsilon": [place.epsilon]},
        sets=place.sets,
        repeats=place.repeats,
        risks=("rank",),
        seed=effort.seed,
        jobs=effort.jobs,
        cache=effort.cache,
    )
    found = {row["subject"]: row for row in frame.iter_rows(named=True)}
    if AUTO in answered and AUTO not in found:
        # One order by the exponential mechanism is the same draw by any name.
        found[AUTO] = found["independent" if answered[AUTO] == "single" else answered[AUTO]]
    kept = ("exact", "exact_se", "mean", "se", "noise_se", "sets", "repeats")
    told = {"data": place.data, "n": place.n, "orders": place.count, "epsilon": place.epsilon}
    return [
        {**told, "method": name, "answered by": answered.get(name, name), **{key: row[key] for key in kept}}
        for name, row in found.items()
    ]


def _own(function: Any, place: Place, **settings: Any) -> Own:
    told = {"probs": [float(p) for p in place.orders], "bounds": SOURCES[place.data].bounds, **settings}
    return Own(function=function, probs=place.orders, settings=told, batched=True)


def _chosen(place: Place) -> str:
    """The name of the method that `auto` takes there, by public facts."""
    values = SOURCES[place.data].draw(1, place.n, 0)
    query = AskedSubject(place.query(AUTO)).trial(values, SOURCES[place.data].bounds).query
    return str(query.chosen.name)


def drawn(
    rows: Floats, size: int, rng: np.random.Generator, *, probs: Any, bounds: tuple[float, float], query: Any
) -> Floats:
    """Draws by a query, without the exact values."""
    random = Randomness.of(int(rng.integers(2**62)))
    return AskedSubject(query).trial(rows, bounds).draw(size, random)


def scaled(
    rows: Floats,
    size: int,
    rng: np.random.Generator,
    *,
    epsilon: float,
    probs: Sequence[float],
    bounds: tuple[float, float],
    mechanism: str,
) -> Floats:
    """A mechanism of the script of [A24], on data that are moved to [0, 1] and back."""
    low, high = bounds
    unit = np.clip((rows - low) / (high - low), 0, 1)
    return low + (high - low) * np.asarray(
        getattr(published, mechanism)(unit, size, rng, epsilon=epsilon, probs=probs)
    )
