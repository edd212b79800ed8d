"""What figures 11 to 13 share: methods for several quantiles on [0, 1], their risks, and statements."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from sfumato.grid import Floats
from sfumato.lab import published_several as published
from sfumato.lab.datasets import Source
from sfumato.lab.figure import Effort, Statement
from sfumato.lab.judging import STANDARD_ERRORS, all_agree
from sfumato.lab.measured import line_and_point
from sfumato.lab.own import Guest, Own
from sfumato.lab.runs import run
from sfumato.lab.trials import Risk
from sfumato.privacy import PureDP
from sfumato.quantile_methods import Quantiles

Orders = tuple[Fraction, ...]
Rows = list[dict[str, Any]]
Exact = Callable[[Floats, Sequence[float], float, Floats], Floats]

# As fine as records in [0, 1] need it for the laws to be those of a line.
STEP = Fraction(1, 2**20)
FLAT = "no data"


def orders(count: int) -> Orders:
    """The orders i / (m + 1).

    >>> [str(order) for order in orders(3)]
    ['1/4', '1/2', '3/4']
    """
    return tuple(Fraction(i, count + 1) for i in range(1, count + 1))


def query(method: str, probs: Orders, epsilon: float = 1) -> Quantiles:
    """sfumato's own: with the declared cost in all, if a record is replaced."""
    return Quantiles(
        probs=probs,
        method=method,
        budget=PureDP(epsilon),
        bounds=(0, 1),
        neighbours="substitution",
        step=STEP,
        verify=0,
    )


def script(function: Callable[..., Any], probs: Orders, *, by_rank: bool = False, **settings: Any) -> Own:
    """A mechanism of the script, measured from its own sample quantiles, or from those of rank ceil(p n)."""
    asked = [float(p) for p in probs]
    aim: dict[str, Any] = {"statistic": partial(published.quantiles, probs=asked)}
    if by_rank:
        aim = {"probs": probs}
    return Own(function=function, settings={"probs": asked, **settings}, batched=True, **aim)


def flat(
    rows: Floats, size: int, rng: np.random.Generator, *, probs: Sequence[float], bounds: tuple[float, float]
) -> Floats:
    """Sorted uniform numbers between the bounds, whatever the data."""
    low, high = bounds
    return low + (high - low) * np.sort(rng.random((len(rows), size, len(probs))), axis=2)


def without_data(probs: Orders) -> Own:
    """What answers look like that know nothing of the data."""
    return Own(function=flat, probs=probs, settings={"probs": [float(p) for p in probs]}, batched=True)


def asked_for(own: Mapping[str, Any], probs: Orders) -> dict[str, Any]:
    """A reader's own mechanisms, for these orders where they can answer them."""
    found: dict[str, Any] = {}
    for name, one in own.items():
        if isinstance(one, Own):
            guest = Guest(**{each.name: getattr(one, each.name) for each in fields(one)})
            known = one.probs is not None
            found[name] = replace(guest, probs=probs).at({"probs": probs}) if known else guest
        elif is_dataclass(one) and any(each.name == "probs" for each in fields(one)):
            found[name] = replace(one, probs=probs)  # type: ignore[type-var]
        else:
            found[name] = one
    return found


def risk_rows(
    subjects: Mapping[str, Any],
    *,
    source: Source,
    n: int,
    epsilons: Sequence[float],
    risk: Risk,
    effort: Effort,
    sets: int,
    repeats: int,
    panel: str,
    count: int,
) -> Rows:
    """Rows of the frame: a risk of every subject at every budget, on the same data sets."""
    frame = run(
        subjects,
        data=source,
        sweep={"n": [n], "epsilon": list(epsilons)},
        sets=sets,
        repeats=repeats,
        risks=(risk,),
        seed=effort.seed,
        jobs=effort.jobs,
        cache=effort.cache,
    )
    kept = ("exact", "mean", "se", "noise_se", "sets", "repeats")
    return [
        {
            "panel": panel,
            "curve": row["subject"],
            "n": n,
            "orders": count,
            "epsilon": float(row["epsilon"]),
            **{name: row[name] for name in kept},
        }
        for row in frame.iter_rows(named=True)
    ]


def with_exact(
    rows: Rows,
    curve: str,
    law: Exact,
    rates: Callable[[float], float],
    source: Source,
    effort: Effort,
    truth: Any,
) -> None:
    """Fill in what the law of a curve gives, on the data sets that were drawn from."""
    for row in rows:
        if row["curve"] == curve and row["exact"] is None:
            data = source.draw(row["sets"], row["n"], effort.seed)
            probs = [float(p) for p in orders(row["orders"])]
            row["exact"] = float(law(data, probs, rates(row["epsilon"]), truth(data, probs)).mean())


def frame(rows: Rows) -> Any:
    """The rows as a Polars frame; one order by recursion is an independent draw, and has its exact value."""
    import polars as pl

    alone = {
        row["panel"]: row["exact"] for row in rows if row["curve"] == "independent" and row["orders"] == 1
    }
    for row in rows:
        if row["curve"] == "recursive" and row["orders"] == 1:
            row["exact"] = alone[row["panel"]]
    numbers = dict.fromkeys(("epsilon", "exact", "mean", "se", "noise_se"), pl.Float64)
    return pl.DataFrame(rows, schema_overrides=numbers)


def curves(table: Any, along: str, names: Mapping[str, str]) -> Rows:
    """Records for a chart: exact lines, and points with bars of two standard errors of their draws."""
    found: Rows = []
    for row in table.iter_rows(named=True):
        place = {"panel": row["panel"], "curve": names.get(row["curve"], row["curve"]), "x": row[along]}
        found += line_and_point(place, row, "noise_se")
    return found


def place(table: Any, **where: Any) -> dict[str, Any]:
    """The one row with these entries."""
    rows = [
        row for row in table.iter_rows(named=True) if all(row[key] == value for key, value in where.items())
    ]
    (row,) = rows
    return dict(row)


def recorded(
    words: str, row: Mapping[str, Any], value: float, unit: float, sets: int, draws: int
) -> Statement:
    """That a mean agrees with a recorded one, whose own standard error is that of as many sets and draws."""
    between = max(row["se"] ** 2 - row["noise_se"] ** 2, 0.0) * row["sets"]
    within = row["noise_se"] ** 2 * row["sets"] * row["repeats"]
    theirs = math.sqrt(between / sets + within / (sets * draws))
    room = STANDARD_ERRORS * math.hypot(row["se"], theirs) + unit / 2
    told = f"{words}: {row['mean']:.4g} ± {row['se']:.2g}; recorded {value:g}, from {sets} data sets"
    return Statement(told, bool(abs(row["mean"] - value) <= room))


def agree_with_laws(table: Any) -> Statement:
    """That simulated means are those of the laws, wherever a law gives one."""
    known = table.drop_nulls("exact")
    return all_agree("risks that a law gives", *(known[name] for name in ("mean", "exact", "noise_se")))


def level(row: Mapping[str, Any]) -> float:
    """What is known best of a risk: the exact value, or the simulated one."""
    return float(row["mean"] if row["exact"] is None else row["exact"])


def all_below(words: str, pairs: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Statement:
    """That one curve is below another, place by place, and by which factors."""
    ratios = [level(upper) / level(lower) for lower, upper in pairs]
    return Statement(f"{words}: by factors of {min(ratios):.3g} to {max(ratios):.3g}", min(ratios) > 1)
