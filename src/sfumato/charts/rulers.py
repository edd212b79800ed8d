"""Axes whose ends and ticks are known before they are drawn, so that words find their place beside curves."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.charts.theme import Records, altair, extent

# How broad letters of Helvetica are, as shares of their size; bold ones are broader.
_NARROW, _BROAD = frozenset(" .,:;'|!ijl()[]{}ftrI/-·"), frozenset("mwMW%@—…")
_BOLD = 1.07
_LARGE = {"million": 1e6, "billion": 1e9}
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Ruler:
    """An axis from `low` to `high` with its ticks, plain or logarithmic.

    >>> Ruler(1.0, 100.0, log=True, ticks=(1.0, 10.0, 100.0)).share(10.0)
    0.5
    """

    low: float
    high: float
    log: bool
    ticks: tuple[float, ...]

    def share(self, value: float) -> float:
        """How far from the low end to the high end a value lies, from 0 to 1."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def at(self, share: float) -> float:
        """The value that lies so far between the ends."""
        if self.log:
            return self.low * math.exp(share * math.log(self.high / self.low))
        return self.low + share * (self.high - self.low)

    def scale(self) -> Any:
        """The scale for Altair, from end to end."""
        kind = "log" if self.log else "linear"
        return altair().Scale(type=kind, domain=[self.low, self.high], nice=False)

    def axis(self, **options: Any) -> Any:
        """The axis for Altair, with its ticks in words."""
        # Vega's own formats write 1e-5, and know of no ticks but their own.
        tests = (
            f"abs(datum.value - {tick!r}) <= {1e-9 * abs(tick)!r} ? '{plain(tick)}'" for tick in self.ticks
        )
        return altair().Axis(values=list(self.ticks), labelExpr=" : ".join([*tests, "''"]), **options)

    def breadth(self, size: int) -> float:
        """The pixels that the broadest number at a tick takes."""
        return max((across(plain(tick), size) for tick in self.ticks), default=0.0)


def log_ruler(low: float, high: float, room: float, *, size: int = 12, upright: bool = False) -> Ruler:
    """A logarithmic axis with as many clean ticks as find room: 1, 2 and 5, or powers of ten.

    >>> log_ruler(1, 100, 120).ticks
    (1.0, 10.0, 100.0)
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = math.log10(high / low)
    fine = [(1, 1.5, 2, 3, 4, 5, 6, 8)] if decades < 0.9 else []
    choices = [(digits, 1) for digits in (*fine, (1, 2, 5), (1,))]
    choices += [((1,), step) for step in range(2, max(last - first, 2) + 1)]
    wanted: list[float] = []
    for digits, step in choices:
        powers = (power for power in range(first, last + 1) if power % step == 0)
        every = [float(f"{digit}e{power}") for power in powers for digit in digits]
        found = [tick for tick in every if low <= tick * 1.0000001 and tick <= high * 1.0000001]
        if len(found) < 2 and wanted:
            break
        wanted = found
        if _fit(wanted, room, size, upright) and len(wanted) <= 8:
            break
    if len(wanted) < 2:
        wanted = list(_even_ticks(low, high, room, size, upright))
    return Ruler(low, high, log=True, ticks=tuple(wanted))


def even_ruler(low: float, high: float, room: float, *, size: int = 12, upright: bool = False) -> Ruler:
    """A plain axis with ticks at round numbers, few enough for the room.

    >>> even_ruler(0, 0.9, 200).ticks
    (0.0, 0.2, 0.4, 0.6, 0.8)
    """
    if high <= low:
        low, high = low - 0.5, high + 0.5
    return Ruler(low, high, log=False, ticks=_even_ticks(low, high, room, size, upright))


def ruler(
    values: Sequence[float],
    room: float,
    *,
    log: bool,
    zero: bool = False,
    margin: float = 0.04,
    headroom: float = 0.0,
    size: int = 12,
    upright: bool = False,
) -> Ruler:
    """An axis over all values, with a margin, and headroom; `zero` makes a plain one start there."""
    low, high = min(values), max(values)
    if log:
        reach = max((high / low) ** margin, 1 + margin)
        return log_ruler(low / reach, high * reach, room, size=size, upright=upright)
    # An axis of positive numbers that nearly reaches zero is read as if it did.
    from_zero = zero or (upright and 0 <= low <= 0.25 * high)
    low, high = (min(low, 0.0), max(high, 0.0)) if from_zero else (low, high)
    pad = margin * (high - low) or 0.1 * abs(high) or 1.0
    low = low if from_zero and low == 0 else low - pad
    high = high if from_zero and high == 0 < -low else high + pad + headroom * (high - low)
    return even_ruler(low, high, room, size=size, upright=upright)


def log_domain(data: Records, name: str) -> list[float]:
    """The values with some room above and below, on a logarithmic axis; lower bounds may leave it below."""
    low, high = extent(data, name)
    others = [row for row in data if row["kind"] != "lower bound"]
    low = max(low, extent(others, name)[0] / 100) if others else low
    room = max((high / low) ** 0.06, 1.25)
    return [low / room, high * room]


def spread(wanted: Sequence[float], heights: Sequence[float], whole: float) -> list[float]:
    """Places as near to the wanted ones as can be, in their order, where things so high do not overlap.

    All of them lie from 0 to `whole`, if they find room there.

    >>> spread([10.0, 10.0, 90.0], [20.0, 20.0, 20.0], 100.0)
    [10.0, 30.0, 90.0]
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    gaps = [(heights[i] + heights[j]) / 2 for i, j in itertools.pairwise(order)]
    below = list(itertools.accumulate(gaps, initial=0.0))
    # With the gaps taken away only the order is left to keep: least squares pools neighbours that break it.
    pools: list[list[float]] = []
    for i, taken in zip(order, below, strict=True):
        pools.append([wanted[i] - taken, 1.0])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (left, many), (right, more) = pools[-2:]
            pools[-2:] = [[(left * many + right * more) / (many + more), many + more]]
    least = heights[order[0]] / 2
    most = max(whole - heights[order[-1]] / 2 - below[-1], least)
    fitted = [min(max(value, least), most) for value, count in pools for _ in range(int(count))]
    found = [0.0] * len(wanted)
    for i, value, taken in zip(order, fitted, below, strict=True):
        found[i] = value + taken
    return found


def across(text: str, size: float, *, bold: bool = False) -> float:
    """About how many pixels the longest line of a text takes."""
    return max(sum(map(_breadth, line)) for line in text.split("\n")) * size * (_BOLD if bold else 1.0)


def wrapped(text: str, width: float, size: float, *, bold: bool = False) -> list[str]:
    """The text in lines that are about as broad as the width at most; words are kept whole."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and across(longer, size, bold=bold) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def plain(value: float) -> str:
    """A number as readers write it: all digits where they are few, else with a power of ten.

    >>> plain(0.0001), plain(100_000.0), plain(2e-8), plain(1e8)
    ('0.0001', '100,000', '2·10⁻⁸', '100 million')
    """
    for name, size in _LARGE.items():
        if size <= abs(value) * 1.0000001 and abs(value) < 999.5 * size:
            return f"{plain(float(f'{value / size:.4g}'))} {name}"
    if value == 0 or 0.99e-6 <= abs(value) < 1e6:
        # Eight digits, because 3 x 0.1 is no 0.3.
        digits = 8 if value == 0 else max(0, 7 - math.floor(math.log10(abs(value))))
        text = f"{value:,.{digits}f}"
        return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")
    mantissa, _, power = f"{value:.3e}".partition("e")
    head = mantissa.rstrip("0").rstrip(".")
    raised = f"10{str(int(power)).translate(_SUPERSCRIPT)}"
    return {"1": raised, "-1": f"−{raised}"}.get(head, f"{head}·{raised}".replace("-", "−"))


def _breadth(letter: str) -> float:
    if letter in _NARROW:
        return 0.31
    return 0.9 if letter in _BROAD or ord(letter) > 0x2FFF else 0.7 if letter.isupper() else 0.56


def _even_ticks(low: float, high: float, room: float, size: int, upright: bool) -> tuple[float, ...]:
    best: tuple[float, ...] = ()
    power = math.floor(math.log10((high - low) / 10))
    for exponent, digit in itertools.product(range(power, power + 4), (1, 2, 5)):
        step = float(f"{digit}e{exponent}")
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        # Rounded to the digits of the step, as `plain` does.
        ticks = tuple(round(i * step, max(0, -exponent) + 1) for i in range(first, last + 1))
        if len(ticks) < 2 and best:
            break
        best = ticks
        if len(ticks) <= (8 if upright else 7) and _fit(ticks, room, size, upright):
            break
    return best


def _fit(ticks: Sequence[float], room: float, size: int, upright: bool) -> bool:
    if upright:
        return len(ticks) * 2.1 * size <= room
    return sum(across(plain(tick), size) + size for tick in ticks) <= room
