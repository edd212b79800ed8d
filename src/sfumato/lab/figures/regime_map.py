"""Which quantile method is the most accurate where, and what `auto` takes there."""

import math
from typing import Any

from sfumato.lab.figure import Figure, Mode, Statement
from sfumato.lab.judging import STANDARD_ERRORS
from sfumato.lab.regimes import AUTO, Cell, cells, numbers

NAMES = {"inverse_sensitivity": "inverse"}
NONE, ALIKE, ALONE = "none", "alike", "one draw"
# Of the error of the recursion: about a half for 9 quantiles, and 20 to 45 % less for 99.
OF_RECURSION = {9: (0.45, 0.55), 99: (0.55, 0.8)}
SHORT = {"interpolated": "lines", "recursive": "rec.", "independent": "indep.", "histogram": "hist."}


def chart(table: Any, mode: Mode) -> Any:
    """The best method by number of records and of orders, with a panel for each kind of data and budget."""
    from sfumato.charts import heatmap

    found = cells(table)
    rows = [
        {
            "panel": _panel(cell),
            "x": cell.n,
            "y": cell.count,
            "name": _name(cell),
            "text": _text(cell),
        }
        for cell in sorted(found, key=lambda cell: (cell.n, -cell.count))
    ]
    under = {
        "published": [
            "Mean rank error of the best of three methods, at the rates of the script. They cost more",
            "than ε: most of all IndExp's (indep.), ε for each quantile.",
        ],
        "corrected": [
            "Mean rank error of the best of five methods, at ε in all if a record is replaced; below it",
            "what the method auto takes, if that is another, and its error as a multiple.",
            "Rec.: recursive. Lines: interpolated. Ties: whole numbers, by a Poisson law of mean 20.",
        ],
    }
    panels = list(dict.fromkeys(map(_panel, found)))
    whole = len(panels) * len({cell.n for cell in found}) * len({cell.count for cell in found})
    gaps = " Empty: not run with few draws." if len(found) < whole else ""
    return heatmap(
        rows,
        title="Which method is the most accurate where",
        subtitle=[
            *under[mode],
            "One draw: all but the histogram are the same. Alike: several within 15 % or half a rank.",
            f"None: more than half of the error without data.{gaps}",
        ],
        along="number of records n",
        unit="quantiles m",
        names=(NONE, ALONE, "independent", "joint", "recursive", ALIKE),
        panels=panels,
        columns=2,
    )


def _panel(cell: Cell) -> str:
    return f"{cell.data}, ε = {cell.epsilon:g}"


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
        *_of_recursion(found),
        _all(
            [cell for cell in found if cell.data != "ties"],
            "inverse sensitivity, order by order, is as good as independent draws, and no better",
            lambda cell: (
                cell.near("inverse_sensitivity", "independent")
                and cell.near("independent", "inverse_sensitivity")
            ),
        ),
        _all(
            [cell for cell in found if cell.data == "lognormal"],
            "on a domain much wider than the data the histogram method is more than 100 ranks off",
            lambda cell: cell.by_method["histogram"]["mean"] > 100,
        ),
        *_nothing(found),
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


def _of_recursion(found: list[Cell]) -> list[Statement]:
    """What a joint draw has of the recursion's error, where the rule says a joint draw."""
    statements = []
    for count, (least, most) in OF_RECURSION.items():
        ratios, errors = [], []
        for cell in found:
            if cell.count == count and cell.joint_by_rule and cell.data != "ties":
                joint, recursive = cell.by_method["joint"], cell.by_method["recursive"]
                ratio = joint["mean"] / recursive["mean"]
                relative = [row["noise_se"] / row["mean"] for row in (joint, recursive)]
                ratios.append(ratio)
                errors.append(ratio * math.hypot(*relative))
        if ratios:
            mean, room = sum(ratios) / len(ratios), 4 * math.hypot(*errors) / len(errors)
            told = f"for {count} quantiles a joint draw has {mean:.2f} of the recursion's error on average"
            statements.append(
                Statement(
                    f"{told}, at {len(ratios)} places of the rule; the reference is {least:g} to {most:g}",
                    bool(least - room <= mean <= most + room),
                )
            )
    return statements


def _nothing(found: list[Cell]) -> list[Statement]:
    """That 99 quantiles of few records at a small budget tell nothing; with little effort not measured."""
    places = [cell for cell in found if (cell.n, cell.count, cell.epsilon) == (1000, 99, 0.1)]
    words = "99 quantiles of 1,000 records at ε = 0.1 tell nothing by any of the five"
    return [_all(places, words, lambda cell: not cell.informative)] if places else []


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
        "orders and lines between them. All answer on a grid of 2^30 points; at small budgets sfumato takes "
        "a coarser one unless a step is given.",
    },
    numbers=numbers,
    chart=chart,
    check=check,
    errata=("E23",),
    compares=True,
)
