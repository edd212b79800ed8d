"""Whether the public rows cover the private ones, judged by released numbers alone."""

import math

import numpy as np

from sfumato.errors import SfumatoError
from sfumato.grid import Floats
from sfumato.laws import DiscreteGaussian, DiscreteLaplace
from sfumato.public_data.certified import Objective, sigmoid

# If the private means are those of some weighting of the public rows, a refusal by the hull is so unlikely.
FALSE_ALARM = 1e-3
# Below the first share of effective rows a warning, below the second a refusal.
FEW, TOO_FEW = 0.05, 0.005


class NotCovered(SfumatoError):
    """The released numbers show that no weights on these public rows can stand for the private ones.

    Guarantee:
        Follows from released numbers and public rows alone. The charge was made before anything was read, and
        stays; `released` has what was paid for.

    >>> str(NotCovered("the public rows do not cover the private ones"))
    'the public rows do not cover the private ones'
    """

    released: Floats | None = None


def refusal(message: str, released: Floats) -> NotCovered:
    """The error, with the released numbers."""
    error = NotCovered(message)
    error.released = released
    return error


def reach(noise: DiscreteGaussian | DiscreteLaplace, moves: Floats, direction: Floats) -> float:
    """How far the noise can push the means along any direction like this one, but for a rare case.

    The direction may be chosen after the noise: all directions are covered at once.
    """
    along = direction @ moves
    if isinstance(noise, DiscreteGaussian):
        return float(np.linalg.norm(along)) * longest(noise, len(along))
    return float(np.abs(along).sum()) * noise.radius(1 - FALSE_ALARM / len(along))


def longest(noise: DiscreteGaussian | DiscreteLaplace, count: int) -> float:
    """How long a vector of so many independent noises is, but for a rare case."""
    if isinstance(noise, DiscreteLaplace):
        return math.sqrt(count) * noise.radius(1 - FALSE_ALARM / count)
    from scipy.stats import chi2

    # One step more for each noise: the discrete law is within that of the continuous one.
    return math.sqrt(float(noise.sigma_squared) * chi2.isf(FALSE_ALARM, count)) + math.sqrt(count)


def gap(features: Floats, means: Floats, direction: Floats) -> float:
    """How far the means lie beyond all public rows along a direction: positive only outside of their hull."""
    return float(direction @ means - (features @ direction).max())


def check_hull(
    features: Floats,
    means: Floats,
    moves: Floats,
    noise: DiscreteGaussian | DiscreteLaplace,
    direction: Floats,
) -> None:
    """Refuse means that lie outside of the hull of the public rows, further than the noise explains."""
    length = float(np.linalg.norm(direction))
    if length == 0:
        return
    unit = direction / length
    beyond, allowed = gap(features, means, unit), reach(noise, moves, unit)
    if beyond > allowed:
        raise refusal(
            "the public rows do not cover the private ones: the released means of the features are "
            f"{beyond:.3g} outside of all that weights on the public rows can give, and the noise "
            f"explains {allowed:.3g}",
            means,
        )


def check_slopes(
    public: Floats,
    slopes: Floats,
    objective: Objective,
    tolerance: float,
    step: float,
    noise: DiscreteGaussian | DiscreteLaplace,
) -> None:
    """Refuse slopes that only private rows beyond all public ones explain, further than the noise allows.

    Where the gradient is zero, the private rows add up to what the public rows and the penalty show.
    """
    length = float(np.linalg.norm(slopes[1:]))
    if length == 0:
        return
    unit = slopes[1:] / length
    # The product of this with a row is negative for every row that some public one reaches along the slopes.
    probe = np.concatenate([[-float((public[:, 1:] @ unit).max()) / public[0, 0]], unit])
    shares = sigmoid(public @ slopes)
    beyond = float(probe @ (objective.public_weight * (shares @ public) + objective.penalty * slopes))
    steepest = (
        objective.public_weight / 4 * float(np.linalg.eigvalsh(public.T @ public)[-1]) + objective.penalty
    )
    moved = step * (longest(noise, len(slopes)) + math.sqrt(len(slopes)) / 2)
    allowed = float(np.linalg.norm(probe)) * (steepest * moved + tolerance)
    if beyond > allowed:
        raise refusal(
            "the public rows do not cover the private ones: the slopes show a weight of "
            f"{beyond:.3g} beyond all public rows, and the noise explains {allowed:.3g}",
            slopes,
        )


def check_size(effective: float, rows: int, coordinates: int, means: Floats) -> str | None:
    """Refuse weights on far too few rows; a warning in words where there are few."""
    least = max(TOO_FEW * rows, coordinates + 10)
    if effective < least:
        raise refusal(
            "the public rows do not cover the private ones, or the noise is too large for so many features: "
            f"the weights rest on {effective:.1f} effective rows of {rows}, and at least {least:.1f} are "
            "needed",
            means,
        )
    if effective < FEW * rows:
        return (
            f"the weights rest on {effective:.1f} effective rows of {rows}: the public rows hardly cover the "
            "private ones, and estimates are uncertain"
        )
    return None


def check_count(rows: float, error: float, means: Floats) -> None:
    """Refuse a noisy number of private rows that is hardly above its noise."""
    if error and rows < 5 * error:
        raise refusal(
            f"the private rows are too few for this budget: their noisy number is {rows:.0f}, and the noise "
            f"has the standard deviation {error:.0f}",
            means,
        )
