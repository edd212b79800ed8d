"""Figure C5: the mean error of a decile by the histogram method, against the bound of the report."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.accuracy import histogram_mean_error, published_histogram_mean_error
from sfumato.lab import datasets
from sfumato.lab import decile_bounds as bounds
from sfumato.lab.decile_errors import PUBLISHED, Summary, errors
from sfumato.lab.errata_lemmas import mean_error, rate
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.judging import all_agree, as_printed
from sfumato.lab.measured import MEASURED, case_rows, cases, charted

ROWS, FAILURE = 10_000, Fraction(1, 20)
EPSILONS = tuple(map(Fraction, ("1", "2", "5", "10", "20", "50", "80")))
MANY, TWO = "median, 1,629 steps", "ninth decile, 2 steps"
PANELS = {MANY: (Fraction(1, 2), bounds.steps(ROWS)), TWO: (Fraction(9, 10), 2)}
FOUND, REPORT, CLOSED = "error", "bound of the report", "closed bound"
SETS, FEWEST_SETS, REPEATS = 40, 8, 40
# Vacuous numbers above this are in the table.
TOP = 1e6


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """Mean errors, exact and drawn, beside the bound of the mode, over budgets of nine deciles."""
    import polars as pl

    sets, repeats = effort.draws(SETS, least=FEWEST_SETS), effort.draws(REPEATS, least=10)
    data = np.sort(datasets.uniform().draw(sets, ROWS, effort.seed), axis=1)
    rows: list[dict[str, Any]] = []
    for panel, (order, steps) in PANELS.items():
        terms: dict[str, Any] = {"rows": ROWS, "steps": steps, "order": order, "failure": FAILURE}
        for epsilon in EPSILONS:
            place = {"panel": panel, "epsilon": float(epsilon)}
            first = effort.seed + len(rows) * SETS
            found = [
                errors(PUBLISHED, epsilon, each, repeats, first + i, (order,), steps=steps)
                for i, each in enumerate(data)
            ]
            summary = Summary.of([each.values for each in found], [each.drawn_values for each in found])
            counted = {"sets": sets, "repeats": repeats}
            rows.append({**place, "curve": FOUND, "kind": MEASURED, **summary.columns, **counted})
            if mode == "published":
                told = published_histogram_mean_error(epsilon=epsilon, **terms)
                rows.append({**place, "curve": REPORT, "kind": "published", "exact": told})
            else:
                radius = bounds.scan_radius(ROWS, epsilon, cells=steps, beta=FAILURE)
                told = histogram_mean_error(radius=radius, **terms)
                rows.append({**place, "curve": CLOSED, "kind": "bound", "exact": told})
    rows += case_rows({**mean_error().numbers, **rate().numbers})
    numeric = dict.fromkeys(("exact", "exact_se", "mean", "se", "epsilon"), pl.Float64)
    return pl.DataFrame(rows, schema_overrides=numeric, infer_schema_length=None)


def chart(frame: Any, mode: Mode) -> Any:
    """A bound that comes down from far above the range, and passes below the error of two steps."""
    from sfumato.charts import comparison

    above = ["what is above a million is in the table"] if mode == "published" else []
    return comparison(
        charted(frame.iter_rows(named=True), "epsilon", most=TOP),
        title=f"The mean error of a decile of {ROWS:,} uniform values",
        subtitle=["line with points: exact and simulated; line without: what is promised", *above],
        along="ε for all nine deciles",
        unit="mean error, in parts of the range",
        log_x=True,
        log_y=True,
        columns=2,
        marks=[{"y": 1, "text": "the range"}],
    )


def _at(frame: Any, panel: str, curve: str) -> dict[float, float]:
    found = frame.filter((frame["panel"] == panel) & (frame["curve"] == curve))
    return dict(zip(found["epsilon"].to_list(), found["exact"].to_list(), strict=True))


def check(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """Where the bound of the report is vacuous and where it is false; that the closed one holds."""
    drawn = frame.filter(frame["kind"] == MEASURED)
    statements = [all_agree("mean errors", drawn["mean"], drawn["exact"], drawn["se"])]
    counted = cases(frame)
    if mode == "published":
        told, false = _at(frame, MANY, REPORT), _at(frame, TWO, REPORT)
        error = _at(frame, TWO, FOUND)
        last = max(false)
        statements += [
            as_printed("the last term at α = 60 and n = 10,000, times 1e-22,", counted["last"] / 1e22, "9"),
            as_printed("what can stand in its place", counted["repaired"], "0.0175"),
            Statement(f"at ε = 1 the bound is {told[1.0]:.0e}, and the range is 1", told[1.0] > 1e30),
            Statement(
                f"at two steps and ε = {last:g} the bound, {false[last]:.3f}, is below the error, "
                f"{error[last]:.3f}",
                false[last] < error[last] - 0.1,
            ),
            Statement(
                f"with β = 1/√n and n steps the bound grows like n to the power {counted['published']:.1f}; "
                "the reference is 12/ε - 1 = 11 with α = 12 log n, up to the logarithms",
                counted["published"] > 8,
            ),
        ]
        return tuple(statements)
    shares = [
        error / _at(frame, panel, CLOSED)[epsilon]
        for panel in PANELS
        for epsilon, error in _at(frame, panel, FOUND).items()
    ]
    statements += [
        Statement(
            f"the error is {max(shares):.2f} of the closed bound at most, in {len(shares)} cases",
            max(shares) < 1,
        ),
        Statement(
            "with β = 1/√n and n steps the closed bound falls like n to the power "
            f"{counted['corrected']:.2f} in the end; the limit is -1/2",
            abs(counted["corrected"] + 0.5) < 0.05,
        ),
    ]
    return tuple(statements)


FIGURE = Figure(
    number="C5",
    name="histogram-mean-error",
    source="C22",
    title="The mean error of the histogram method",
    captions={
        "published": "For usual budgets the bound of the report is above the range by dozens of orders of "
        "magnitude. It comes down where ε is large, and there it forgets the width of a step: with two "
        "steps, to the right, it is below the error.",
        "corrected": "The closed bound has the width of a step, and a ninth of the budget for each decile. "
        "It is above the error everywhere, and says something from ε = 1 on.",
    },
    errata=("E8", "E9"),
    numbers=numbers,
    chart=chart,
    check=check,
)
