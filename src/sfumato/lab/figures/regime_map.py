"""Which quantile method is the most accurate where, and what `auto` takes there."""

import math
from typing import Any

from sfumato.lab.figure import Figure, Mode, Statement
from sfumato.lab.judging import STANDARD_ERRORS
from sfumato.lab.regimes import AUTO, Cell, cells, measured

NAMES = {"inverse_sensitivity": "inverse"}
NONE, ALIKE, ALONE = "none", "alike", "one draw"
SHORT = {"interpolated": "lines", "recursive": "rec.", "independent": "indep.", "histogram": "hist."}


def chart(table: Any, mode: Mode) -> Any:
    """The best method by number of records and of orders, with a panel for each kind of data and budget."""
    from sfumato.charts import heatmap

    found = cells(table)
    rows = [
        {
            "panel": f"{cell.data}, ε = {cell.epsilon:g}",
            "x": cell.n,
            "y": cell.count,
            "name": _name(cell),
            "text": _text(cell),
        }
        for cell in sorted(found, key=lambda cell: (cell.n, -cell.count))
    ]
    under = {
        "published": [
            "Rates of the script, which cost more than ε: most of all IndExp's, ε for each quantile."
        ],
        "corrected": [
            "Mean rank error of the best of five methods, at ε in all if a record is replaced; below it",
            "what auto takes, if that is another, and its error as a multiple.",
            "Rec.: recursive. Lines: interpolated.",
        ],
    }
    return heatmap(
        rows,
        title="Which method is the most accurate where",
        subtitle=[
            *under[mode],
            "One draw: all but the histogram are the same. Alike: several within 15 % or half a rank.",
            "None: more than half of the error without data.",
        ],
        along="number of records n",
        unit="number of quantiles m",
        panels=list(dict.fromkeys(f"{cell.data}, ε = {cell.epsilon:g}" for cell in found)),
        columns=2,
    )


def _winner(cell: Cell) -> str:
    return min(cell.entered, key=lambda name: float(cell.entered[name]["mean"]))


def _name(cell: Cell) -> str:
    winner = _winner(cell)
    if winner in cell.compared and not cell.informative:
        return NONE
    if winner in cell.compared and cell.count == 1:
        return ALONE
    least = cell.entered[winner]["mean"]
    close = [row for row in cell.entered.values() if row["mean"] <= 1.15 * least + 0.5]
    return ALIKE if len(close) >= (2 if least < 0.5 else 3) else NAMES.get(winner, winner)


def _text(cell: Cell) -> str:
    name, alone, least = _name(cell), cell.by_method["independent"], cell.entered[_winner(cell)]["mean"]
    if name == ALONE:
        return f"{name}\n{_figure(alone['mean'] if alone['exact'] is None else alone['exact'])}"
    told = f"{SHORT.get(name, name)} {_figure(least)}"
    auto = cell.by_method.get(AUTO)
    if auto is None or auto["answered by"] == _winner(cell):
        return told
    chosen = SHORT.get(auto["answered by"], auto["answered by"])
    # Half a rank on both sides, so that two errors near zero are as good as each other.
    ratio = (auto["mean"] + 0.5) / (least + 0.5)
    return told if name == ALIKE and ratio < 1.15 else f"{told}\n{chosen} ×{ratio:.1f}"


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def check(table: Any, mode: Mode) -> tuple[Statement, ...]:
    """The reading of the map, place by place."""
    found = cells(table)
    if mode == "published":
        several = [cell for cell in found if cell.count > 1 and cell.informative]
        return (
            _all(
                several,
                "IndExp looks best for several quantiles if it has ε for each",
                lambda cell: cell.near("independent", cell.best),
            ),
        )
    telling = [cell for cell in found if cell.telling]
    several = [cell for cell in telling if cell.count > 1]
    many = [cell for cell in telling if cell.count == 99 and not cell.joint_by_rule]
    alone = [cell for cell in telling if cell.count == 1]
    return (
        *(_one_draw(found, epsilon) for epsilon in sorted({cell.epsilon for cell in found})),
        _all(
            alone,
            "for one quantile independent, joint and recursive draws and inverse sensitivity are alike",
            lambda cell: all(
                cell.near(name, other)
                for name in ("independent", "joint", "recursive", "inverse_sensitivity")
                for other in ("independent", "joint", "recursive", "inverse_sensitivity")
            ),
        ),
        _all(
            [cell for cell in several if cell.joint_by_rule],
            "where ε n / (4 (m + 1)) is at least 3 log(m + 1), a joint draw is the best of the five",
            lambda cell: cell.near("joint", cell.best),
        ),
        _all(
            [cell for cell in many if cell.data != "uniform"],
            "below that, on domains wider than the data, 99 quantiles are better by recursion than jointly",
            lambda cell: cell.by_method["recursive"]["mean"] < cell.by_method["joint"]["mean"],
        ),
        _all(
            [cell for cell in found if cell.data == "uniform" and cell.count > 1 and not cell.joint_by_rule],
            "on a tight domain a joint draw is as good as the recursion even there",
            lambda cell: cell.near("joint", "recursive"),
        ),
        _all(
            telling,
            "the histogram method is never the best where answers tell something",
            lambda cell: cell.best != "histogram" or cell.alike,
        ),
        _all(
            several,
            "independent draws, by either method, are never the best for three quantiles or more",
            lambda cell: cell.best not in ("independent", "inverse_sensitivity") or cell.alike,
        ),
        _independent(found),
        _all(
            telling,
            "auto is within 15 %, half a rank and 4 standard errors of the best of the five",
            lambda cell: cell.near(AUTO, cell.best),
        ),
    )


def _all(places: list[Cell], words: str, holds: Any) -> Statement:
    missed = [cell for cell in places if not holds(cell)]
    where = "".join(
        f"; not at {cell.data}, n = {cell.n:,}, m = {cell.count}, ε = {cell.epsilon:g}" for cell in missed
    )
    told = f"{words}: {len(places) - len(missed)} of {len(places)} places{where}"
    return Statement(told, bool(places) and not missed)


def _one_draw(found: list[Cell], epsilon: float) -> Statement:
    """The error of one quantile on data without ties, whose gaps are nearly equal on average."""
    rows = [
        cell.by_method["independent"]
        for cell in found
        if cell.count == 1 and cell.epsilon == epsilon and cell.data in ("uniform", "normal")
    ]
    mean = sum(row["exact"] for row in rows) / len(rows)
    room = STANDARD_ERRORS * math.sqrt(sum(row["exact_se"] ** 2 for row in rows)) / len(rows)
    about = 1 / math.sinh(epsilon / 2)
    return Statement(
        f"one quantile at ε = {epsilon:g} is {mean:.3g} ranks off on average; 1/sinh(ε/2) = {about:.3g}",
        bool(abs(mean - about) <= 0.1 * about + room),
    )


def _independent(found: list[Cell]) -> Statement:
    """The error of independent draws where it is far from all errors that can be."""
    rows = [
        (cell.by_method["independent"], 2 * cell.count / cell.epsilon)
        for cell in found
        if cell.data in ("uniform", "normal")
        and cell.n >= 10_000
        and cell.count in (3, 9)
        and cell.epsilon == 1
    ]
    ratio = sum(row["mean"] / about for row, about in rows) / len(rows)
    room = STANDARD_ERRORS * math.sqrt(sum((row["se"] / about) ** 2 for row, about in rows)) / len(rows)
    return Statement(
        f"independent draws are {ratio:.2f} times 2 m/ε ranks off, for 3 and 9 quantiles of many records",
        bool(abs(ratio - 1) <= 0.1 + room),
    )


FIGURE = Figure(
    number="R2",
    name="regime-map",
    source="sfumato",
    title="Which quantile method is the most accurate where",
    captions={
        "published": "With the rates of the script IndExp looks best for several quantiles, because it "
        "spends ε on each of them. The map says who pays most and not who is most accurate.",
        "corrected": "For one quantile all but the histogram are the same draw. For several a joint draw is "
        "the best where enough records lie between two orders, and the recursion where they do not, unless "
        "the domain is tight. The histogram never wins where answers tell something. What auto takes is as "
        "good as the best of the five, and better where it has others: a tree of counts, or some of the "
        "orders and lines between them.",
    },
    numbers=measured,
    chart=chart,
    check=check,
    errata=("E23",),
    compares=True,
)
