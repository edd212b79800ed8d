"""Which additive noise a budget buys: one rule for every statistic that is a sum of records."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from sfumato.checks import boolean, keep, one_of, whole
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.mechanisms.gaussian import GaussianMechanism
from sfumato.mechanisms.laplace import LaplaceMechanism
from sfumato.privacy import ZCDP, ApproxDP, Budget, PureDP
from sfumato.privacy.events import MAX_COORDINATES

Noise = Literal["auto", "laplace", "gaussian"]
NOISES: tuple[Noise, ...] = ("auto", "laplace", "gaussian")

Additive = LaplaceMechanism | GaussianMechanism


@dataclass(frozen=True)
class Sensitivity:
    """How far one changed record can move an integer vector, in L1 and L2, and in how many coordinates.

    Guarantee:
        None of its own: it states the bound that a statistic proved (docs/proofs/sums.md), and the cost of
        the noise is right if the bound is.

    Args:
        l1: the largest L1 norm of a change.
        l2_squared: the largest squared L2 norm of a change.
        coordinates: how many coordinates can change at once.
        one_vector: whether all entries get the same noise; if not, some get larger noise than is calibrated
            and move as much further.

    >>> Sensitivity.scalar(3)
    Sensitivity(l1=3, l2_squared=9, coordinates=1, one_vector=True)
    """

    l1: int
    l2_squared: int
    coordinates: int
    one_vector: bool = True

    def __post_init__(self) -> None:
        keep(self, l1=whole("l1", self.l1, least=0, most=2**200))
        keep(self, l2_squared=whole("l2_squared", self.l2_squared, least=0, most=2**400))
        keep(self, coordinates=whole("coordinates", self.coordinates, least=0, most=MAX_COORDINATES))
        keep(self, one_vector=boolean("one_vector", self.one_vector))

    @classmethod
    def scalar(cls, largest: int) -> "Sensitivity":
        """One integer that moves by at most `largest`."""
        return cls(largest, largest**2, 1)

    def of_rows(self, count: int, *, both_ways: bool) -> "Sensitivity":
        """How far several added or removed rows move integers of all groups, if one row moves them this far.

        `both_ways` says that half of the rows leave and half join, and that no row adds to an integer what
        another takes away.
        """
        # What the two halves add is at an angle of at most 90 degrees: their difference has the squares of
        # both, and not the square of their sum.
        squares = ((count + 1) // 2) ** 2 + (count // 2) ** 2 if both_ways else count**2
        return Sensitivity(
            self.l1 * count, self.l2_squared * squares, self.coordinates * count, self.one_vector
        )


@lru_cache(maxsize=256)
def additive(budget: Budget, sensitivity: Sensitivity, noise: Noise = "auto") -> Additive:
    """The additive mechanism for a budget; `auto` takes the smaller variance among those that fit it.

    Guarantee:
        The noise costs at most `budget` for changes within `sensitivity`: pure DP with Laplace noise, the
        budget's own kind with Gaussian noise. Proofs: docs/proofs/laplace.md, docs/proofs/gaussian.md.

    Raises:
        InvalidParameter: the budget does not allow the noise that was asked for.
        NotSupported: `noise="gaussian"` needs a scale outside what is proved.

    >>> from sfumato.privacy import ApproxDP
    >>> type(additive(ApproxDP(1, 1e-6), Sensitivity.scalar(1))).__name__
    'LaplaceMechanism'
    >>> type(additive(ApproxDP(1, 1e-6), Sensitivity(l1=100, l2_squared=100, coordinates=100))).__name__
    'GaussianMechanism'
    """
    one_of("noise", noise, NOISES)
    if isinstance(budget, PureDP):
        if noise == "gaussian":
            raise InvalidParameter("noise='gaussian' needs an ApproxDP or ZCDP budget, got a PureDP one")
        return LaplaceMechanism.calibrated(epsilon=budget.epsilon, sensitivity=sensitivity.l1)
    if isinstance(budget, ZCDP) and noise == "laplace":
        raise InvalidParameter("noise='laplace' needs a PureDP or ApproxDP budget, got a ZCDP one")
    if isinstance(budget, ZCDP) or noise == "gaussian":
        return _gaussian(budget, sensitivity)
    laplace = LaplaceMechanism.calibrated(epsilon=budget.epsilon, sensitivity=sensitivity.l1)
    if noise == "laplace":
        return laplace
    try:
        gaussian = _gaussian(budget, sensitivity)
    except (InvalidParameter, NotSupported):  # Gaussian noise has no proof for so large or small a budget
        return laplace
    # 2 b**2 bounds the variance of discrete Laplace noise, sigma**2 that of discrete Gaussian noise.
    return laplace if 2 * laplace.scale**2 <= gaussian.sigma_squared else gaussian


def _gaussian(budget: ApproxDP | ZCDP, sensitivity: Sensitivity) -> GaussianMechanism:
    return GaussianMechanism.calibrated(
        budget,
        sensitivity_squared=sensitivity.l2_squared,
        coordinates=sensitivity.coordinates,
        one_vector=sensitivity.one_vector,
    )
