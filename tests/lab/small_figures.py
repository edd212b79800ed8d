"""Figures that take no time, for tests of the gallery: good, failing, hostile, broken, long and slow."""

import os
import time
from dataclasses import replace

import numpy as np
import polars as pl

from sfumato.charts import error_curves
from sfumato.lab.figure import Figure, Statement

HOSTILE_NAME = "</style></svg><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;"
TRACE = "SFUMATO_TEST_TRACE"


def numbers(mode, effort, own):
    """The mean absolute value of draws of Laplace noise of three scales, exactly and simulated."""
    rng = np.random.default_rng(effort.seed)
    draws = effort.draws(400)
    factor = 2.0 if mode == "published" else 1.0
    rows = []
    for name in ("laplace", *own):
        for scale in (1.0, 2.0, 4.0):
            drawn = np.abs(rng.laplace(scale=factor * scale, size=draws))
            se = drawn.std() / draws**0.5
            rows.append({"curve": name, "x": scale, "exact": factor * scale, "mean": drawn.mean(), "se": se})
    return pl.DataFrame(rows)


def chart(frame, mode):
    rows = [
        {"curve": f"{row['curve']}, {kind}", "kind": kind, "x": row["x"], "error": row[column]}
        for row in frame.iter_rows(named=True)
        for kind, column in (("exact", "exact"), ("reference", "mean"))
    ]
    return error_curves(rows, title=f"Mean absolute errors, {mode}", along="scale", unit="error")


def check(frame, mode):
    worst = max(abs(row["mean"] - row["exact"]) / row["se"] for row in frame.iter_rows(named=True))
    return (
        Statement(f"the simulated means are within {worst:.1f} standard errors of the exact ones", worst < 4),
        *(Statement(f"there are at least {least} rows", frame.height >= least) for least in range(1, 8)),
    )[: 1 if frame.height < 7 else None]


def failing(frame, mode):
    return *check(frame, mode), Statement("a published number is half of what it is", mode == "corrected")


def hostile(mode, effort, own):
    return numbers(mode, effort, own).with_columns(curve=pl.lit(HOSTILE_NAME))


def long(mode, effort, own):
    return pl.concat([numbers(mode, effort, own)] * 100)


def many(frame, mode):
    return tuple(Statement(f"row {place} is there", True) for place in range(9))


def broken(mode, effort, own):
    raise RuntimeError("no numbers today <b>")


def slow(mode, effort, own):
    """As good as the others, but it notes when it was at work."""
    start = time.monotonic()
    time.sleep(0.05)
    with open(os.path.join(os.environ[TRACE], f"{os.getpid()}-{start}"), "w") as file:
        file.write(f"{own.get('alone', '')}{start} {time.monotonic()}")
    return numbers(mode, effort, {})


def alone(mode, effort, own):
    return slow(mode, effort, {"alone": "alone "})


GOOD = Figure(
    number="1",
    name="errors-by-scale",
    source="A24",
    title="Errors by scale",
    captions={"published": "Errors that are twice as large.", "corrected": "Errors equal to the scale."},
    numbers=numbers,
    chart=chart,
    check=check,
    errata=("E36", "E38"),
    compares=True,
)
FAILING = replace(
    GOOD, number="C1", name="half", source="C22", title="Half", check=failing, errata=("E36",), compares=False
)
HOSTILE = replace(
    GOOD,
    number="S1",
    name="hostile",
    source="S22",
    title=f"Title {HOSTILE_NAME}",
    captions=dict.fromkeys(("published", "corrected"), f"Caption {HOSTILE_NAME}"),
    numbers=hostile,
    check=lambda frame, mode: (Statement(f"Words {HOSTILE_NAME}", True),),
    errata=(),
)
LONG = replace(GOOD, number="2", name="long", title="Long", numbers=long, check=many, errata=())
BROKEN = replace(GOOD, number="R1", name="broken", source="sfumato", title="Broken", numbers=broken)
SLOW = replace(GOOD, number="3", name="slow", title="Slow", numbers=slow)
ALONE = replace(GOOD, number="4", name="alone", title="Alone", numbers=alone, alone=True)
ALL = {figure.number: figure for figure in (GOOD, LONG, FAILING, HOSTILE, BROKEN)}
