"""The cost of a batch of events that were all fixed before the first answer: the best of four proofs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from sfumato.checks import Number, between, decimal
from sfumato.errors import MissingExtra, NotSupported
from sfumato.privacy.bounded_noise import bounded_epsilon, bounded_satisfied
from sfumato.privacy.conversions import decimal_up, log_fraction, log_zcdp_delta, zcdp_epsilon
from sfumato.privacy.definitions import ApproxDP
from sfumato.privacy.events import (
    MAX_QUERIES,
    ApproxEvent,
    BoundedNoiseEvent,
    Event,
    FreeEvent,
    GaussianEvent,
    GaussianVectorEvent,
    PureEvent,
    flatten,
    scalar_shift,
)
from sfumato.privacy.gaussian import MAX_EPSILON, Part, log_parts_delta, log_scalar_delta, log_vectors_delta

__all__ = ["Composition", "compose"]

# The range of `zcdp_epsilon`.
MIN_RHO, MAX_RHO = Fraction(1, 10**300), Fraction(10**12)
# Bits that are kept of what is left of a delta.
_DIGITS = 256


@dataclass(frozen=True, repr=False)
class Composition:
    """The cost of a batch, the proof that gave it, and what the other proofs would have given.

    Guarantee:
        The batch satisfies `budget`; `considered` maps the name of each proof that applies to its epsilon.

    References:
        [DR14], [BS16], [CKS20], [Meiser18]; docs/proofs/composition.md.

    >>> from sfumato.privacy.events import PureEvent
    >>> compose([PureEvent(0.1, "exponential")] * 2, delta=1e-9)
    Composition(epsilon=0.2, delta=1e-09, method='pure sum')
    """

    budget: ApproxDP
    method: str
    considered: dict[str, Fraction]

    @property
    def epsilon(self) -> Fraction:
        """The epsilon of the batch."""
        return self.budget.epsilon

    @property
    def delta(self) -> Fraction:
        """The delta that was asked for."""
        return self.budget.delta

    def __repr__(self) -> str:
        numbers = f"epsilon={decimal(self.epsilon)}, delta={decimal(self.delta)}"
        return f"Composition({numbers}, method={self.method!r})"


def compose(events: Iterable[Event], *, delta: Number) -> Composition:
    r"""The smallest epsilon that can be proved, at a delta, for events fixed together.

    Guarantee:
        All the events together are :math:`(\varepsilon, \delta)`-DP. Valid for a batch whose mechanisms and
        parameters were fixed before the first answer; batches and interactive queries compose by the
        accountants only. An epsilon of zero is reported as 1e-12.

    Args:
        events: the batch; composed events are opened.
        delta: inside (0, 1).

    Raises:
        InvalidParameter: delta out of range, or something that is not an event.
        NotSupported: the events together cost more than rho = 1e12, their own deltas pass delta, or bounded
            noise is mixed with noise of another kind and no PLD can be had.

    References:
        [DR14] for sums, [CKS20] for zCDP, [BW18] for Gaussians, [Meiser18] for privacy-loss buckets, [KOV15]
        for approximate bounds; docs/proofs/composition.md.

    >>> from sfumato.privacy.events import GaussianEvent
    >>> compose([GaussianEvent(2**20, 14 * 2**20, coordinates=2)] * 5, delta=1e-6).method
    'Gaussian'
    """
    batch = [event for event in flatten(events) if not isinstance(event, FreeEvent)]
    target = between("delta", delta, 0, 1)
    if not batch:
        free = decimal_up(0.0)
        return Composition(ApproxDP(free, target), "pure sum", {"pure sum": free})
    left = _left_of(target, batch)
    if left is None:
        stated = decimal(stated_delta(batch))
        raise NotSupported(f"delta={decimal(target)} is below the deltas of the events, together {stated}")
    considered: dict[str, Fraction] = {}
    surely = [_but_for_delta(event) for event in batch]
    costs = [event.pure_epsilon for event in surely]
    pure = [cost for cost in costs if cost is not None]
    if len(pure) == len(costs):
        considered["pure sum" if surely == batch else "approximate sum"] = sum(pure, Fraction(0))
    if left:
        considered |= _noise_epsilons(surely, pure, left)
    try:
        from sfumato.privacy.pld import pld_epsilon  # here: it alone needs the optional package

        considered["PLD"] = decimal_up(pld_epsilon(batch, target))
    except (MissingExtra, NotSupported):
        pass
    if not considered:
        if not left:
            raise NotSupported(f"delta={decimal(target)} is all taken by the deltas of the events")
        raise NotSupported("no proof covers this batch: bounded noise with noise of another kind needs a PLD")
    method = min(considered, key=lambda name: considered[name])
    return Composition(ApproxDP(considered[method], target), method, considered)


def stated_delta(events: Iterable[Event]) -> Fraction:
    """The sum of the deltas of approximate events: with this probability at most some bound fails."""
    return sum((event.delta for event in flatten(events) if isinstance(event, ApproxEvent)), Fraction(0))


def _but_for_delta(event: Event) -> Event:
    # But for a probability of delta it is randomised response: docs/proofs/composition.md, lemma 4.
    return PureEvent(event.epsilon, event.name) if isinstance(event, ApproxEvent) else event


def _left_of(delta: Fraction, events: Sequence[Event]) -> Fraction | None:
    """What the others may fail with, given that no approximate bound does; None if these fail too often."""
    stated = stated_delta(events)
    if stated > delta:
        return None
    return _shortened((delta - stated) / (1 - stated)) if stated else delta


def _shortened(value: Fraction) -> Fraction:
    """Not above, by 2^-255 of it; sums of many deltas have more digits than a parameter may have."""
    if value < MIN_RHO:
        return Fraction(0)
    shift = _DIGITS + value.denominator.bit_length() - value.numerator.bit_length()
    return Fraction((value.numerator << shift) // value.denominator, 1 << shift)


def _noise_epsilons(batch: Sequence[Event], pure: list[Fraction], delta: Fraction) -> dict[str, Fraction]:
    """What the proofs about noise give that need no PLD."""
    found: dict[str, Fraction] = {}
    bounded = [event for event in batch if isinstance(event, BoundedNoiseEvent)]
    if not bounded:
        found["zCDP"] = _zcdp_epsilon(batch, delta)
    elif len(bounded) + len(pure) == len(batch) and (alike := _alike(bounded)) is not None:
        found["bounded noise"] = sum(pure, bounded_epsilon(alike, delta))
    gaussians = [event for event in batch if isinstance(event, GaussianEvent)]
    if gaussians and len(gaussians) + len(pure) == len(batch):
        found["Gaussian"] = sum(pure, _gaussian_epsilon(gaussians, delta))
    return found


# A session asks for its own cap and for that of a ledger; a privacy loss distribution takes long enough once.
@lru_cache(maxsize=64)
def approx_satisfied(event: Event, cost: ApproxDP) -> bool:
    """Whether an event provably satisfies an (epsilon, delta) cost; cheap proofs first."""
    batch = [part for part in flatten([event]) if not isinstance(part, FreeEvent)]
    delta = _left_of(cost.delta, batch)
    if delta is None:
        return False
    parts = [_but_for_delta(part) for part in batch]
    pure_parts = [part.pure_epsilon for part in parts if part.pure_epsilon is not None]
    left = cost.epsilon - sum(pure_parts, Fraction(0))
    if len(pure_parts) == len(parts) and left >= 0:
        return True
    if delta and _noise_satisfied(parts, pure_parts, ApproxDP(cost.epsilon, delta)):
        return True
    try:
        from sfumato.privacy.pld import pld_delta

        return Fraction(pld_delta(batch, min(cost.epsilon, Fraction(MAX_EPSILON)))) <= cost.delta
    except (MissingExtra, NotSupported):
        return False


def _noise_satisfied(parts: Sequence[Event], pure: list[Fraction], cost: ApproxDP) -> bool:
    """Whether a proof about noise that needs no PLD gives a cost."""
    target = log_fraction(cost.delta) - 1e-12
    bounded = [part for part in parts if isinstance(part, BoundedNoiseEvent)]
    rho = Fraction(0) if bounded else sum((part.rho for part in parts), Fraction(0))
    if not bounded and log_zcdp_delta(rho, cost.epsilon) <= target:
        return True
    gaussians = [part for part in parts if isinstance(part, GaussianEvent)]
    left = cost.epsilon - sum(pure, Fraction(0))
    if (
        len(bounded) + len(pure) == len(parts)
        and left > 0
        and (alike := _alike(bounded)) is not None
        and bounded_satisfied(alike, ApproxDP(left, cost.delta))
    ):
        return True
    return (
        len(gaussians) + len(pure) == len(parts)
        and 0 <= left <= MAX_EPSILON
        and _gaussian_curve(gaussians)(left) <= target
    )


def _alike(events: list[BoundedNoiseEvent]) -> BoundedNoiseEvent | None:
    """Answers with the same bounded noise as one event; None if there are none, several kinds or too many."""
    kinds = {(event.sensitivity, event.bound, event.power) for event in events}
    queries = sum(event.queries for event in events)
    return BoundedNoiseEvent(*kinds.pop(), queries) if len(kinds) == 1 and queries <= MAX_QUERIES else None


def _zcdp_epsilon(events: Sequence[Event], delta: Fraction) -> Fraction:
    rho = sum((event.rho for event in events), Fraction(0))
    if rho > MAX_RHO:
        raise NotSupported(f"events of together rho={decimal(rho)} are too costly to convert")
    return decimal_up(zcdp_epsilon(max(rho, MIN_RHO), delta))


def _gaussian_curve(events: list[GaussianEvent]) -> Callable[[Fraction], float]:
    """log delta of Gaussian noise as a function of epsilon: exact for one scalar, else a bound."""
    if len(events) == 1 and events[0].coordinates == 1:
        shift = scalar_shift(events[0].sensitivity_squared)
        return lambda epsilon: log_scalar_delta(epsilon, events[0].sigma_squared, shift)
    parts = [Part(event.sensitivity_squared, event.sigma_squared, event.coordinates) for event in events]
    fixed = all(isinstance(event, GaussianVectorEvent) or event.coordinates == 1 for event in events)
    curve = log_vectors_delta if fixed else log_parts_delta
    return lambda epsilon: curve(epsilon, parts)


def _gaussian_epsilon(events: list[GaussianEvent], delta: Fraction) -> Fraction:
    """The smallest epsilon at which the Gaussian curve is under delta, or that of zCDP if none is smaller."""
    curve, target = _gaussian_curve(events), log_fraction(delta) - 1e-12
    safe = _zcdp_epsilon(events, delta)
    low, high = 0.0, float(safe)
    if safe > MAX_EPSILON or curve(safe) > target:
        return safe
    for _ in range(60):
        middle = (low + high) / 2
        if curve(Fraction(middle)) <= target:
            high = middle
        else:
            low = middle
    best = min(decimal_up(high), safe)
    return best if curve(best) <= target else safe
