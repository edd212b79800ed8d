"""Figure 12 of [A24]: the squared risk of RecExp and IndExp against the number of quantiles."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from sfumato.grid import Floats
from sfumato.lab import several_exact as exact
from sfumato.lab.datasets import Source, beta, uniform
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.measured import LEGEND
from sfumato.lab.published_several import quantiles
from sfumato.lab.risks_by_count import (
    COUNTS,
    FEW,
    FEW_PANEL,
    LAST,
    MANY_PANEL,
    NAMES,
    SUMMED,
    as_corrected,
    as_published,
    claims,
    plotted,
)
from sfumato.lab.several_risks import (
    FLAT,
    Orders,
    Rows,
    agree_with_laws,
    all_below,
    curves,
    frame,
    level,
    place,
    recorded,
    with_exact,
    without_data,
)
from sfumato.lab.trials import sample_quantiles

UNIFORM, BETA = "uniform records", "Beta(2, 2) records"
SOURCES: dict[str, Source] = {UNIFORM: uniform(), BETA: beta(2, 2)}
# Averages over 6 data sets with 60 draws each, and their last digits.
RECORDED = {
    ("recursive", 31): (0.350, 0.001),
    ("independent", 31): (0.196, 0.001),
    ("recursive", 91): (1.49, 0.01),
    ("independent", 91): (0.244, 0.001),
}


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """The squared risk for each number of quantiles, or what the script sums for it."""
    rows: Rows = []
    if mode == "corrected":
        source = SOURCES[UNIFORM]
        rows += as_corrected(source=source, risk="squared", effort=effort, own=own, beside=_beside)
        fill = partial(with_exact, rates=float, source=source, effort=effort, truth=sample_quantiles)
        fill(rows, "independent", _sorted_exact)
        fill(rows, FLAT, _flat_exact)
        return frame(rows)
    for panel, source in SOURCES.items():
        found = as_published(_script, source=source, risk="absolute", effort=effort, panel=panel, own=own)
        fill = partial(with_exact, found, rates=float, source=source, effort=effort, truth=quantiles)
        fill("independent", exact.independent_summed)
        fill(LAST, _last_exact)
        rows += found
    return frame(rows)


def _script(probs: Orders) -> dict[str, Any]:
    return {
        **{mechanism: plotted(SUMMED, probs, mechanism) for mechanism in NAMES},
        LAST: plotted(LAST, probs, "independent"),
    }


def _beside(probs: Orders) -> dict[str, Any]:
    return {FLAT: without_data(probs)}


def _sorted_exact(rows: Floats, probs: Any, epsilon: float, truth: Floats) -> Floats:
    return exact.sorted_squared(rows, probs, epsilon / (2 * len(probs)), truth)


def _flat_exact(rows: Floats, probs: Any, epsilon: float, truth: Floats) -> Floats:
    return exact.flat_squared(truth)


def _last_exact(rows: Floats, probs: Any, rate: float, truth: Floats) -> Floats:
    return exact.independent_summed(rows, probs[-1:], rate, truth[:, -1:])


def chart(table: Any, mode: Mode) -> Any:
    """Risk against the number of quantiles, in two panels."""
    from sfumato.charts import comparison

    under = {
        "published": [
            "squares of all errors but the last, plus the last estimate itself",
            f"{FEW} records; IndExp has ε = 1 for each quantile",
            LEGEND,
        ],
        "corrected": [
            "uniform records in [0, 1]; ε = 1 in all, if a record is replaced",
            "no data: sorted uniform numbers in place of answers",
            LEGEND,
        ],
    }
    return comparison(
        curves(table, "orders", NAMES),
        title="Squared risk against the number of quantiles"
        if mode == "corrected"
        else "What the script sums, against the number of quantiles",
        subtitle=under[mode],
        along="number of quantiles m",
        unit="squared error, summed" if mode == "corrected" else "number that is plotted",
        log_y=True,
        shared=mode == "published",
        panels=[FEW_PANEL, MANY_PANEL] if mode == "corrected" else list(SOURCES),
    )


def check(table: Any, mode: Mode) -> tuple[Statement, ...]:
    """The order of the two curves on few and on many records, and the recorded averages."""
    at = partial(place, table)
    found = [agree_with_laws(table)]
    if mode == "corrected":
        found += claims(table)
        for (method, count), (value, unit) in RECORDED.items():
            row = at(panel=FEW_PANEL, curve=method, orders=count)
            words = f"{NAMES[method]}, {FEW_PANEL}, {count} quantiles"
            found.append(recorded(words, row, value, unit, 6, 60))
        drawn, known = (
            at(panel=FEW_PANEL, curve=curve, orders=91)["exact"] for curve in ("independent", FLAT)
        )
        found.append(
            Statement(
                f"IndExp is low at {FEW_PANEL} because it is nearly flat: with 91 quantiles its risk is "
                f"{drawn:.3g}, and sorted uniform numbers, without any data, have {known:.3g}",
                0.8 < drawn / known < 1.2,
            )
        )
        return tuple(found)
    for panel in SOURCES:
        pairs = [
            (
                at(panel=panel, curve="independent", orders=count),
                at(panel=panel, curve="recursive", orders=count),
            )
            for count in COUNTS[1:]
        ]
        found.append(all_below(f"{panel}: RecExp is above IndExp for 11 to 91 quantiles", pairs))
        alone, whole = (level(at(panel=panel, curve=curve, orders=1)) for curve in (LAST, "independent"))
        found.append(
            Statement(
                f"{panel}: for one quantile {whole:.3f} is the estimate, {alone:.3f}, and nothing is squared",
                abs(alone - whole) <= 1e-9 and 0.4 < whole < 0.6,
            )
        )
        alone, whole = (level(at(panel=panel, curve=curve, orders=91)) for curve in (LAST, "independent"))
        words = f"{panel}: of {whole:.3f} for 91 quantiles by IndExp the last estimate is {alone:.3f}"
        near = True
        if panel == UNIFORM:
            words += f", near 91/92 = {91 / 92:.3f}"
            near = abs(alone - 91 / 92) < 0.03
        found.append(Statement(words, near and 0.9 < alone / whole <= 1))
    return tuple(found)


FIGURE = Figure(
    number="12",
    name="squared-risk-by-count",
    source="A24",
    title="Many quantiles: the squared risk of RecExp and IndExp",
    captions={
        "published": "RecExp is above IndExp, but the curves cannot be compared. IndExp spends ε on each of "
        "m quantiles. The loop leaves the last square out and adds the last estimate as it is, an offset of "
        "about m/(m + 1) that is nearly all of IndExp's curve. Right branches of RecExp search from 0 and "
        "not from the value that they branched from.",
        "corrected": "At n = 100 RecExp is still above IndExp, which is no merit of IndExp: with ε/m its "
        "draws are nearly flat, and sorted uniform numbers look like uniform data. At n = 10,000, where "
        "answers do follow the data, RecExp is below from 9 quantiles on.",
    },
    numbers=numbers,
    chart=chart,
    check=check,
    errata=("E23", "E28"),
    compares=True,
)
