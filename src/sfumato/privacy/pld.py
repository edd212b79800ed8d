r"""Privacy-loss distributions of our own laws, composed by dp-accounting: the one file that imports it.

Only its convolution is used. The distribution itself is built here, at the dominating pair that is proved
for each event (docs/proofs/composition.md), because the package's own events double a sensitivity that is
already doubled, and because its continuous Laplace is not an upper bound of the discrete one.

Outcomes are gathered in blocks, small enough that the privacy loss hardly varies inside one. The mass of a
block is then moved to the two grid points of loss around it, in the proportion that keeps its probability
under both data sets. That spreads exp(-loss) at equal mean, so every hockey-stick divergence can only grow:
the result is pessimistic, and its error is of second order in the grid step.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import Number, between, float_up, shown
from sfumato.errors import MissingExtra, NotSupported
from sfumato.laws import BoundedNoise, DiscreteGaussian, DiscreteLaplace
from sfumato.laws.law import MAX_SCALE
from sfumato.privacy.bounded_losses import last_outcome, loss
from sfumato.privacy.events import (
    ApproxEvent,
    BoundedNoiseEvent,
    ConcentratedEvent,
    Event,
    FreeEvent,
    GaussianEvent,
    LaplaceEvent,
    flatten,
    scalar_shift,
)
from sfumato.privacy.gaussian import check_epsilon

__all__ = ["pld_delta", "pld_epsilon"]

Floats = NDArray[np.float64]

# Step of the loss grid relative to the typical loss of one event: the variance it adds is below 1e-5 of all,
# and below 1e-4 at the four times wider step of large batches.
_STEP = 0.005
_MAX_STEP = 0.05
# Covers the relative error of a block's probability (laws promise 1e-12, a difference of tails loses some),
# which is also the error of its mean exp(-loss), hence of its loss.
_ERROR = 1e-8
# What dp-accounting may cut off a convolution; it adds it to the mass of infinite loss.
_TRUNCATION = 1e-15
# Outcomes further than this many sigmas have probability below 1e-60 and count as infinite loss.
_REACH = 17
_MOST_SINGLES = 2**16
# Outcomes of bounded noise that together are rarer than this count as infinite loss.
_RARE = 1e-18
# dp-accounting needs mass that is not truncated.
_FEWEST_FINITE = 1e-9
_MOST_LOSS = 10_000
_MOST_EVENTS = 10_000


class Blocks(NamedTuple):
    """Outcomes in blocks: bounds of the loss and probability under either data set; `beyond` has no bound."""

    low: Floats
    high: Floats
    left: Floats
    right: Floats
    beyond: float


class Composed(NamedTuple):
    """A composed distribution and bounds of its errors: in the sum of masses, relative, and in the losses."""

    distribution: Any
    slack: float
    factor: float
    shift: float


def pld_delta(events: Iterable[Event], epsilon: Number) -> float:
    r"""The delta of a batch of events at an epsilon, by numerical composition of privacy losses.

    Guarantee:
        All the events together, fixed before the first answer, are :math:`(\varepsilon, \delta)`-DP with the
        returned delta, provided that the Fourier transform errs as `_transform_error` says. Above the exact
        composition by at most 2e-3 (relative) in the tests, plus about 1e-12 per event for the transform.

    Args:
        events: Laplace, one-coordinate Gaussian, bounded noise, pure and approximate; free ones cost nothing.
        epsilon: in [0, 1000].

    Raises:
        InvalidParameter: epsilon out of range, or something that is not an event.
        NotSupported: an event without a proved dominating pair, or losses beyond the grid.
        MissingExtra: dp-accounting is not installed.

    References:
        [Meiser18] for buckets of privacy loss; docs/proofs/composition.md.

    >>> round(pld_delta([LaplaceEvent(sensitivity=1, scale=10)] * 10, 0.8), 6)
    0.000288
    """
    limit = check_epsilon(epsilon)
    batch = _billable(events)
    if not batch:
        return 0.0
    composed = _compose(batch)
    # The divergence falls with epsilon, so a float just below it rounds against us.
    return min(1.0, _delta_at(composed, math.nextafter(float(limit), -math.inf)))


def pld_epsilon(events: Iterable[Event], delta: Number) -> float:
    r"""The epsilon of a batch of events at a delta, by numerical composition of privacy losses.

    Guarantee:
        All the events together, fixed before the first answer, are :math:`(\varepsilon, \delta)`-DP with the
        returned epsilon, provided that the Fourier transform errs as `_transform_error` says. Above the
        exact composition by less than 3e-3 (relative) in the tests, mostly by less than 1e-4.

    Args:
        events: Laplace, one-coordinate Gaussian, bounded noise, pure and approximate; free ones cost nothing.
        delta: inside (0, 1); not so small that it drowns in the rounding of the Fourier transform.

    Raises:
        InvalidParameter: delta out of range, or something that is not an event.
        NotSupported: an event without a proved dominating pair, or a delta that is too small.
        MissingExtra: dp-accounting is not installed.

    References:
        [Meiser18] for buckets of privacy loss; docs/proofs/composition.md.

    >>> round(pld_epsilon([LaplaceEvent(sensitivity=1, scale=10)] * 20, 1e-6), 4)
    1.7886
    """
    target = between("delta", delta, 0, 1)
    batch = _billable(events)
    if not batch:
        return 0.0
    composed = _compose(batch)
    allowed = math.nextafter(float(target), 0.0) / composed.factor - composed.slack
    if not allowed > 2 * composed.slack:
        raise NotSupported(
            f"delta={shown(target)} is too near the rounding error {composed.slack:.1e} of a PLD"
        )
    found = float(composed.distribution.get_epsilon_for_delta(allowed))
    epsilon = found * (1 + 1e-12) + 2 * composed.shift
    if not math.isfinite(epsilon) or Fraction(_delta_at(composed, epsilon)) > target:
        raise NotSupported(f"no epsilon was proved at delta={shown(target)}")
    return math.nextafter(epsilon, math.inf)


def _delta_at(composed: Composed, epsilon: float) -> float:
    found = float(composed.distribution.get_delta_for_epsilon(epsilon - composed.shift))
    return (found + composed.slack) * composed.factor


def _billable(events: Iterable[Event]) -> list[Event]:
    batch: list[Event] = [event for event in flatten(events) if not isinstance(event, FreeEvent)]
    if sum(map(_times, batch)) > _MOST_EVENTS:
        raise NotSupported(f"a PLD composes at most {_MOST_EVENTS} events, got {sum(map(_times, batch))}")
    for event in batch:
        if isinstance(event, BoundedNoiseEvent):
            if event.bound > _MOST_SINGLES or event.sensitivity >= 2 * event.bound - 1:
                raise NotSupported(f"the losses of {event!r} are too many or infinite")
            continue
        if isinstance(event, GaussianEvent) and event.coordinates > 1:
            raise NotSupported(f"no dominating pair is proved for more than one coordinate: {event!r}")
        if isinstance(event, ConcentratedEvent):
            raise NotSupported(f"no dominating pair is known for {event!r}")
        if _rho(event) > _MOST_LOSS or _stated_epsilon(event) > _MOST_LOSS:
            raise NotSupported(f"the privacy loss of {event!r} is too large to compose")
        scale = event.scale**2 if isinstance(event, LaplaceEvent) else getattr(event, "sigma_squared", 1)
        if scale > MAX_SCALE**2 or (isinstance(event, LaplaceEvent) and event.sensitivity > 2**60):
            raise NotSupported(f"the scale of {event!r} is too large to compose")
    return batch


def _compose(batch: Sequence[Event]) -> Composed:
    """Equal events are raised to a power, the results convolved, and the rounding errors added up."""
    pld_pmf = _package()
    _check_finite_losses(batch)
    step = _step(batch)
    composed: Any = None
    slack, norm = 0.0, 1.0
    # Sorted by their text, so that the same batch always gives the same digits.
    for event, equal in sorted(Counter(batch).items(), key=repr):
        times = equal * _times(event)
        masses, beyond = _on_grid(_blocks(event, step), step)
        distribution = pld_pmf.create_pmf(masses, step, beyond, True)
        size = math.sqrt(math.fsum(mass * mass for mass in masses.values()))
        if times > 1:
            distribution = distribution.self_compose(times, _TRUNCATION)
            slack += (times + 1) * _transform_error(distribution.size) * size
        if composed is None:
            composed, norm = distribution, size
            continue
        composed = pld_pmf.compose_pmfs(composed, distribution, _TRUNCATION)
        slack += 3 * _transform_error(composed.size) * norm * size
        norm = min(norm, size)
    releases = sum(map(_times, batch))
    return Composed(composed, slack, (1 + _ERROR) ** releases, _ERROR * releases)


def _check_finite_losses(batch: Sequence[Event]) -> None:
    left = 1.0
    for event in batch:
        if isinstance(event, BoundedNoiseEvent):
            left *= (1.0 - _bounded_blocks(event).beyond) ** event.queries
        elif isinstance(event, ApproxEvent):
            left *= float(1 - event.delta)
    if left < _FEWEST_FINITE:
        raise NotSupported("almost all privacy losses of these events are infinite")


def _step(batch: Sequence[Event]) -> float:
    """The grid step: small against the typical loss, and a divisor of the losses of the commonest event."""
    releases = sum(map(_times, batch))
    typical = math.sqrt(math.fsum(_times(event) * _mean_square(event) for event in batch) / releases)
    wanted = min((_STEP if releases <= 100 else 4 * _STEP) * typical, _MAX_STEP)
    if wanted < _ERROR:
        raise NotSupported(
            "the privacy losses of these events are too small for a grid: add their costs instead"
        )
    event = Counter(batch).most_common(1)[0][0]
    if isinstance(event, LaplaceEvent):
        unit = float(1 / event.scale)
    elif isinstance(event, GaussianEvent):
        unit = float(scalar_shift(event.sensitivity_squared) / (2 * event.sigma_squared))
    else:
        unit = float(_stated_epsilon(event) or wanted)
    return unit / math.ceil(unit / wanted) if unit > wanted else wanted


def _times(event: Event) -> int:
    """How many releases an event stands for."""
    return event.queries if isinstance(event, BoundedNoiseEvent) else 1


def _stated_epsilon(event: Event) -> Fraction:
    """The epsilon of a pure or an approximate bound; zero without one."""
    return event.epsilon if isinstance(event, ApproxEvent) else event.pure_epsilon or Fraction(0)


def _rho(event: Event) -> Fraction:
    """The zCDP cost; of an approximate bound, that of its finite losses."""
    return event.epsilon**2 / 2 if isinstance(event, ApproxEvent) else event.rho


def _mean_square(event: Event) -> float:
    """About the mean square of the loss of one release."""
    if not isinstance(event, BoundedNoiseEvent):
        return float(2 * _rho(event))
    blocks = _bounded_blocks(event)
    return float(blocks.left @ blocks.low**2)


def _transform_error(size: int) -> float:
    """Bound of the summed error of a convolution of this size, for factors of norm 1.

    The 2-norm of the error of a fast Fourier transform is at most about log2(n) units of rounding, relative;
    the sum of absolute errors is at most sqrt(n) times the 2-norm. The factor eight for the constants is an
    estimate, not a certificate.
    """
    return 8 * 2.0**-53 * math.log2(2 * size + 2) * math.sqrt(2 * size + 2)


def _on_grid(blocks: Blocks, step: float) -> tuple[dict[int, float], float]:
    """Spreads each block over the grid points of loss around it; keeps both probabilities or errs upwards."""
    # A loss that is a grid point but for rounding stays there; _ERROR covers the difference.
    low = np.floor(blocks.low / step + 1e-9)
    high = np.maximum(np.ceil(blocks.high / step - 1e-9), low + 1)
    with np.errstate(under="ignore"):
        # Where the exponential is cut off, more mass goes to the top.
        rest = blocks.left - blocks.right * np.exp(np.minimum(low * step, 700.0))
        top = np.clip(rest / -np.expm1((low - high) * step), 0.0, blocks.left)
    masses: dict[int, float] = {}
    for places, parts in ((low, blocks.left - top), (high, top)):
        unique, inverse = np.unique(places.astype(np.int64), return_inverse=True)
        for place, mass in zip(unique.tolist(), np.bincount(inverse, weights=parts).tolist(), strict=True):
            masses[place] = masses.get(place, 0.0) + mass
    return masses, blocks.beyond


def _blocks(event: Event, step: float) -> Blocks:
    if isinstance(event, LaplaceEvent):
        return _laplace_blocks(event, step)
    if isinstance(event, GaussianEvent):
        return _gaussian_blocks(event, step)
    if isinstance(event, BoundedNoiseEvent):
        return _bounded_blocks(event)
    # Every pair of laws within a factor e^epsilon is a post-processing of randomised response.
    epsilon = float(_stated_epsilon(event))
    # An approximate bound is the same but for a probability of delta, at which the loss is infinite.
    beyond = float_up(event.delta) if isinstance(event, ApproxEvent) else 0.0
    losses = np.array([-epsilon, epsilon])
    rare, common = (1 - beyond) / (1 + math.exp(epsilon)), (1 - beyond) / (1 + math.exp(-epsilon))
    return Blocks(losses, losses, np.array([rare, common]), np.array([common, rare]), beyond)


def _laplace_blocks(event: LaplaceEvent, step: float) -> Blocks:
    """Noise centred at the shift against noise centred at 0; outside [0, shift] the loss is constant."""
    law, shift, scale = DiscreteLaplace(event.scale), event.sensitivity, float(event.scale)
    first, last = _edges(1, shift - 1, 8 * shift / scale / step)
    low, high = (2 * first - shift) / scale, (2 * last - shift) / scale
    ends = np.array([-shift / scale, shift / scale])
    return Blocks(
        np.concatenate([ends, low]),
        np.concatenate([ends, high]),
        np.concatenate([[law.cdf(-shift), law.sf(-1)], _mass(law, first - shift, last - shift)]),
        np.concatenate([[law.cdf(0), law.sf(shift - 1)], _mass(law, first, last)]),
        0.0,
    )


def _gaussian_blocks(event: GaussianEvent, step: float) -> Blocks:
    """Noise y under one data set, y + shift under the other: the loss is (y D + D^2/2) / sigma^2."""
    law, shift = DiscreteGaussian(event.sigma_squared), scalar_shift(event.sensitivity_squared)
    reach = math.ceil(_REACH * math.sqrt(event.sigma_squared))
    slope, middle = float(shift / event.sigma_squared), float(event.rho)
    first, last = _edges(-reach, reach, 8 * reach * slope / step)
    left = _mass(law, first, last)
    left[0] += law.cdf(-reach - 1)  # a smaller loss is replaced by a larger one
    return Blocks(
        np.asarray(first * slope + middle, dtype=np.float64),
        np.asarray(last * slope + middle, dtype=np.float64),
        left,
        _mass(law, first + shift, last + shift),
        law.sf(reach),
    )


def _bounded_blocks(event: BoundedNoiseEvent) -> Blocks:
    """Noise y under one data set, y + shift under the other: on the last places the loss is infinite."""
    law, shift = BoundedNoise(event.bound, event.power), event.sensitivity
    last = last_outcome(law, shift, _RARE)
    first = max(-last - shift, -event.bound + 1)
    if last < first:
        raise NotSupported(f"almost all privacy losses of {event!r} are infinite")
    places = np.arange(first, last + 1)
    losses = loss(law, shift, places.astype(np.float64))
    left = np.exp(law.logpmf(places))
    left[0] += law.cdf(first - 1)  # a smaller loss is replaced by a larger one
    return Blocks(losses, losses, left, np.exp(law.logpmf(places + shift)), law.sf(last))


def _edges(start: int, stop: int, wanted: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last integers of consecutive blocks that cover [start, stop]: single ones if they are few."""
    count = stop - start + 1
    if count > _MOST_SINGLES and math.ceil(wanted) < count:
        width = -(-count // max(64, math.ceil(wanted)))
        first = np.arange(start, stop + 1, width, dtype=np.int64)
        return first, np.append(first[1:] - 1, stop)
    single = np.arange(start, stop + 1, dtype=np.int64)
    return single, single


def _mass(law: Any, first: NDArray[np.int64], last: NDArray[np.int64]) -> Floats:
    """P(first <= X <= last), without the cancellation of two tails near 1."""
    if np.array_equal(first, last):
        return np.asarray(np.exp(law.logpmf(first)), dtype=np.float64)
    upper = law.sf(first - 1) - law.sf(last)
    lower = law.cdf(last) - law.cdf(first - 1)
    return np.asarray(np.maximum(0.0, np.where(first > 0, upper, lower)), dtype=np.float64)


def _package() -> Any:
    try:
        from dp_accounting.pld import pld_pmf
    except ImportError as error:
        raise MissingExtra('composing privacy losses needs: pip install "sfumato[accounting]"') from error
    return pld_pmf
