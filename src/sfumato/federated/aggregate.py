r"""One round: clipped updates are added up as integers, with exact discrete Gaussian noise.

The sum is divided by the public expected number of clients, never by how many answered, so a client that
drops out changes nothing but its own term. Proof: docs/proofs/federated.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.checks import keep, positive, shown, whole
from sfumato.errors import InvalidParameter
from sfumato.federated.adaptive import Adaptive, updates_multiplier_squared
from sfumato.federated.clipping import (
    MAX_STEPS,
    STEPS,
    Clipped,
    Floats,
    Shapes,
    Update,
    checked_bound,
    checked_shapes,
    clip,
    coordinates_of,
    unflatten,
)
from sfumato.grid import Ints
from sfumato.laws import Bits, DiscreteGaussian, Joint, Shifted, default_bits
from sfumato.privacy import ComposedEvent, Event, GaussianEvent, Neighbours, check_neighbours
from sfumato.privacy.events import MAX_COORDINATES
from sfumato.privacy.records import read_fraction

MIN_MULTIPLIER, MAX_MULTIPLIER = Fraction(1, 100), Fraction(2**20)
# With this many terms of at most MAX_STEPS, and the noise, sums stay far below 2^62.
MAX_CLIENTS = 2**30
# How far one client moves sum and votes, in units of the bound and of one vote.
MOVES = {"add-remove": 1, "substitution": 2}


@dataclass(frozen=True, eq=False)
class Round:
    """What one round releases: all of it is noisy, or follows from what is.

    Sums are in steps of the lattice: `noisy_sum` in steps of the bound, `noisy_votes` in steps of one vote.

    Guarantee:
        `mean_update` and `next_bound` are post-processing of `noisy_sum` and `noisy_votes`, which were drawn
        at the cost of `event`; with seeded bits `private` is False and there is no guarantee.

    >>> import numpy as np
    >>> plan = Aggregator(
    ...     bound=1, noise_multiplier=1, expected_clients=2, neighbours="add-remove", shapes=((2,),)
    ... )
    >>> answer = plan.release([[np.array([0.5, 0.5])], None])
    >>> answer.mean_update[0].shape, answer.bound, answer.private
    ((2,), Fraction(1, 1), True)
    """

    mean_update: tuple[Floats, ...]
    bound: Fraction
    next_bound: Fraction
    event: Event
    noisy_sum: Ints
    noisy_votes: int | None
    private: bool


@dataclass(frozen=True, kw_only=True)
class Aggregator:
    r"""The settings of a round: clip to C, add up, add discrete Gaussian noise of scale z C.

    Guarantee:
        A release costs :math:`\rho = s^2 / (2 z^2)` of zCDP, with :math:`s = 1` if one client is added or
        removed and :math:`s = 2` if one client's data are replaced; with adaptive clipping too, its votes
        included. The noise is drawn exactly. Nothing about an update can raise. Proof:
        docs/proofs/federated.md.

    Args:
        bound: the clipping bound C of this round.
        noise_multiplier: z; the noise on the sum has the standard deviation z C (a little more on the
            updates if part of the privacy goes to votes). `noise_for` finds it for a budget.
        expected_clients: the public number by which the sum is divided.
        neighbours: "add-remove" (a client more or less) or "substitution" (a client's data replaced).
        shapes: the shapes of the layers.
        adaptive: how the bound follows the norms; None keeps it.
        steps: steps of the lattice from zero to the bound.

    Raises:
        InvalidParameter: a number out of range.

    References:
        [MRTZ18], [ATMR21], [CKS20], [KLS21].

    >>> plan = Aggregator(
    ...     bound=1, noise_multiplier=2, expected_clients=10, neighbours="add-remove", shapes=((3,),)
    ... )
    >>> plan.event.rho
    Fraction(1, 8)
    """

    bound: Fraction
    noise_multiplier: Fraction
    expected_clients: int
    neighbours: Neighbours
    shapes: Shapes
    adaptive: Adaptive | None = None
    steps: int = STEPS

    def __post_init__(self) -> None:
        multiplier = positive("noise_multiplier", self.noise_multiplier)
        if not MIN_MULTIPLIER <= multiplier <= MAX_MULTIPLIER:
            raise InvalidParameter(
                f"noise_multiplier must be in [0.01, 2^20], got {shown(self.noise_multiplier)}"
            )
        keep(self, bound=checked_bound(self.bound), noise_multiplier=multiplier)
        keep(
            self,
            expected_clients=whole("expected_clients", self.expected_clients, least=1, most=MAX_CLIENTS),
            neighbours=check_neighbours(self.neighbours),
            shapes=checked_shapes(self.shapes),
            steps=whole("steps", self.steps, least=1, most=MAX_STEPS),
        )
        if not self.coordinates:
            raise InvalidParameter("shapes must have at least one entry in all, got none")
        if self.adaptive is not None:
            self._check_adaptive(self.adaptive)
        # Both laws must exist: the noise on votes above half of the multiplier, and no scale absurd.
        _ = self.noise, self.noise_on_votes

    @property
    def coordinates(self) -> int:
        """How many numbers an update has."""
        return coordinates_of(self.shapes)

    @property
    def noise(self) -> DiscreteGaussian:
        """The law of the noise on each entry of the sum, in steps of the lattice."""
        return DiscreteGaussian(self._updates_multiplier_squared * self.steps**2)

    @property
    def noise_on_votes(self) -> DiscreteGaussian | None:
        """The law of the noise on the sum of votes, in steps; None without adaptive clipping."""
        # A vote of +1 or -1 is twice a bit, and so many steps that the lattice costs nothing here either.
        votes = self._vote_noise
        return None if votes is None else DiscreteGaussian((2 * votes * self.steps) ** 2)

    @property
    def event(self) -> Event:
        """What one round costs."""
        return self.event_of(1)

    def event_of(self, rounds: int) -> Event:
        """What rounds with these settings cost, their number and settings being fixed before the first.

        Several rounds are one noisy vector with the entries of all: only bounds and updates adapt, and in
        steps of the lattice neither the noise nor the sensitivity depends on them.
        """
        square = (MOVES[self.neighbours] * self.steps) ** 2
        parts = list(_gathered(square, self.noise.sigma_squared, self.coordinates, rounds))
        votes = self.noise_on_votes
        if votes is not None:
            parts += _gathered(square, votes.sigma_squared, 1, rounds)
        return parts[0] if len(parts) == 1 else ComposedEvent(parts)

    def look(self, updates: Iterable[Update | Clipped | None]) -> tuple[Ints, int]:
        """Read the updates: the exact sum of what they are clipped to, and of their votes."""
        total, votes = np.zeros(self.coordinates, dtype=np.int64), 0
        for update in updates:
            clipped = self._clipped(update)
            total += clipped.integers
            votes += clipped.vote
        return total, votes

    def law(self, view: tuple[Ints, int]) -> Joint:
        """The law of what a round releases, around the sums that `look` gives."""
        total, votes = view
        sums = Shifted(self.noise, total)
        on_votes = self.noise_on_votes
        return Joint((sums,) if on_votes is None else (sums, Shifted(on_votes, votes * self.steps)))

    def release(self, updates: Iterable[Update | Clipped | None], bits: Bits | None = None) -> Round:
        """The noisy mean of clipped updates; charge for it first (`Run` does both)."""
        source = default_bits() if bits is None else bits
        noisy_sum, *votes = self.law(self.look(updates)).sample(source)
        noisy_votes = votes[0] if votes else None
        step = float(self.bound / (self.steps * self.expected_clients))
        return Round(
            mean_update=unflatten(noisy_sum * step, self.shapes),
            bound=self.bound,
            next_bound=self._next_bound(noisy_votes),
            event=self.event,
            noisy_sum=noisy_sum,
            noisy_votes=noisy_votes,
            private=source.private,
        )

    def after(self, answer: Round) -> "Aggregator":
        """The settings of the next round: the same, with the released bound."""
        return replace(self, bound=answer.next_bound)

    def to_dict(self) -> dict[str, object]:
        """A JSON-safe exact record; `from_dict` reads it back."""
        return {
            "bound": str(self.bound),
            "noise_multiplier": str(self.noise_multiplier),
            "expected_clients": self.expected_clients,
            "neighbours": self.neighbours,
            "shapes": [list(shape) for shape in self.shapes],
            "adaptive": None if self.adaptive is None else self.adaptive.to_dict(),
            "steps": self.steps,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Aggregator":
        """Reads back what `to_dict` wrote, exactly."""
        names = {field.name for field in fields(cls)}
        if set(record) != names:
            raise InvalidParameter(f"record must have exactly the fields {', '.join(sorted(names))}")
        adaptive = record["adaptive"]
        exact = {name: read_fraction(record, name) for name in ("bound", "noise_multiplier")}
        read = {**record, **exact, "adaptive": None if adaptive is None else Adaptive.from_dict(adaptive)}
        return cls(**read)

    def _clipped(self, update: Update | Clipped | None) -> Clipped:
        if not isinstance(update, Clipped):
            return clip(update, self.bound, shapes=self.shapes, steps=self.steps)
        # A client may have clipped already; what it claims is checked, not believed.
        same = update.steps == self.steps and update.shapes == self.shapes
        if same and update.sound:
            return update
        return clip(None, self.bound, shapes=self.shapes, steps=self.steps)

    def _next_bound(self, noisy_votes: int | None) -> Fraction:
        if self.adaptive is None or noisy_votes is None:
            return self.bound
        share = 0.5 + noisy_votes / (2 * self.steps * self.expected_clients)
        return self.adaptive.moved(self.bound, share=share)

    def _check_adaptive(self, adaptive: object) -> None:
        if not isinstance(adaptive, Adaptive):
            raise InvalidParameter(f"adaptive must be an Adaptive, got adaptive={shown(adaptive)}")
        if not adaptive.lowest <= self.bound <= adaptive.highest:
            raise InvalidParameter(
                f"bound must be from lowest to highest, got bound={shown(self.bound)}, "
                f"lowest={shown(adaptive.lowest)}, highest={shown(adaptive.highest)}"
            )

    @property
    def _vote_noise(self) -> Fraction | None:
        if self.adaptive is None:
            return None
        return self.adaptive.noise_on_votes(self.noise_multiplier, self.expected_clients)

    @property
    def _updates_multiplier_squared(self) -> Fraction:
        votes = self._vote_noise
        if votes is None:
            return self.noise_multiplier**2
        return updates_multiplier_squared(self.noise_multiplier, votes)


def _gathered(square: int, variance: Fraction, coordinates: int, rounds: int) -> Iterable[GaussianEvent]:
    """The same noisy vector in every round, as few events of many coordinates."""
    most = max(1, MAX_COORDINATES // coordinates)
    for start in range(0, rounds, most):
        count = min(most, rounds - start)
        yield GaussianEvent(count * square, variance, count * coordinates)
