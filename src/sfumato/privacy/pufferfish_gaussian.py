"""The failure of discrete Gaussian noise on a rounded query: the hockey-stick divergence of what is drawn.

The rounded query has a law on the integers, and so has the noise; both are listed up to a share of
probability that counts as lost, and convolved without cancellation. Nothing continuous is left to compare.
Proof: docs/proofs/pufferfish.md.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from sfumato.errors import NotSupported
from sfumato.laws import DiscreteGaussian
from sfumato.privacy.pufferfish_laws import Finite, Floats, Mixture

MOST_CELLS, MOST_PRODUCTS = 2**21, 2**28
# What cutting off a tail may cost; it counts as failure.
_CUT = 1e-24
# Relative rounding of a listed probability, for cells as wide as the narrowest component.
_UNIT = 2.0**-44
_MOST_EPSILON = 500


class Listed(NamedTuple):
    """Probabilities of consecutive integers from `first` on, what they lack, and their relative error."""

    first: int
    chances: Floats
    lost: float
    error: float


def gaussian_failure(
    left: Finite | Mixture,
    right: Finite | Mixture,
    *,
    sigma: Fraction,
    granularity: Fraction,
    epsilon: Fraction,
) -> float:
    """At least the hockey-stick divergence, either way, of the rounded query with discrete Gaussian noise."""
    noise = listed_noise(sigma / granularity)
    one, other = (_convolved(listed(law, granularity), noise) for law in (left, right))
    if epsilon > _MOST_EPSILON:
        raise NotSupported(f"epsilon must be at most {_MOST_EPSILON} for method 'gaussian-exact'")
    # A smaller factor gives a larger divergence.
    factor = math.exp(float(epsilon)) * (1 - 1e-12)
    return min(1.0, max(_hockey_stick(one, other, factor), _hockey_stick(other, one, factor)))


def _hockey_stick(one: Listed, other: Listed, factor: float) -> float:
    first = min(one.first, other.first)
    last = max(one.first + len(one.chances), other.first + len(other.chances))
    mine, theirs = np.zeros(last - first), np.zeros(last - first)
    mine[one.first - first :][: len(one.chances)] = one.chances * (1 + one.error)
    theirs[other.first - first :][: len(other.chances)] = other.chances * (1 - other.error)
    return float(np.maximum(mine - factor * theirs, 0).sum()) * (1 + 1e-12) + one.lost


def listed(law: Finite | Mixture, granularity: Fraction) -> Listed:
    """The law of the nearest lattice step, halves up, listed where it is likely."""
    if isinstance(law, Finite):
        steps = law.rounded(granularity)
        first, last = int(steps.values[0]), int(steps.values[-1])
        _check_cells(last - first + 1)
        chances = np.zeros(last - first + 1)
        chances[[int(value) - first for value in steps.values]] = [float(weight) for weight in steps.weights]
        return Listed(first, chances, 0.0, _UNIT)
    return _listed_mixture(law, granularity)


def _listed_mixture(law: Mixture, granularity: Fraction) -> Listed:
    from scipy.special import ndtr, ndtri

    reach = Fraction(float(-ndtri(_CUT / 4)))
    spans = [(m - reach * s, m + reach * s) for m, s in zip(law.means, law.deviations, strict=True)]
    first = math.floor(min(low for low, _ in spans) / granularity)
    last = math.ceil(max(high for _, high in spans) / granularity)
    _check_cells(last - first + 1)
    edges = np.arange(last - first + 2) - 0.5
    chances = np.zeros(last - first + 1)
    for weight, mean, deviation in zip(law.weights, law.means, law.deviations, strict=True):
        z = (edges - float(mean / granularity - first)) * float(granularity / deviation)
        # Differences of the smaller tail: of the larger one they would cancel.
        below, above = ndtr(z), ndtr(-z)
        chances += float(weight) * np.where(z[1:] < 0, np.diff(below), -np.diff(above))
    narrow = float(min(law.deviations) / granularity)
    # Beyond the reach of its own component a chance may have underflowed; so little counts as lost too.
    lost = 2 * float(ndtr(-float(reach))) * 1.001 + 1e-200
    return Listed(first, np.maximum(chances, 0), lost, _error(law, granularity, len(chances), narrow))


def _error(law: Mixture, granularity: Fraction, cells: int, narrow: float) -> float:
    # An edge errs by a unit of its size in deviations; a cell is as wide as granularity over deviation.
    wide = float(max(law.deviations) / granularity)
    return _UNIT * (1 + wide) + 2.0**-46 * cells * (1 + 1 / narrow)


def listed_noise(sigma: Fraction) -> Listed:
    """The discrete Gaussian law of this deviation in steps, listed where it is likely."""
    law = DiscreteGaussian(sigma**2)
    reach = _radius(law, _CUT)
    _check_cells(2 * reach + 1)
    chances = np.exp(law.logpmf(np.arange(-reach, reach + 1)))
    return Listed(-reach, chances, 2 * float(law.sf(reach)) * (1 + 1e-9), 1e-11)


def _radius(law: DiscreteGaussian, failure: float) -> int:
    reach = 1
    while 2 * float(law.sf(reach)) > failure:
        reach += 1 + reach // 8
    return reach


def _convolved(law: Listed, noise: Listed) -> Listed:
    if len(law.chances) * len(noise.chances) > MOST_PRODUCTS:
        raise NotSupported(
            "the query and the noise span too many steps of the lattice: take a larger granularity"
        )
    chances = np.convolve(law.chances, noise.chances)
    # Sums of positive terms: no term cancels, and as many roundings as terms.
    error = (law.error + noise.error) * 1.01 + 2.0**-52 * min(len(law.chances), len(noise.chances))
    return Listed(law.first + noise.first, chances, law.lost + noise.lost, error)


def _check_cells(cells: int) -> None:
    if cells > MOST_CELLS:
        raise NotSupported(
            f"the query spans {cells:,} steps of the lattice and {MOST_CELLS:,} can be listed: "
            "take a larger granularity"
        )
