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
    BoundedNoiseEvent,
    Event,
    FreeEvent,
    GaussianEvent,
    flatten,
    scalar_shift,
)
from sfumato.privacy.gaussian import MAX_EPSILON, Part, log_scalar_delta, log_vector_delta

__all__ = ["Composition", "compose"]

# The range of `zcdp_epsilon`.
MIN_RHO, MAX_RHO = Fraction(1, 10**300), Fraction(10**12)


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
        NotSupported: the events together cost more than rho = 1e12, or bounded noise is mixed with noise of
            another kind and no PLD can be had.

    References:
        [DR14] for sums, [CKS20] for zCDP, [BW18] for Gaussians, [Meiser18] for privacy-loss buckets;
        docs/proofs/composition.md.

    >>> from sfumato.privacy.events import GaussianEvent
    >>> compose([GaussianEvent(2**20, 14 * 2**20, coordinates=2)] * 5, delta=1e-6).method
    'Gaussian'
    """
    batch = [event for event in flatten(events) if not isinstance(event, FreeEvent)]
    target = between("delta", delta, 0, 1)
    if not batch:
        free = decimal_up(0.0)
        return Composition(ApproxDP(free, target), "pure sum", {"pure sum": free})
    considered: dict[str, Fraction] = {}
    costs = [event.pure_epsilon for event in batch]
    pure = [cost for cost in costs if cost is not None]
    if len(pure) == len(costs):
        considered["pure sum"] = sum(pure, Fraction(0))
    bounded = [event for event in batch if isinstance(event, BoundedNoiseEvent)]
    if not bounded:
        considered["zCDP"] = _zcdp_epsilon(batch, target)
    elif len(bounded) + len(pure) == len(batch) and (alike := _alike(bounded)) is not None:
        considered["bounded noise"] = sum(pure, bounded_epsilon(alike, target))
    gaussians = [event for event in batch if isinstance(event, GaussianEvent)]
    if gaussians and len(gaussians) + len(pure) == len(batch):
        considered["Gaussian"] = sum(pure, _gaussian_epsilon(gaussians, target))
    try:
        from sfumato.privacy.pld import pld_epsilon  # here: it alone needs the optional package

        considered["PLD"] = decimal_up(pld_epsilon(batch, target))
    except (MissingExtra, NotSupported):
        pass
    if not considered:
        raise NotSupported("no proof covers this batch: bounded noise with noise of another kind needs a PLD")
    method = min(considered, key=lambda name: considered[name])
    return Composition(ApproxDP(considered[method], target), method, considered)


# A session asks for its own cap and for that of a ledger; a privacy loss distribution takes long enough once.
@lru_cache(maxsize=64)
def approx_satisfied(event: Event, cost: ApproxDP) -> bool:
    """Whether an event provably satisfies an (epsilon, delta) cost; cheap proofs first."""
    parts = [part for part in flatten([event]) if not isinstance(part, FreeEvent)]
    pure = event.pure_epsilon
    if pure is not None and pure <= cost.epsilon:
        return True
    target = log_fraction(cost.delta) - 1e-12
    bounded = [part for part in parts if isinstance(part, BoundedNoiseEvent)]
    if not bounded and log_zcdp_delta(event.rho, cost.epsilon) <= target:
        return True
    gaussians = [part for part in parts if isinstance(part, GaussianEvent)]
    pure_parts = [part.pure_epsilon for part in parts if part.pure_epsilon is not None]
    left = cost.epsilon - sum(pure_parts, Fraction(0))
    if (
        len(bounded) + len(pure_parts) == len(parts)
        and left > 0
        and (alike := _alike(bounded)) is not None
        and bounded_satisfied(alike, ApproxDP(left, cost.delta))
    ):
        return True
    if (
        len(gaussians) + len(pure_parts) == len(parts)
        and 0 <= left <= MAX_EPSILON
        and _gaussian_curve(gaussians)(left) <= target
    ):
        return True
    try:
        from sfumato.privacy.pld import pld_delta

        return Fraction(pld_delta(parts, min(cost.epsilon, Fraction(MAX_EPSILON)))) <= cost.delta
    except (MissingExtra, NotSupported):
        return False


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
    """log delta of Gaussian noise as a function of epsilon: exact for one scalar, else the vector bound."""
    if len(events) == 1 and events[0].coordinates == 1:
        shift = scalar_shift(events[0].sensitivity_squared)
        return lambda epsilon: log_scalar_delta(epsilon, events[0].sigma_squared, shift)
    parts = [Part(event.sensitivity_squared, event.sigma_squared, event.coordinates) for event in events]
    return lambda epsilon: log_vector_delta(epsilon, parts)


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
