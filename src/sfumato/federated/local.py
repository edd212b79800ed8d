r"""Local privacy of one client: its update gets noise before it leaves, for a server that is not trusted.

The client may send anything in the ball of radius C, so two possible updates of it are up to 2 C apart:
that, and not C, is the sensitivity. Proof: docs/proofs/federated.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.checks import keep, whole
from sfumato.errors import InvalidParameter
from sfumato.federated.calibrating import MAX_ROUNDS, checked_budget
from sfumato.federated.clipping import (
    MAX_COORDINATES,
    MAX_STEPS,
    STEPS,
    Floats,
    Shapes,
    Update,
    checked_bound,
    checked_shapes,
    clip,
    coordinates_of,
    unflatten,
)
from sfumato.laws import Bits, DiscreteGaussian, default_bits
from sfumato.privacy import ZCDP, ApproxDP, GaussianEvent, gaussian_sigma_squared


@dataclass(frozen=True, kw_only=True)
class LocalNoise:
    r"""Clips one client's update and adds discrete Gaussian noise to it, for sensitivity 2 C.

    Guarantee:
        `rounds` releases of one client satisfy `budget` together, whatever its updates are: any two of them
        count as neighbours. The scale is calibrated on the curve of the discrete law and checked; the
        classical formula, false above epsilon 1, is not used. Proof: docs/proofs/federated.md.

    Args:
        budget: ApproxDP or ZCDP, for all releases of this client together.
        bound: the clipping bound C.
        shapes: the shapes of the layers.
        rounds: how many times the client will release; counting them is up to the caller.
        steps: steps of the lattice from zero to the bound.

    Raises:
        InvalidParameter: a number out of range; a zero epsilon or delta is no budget.
        NotSupported: no scale in range keeps the budget.

    References:
        [BW18], [CKS20].

    >>> import numpy as np, sfumato as sf
    >>> noise = LocalNoise(budget=sf.ApproxDP(10, 1e-5), bound=1, shapes=((2,),))
    >>> round(float(noise.sigma), 4)
    0.9998
    >>> noise.release([np.array([0.3, 0.4])])[0].shape
    (2,)
    """

    budget: ApproxDP | ZCDP
    bound: Fraction
    shapes: Shapes
    rounds: int = 1
    steps: int = STEPS

    def __post_init__(self) -> None:
        keep(self, budget=checked_budget(self.budget), bound=checked_bound(self.bound))
        keep(self, shapes=checked_shapes(self.shapes))
        keep(self, rounds=whole("rounds", self.rounds, least=1, most=MAX_ROUNDS))
        keep(self, steps=whole("steps", self.steps, least=1, most=MAX_STEPS))
        if not 1 <= self.rounds * self.coordinates <= MAX_COORDINATES:
            raise InvalidParameter(
                "shapes must have at least one entry, and at most 2^32 in all rounds together, got "
                f"{self.coordinates} in each of {self.rounds}"
            )
        _ = self.noise  # a budget that no scale keeps is refused here, and not at the first release

    @property
    def coordinates(self) -> int:
        """How many numbers an update has."""
        return coordinates_of(self.shapes)

    @property
    def sensitivity_squared(self) -> int:
        """The square of 2 C in steps of the lattice."""
        return (2 * self.steps) ** 2

    @cached_property
    def noise(self) -> DiscreteGaussian:
        """The law of the noise on each entry, in steps of the lattice."""
        sigma_squared = gaussian_sigma_squared(
            self.budget,
            sensitivity_squared=self.rounds * self.sensitivity_squared,
            coordinates=self.rounds * self.coordinates,
            one_vector=False,  # a round follows earlier ones
        )
        return DiscreteGaussian(sigma_squared)

    @property
    def sigma(self) -> float:
        """The scale of the noise on each entry, in the units of the update."""
        return math.sqrt(self.noise.sigma_squared) * float(self.bound / self.steps)

    @property
    def event(self) -> GaussianEvent:
        """What one release costs the client."""
        return GaussianEvent(self.sensitivity_squared, self.noise.sigma_squared, self.coordinates)

    def release(self, update: Update | None, bits: Bits | None = None) -> tuple[Floats, ...]:
        """The clipped update with noise; one that cannot be used is noise alone."""
        source = default_bits() if bits is None else bits
        clipped = clip(update, self.bound, shapes=self.shapes, steps=self.steps)
        noisy = clipped.integers + np.asarray(self.noise.sample(source, self.coordinates))
        return unflatten(noisy * float(self.bound / self.steps), self.shapes)
