"""The Gaussian mechanism on integers."""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from sfumato.checks import boolean, keep, positive, readable, whole
from sfumato.grid import Ints
from sfumato.laws import DiscreteGaussian, Law, Shifted
from sfumato.privacy import ZCDP, ApproxDP, GaussianEvent, GaussianVectorEvent, gaussian_sigma_squared
from sfumato.privacy.events import MAX_COORDINATES


@dataclass(frozen=True, kw_only=True)
class GaussianMechanism:
    r"""Adds discrete Gaussian noise to an integer, or independently to each coordinate of an integer vector.

    Guarantee:
        :math:`\rho`-zCDP with :math:`\rho = \Delta_2^2 / 2\sigma^2`, for inputs at most :math:`\Delta_2`
        apart in L2; approximate DP by the calibration that made it, on the discrete law and never on the
        continuous formula. Proof: docs/proofs/gaussian.md.

    Args:
        sensitivity_squared: the largest squared L2 norm of a change.
        sigma_squared: the parameter of the noise on each entry.
        coordinates: how many entries one record can move.
        one_vector: whether the data alone fix the vector and all entries get this noise; see
            `gaussian_sigma_squared`.

    References:
        [CKS20].

    >>> from sfumato.privacy import ZCDP
    >>> GaussianMechanism.calibrated(ZCDP(0.5), sensitivity_squared=1, coordinates=1).sigma_squared
    Fraction(1, 1)
    """

    sensitivity_squared: int
    sigma_squared: Fraction
    coordinates: int
    one_vector: bool = True

    def __post_init__(self) -> None:
        squared = whole("sensitivity_squared", self.sensitivity_squared, least=1, most=2**400)
        keep(self, sensitivity_squared=squared, sigma_squared=positive("sigma_squared", self.sigma_squared))
        keep(self, coordinates=whole("coordinates", self.coordinates, least=1, most=MAX_COORDINATES))
        keep(self, one_vector=boolean("one_vector", self.one_vector))

    @classmethod
    def calibrated(
        cls, budget: ApproxDP | ZCDP, *, sensitivity_squared: int, coordinates: int, one_vector: bool = True
    ) -> "GaussianMechanism":
        """The mechanism that costs at most `budget`; `coordinates` is how many one record can move."""
        sigma_squared = gaussian_sigma_squared(
            budget, sensitivity_squared=sensitivity_squared, coordinates=coordinates, one_vector=one_vector
        )
        return cls(
            sensitivity_squared=sensitivity_squared,
            sigma_squared=sigma_squared,
            coordinates=coordinates,
            one_vector=one_vector,
        )

    @property
    def event(self) -> GaussianEvent:
        """What a release costs."""
        kind = GaussianVectorEvent if self.one_vector and self.coordinates > 1 else GaussianEvent
        return kind(
            sensitivity_squared=self.sensitivity_squared,
            sigma_squared=self.sigma_squared,
            coordinates=self.coordinates,
        )

    @property
    def noise(self) -> DiscreteGaussian:
        """The law of the noise on one coordinate."""
        return DiscreteGaussian(self.sigma_squared)

    def described(self, step: Fraction = Fraction(1)) -> str:
        """The mechanism in words, in units where one step of the integers is `step`."""
        spread = sqrt(self.sigma_squared) * float(step)
        return f"discrete Gaussian noise of standard deviation {readable(spread)}"

    def law(self, value: int | Ints) -> Law:
        """The law of the answer when the data's value is `value`."""
        return Shifted(self.noise, value)
