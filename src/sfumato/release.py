"""What leaves: an answer with its interval, its cost and everything that a reader may know about it."""

import html
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.checks import Number, boolean, inside
from sfumato.data.moments import Reads, as_datetime64, written
from sfumato.errors import NotSupported
from sfumato.grid import Floats
from sfumato.privacy import Event
from sfumato.privacy.neighbours import MEANINGS
from sfumato.query import Answer, Cost, Interval, Outcome, Released, parameters

FORMAT = 1
# What a caller writes for a scenario to get an interval that holds on all data.
ANY_DATA = "any data"
# And to get that of quantiles which takes the data as spread as their released neighbours are.
SLOPES = "slopes"


@dataclass(frozen=True)
class Release:
    """One released statistic: the public query and the outcome that was drawn; all else follows from them.

    Guarantee:
        Every field, interval and picture is post-processing of the outcome by public facts, and costs nothing
        more. `private` is False if seeded bits drew it; then it must not be published.

    >>> from sfumato.privacy import PureDP
    >>> from sfumato.statistics import Count
    >>> release = Release(Count(budget=PureDP(1), neighbours="add-remove"), (42,), private=True)
    >>> release.value, release.interval(0.95)
    (42, (39, 45))
    """

    query: Released
    outcome: Outcome
    private: bool

    def __post_init__(self) -> None:
        # What a choice came to is kept, and stored: a later version may choose otherwise.
        resolved_by = getattr(self.query, "resolved_by", None)
        if resolved_by is not None:
            object.__setattr__(self, "query", resolved_by(self.outcome))

    @property
    def value(self) -> Answer:
        """The released answer."""
        return self.query.value(self.outcome)

    @property
    def dates(self) -> Any:
        """The released dates as NumPy's datetime64: to the day, or of datetimes to the second of UTC.

        `value` has the same as numbers, of days or of seconds since 1970-01-01.

        Raises:
            NotSupported: the answer is no date, as that of any statistic of numbers, or a count of dates.

        >>> from sfumato.privacy import PureDP
        >>> from sfumato.statistics import Mean
        >>> from datetime import date
        >>> year = (date(2020, 1, 1), date(2020, 12, 31))
        >>> query = Mean(budget=PureDP(1), neighbours="substitution", nulls="lower", rows=9, bounds=year)
        >>> str(Release(query, (0,), private=True).dates)
        '2020-07-01'
        """
        if self.reads == "number":
            raise NotSupported(f"dates needs an answer that is a date, and this {self.query.name} has none")
        return as_datetime64(self.value, self.reads)

    @property
    def reads(self) -> Reads:
        """What the numbers of the answer stand for: "number", "date" (days) or "datetime" (seconds)."""
        found: Reads = getattr(self.query, "answer_reads", "number")
        return found

    def interval(
        self, confidence: float = 0.95, *, simultaneous: bool = False, scenario: Any = None
    ) -> Interval:
        """Where the data's own value lies with this confidence.

        Args:
            confidence: of each number by itself, where there are several.
            simultaneous: whether the confidence is that all of them hold together.
            scenario: an `accuracy.Scenario`, where quantiles are to be judged by what is known of such data;
                or the name of a rule for quantiles: "any data", or "slopes" between released neighbours.

        Raises:
            NotSupported: the answer is no number, as that of a choice; or needs no scenario; or neighbours
                do not tell how spread the data are.
        """
        return self._asked("interval", confidence, simultaneous, scenario)

    def population_interval(
        self, confidence: float = 0.95, *, simultaneous: bool = False, scenario: Any = None
    ) -> Interval:
        """Where the value of the population lies, of which the data are independent draws.

        The arguments and the errors are those of `interval`.
        """
        return self._asked("population_interval", confidence, simultaneous, scenario)

    def _asked(self, kind: str, confidence: float, simultaneous: bool, scenario: Any) -> Interval:
        level = confidence
        if boolean("simultaneous", simultaneous):
            # The failures of all numbers add up to that of one, at most.
            level = 1 - (1 - float(inside("confidence", confidence))) / len(self.query.labels())
        ask = getattr(self.query, kind)
        takes = kind in getattr(self.query, "takes_scenario", ())
        if not takes and isinstance(scenario, str) and scenario == ANY_DATA:
            scenario = None  # as it is anyway
        if scenario is not None and not takes:
            raise NotSupported(f"{kind} of a {self.query.name} takes no scenario: it holds on any data")
        found: Interval = ask(self.outcome, level, *(() if scenario is None else (scenario,)))
        return found

    def plot(self, confidence: float = 0.95, *, simultaneous: bool = False, scenario: Any = None) -> Any:
        """A picture: the value with its interval, quantiles as a ribbon, a histogram as bars with errors.

        The arguments are those of `interval`. Returns an Altair chart; `charts.save` writes it to a file.

        Raises:
            NotSupported: the answer is no number, as that of a choice.
            MissingExtra: Altair is not installed.
        """
        from sfumato.charts.releases import release_chart

        return release_chart(self, confidence, simultaneous=simultaneous, scenario=scenario)

    def rank_error(self, confidence: float = 0.95) -> int:
        """How many ranks released quantiles are from their targets, at most, on any data, all together."""
        own = getattr(self.query, "drawn_rank_error", None)
        if own is None:
            raise NotSupported(f"rank_error needs quantiles, not a {self.query.name}")
        error: int = own(self.outcome, confidence)
        return error

    def cdf(self, points: Number | Sequence[Number]) -> Floats:
        """The share of the data at or below each point, where quantiles were released from a tree."""
        own = getattr(self.query, "cdf", None)
        if own is None:
            raise NotSupported(f"cdf needs quantiles released with method='tree', not a {self.query.name}")
        listed = points if isinstance(points, Sequence | np.ndarray) else [points]
        shares: Floats = own(self.outcome, listed)
        return shares

    @property
    def cost(self) -> Cost:
        """What the release costs, on its own."""
        return self.query.cost

    @property
    def event(self) -> Event:
        """What was done, for an accountant."""
        return self.query.event

    @property
    def method(self) -> str:
        """The mechanism in words."""
        return self.query.described

    @property
    def parameters(self) -> dict[str, Any]:
        """The public parameters of the query."""
        return parameters(self.query)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know before using the answer."""
        warning = (
            () if self.private else ("NOT PRIVATE: drawn with seeded bits, for tests and teaching only",)
        )
        return (*warning, *self.query.notes(self.outcome))

    def to_dict(self) -> dict[str, Any]:
        """All of it in JSON's types; derived entries are for readers and computed anew when read back."""
        span = self._span
        return {
            "format": FORMAT,
            "software": "sfumato",
            "statistic": self.query.name,
            "parameters": self.parameters,
            # Integers as text, because other readers of JSON round them to float64.
            "outcome": [str(part) for part in self.outcome],
            "private": self.private,
            "labels": list(self.query.labels()),
            "value": _plain(self.value),
            "interval": span and {"confidence": 0.95, "low": _plain(span[0]), "high": _plain(span[1])},
            "cost": repr(self.cost),
            "event": self.event.to_dict(),
            "method": self.method,
            "notes": list(self.notes),
            **({} if self.reads == "number" else {"reads": self.reads}),
        }

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        lines = [self._title()]
        header, *rows = self.table()
        shown = [header, *rows] if len(rows) > 1 else rows
        widths = [max(len(row[i]) for row in shown) for i in range(len(header))]
        for row in shown:
            cells = [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
            lines.append("  " + "  ".join(cells).rstrip())
        lines += [f"  {name}: {text}" for name, text in self.facts()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head, *body = (
            "<tr>" + "".join(_cell(text, "td" if i else "th", j) for j, text in enumerate(row)) + "</tr>"
            for i, row in enumerate(self.table())
        )
        facts = (f"<li><b>{html.escape(name)}</b>: {html.escape(text)}</li>" for name, text in self.facts())
        title, table = html.escape(self._title()), f"<thead>{head}</thead><tbody>{''.join(body)}</tbody>"
        return f"<div><b>{title}</b><table>{table}</table><ul>{''.join(facts)}</ul></div>"

    def _title(self) -> str:
        part = "".join(f", {printable(column)}: {printable(words)}" for column, words in self.among)
        return f"{self.query.name.replace('_', ' ')} of {printable(self.query.column)}{part}"

    @property
    def among(self) -> tuple[tuple[str, str], ...]:
        """The public conditions on the rows, as (column, words); none for the whole table."""
        return getattr(self.query, "among", ())

    def facts(self) -> list[tuple[str, str]]:
        """What is printed below the numbers, as (name, words): cost, method and notes."""
        return [
            ("cost", f"{self.cost!r}, {self.query.neighbours}: {self._relation()}"),
            ("method", self.method),
            *(("note", n) for n in self.notes),
        ]

    def _relation(self) -> str:
        """What one person can change, in words; how many rows a part or a table of units has is private."""
        replaced = self.query.neighbours != "add-remove"
        changes: int | None = getattr(self.query, "changes", None)
        if changes is None and not (self.among and replaced):
            return MEANINGS[self.query.neighbours or "substitution"]
        rows = 1 if changes is None else changes // 2 if replaced else changes
        what = "one row is" if rows == 1 else f"up to {rows} rows of one person are"
        done = "replaced by any others" if replaced else "added or removed"
        return f"{what} {done}; the number of rows is private"

    @cached_property
    def _span(self) -> Interval | None:
        """The interval to show, or None for an answer that has none; found once for all that show it."""
        try:
            return self.interval(0.95)
        except NotSupported:
            return None

    def numbers(self, confidence: float = 0.95) -> list[tuple[str, Any, Any, Any]]:
        """Label, value and ends of the interval of each number, in full precision; no ends for a choice."""
        try:
            low, high = (np.atleast_1d(np.asarray(end)).tolist() for end in self.interval(confidence))
        except NotSupported:
            picks = self.value if isinstance(self.value, tuple) else (self.value,)
            return [(label, pick, None, None) for label, pick in zip(self.query.labels(), picks, strict=True)]
        values = np.atleast_1d(np.asarray(self.value)).tolist()
        return list(zip(self.query.labels(), values, low, high, strict=True))

    def table(self) -> list[tuple[str, ...]]:
        """Header and rows of text: label, value and 95 % interval, rounded to what the interval supports."""
        rows = self.texts()
        if not rows[0][2]:
            return [("", "value"), *((label, value) for label, value, _, _ in rows)]
        header = ("", "value", "95 % interval")
        return [header, *((label, value, f"[{low}, {high}]") for label, value, low, high in rows)]

    def texts(self) -> list[tuple[str, str, str, str]]:
        """Label, value and ends of the 95 % interval of each number, rounded alike; no ends for a choice."""
        span, value = self._span, self.value
        labels = [printable(label) for label in self.query.labels()]
        if span is None:
            answers = value if isinstance(value, tuple) else (value,)
            return [
                (label, printable(str(answer)), "", "") for label, answer in zip(labels, answers, strict=True)
            ]
        columns = [np.atleast_1d(np.asarray(part)) for part in (value, *span)]
        if self.reads != "number":
            return list(zip(labels, *self._dated(columns), strict=True))
        if getattr(self.query, "on_points", False):
            # Integers that were answered as float64, which holds them exactly.
            columns = [column.astype(np.int64) for column in columns]
        width = _narrowest(*columns[1:])
        return [
            (
                label,
                rounded(center, width),
                rounded(least, width, math.floor),
                rounded(most, width, math.ceil),
            )
            for label, center, least, most in zip(labels, *columns, strict=True)
        ]

    def _dated(self, columns: list[Any]) -> Iterator[list[str]]:
        """Values and ends as ISO text, the ends rounded outwards."""
        width = _narrowest(*columns[1:])
        for column, whole in zip(columns, (round, math.floor, math.ceil), strict=True):
            yield [written(number, self.reads, width, whole) for number in column.tolist()]


def _narrowest(lower: Any, upper: Any) -> float:
    """The width of the narrowest interval.

    All numbers are rounded to its digits: rounded one by one, equal numbers would seem unequal.
    """
    # In Python's floats: both ends may be infinite, and NumPy would warn.
    widths = [float(most) - float(least) for least, most in zip(lower, upper, strict=True)]
    return min((width for width in widths if width > 0), default=0.0)


def _cell(text: str, tag: str, column: int) -> str:
    # Styles in the cell, because notebooks keep no style sheet of ours; numbers line up at the right.
    side = "right" if column else "left"
    return f'<{tag} style="text-align:{side};padding:0 1em 0 0">{html.escape(text)}</{tag}>'


def printable(name: str) -> str:
    """A name on one line: what could break a table, or steer a terminal, is escaped.

    >>> printable("a\\nb")
    'a\\\\nb'
    """
    return name if name.isprintable() else repr(name)[1:-1]


def rounded(number: Any, width: float, whole: Callable[[Any], int] = round) -> str:
    """A number with as many digits as an interval of this width supports: to a tenth of it, or three digits.

    An interval that holds on any data may be far wider than the usual error, so that three digits stay
    whatever the width. Ends of an interval are rounded outwards, by `math.floor` and `math.ceil` as `whole`.

    >>> rounded(51234.5678, 90.0), rounded(51234, 80_000), rounded(0.123456, 0.01), rounded(1.25e-20, 1e-21)
    ('51,235', '51,200', '0.123', '1.25e-20')
    >>> rounded(51234, 8000, math.ceil)
    '51,300'
    """
    if number is None or not math.isfinite(number):
        return "none"
    counted = isinstance(number, int | np.integer)
    if not 0 < width < math.inf:
        return f"{int(number):,}" if counted else f"{float(number):,{'.12g' if width > 0 else '.6f'}}"
    digits = 1 - math.floor(math.log10(width))
    if number:
        digits = max(digits, min(2 - math.floor(math.log10(abs(number))), 12))
    if counted:
        digits = min(digits, 0)
    if not -15 <= digits <= 12 or abs(number) >= 1e15:
        # Very small and very large numbers are unreadable without an exponent.
        return f"{float(number):.6g}"
    step = Fraction(10) ** -digits
    return f"{float(whole(Fraction(number) / step) * step):,.{max(digits, 0)}f}"


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isinf(value):
        return None  # JSON has no infinity
    if isinstance(value, tuple):
        return list(value)
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
