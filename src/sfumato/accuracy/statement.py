"""What is known about the accuracy of an answer before it is paid for."""

import html
import math
from dataclasses import dataclass
from typing import Literal

from sfumato.checks import readable

How = Literal["exact", "bound", "simulated"]


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """How far an answer would be from the data's own, with a confidence; nothing was read or spent.

    Args:
        statistic: the name of the statistic.
        column: the name of the column.
        rows: the number of values that was assumed; None where it does not matter.
        confidence: of each number by itself; for a bound on the ranks of quantiles, of all together.
        labels: the names of the numbers.
        errors: for each number how far off it is at most, in the units of the answer; None for quantiles
            without a scenario.
        ranks: for each quantile how many ranks its value is from its target; None for other statistics.
        how: "exact" if no smaller number holds, up to the rounding of values to a fine lattice; "bound" if it
            holds on any data; "simulated" if draws from the mechanism on typical data gave it.
        monte_carlo: the standard error of the largest of `errors` where it was simulated, else 0.
        monte_carlo_ranks: the same for the largest of `ranks`.
        scenario: what was assumed about the data, in words; None if nothing.
        any_data: for quantiles, the number of ranks that holds on any data, for all orders together.
        interval_ranks: for each quantile whose interval counts verify, about how many ranks wide that is on
            average, where neighbouring values differ alike; None for others.
        interval_widths: the same in value, under a scenario.
        notes: what a reader should know.

    Guarantee:
        Follows from public facts and the scenario. A bound holds on any data with at least the confidence;
        what was computed under a scenario holds for data like it.

    >>> found = Accuracy(
    ...     statistic="mean", column="age", rows=1000, confidence=0.95, labels=("mean",), errors=(0.3,),
    ...     how="exact",
    ... )
    >>> print(found)
    mean of age, 1,000 values, 95 %: within 0.3 (exact)
    """

    statistic: str
    column: str = "values"
    rows: int | None = None
    confidence: float
    labels: tuple[str, ...]
    errors: tuple[float, ...] | None = None
    ranks: tuple[float, ...] | None = None
    how: How
    monte_carlo: float = 0.0
    monte_carlo_ranks: float = 0.0
    scenario: str | None = None
    any_data: float | None = None
    interval_ranks: tuple[float, ...] | None = None
    interval_widths: tuple[float, ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def error(self) -> float | None:
        """The largest error of all numbers, or None."""
        return None if self.errors is None else max(self.errors)

    @property
    def rank_error(self) -> float | None:
        """The largest rank error of all quantiles, or None."""
        return None if self.ranks is None else max(self.ranks)

    @property
    def within(self) -> str:
        """How far off, in words, and how this is known."""
        parts = []
        if self.ranks is not None:
            parts.append(_ranks(max(self.ranks), self.monte_carlo_ranks))
        if self.errors is not None:
            unit = " in value" if self.ranks is not None else ""
            parts.append(f"{_off(max(self.errors), self.monte_carlo)}{unit}")
        spread = self.monte_carlo or self.monte_carlo_ranks
        together = " for all together" if self.ranks is not None and len(self.labels) > 1 else ""
        known = {
            "exact": "exact",
            "bound": "a bound on any data" + f",{together}" * bool(together),
            "simulated": "simulated",
        }[self.how]
        about = "" if self.scenario is None else f" for {self.scenario}"
        about += ", ± one standard error" * bool(spread)
        bound = self.any_data if self.scenario is not None else None
        beside = "" if bound is None else f"; on any data {_ranks(bound, 0)}{together}"
        wide = f"; {self.verified}" if self.verified else ""
        return f"within {' and '.join(parts)} ({known}{about}{beside}){wide}"

    @property
    def verified(self) -> str:
        """About how wide intervals are that counts verify, in words; nothing where they do not."""
        if self.interval_ranks is None:
            return ""
        wide = f"{_about(self.interval_ranks)} ranks"
        wide += "" if self.interval_widths is None else f" and {_about(self.interval_widths)} in value"
        return f"verified interval{'s' * (len(self.labels) > 1)} about {wide} wide"

    def __str__(self) -> str:
        return "\n".join([f"{self._title()}: {self.within}", *(f"  note: {note}" for note in self.notes)])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        columns = [("ranks", self.ranks), ("error", self.errors)]
        shown = [(name, numbers) for name, numbers in columns if numbers is not None]
        head = "".join(f"<th>{name}</th>" for name, _ in shown)
        rows = "".join(
            f"<tr><td>{html.escape(label)}</td>"
            + "".join(f"<td>{readable(numbers[i])}</td>" for _, numbers in shown)
            + "</tr>"
            for i, label in enumerate(self.labels)
        )
        facts = "".join(f"<li>{html.escape(fact)}</li>" for fact in (self.within, *self.notes))
        table = f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table>"
        return f"<div><b>{html.escape(self._title())}</b>{table}<ul>{facts}</ul></div>"

    def _title(self) -> str:
        column = self.column if self.column.isprintable() else repr(self.column)[1:-1]
        values = "" if self.rows is None else f", {self.rows:,} values"
        each = " each" if len(self.labels) > 1 and not (self.ranks and self.how == "bound") else ""
        name = self.statistic.replace("_", " ") if self.ranks is None else _kind(self.labels)
        return f"{name} of {column}{values}, {100 * self.confidence:.6g} %{each}"


def _kind(orders: tuple[str, ...]) -> str:
    """The usual name of these quantiles."""
    names = {2: "median", 4: "quartiles", 10: "deciles", 20: "ventiles", 100: "percentiles"}
    parts = len(orders) + 1
    even = parts in names and list(orders) == [f"{i / parts:g}" for i in range(1, parts)]
    return names[parts] if even else "quantiles"


def _ranks(ranks: float, error: float) -> str:
    if math.isinf(ranks):
        return "any number of ranks"
    return f"{_off(ranks, error)} ranks"


def _about(widths: tuple[float, ...]) -> str:
    """The narrowest and the widest, to two digits."""
    least, most = (readable(float(f"{end:.2g}")) for end in (min(widths), max(widths)))
    return least if least == most else f"{least} to {most}"


def _off(error: float, uncertainty: float) -> str:
    figure = readable(float(f"{error:.4g}"))
    return f"{figure} ± {readable(float(f'{uncertainty:.2g}'))}" if uncertainty else figure
