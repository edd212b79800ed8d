"""Figure S3: how the time of nine deciles grows with the number of records."""

import math
from collections.abc import Callable, Mapping
from time import thread_time
from typing import Any

import numpy as np

from sfumato.data.admission import admit
from sfumato.grid import Floats
from sfumato.lab import datasets
from sfumato.lab.decile_bounds import steps as steps_of
from sfumato.lab.decile_errors import DECILES, PUBLISHED, SMOOTH, deciles
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.laws import SeededBits

SIZES = (2**15, 2**16, 2**17, 2**18, 2**19)
REPEATS = 40
EPSILON = 1
SMOOTH_NAME, HISTOGRAM = "inverse sensitivity", "histogram method"
SORTED, LINEAR = "n log n", "n"
# Times are those of the processor for this work alone, but caches end somewhere.
LEEWAY = 0.3


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """Times relative to those at the smallest size; medians and least ones, with models beside them."""
    import polars as pl

    repeats = effort.draws(REPEATS, least=7)
    subjects = {SMOOTH_NAME: _sorting, HISTOGRAM: _scanning} if mode == "published" else _ours()
    seconds: dict[tuple[str, int], list[float]] = {}
    data = {n: datasets.uniform().draw(1, n, effort.seed)[0] for n in SIZES}
    # Turn by turn, so that a busy moment of the machine falls on all of them.
    for turn in range(repeats + 1):
        for name, answer in subjects.items():
            for n in SIZES:
                start = thread_time()
                answer(data[n], effort.seed + turn)
                taken = thread_time() - start
                if turn:
                    seconds.setdefault((name, n), []).append(taken)
    rows = [
        {
            "curve": name,
            "kind": "simulated",
            "n": n,
            "ratio": float(np.median(taken) / np.median(seconds[name, SIZES[0]])),
            "least": min(taken) / min(seconds[name, SIZES[0]]),
            "repeats": repeats,
        }
        for (name, n), taken in seconds.items()
    ]
    for name, model in ((SORTED, _log_linear), (LINEAR, float)):
        rows += [
            {"curve": name, "kind": "reference", "n": n, "ratio": model(n) / model(SIZES[0])} for n in SIZES
        ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _log_linear(n: int) -> float:
    return n * math.log(n)


def _sorting(data: Floats, seed: int) -> list[float]:
    """Nine deciles as on the slide: all records sorted, a weight for each gap, one draw for each decile."""
    rng = np.random.default_rng(seed)
    edges = np.concatenate([[0.0], np.sort(data), [1.0]])
    gaps, ranks, answers = np.diff(edges), np.arange(len(data) + 1), []
    for order in DECILES:
        sums = np.cumsum(gaps * np.exp(-EPSILON / 18 * np.abs(ranks - float(order) * len(data))))
        cell = int(np.searchsorted(sums, rng.random() * sums[-1]))
        answers.append(float(edges[cell] + gaps[cell] * rng.random()))
    return answers


def _scanning(data: Floats, seed: int) -> list[float]:
    """Nine deciles by the histogram method: one pass that counts, then a scan over the steps for each."""
    rng = np.random.default_rng(seed)
    steps = steps_of(len(data))
    counts = np.cumsum(np.bincount((data * steps).astype(np.int64), minlength=steps))
    answers = []
    for order in DECILES:
        bar = float(order) * len(data) + rng.laplace(scale=2 * 9 / EPSILON)
        crossed = counts + rng.laplace(scale=4 * 9 / EPSILON, size=steps) > bar
        answers.append(float(crossed.argmax()) / steps)
    return answers


def _ours() -> dict[str, Callable[[Floats, int], Any]]:
    """The two methods of the product, from the values to the answer."""

    def answer(name: str) -> Callable[[Floats, int], Any]:
        def timed(data: Floats, seed: int) -> Any:
            query = deciles(name, EPSILON, len(data))
            outcome: Any = query.law(query.look(admit(data, "value"))).sample(SeededBits(seed))
            return query.value(outcome)

        return timed

    return {SMOOTH_NAME: answer(SMOOTH), HISTOGRAM: answer(PUBLISHED)}


def chart(frame: Any, mode: Mode) -> Any:
    """Times as points beside the two models, all one at the smallest size."""
    from sfumato.charts import comparison

    whose = "as on the slide" if mode == "published" else "by sfumato"
    return comparison(
        [
            # The shortest of several times is the one that nothing else disturbed.
            {"curve": row["curve"], "kind": row["kind"], "x": row["n"], "y": row["least"] or row["ratio"]}
            for row in frame.iter_rows(named=True)
        ],
        title=f"The time of nine deciles against the number of records, {whose}",
        subtitle=[f"shortest times in units of those at n = {SIZES[0]:,}; broken lines: two models"],
        along="number of records n",
        unit="time, relative",
        log_x=True,
        log_y=True,
    )


def _slope(ratio: float) -> float:
    return math.log(ratio) / math.log(SIZES[-1] / SIZES[0])


def check(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """Times grow as the models say: slopes on logarithmic axes, and never seconds."""
    found: dict[str, float] = {}
    for row in frame.filter(frame["n"] == SIZES[-1]).iter_rows(named=True):
        found[row["curve"]] = _slope(row["least"] if row["kind"] == "simulated" else row["ratio"])
    # Steps grow like n / log n, so that records and steps together grow like n at most.
    model = {SMOOTH_NAME: SORTED if mode == "published" else LINEAR, HISTOGRAM: LINEAR}
    statements = []
    for name, line in model.items():
        # What a query costs besides its data does not grow, so that its time may grow more slowly.
        slower = mode == "corrected"
        apart = found[name] - found[line]
        statements.append(
            Statement(
                f"the time of “{name}” grows like n to the power {found[name]:.2f} from n = {SIZES[0]:,} to "
                f"{SIZES[-1]:,}; {line} has {found[line]:.2f}{', at most' if slower else ''}",
                apart <= LEEWAY and (slower or apart >= -LEEWAY),
            )
        )
    steps = steps_of(SIZES[-1]) / steps_of(SIZES[0])
    statements.append(
        Statement(
            f"the steps grow by {steps:.1f} where the records grow by {SIZES[-1] // SIZES[0]}, like n / log "
            "n",
            abs(steps / (SIZES[-1] / SIZES[0] * math.log(SIZES[0]) / math.log(SIZES[-1])) - 1) < 1e-3,
        )
    )
    return tuple(statements)


FIGURE = Figure(
    number="S3",
    name="time-by-size",
    source="S22",
    title="The time of nine deciles",
    captions={
        "published": "As the slide says: inverse sensitivity sorts, and its time grows like n log n; the "
        "histogram method counts in one pass and scans 1.5 n / log n steps, and grows like n at most. On "
        "this scale the two can hardly be told apart. Times are relative, and differ between machines.",
        "corrected": "A sort is not needed: sfumato finds the few records around each decile in expected "
        "linear time, and inverse sensitivity grows like n at most, too. At these sizes what does not "
        "depend on n is a large part.",
    },
    errata=(),
    numbers=numbers,
    chart=chart,
    check=check,
    alone=True,
)
