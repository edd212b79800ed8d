"""A picture of an experiment shows every row of it, and says in words what is missing."""

import re

import numpy as np
import polars as pl
import pytest

from sfumato import lab
from sfumato.errors import InvalidParameter
from sfumato.lab import datasets


def noisy(values, epsilon, rng):
    return np.median(values) + rng.laplace(scale=1 / epsilon)


def law(values, epsilon):
    return lab.Points([0, 1], [0.5, 0.5])


@pytest.fixture(scope="module")
def frame():
    subjects = {"noisy": lab.Own(function=noisy, probs=[0.5]), "law": lab.Own(function=law, probs=[0.5])}
    sweep = {"n": [10, 1000], "epsilon": [0.5, 1.0, 2.0]}
    return lab.run(subjects, data=datasets.uniform(), sweep=sweep, repeats=20, risks=["squared", "absolute"])


def shown(chart):
    """All records in a chart, wherever in it they are."""

    def found(part):
        if isinstance(part, dict):
            yield from part.get("values", []) if isinstance(part.get("values"), list) else []
            for inner in part.values():
                yield from found(inner)
        elif isinstance(part, list):
            for inner in part:
                yield from found(inner)

    return [row for row in found(chart.to_dict()) if isinstance(row, dict)]


def words(chart):
    return str(chart.to_dict())


def test_every_row_of_the_risk_is_in_the_picture(frame):
    chart = lab.picture(frame, along="epsilon", risk="squared", title="Two medians")
    ys = [row.get("y") for row in shown(chart)]
    chosen = frame.filter(pl.col("risk") == "squared")
    for row in chosen.iter_rows(named=True):
        assert any(y == pytest.approx(row["mean"]) for y in ys if y is not None)
        if row["subject"] == "law":
            assert any(y == pytest.approx(row["exact"]) for y in ys if y is not None)
    others = frame.filter(pl.col("risk") == "absolute")["mean"]
    assert not any(y == pytest.approx(other) for other in others for y in ys if y is not None)
    for text in ("Two medians", "n = 10", "n = 1,000", "mean squared error", "thick lines: exact", "'ε'"):
        assert text in words(chart)


def test_bars_are_two_standard_errors_to_each_side(frame):
    chart = lab.picture(frame, along="n", risk="absolute")
    bars = {(row["low"], row["high"]) for row in shown(chart) if row.get("low") is not None}
    for row in frame.filter(pl.col("risk") == "absolute").iter_rows(named=True):
        low, high = row["mean"] - 2 * row["se"], row["mean"] + 2 * row["se"]
        # On a logarithmic axis a bar that reaches zero leaves it at its lower end.
        low = low if low > 0 else row["mean"] / 1000
        assert any(abs(a - low) + abs(b - high) < 1e-9 for a, b in bars)


def test_one_setting_makes_one_plot_without_panels(frame):
    alone = frame.filter((pl.col("n") == 10) & (pl.col("subject") == "noisy"))
    chart = lab.picture(alone, along="epsilon", risk="squared")
    assert "n = 10" not in words(chart)
    assert "exact" not in words(chart)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"along": "epsilon"}, "risk must be given, one of squared, absolute, got risk=None"),
        ({"along": "epsilon", "risk": "time"}, "risk must be one of 'squared', 'absolute', got risk='time'"),
        ({"along": "mean", "risk": "squared"}, "along must be one of 'n', 'epsilon', got along='mean'"),
    ],
)
def test_what_is_not_there_is_told(frame, given, message):
    with pytest.raises(InvalidParameter, match=re.escape(message)):
        lab.picture(frame, **given)
