"""One release of a query under Pufferfish privacy: lattice, certified noise, and no second time."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sfumato.checks import Number, decimal, exact
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import Bits, DiscreteGaussian, DiscreteLaplace, Law, Shifted, default_bits
from sfumato.privacy import OneShotEvent
from sfumato.privacy.pufferfish import Certificate, Pufferfish, certify
from sfumato.privacy.pufferfish_certificate import shown_up

__all__ = ["OneShotRelease", "WassersteinMechanism"]


@dataclass(frozen=True)
class OneShotRelease:
    """A released query, the certificate behind it, and whether private bits drew it.

    Guarantee:
        Post-processing of one draw; it costs nothing more. It is in no ledger: its event is refused there.

    Args:
        value: the released number, or one for each coordinate; exact multiples of the granularity.
        certificate: what was proved for the noise.
        private: False if seeded bits drew it; then it must not be published.

    >>> from sfumato.privacy.pufferfish import Finite
    >>> counts = {"ill": Finite({1: 0.5, 2: 0.5}), "well": Finite({0: 0.5, 1: 0.5})}
    >>> model = Pufferfish(scenarios={"usual": counts}, pairs=[("ill", "well")])
    >>> release = WassersteinMechanism.calibrated(model, epsilon=1, method="wasserstein").release(1)
    >>> release.value.denominator, release.private
    (1, True)
    """

    value: Fraction | tuple[Fraction, ...]
    certificate: Certificate
    private: bool

    def interval(self, confidence: float = 0.95) -> Any:
        """Where the query's own value lies with this confidence: one pair, or one for each coordinate."""
        noise, step = _noise(self.certificate), self.certificate.granularity
        # The query was rounded by at most half a step before the noise.
        reach = (noise.radius(confidence) + Fraction(1, 2)) * step
        ends = [(float(one - reach), float(one + reach)) for one in _each(self.value)]
        return tuple(ends) if isinstance(self.value, tuple) else ends[0]

    def __str__(self) -> str:
        shown = ", ".join(decimal(one) for one in _each(self.value))
        cost = f"epsilon {shown_up(self.certificate.epsilon)}"
        cost += f", delta {shown_up(self.certificate.delta)}" if self.certificate.delta else ""
        warning = "" if self.private else ", drawn with seeded bits: do not publish"
        return f"{shown} ({cost} for the secrets of its model, one-shot{warning})"


@dataclass(frozen=True, kw_only=True)
class WassersteinMechanism:
    r"""Releases a query once, with noise that is certified for every pair of secrets of a model.

    Guarantee:
        :math:`(\varepsilon, \delta)`-Pufferfish privacy of one release, as the certificate states; it is
        verified against the model when the mechanism is made. It is about values that have the law of the
        model, and so are finite and among its values; nothing is promised for others. A second release is
        refused: costs do not add up, not even those of independent noise. Proof: docs/proofs/pufferfish.md.

    Args:
        model: secrets, pairs and scenarios; public.
        certificate: of `certify`, or read from a file.

    Raises:
        InvalidParameter: the certificate is not proved for the model.
        NotSupported: from `release`, the second time.

    References:
        [SWC17] for the mechanism, [CKS20] for the noise.

    >>> from sfumato.privacy.pufferfish import Mixture
    >>> laws = {"high": Mixture.normal(2, 1), "low": Mixture.normal(0, 1)}
    >>> model = Pufferfish(scenarios={"usual": laws}, pairs=[("high", "low")])
    >>> mechanism = WassersteinMechanism.calibrated(model, epsilon=1, method="wasserstein")
    >>> mechanism.event
    OneShotEvent(epsilon=1, delta=0, name='pufferfish')
    """

    model: Pufferfish
    certificate: Certificate
    _released: dict[str, object] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.certificate.verify(self.model)
        _noise(self.certificate)

    @classmethod
    def calibrated(
        cls,
        model: Pufferfish,
        *,
        epsilon: Number,
        delta: Number = 0,
        method: str,
        granularity: Number | None = None,
    ) -> "WassersteinMechanism":
        """The mechanism with the least noise that is proved enough; the arguments are those of `certify`."""
        found = certify(model, epsilon=epsilon, delta=delta, method=method, granularity=granularity)
        return cls(model=model, certificate=found)

    @property
    def event(self) -> OneShotEvent:
        """What a release costs; no accountant, composition or ledger takes it."""
        return OneShotEvent(self.certificate.epsilon, self.certificate.delta, "pufferfish")

    @property
    def noise(self) -> DiscreteLaplace | DiscreteGaussian:
        """The law of the noise on one coordinate, in steps of the lattice."""
        return _noise(self.certificate)

    def law(self, value: Any) -> Law:
        """The law of the released number of lattice steps when the query's value is `value`."""
        step = self.certificate.granularity
        if self.model.dimension == 1:
            return Shifted(self.noise, nearest_step(value, step))
        if not hasattr(value, "__len__") or len(value) != self.model.dimension:
            raise InvalidParameter(f"value must be {self.model.dimension} numbers")
        return Shifted(self.noise, [nearest_step(one, step) for one in value])

    def release(self, value: Any, bits: Bits | None = None) -> OneShotRelease:
        """One draw around the query's value; a second one is refused, whatever the value."""
        # Taken before the value is looked at; of two threads one gets it.
        token = object()
        if self._released.setdefault("once", token) is not token:
            raise NotSupported(
                "this mechanism has released once: Pufferfish costs do not add up, so two releases have no "
                "common guarantee; make a new mechanism explicitly if that is accepted, or a model of both"
            )
        source = default_bits() if bits is None else bits
        drawn, step = self.law(value).sample(source), self.certificate.granularity
        released = int(drawn) * step if self.model.dimension == 1 else tuple(int(one) * step for one in drawn)
        return OneShotRelease(released, self.certificate, source.private)


def nearest_step(value: Any, granularity: Fraction) -> int:
    """The number of lattice steps nearest to a value, halves up; exact, and no message shows the value."""
    try:
        number = exact("value", value)
    except InvalidParameter:
        raise InvalidParameter("value must be a finite number") from None
    return (number / granularity + Fraction(1, 2)).__floor__()


def _noise(certificate: Certificate) -> DiscreteLaplace | DiscreteGaussian:
    scale = certificate.scale / certificate.granularity
    return DiscreteGaussian(scale**2) if certificate.noise == "gaussian" else DiscreteLaplace(scale)


def _each(value: Fraction | tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    return value if isinstance(value, tuple) else (value,)
