"""A picture of an experiment: what `run` returned, as curves that compare mechanisms."""

from collections.abc import Mapping
from typing import Any

from sfumato.checks import one_of
from sfumato.errors import InvalidParameter
from sfumato.lab.measured import line_and_point
from sfumato.lab.summaries import RESULTS
from sfumato.lab.trials import RISKS

_UNITS = {
    "squared": "mean squared error",
    "absolute": "mean absolute error",
    "sup": "mean of the largest error",
    "rank": "mean distance in ranks",
    "coverage": "share of intervals that hold the truth",
    "time": "seconds, median",
}


def picture(
    frame: Any,
    *,
    along: str,
    risk: str | None = None,
    title: str = "",
    log_x: bool = True,
    log_y: bool = True,
) -> Any:
    """Draws the result of `run`: a curve for each subject, exact risks as lines and simulated ones as points.

    Guarantee:
        Shows every row of the chosen risk. Points have bars of two standard errors to each side.

    Args:
        frame: what `run` returned.
        along: the setting on the horizontal axis, such as "n" or "epsilon"; every other setting with several
            values makes panels.
        risk: which one, if the frame has several.
        title: what stands above.
        log_x: whether the horizontal axis is logarithmic.
        log_y: whether the vertical axis is.

    Raises:
        InvalidParameter: the frame has no such setting or risk.
        MissingExtra: Altair is not installed.

    >>> import numpy as np
    >>> from sfumato.lab import Own, datasets, run
    >>> def noisy(values, epsilon, rng):
    ...     return np.median(values) + rng.laplace(scale=1 / epsilon)
    >>> own = Own(function=noisy, probs=[0.5])
    >>> frame = run(own, data=datasets.uniform(), sweep={"n": [9], "epsilon": [1, 2]}, repeats=20)
    >>> type(picture(frame, along="epsilon")).__name__
    'LayerChart'
    """
    from sfumato.charts import comparison

    if not set(RESULTS) <= set(getattr(frame, "columns", ())):
        raise InvalidParameter(f"frame must be what run returned, got {type(frame).__name__}")
    settings = [name for name in frame.columns if name not in RESULTS]
    along = one_of("along", along, settings)
    chosen = _risk(frame, risk)
    others = [name for name in settings if name != along and frame[name].n_unique() > 1]
    rows = [
        record
        for row in frame.filter(frame["risk"] == chosen).iter_rows(named=True)
        for record in _records(row, along, others)
    ]
    return comparison(
        rows,
        title=title,
        subtitle=[_legend(rows)],
        along={"epsilon": "ε", "n": "records"}.get(along, along),
        unit=_UNITS[chosen],
        log_x=log_x,
        log_y=log_y,
    )


def _risk(frame: Any, risk: str | None) -> str:
    found = [name for name in RISKS if name in set(frame["risk"])]
    if risk is None and len(found) > 1:
        raise InvalidParameter(f"risk must be given, one of {', '.join(found)}, got risk=None")
    return one_of("risk", found[0] if risk is None else risk, found)


def _records(row: Mapping[str, Any], along: str, others: list[str]) -> list[dict[str, Any]]:
    place: dict[str, Any] = {"curve": row["subject"], "x": row[along]}
    if others:
        place["panel"] = ", ".join(f"{name} = {_value(row[name])}" for name in others)
    return line_and_point(place, row)


def _value(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _legend(rows: list[dict[str, Any]]) -> str:
    points = "points: simulated, with two standard errors"
    return f"thick lines: exact; {points}" if any(row["kind"] == "exact" for row in rows) else points
