"""What bounded noise costs: the delta of many answers at an epsilon, and the bound that a budget needs."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from sfumato.checks import Number, shown, whole
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import BoundedNoise
from sfumato.laws.bounded import MAX_BOUND, POWERS, checked_power
from sfumato.privacy.bounded_losses import delta_of
from sfumato.privacy.conversions import decimal_up
from sfumato.privacy.definitions import ApproxDP
from sfumato.privacy.events import MAX_QUERIES, BoundedNoiseEvent
from sfumato.privacy.gaussian import check_epsilon

__all__ = ["bounded_noise_bound", "bounded_noise_delta"]

MIN_DELTA = Fraction(1, 10**30)
# What may be cut off as infinite loss, as a share of the delta that is looked for.
_CUT = 1e-5
# A calibrated bound is at most this much of itself above the smallest.
_TOLERANCE = 2.0**-14


def bounded_noise_delta(
    epsilon: Number, *, bound: int, power: int, sensitivity: int, queries: int = 1
) -> float:
    r"""The delta of answers with bounded noise, each of which one change of a record moves a little.

    Guarantee:
        An upper bound of the exact :math:`\delta(\varepsilon)` of `queries` answers, each with independent
        noise `BoundedNoise(bound, power)`, to integers that move by at most `sensitivity`, even if each is
        chosen after seeing earlier answers; provided that the Fourier transform errs as the proof says. Exact
        to 1e-9 for one answer, and above the truth by less than 0.1 % in the tests for more.
        Proof: docs/proofs/bounded-noise.md.

    Args:
        epsilon: in [0, 1000].
        bound: the noise stays strictly inside (-bound, bound).
        power: 1, 2 or 3.
        sensitivity: the largest change of one answer, in steps of the integers.
        queries: the number of answers, at most 10^7.

    Raises:
        InvalidParameter: a number out of range.

    References:
        [DaganKur22] for the mechanism, [Koskela20] for transforms of privacy losses.

    >>> round(bounded_noise_delta(1, bound=124, power=2, sensitivity=1, queries=10), 8)
    9.4e-07
    """
    limit = check_epsilon(epsilon)
    law = BoundedNoise(bound, power)
    shift = whole("sensitivity", sensitivity, least=1, most=MAX_BOUND)
    count = whole("queries", queries, least=1, most=MAX_QUERIES)
    cut = 1e-12
    while True:
        found = delta_of(law, shift, count, limit, cut)
        if cut <= 1e-4 * found or cut < 1e-60:
            return found
        cut = max(min(_CUT * found, cut * 1e-9), 1e-61)


def bounded_noise_bound(
    budget: ApproxDP, *, sensitivity: int, queries: int = 1, power: int | None = None
) -> tuple[int, int]:
    r"""The bound of the noise that a budget needs, and the power: the given one, or the best of 1, 2 and 3.

    Guarantee:
        `queries` answers with `BoundedNoise(bound, power)`, to integers that move by at most `sensitivity`,
        satisfy `budget`: the search ends by checking the bound that it returns. It is the smallest that can
        be proved, to 1 in 16,384. The power depends on these public numbers only.

    Args:
        budget: ApproxDP with epsilon in [1e-4, 1000] and delta at least 1e-30.
        sensitivity: the largest change of one answer, in steps of the integers.
        queries: the number of answers, at most 10^7.
        power: 1, 2 or 3; None for the one with the smallest bound.

    Raises:
        InvalidParameter: a number out of range, or a budget of another kind.
        NotSupported: the bound that is needed is above 2^22.

    References:
        [DaganKur22]; proof: docs/proofs/bounded-noise.md.

    >>> bounded_noise_bound(ApproxDP(1, 1e-6), sensitivity=1, queries=100)
    (204, 2)
    """
    check_budget(budget)
    shift = whole("sensitivity", sensitivity, least=1, most=MAX_BOUND)
    count = whole("queries", queries, least=1, most=MAX_QUERIES)
    if power is not None:
        chosen = checked_power(power)
        return _smallest(chosen, shift, count, budget, MAX_BOUND), chosen
    found: tuple[int, int] | None = None
    # Flat noise wins for few answers and round noise for many: the likely winner first, as the others then
    # mostly take one step each.
    likely = 3 if count <= 30 else 2 if count <= 1000 else 1
    for candidate in sorted(POWERS, key=lambda power: power != likely):
        try:
            if found is None:
                found = _smallest(candidate, shift, count, budget, MAX_BOUND), candidate
            elif _meets(found[0] - 1, candidate, shift, count, budget):
                found = _smallest(candidate, shift, count, budget, found[0] - 1), candidate
        except NotSupported:  # this power needs too wide a bound; another may not
            continue
    if found is None:
        raise _too_wide(budget)
    return found


def check_budget(budget: object) -> ApproxDP:
    """A budget that bounded noise can be calibrated to; other kinds are refused with the reason."""
    if not isinstance(budget, ApproxDP):
        raise InvalidParameter(
            "budget must be an ApproxDP: bounded noise has outcomes that one of two neighbours cannot give, "
            f"so it satisfies no pure and no zero-concentrated budget, got budget={shown(budget)}"
        )
    if not Fraction(1, 10**4) <= budget.epsilon <= 1000:
        raise InvalidParameter(f"epsilon must be in [1e-4, 1000], got epsilon={shown(budget.epsilon)}")
    if budget.delta < MIN_DELTA:
        raise InvalidParameter(f"delta must be at least 1e-30, got delta={shown(budget.delta)}")
    return budget


def bounded_satisfied(event: BoundedNoiseEvent, budget: ApproxDP) -> bool:
    """Whether answers with bounded noise provably satisfy a budget."""
    return _meets(event.bound, event.power, event.sensitivity, event.queries, budget)


def bounded_epsilon(event: BoundedNoiseEvent, delta: Fraction) -> Fraction:
    """The smallest epsilon, to 1e-6 of it, at which answers with bounded noise are proved under delta."""
    low, high = Fraction(0), Fraction(1)
    while not bounded_satisfied(event, ApproxDP(high, delta)):
        if high >= 1000:
            raise NotSupported(f"no epsilon up to 1000 was proved for {event!r} at delta={shown(delta)}")
        low, high = high, min(2 * high, Fraction(1000))
    while high - low > high / 10**6 and high > Fraction(1, 10**9):
        middle = decimal_up(float((low + high) / 2))
        if not low < middle < high:
            break
        low, high = (low, middle) if bounded_satisfied(event, ApproxDP(middle, delta)) else (middle, high)
    return high


# A calibration, the mechanism and the accountant ask the same.
@lru_cache(maxsize=64)
def _meets(bound: int, power: int, sensitivity: int, queries: int, budget: ApproxDP) -> bool:
    if bound < 1:
        return False
    cut = _CUT * float(budget.delta)
    epsilon = min(budget.epsilon, Fraction(1000))
    return Fraction(delta_of(BoundedNoise(bound, power), sensitivity, queries, epsilon, cut)) <= budget.delta


def _too_wide(budget: ApproxDP) -> NotSupported:
    return NotSupported(
        f"no bound up to {MAX_BOUND} meets {budget!r}: take a larger granularity, or fewer queries"
    )


# Streams with the same public parameters are opened again and again.
@lru_cache(maxsize=64)
def _smallest(power: int, shift: int, count: int, budget: ApproxDP, most: int) -> int:
    """The smallest bound that fits, to `_TOLERANCE`, by interpolating log delta in log bound."""
    target = math.log(budget.delta)
    cut = _CUT * float(budget.delta)

    def curve(bound: int) -> float:
        found = delta_of(BoundedNoise(bound, power), shift, count, budget.epsilon, cut)
        # As fractions, so that equality is decided exactly.
        above = math.log(found) - target
        return min(above, -1e-15) if Fraction(found) <= budget.delta else max(above, 1e-15)

    # To start from: what Gaussian noise would need, or what the losses of rare outcomes need.
    rare = math.log(count) - target
    width = max(math.sqrt(2 * count * -target), power * math.pow(rare, 1 + 1 / power))
    high = min(most, max(shift, math.ceil(width * shift / float(budget.epsilon))))
    low = low_value = None
    while (high_value := curve(high)) > 0:
        if high == most:
            raise _too_wide(budget)
        # The logarithm of delta falls at least as fast as that of the bound rises.
        growth = min(max(math.exp(high_value / 20), 1.25), 4.0)
        low, low_value, high = high, high_value, min(most, math.ceil(high * growth))
    while low is None or low_value is None:
        place = max(high * 4 // 5, shift // 2)
        if place >= high or place < 1:
            return high
        if (value := curve(place)) <= 0:
            high, high_value = place, value
        else:
            low, low_value = place, value
    return _between(curve, low, low_value, high, high_value)


def _between(curve: Callable[[int], float], low: int, low_value: float, high: int, high_value: float) -> int:
    """The end of an interpolating bisection: `curve` is positive at low and not at high."""
    slow = 0
    while high - low > (tolerance := max(1, math.floor(high * _TOLERANCE))):
        width = high - low
        root = low * (high / low) ** (low_value / (low_value - high_value))
        # Beside the root, on the side of the farther end, so that this end comes near in one step.
        aside = tolerance / 3 * 4**slow
        place = math.ceil(root + aside if high - root > root - low else root - aside)
        place = (low + high) // 2 if slow > 3 else min(max(place, low + 1), high - 1)
        value = curve(place)
        if value > 0:
            low, low_value = place, value
        else:
            high, high_value = place, value
        slow = slow + 1 if high - low > width // 2 else 0
    return high
