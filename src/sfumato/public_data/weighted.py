"""Weights on public rows, and what they tell about private ones without further budget."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from sfumato.checks import Number, inside, readable, shown
from sfumato.data.admission import admit
from sfumato.data.dataset import Dataset
from sfumato.errors import InvalidParameter
from sfumato.grid import Floats
from sfumato.laws import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import Budget
from sfumato.public_data.estimates import Errors, Estimate, QuantileEstimate, weighted_quantile
from sfumato.public_data.redrawing import Redrawing


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of mean 1 on public rows, under which these look like the private ones.

    Guarantee:
        Post-processing of one release, whose cost is `cost`: every estimate, for any function of the public
        columns and any number of them, costs nothing more. `private` is False if seeded bits drew it.
        Proof: docs/proofs/public-data.md.

    Args:
        weights: one for each public row; the array cannot be written to.
        rows: the number of private rows; noisy, or a public guess, where that is private.
        released: the means of the features, or the slopes of the regression.
        labels: what each of these numbers is about.
        shortened: the share of the weight on rows that were longer than the radius. Numbers that rest on
            these rows are biased; a larger radius for `Features` leaves fewer, for more noise.
        cost: what was paid, once.
        method: how the weights were found, in words.
        notes: what a reader should know.
        private: whether private bits were used.

    >>> from sfumato.laws import SeededBits
    >>> from sfumato.privacy import PureDP
    >>> from sfumato.public_data import weights
    >>> private, public = {"age": [float(50 + i % 30) for i in range(5000)]}, {"age": range(20, 80)}
    >>> found = weights(private, public, features=["age"], budget=PureDP(1), neighbours="substitution",
    ...     bits=SeededBits(1))
    >>> found.effective_size < 60, 64 < found.mean("age").value < 65, round(float(found.weights.mean()), 9)
    (True, True, 1.0)
    """

    weights: Floats
    rows: float
    released: Floats
    labels: tuple[str, ...]
    shortened: float
    cost: Budget
    method: str
    notes: tuple[str, ...]
    private: bool
    _public: Dataset = field(repr=False)
    _features: Floats = field(repr=False)
    _link: "Link" = field(repr=False)

    def __post_init__(self) -> None:
        for array in (self.weights, self.released):
            array.flags.writeable = False

    @property
    def effective_size(self) -> float:
        """How many equally weighted rows would be as informative: the squared sum over the sum of squares."""
        return effective_size(self.weights)

    def sample_weight(self) -> Floats:
        """A fresh copy of the weights, for the argument `sample_weight` of scikit-learn's `fit`."""
        return self.weights.copy()

    def mean(self, values: Any) -> Estimate:
        """The mean of a public column, or of numbers computed from public columns, over the private records.

        Args:
            values: the name of a column of the public table, or one finite number for each of its rows.
        """
        return self._mean(self._numbers(values))

    def variance(self, values: Any) -> Estimate:
        """The variance of such numbers over the private records."""
        return self.covariance(values, values)

    def covariance(self, first: Any, second: Any) -> Estimate:
        """The covariance of two such columns over the private records."""
        left, right = self._numbers(first), self._numbers(second)
        left = left - float(np.mean(self.weights * left))
        right = right - float(np.mean(self.weights * right))
        # To first order the errors of the two means cancel, so the products have all of the error.
        return self._mean(left * right)

    def quantile(self, values: Any, share: Number) -> QuantileEstimate:
        """A quantile of such numbers over the private records."""
        return self.quantiles(values, [share])[0]

    def quantiles(self, values: Any, shares: Sequence[Number]) -> tuple[QuantileEstimate, ...]:
        """Quantiles of such numbers over the private records, each with an interval of its own."""
        numbers = self._numbers(values)
        return tuple(self._quantile(numbers, float(inside("share", share))) for share in shares)

    def _quantile(self, numbers: Floats, share: float) -> QuantileEstimate:
        value = weighted_quantile(numbers, self.weights, share)
        # Up to the largest value all rows are below, without an error; then the share of smaller ones has it.
        shares = (self._mean(held.astype(np.float64)) for held in (numbers <= value, numbers < value))
        below = max(shares, key=Estimate.standard_error)
        return QuantileEstimate(value, share, below, numbers, self.weights)

    def _numbers(self, values: Any) -> Floats:
        column = self._public.column(values) if isinstance(values, str) else admit(values)
        column.require("integer", "real", "boolean")
        numbers = np.concatenate([*column.chunks(), np.empty(0)])
        if len(numbers) != len(self.weights) or not np.isfinite(numbers).all():
            raise InvalidParameter(
                f"values must be a finite number for each of the {len(self.weights)} public rows, "
                f"got {shown(values)}"
            )
        if np.abs(numbers).max() > 1e150:
            raise InvalidParameter("values must be at most 1e150 in size, got larger ones")
        return numbers

    def _mean(self, numbers: Floats) -> Estimate:
        value = float(np.mean(self.weights * numbers))
        centred = numbers - value
        # In units of their size, so that squares of squares neither overflow nor vanish.
        size = float(np.abs(centred).max()) or 1.0
        errors = errors_of(centred / size, self.weights, self._features, self.rows, self._link).times(size)
        redrawing = self._link.redrawing
        return Estimate(value, errors, None if redrawing is None else partial(redrawing.bend, centred))

    def __str__(self) -> str:
        rows = len(self.weights)
        lines = [
            f"weights on {rows:,} public rows, effective size {readable(self.effective_size)}",
            f"  method: {self.method}",
            f"  cost: {self.cost!r}",
            *(f"  note: {note}" for note in self.notes),
        ]
        if not self.private:
            lines.append("  note: drawn from seeded bits, so not private: do not publish")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Link:
    """How a weighted mean moves with what was released: all by its covariances with the features."""

    # Covariances with the features, times this, are what each unit of noise moves.
    moves: Floats
    # Covariances with the features, times this, are what the penalty takes away.
    drift: Floats
    noise: DiscreteGaussian | DiscreteLaplace
    # Whether the weights reproduce the means of features, so that only residuals have a sampling error.
    calibrated: bool
    penalty: float
    # What the weights would have been with other noise, where that is large.
    redrawing: Redrawing | None = None


def effective_size(weights: Floats) -> float:
    """The effective number of rows of weights of mean 1."""
    return float(weights.sum() ** 2 / (weights * weights).sum())


def errors_of(centred: Floats, weights: Floats, features: Floats, private_rows: float, link: Link) -> Errors:
    """The parts of the error of a weighted mean, from numbers about that mean, at most 1 in size."""
    rows, coordinates = features.shape
    shares = weights / rows
    around = features - shares @ features
    covariance = (shares * centred) @ around
    curvature = (around * shares[:, None]).T @ around
    inverse = np.linalg.inv(curvature + max(link.penalty, 1e-9) * np.eye(coordinates))
    slopes = inverse @ covariance
    residuals = centred - around @ slopes
    # A row that the weights lean on pulls the fit towards itself, and hides a part of its residual.
    leverage = np.minimum(shares * (1 + np.einsum("ij,jk,ik->i", around, inverse, around)), 0.5)
    counted = (residuals if link.calibrated else centred) / (1 - leverage)
    parts = (shares * counted) ** 2
    # As many degrees of freedom as rows that the sum of squares rests on.
    freedom = float(parts.sum() ** 2 / max((parts * parts).sum(), 1e-300)) if parts.any() else float(rows)
    size = max(private_rows, 1.0)
    explained = float(slopes @ curvature @ slopes) if link.calibrated else float(shares @ centred**2)
    moved = np.abs(covariance @ link.moves)
    scale = link.noise.scale if isinstance(link.noise, DiscreteLaplace) else None
    return Errors(
        public_sampling=math.sqrt(float(parts.sum())),
        private_sampling={
            "population": math.sqrt(explained / size),
            "sample": math.sqrt(float(shares @ counted**2) / size),
        },
        laplace=() if scale is None else tuple((moved * float(scale)).tolist()),
        gaussian=0.0 if scale is not None else float(np.linalg.norm(moved)) * math.sqrt(link.noise.variance),
        regularisation=float(covariance @ link.drift),
        unexplained=(float(residuals.min()), float(residuals.max())),
        explained=1 - float(shares @ residuals**2) / max(float(shares @ centred**2), 1e-300),
        freedom=max(freedom - coordinates - 1, 2.0),
    )
