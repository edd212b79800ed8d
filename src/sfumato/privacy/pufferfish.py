"""Pufferfish privacy: hide stated secrets under stated scenarios, correlations included; one release only.

Differential privacy with independent records is a special case. Unlike it, Pufferfish privacy has no
composition: what a model allows is one release, and no accountant or ledger adds it up.

    model = Pufferfish(scenarios={"usual": {"ill": law, "well": other_law}}, pairs=[("ill", "well")])
    certificate = certify(model, epsilon=1, method="laplace-certified")
    sfumato.mechanisms.WassersteinMechanism(model=model, certificate=certificate).release(value)

docs/pufferfish.md has the methods, and two worked examples.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.checks import Number, exact, inside, one_of, positive
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws.coins import exp_bounds
from sfumato.privacy.pufferfish_certificate import METHODS, PURE, Bound, Certificate, proved
from sfumato.privacy.pufferfish_couplings import coupling_failure, infinity_distance
from sfumato.privacy.pufferfish_joint import Given, JointMixture
from sfumato.privacy.pufferfish_laws import Finite, Mixture, VectorMixture, alike, common_step
from sfumato.privacy.pufferfish_leakage import Leakage, leakage
from sfumato.privacy.pufferfish_model import Pufferfish, Scenario
from sfumato.privacy.pufferfish_search import SEARCHES, Terms

__all__ = [
    "Bound",
    "Certificate",
    "Finite",
    "Given",
    "JointMixture",
    "Leakage",
    "Loss",
    "Mixture",
    "Pufferfish",
    "Scenario",
    "VectorMixture",
    "certify",
    "coupling_failure",
    "infinity_distance",
    "leakage",
    "misspecified",
]

# Stands in until a search has found the real one.
_UNKNOWN = Fraction(1)


@dataclass(frozen=True)
class Loss:
    """An epsilon and a delta.

    Guarantee:
        What the function that returned it states.

    >>> Loss(Fraction(1), Fraction(0)).delta
    Fraction(0, 1)
    """

    epsilon: Fraction
    delta: Fraction


def misspecified(certificate: Certificate, *, tau: Number) -> Loss:
    r"""What is left of a certificate if the world is near a scenario of the model, and not in it.

    Guarantee:
        If, given each secret, the true law of the query and that of a scenario have a log ratio of at most
        :math:`\tau` on every event, either way, the release is :math:`(\varepsilon + 2\tau, e^\tau
        \delta)`-Pufferfish private in truth. Delta is rounded up. Proof: docs/proofs/pufferfish.md.

    Args:
        certificate: a verified one.
        tau: not negative, at most 100.

    >>> from sfumato.privacy.pufferfish import Finite, Pufferfish, certify
    >>> counts = {"ill": Finite({1: 0.5, 2: 0.5}), "well": Finite({0: 0.5, 1: 0.5})}
    >>> model = Pufferfish(scenarios={"usual": counts}, pairs=[("ill", "well")])
    >>> misspecified(certify(model, epsilon=1, method="wasserstein"), tau=0.05).epsilon
    Fraction(11, 10)
    """
    near = exact("tau", tau)
    if not 0 <= near <= 100:
        raise InvalidParameter(f"tau must be in [0, 100], got tau={tau}")
    growth = Fraction(2**256, exp_bounds(near, 256)[0])
    # Short enough for a record.
    delta = Fraction(math.ceil(certificate.delta * growth * 2**200), 2**200)
    return Loss(certificate.epsilon + 2 * near, min(Fraction(1), delta) if near else certificate.delta)


def certify(
    model: Pufferfish, *, epsilon: Number, delta: Number = 0, method: str, granularity: Number | None = None
) -> Certificate:
    r"""The least noise that is proved enough for every pair of a model, with the proof.

    Guarantee:
        The certificate verifies against the model, its epsilon and delta are at most what was asked, and it
        is about the lattice release itself: rounding and discrete noise are part of the proof.

    Args:
        model: secrets, pairs and scenarios; public.
        epsilon: positive.
        delta: 0 for the methods "wasserstein" and "laplace-certified", above 0 for the others.
        method: "wasserstein" moves by the largest distance, for finite laws and mixtures of equal deviations;
            "laplace-certified" bounds the loss of Laplace noise itself, and needs the least of it that can be
            computed: where mixtures are thousands of times wider than the noise, more is taken;
            "gaussian-exact" does so for Gaussian noise; "coupling" is for vectors, or as a plain bound.
        granularity: the step of the public lattice; by default that of the values of finite laws, and for
            mixtures a power of two far below the noise.

    Raises:
        InvalidParameter: a parameter out of its range, or a delta that does not go with the method.
        NotSupported: the method has no finite answer, or the laws of all pairs are equal.

    References:
        [KM14] for the definition, [SWC17] for the Wasserstein mechanism, [Ding24] for couplings of mixtures.

    >>> high, low = Mixture.normal(2, 1), Mixture.normal(0, 1)
    >>> model = Pufferfish(scenarios={"usual": {"high": high, "low": low}}, pairs=[("high", "low")])
    >>> certify(model, epsilon=1, method="wasserstein").scale
    Fraction(2, 1)
    """
    one_of("method", method, METHODS)
    if not isinstance(model, Pufferfish):
        raise InvalidParameter("model must be a Pufferfish")
    target = Terms(
        method, positive("epsilon", epsilon), _delta(method, delta), _UNKNOWN, _UNKNOWN, Fraction(0)
    )
    if all(alike(one.left, one.right) for one in model.comparisons):
        raise NotSupported("the laws of every pair are equal: the query tells nothing and needs no noise")
    step = None if granularity is None else positive("granularity", granularity)
    laws = [law for one in model.comparisons for law in (one.left, one.right)]
    if step is None and isinstance(laws[0], Finite):
        step = common_step(laws)
    chosen = SEARCHES[method](model, target, step)
    return _certificate(model, chosen)


def _delta(method: str, delta: Number) -> Fraction:
    if method in PURE:
        if exact("delta", delta):
            raise InvalidParameter(f"delta must be 0 for method={method!r}, which is pure, got delta={delta}")
        return Fraction(0)
    return inside("delta", delta)


def _certificate(model: Pufferfish, terms: Terms) -> Certificate:
    bounds = tuple(Bound(*one.key, proved(one, terms)) for one in model.comparisons)
    worst = max(bound.value for bound in bounds)
    if worst > (terms.epsilon if terms.method in PURE else terms.delta):
        raise NotSupported("no certificate is found: the last check of the noise failed")
    stated = {"epsilon": worst} if terms.method in PURE else {"delta": worst}
    return Certificate(**{**terms._asdict(), **stated, "bounds": bounds})
