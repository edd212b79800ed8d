"""Average leakage of a release, as a diagnostic: no bound on it is a guarantee."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sfumato.errors import NotSupported
from sfumato.laws import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy.pufferfish_gaussian import Listed, listed
from sfumato.privacy.pufferfish_laws import Floats, VectorMixture

if TYPE_CHECKING:
    from sfumato.privacy.pufferfish_certificate import Certificate
    from sfumato.privacy.pufferfish_model import Pufferfish

__all__ = ["Leakage", "leakage"]

_CELLS_PER_SCALE = 32
_FAR = 1e-15


@dataclass(frozen=True)
class Leakage:
    """Averages of what one pair of secrets can be told apart by, in nats; a diagnostic.

    Guarantee:
        None. An average says nothing about the outcomes that reveal most: the certificate does.

    Args:
        divergence: the larger of the two Kullback-Leibler divergences between the releases.
        information: the mutual information of the release and a fair coin between the two secrets.

    >>> Leakage("usual", "ill", "well", 0.2, 0.05).information
    0.05
    """

    scenario: str
    first: str
    second: str
    divergence: float
    information: float


def leakage(model: "Pufferfish", certificate: "Certificate") -> tuple[Leakage, ...]:
    """The average leakage of each pair in each scenario under the noise of a certificate.

    Guarantee:
        None: computed on a coarser lattice than the release's, and an average at that. It is for comparing
        designs; what protects the secrets is the certificate.

    Raises:
        NotSupported: the query is a vector.

    >>> from sfumato.privacy.pufferfish import Mixture, Pufferfish, certify
    >>> laws = {"high": Mixture.normal(2, 1), "low": Mixture.normal(0, 1)}
    >>> model = Pufferfish(scenarios={"usual": laws}, pairs=[("high", "low")])
    >>> [found] = leakage(model, certify(model, epsilon=1, method="wasserstein"))
    >>> round(found.divergence, 2), round(found.information, 2)
    (0.28, 0.07)
    """
    if model.dimension > 1 or isinstance(model.comparisons[0].left, VectorMixture):
        raise NotSupported("leakage is computed for queries of one number")
    coarse = certificate.granularity
    while coarse * _CELLS_PER_SCALE < certificate.scale:
        coarse *= 2
    noise = _noise(certificate, coarse)
    found = []
    for one in model.comparisons:
        left, right = (_blurred(listed(law, coarse), noise) for law in (one.left, one.right))
        both = _aligned(left, right)
        divergence = max(_relative(*both), _relative(*both[::-1]))
        middle = (both[0] + both[1]) / 2
        information = (_relative(both[0], middle) + _relative(both[1], middle)) / 2
        found.append(Leakage(*one.key, divergence, information))
    return tuple(found)


def _noise(certificate: "Certificate", coarse: Fraction) -> Listed:
    scale = certificate.scale / coarse
    law = DiscreteGaussian(scale**2) if certificate.noise == "gaussian" else DiscreteLaplace(scale)
    reach = law.radius(1 - 1e-9)
    return Listed(-reach, np.exp(law.logpmf(np.arange(-reach, reach + 1))), 0.0, 0.0)


def _blurred(law: Listed, noise: Listed) -> Listed:
    return law._replace(first=law.first + noise.first, chances=np.convolve(law.chances, noise.chances))


def _aligned(left: Listed, right: Listed) -> tuple[Floats, Floats]:
    first = min(left.first, right.first)
    last = max(left.first + len(left.chances), right.first + len(right.chances))
    both = np.full((2, last - first), _FAR / (last - first))
    for row, law in zip(both, (left, right), strict=True):
        row[law.first - first :][: len(law.chances)] += law.chances
    return both[0] / both[0].sum(), both[1] / both[1].sum()


def _relative(one: Floats, other: Floats) -> float:
    return float(np.sum(one * np.log(one / other)))
