"""Figure S1: what is promised for the median among nine deciles, by the slides and by what is proved."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from sfumato.lab import datasets
from sfumato.lab import decile_bounds as bounds
from sfumato.lab.decile_bounds import BINOMIAL, CLOSED, REPORT, SLIDE_FIVE, SLIDE_THREE, TAIL
from sfumato.lab.decile_errors import PUBLISHED, SMOOTH, Summary, errors
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.judging import all_agree, as_printed
from sfumato.lab.measured import MEASURED, charted

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
EPSILONS = (Fraction(1, 5), Fraction(1))
MEDIAN = Fraction(1, 2)
SETS, FEWEST_SETS, REPEATS = 30, 6, 40
BOUNDS: dict[Mode, dict[str, Any]] = {
    "published": {
        SLIDE_THREE: bounds.slide_ranks,
        SLIDE_FIVE: bounds.slide_closed,
        REPORT: bounds.report_mean,
    },
    "corrected": {
        CLOSED: bounds.closed_mean,
        BINOMIAL: bounds.binomial_mean,
        TAIL: bounds.smooth_mean,
    },
}
SUBJECTS: dict[Mode, tuple[str, ...]] = {"published": (PUBLISHED,), "corrected": (PUBLISHED, SMOOTH)}
OBSERVED = {PUBLISHED: "error, histogram", SMOOTH: "error, inverse sensitivity"}
# Beyond the whole range a bound says nothing.
NOTHING = 0.5


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """Bounds on the mean error of the median, and the error itself, exact and drawn."""
    import polars as pl

    rows: list[dict[str, Any]] = []
    sets, repeats = effort.draws(SETS, least=FEWEST_SETS), effort.draws(REPEATS, least=10)
    for n in SIZES:
        data = np.sort(datasets.uniform().draw(sets, n, effort.seed), axis=1)
        for epsilon in EPSILONS:
            for name in SUBJECTS[mode]:
                first = effort.seed + len(rows) * SETS
                found = [
                    errors(name, epsilon, each, repeats, first + i, (MEDIAN,)) for i, each in enumerate(data)
                ]
                summary = Summary.of([each.values for each in found], [each.drawn_values for each in found])
                place = {"curve": OBSERVED[name], "kind": MEASURED, "n": n, "epsilon": float(epsilon)}
                rows.append({**place, **summary.columns, "sets": sets, "repeats": repeats})
    kind = "published" if mode == "published" else "bound"
    rows += [
        {"curve": name, "kind": kind, "n": n, "epsilon": float(epsilon), "exact": value}
        for name, bound in BOUNDS[mode].items()
        for n in SIZES
        for epsilon in EPSILONS
        if (value := bound(n, MEDIAN, epsilon)) is not None
    ]
    numeric = dict.fromkeys(("exact", "exact_se", "mean", "se"), pl.Float64)
    return pl.DataFrame(rows, schema_overrides=numeric, infer_schema_length=None)


def chart(frame: Any, mode: Mode) -> Any:
    """Bounds as broken lines above the errors, for two budgets."""
    from sfumato.charts import comparison

    named = ({**row, "panel": f"ε = {row['epsilon']:g}"} for row in frame.iter_rows(named=True))
    # What is above the whole range by orders of magnitude would leave no room for the others.
    rows = charted(named, "n", most=4 * NOTHING)
    notes = (
        ["the bound of the report is above the top of the picture at every n"]
        if mode == "published"
        else ["a bound on a probability is summed up to one on the mean"]
    )
    return comparison(
        rows,
        title="The median of uniform data, one of nine deciles: promised and found",
        subtitle=["lines with points: exact and simulated errors; lines without: bounds", *notes],
        along="number of records n",
        unit="mean error, in parts of the range",
        log_x=True,
        log_y=True,
        columns=2,
        height=280,
        marks=[{"y": NOTHING, "text": "says nothing"}],
    )


def _curve(frame: Any, name: str, epsilon: Any) -> dict[int, float]:
    found = frame.filter((frame["curve"] == name) & (frame["epsilon"] == float(epsilon)))
    return dict(zip(found["n"].to_list(), found["exact"].to_list(), strict=True))


def _above(frame: Any, bound: str, name: str) -> Statement:
    """That a bound is above the error wherever both are known."""
    shares = [
        error / limit
        for epsilon in EPSILONS
        for n, error in _curve(frame, OBSERVED[name], epsilon).items()
        if (limit := _curve(frame, bound, epsilon).get(n)) is not None
    ]
    words = f"the {OBSERVED[name]}, is at most {max(shares):.2f} of “{bound}”, in {len(shares)} cases"
    return Statement(words, max(shares) < 1)


def check(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """Bounds above errors; the closed form of the slides below what it closes; which bound is smaller."""
    drawn = frame.filter(frame["kind"] == MEASURED)
    statements = [all_agree("errors of the median", drawn["mean"], drawn["exact"], drawn["se"])]
    small, size = EPSILONS[0], 10_000
    if mode == "published":
        three, five = (_curve(frame, name, small) for name in (SLIDE_THREE, SLIDE_FIVE))
        report = [value for epsilon in EPSILONS for value in _curve(frame, REPORT, epsilon).values()]
        large = [_curve(frame, name, 1)[size] for name in (SLIDE_THREE, SLIDE_FIVE)]
        statements += [
            as_printed("slide 3 of 5 at n = 10,000 and ε = 0.2", three[size], "0.122"),
            as_printed("slide 5 of 5 there", five[size], "0.108"),
            Statement(
                f"at ε = 0.2 the closed form, {five[size]:.3f}, is below the expression that it closes, "
                f"{three[size]:.3f}; at ε = 1 it is above, {large[1]:.3f} and {large[0]:.3f}",
                five[size] < three[size] and large[1] > large[0],
            ),
            Statement(
                f"the bound of the report is {min(report):.0e} at least, where the whole range is 1",
                min(report) > 1e30,
            ),
            _above(frame, SLIDE_THREE, PUBLISHED),
            _above(frame, SLIDE_FIVE, PUBLISHED),
        ]
        return tuple(statements)
    statements += [_above(frame, CLOSED, PUBLISHED), _above(frame, BINOMIAL, PUBLISHED)]
    statements.append(_above(frame, TAIL, SMOOTH))
    pairs = [
        (_curve(frame, CLOSED, epsilon)[n], value)
        for epsilon in EPSILONS
        for n, value in _curve(frame, BINOMIAL, epsilon).items()
    ]
    gain = [right / left for left, right in pairs]
    statements.append(
        Statement(
            f"binomial tails give {min(gain):.2f} to {max(gain):.2f} of the closed bound, in {len(gain)} "
            "cases",
            max(gain) < 1,
        )
    )
    told = [
        (_curve(frame, TAIL, epsilon)[n] / closed)
        for epsilon in EPSILONS
        for n, closed in _curve(frame, CLOSED, epsilon).items()
        if _curve(frame, TAIL, epsilon)[n] < NOTHING
    ]
    statements.append(
        Statement(
            f"where the bound of inverse sensitivity says something it is {min(told):.2f} to {max(told):.2f} "
            "times the closed one of the histogram: the better mechanism has the weaker theorem",
            min(told) > 1,
        )
    )
    falls = all(
        left >= right
        for name in (CLOSED, BINOMIAL, TAIL)
        for epsilon in EPSILONS
        for left, right in pairwise(_curve(frame, name, epsilon).values())
    )
    statements.append(Statement("all three bounds fall with n", falls))
    # Of many more records the error is mostly that of the sample, which both share.
    wins = [
        _curve(frame, OBSERVED[PUBLISHED], epsilon)[n] / _curve(frame, OBSERVED[SMOOTH], epsilon)[n]
        for epsilon in EPSILONS
        for n in SIZES
        if n <= size
    ]
    statements.append(
        Statement(
            f"up to n = {size:,} the error of the histogram is {min(wins):.2f} to {max(wins):.2f} times that "
            "of inverse sensitivity",
            min(wins) > 1,
        )
    )
    return tuple(statements)


FIGURE = Figure(
    number="S1",
    name="bounds-of-deciles",
    source="S22",
    title="Deciles: what is promised",
    captions={
        "published": "The two bounds of the slides, above the error of the histogram method at these sizes. "
        "The closed form of slide 5 should be above slide 3 everywhere; for ε = 0.2 it is below up to n = "
        "10,000. Both take the whole ε for each of nine deciles, so that nothing is proved. The bound of "
        "the report is far above the picture.",
        "corrected": "With a ninth of ε for each decile the bounds are about three times that of slide "
        "3, and hold. Binomial tails are a little below the closed form. Inverse sensitivity has the larger "
        "bound and, until the error is that of the sample alone, the smaller error: bounds do not tell which "
        "of the two to take.",
    },
    errata=("E8", "E9", "E15", "E16", "E17"),
    numbers=numbers,
    chart=chart,
    check=check,
)
