"""Answers of a private mean on fresh data each time: their histogram, their law and their risk."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from sfumato.accuracy import gaussian_to_laplace, mean_risk, normal_laplace_tail
from sfumato.data.admission import admit
from sfumato.lab.figure import Effort, Mode, Statement
from sfumato.lab.judging import agrees, as_printed
from sfumato.laws import SeededBits
from sfumato.privacy import ApproxDP, PureDP
from sfumato.statistics import Mean

ROWS, WIDTH, BIN, ANSWERS = 1000, 1000.0, 0.5, 2000
DELTA, CONSTANT = 1e-5, 5
# The normal data of the script: the bounds are four standard deviations away.
DEVIATION = 125.0
# The top of a histogram is judged over so many bins: that of one bin alone is mostly chance.
_TOP = 8
BINS, SPREAD, NOISE, CENTER, RISK, TOP = (
    "answers in a bin",
    "standard deviation of an answer",
    "standard deviation of the noise",
    "mean answer",
    "squared risk",
    "highest bin of 2,000 answers",
)
# What the count above would be if answers had a normal law, which the printed peaks suppose.
ROUGH_TOP = "the same for a normal law of this spread"
OVER_TOP = "mean count of the 8 bins at the top"
APART, LATTICES = "largest difference of ten times an answer", "noise over noise, b divided by 10"
LEAST = "least c of the classical rule"
RATIO, TENTH, SCALE = (
    "Gaussian over Laplace noise",
    "standard deviation of an answer, b divided by 10",
    "scale of Laplace noise",
)
COLUMNS = {
    "panel": pl.String,
    "quantity": pl.String,
    "start": pl.Float64,
    "end": pl.Float64,
    "exact": pl.Float64,
    "mean": pl.Float64,
    "se": pl.Float64,
}


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One histogram: which noise, at which budget, on which data."""

    name: str
    kind: str
    epsilon: float
    data: str = "uniform"

    def sampling_variance(self, mode: Mode, width: float = WIDTH) -> float:
        """The variance of one record; the product clamps it to the bounds, the script does not."""
        if self.data == "uniform":
            return width**2 / 12
        reach = WIDTH / 2 / DEVIATION
        density = math.exp(-(reach**2) / 2) / math.sqrt(2 * math.pi)
        beyond = math.erfc(reach / math.sqrt(2)) / 2
        lost = 2 * (reach * density - (reach**2 - 1) * beyond) if mode == "corrected" else 0.0
        return (DEVIATION * width / WIDTH) ** 2 * (1 - lost)

    def noise_deviation(self) -> float:
        """The standard deviation of the noise on a mean."""
        return math.sqrt(self.risk(0.0))

    def risk(self, variance: float, width: float = WIDTH) -> float:
        """The mean squared error around the population's mean, if a record has this variance."""
        more: dict[str, Any] = {} if self.kind == "laplace" else {"delta": DELTA}
        if self.kind == "gaussian":
            more["constant"] = CONSTANT
        return mean_risk(self.kind, ROWS, variance, width, self.epsilon, **more)


def drawn(panel: Panel, mode: Mode, count: int, seed: int, *, width: float = WIDTH) -> tuple[Any, Any]:
    """So many answers on fresh data, and the means of these data, on the bounds [0, width]."""
    rng = np.random.default_rng([seed, 1])
    if panel.data == "uniform":
        data = rng.random((count, ROWS)) * width
    else:
        data = width / 2 + rng.standard_normal((count, ROWS)) * (DEVIATION * width / WIDTH)
    if mode == "published":
        means = data.mean(axis=1)
        spread = panel.noise_deviation() * width / WIDTH
        noise = rng.laplace(size=count) / math.sqrt(2) if panel.kind == "laplace" else rng.normal(size=count)
        return means + spread * noise, means
    query, bits = asked(panel, width), SeededBits(seed)
    laws = (query.law(query.look(admit(row))) for row in data)
    answers = np.array([query.value((int(law.sample(bits)),)) for law in laws])
    return answers, np.clip(data, 0, width).mean(axis=1)


def asked(panel: Panel, width: float = WIDTH) -> Mean:
    """The query of the product that a panel is about."""
    laplace = panel.kind == "laplace"
    budget = PureDP(panel.epsilon) if laplace else ApproxDP(epsilon=panel.epsilon, delta=DELTA)
    return Mean(
        budget=budget,
        noise="laplace" if laplace else "gaussian",
        bounds=(0, width),
        neighbours="substitution",
        nulls="lower",
        rows=ROWS,
    )


def numbers(
    panels: Sequence[Panel], mode: Mode, effort: Effort, *, tenth: bool = False, ratios: Sequence[float] = ()
) -> Any:
    """The bins and the moments of each panel; also with the bounds divided by ten, and ratios of noises."""
    count = effort.draws(ANSWERS)
    rows: list[dict[str, Any]] = []
    for place, panel in enumerate(panels):
        seed = effort.seed + place
        answers, means = drawn(panel, mode, count, seed)
        rows += _rows(panel, mode, answers, means)
        if tenth and place == 0:
            less = WIDTH / 10
            fewer, _ = drawn(panel, mode, count, seed, width=less)
            exact = math.sqrt(panel.risk(panel.sampling_variance(mode, less), less))
            error = exact / 2 * _error_of_square(panel, (10 * exact) ** 2, count)
            rows.append(_row(panel.name, TENTH, exact, float(fewer.std()), error))
            # With the same random numbers every single answer is divided by ten; on a lattice of powers of
            # two, as in the product, only their law is.
            apart = float(np.abs(10 * fewer - answers).max()) if mode == "published" else None
            rows.append(_row(panel.name, APART, None, apart, None))
            noises = [asked(panel, width) for width in (WIDTH, WIDTH / 10)]
            spreads = [
                math.sqrt(query.mechanism.noise.variance) * float(query.lattice.step) for query in noises
            ]
            rows.append(_row(panel.name, LATTICES, spreads[0] / spreads[1]))
    rows.append(_row("all", LEAST, math.sqrt(2 * math.log(1.25 / DELTA))))
    kind = "gaussian" if mode == "published" else "analytic gaussian"
    for epsilon in ratios:
        more = {"constant": CONSTANT} if mode == "published" else {}
        ratio = gaussian_to_laplace(kind, epsilon, DELTA, **more)
        rows.append(_row("all", RATIO, ratio) | {"start": epsilon})
        rows.append(_row("all", SCALE, WIDTH / ROWS / epsilon) | {"start": epsilon})
    return pl.DataFrame(rows, schema=COLUMNS)


def _row(
    panel: str, quantity: str, exact: float | None, mean: float | None = None, se: float | None = None
) -> dict[str, Any]:
    known = {"panel": panel, "quantity": quantity, "exact": exact, "mean": mean, "se": se}
    return {**dict.fromkeys(COLUMNS), **known}


def _error_of_square(panel: Panel, variance: float, count: int) -> float:
    """The standard error of a mean of squares, as a share of it, by its fourth moment."""
    noise = panel.risk(0.0) if panel.kind == "laplace" else 0.0
    return math.sqrt((2 + 3 * (noise / variance) ** 2) / count)


def beyond(panel: Panel, mode: Mode, reach: Any) -> Any:
    """P(answer - center > reach) for a reach of at least 0, the mean of the data being taken for normal."""
    from scipy.special import ndtr

    sampling, noise = math.sqrt(panel.sampling_variance(mode) / ROWS), panel.noise_deviation()
    if panel.kind == "laplace":
        return normal_laplace_tail(reach, sampling, noise / math.sqrt(2)) / 2
    return ndtr(-np.asarray(reach) / math.hypot(sampling, noise))


def _below(panel: Panel, mode: Mode, places: Any) -> Any:
    away = np.asarray(places) - WIDTH / 2
    tails = beyond(panel, mode, np.abs(away))
    return np.where(away < 0, tails, 1 - tails)


def _rows(panel: Panel, mode: Mode, answers: Any, means: Any) -> list[dict[str, Any]]:
    count, middle = len(answers), WIDTH / 2
    risk = panel.risk(panel.sampling_variance(mode))
    half = math.ceil(float(np.abs(answers - middle).max()) / BIN) * BIN
    # A bin around the center, and as many on both sides.
    edges = np.arange(middle - half - BIN / 2, middle + half + BIN, BIN)
    counts, _ = np.histogram(answers, edges)
    expected = count * np.diff(_below(panel, mode, edges))
    rows = [
        _row(panel.name, BINS, e, float(c), math.sqrt(e)) | {"start": float(a), "end": float(b)}
        for a, b, c, e in zip(edges[:-1], edges[1:], counts, expected, strict=True)
    ]
    chance = float(np.diff(_below(panel, mode, [middle - BIN / 2, middle + BIN / 2]))[0])
    reach = _TOP * BIN / 2
    near = float(np.mean(np.abs(answers - middle) <= reach)) / _TOP * ANSWERS
    inside = 1 - 2 * float(beyond(panel, mode, reach))
    width = math.sqrt(inside * (1 - inside) / count) / _TOP * ANSWERS
    squares = (answers - middle) ** 2
    spread, noise = math.sqrt(risk), panel.noise_deviation()
    share, noise_share = (_error_of_square(panel, variance, count) for variance in (risk, noise**2))
    return [
        *rows,
        _row(panel.name, CENTER, middle, float(answers.mean()), spread / math.sqrt(count)),
        _row(panel.name, SPREAD, spread, float(answers.std()), spread / 2 * share),
        _row(panel.name, NOISE, noise, float((answers - means).std()), noise / 2 * noise_share),
        _row(panel.name, RISK, risk, float(squares.mean()), risk * share),
        _row(panel.name, TOP, chance * ANSWERS),
        _row(panel.name, ROUGH_TOP, ANSWERS * BIN / math.sqrt(2 * math.pi) / spread),
        _row(panel.name, OVER_TOP, inside / _TOP * ANSWERS, near, width),
    ]


def chart(frame: Any, mode: Mode, panels: Sequence[Panel], *, title: str, reach: float) -> Any:
    """The histograms above each other on one axis, with the law of an answer over them."""
    from sfumato.charts import histogram

    shown = frame.filter((pl.col("quantity") == BINS) & ((pl.col("start") - WIDTH / 2).abs() <= reach))
    rows = [
        {"start": row["start"], "end": row["end"], "value": row["mean"], "panel": row["panel"]}
        for row in shown.iter_rows(named=True)
    ]
    curves = [
        {
            "curve": "expected",
            "kind": "exact",
            "x": (row["start"] + row["end"]) / 2,
            "y": row["exact"],
            "panel": row["panel"],
        }
        for row in shown.iter_rows(named=True)
    ]
    count = int(
        frame.filter((pl.col("quantity") == BINS) & (pl.col("panel") == panels[0].name))["mean"].sum()
    )
    subtitle = [
        f"{count:,} answers, each on fresh data of {ROWS:,} values in [0, {WIDTH:,.0f}]",
        "line: what is expected, if the mean of the data is taken for normal",
    ]
    return histogram(
        rows,
        curves=curves,
        title=title,
        subtitle=subtitle,
        along="answer",
        unit=f"answers in a bin of {BIN:g}",
    )


def value(frame: Any, panel: str, quantity: str, column: str = "exact") -> float:
    """One number of the frame."""
    found = frame.filter((pl.col("panel") == panel) & (pl.col("quantity") == quantity))[column]
    return float(found[0])


def simulated(frame: Any, panel: Panel) -> tuple[Statement, ...]:
    """What every panel must show: answers and noise as their laws say."""
    statements = [
        agrees(
            f"{panel.name}: {name}",
            *(value(frame, panel.name, name, column) for column in ("mean", "exact", "se")),
        )
        for name in (CENTER, SPREAD, NOISE, RISK, OVER_TOP)
    ]
    return tuple(statements)


def printed(frame: Any, panel: Panel, **digits: str) -> tuple[Statement, ...]:
    """The exact numbers of a panel against the digits in print, by the name of the quantity."""
    names = {"spread": SPREAD, "noise": NOISE, "risk": RISK, "top": TOP, "center": CENTER}
    names["rough_top"] = ROUGH_TOP
    return tuple(
        as_printed(f"{panel.name}: {names[name]}", value(frame, panel.name, names[name]), text)
        for name, text in digits.items()
    )
