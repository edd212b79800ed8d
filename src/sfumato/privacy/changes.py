"""What a budget leaves for each of several rows that one person can change, and what all of them cost."""

from fractions import Fraction

from sfumato.checks import boolean, shown, whole
from sfumato.errors import InvalidParameter
from sfumato.laws.coins import exp_bounds
from sfumato.privacy.conversions import zcdp_rho
from sfumato.privacy.definitions import ZCDP, ApproxDP, Budget, PureDP
from sfumato.privacy.events import (
    ApproxEvent,
    BoundedNoiseEvent,
    ComposedEvent,
    ConcentratedEvent,
    Event,
    FreeEvent,
    GaussianEvent,
    GaussianVectorEvent,
    LaplaceEvent,
    PureEvent,
    RangeEvent,
    flatten,
)

MAX_CHANGES = 10**6
_BITS = 64


def checked_changes(changes: object) -> int:
    """A number of rows that one person can add or remove: a whole number from 1 to a million."""
    return whole("changes", changes, least=1, most=MAX_CHANGES)


def per_change(budget: Budget, changes: int, *, pure: bool = True) -> Budget:
    r"""What one added or removed row may cost, if one person can add or remove several.

    Guarantee:
        A mechanism that costs at most this for one row costs at most `budget` for `changes` rows, m of them:
        :math:`\varepsilon/m`, or :math:`\rho/m^2`. An approximate budget is changed first, into its epsilon
        or into the largest rho that converts to it. Proof: docs/proofs/parts.md.

    Args:
        budget: what all rows of one person may cost together.
        changes: how many rows these are, at most; 1 leaves the budget as it is.
        pure: whether an approximate budget is changed into an epsilon; else into a rho.

    Raises:
        InvalidParameter: `changes` is no whole number from 1 to 1,000,000, or `budget` is no budget.

    References:
        [DR14], theorem 2.2; [BS16], proposition 1.9.

    >>> per_change(PureDP(1), 4), per_change(ZCDP(1), 4)
    (PureDP(epsilon=0.25), ZCDP(rho=0.0625))
    >>> per_change(ApproxDP(1, 1e-6), 4)
    PureDP(epsilon=0.25)
    """
    count = checked_changes(changes)
    exact = boolean("pure", pure)
    if not isinstance(budget, PureDP | ApproxDP | ZCDP):
        raise InvalidParameter(f"budget must be PureDP, ApproxDP or ZCDP, got budget={shown(budget)}")
    if count == 1:
        return budget
    if isinstance(budget, PureDP) or (isinstance(budget, ApproxDP) and exact):
        return PureDP(budget.epsilon / count)
    rho = budget.rho if isinstance(budget, ZCDP) else zcdp_rho(budget.epsilon, budget.delta)
    return ZCDP(rho / count**2)


def for_changes(event: Event, changes: int) -> Event:
    r"""What a mechanism costs for several added or removed rows, given what it costs for one.

    Guarantee:
        If `event` is true of one row that is added or removed, the result is true of `changes` of them, m in
        number, in one table or in several that the mechanism is run on independently: sensitivities,
        epsilons and ranges m times, squared sensitivities and rhos :math:`m^2` times; an approximate bound is
        :math:`(m\varepsilon, \delta (e^{m\varepsilon}-1)/(e^\varepsilon-1))`, rounded up.
        Proof: docs/proofs/parts.md, and docs/proofs/composition.md, lemma 5, for an approximate bound.

    Args:
        event: what was done, as it is charged for one row.
        changes: how many rows one person can add or remove, at most; 1 leaves the event as it is.

    Raises:
        InvalidParameter: `changes` is no whole number from 1 to 1,000,000, `event` is no event, or the
            result is beyond what an event can state, such as a delta of 1 or more.

    References:
        [DR14], theorem 2.2; [BS16], proposition 1.9.

    >>> for_changes(LaplaceEvent(sensitivity=1, scale=10), 3).pure_epsilon
    Fraction(3, 10)
    >>> for_changes(ConcentratedEvent(rho=0.01, name="quantiles"), 3).rho
    Fraction(9, 100)
    """
    count = checked_changes(changes)
    parts = tuple(_scaled(part, count) for part in flatten([event]))
    return ComposedEvent(parts) if isinstance(event, ComposedEvent) else parts[0]


def _scaled(event: Event, count: int) -> Event:
    if count == 1 or isinstance(event, FreeEvent):
        return event
    if isinstance(event, LaplaceEvent):
        return LaplaceEvent(event.sensitivity * count, event.scale)
    if isinstance(event, GaussianEvent):
        # Rows of one person may be in different groups, and then move more integers. If each group has one,
        # they are a vector that the data fix.
        square: Fraction = event.sensitivity_squared * count**2
        kind = GaussianVectorEvent if event.coordinates == 1 else type(event)
        return kind(square, event.sigma_squared, event.coordinates * count)
    if isinstance(event, PureEvent):
        return PureEvent(event.epsilon * count, event.name)
    if isinstance(event, RangeEvent):
        return RangeEvent(event.range * count, event.name)
    if isinstance(event, ConcentratedEvent):
        return ConcentratedEvent(event.rho * count**2, event.name)
    if isinstance(event, BoundedNoiseEvent):
        return BoundedNoiseEvent(event.sensitivity * count, event.bound, event.power, event.queries)
    if isinstance(event, ApproxEvent):
        return ApproxEvent(event.epsilon * count, _group_delta(event, count), event.name)
    raise InvalidParameter(f"event must be a privacy event, got {shown(event)}")


def _group_delta(event: ApproxEvent, count: int) -> Fraction:
    """At least delta (1 + e^epsilon + ... + e^((count-1) epsilon)), by at most 2^-60 of it; at most 1."""
    # A sum beyond 1 is refused by the event, however far beyond.
    if (count - 1) * event.epsilon > 2 * _BITS:
        return Fraction(1)
    # Enough bits that 1 - e^-epsilon keeps 64 of them, and so does e^-(count-1)epsilon.
    small = max(0, event.epsilon.denominator.bit_length() - event.epsilon.numerator.bit_length())
    precision = 4 * _BITS + 2 * small
    unit = 1 << precision
    growth = Fraction(unit, exp_bounds((count - 1) * event.epsilon, precision)[0])
    terms = Fraction(
        unit - exp_bounds(count * event.epsilon, precision)[0], unit - exp_bounds(event.epsilon, precision)[1]
    )
    delta = event.delta * growth * terms
    shift = _BITS + delta.denominator.bit_length() - delta.numerator.bit_length()
    if delta >= 1:
        return Fraction(1)
    return Fraction(-(-(delta.numerator << shift) // delta.denominator), 1 << shift)
