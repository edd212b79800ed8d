"""Many draws of one private median on one data set, beside the law that they come from."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.data.admission import admit
from sfumato.grid import Floats
from sfumato.lab.figure import Statement
from sfumato.lab.judging import STANDARD_ERRORS
from sfumato.lab.published_quantile import Cells, cells, sample_quantile
from sfumato.laws import SeededBits
from sfumato.privacy import PureDP
from sfumato.quantile_methods import Quantiles, Single

MEDIAN = Fraction(1, 2)
WORDS, NUMBERS = ("part", "name"), ("start", "end", "exact", "mean", "se", "sets")
BIN, DENSITY, ROOT, LEVEL, CENTER, COUNT = (
    "share of the draws in a bin",
    "density of the law",
    "root mean squared error",
    "p-value of the fit (Kolmogorov-Smirnov)",
    "sample median",
    "number of draws",
)
# What four standard errors leave of a normal law: the level of tests that the sources do not set.
FOUR_ERRORS = math.erfc(STANDARD_ERRORS / math.sqrt(2))


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws on one data set, their law, and the sample median.

    `step` is the distance of the points of a law on a grid, each of which has the cell around it to itself;
    0 for a law with a density.
    """

    law: Cells
    step: float
    draws: Floats
    center: float

    def below(self, places: Sequence[float] | Floats) -> Floats:
        """The chance of a draw below some places; on a grid, of points that are below."""
        found: Floats = self.law.below(np.asarray(places, dtype=np.float64))[0]
        return found

    def squared(self, center: float) -> float:
        """The mean squared distance from a centre, exactly."""
        # Spread over its cell, a point would be farther by the variance of a uniform law.
        return float(self.law.squared(np.array([center]))[0]) - self.step**2 / 12

    def snapped(self, places: Floats) -> Floats:
        """The nearest places that no cell of a point is cut by."""
        if not self.step:
            return places
        first = self.law.edges[0, 0]
        return np.asarray(first + self.step * np.round((places - first) / self.step))

    def level(self) -> float:
        """The p-value of the largest distance of the draws from the law (Kolmogorov-Smirnov)."""
        from scipy.stats import kstwo

        places, count = np.unique(self.draws), len(self.draws)
        ordered = np.sort(self.draws)
        before = np.searchsorted(ordered, places, side="left") / count
        upto = np.searchsorted(ordered, places, side="right") / count
        half = self.step / 2
        gaps = np.abs(self.below(places - half) - before), np.abs(self.below(places + half) - upto)
        distance = float(max(gaps[0].max(), gaps[1].max()))
        return float(kstwo.sf(distance, count))


def by_density(
    values: Floats, epsilon: float, bounds: tuple[float, float], size: int, rng: np.random.Generator
) -> Draws:
    """The published median: draws from a density with the weight exp(-epsilon |i - n/2|)."""
    law = cells(values[None], 0.5, epsilon, bounds)
    return Draws(law, 0.0, law.draw(rng, size)[0], float(sample_quantile(values[None], 0.5)[0]))


def asked(epsilon: Any, bounds: tuple[Any, Any], rows: int, step: Any = None) -> Quantiles:
    """The median of sfumato at a cost that is declared if records are replaced."""
    return Quantiles(
        probs=(MEDIAN,),
        method=Single(),
        budget=PureDP(epsilon),
        bounds=bounds,
        step=step,
        neighbours="substitution",
        rows=rows,
        scalar=True,
        verify=0,
    )


def by_query(
    values: Floats, epsilon: Any, bounds: tuple[Any, Any], size: int, seed: int, step: Any = None
) -> Draws:
    """The median that sfumato releases if records are replaced: exact draws from its points."""
    query = asked(epsilon, bounds, len(values), step)
    law: Any = query.law(query.look(admit(values)))
    lengths, _, masses = law.nodes[0].law.runs
    width, bits = float(query.facts.grid.step), SeededBits(seed)
    first = _number(query.value((0,))) - width / 2
    ends = first + width * np.concatenate([[0], np.cumsum(lengths)])
    kept = lengths > 0
    edges = np.concatenate([ends[:1], ends[1:][kept]])
    ranks = np.zeros(int(kept.sum()))
    draws = np.array([_number(query.value(law.sample(bits))) for _ in range(size)])
    center = float(sample_quantile(values[None], 0.5)[0])
    return Draws(Cells(edges[None], masses[kept][None], ranks), width, draws, center)


def _number(value: Any) -> float:
    return float(value)


def record(part: str, name: str, **numbers: float | int | None) -> dict[str, Any]:
    """One row of the table."""
    return {**dict.fromkeys(NUMBERS), "part": part, "name": name, **numbers}


def table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """The rows as a frame."""
    import polars as pl

    schema = {**dict.fromkeys(WORDS, pl.String), **dict.fromkeys(NUMBERS, pl.Float64)}
    return pl.DataFrame(list(rows), schema=schema)


def histogram_rows(
    drawn: Draws, window: tuple[float, float], bins: int, name: str = "draws"
) -> list[dict[str, Any]]:
    """Shares of the draws in equal bins beside their probabilities, and the density by cells."""
    places = drawn.snapped(np.linspace(*window, bins + 1))
    chances = np.diff(drawn.below(places))
    shares = np.histogram(drawn.draws, places)[0] / len(drawn.draws)
    errors = np.sqrt(chances * (1 - chances) / len(drawn.draws))
    columns = zip(places[:-1], places[1:], chances, shares, errors, strict=True)
    rows = [record(BIN, name, start=a, end=b, exact=p, mean=q, se=e) for a, b, p, q, e in columns]
    edges, heights = drawn.law.edges[0], drawn.law.heights[0]
    seen = (edges[:-1] < places[-1]) & (edges[1:] > places[0]) & (np.diff(edges) > 0)
    lows, highs = np.maximum(edges[:-1], places[0])[seen], np.minimum(edges[1:], places[-1])[seen]
    heights_seen = zip(lows, highs, heights[seen], strict=True)
    return rows + [record(DENSITY, name, start=a, end=b, exact=h) for a, b, h in heights_seen]


def risk_rows(drawn: Draws, name: str = "draws") -> list[dict[str, Any]]:
    """The root mean squared error about the sample median, from the law and from the draws, and the fit."""
    off = (drawn.draws - drawn.center) ** 2
    root = math.sqrt(float(off.mean()))
    error = float(off.std(ddof=1)) / math.sqrt(len(off)) / (2 * root)
    exact = math.sqrt(drawn.squared(drawn.center))
    return [
        record(ROOT, name, exact=exact, mean=root, se=error),
        record(LEVEL, name, mean=drawn.level()),
        record(CENTER, name, mean=drawn.center),
        record(COUNT, name, mean=len(drawn.draws)),
    ]


def average_row(name: str, rows: Floats, rate: float, bounds: tuple[float, float]) -> dict[str, Any]:
    """The root of the exact mean squared error about the sample median, averaged over data sets."""
    squared = cells(rows, 0.5, rate, bounds).squared(sample_quantile(rows, 0.5))
    root = math.sqrt(float(squared.mean()))
    error = float(squared.std(ddof=1)) / math.sqrt(len(squared)) / (2 * root)
    return record(ROOT, name, exact=root, se=error, sets=len(rows))


def one(frame: Any, part: str, name: str) -> dict[str, Any]:
    """The one row of a part and a name."""
    import polars as pl

    row: dict[str, Any] = frame.filter((pl.col("part") == part) & (pl.col("name") == name)).row(0, named=True)
    return row


def fits(frame: Any, name: str, level: float = FOUR_ERRORS) -> Statement:
    """That the draws pass the test of Kolmogorov and Smirnov against their law."""
    found, count = one(frame, LEVEL, name)["mean"], one(frame, COUNT, name)["mean"]
    words = (
        f"{count:.0f} draws fit their law: the Kolmogorov-Smirnov test has p = {found:.2g}, above {level:.2g}"
    )
    return Statement(words, found > level)


def bars_and_steps(frame: Any, name: str, curve: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The draws as bars, per unit of value, and the density of their law as steps."""
    import polars as pl

    mine = frame.filter(pl.col("name") == name)
    bars = [
        {"start": row["start"], "end": row["end"], "value": row["mean"] / (row["end"] - row["start"])}
        for row in mine.filter(pl.col("part") == BIN).iter_rows(named=True)
    ]
    steps = [
        {"curve": curve, "kind": "exact", "x": row[end], "y": row["exact"]}
        for row in mine.filter(pl.col("part") == DENSITY).iter_rows(named=True)
        for end in ("start", "end")
    ]
    return bars, steps
