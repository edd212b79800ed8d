r"""Penalised logistic regression with a certificate: how long the exact gradient is, at most.

The objective is a sum over private rows of log(1 + exp(-b.f)), plus kappa times a sum over public rows of
log(1 + exp(b.f)), plus Lambda |b|^2 / 2. A row f is an integer vector of length at most K, divided by K.
Floats find the slopes; the gradient there is then bounded with all rounding counted.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.errors import NotSupported
from sfumato.grid import Floats, Ints
from sfumato.laws.gaussian import check_exponential

# The float64 exponential errs by less than 2^-40 (checked before the first use), what follows by less.
SIGMOID_ERROR = 2.0**-39
_UNIT = 2.0**-53
# Sigmoids as integers in steps of 2^-40: their products with a lattice of 2^20 fit into 64 bits.
_SIGMOID_BITS = 40
_LOW_BITS = 30
_MOST_STEPS = 500


@dataclass(frozen=True)
class Objective:
    """The public constants of the regression: the weight of a public row, the penalty and the lattice."""

    public_weight: float
    penalty: float
    steps: int

    def evaluation_error(self, rows: float, public_rows: float, coordinates: int, length: float) -> float:
        """How far a computed gradient can be from the exact one, in L2, at slopes of this length."""
        # A product of two vectors errs by their lengths times (d + 2) units, whatever the order of its sum; a
        # sigmoid moves by a quarter of that.
        each = SIGMOID_ERROR + 2.0 ** -(_SIGMOID_BITS + 1) + (coordinates + 2) * _UNIT * length / 2
        sums = (rows + self.public_weight * public_rows) * (each + 8 * _UNIT)
        return float(sums + 8 * _UNIT * self.penalty * length)

    def longest(self, rows: float, public_rows: float) -> float:
        """The length of the minimising slopes, at most: no value there is above the one at zero slopes."""
        mass = (rows + self.public_weight * public_rows) / self.penalty
        return min(mass, math.sqrt(2 * math.log(2) * mass))

    def tolerance(self, rows: int, public_rows: int, coordinates: int) -> Fraction:
        """The public bound on the gradient that a search reaches on any table of at most so many rows."""
        floor = self.evaluation_error(rows, public_rows, coordinates, 2 * self.longest(rows, public_rows))
        return max(Fraction(1, 256), 3 * Fraction(floor))

    def gradient(self, private: Ints, public: Ints, slopes: Floats) -> tuple[Floats, float]:
        """The gradient, and a bound on its distance to the exact one."""
        mine = exact_sum(private, sigmoid(-self._exponents(private, slopes)))
        theirs = exact_sum(public, sigmoid(self._exponents(public, slopes)))
        found = self.public_weight * theirs / self.steps - mine / self.steps + self.penalty * slopes
        length = float(np.linalg.norm(slopes)) * (1 + 1e-12)
        return found, self.evaluation_error(len(private), len(public), len(slopes), length)

    def _exponents(self, vectors: Ints, slopes: Floats) -> Floats:
        found: Floats = (vectors / self.steps) @ slopes
        return found

    def value(self, private: Ints, public: Ints, slopes: Floats) -> float:
        """The objective, in floats."""
        mine = np.logaddexp(0.0, -self._exponents(private, slopes)).sum()
        theirs = np.logaddexp(0.0, self._exponents(public, slopes)).sum()
        return float(mine + self.public_weight * theirs + self.penalty / 2 * slopes @ slopes)

    def curvature(self, vectors: Ints, slopes: Floats) -> Floats:
        """The second derivatives of the sum over these rows."""
        share = sigmoid(self._exponents(vectors, slopes))
        scaled = vectors / self.steps
        found: Floats = (scaled * (share * (1 - share))[:, None]).T @ scaled
        return found


def sigmoid(exponents: Floats) -> Floats:
    """1 / (1 + exp(-t)), without overflow."""
    small = np.exp(-np.abs(exponents))
    return np.where(exponents >= 0, 1.0, small) / (1.0 + small)


def exact_sum(vectors: Ints, sigmoids: Floats) -> Floats:
    """The sum of integer vectors times sigmoids in steps of 2^-40, exact until it becomes a float.

    >>> exact_sum(np.array([[3, -1], [1, 1]]), np.array([0.5, 0.25])).tolist()
    [1.75, -0.25]
    """
    levels = np.rint(sigmoids * 2.0**_SIGMOID_BITS).astype(np.int64)
    # Products stay below 2^61, and each half of them below 2^31: 2^32 rows add up in 64 bits.
    products = vectors * levels[:, None]
    low = (products & (2**_LOW_BITS - 1)).sum(axis=0).tolist()
    high = (products >> _LOW_BITS).sum(axis=0).tolist()
    totals = [(upper << _LOW_BITS) + lower for upper, lower in zip(high, low, strict=True)]
    return np.array([float(Fraction(total, 2**_SIGMOID_BITS)) for total in totals])


def certified_slopes(
    objective: Objective, private: Ints, public: Ints, tolerance: Fraction
) -> tuple[Floats, float]:
    """Slopes where the exact gradient is no longer than the tolerance, and the bound that was proved."""
    check_exponential()
    slopes = np.zeros(public.shape[1])
    limit = float(tolerance) * (1 - 1e-12)
    value = objective.value(private, public, slopes)
    for _ in range(_MOST_STEPS):
        gradient, error = objective.gradient(private, public, slopes)
        proved = float(np.linalg.norm(gradient)) * (1 + 1e-12) + error
        if proved <= limit:
            return slopes, proved
        curvature = objective.curvature(private, slopes) + objective.penalty * np.eye(len(slopes))
        curvature += objective.public_weight * objective.curvature(public, slopes)
        step = -np.linalg.solve(curvature, gradient)
        size = 1.0
        while size > 1e-9:
            trial = objective.value(private, public, slopes + size * step)
            if trial <= value + 1e-4 * size * float(step @ gradient) + 1e-13 * abs(value):
                break
            size /= 2
        slopes, value = slopes + size * step, trial
    raise NotSupported(  # pragma: no cover  reason: Newton's method converges; docs/proofs/public-data.md
        "the logistic regression did not settle, and without a certificate nothing is released"
    )
