"""The limit of the exponential mechanism for a mean on [0, 1]: a truncated Laplace law, and its distance."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.checks import Number, exact, keep, normal, positive, shown, whole
from sfumato.errors import InvalidParameter
from sfumato.grid import Floats

MOST_CELLS = 2**24


@dataclass(frozen=True)
class MeanLimit:
    r"""The Laplace law around the mean, truncated to [0, 1]: what fine grids of the exponential mean tend to.

    Statement: on the points k/N, k = 0..N, with weights :math:`\exp(-\lambda|k/N-\theta|)`, the law tends to
    the density :math:`\lambda e^{-\lambda|y-\theta|}/(2-e^{-\lambda\theta}-e^{-\lambda(1-\theta)})` there.
    For n records and a budget :math:`\varepsilon`, :math:`\lambda=n\varepsilon/2`. The limit is truncated,
    not clamped: it has no atoms at 0 and 1. Draws on finer and finer grids do not settle down, because they
    are independent; their law does. Proof: docs/proofs/inverse-sensitivity.md.

    Guarantee:
        Density, distribution function, characteristic function and moments of this law, in float64.

    Args:
        center: the mean, in [0, 1].
        rate: the positive number of powers of e that the density falls by on [0, 1].

    >>> limit = MeanLimit(center=0.5, rate=400)
    >>> round(float(limit.density(0.5))), round(limit.variance ** 0.5, 6)
    (200, 0.003536)
    """

    center: float
    rate: float

    def __init__(self, center: Number, rate: Number) -> None:
        middle = exact("center", center)
        if not 0 <= middle <= 1:
            raise InvalidParameter(f"center must be in [0, 1], got center={shown(center)}")
        keep(self, center=float(middle), rate=normal("rate", rate))

    @property
    def _left(self) -> float:
        return -math.expm1(-self.rate * self.center)

    @property
    def _right(self) -> float:
        return -math.expm1(-self.rate * (1 - self.center))

    @property
    def _total(self) -> float:
        return self._left + self._right

    def density(self, value: Any) -> Any:
        """The density at each value; zero outside [0, 1]."""
        y = np.asarray(value, dtype=np.float64)
        inside = self.rate / self._total * np.exp(-self.rate * np.abs(y - self.center))
        return np.where((y >= 0) & (y <= 1), inside, 0.0)

    def cdf(self, value: Any) -> Any:
        """The probability of [0, value]."""
        y = np.clip(np.asarray(value, dtype=np.float64), 0.0, 1.0)
        # Each side is measured from its own end, so that small probabilities keep their digits.
        below = np.exp(-self.rate * (self.center - np.minimum(y, self.center)))
        below = below * -np.expm1(-self.rate * np.minimum(y, self.center)) / self._total
        up = -np.expm1(-self.rate * np.maximum(y - self.center, 0.0))
        return np.where(y <= self.center, below, (self._left + up) / self._total)

    def quantile(self, share: Any) -> Any:
        """The value below which the law has each share of its mass."""
        mass = np.clip(np.asarray(share, dtype=np.float64), 0.0, 1.0) * self._total
        low = np.minimum(mass, self._left)
        up = np.clip(mass - self._left, 0.0, self._right)
        # The log of nothing is where no mass is left: at an end.
        with np.errstate(divide="ignore"):
            if self.rate * self.center < 1:
                down = np.log1p(low - self._left) / self.rate + self.center
            else:
                down = np.log(low + math.exp(-self.rate * self.center)) / self.rate + self.center
            above = self.center - np.log1p(-np.minimum(up, 1.0)) / self.rate
        return np.clip(np.where(mass <= self._left, down, above), 0.0, 1.0)

    def characteristic(self, frequency: Any) -> Any:
        """E exp(i t Y) for each real t."""
        t = np.asarray(frequency, dtype=np.float64)
        sides = ((self.rate + 1j * t, self.center), (self.rate - 1j * t, 1 - self.center))
        left, right = (-np.expm1(-fall * width) / fall for fall, width in sides)
        return self.rate / self._total * np.exp(1j * t * self.center) * (left + right)

    @property
    def mean(self) -> float:
        """The expectation: nearer to 1/2 than the center."""
        return self.center + self._moment(1)

    @property
    def variance(self) -> float:
        """The variance."""
        return self._moment(2) - self._moment(1) ** 2

    def _moment(self, order: int) -> float:
        """The moment of an order around the center."""
        right, left = (_side_moment(order, self.rate, end) for end in (1 - self.center, self.center))
        return (right + (left if order % 2 == 0 else -left)) / self._total

    def area(self, value: Any) -> Any:
        """The integral of the distribution function from 0 to each value of [0, 1]."""
        return self.growth(0.0, value)

    def growth(self, start: Any, end: Any) -> Any:
        """The integral of F(y) - F(start) over [start, end] in [0, 1], to all digits also if it is small."""
        left, right = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
        middle = np.clip(self.center, left, right)
        below, above = middle - left, right - middle
        # Each side of the center is measured from its end that is nearer to it.
        sides = below * _curve(self.rate * below) + above * _curve(-self.rate * above)
        curved = np.exp(-self.rate * np.abs(middle - self.center)) * sides / self._total
        return curved + (self.cdf(middle) - self.cdf(left)) * above

    def points(self, cells: int) -> tuple[Floats, Floats]:
        """The points k/N, k = 0..N, and their probabilities under the exponential mechanism."""
        number = whole("cells", cells, least=1, most=MOST_CELLS)
        places = np.arange(number + 1) / number
        logs = -self.rate * np.abs(places - self.center)
        weights = np.exp(logs - logs.max())
        return places, weights / weights.sum()


def _curve(exponent: Floats) -> Floats:
    """(e^u - 1 - u) / |u| for u <= 0, and e^-u times it for u > 0; zero at 0."""
    size = np.abs(exponent)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(exponent > 0, -np.expm1(-size) - size * np.exp(-size), np.expm1(-size) + size) / size
    # A series where the terms cancel: u/2 + u^2/6 + ...
    near = np.clip(exponent, -0.5, 0.5)
    series = sum(near ** (k - 1) / math.factorial(k) for k in range(2, 16))
    series = np.where(exponent > 0, series * np.exp(-near), -series)
    return np.where(size < 0.5, series, far)


def _side_moment(order: int, rate: float, end: float) -> float:
    """rate times the integral of y^order e^(-rate y) over [0, end]."""
    if rate * end < 0.1:
        terms = ((-rate * end) ** k / math.factorial(k) / (order + 1 + k) for k in range(12))
        return rate * end ** (order + 1) * math.fsum(terms)
    last = math.exp(-rate * end)
    first = (1 - last) / rate - end * last
    return first if order == 1 else 2 * first / rate - end**2 * last


def exponential_mean_limit(rows: int, epsilon: Number, mean: Number) -> MeanLimit:
    r"""The limit of the exponential mean of n records in [0, 1] as its grid is refined.

    Guarantee:
        The law of `MeanLimit`, its rate being :math:`n\varepsilon/2`.
        Proof: docs/proofs/inverse-sensitivity.md.

    Args:
        rows: the number n of records.
        epsilon: the budget.
        mean: the data's mean.

    >>> exponential_mean_limit(1000, 0.8, 0.5)
    MeanLimit(center=0.5, rate=400.0)
    """
    return MeanLimit(mean, whole("rows", rows, least=1, most=2**62) * positive("epsilon", epsilon) / 2)


def kolmogorov_distance(limit: MeanLimit, cells: int) -> float:
    r"""The largest difference of the distribution functions of the law on N cells and of its limit.

    Guarantee:
        Exact but for the rounding of float64, and at most `limit_distance_bound` times the larger of 1 and
        the largest density. Proof: docs/proofs/inverse-sensitivity.md.

    >>> limit = MeanLimit(0.3, 8)
    >>> [round(cells * kolmogorov_distance(limit, cells), 2) for cells in (100, 1000)]
    [2.19, 2.19]
    """
    places, chances = limit.points(cells)
    sums, smooth = np.cumsum(chances), limit.cdf(places)
    return float(max(np.abs(sums - smooth).max(), np.abs(sums - chances - smooth).max()))


def wasserstein_distance(limit: MeanLimit, cells: int) -> float:
    r"""How far mass must be moved, on average, from the law on N cells to its limit.

    Guarantee:
        The integral of the difference of the distribution functions, exact but for the rounding of float64;
        at most `limit_distance_bound`. Proof: docs/proofs/inverse-sensitivity.md.

    >>> limit = MeanLimit(0.3, 8)
    >>> [round(cells * wasserstein_distance(limit, cells), 3) for cells in (100, 1000)]
    [0.259, 0.26]
    """
    places, chances = limit.points(cells)
    steps = np.cumsum(chances)[:-1]
    left, right = places[:-1], places[1:]
    # The step function meets the smooth one at most once between two points.
    middle = np.clip(limit.quantile(steps), left, right)
    below = (steps - limit.cdf(left)) * (middle - left) - limit.growth(left, middle)
    above = (limit.cdf(middle) - steps) * (right - middle) + limit.growth(middle, right)
    return float(np.abs(below).sum() + np.abs(above).sum())


def limit_distance_bound(limit: MeanLimit, cells: int) -> float:
    r"""A bound of order 1/N for the distance between the law on N cells and its limit.

    Statement: :math:`W_1\le\frac1{N+1}+1-e^{-2\lambda/(N+1)}`; the characteristic functions differ at t by at
    most :math:`\frac{|t|}{N+1}+2(1-e^{-2\lambda/(N+1)})`. Proof: docs/proofs/inverse-sensitivity.md.

    Guarantee:
        At least `wasserstein_distance`, for every center, rate and number of cells.

    >>> round(limit_distance_bound(MeanLimit(0.3, 8), 1000), 4)
    0.0169
    """
    number = whole("cells", cells, least=1, most=2**62) + 1
    return 1 / number - math.expm1(-2 * limit.rate / number)


def truncated_laplace_level(rows: int, epsilon: Number) -> float:
    r"""The exact privacy level of Laplace noise on a mean that is truncated to the bounds, and not clamped.

    Statement: the mean of n records in [0, 1] with Laplace noise of scale :math:`1/(ne)`, conditioned on
    falling into [0, 1], has the level :math:`e+\log\frac{2-e^{-e}-e^{-(n-1)e}}{1-e^{-ne}}`, attained between
    the means 0 and 1/n at the answer 0. Clamped to [0, 1] it has the level e. Erratum: the truncated law is
    said to have the level of the Laplace mechanism. Proof: docs/proofs/inverse-sensitivity.md.

    Guarantee:
        The supremum of the log ratio over all neighbours and answers, to a relative 1e-12.

    Args:
        rows: the number n of records.
        epsilon: the number e, which is the level of the clamped law.

    >>> [round(truncated_laplace_level(1000, e), 3) for e in (0.1, 0.4, 1)]
    [0.191, 0.685, 1.49]
    """
    size, e = whole("rows", rows, least=1, most=2**62), normal("epsilon", epsilon)
    # The fraction is 1 + (1 - x)(1 - y)/(1 - xy), with x = e^-e and y = e^-(n-1)e.
    excess = math.expm1(-e) / math.expm1(-size * e) * -math.expm1(-(size - 1) * e)
    return e + math.log1p(excess)
