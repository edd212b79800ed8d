r"""QExp as its source has it: a private quantile with a density that is constant between records.

The records of a row, sorted, cut the interval between the bounds into n + 1 cells. On the cell i the density
is proportional to :math:`e^{-c|i-pn|}`. The source takes the rate :math:`c=\varepsilon` and calls that
:math:`\varepsilon`-DP [A24]; it costs :math:`2\varepsilon` if a record is replaced (erratum E24). A rate of
:math:`\varepsilon/2` costs :math:`\varepsilon`.

All functions take many sets of data at once, one in each row of a matrix, and floats: this is a model of what
was published, to compare with, and not a mechanism to release anything by.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from sfumato.checks import between, exact, pair
from sfumato.errors import InvalidParameter
from sfumato.grid import Floats

Rates: TypeAlias = float | Floats


@dataclass(frozen=True, eq=False)
class Cells:
    """The law of one draw from each row: where the cells end, and how much of the law is on each.

    Attributes:
        edges: (rows, n + 2): the lower bound, the sorted records, the upper bound.
        masses: (rows, n + 1): what the law gives to each cell; a row adds up to one.
        ranks: how far each cell is from the target, in ranks: :math:`|i-pn|`.
    """

    edges: Floats
    masses: Floats
    ranks: Floats

    @property
    def heights(self) -> Floats:
        """The density on each cell; 0 on those of no width."""
        widths = np.diff(self.edges)
        return np.divide(self.masses, widths, out=np.zeros_like(widths), where=widths > 0)

    def squared(self, center: Floats) -> Floats:
        """The mean squared distance from the centre of each row."""
        offset = self._middles - np.asarray(center)[:, None]
        return self._mean(offset**2 + np.diff(self.edges) ** 2 / 12)

    def fourth(self, center: Floats) -> Floats:
        """The mean of the fourth power of the distance from the centre of each row."""
        square, width = (self._middles - np.asarray(center)[:, None]) ** 2, np.diff(self.edges) ** 2
        return self._mean(square**2 + square * width / 2 + width**2 / 80)

    def absolute(self, center: Floats) -> Floats:
        """The mean distance from the centre of each row."""
        return self._mean(self._distance(np.asarray(center)[:, None]))

    def below(self, places: Floats) -> Floats:
        """The chance of a draw below these places: (rows, k) for places of (rows, k) or (k,)."""
        wide = np.broadcast_to(np.asarray(places, dtype=np.float64), (len(self.edges), np.shape(places)[-1]))
        before = np.concatenate([np.zeros((len(self.edges), 1)), np.cumsum(self.masses, axis=1)], axis=1)
        return np.stack(
            [
                np.interp(row, edges, reached, left=0.0, right=1.0)
                for row, edges, reached in zip(wide, self.edges, before, strict=True)
            ]
        )

    def beyond(self, center: Floats, reach: Rates) -> Floats:
        """The chance of a draw that is more than `reach` from the centre of each row."""
        middle = np.asarray(center, dtype=np.float64)
        low, high = (middle - reach)[:, None], (middle + reach)[:, None]
        inside = np.minimum(self.edges[:, 1:], high) - np.maximum(self.edges[:, :-1], low)
        # Summed over what is outside, and not one minus the rest: the chance may be far below rounding.
        outside = np.diff(self.edges) - np.clip(inside, 0, None)
        chance: Floats = (self.heights * np.clip(outside, 0, None)).sum(axis=1)
        return chance

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Independent draws, (rows, size)."""
        reached = np.cumsum(self.masses, axis=1)
        total = reached[:, -1:]
        # Rounded up to the total, a number would fall behind the last cell.
        wanted = np.minimum(rng.random((len(total), size)) * total, np.nextafter(total, 0))
        if size <= len(total):
            cells = np.stack([(reached <= column[:, None]).sum(axis=1) for column in wanted.T], axis=1)
        else:
            pairs = zip(reached, wanted, strict=True)
            cells = np.stack([np.searchsorted(row, places, side="right") for row, places in pairs])
        left = np.take_along_axis(self.edges, cells, axis=1)
        right = np.take_along_axis(self.edges, cells + 1, axis=1)
        return left + (right - left) * rng.random((len(total), size))

    @property
    def _middles(self) -> Floats:
        return (self.edges[:, :-1] + self.edges[:, 1:]) / 2

    def _distance(self, center: Floats) -> Floats:
        left, right = self.edges[:, :-1], self.edges[:, 1:]
        away = np.abs(self._middles - center)
        within = (left < center) & (center < right)
        inner = (center - left) ** 2 + (right - center) ** 2
        return np.divide(inner, 2 * (right - left), out=away, where=within)

    def _mean(self, errors: Floats) -> Floats:
        mean: Floats = (self.masses * errors).sum(axis=1)
        return mean


def cells(rows: Floats, order: float, rate: Rates, bounds: tuple[float, float]) -> Cells:
    r"""The law of a draw from each row, with the density :math:`e^{-c|i-pn|}` on the cell i.

    Guarantee:
        Masses to a relative 1e-12, with ties, records on the bounds, and weights however far apart: cells of
        no width are left out before the largest weight is taken for the unit.

    Args:
        rows: (sets, n) records in any order; those out of bounds are moved to the bound.
        order: p, inside (0, 1).
        rate: c, or one for each row.
        bounds: of the interval that is drawn from.

    >>> law = cells(np.array([[1.0, 3.0, 3.0]]), 0.5, 1.0, (0, 4))
    >>> law.masses.round(3), law.edges
    (array([[0.134, 0.731, 0.   , 0.134]]), array([[0., 1., 3., 3., 4.]]))
    """
    low, high, records = _checked(rows, order, bounds)
    count = records.shape[1]
    ends = np.full((len(records), 1), low), np.full((len(records), 1), high)
    edges = np.concatenate([ends[0], np.sort(np.clip(records, low, high), axis=1), ends[1]], axis=1)
    ranks = np.abs(np.arange(count + 1) - float(order) * count)
    widths = np.diff(edges)
    rates = np.broadcast_to(np.asarray(rate, dtype=np.float64), len(records))[:, None]
    if not np.all((rates >= 0) & np.isfinite(rates)):
        raise InvalidParameter("rate must be finite and not negative")
    nearest = np.where(widths > 0, ranks, np.inf).min(axis=1, keepdims=True)
    # Of a cell without width the density may be larger than any, but nothing comes of it.
    masses = widths * np.exp(-rates * np.maximum(ranks - nearest, 0))
    return Cells(edges, masses / masses.sum(axis=1, keepdims=True), ranks)


def sample_quantile(rows: Floats, order: float) -> Floats:
    """The sample quantile of each row as the source has it: at p(n + 1), interpolated between neighbours.

    A place before the first record or after the last is that of the record.

    >>> sample_quantile(np.array([[4.0, 1.0, 2.0, 3.0]]), 0.25), sample_quantile(np.array([[7.0, 5.0]]), 0.1)
    (array([1.25]), array([5.]))
    """
    found: Floats = np.quantile(rows, float(order), axis=1, method="weibull")
    return found


def drawn(
    rows: Floats,
    order: float,
    rate: Rates,
    bounds: tuple[float, float],
    rng: np.random.Generator,
    size: int = 1,
) -> Floats:
    """Independent private quantiles, (sets, size), from the law of `cells`.

    >>> rows = np.array([[1.0, 3.0, 3.0], [0.0, 0.0, 0.0]])
    >>> values = drawn(rows, 0.5, 1000.0, (0, 4), np.random.default_rng(1), size=100)
    >>> values.shape, 1 <= values[0].min() <= values[0].max() <= 3, values[1].max() > 3
    ((2, 100), np.True_, np.True_)
    """
    return cells(rows, order, rate, bounds).draw(rng, size)


def _checked(rows: Any, order: Any, bounds: Any) -> tuple[float, float, Floats]:
    between("order", order, 0, 1)
    low, high = (float(exact("bounds", end)) for end in pair("bounds", bounds))
    if not low < high:
        raise InvalidParameter(f"bounds must increase, got bounds=({low:g}, {high:g})")
    records = np.asarray(rows, dtype=np.float64)
    if records.ndim != 2 or records.shape[1] < 1:
        raise InvalidParameter("rows must be a matrix with one set of records in each row")
    return low, high, records
