"""Laplace noise on the counts of a partition whose total is public: it leaves the total as it is."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.checks import keep, positive, readable
from sfumato.grid import Ints
from sfumato.laws import ZeroSumLaplace
from sfumato.privacy import PureEvent, laplace_scale

# One record that is replaced leaves a count and enters another.
MOVED = 2


@dataclass(frozen=True, kw_only=True)
class ZeroSumMechanism:
    r"""Adds discrete Laplace noise to counts that add up to a public number, given that it adds up to zero.

    The noise on the sum of some of the counts is smaller than that of independent noise, because what the
    others have is known too.

    Guarantee:
        Pure DP with :math:`\varepsilon = 2 / b`, for counts of the same total that differ in one replaced
        record. Proof: docs/proofs/laplace.md.

    >>> from sfumato.privacy import PureDP
    >>> ZeroSumMechanism.calibrated(PureDP(0.1).epsilon).event.pure_epsilon
    Fraction(1, 10)
    """

    scale: Fraction

    def __post_init__(self) -> None:
        keep(self, scale=positive("scale", self.scale))

    @classmethod
    def calibrated(cls, epsilon: Fraction) -> "ZeroSumMechanism":
        """The mechanism that costs exactly `epsilon`."""
        return cls(scale=laplace_scale(MOVED, epsilon))

    @property
    def event(self) -> PureEvent:
        """What a release costs.

        With two counts the losses are those of randomised response, which independent Laplace noise of the
        same scale does not dominate: its event would compose to less than the truth.
        """
        return PureEvent(MOVED / self.scale, "laplace")

    def described(self) -> str:
        """The mechanism in words."""
        return f"discrete Laplace noise of scale {readable(float(self.scale))}, which adds up to zero,"

    def law(self, counts: Ints) -> ZeroSumLaplace:
        """The law of the noisy counts."""
        return ZeroSumLaplace(self.scale, counts)
