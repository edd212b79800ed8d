"""The Laplace mechanism on integers."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.checks import keep, positive, readable, whole
from sfumato.grid import Ints
from sfumato.laws import DiscreteLaplace, Law, Shifted
from sfumato.privacy import LaplaceEvent, laplace_scale


@dataclass(frozen=True, kw_only=True)
class LaplaceMechanism:
    r"""Adds discrete Laplace noise to an integer, or independently to each coordinate of an integer vector.

    Guarantee:
        Pure DP with :math:`\varepsilon = \Delta_1 / b`, for inputs at most :math:`\Delta_1` apart in L1.
        Proof: triangle inequality on the exponent; docs/proofs/laplace.md.

    References:
        [GRS12] for the law, [CKS20] for sampling it exactly.

    >>> from sfumato.privacy import PureDP
    >>> LaplaceMechanism.calibrated(epsilon=PureDP(0.1).epsilon, sensitivity=1).event.pure_epsilon
    Fraction(1, 10)
    """

    sensitivity: int
    scale: Fraction

    def __post_init__(self) -> None:
        keep(self, sensitivity=whole("sensitivity", self.sensitivity, least=1, most=2**200))
        keep(self, scale=positive("scale", self.scale))

    @classmethod
    def calibrated(cls, *, epsilon: Fraction, sensitivity: int) -> "LaplaceMechanism":
        """The mechanism that costs exactly `epsilon`."""
        return cls(sensitivity=sensitivity, scale=laplace_scale(sensitivity, epsilon))

    @property
    def event(self) -> LaplaceEvent:
        """What a release costs."""
        return LaplaceEvent(sensitivity=self.sensitivity, scale=self.scale)

    @property
    def noise(self) -> DiscreteLaplace:
        """The law of the noise on one coordinate."""
        return DiscreteLaplace(self.scale)

    def described(self, step: Fraction = Fraction(1)) -> str:
        """The mechanism in words, in units where one step of the integers is `step`."""
        return f"discrete Laplace noise of scale {readable(float(self.scale * step))}"

    def law(self, value: int | Ints) -> Law:
        """The law of the answer when the data's value is `value`."""
        return Shifted(self.noise, value)
