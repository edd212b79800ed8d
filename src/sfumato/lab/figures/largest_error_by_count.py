"""Figure 13 of [A24]: the sup norm of RecExp and IndExp against the number of quantiles."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from sfumato.grid import Floats
from sfumato.lab import published_several as published
from sfumato.lab import several_exact as exact
from sfumato.lab.datasets import beta
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.measured import LEGEND
from sfumato.lab.published_several import quantiles
from sfumato.lab.risks_by_count import (
    COUNTS,
    FEW,
    FEW_PANEL,
    LARGEST,
    MANY_PANEL,
    MECHANISMS,
    NAMES,
    as_corrected,
    as_published,
    claims,
    plotted,
)
from sfumato.lab.several_risks import (
    Orders,
    Rows,
    agree_with_laws,
    all_below,
    curves,
    frame,
    level,
    place,
    recorded,
    script,
    with_exact,
)
from sfumato.lab.trials import sample_quantiles

PLOTTED, MEANT = "plotted: largest estimate", "meant: largest error"
EACH = "ε each"
# Averages over 6 data sets with 60 draws each. The last row has the script's rates, ε for each quantile.
RECORDED = {
    "recursive": {11: 0.182, 31: 0.204, 91: 0.230},
    "independent": {11: 0.169, 31: 0.168, 91: 0.149},
    EACH: {11: 0.037, 31: 0.062, 91: 0.083},
}


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """The largest error for each number of quantiles, and the largest estimate that the script has for it."""
    source = beta(2, 2)
    rows: Rows = []
    if mode == "corrected":
        rows += as_corrected(source=source, risk="sup", effort=effort, own=own, beside=_each)
        with_exact(rows, EACH, exact.independent_sup, float, source, effort, sample_quantiles)
        return frame(rows)
    fill = partial(with_exact, rates=float, source=source, effort=effort, truth=quantiles)
    estimates = as_published(_largest, source=source, risk="absolute", effort=effort, panel=PLOTTED)
    fill(estimates, "independent", _largest_exact)
    errors = as_published(_script, source=source, risk="sup", effort=effort, panel=MEANT, own=own)
    fill(errors, "independent", exact.independent_sup)
    return frame(estimates + errors)


def _largest(probs: Orders) -> dict[str, Any]:
    return {mechanism: plotted(LARGEST, probs, mechanism) for mechanism in NAMES}


def _script(probs: Orders) -> dict[str, Any]:
    return {name: script(function, probs) for name, function in MECHANISMS.items()}


def _each(probs: Orders) -> dict[str, Any]:
    return {EACH: script(published.independent, probs, by_rank=True)}


def _largest_exact(rows: Floats, probs: Any, rate: float, truth: Floats) -> Floats:
    return exact.independent_largest(rows, probs, rate)


def chart(table: Any, mode: Mode) -> Any:
    """Largest error, or estimate, against the number of quantiles, in two panels."""
    from sfumato.charts import comparison

    under = {
        "published": f"{FEW} Beta(2, 2) records; IndExp has ε = 1 for each quantile",
        "corrected": "Beta(2, 2) records; ε = 1 in all; ε each: IndExp with ε = 1 for each quantile",
    }
    return comparison(
        curves(table, "orders", NAMES),
        title="Largest error against the number of quantiles"
        if mode == "corrected"
        else "A largest estimate is not a largest error",
        subtitle=[under[mode], LEGEND],
        along="number of quantiles m",
        unit="largest error" if mode == "corrected" else "largest estimate, or error",
        zero=True,
        shared=mode == "published",
        panels=[FEW_PANEL, MANY_PANEL] if mode == "corrected" else [PLOTTED, MEANT],
    )


def check(table: Any, mode: Mode) -> tuple[Statement, ...]:
    """What the script's curves show, the order of the proper ones, and the recorded averages."""
    at = partial(place, table)
    found = [agree_with_laws(table)]
    if mode == "corrected":
        found += claims(table)
        for curve, by_count in RECORDED.items():
            for count, value in by_count.items():
                row = at(panel=FEW_PANEL, curve=curve, orders=count)
                words = f"{NAMES.get(curve, curve)}, {FEW_PANEL}, {count} quantiles"
                found.append(recorded(words, row, value, 0.001, 6, 60))
        return tuple(found)
    for curve, name in NAMES.items():
        first, end = (
            level(at(panel=PLOTTED, curve=curve, orders=count)) for count in (COUNTS[0], COUNTS[-1])
        )
        top = max(level(at(panel=PLOTTED, curve=curve, orders=count)) for count in COUNTS)
        told = (
            f"{name}'s plotted curve rises towards 1 from below: {first:.3f} for 1 quantile, {end:.3f} for 91"
        )
        found.append(Statement(told, 0.4 < first < 0.6 and end > 0.8 and top < 1))
    for panel, words, lower, upper in (
        (
            PLOTTED,
            "RecExp's largest estimate is below IndExp's for 31 to 91 quantiles",
            "recursive",
            "independent",
        ),
        (MEANT, "yet its largest error is above", "independent", "recursive"),
    ):
        pairs = [
            (at(panel=panel, curve=lower, orders=count), at(panel=panel, curve=upper, orders=count))
            for count in COUNTS
            if count >= 31
        ]
        found.append(all_below(words, pairs))
    return tuple(found)


FIGURE = Figure(
    number="13",
    name="largest-error-by-count",
    source="A24",
    title="Many quantiles: the largest error of RecExp and IndExp",
    captions={
        "published": "The script plots the largest estimate in place of the largest error. Both curves rise "
        "towards 1, the end of the data, and their order says nothing: RecExp's is below, although its "
        "largest error, in the right panel, is far above IndExp's, which has ε for each quantile.",
        "corrected": "With one ε in all RecExp is above IndExp at n = 100 for 31 quantiles and more, and "
        "below it at n = 10,000 from 9 quantiles on. The lowest curve gives ε to each quantile by the "
        "script's rates, which cost 2 m ε in all.",
    },
    numbers=numbers,
    chart=chart,
    check=check,
    errata=("E23", "E24"),
    compares=True,
)
