"""How estimates print: a table of figures, what each respondent gave away, and what a reader should know."""

import html
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.checks import between, shown
from sfumato.errors import InvalidParameter
from sfumato.local.cost import LocalDP, exact_number
from sfumato.local.tally import Tally
from sfumato.release import printable, rounded

FORMAT = 1
# No interval fails less often than this: float64 has no room for it.
LEAST_FAILURE = 1e-15
UNFIT = "an interval is a single point: these answers do not fit the design, or chance was unusual"


@dataclass(frozen=True)
class Figure:
    """One estimated number with its standard error and an interval.

    Guarantee:
        Computed from randomised answers by public rules, at no cost to anyone. `value` is the unbiased
        estimate, also where it is not possible; `possible` and what is printed are clipped to `limits`. A
        `note` says what the value or the interval assumes.

    >>> print(Figure("yes", 0.2031, 0.0213, 0.1614, 0.2449, 0.95))
    yes: 0.203, standard error 0.0213, 95 % interval [0.161, 0.245]
    """

    label: str
    value: float
    standard_error: float
    low: float
    high: float
    confidence: float
    limits: tuple[float, float] = (-math.inf, math.inf)
    note: str = ""

    @property
    def possible(self) -> float:
        """The value, clipped to what is possible."""
        return min(max(self.value, self.limits[0]), self.limits[1])

    def __str__(self) -> str:
        value, error, low, high = self.cells()
        interval = f"{100 * self.confidence:g} % interval [{low}, {high}]"
        note = f" ({self.note})" if self.note else ""
        return f"{printable(self.label)}: {value}, standard error {error}, {interval}{note}"

    def cells(self) -> tuple[str, str, str, str]:
        """The numbers as text, with the digits that the interval can tell apart."""
        numbers = (self.possible, self.standard_error, self.low, self.high)
        # An interval of no width tells no digits; the error does.
        width = self.high - self.low or (0.0 if math.isnan(self.standard_error) else self.standard_error)
        value, error, low, high = ("-" if math.isnan(x) else rounded(x, width) for x in numbers)
        return value, error, low, high


class Reported(ABC):
    """What every estimate shows; it follows from the design and the tallies."""

    design: Any

    @property
    @abstractmethod
    def tallies(self) -> tuple[Tally, ...]:
        """The counts behind it, one for each sample."""

    @abstractmethod
    def figures(self, confidence: float = 0.95) -> tuple[Figure, ...]:
        """The estimated numbers."""

    @property
    def size(self) -> int:
        """How many answers there are."""
        return sum(tally.size for tally in self.tallies)

    @property
    def cost(self) -> LocalDP:
        """What each respondent gave away by one answer."""
        cost: LocalDP = self.design.cost
        return cost

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know before using the numbers."""
        notes = []
        if self.design.trait:
            notes.append("others may know the innocuous trait, so these answers protected nobody")
        elif not self.cost.bounded:
            notes.append("an answer can give its respondent's truth away")
        if not self.size:
            notes.append("nobody has answered")
        elif any(figure.low >= figure.high for figure in self.figures()):
            notes.append(UNFIT)
        return tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        """All of it in JSON's types; figures are for readers and computed anew when read back."""
        return {
            "format": FORMAT,
            "software": "sfumato",
            "design": self.design.to_dict(),
            "tallies": [{"counts": list(t.counts), "size": t.size} for t in self.tallies],
            "figures": [_plain(figure) for figure in self.figures()],
            "cost": repr(self.cost),
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=2)

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("", "estimate", "standard error", "95 % interval")]
        for figure in self.figures():
            value, error, low, high = figure.cells()
            rows.append((printable(figure.label), value, error, f"[{low}, {high}]"))
        return rows

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("each respondent", repr(self.cost)), ("design", self.design.words())]
        return [*facts, *(("note", note) for note in self.notes)]

    def _title(self) -> str:
        return f"randomised response, {self.size:,} answers"

    def __str__(self) -> str:
        rows = self._rows()
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [self._title()]
        for label, *cells in rows:
            right = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
            lines.append("  " + "  ".join([label.ljust(widths[0]), *right]))
        return "\n".join([*lines, *(f"  {name}: {text}" for name, text in self._facts())])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head, *body = (_html_row(row, "td" if i else "th") for i, row in enumerate(self._rows()))
        facts = "".join(f"<li><b>{html.escape(n)}</b>: {html.escape(t)}</li>" for n, t in self._facts())
        table = f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"
        return f"<div><b>{html.escape(self._title())}</b>{table}<ul>{facts}</ul></div>"


def check_confidence(confidence: float) -> float:
    """How often an interval may miss."""
    failure = float(1 - between("confidence", exact_number("confidence", confidence), 0, 1))
    if failure < LEAST_FAILURE:
        rule = f"at most 1 - {LEAST_FAILURE}"
        raise InvalidParameter(f"confidence must be {rule}, got confidence={shown(confidence)}")
    return failure


def _plain(figure: Figure) -> dict[str, Any]:
    numbers = {"value": figure.value, "standard_error": figure.standard_error}
    known = {name: None if math.isnan(value) else value for name, value in numbers.items()}
    ends = {"confidence": figure.confidence, "low": figure.low, "high": figure.high}
    note = {"note": figure.note} if figure.note else {}
    return {"label": figure.label, **known, **ends, **note}


def _html_row(cells: Sequence[str], tag: str) -> str:
    style = ("left", *("right",) * (len(cells) - 1))
    return (
        "<tr>"
        + "".join(
            f'<{tag} style="text-align:{side};padding:0 1em 0 0">{html.escape(cell)}</{tag}>'
            for side, cell in zip(style, cells, strict=True)
        )
        + "</tr>"
    )
