"""Exponential tilting: weights on public rows whose means of features are the released ones."""

from dataclasses import dataclass

import numpy as np

from sfumato.grid import Floats

# Newton's method needs a handful of steps; so many are a guard, and are told when they do not suffice.
_MOST_STEPS = 200
_TOLERANCE = 1e-11


@dataclass(frozen=True)
class Tilted:
    """The slopes that were found, the weights of mean 1, and whether the search settled."""

    slopes: Floats
    weights: Floats
    converged: bool


def tilt(features: Floats, moments: Floats, penalty: float) -> Tilted:
    r"""The slopes that minimise log mean exp(b . f) - b . m + penalty |b|^2 / 2, by damped Newton steps.

    The function is smooth and strongly convex, so there is one minimum, and where it lies the weighted
    features have the mean m - penalty b. Nothing overflows: exponents are taken about their largest.

    >>> rows = np.array([[0.0], [1.0]])
    >>> tilt(rows, np.array([0.75]), 1e-9).weights.round(4).tolist()
    [0.5, 1.5]
    """
    slopes = np.zeros(features.shape[1])
    value, shares = _value(features, moments, penalty, slopes)
    converged = False
    for _ in range(_MOST_STEPS):
        mean = shares @ features
        gradient = mean - moments + penalty * slopes
        if float(np.linalg.norm(gradient)) <= _TOLERANCE:
            converged = True
            break
        centred = features - mean
        curvature = (centred * shares[:, None]).T @ centred + penalty * np.eye(len(slopes))
        step = np.asarray(-np.linalg.solve(curvature, gradient), dtype=np.float64)
        slopes, value, shares, moved = _search(
            features, moments, penalty, slopes, value, shares, step, gradient
        )
        if not moved:
            # Where float64 sees no decrease any more, the gradient tells whether that is the minimum.
            converged = float(np.linalg.norm(gradient)) <= 1e3 * _TOLERANCE
            break
    return Tilted(slopes, shares * len(shares), converged)


def _value(features: Floats, moments: Floats, penalty: float, slopes: Floats) -> tuple[float, Floats]:
    exponents = features @ slopes
    top = float(exponents.max())
    powers = np.exp(exponents - top)
    total = float(powers.sum())
    value = top + np.log(total / len(powers)) - float(slopes @ moments) + penalty / 2 * float(slopes @ slopes)
    return float(value), powers / total


def _search(
    features: Floats,
    moments: Floats,
    penalty: float,
    slopes: Floats,
    value: float,
    shares: Floats,
    step: Floats,
    gradient: Floats,
) -> tuple[Floats, float, Floats, bool]:
    """The first of halved steps that lowers the value enough, or where we stand if none does."""
    descent = float(step @ gradient)
    size = 1.0
    for _ in range(60):
        trial = slopes + size * step
        found, weights = _value(features, moments, penalty, trial)
        if found <= value + 1e-4 * size * descent:
            return trial, found, weights, True
        if size == 1.0 and abs(found - value) <= 1e-14 * (1 + abs(value)):
            # Too near for values to differ: a whole Newton step that shrinks the gradient is taken.
            after = weights @ features - moments + penalty * trial
            if float(np.linalg.norm(after)) < 0.5 * float(np.linalg.norm(gradient)):
                return trial, found, weights, True
        size /= 2
    return slopes, value, shares, False
