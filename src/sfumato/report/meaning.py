"""What a budget promises one person, in words and in a small table; rounded against ourselves."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.privacy import ZCDP, zcdp_to_approx
from sfumato.report.words import SPACE, short

# The delta at which a zero-concentrated promise is told as an epsilon.
USUAL_DELTA = Fraction(1, 10**6)
_BELIEFS = (1, 10, 50, 90)
_FALSE_ALARMS = (1, 5, 10, 50)
# Beyond this the floats of exp overflow, and the promise is empty anyway.
_LARGEST = 700


@dataclass(frozen=True)
class Row:
    """A chance before and the largest one after, in per cent: as text, and as numbers for a bar."""

    before: str
    after: str
    least: str
    start: float
    end: float


@dataclass(frozen=True)
class Meaning:
    """A promise in words: the kind, the factor of the odds, and the rows of the table."""

    kind: str
    epsilon: str
    delta: str
    one_in: str
    factor: str
    rho: str
    rows: tuple[Row, ...]
    others: tuple[tuple[str, str], ...]


def meaning(price: Any) -> Meaning:
    """The promise of a price: pure, approximate, or zero-concentrated and then told at a usual delta."""
    epsilon, delta = (Fraction(getattr(price, field, 0)) for field in ("epsilon", "delta"))
    rho = Fraction(getattr(price, "rho", 0))
    others: tuple[tuple[str, str], ...] = ()
    kind = "pure" if epsilon else "free"
    if rho:
        kind = "zcdp"
        told = {power: zcdp_to_approx(ZCDP(rho), Fraction(1, 10**power)) for power in (5, 6, 7, 8, 9)}
        others = tuple((one_in(one.delta), up(float(one.epsilon), 3)) for one in told.values())
        epsilon, delta = told[6].epsilon, USUAL_DELTA
    elif delta:
        kind = "approximate"
    limit = float(epsilon)
    pairs = [(limit, float(delta))]
    if rho:
        # A test is bounded at every delta, and best at one that suits its false alarms.
        deltas = [Fraction(1, parts) for parts in (2, 3, 5, 10, 20, 50, 100, 1000, 10**4, 10**6)]
        pairs = [(float(zcdp_to_approx(ZCDP(rho), delta).epsilon), float(delta)) for delta in deltas]
    rows = tuple(
        _belief(x, limit) if kind == "pure" else _alarm(x, pairs)
        for x in (_BELIEFS if kind == "pure" else _FALSE_ALARMS)
    )
    return Meaning(
        kind=kind,
        epsilon=short(epsilon) if kind != "zcdp" else up(limit, 3),
        delta=short(delta),
        one_in=one_in(delta) if delta else "",
        factor=up(math.exp(limit), 3) if limit < _LARGEST else "more than anyone can count",
        rho=short(rho),
        rows=rows,
        others=others,
    )


def up(value: float, digits: int) -> str:
    """A positive number in so many digits, never below itself.

    >>> up(2.71828, 3), up(1.0, 3), up(22026.47, 3)
    ('2.72', '1', '22,100')
    """
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    # A number that is one of so many digits already must not be raised by its own rounding.
    raised = math.ceil(value / unit - 1e-9) * unit
    return (
        f"{raised:,.{max(0, -math.floor(math.log10(unit)))}f}".rstrip("0").rstrip(".")
        if unit < 1
        else f"{raised:,.0f}"
    )


def one_in(delta: Fraction) -> str:
    """A small chance as "1 in 1,000,000", never smaller than it is."""
    return f"1 in {math.floor(1 / delta):,}"


def _belief(percent: int, epsilon: float) -> Row:
    # Bayes: the odds are multiplied by a likelihood ratio within exp(-epsilon) and exp(epsilon).
    before = percent / 100
    after = before / (before + (1 - before) * math.exp(-min(epsilon, _LARGEST)))
    least = before / (before + (1 - before) * math.exp(min(epsilon, _LARGEST)))
    return _row(percent, after, least)


def _alarm(percent: int, pairs: Sequence[tuple[float, float]]) -> Row:
    # The best test between two laws that are (epsilon, delta) apart, for each pair and rate of false alarms.
    alarm, found = percent / 100, 1.0
    for epsilon, delta in pairs:
        weight = math.exp(-min(epsilon, _LARGEST))
        found = min(found, alarm / weight + delta, 1 - weight * (1 - delta - alarm))
    return _row(percent, found, 0.0)


def _row(percent: int, after: float, least: float) -> Row:
    most, bottom = math.ceil(1000 * after - 1e-9) / 10, math.floor(1000 * least + 1e-9) / 10
    shown = f"{most:.1f}{SPACE}%" if most < 99.95 else f"nearly 100{SPACE}%"
    low = f"{bottom:.1f}{SPACE}%" if bottom > 0.05 else f"nearly 0{SPACE}%"
    return Row(f"{percent}{SPACE}%", shown, low, float(percent), min(most, 100.0))
