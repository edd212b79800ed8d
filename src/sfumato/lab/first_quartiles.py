"""The squared risk of a private first quartile: the exponential mechanism beside Laplace noise."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.grid import Floats
from sfumato.lab import datasets
from sfumato.lab.datasets import Source
from sfumato.lab.figure import Effort, Mode, Statement
from sfumato.lab.judging import all_agree, equals, same_average
from sfumato.lab.measured import line_and_point
from sfumato.lab.own import Own, OwnTrial, with_own
from sfumato.lab.published_quantile import cells, drawn, sample_quantile
from sfumato.lab.runs import run
from sfumato.lab.trials import Expected, Risk
from sfumato.privacy import PureDP
from sfumato.quantile_methods import Quantiles, Single

ORDER = Fraction(1, 4)
QEXP, LAPLACE = "QExp", "Laplace"
INTEGERS = "QExp, whole numbers"
# Simulated points of a curve that are drawn; all are in the table.
POINTS = 10
# Errors that must be expected before their number is judged by its standard error.
FEW = 50


@dataclass(frozen=True, kw_only=True)
class Known(Own):
    """A mechanism for one quantile in the conventions of the source, whose exact risk is known.

    `expected(risk, rows, truth, **settings)` is that risk for each data set, or None.
    """

    expected: Callable[..., Expected | None]

    def trial(self, rows: Floats, bounds: tuple[float, float] | None) -> "KnownTrial":
        """This mechanism on the data sets that are the rows."""
        return KnownTrial(replace(self, settings={"bounds": bounds, **self.settings}), rows)


@dataclass(frozen=True, eq=False)
class KnownTrial(OwnTrial):
    """Such a mechanism on data sets."""

    def truth(self) -> Floats:
        """The sample quantile at p(n + 1)."""
        (order,) = self.own.probs or ()
        return sample_quantile(self.rows, float(order))[:, None]

    def exact(self, risk: Risk, truth: Floats) -> Expected | None:
        """The expected loss on each data set."""
        own: Any = self.own
        found: Expected | None = own.expected(risk, self.rows, truth[:, 0], **own.settings)
        return found


def density_draws(
    rows: Floats, size: int, epsilon: float, bounds: tuple[float, float], rng: np.random.Generator
) -> Floats:
    """The published first quartile, with the weight exp(-epsilon |i - n/4|)."""
    return drawn(rows, float(ORDER), epsilon, bounds, rng, size)


def density_risk(
    risk: Risk, rows: Floats, truth: Floats, epsilon: float, bounds: tuple[float, float]
) -> Expected | None:
    """Its exact risk, from the density."""
    law = cells(rows, float(ORDER), epsilon, bounds)
    square = law.squared(truth)
    if risk == "squared":
        return Expected(square, law.fourth(truth) - square**2)
    mean = law.absolute(truth)
    return Expected(mean, square - mean**2) if risk in ("absolute", "sup") else None


def noisy_draws(
    rows: Floats, size: int, epsilon: float, bounds: tuple[float, float], rng: np.random.Generator
) -> Floats:
    """The sample quartile with Laplace noise for the whole range: one record can move it from end to end."""
    noise = rng.laplace(size=(len(rows), size))
    return sample_quantile(rows, float(ORDER))[:, None] + (bounds[1] - bounds[0]) / epsilon * noise


def noisy_risk(
    risk: Risk, rows: Floats, truth: Floats, epsilon: float, bounds: tuple[float, float]
) -> Expected | None:
    """The moments of the noise: with the scale b, 2b² and 24b⁴, or b and 2b²."""
    scale = np.full(len(rows), (bounds[1] - bounds[0]) / epsilon)
    if risk == "squared":
        return Expected(2 * scale**2, 20 * scale**4)
    return Expected(scale, scale**2) if risk in ("absolute", "sup") else None


def subjects(mode: Mode, width: int, *, whole: bool = False) -> dict[str, Any]:
    """Both mechanisms on values between 0 and the width; QExp is that of sfumato in the corrected mode."""
    laplace = Known(function=noisy_draws, expected=noisy_risk, probs=(ORDER,), batched=True)
    if mode == "published":
        qexp: Any = Known(function=density_draws, expected=density_risk, probs=(ORDER,), batched=True)
    else:
        qexp = Quantiles(
            probs=(ORDER,),
            method=Single(),
            budget=PureDP(1),
            bounds=(0, width),
            step=1 if whole else None,
            verify=0,
            neighbours="substitution",
        )
    return {INTEGERS: qexp} if whole else {QEXP: qexp, LAPLACE: laplace}


def source(width: int, *, whole: bool = False) -> Source:
    """Uniform values between 0 and the width, or the whole numbers below it."""
    return datasets.integers(0, width - 1, bounds=(0, width)) if whole else datasets.uniform(0, width)


def risks(
    mode: Mode,
    effort: Effort,
    own: Mapping[str, Any],
    *,
    width: int,
    sizes: Sequence[int],
    epsilons: Sequence[float],
    sets: int,
    repeats: int,
    salt: int = 0,
    whole: bool = False,
) -> Any:
    """Squared risks for all sizes and budgets on values between 0 and the width, as a frame."""
    import polars as pl

    with_own(dict.fromkeys((QEXP, LAPLACE, INTEGERS)), own)
    frame = run(
        {**subjects(mode, width, whole=whole), **({} if whole else own)},
        data=source(width, whole=whole),
        sweep={"n": list(sizes), "epsilon": list(epsilons)},
        sets=sets,
        repeats=repeats,
        seed=effort.seed + salt,
        jobs=effort.jobs,
        cache=effort.cache,
    )
    return frame.select(
        pl.col("subject").alias("curve"),
        pl.col("n").cast(pl.Int64),
        pl.lit(width, dtype=pl.Int64).alias("width"),
        pl.col("epsilon").cast(pl.Float64),
        "exact",
        "exact_se",
        "mean",
        "se",
        "noise_se",
        pl.col("sets").cast(pl.Int64),
        pl.col("repeats").cast(pl.Int64),
    )


def curve(frame: Any, name: str) -> Any:
    """The rows of one curve."""
    import polars as pl

    return frame.filter(pl.col("curve") == name)


def at(frame: Any, name: str, **place: float) -> dict[str, Any]:
    """The row of one curve at one place."""
    import polars as pl

    found = curve(frame, name)
    for column, value in place.items():
        found = found.filter((pl.col(column) - value).abs() < 1e-9)
    row: dict[str, Any] = found.row(0, named=True)
    return row


def simulated(frame: Any) -> tuple[Statement, ...]:
    """That on every curve the simulated risk is within four standard errors of the exact one."""
    import polars as pl

    statements = []
    for name in frame["curve"].unique(maintain_order=True):
        mine = curve(frame, name).drop_nulls(["exact", "noise_se"])
        # Whole numbers are off by one or more: where nearly none is, a standard error tells nothing.
        seen = mine.filter(
            (pl.col("curve") != INTEGERS) | (pl.col("exact") * pl.col("sets") * pl.col("repeats") >= FEW)
        )
        if not mine.is_empty():
            found = (seen[column] for column in ("mean", "exact", "noise_se"))
            statements.append(all_agree(f"squared risk, {name}", *found))
    return tuple(statements)


def laplace_formula(frame: Any) -> Statement:
    """That the risk of Laplace noise is two squared scales at every point."""
    mine = curve(frame, LAPLACE)
    formula = 2 * (mine["width"] / mine["epsilon"]) ** 2
    worst = int(np.argmax(np.abs(mine["exact"].to_numpy() / formula.to_numpy() - 1)))
    words = f"the largest of {len(mine)} differences from 2(Λ/ε)²: the risk of Laplace noise"
    return equals(words, mine["exact"][worst], formula[worst])


def slope(frame: Any, name: str, along: str, least: float = 0) -> tuple[float, float]:
    """The slope of a curve on logarithmic axes from a place on, by least squares, and its standard error."""
    mine = curve(frame, name)
    places, exact, errors = (mine[column].to_numpy() for column in (along, "exact", "exact_se"))
    far = places >= least
    logs = np.log(places[far]) - np.log(places[far]).mean()
    weights = logs / (logs**2).sum()
    error = math.sqrt(float((weights**2 * (errors[far] / exact[far]) ** 2).sum()))
    return float(weights @ np.log(exact[far])), error


def reference(what: str, row: Mapping[str, Any], printed: float, *, digit: float, others: int) -> Statement:
    """That the exact risk of a row is the one in print, which is over so many other data sets."""
    sets, error = row["sets"], row["exact_se"]
    return same_average(what, row["exact"], error, sets=sets, printed=printed, digit=digit, others=others)


def chart_rows(frame: Any, along: str) -> list[dict[str, Any]]:
    """Exact risks as lines, and some of the simulated ones as points, with two standard errors."""
    rows: list[dict[str, Any]] = []
    for name in frame["curve"].unique(maintain_order=True):
        mine = curve(frame, name).sort(along).to_dicts()
        # As far apart on a logarithmic axis as they are many.
        wanted = np.geomspace(mine[0][along], mine[-1][along], POINTS)
        places = np.array([row[along] for row in mine])
        kept = {int(np.argmin(np.abs(np.log(places / place)))) for place in wanted}
        for place, row in enumerate(mine):
            seen = row if place in kept else {**row, "mean": None}
            rows += line_and_point({"curve": name, "x": row[along]}, seen)
    return rows
