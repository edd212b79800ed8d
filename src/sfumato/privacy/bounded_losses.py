r"""Privacy losses of bounded noise: how those of many answers add up, rounded against us.

One answer compares the law of the noise with the same law moved by `shift` places. The loss grows along the
integers, and is infinite on the last `shift` places. The sum of the losses of all answers is found by a
Fourier transform of the *tilted* law of one loss: without the tilt the rounding of the transform is larger
than the small deltas that are wanted. Proofs: docs/proofs/bounded-noise.md.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import float_down
from sfumato.laws import BoundedNoise
from sfumato.laws.bits import Integers
from sfumato.laws.bounded import excess
from sfumato.laws.law import Floats

Spectrum = NDArray[np.complex128]

# Exponents of outcomes err by at most this much of themselves: 32 units of rounding.
_EXPONENT = 2.0**-48
# Relative error of the probability of an outcome, apart from that of its exponent.
_MASS = 3e-12
# Of the 2-norm of what a transform of length 2 takes; times log2 of the length. An estimate, no certificate.
_TRANSFORM = 8 * 2.0**-53
# Exponents beyond this count as infinite; and what may be cut off one answer, as a share of what is allowed.
_STEEP, _ALONE = 5000, 1e-6
_CHUNK = 2**18
_MOST_CELLS = 2**22
# Steps of the grid in a standard deviation of one loss, and standard deviations of their sum on the circle.
_FINENESS, _WINDOW = 64, 14
# What the mass of all finite losses may overstate, as a share; and the weight below which floats lose digits.
_NEARLY, _LOST = 1e-6, 1e-290
# A loss this far above epsilon is infinite but for a share of exp(-10).
_FAR = 10.0


class Grid(NamedTuple):
    """The law of one loss: the cells of a grid that have mass, counted from `lowest`, and their masses."""

    lowest: float
    step: float
    cells: Integers
    masses: Floats

    @property
    def losses(self) -> Floats:
        """The losses of the cells."""
        return np.asarray(self.lowest + self.step * self.cells)


class Tilt(NamedTuple):
    """Masses times exp(rate loss - log_mean), a probability vector; the mean and the spread of its loss."""

    masses: Floats
    rate: float
    log_mean: float
    mean: float
    spread: float


def delta_of(law: BoundedNoise, shift: int, count: int, epsilon: Fraction, cut: float) -> float:
    """An upper bound of delta; rare outcomes, of mass `cut` in all the answers, count as infinite loss."""
    if shift >= 2 * law.bound - 1:
        return 1.0
    last = last_outcome(law, shift, cut / count if count > 1 else _ALONE * cut)
    if 2 * last < -shift:
        return 1.0
    if count > 1:
        last = _useful(law, shift, count, float(epsilon), last)
    first = max(-last - shift, -law.bound + 1)
    highest = float(excess(np.array([last + shift], dtype=np.float64), law.bound, law.power)[0])
    error = _EXPONENT * (highest + 1)
    factor = math.exp(count * (_MASS + 2 * error))
    limit = math.nextafter(float_down(epsilon) - count * error, -math.inf)
    beyond = min(1.0, float(law.sf(last)) * (1 + _MASS + error))
    if beyond >= 1:
        return 1.0
    infinite = -math.expm1(count * math.log1p(-beyond))
    single = count == 1
    finite = (
        _single(law, shift, limit, first, last) if single else _many(law, shift, count, limit, first, last)
    )
    return min(1.0, math.nextafter((infinite + finite) * factor * (1 + 1e-12), math.inf))


def last_outcome(law: BoundedNoise, shift: int, mass: float) -> int:
    """The last outcome whose loss counts as finite: above it there is at most this mass, or infinite loss."""
    # A loss of thousands is as good as infinite, and its rounding would be added to every other one.
    steep = math.floor(law.bound * math.sqrt(1 - (1 + _STEEP) ** (-1 / law.power)))
    most = min(law.bound - 1, steep) - shift
    tails, total = law.table.tails, law.table.total
    # tails[t] is the sum over places above t; it falls, and negative places are never needed.
    place = int(np.searchsorted(-tails, -mass * total))
    return min(place, most)


def _useful(law: BoundedNoise, shift: int, count: int, epsilon: float, last: int) -> int:
    """The last outcome after which all losses are so far above epsilon that they may count as infinite."""
    far = epsilon + _FAR
    places = _some(max(-last - shift, -law.bound + 1), last)
    with np.errstate(under="ignore"):
        weights = np.exp(-excess(places, law.bound, law.power))
    if not weights.sum() > _LOST:
        return last
    near = np.minimum(np.abs(loss(law, shift, places)), far)
    # The other losses hardly ever add up to less than minus eight of their deviations.
    far += 8 * math.sqrt(count * float(np.average(near**2, weights=weights)))
    low, high = math.ceil(-shift / 2), last + 1
    while high - low > 1:
        middle = (low + high) // 2
        below = float(loss(law, shift, np.array([middle], dtype=np.float64))[0]) <= far
        low, high = (middle, high) if below else (low, middle)
    return low


def _some(first: int, last: int) -> Floats:
    return np.append(np.arange(first, last, max(1, (last - first) // 4096), dtype=np.float64), last)


def _losses(law: BoundedNoise, shift: int, first: int, last: int) -> Iterator[tuple[Floats, Floats]]:
    """Probabilities and losses of the outcomes from first to last, in order."""
    for start in range(first, last + 1, _CHUNK):
        places = np.arange(start, min(start + _CHUNK, last + 1), dtype=np.float64)
        here = excess(places, law.bound, law.power)
        with np.errstate(under="ignore"):
            chances = np.exp(-here) / law.table.total
        yield chances, excess(places + shift, law.bound, law.power) - here


def _single(law: BoundedNoise, shift: int, epsilon: float, first: int, last: int) -> float:
    """The finite part of one answer: the sum of its positive terms."""
    parts = []
    for chances, losses in _losses(law, shift, first, last):
        with np.errstate(under="ignore"):
            parts.append(float(np.sum(chances * -np.expm1(np.minimum(epsilon - losses, 0.0)))))
    return math.fsum(parts)


def _many(law: BoundedNoise, shift: int, count: int, epsilon: float, first: int, last: int) -> float:
    """The finite part of several answers, by the tilted transform."""
    grid = _on_grid(law, shift, first, last)
    if grid is None:  # one loss, or outcomes so rare that floats lose them
        highest = float(loss(law, shift, np.array([last], dtype=np.float64))[0])
        share = min(1.0, float(law.cdf(last)) * (1 + 1e-9) + 1e-300)
        return share**count * -math.expm1(min(epsilon - count * highest, 0.0))
    if count * float(grid.losses[-1]) <= epsilon:
        return 0.0
    if (most := _nearly_all(grid, count, epsilon)) is not None:
        return most
    tilt = _tilted_to(grid, epsilon / count, 0.1 / math.sqrt(count))
    deviation = tilt.spread * math.sqrt(count)
    # The window begins at epsilon, which may be far below the middle, and must reach above it.
    reach = max(count * tilt.mean - epsilon, 0.0) + _WINDOW / 2 * deviation
    size = min(_length(2 * reach / grid.step), _MOST_CELLS)
    while True:
        body, above = composed(grid, tilt, count, epsilon, size)
        if above <= 1e-4 * body or size >= _MOST_CELLS:
            return body + above
        size *= 2


def _nearly_all(grid: Grid, count: int, epsilon: float) -> float | None:
    """The mass of all finite losses if their sum is far above epsilon almost surely, and None otherwise."""
    # E min(1, exp(epsilon - S)) is what the mass overstates, and exp(rate (epsilon - S)) is above it.
    everything = count * _tilt(grid, 0.0).log_mean
    over = min(count * _tilt(grid, -rate).log_mean + rate * epsilon for rate in (1.0, 0.5, 0.25, 0.1, 0.03))
    return math.exp(min(everything, 0.0)) if over <= everything + math.log(_NEARLY) else None


def _length(least: float) -> int:
    """A length with small factors, for which transforms are fast."""
    power = 1 << max(6, math.ceil(math.log2(max(least, 1.0))) - 4)
    return power * next(factor for factor in (8, 9, 10, 12, 15, 16) if power * factor >= least)


def _on_grid(law: BoundedNoise, shift: int, first: int, last: int) -> Grid | None:
    """Each outcome on the two grid losses around its own, in the shares that keep its probability twice."""
    lowest, highest = loss(law, shift, np.array([first, last], dtype=np.float64)).tolist()
    places = _some(first, last)
    with np.errstate(under="ignore"):
        weights = np.exp(-excess(places, law.bound, law.power))
    if highest <= lowest or not weights.sum() > _LOST:
        return None
    spread = math.sqrt(float(np.average(loss(law, shift, places) ** 2, weights=weights)))
    # The grid adds a sixth of the squared step to the variance of a loss: 4e-5 of it.
    step = max(spread / _FINENESS, (highest - lowest) / _MOST_CELLS)
    masses = np.zeros(math.floor((highest - lowest) / step) + 3)
    for chances, losses in _losses(law, shift, first, last):
        # Rounding can take a loss outside by a unit; the error of the exponent covers that.
        position = np.maximum((losses - lowest) / step, 0.0)
        below = np.floor(position)
        share = np.expm1(-(position - below) * step) / math.expm1(-step)
        index = below.astype(np.int64)
        masses += np.bincount(index, weights=chances * (1 - share), minlength=masses.size)
        masses += np.bincount(index + 1, weights=chances * share, minlength=masses.size)
    masses[0] += float(law.cdf(first - 1))  # smaller losses are replaced by a larger one
    cells = np.flatnonzero(masses)
    return Grid(lowest, step, cells, masses[cells])


def loss(law: BoundedNoise, shift: int, places: Floats) -> Floats:
    """The losses of outcomes."""
    return excess(places + shift, law.bound, law.power) - excess(places, law.bound, law.power)


def _tilt(grid: Grid, rate: float) -> Tilt:
    losses = grid.losses
    exponents = rate * losses + np.log(grid.masses)
    top = float(exponents.max())
    with np.errstate(under="ignore"):
        weights = np.exp(exponents - top)
    total = float(weights.sum())
    weights /= total
    mean = float(weights @ losses)
    spread = math.sqrt(max(float(weights @ (losses - mean) ** 2), 0.0))
    return Tilt(weights, rate, math.log(total) + top, mean, spread)


def _tilted_to(grid: Grid, mean: float, tolerance: float, start: Tilt | None = None) -> Tilt:
    """The tilt, at least 0, at which the mean loss is a given one, to a tolerance in spreads."""
    low, high = 0.0, math.inf
    tilt = _tilt(grid, 0.0) if start is None else start
    # Newton's method inside a bracket; any tilt is valid, a good one makes the rounding small.
    for _ in range(60):
        if (tilt.mean >= mean and tilt.rate == 0) or abs(tilt.mean - mean) <= tolerance * tilt.spread:
            break
        low, high = (tilt.rate, high) if tilt.mean < mean else (low, tilt.rate)
        rate = tilt.rate + (mean - tilt.mean) / max(tilt.spread**2, 1e-300)
        if not low < rate < high:
            rate = (low + high) / 2 if high < math.inf else 2 * low + 1 / (tilt.spread + grid.step)
        tilt = _tilt(grid, min(rate, 700 / grid.step))
    return tilt


def composed(grid: Grid, tilt: Tilt, count: int, epsilon: float, size: int) -> tuple[float, float]:
    """E (1 - exp(epsilon - S))_+ of the sum S of `count` losses inside a window, and a bound of it above."""
    if count * tilt.log_mean - tilt.rate * epsilon > 600:
        return 1.0, 0.0  # a tilt so far off that its weights overflow proves nothing
    middle = round((tilt.mean - grid.lowest) / grid.step)
    # Folding the circle only adds mass to a place.
    circle = np.bincount((grid.cells - middle) % size, weights=tilt.masses, minlength=size)
    summed = np.fft.irfft(_powers(np.fft.rfft(circle), count), size)
    norm = float(np.linalg.norm(circle)) * (count + 1) + float(np.linalg.norm(summed))
    np.maximum(summed, 0.0, out=summed)
    # Places of the circle as losses: those of the half above epsilon, which is near place 0.
    offset = count * (grid.lowest + grid.step * middle)
    start = math.floor((epsilon - offset) / grid.step)
    places = np.arange(start, start + size // 2)
    losses = offset + grid.step * places
    with np.errstate(under="ignore"):
        gains = np.exp(count * tilt.log_mean - tilt.rate * losses)
        gains *= -np.expm1(np.minimum(epsilon - losses, 0.0))
        body = float(summed[places % size] @ gains)
    rounding = _TRANSFORM * math.log2(size) * norm * float(np.linalg.norm(gains))
    return body + rounding, _above(grid, tilt, count, float(losses[-1]) + grid.step)


def _powers(transform: Spectrum, count: int) -> Spectrum:
    """Powers of numbers of the unit disc; those below 1e-40 are 0, far below what rounding does."""
    sizes = np.abs(transform)
    powers = np.zeros_like(transform)
    seen = sizes > 1e-40 ** (1 / count)
    # The transform of a probability vector is in the unit disc; what rounding took out of it goes back.
    powers[seen] = (transform[seen] / np.maximum(sizes[seen], 1.0)) ** count
    return powers


def _above(grid: Grid, tilt: Tilt, count: int, top: float) -> float:
    """Chernoff's bound of the probability that the sum of the losses is at least `top`."""
    best = _tilted_to(grid, top / count, 0.5 / math.sqrt(count), tilt)
    return math.exp(min(0.0, *(count * each.log_mean - each.rate * top for each in (tilt, best))))
