r"""How much noise a budget needs for so many rounds, and how many rounds a budget pays for.

Every round of a run has the same noise multiplier and the same number of coordinates, fixed before the
first; only updates and bounds adapt. Then the composition by the Gaussian curve is valid, as is zCDP; a
round fits if either of them proves it. Proof: docs/proofs/federated.md.
"""

import math
from fractions import Fraction

from sfumato.checks import root_down, shown, whole
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.federated.adaptive import Adaptive
from sfumato.federated.aggregate import MAX_CLIENTS, MAX_MULTIPLIER, MIN_MULTIPLIER, MOVES, Aggregator
from sfumato.federated.clipping import MAX_COORDINATES, STEPS
from sfumato.privacy import ZCDP, ApproxDP, Neighbours, check_neighbours, zcdp_rho
from sfumato.privacy.calibration import MIN_DELTA
from sfumato.privacy.conversions import log_fraction
from sfumato.privacy.events import GaussianEvent, flatten
from sfumato.privacy.gaussian import MAX_EPSILON, Part, log_parts_delta

MAX_ROUNDS = 10**6
# Multipliers are rounded up to this many significant bits: a millionth more noise.
_BITS = 20
# Covers the rounding of the logarithm of a delta.
_MARGIN = 1e-12


def affordable(aggregator: Aggregator, budget: ApproxDP | ZCDP, rounds: int) -> bool:
    """Whether a budget provably covers so many rounds that are fixed in advance."""
    if rounds == 0:
        return True
    if isinstance(budget, ZCDP):
        return rounds * aggregator.event.rho <= budget.rho
    parts = [
        Part(rounds * event.sensitivity_squared, event.sigma_squared, rounds * event.coordinates)
        for event in flatten([aggregator.event])
        if isinstance(event, GaussianEvent)
    ]
    return log_parts_delta(budget.epsilon, parts) <= log_fraction(budget.delta) - _MARGIN


def most_rounds(aggregator: Aggregator, budget: ApproxDP | ZCDP) -> int:
    """The largest number of rounds that a budget provably covers, at most a million."""
    if isinstance(budget, ZCDP):
        return min(MAX_ROUNDS, math.floor(budget.rho / aggregator.event.rho))
    low, high = 0, 1
    while high <= MAX_ROUNDS and affordable(aggregator, budget, high):
        low, high = high, 2 * high
    high = min(high, MAX_ROUNDS + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if affordable(aggregator, budget, middle) else (low, middle)
    return low


def checked_budget(budget: object) -> ApproxDP | ZCDP:
    """A budget that Gaussian noise can keep."""
    if not isinstance(budget, ApproxDP | ZCDP):
        raise InvalidParameter(f"budget must be an ApproxDP or a ZCDP, got budget={shown(budget)}")
    if isinstance(budget, ApproxDP) and (budget.epsilon > MAX_EPSILON or budget.delta < MIN_DELTA):
        rule = f"have an epsilon of at most {MAX_EPSILON} and a delta of at least 1e-300"
        raise InvalidParameter(f"budget must {rule}, got budget={budget!r}")
    return budget


def noise_for(
    budget: ApproxDP | ZCDP,
    rounds: int,
    *,
    neighbours: Neighbours,
    coordinates: int,
    expected_clients: int = 1,
    adaptive: Adaptive | None = None,
    steps: int = STEPS,
) -> Fraction:
    r"""The noise multiplier with which a budget lasts for a number of rounds.

    Guarantee:
        An `Aggregator` with this multiplier and these settings satisfies `budget` over `rounds` rounds, the
        votes of adaptive clipping included: checked by the proof that `Run` uses, on the discrete law. It is
        within 2e-6 (relative) of the smallest that this proof allows. Proof: docs/proofs/federated.md.

    Args:
        budget: ApproxDP or ZCDP, for all rounds together.
        rounds: how many rounds.
        neighbours: "add-remove" or "substitution".
        coordinates: how many numbers an update has.
        expected_clients: as for the `Aggregator`; only adaptive clipping needs it.
        adaptive: as for the `Aggregator`.
        steps: as for the `Aggregator`.

    Raises:
        InvalidParameter: a number out of range, or a vote noise so small that votes alone pass the budget.
        NotSupported: a multiplier above 2^20 is needed.

    References:
        [BW18], [CKS20]; the classical formula is not used.

    >>> import sfumato as sf
    >>> z = noise_for(sf.ApproxDP(1, 1e-5), 5, neighbours="add-remove", coordinates=650)
    >>> round(float(z), 3)
    8.342
    """
    wanted = checked_budget(budget)
    count = whole("rounds", rounds, least=1, most=MAX_ROUNDS)
    size = whole("coordinates", coordinates, least=1, most=MAX_COORDINATES)
    clients = whole("expected_clients", expected_clients, least=1, most=MAX_CLIENTS)
    check_neighbours(neighbours)
    if adaptive is not None and not isinstance(adaptive, Adaptive):
        raise InvalidParameter(f"adaptive must be an Adaptive, got adaptive={shown(adaptive)}")
    # From twice this on, all of the privacy goes to the votes.
    votes = None if adaptive is None else adaptive.vote_noise

    def with_multiplier(multiplier: Fraction) -> Aggregator:
        return Aggregator(
            bound=Fraction(1) if adaptive is None else adaptive.lowest,
            noise_multiplier=multiplier,
            expected_clients=clients,
            neighbours=neighbours,
            shapes=((size,),),
            adaptive=adaptive,
            steps=steps,
        )

    def enough(multiplier: Fraction) -> bool:
        beyond = votes is not None and multiplier >= 2 * votes
        return beyond or affordable(with_multiplier(multiplier), wanted, count)

    rho = wanted.rho if isinstance(wanted, ZCDP) else zcdp_rho(wanted.epsilon, wanted.delta)
    moves = MOVES[neighbours]
    high = _short_up(root_down(count * moves**2 / (2 * rho)) + Fraction(1, 2**80))
    if high > MAX_MULTIPLIER:
        raise NotSupported(f"noise_multiplier must be at most 2^20, but about {shown(high)} is needed")
    high = max(high, MIN_MULTIPLIER)
    low = high / 2
    while low > MIN_MULTIPLIER and enough(low):
        low, high = low / 2, low
    low = max(low, MIN_MULTIPLIER)
    while True:
        middle = _short_up((low + high) / 2)
        if not low < middle < high:
            break
        if enough(middle):
            high = middle
        else:
            low = middle
    if not affordable(with_multiplier(high), wanted, count):
        raise NotSupported(f"no noise_multiplier near {shown(high)} was proved to meet the budget")
    return high


def _short_up(value: Fraction) -> Fraction:
    exponent = math.floor(math.log2(value.numerator) - math.log2(value.denominator)) + 1 - _BITS
    unit = Fraction(2) ** exponent
    return math.ceil(value / unit) * unit
