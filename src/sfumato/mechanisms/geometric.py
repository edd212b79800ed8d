"""The clamped geometric mechanism: the best private count."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.checks import keep, positive, shown
from sfumato.errors import InvalidParameter
from sfumato.laws import Clamped, Law
from sfumato.laws.clamped import end
from sfumato.mechanisms.laplace import LaplaceMechanism
from sfumato.privacy import LaplaceEvent


@dataclass(frozen=True, kw_only=True)
class ClampedGeometric:
    r"""Adds two-sided geometric noise to a count and clamps the result to its public range.

    Guarantee:
        Pure DP with :math:`\varepsilon = 1 / b` for counts that a change of one record moves by at most 1.
        The range must be public: 0 and the public number of rows under substitution, 0 alone under
        add-remove, where clamping at the true number of rows would release it.
        Proof: clamping is post-processing of the Laplace mechanism; docs/proofs/geometric.md.

    References:
        [GRS12]: optimal for every user with a prior and a monotone loss.

    >>> mechanism = ClampedGeometric(scale=Fraction(1), lower=0, upper=10)
    >>> float(mechanism.law(3).cdf(10))
    1.0
    """

    scale: Fraction
    lower: int | None = 0
    upper: int | None = None

    def __post_init__(self) -> None:
        keep(self, scale=positive("scale", self.scale))
        keep(self, lower=end("lower", self.lower), upper=end("upper", self.upper))
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise InvalidParameter(
                f"lower must be at most upper, got lower={shown(self.lower)}, upper={shown(self.upper)}"
            )

    @property
    def event(self) -> LaplaceEvent:
        """What a release costs."""
        return LaplaceEvent(sensitivity=1, scale=self.scale)

    def law(self, value: int) -> Law:
        """The law of the answer when the data's count is `value`."""
        noisy = LaplaceMechanism(sensitivity=1, scale=self.scale).law(value)
        return Clamped(noisy, self.lower, self.upper)
