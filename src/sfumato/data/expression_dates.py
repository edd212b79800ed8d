"""Dates in expressions: constants as days or seconds, and the parts of a date by exact arithmetic."""

import datetime as dt
from typing import Any

from sfumato.checks import shown
from sfumato.data.expression_steps import Step
from sfumato.data.moments import read_moment
from sfumato.errors import InvalidParameter


def moment(kind: str, value: Any, place: str) -> float:
    """Days or seconds since the start of 1970 of a date, a time or its ISO text."""
    example = "'2024-01-31'" if kind == "date" else "'2024-01-31T12:00'"
    rule = f"{place} compares a {kind}, so a constant must be such as {example}, got {shown(value)}"
    if not isinstance(value, str | dt.date):
        raise InvalidParameter(rule)
    try:
        return float(read_moment(place, value, "date" if kind == "date" else "datetime"))
    except InvalidParameter:
        raise InvalidParameter(rule) from None


def date_part(name: str, kind: str, step: Step) -> Step:
    """The year, month, day or weekday of days, or of seconds for the kind "datetime"."""
    if kind == "datetime":
        # Whole seconds first: the days of a time just before midnight would round up.
        step = _by(Step("whole", (step,)), 86_400.0)
    return _PARTS[name](step)


def _number(value: float) -> Step:
    return Step("literal", (), value)


def _plus(left: Step, right: Step | float) -> Step:
    return Step("add", (left, _number(right) if isinstance(right, float) else right))


def _minus(left: Step, right: Step) -> Step:
    return Step("subtract", (left, right))


def _times(left: Step, factor: float) -> Step:
    return Step("multiply", (left, _number(factor)))


def _by(step: Step, divisor: float) -> Step:
    """The whole quotient of whole numbers: half a step from the next one, so that no rounding reaches it."""
    return Step("whole", (_times(_plus(step, 0.5), 1.0 / divisor),))


def _civil(days: Step) -> tuple[Step, Step]:
    """The year that starts in March, and the day in it from 0, of days since the start of 1970."""
    # Counted from the first of March of the year 0, a leap day ends its year, and centuries are regular.
    counted = _plus(days, 719_468.0)
    century = _by(_plus(_times(counted, 4.0), 3.0), 146_097.0)
    in_century = _minus(counted, _by(_times(century, 146_097.0), 4.0))
    year = _by(_plus(_times(in_century, 4.0), 3.0), 1461.0)
    in_year = _minus(in_century, _by(_times(year, 1461.0), 4.0))
    return _plus(_times(century, 100.0), year), in_year


def _year(days: Step) -> Step:
    year, in_year = _civil(days)
    # January and February, from day 306 on, belong to the next year.
    return _plus(year, _by(in_year, 306.0))


def _month(days: Step) -> Step:
    march_based = _month_in_year(_civil(days)[1])
    return _minus(_plus(march_based, 3.0), _times(_by(march_based, 10.0), 12.0))


def _month_in_year(in_year: Step) -> Step:
    # Five months have 153 days from March on, and so do the next five.
    return _by(_plus(_times(in_year, 5.0), 2.0), 153.0)


def _day(days: Step) -> Step:
    in_year = _civil(days)[1]
    before = _by(_plus(_times(_month_in_year(in_year), 153.0), 2.0), 5.0)
    return _plus(_minus(in_year, before), 1.0)


def _weekday(days: Step) -> Step:
    # The first day of 1970 was a Thursday.
    counted = _plus(days, 3.0)
    return _plus(_minus(counted, _times(_by(counted, 7.0), 7.0)), 1.0)


_PARTS = {"year": _year, "month": _month, "day": _day, "weekday": _weekday}
