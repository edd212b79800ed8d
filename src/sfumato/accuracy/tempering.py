"""The limit of the exponential mechanism whose utility is a log density: a power of that density."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.checks import Number, keep, normal, pair, shown, whole
from sfumato.errors import InvalidParameter
from sfumato.grid import Floats, exact_bounds

MOST_CELLS = 2**22
# Panels and nodes of the quadrature.
_PANELS, _NODES, _STEEPEST = 1024, 8, 5
# So many halvings of a panel leave nothing that float64 can tell apart.
_HALVINGS = 52


@dataclass(frozen=True)
class TemperedLimit:
    r"""The law with density proportional to a power of a given one: what fine grids of a log utility tend to.

    Statement: the exponential mechanism with the utility :math:`u=\ln f` of sensitivity :math:`\varepsilon'`
    has the weights :math:`e^{\varepsilon u/2\varepsilon'}=f^{\varepsilon/2\varepsilon'}`. On finer and finer
    grids of [a, b] its law tends to the density proportional to that power, which is f if and only if
    :math:`\varepsilon=2\varepsilon'`. Hypotheses: f is continuous and positive on [a, b];
    :math:`\varepsilon'=\sup|\ln f(X,\cdot)-\ln f(X',\cdot)|`. The mechanism then certifies
    :math:`2\varepsilon'` for what is :math:`\varepsilon'`-DP: the factor 2 is the price of not looking at the
    normaliser. Proof: docs/proofs/inverse-sensitivity.md.

    Guarantee:
        Density, distribution function and quantiles by quadrature on 1024 panels: to 1e-9 if f is smooth
        within panels, to 1e-5 if it has corners. A power so steep that panels are too coarse is refused.

    Args:
        given: f, a function of an array that returns an array; it need not integrate to 1.
        epsilon: the budget of the mechanism.
        epsilon_prime: the sensitivity of the utility.
        bounds: a and b.

    >>> limit = TemperedLimit(lambda y: np.exp(-8 * abs(y - 0.5)), epsilon=1, epsilon_prime=1, bounds=(0, 1))
    >>> limit.power, round(float(limit.cdf(0.25)), 4)
    (0.5, 0.1345)
    """

    given: Callable[[Any], Any]
    epsilon: float
    epsilon_prime: float
    bounds: tuple[float, float]
    _edges: Floats = field(repr=False, compare=False)
    _sums: Floats = field(repr=False, compare=False)
    _log_top: float = field(repr=False, compare=False)

    def __init__(
        self,
        given: Callable[[Any], Any],
        epsilon: Number,
        epsilon_prime: Number,
        bounds: tuple[Number, Number],
    ) -> None:
        if not callable(given):
            raise InvalidParameter(f"density must be a function, got density={shown(given)}")
        low, high = (float(bound) for bound in exact_bounds(*pair("bounds", bounds)))
        keep(
            self,
            given=given,
            epsilon=normal("epsilon", epsilon),
            epsilon_prime=normal("epsilon_prime", epsilon_prime),
            bounds=(low, high),
        )
        edges = low + (high - low) * (np.arange(_PANELS + 1) / _PANELS)
        edges[-1] = high
        nodes, _ = _rule(edges[:-1], edges[1:])
        ends, logs = self._logs(edges), self._logs(nodes)
        if max(np.abs(np.diff(logs)).max(), np.abs(np.diff(ends)).max()) > _STEEPEST:
            raise InvalidParameter(
                f"density to the power epsilon / (2 epsilon_prime), {self.power:.6g}, must move by a factor "
                f"of at most e^{_STEEPEST} within 1/{_PANELS} of the bounds"
            )
        top = float(max(logs.max(), ends.max()))
        keep(self, _edges=edges, _log_top=top)
        masses = self._integral(edges[:-1], edges[1:])
        keep(self, _sums=np.concatenate([[0.0], np.cumsum(masses)]))

    @property
    def power(self) -> float:
        """The power of the density that is drawn from: epsilon / (2 epsilon')."""
        return self.epsilon / self.epsilon_prime / 2

    def density(self, value: Any) -> Any:
        """The density of the limit at each value; zero out of bounds."""
        y = np.asarray(value, dtype=np.float64)
        low, high = self.bounds
        inner = np.exp(self._logs(np.clip(y, low, high)) - self._log_top) / self._sums[-1]
        return np.where((y >= low) & (y <= high), inner, 0.0)

    def cdf(self, value: Any) -> Any:
        """The probability of values up to each value."""
        y = np.clip(np.asarray(value, dtype=np.float64), *self.bounds)
        panel = np.clip(np.searchsorted(self._edges, y, side="right") - 1, 0, _PANELS - 1)
        return np.minimum((self._sums[panel] + self._integral(self._edges[panel], y)) / self._sums[-1], 1.0)

    def quantile(self, share: Any) -> Any:
        """The value below which the law has each share of its mass."""
        mass = np.clip(np.asarray(share, dtype=np.float64), 0.0, 1.0) * self._sums[-1]
        panel = np.clip(np.searchsorted(self._sums, mass, side="left") - 1, 0, _PANELS - 1)
        left, right, start = self._edges[panel], self._edges[panel + 1], self._edges[panel]
        for _ in range(_HALVINGS):
            middle = (left + right) / 2
            below = self._sums[panel] + self._integral(start, middle) < mass
            left, right = np.where(below, middle, left), np.where(below, right, middle)
        found = np.where(mass <= 0, self.bounds[0], right)
        return np.where(mass >= self._sums[-1], self.bounds[1], found)

    def points(self, cells: int) -> tuple[Floats, Floats]:
        """The points a + (b - a)k/N, k = 0..N, and their probabilities under the exponential mechanism."""
        number = whole("cells", cells, least=1, most=MOST_CELLS)
        low, high = self.bounds
        places = np.minimum(low + (high - low) * (np.arange(number + 1) / number), high)
        logs = self._logs(places)
        weights = np.exp(logs - logs.max())
        return places, weights / weights.sum()

    def distance(self, cells: int) -> float:
        """The largest difference of the distribution functions on N cells and of the limit."""
        places, chances = self.points(cells)
        sums, smooth = np.cumsum(chances), self.cdf(places)
        return float(max(np.abs(sums - smooth).max(), np.abs(sums - chances - smooth).max()))

    def _logs(self, y: Floats) -> Floats:
        """The log of the power of the given density."""
        found = np.asarray(self.given(y), dtype=np.float64)
        if found.shape != y.shape or not np.all((found > 0) & (found < math.inf)):
            raise InvalidParameter(
                "density must return a positive finite number for each value within bounds"
            )
        return self.power * np.log(found)

    def _integral(self, start: Floats, end: Floats) -> Floats:
        """The integral of the power over each [start, end], over its largest value."""
        nodes, weights = _rule(start, end)
        found: Floats = (np.exp(self._logs(nodes) - self._log_top) * weights).sum(axis=-1)
        return found


def tempered_limit(
    density: Callable[[Any], Any], epsilon: Number, epsilon_prime: Number, bounds: tuple[Number, Number]
) -> TemperedLimit:
    r"""The limit of the exponential mechanism whose utility is the log of a density.

    Guarantee:
        The law of `TemperedLimit`: the density to the power :math:`\varepsilon/2\varepsilon'`, normalised.
        Proof: docs/proofs/inverse-sensitivity.md.

    Args:
        density: f, the `given` of `TemperedLimit`.
        epsilon, epsilon_prime, bounds: as there.

    >>> limit = tempered_limit(lambda y: 1 + y, 2, 1, (0, 1))
    >>> limit.power, round(float(limit.density(0)), 6), round(float(limit.quantile(limit.cdf(0.3))), 6)
    (1.0, 0.666667, 0.3)
    """
    return TemperedLimit(density, epsilon, epsilon_prime, bounds)


def _rule(start: Any, end: Any) -> tuple[Floats, Floats]:
    """The nodes and weights of Gauss's rule on each [start, end], in the last axis."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    left, half = np.asarray(start)[..., None], (np.asarray(end) - np.asarray(start))[..., None] / 2
    return left + half * (nodes + 1), half * weights
