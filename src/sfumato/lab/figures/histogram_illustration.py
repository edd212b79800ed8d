"""Figure C1: the histogram method on four steps, and where its answers can lie."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.data.admission import admit
from sfumato.grid import Ints
from sfumato.lab import datasets
from sfumato.lab.errata_thresholds import scan
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.judging import all_agree
from sfumato.laws import SeededBits
from sfumato.privacy import PureDP
from sfumato.quantile_methods import FromHistogram, Quantiles

ROWS, STEPS, EPSILON, DRAWS = 40, 4, Fraction(1), 20_000
WIDTH = 1 / STEPS
EDGES = tuple((i + 1) * WIDTH for i in range(STEPS))
NINTH = 9
# The pseudo-code answers -1 for no crossing, which is a step before the first.
BEFORE = -WIDTH
# Rarer answers are in the table, and would be no bar.
LEAST_SHOWN = 0.003
RECORD, COUNT, NOISY, THRESHOLD, ANSWER, LAW = (
    "record",
    "count",
    "noisy count",
    "threshold",
    "answer",
    "chance",
)


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """Records, counts below the edges, one draw for the median, and the law of the ninth decile's answer."""
    import polars as pl

    data = np.sort(datasets.uniform().draw(1, ROWS, effort.seed)[0])
    counts = np.searchsorted(data, EDGES)
    bits = SeededBits(effort.seed)
    rows: list[dict[str, Any]] = [{"part": RECORD, "x": float(value)} for value in data]
    rows += [{"part": COUNT, "x": edge, "exact": float(c)} for edge, c in zip(EDGES, counts, strict=True)]
    mechanism = scan(EPSILON)
    noisy = counts + np.asarray(mechanism.query_noise.sample(bits, STEPS))
    bar = ROWS // 2 + int(np.asarray(mechanism.threshold_noise.sample(bits, 1))[0])
    rows += [{"part": NOISY, "x": edge, "mean": float(c)} for edge, c in zip(EDGES, noisy, strict=True)]
    rows.append({"part": THRESHOLD, "exact": ROWS / 2, "mean": float(bar)})
    crossed = [j for j in range(STEPS) if noisy[j] > bar]
    none = BEFORE if mode == "published" else EDGES[-1] - WIDTH
    rows.append({"part": ANSWER, "x": EDGES[crossed[0]] - WIDTH if crossed else none})
    places, law = _published(counts) if mode == "published" else _corrected(data)
    drawn = np.asarray(law.sample(bits, draws := effort.draws(DRAWS)))
    for place in sorted(set(places)):
        these = [i for i, each in enumerate(places) if each == place]
        chance = float(np.exp(law.logpmf(np.array(these))).sum())
        rows.append(
            {
                "part": LAW,
                "x": place,
                "exact": chance,
                "mean": float(np.isin(drawn, these).mean()),
                "se": math.sqrt(max(chance * (1 - chance), 1 / draws) / draws),
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def _published(counts: Ints) -> tuple[list[float], Any]:
    """The answer for each index, and its law: the list has been filled once for each decile so far."""
    law = scan(EPSILON).law(np.tile(counts, NINTH), ROWS * NINTH // 10)
    return [*(j * WIDTH for j in range(NINTH * STEPS)), BEFORE], law


def _corrected(data: Any) -> tuple[list[float], Any]:
    """The same for the method of sfumato with the published noise and answer."""
    query = Quantiles(
        column="value",
        probs=[Fraction(NINTH, 10)],
        budget=PureDP(EPSILON),
        bounds=(0, 1),
        neighbours="substitution",
        rows=ROWS,
        method=FromHistogram(steps=STEPS, published=True),
        verify=0,
    )
    law: Any = query.law(query.look(admit(data, "value")))
    return [float(query.value((j,))[0]) for j in range(STEPS + 1)], law.scans[0].law(law.counts)  # type: ignore[index]


def _part(frame: Any, part: str) -> list[dict[str, Any]]:
    return [row for row in frame.iter_rows(named=True) if row["part"] == part]


def _dots(curve: str, spots: list[tuple[float, float]]) -> list[dict[str, Any]]:
    """Points that no line joins: a curve that has a line of its own, here of no length, has no other."""
    kinds = [*((spot, "reference") for spot in spots[:1] * 2), *((spot, "simulated") for spot in spots)]
    return [{"curve": curve, "kind": kind, "x": x, "y": y} for (x, y), kind in kinds]


def chart(frame: Any, mode: Mode) -> Any:
    """Above one scan for the median; below the answers of the ninth decile."""
    from sfumato.charts import comparison, histogram, stacked

    counts, noisy = _part(frame, COUNT), _part(frame, NOISY)
    (bar,), (answer,) = _part(frame, THRESHOLD), _part(frame, ANSWER)
    data = [row["x"] for row in _part(frame, RECORD)]
    # How many records are below a point, for all points: a stair.
    stair = [(0.0, 0), *(spot for i, x in enumerate(data) for spot in ((x, i), (x, i + 1))), (1.0, len(data))]
    below = "records below"
    curves = [{"curve": below, "kind": "exact", "x": x, "y": float(y)} for x, y in stair]
    curves += [{"curve": below, "kind": "simulated", "x": row["x"], "y": row["exact"]} for row in counts]
    curves += _dots("count with noise", [(row["x"], row["mean"]) for row in noisy])
    curves += _dots("a record", [(x, 0.0) for x in data])
    crossed = [row["x"] for row in noisy if row["mean"] > bar["mean"]][:1]
    told = {**dict.fromkeys(crossed, "first above"), answer["x"]: "answer"}
    marks = [{"y": bar["mean"], "text": f"half of {ROWS}, with noise: {bar['mean']:g}"}]
    marks += [{"x": edge, "text": told.get(edge, "")} for edge in sorted({*EDGES, answer["x"]})]
    one = comparison(
        curves,
        along="value, cut at the edges of four steps",
        unit="number of records",
        marks=marks,
        zero=True,
        height=240,
        width=600,
    )
    shown = [row for row in _part(frame, LAW) if row["exact"] > LEAST_SHOWN]
    two = histogram(
        [
            {"start": row["x"], "end": row["x"] + WIDTH, "value": row["exact"], "series": "exact"}
            for row in shown
        ],
        curves=_dots("simulated", [(row["x"] + WIDTH / 2, row["mean"]) for row in shown]),
        marks=[{"x": 0, "text": ""}, {"x": 1, "text": "end of the range"}],
        along="step that is answered for the ninth decile",
        unit="probability",
        height=150,
        width=600,
    )
    return stacked(
        [one, two],
        title="The histogram method on four steps",
        subtitle=[
            "above: the first count that passes the threshold, both with noise, tells the step of the median",
            f"below: all answers for the ninth decile; {ROWS} records, ε = {EPSILON} for each decile",
        ],
    )


def check(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """Edges, counts, the answer for a crossing, and whether answers stay in [0, 1]."""
    counts, noisy, laws = (_part(frame, part) for part in (COUNT, NOISY, LAW))
    data = [row["x"] for row in _part(frame, RECORD)]
    edges, told = [row["x"] for row in counts], [int(row["exact"]) for row in counts]
    (bar,), (answer,) = _part(frame, THRESHOLD), _part(frame, ANSWER)
    crossed = [row["x"] for row in noisy if row["mean"] > bar["mean"]]
    total = sum(row["exact"] for row in laws)
    outside = sum(row["exact"] for row in laws if not 0 <= row["x"] < 1)
    inside = sorted(row["x"] for row in laws if 0 <= row["x"] < 1)
    statements = [
        Statement(
            f"the edges are {', '.join(f'{edge:g}' for edge in edges)}", edges == [0.25, 0.5, 0.75, 1.0]
        ),
        Statement(
            f"the queries are #{{x < edge}}: {', '.join(map(str, told))}",
            told == [sum(x < edge for x in data) for edge in edges],
        ),
        all_agree("chances of answers", *([row[name] for row in laws] for name in ("mean", "exact", "se"))),
        Statement(f"the chances of all answers add up to {total:.9f}", abs(total - 1) < 1e-6),
        Statement(
            f"answers in the range are an edge less a step: {', '.join(f'{one:g}' for one in inside)}",
            inside == [edge - WIDTH for edge in edges],
        ),
    ]
    if crossed:
        words = (
            f"the first crossing is at the edge {crossed[0]:g}; the answer is {answer['x']:g}, a step less"
        )
        statements.append(Statement(words, abs(answer["x"] - (crossed[0] - WIDTH)) < 1e-12))
    if mode == "corrected":
        statements.append(Statement(f"answers lie outside [0, 1] with probability {outside:g}", outside == 0))
        return tuple(statements)
    below = sum(row["exact"] for row in laws if row["x"] < 0)
    statements.append(
        Statement(
            f"answers lie outside [0, 1] with probability {outside:.4f}: above it with "
            f"{outside - below:.4f}, because the list of queries is not emptied, and below it with "
            f"{below:.1e}, because -1 is read as a step",
            outside - below > 0.01 and below > 0,
        )
    )
    return tuple(statements)


FIGURE = Figure(
    number="C1",
    name="histogram-illustration",
    source="C22",
    title="The histogram method, illustrated",
    captions={
        "published": "Above: the range is cut into four steps, the records below each edge are counted, "
        "and the first count that passes the threshold, both with noise, gives the answer. Below: as the "
        "pseudo-code has it, the ninth decile scans nine copies of the counts, so that some answers lie "
        "beyond the range.",
        "corrected": "The same scan for the median. The list of counts is made anew for each decile, and "
        "if no count passes, the last step is the answer: all answers for the ninth decile lie in the "
        "range.",
    },
    errata=("E1", "E4"),
    numbers=numbers,
    chart=chart,
    check=check,
)
