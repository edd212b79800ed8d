r"""The clipping bound follows a quantile of the norms of the updates, by noisy votes.

Each client votes +1 if its update fitted the bound and -1 if it was clipped; that is twice the bit
:math:`\pm 1/2` of [ATMR21]. The bound moves after the noise of the round was drawn for the bound that the
round was clipped with. Proof: docs/proofs/federated.md.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction

from sfumato.checks import Number, exact, inside, keep, positive, shown
from sfumato.errors import InvalidParameter
from sfumato.federated.clipping import LARGEST_BOUND, SMALLEST_BOUND, checked_bound
from sfumato.privacy.records import read_fraction

# One round changes the bound by a factor of at most e to this; more is a mistake in the rate.
MAX_RATE = 10
DEFAULT_RATE = Fraction(1, 5)
# Of [ATMR21]: the noise on the votes is a twentieth of the clients, which moves the bound little.
_VOTE_SHARE = Fraction(1, 20)


@dataclass(frozen=True, kw_only=True)
class Adaptive:
    r"""How the clipping bound follows the norms: :math:`C \leftarrow C e^{-\eta (\bar b - \gamma)}`.

    Here :math:`\bar b` is the noisy share of the expected clients that fitted. One that does not answer
    counts as half a vote, so state a number of expected clients that is near the truth.

    Guarantee:
        The votes are released with discrete Gaussian noise, and the noise on the updates grows so that both
        together cost exactly what the noise multiplier says. The next bound is computed from released
        numbers only. Proof: docs/proofs/federated.md.

    Args:
        lowest: the bound never falls below this.
        highest: nor rises above this.
        target: the share of clients whose updates should fit unclipped, inside (0, 1).
        rate: how fast the bound moves, in (0, 10].
        vote_noise: standard deviation of the noise on the number of clients that fitted; if not given, a
            twentieth of the expected clients, and at least the noise multiplier.

    Raises:
        InvalidParameter: a number out of range.

    References:
        [ATMR21].

    >>> Adaptive(lowest=0.01, highest=10).moved(Fraction(1), share=0.0) > 1
    True
    """

    lowest: Fraction
    highest: Fraction
    target: Fraction = Fraction(1, 2)
    rate: Fraction = DEFAULT_RATE
    vote_noise: Fraction | None = None

    def __post_init__(self) -> None:
        lowest, highest = checked_bound(self.lowest), checked_bound(self.highest)
        if not lowest < highest:
            raise InvalidParameter(
                f"lowest must be below highest, got lowest={shown(lowest)}, highest={shown(highest)}"
            )
        rate = positive("rate", self.rate)
        if rate > MAX_RATE:
            raise InvalidParameter(f"rate must be at most {MAX_RATE}, got rate={shown(self.rate)}")
        keep(self, lowest=lowest, highest=highest, target=inside("target", self.target), rate=rate)
        if self.vote_noise is not None:
            keep(self, vote_noise=positive("vote_noise", self.vote_noise))

    def to_dict(self) -> dict[str, str]:
        """A JSON-safe exact record; a vote noise that was not given is left out."""
        numbers = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: str(value) for name, value in numbers.items() if value is not None}

    @classmethod
    def from_dict(cls, record: Mapping[str, object]) -> "Adaptive":
        """Reads back what `to_dict` wrote, exactly."""
        names = {field.name for field in fields(cls)}
        if not names - {"vote_noise"} <= set(record) <= names:
            raise InvalidParameter(f"adaptive must have exactly the fields {', '.join(sorted(names))}")
        return cls(**{name: read_fraction(record, name) for name in record})

    def noise_on_votes(self, noise_multiplier: Fraction, expected_clients: int) -> Fraction:
        """The standard deviation of the noise on the number of clients that fitted."""
        if self.vote_noise is None:
            return max(expected_clients * _VOTE_SHARE, noise_multiplier)
        if 2 * self.vote_noise <= noise_multiplier:
            raise InvalidParameter(
                "vote_noise must be above half of noise_multiplier, or the votes alone cost more than the "
                f"round, got vote_noise={shown(self.vote_noise)}"
            )
        return self.vote_noise

    def moved(self, bound: Fraction, *, share: float) -> Fraction:
        """The bound of the next round, given the noisy share of clients that fitted this one."""
        # A share far outside [0, 1] is noise; the cut keeps the exponential in range and is post-processing.
        excess = min(max(share, -10.0), 11.0) - float(self.target)
        wanted = float(bound) * math.exp(-float(self.rate) * excess)
        # Read as its shortest decimal, so that a client that gets the float has the same number.
        wanted = min(max(wanted, float(SMALLEST_BOUND)), float(LARGEST_BOUND))
        return min(max(exact("bound", wanted), self.lowest), self.highest)


def updates_multiplier_squared(noise_multiplier: Number, vote_noise: Number) -> Fraction:
    r"""The squared multiplier for the updates: :math:`z_D^2 = 1 / (z^{-2} - (2 s_b)^{-2})`, exactly.

    >>> updates_multiplier_squared(1, 1)
    Fraction(4, 3)
    """
    total = 1 / positive("noise_multiplier", noise_multiplier) ** 2
    return 1 / (total - 1 / (2 * positive("vote_noise", vote_noise)) ** 2)
