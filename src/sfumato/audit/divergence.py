"""How far apart two laws are: the largest log ratio, the hockey stick and the Rényi divergence.

A law with independent coordinates is compared coordinate by coordinate. Where a coordinate has more outcomes
than can be listed, neighbouring outcomes are merged; merging never increases a divergence, so that what is
reported is at most the truth, and misses it by little because the merged outcomes have almost equal ratios.
"""

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.audit.coordinates import bounds_of, center_of, changed_coordinates, key_of, noise_of
from sfumato.errors import NotSupported
from sfumato.grid import Floats
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, Law

# Outcomes that are listed one by one, for a law of one, two or three changing coordinates.
LISTED = {1: 8_001, 2: 401, 3: 81}
# The Rényi divergence is a sum over coordinates, and smooth: fewer outcomes do.
LISTED_RENYI = 2_001
ORDERS = (1.5, 2.0, 4.0, 32.0)
SMALLEST = 5e-324


def comparison(left: Law, right: Law) -> Hashable:
    """What a comparison depends on: two pairs of laws with the same key are equally far apart."""
    return tuple((key_of(one), key_of(other)) for one, other in changed_coordinates(left, right))


def log_ratio(left: Law, right: Law) -> float:
    """The largest |log P(o) / Q(o)| over all outcomes o: the pure privacy loss."""
    pairs = changed_coordinates(left, right)
    if any(_is_unbounded(*pair) for pair in pairs):
        return math.inf
    # The coordinates are independent, so that the worst outcomes of each are attained together.
    signed = [_log_ratios(*pair) for pair in pairs]
    return max(sum(up for up, _ in signed), sum(down for _, down in signed), 0.0)


def laplace_exponent(left: Law, right: Law) -> Fraction | None:
    """The pure privacy loss as an exact number where all the noise is Laplace, None elsewhere.

    Probabilities are then proportional to exp(-|o - center| / scale), and so are the tails that a clamp
    gathers at its ends, if the centers lie between them.
    """
    total = Fraction(0)
    for one, other in changed_coordinates(left, right):
        noise, ends = noise_of(one), bounds_of(one)
        if not isinstance(noise, DiscreteLaplace) or (noise, ends) != (noise_of(other), bounds_of(other)):
            return None
        low, high = sorted((center_of(one), center_of(other)))
        if ends.lower == ends.upper or not ends.lower <= low <= high <= ends.upper:
            return None
        total += (high - low) / noise.scale
    return total


def hockey_stick(left: Law, right: Law, epsilon: float) -> float:
    """The largest P(A) - exp(epsilon) Q(A) over all sets A of outcomes, in the worse direction."""
    pairs = changed_coordinates(left, right)
    if not pairs:
        return 0.0
    if len(pairs) > len(LISTED):
        raise NotSupported(
            f"laws that differ in more than {len(LISTED)} coordinates have no exact hockey stick"
        )
    p, q = np.ones(1), np.ones(1)
    for pair in pairs:
        masses = _masses(*pair, LISTED[len(pairs)])
        p, q = (np.multiply.outer(whole, part).ravel() for whole, part in zip((p, q), masses, strict=True))
    factor = math.exp(min(epsilon, 700.0))
    return max(float(np.maximum(one - factor * other, 0).sum()) for one, other in ((p, q), (q, p)))


def concentrated(left: Law, right: Law) -> float:
    """The largest Rényi divergence divided by its order, over four orders and both directions."""
    pairs = changed_coordinates(left, right)
    if any(bounds_of(one) != bounds_of(other) for one, other in pairs):
        return math.inf
    # The divergence of a high order comes from outcomes many times the distance beyond the centers.
    masses = [_masses(*pair, LISTED_RENYI, beyond=math.ceil(max(ORDERS))) for pair in pairs]
    worst = 0.0
    for order in ORDERS:
        for first, second in ((0, 1), (1, 0)):
            total = sum(_renyi(mass[first], mass[second], order) for mass in masses)
            worst = max(worst, total / order)
    return worst


def _is_unbounded(left: Law, right: Law) -> bool:
    """Whether the ratio grows for ever on some side, as it does for all but Laplace tails of one scale."""
    noise, ends = noise_of(left), bounds_of(left)
    endless = ends.lower == -math.inf or ends.upper == math.inf
    return endless and (isinstance(noise, DiscreteGaussian) or noise != noise_of(right))


def _window(left: Law, right: Law, beyond: int) -> tuple[int, int, list[int]]:
    """A range that holds all but 1e-14 of both laws, and the outcomes where the shape of one changes."""
    one, other = center_of(left), center_of(right)
    reach = max(noise.radius(1 - 1e-14) for noise in (noise_of(left), noise_of(right))) + 2
    reach += beyond * abs(other - one)
    ends = {end for law in (left, right) for end in bounds_of(law) if math.isfinite(end)}
    return min(one, other) - reach, max(one, other) + reach, [one, other, *(int(end) for end in ends)]


def _log_ratios(left: Law, right: Law) -> tuple[float, float]:
    """The largest log P/Q and log Q/P over the outcomes."""
    low, high, kinks = _window(left, right, beyond=0)
    few = high - low <= LISTED[2]
    # Log probabilities of Laplace laws are straight between their kinks, so that these decide.
    spread = range(low, high + 1) if few else (low + (high - low) * i // 64 for i in range(65))
    listed = _integers(sorted({*spread, *(kink + side for kink in kinks for side in (-1, 0, 1))}))
    p, q = np.asarray(left.logpmf(listed)), np.asarray(right.logpmf(listed))
    possible = np.isfinite(p) | np.isfinite(q)
    with np.errstate(invalid="ignore"):
        ratio = (p - q)[possible]
    return float(ratio.max(initial=-np.inf)), float((-ratio).max(initial=-np.inf))


def _masses(left: Law, right: Law, limit: int, beyond: int = 0) -> tuple[Floats, Floats]:
    """Probabilities of both laws on common blocks of outcomes; single outcomes where there are few."""
    low, high, kinks = _window(left, right, beyond)
    if high - low < limit:
        edges = list(range(low, high + 1))
    else:
        spread = {low + (high - low) * i // (limit - 1) for i in range(limit)}
        edges = sorted(spread | {kink + side for kink in kinks for side in (-1, 0)})
    listed = _integers(edges)
    return _block_masses(left, listed), _block_masses(right, listed)


def _block_masses(law: Law, edges: Any) -> Floats:
    below, above = np.asarray(law.cdf(edges)), np.asarray(law.sf(edges))
    # Differences are taken in the smaller of the two tails, where they keep their accuracy.
    inside = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
    return np.concatenate([below[:1], np.maximum(inside, 0.0), above[-1:]])


def _renyi(p: Floats, q: Floats, order: float) -> float:
    kept = p > 0
    # A probability that underflowed is raised to the smallest float, which makes the divergence smaller.
    terms = order * np.log(p[kept]) + (1 - order) * np.log(np.maximum(q[kept], SMALLEST))
    largest = terms.max()
    return float((largest + np.log(np.exp(terms - largest).sum())) / (order - 1))


def _integers(outcomes: Sequence[int]) -> Any:
    small = min(outcomes) > -(2**62) and max(outcomes) < 2**62
    return np.array(outcomes, dtype=np.int64 if small else object)
