"""What the weights would have been with other noise: for intervals where first order is not enough.

The released means are moved by noise of the very law that was released, and the weights are found again. The
bits are fixed ones: this is post-processing, and equal questions get equal answers.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.grid import Floats
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, SeededBits
from sfumato.public_data.estimates import Bend, Target

# Of smaller noise, by its mean square in units of the spread of the features, first order tells enough.
_SMALL = 0.02
# Draws come in pairs of opposite sign, so that what is linear stays symmetric.
_PAIRS = 64
# Each is the mean of so many neighbouring ones of a large sample.
_STRATUM = 32
# More public rows tell the difference that noise makes hardly better.
_MOST_ROWS = 1024
# Products of two coordinates are kept for all these rows; those of many more would fill the memory.
_MOST_COORDINATES = 32
_MOST_STEPS = 30
_TOLERANCE = 1e-5
# Fine enough for a discrete Gaussian to stand for a normal number.
_FINE = Fraction(2**20)


@dataclass(frozen=True, eq=False)
class Redrawing:
    """Released means, how noise moves them, and the weights that they gave.

    Directions in which no public row differs are left out: weights cannot move there. All categories of a
    column add up to a constant, and noise in that direction would send slopes far away.
    """

    features: Floats
    weights: Floats
    means: Floats
    moves: Floats
    noise: DiscreteGaussian | DiscreteLaplace
    penalty: float
    private_rows: float

    @cached_property
    def axes(self) -> Floats:
        """The directions in which public rows differ, in columns."""
        values, axes = np.linalg.eigh(
            np.cov(self.features, rowvar=False, bias=True).reshape(2 * [len(self.means)])
        )
        return axes[:, values > 1e-9 * values[-1]]

    @cached_property
    def around(self) -> Floats:
        """The features along these directions, about their weighted means."""
        found: Floats = (self.features - self.weights @ self.features / len(self.weights)) @ self.axes
        return found

    @cached_property
    def curvature(self) -> Floats:
        """The weighted covariance of the features along these directions."""
        found: Floats = (self.around * (self.weights / len(self.weights))[:, None]).T @ self.around
        return found

    @cached_property
    def inverse(self) -> Floats:
        """How the slopes follow the means, to first order."""
        found = np.linalg.inv(self.curvature + self.penalty * np.eye(len(self.curvature)))
        return np.asarray(found, dtype=np.float64)

    @cached_property
    def moved(self) -> dict[Target, Floats]:
        """Moves of the means, one in each row: by noise alone, or with the sampling of the private rows."""
        count, coordinates = self.moves.shape[1], len(self.curvature)
        by_noise = spread_draws(self.noise, count, seed=1) @ self.moves.T @ self.axes
        values, vectors = np.linalg.eigh(self.curvature)
        root = vectors * np.sqrt(np.maximum(values, 0.0) / max(self.private_rows, 1.0))
        sampled = spread_draws(DiscreteGaussian(_FINE**2), coordinates, seed=2) / float(_FINE)
        by_both = by_noise + sampled @ root.T
        return {"sample": np.vstack([by_noise, -by_noise]), "population": np.vstack([by_both, -by_both])}

    @cached_property
    def needed(self) -> bool:
        """Whether noise is so large that errors of first order do not tell it; by released numbers."""
        moved = self.moved["population"]
        size = float(np.einsum("ij,jk,ik->i", moved, self.inverse, moved).mean())
        return size > _SMALL and len(self.means) <= _MOST_COORDINATES

    @cached_property
    def rows(self) -> slice:
        """The public rows that are weighted again."""
        return slice(0, None, -(-len(self.features) // _MOST_ROWS))

    @cached_property
    def shares(self) -> dict[Target, Floats]:
        """Shares of the weight on these rows by target: one line for each move that was asked for so far."""
        return {}

    def bend(self, centred: Floats, target: Target) -> Bend:
        """The simulated errors of the weighted mean of values, which are given about that mean."""
        if target not in self.shares:
            reached = (self.means - self.weights @ self.features / len(self.weights)) @ self.axes
            # Nothing is moved in the last line: where rows are left out, it is not the weights themselves.
            moved = np.vstack([self.moved[target], np.zeros(len(reached))])
            self.shares[target] = tilted_again(self.around[self.rows], reached + moved, self.penalty)
        found = self.shares[target] @ centred[self.rows]
        slopes = self.inverse @ ((self.weights * centred) @ self.around) / len(self.weights)
        return Bend(self.moved[target] @ slopes, found[:-1] - found[-1])


def spread_draws(noise: DiscreteGaussian | DiscreteLaplace, count: int, *, seed: int) -> Floats:
    """Draws of several independent noises, one column each, that are spread over the law as evenly as can be.

    Plain draws, as few as these, would miss its tails.
    """
    bits = SeededBits(seed)
    many = np.sort(np.asarray(noise.sample(bits, _PAIRS * _STRATUM), dtype=np.float64))
    even = ((many - many[::-1]) / 2).reshape(_PAIRS, _STRATUM).mean(axis=1)
    order = np.argsort(bits.words(_PAIRS * count).reshape(_PAIRS, count), axis=0)
    found: Floats = even[order]
    return found


def tilted_again(features: Floats, means: Floats, penalty: float) -> Floats:
    """Shares of weights that reproduce each row of `means`, by damped Newton steps for all of them at once.

    Far from its end a step is shortened as the third derivatives ask for, which the diameter of the features
    bounds: it then lowers the value without a search.

    >>> rows, means = np.array([[0.0], [1.0]]), np.array([[0.75], [0.25]])
    >>> tilted_again(rows, means, 1e-9).round(4).tolist()
    [[0.25, 0.75], [0.75, 0.25]]
    """
    count, coordinates = means.shape
    products = (features[:, :, None] * features[:, None, :]).reshape(len(features), -1)
    diameter = 2 * float(np.linalg.norm(features, axis=1).max())
    # From equal weights: steps from weights at an edge, where released means may lie, lead nowhere.
    slopes = np.zeros((count, coordinates))
    shares = np.empty((count, len(features)))
    active = np.arange(count)
    for _ in range(_MOST_STEPS):
        powers = slopes[active] @ features.T
        powers = np.exp(powers - powers.max(axis=1, keepdims=True))
        powers /= powers.sum(axis=1, keepdims=True)
        shares[active] = powers
        reached = powers @ features
        gradient = reached - means[active] + penalty * slopes[active]
        left = np.linalg.norm(gradient, axis=1) > _TOLERANCE
        if not left.any():
            break
        active, reached, gradient = active[left], reached[left], gradient[left]
        curvature = (powers[left] @ products).reshape(-1, coordinates, coordinates)
        curvature += penalty * np.eye(coordinates) - reached[:, :, None] * reached[:, None, :]
        step = -np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
        length = np.maximum(diameter * np.linalg.norm(step, axis=1), 1e-9)
        near = -(step * gradient).sum(axis=1) < 0.1
        slopes[active] += step * np.where(near, 1.0, np.log1p(length) / length)[:, None]
    return shares
