"""A certificate: what was proved for which noise, pair by pair, so that anybody can prove it again."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.checks import decimal, exact, float_up, one_of, positive, root_down
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.privacy.conversions import decimal_up
from sfumato.privacy.pufferfish_couplings import coupling_failure, infinity_distance
from sfumato.privacy.pufferfish_gaussian import gaussian_failure
from sfumato.privacy.pufferfish_laplace import far_loss, finite_loss, laplace_loss
from sfumato.privacy.pufferfish_laws import Finite, VectorMixture, checked_mapping
from sfumato.privacy.pufferfish_model import Comparison, Pufferfish
from sfumato.privacy.records import FORMAT, read_fraction, short_text

__all__ = ["METHODS", "Bound", "Certificate", "proved"]

METHODS = ("wasserstein", "coupling", "laplace-certified", "gaussian-exact")
PURE = ("wasserstein", "laplace-certified")
# A bound that floats computed is stated this much higher, so that another machine's floats prove it too.
_MACHINES = Fraction(1, 10**10)
# Failures are rounded up to a multiple of this, so that a record of them stays short.
_SHORT = 2**400


@dataclass(frozen=True)
class Bound:
    """What is proved for one pair of secrets in one scenario: an epsilon, or a delta at the common epsilon.

    Guarantee:
        Whatever the certificate that holds it guarantees.

    Raises:
        InvalidParameter: value is no finite number.

    >>> Bound("usual", "ill", "well", Fraction(1, 2)).value
    Fraction(1, 2)
    """

    scenario: str
    first: str
    second: str
    value: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", exact("value", self.value))

    @property
    def key(self) -> tuple[str, str, str]:
        """Its names."""
        return self.scenario, self.first, self.second


@dataclass(frozen=True, kw_only=True)
class Certificate:
    r"""A proof that noise of one size is enough for every pair of a model, to be checked again by `verify`.

    Guarantee:
        If `verify(model)` returns, the query rounded to the lattice, plus discrete noise of this scale, is
        :math:`(\varepsilon, \delta)`-Pufferfish private for the model. Read from a file it is a claim and no
        more, until it is verified. Proofs: docs/proofs/pufferfish.md.

    Args:
        method: one of "wasserstein", "coupling", "laplace-certified", "gaussian-exact".
        epsilon, delta: what is proved; delta is 0 for the pure methods.
        scale: of the noise, in units of the query: that of Laplace noise, or the deviation of Gaussian noise.
        granularity: the step of the public lattice to which the query is rounded.
        grid_step: the slack of the search over outcomes, in units of the scale; 0 if all are looked at.
        bounds: what is proved for each pair in each scenario.

    Raises:
        InvalidParameter: a field is out of its range; from `verify`: the claim is not proved for the model.

    >>> from sfumato.privacy.pufferfish import Finite, certify
    >>> counts = {"ill": Finite({1: 0.5, 2: 0.5}), "well": Finite({0: 0.5, 1: 0.5})}
    >>> model = Pufferfish(scenarios={"usual": counts}, pairs=[("ill", "well")])
    >>> found = certify(model, epsilon=1, method="wasserstein")
    >>> print(found.verify(model))
    wasserstein: epsilon 1.0, Laplace noise of scale 1.0 on steps of 1.0, worst 'ill' and 'well' in 'usual'
    """

    method: str
    epsilon: Fraction
    delta: Fraction
    scale: Fraction
    granularity: Fraction
    grid_step: Fraction
    bounds: tuple[Bound, ...]

    def __post_init__(self) -> None:
        one_of("method", self.method, METHODS)
        for name in ("epsilon", "scale", "granularity"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        for name in ("delta", "grid_step"):
            number = exact(name, getattr(self, name))
            if not 0 <= number < 1:
                raise InvalidParameter(f"{name} must be in [0, 1), got {name}={decimal(number)}")
            object.__setattr__(self, name, number)
        object.__setattr__(self, "bounds", tuple(self.bounds))
        if not self.bounds or not all(isinstance(bound, Bound) for bound in self.bounds):
            raise InvalidParameter("bounds must be at least one Bound")

    @property
    def noise(self) -> str:
        """The kind of noise: "laplace" or "gaussian"."""
        return "gaussian" if self.method == "gaussian-exact" else "laplace"

    @property
    def worst(self) -> Bound:
        """The pair and the scenario that need the most noise."""
        return max(self.bounds, key=lambda bound: bound.value)

    def verify(self, model: Pufferfish) -> "Certificate":
        """This certificate, after proving every bound again from the model; else InvalidParameter."""
        if not isinstance(model, Pufferfish):
            raise InvalidParameter("model must be a Pufferfish")
        comparisons = {comparison.key: comparison for comparison in model.comparisons}
        mine = [bound.key for bound in self.bounds]
        if len(set(mine)) < len(mine) or set(mine) != set(comparisons):
            raise InvalidParameter(
                "the certificate does not cover exactly the pairs and scenarios of the model"
            )
        for bound in self.bounds:
            value = self._proved_again(comparisons[bound.key])
            if value > bound.value:
                raise InvalidParameter(
                    f"the certificate says {float(bound.value):.6g} for {bound.first!r} and {bound.second!r} "
                    f"in {bound.scenario!r}, and {float(value):.6g} is proved"
                )
        stated = self.epsilon if self.method in PURE else self.delta
        if stated != self.worst.value or (self.method in PURE and self.delta):
            raise InvalidParameter("epsilon and delta of the certificate must be those of its worst pair")
        return self

    def _proved_again(self, comparison: Comparison) -> Fraction:
        try:
            return proved(comparison, self, margin=Fraction(0))
        except NotSupported as error:
            raise InvalidParameter(f"the certificate is not proved: {error}") from None

    def to_dict(self) -> dict[str, object]:
        """A JSON-safe exact record; `from_dict` reads it back."""
        numbers = ("epsilon", "delta", "scale", "granularity", "grid_step")
        record: dict[str, object] = {"format": FORMAT, "type": "pufferfish", "method": self.method}
        record |= {name: str(getattr(self, name)) for name in numbers}
        return record | {"bounds": [[*bound.key, str(bound.value)] for bound in self.bounds]}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Certificate":
        """Reads back what `to_dict` wrote; a claim until it is verified."""
        numbers = ("epsilon", "delta", "scale", "granularity", "grid_step")
        checked_mapping("a certificate", record)
        if set(record) != {"format", "type", "method", "bounds", *numbers}:
            raise InvalidParameter("a certificate must have exactly the fields that `to_dict` writes")
        if record["format"] != FORMAT or record["type"] != "pufferfish":
            raise InvalidParameter(f"a certificate must be of format {FORMAT} and type pufferfish")
        if not isinstance(record["bounds"], list):
            raise InvalidParameter("bounds must be a list")
        read: dict[str, Any] = {name: read_fraction(record, name) for name in numbers}
        return cls(method=record["method"], bounds=tuple(map(_read_bound, record["bounds"])), **read)

    @property
    def _cost(self) -> dict[str, Fraction]:
        return {"epsilon": self.epsilon, "delta": self.delta} if self.delta else {"epsilon": self.epsilon}

    def __str__(self) -> str:
        kind = "Gaussian noise of deviation" if self.noise == "gaussian" else "Laplace noise of scale"
        cost = " ".join(f"{name} {shown_up(value)}," for name, value in self._cost.items())
        where = f"{self.worst.first!r} and {self.worst.second!r} in {self.worst.scenario!r}"
        lattice = f"on steps of {decimal(self.granularity)}"
        return f"{self.method}: {cost} {kind} {decimal(self.scale)} {lattice}, worst {where}"


def shown_up(value: Fraction) -> str:
    """A cost for people: a decimal of at most eight digits that is not below it."""
    text = decimal(value)
    return text if len(text) <= 10 and "/" not in text else decimal(decimal_up(float_up(value), 8))


def _read_bound(entry: Any) -> Bound:
    if not isinstance(entry, list) or len(entry) != 4:
        raise InvalidParameter("a bound must be a scenario, two secrets and a number")
    scenario, first, second = (short_text("name", name) for name in entry[:3])
    return Bound(scenario, first, second, read_fraction({"value": entry[3]}, "value"))


def proved(
    comparison: Comparison, terms: Any, *, enough: float = math.inf, margin: Fraction = _MACHINES
) -> Fraction:
    """The epsilon (pure methods) or the delta that is proved for one pair; `terms` has the noise.

    What floats computed is raised by the margin. A search may stop at any bound that shows on which side of
    `enough` the least one lies.
    """
    left, right = comparison.left, comparison.right
    if terms.method == "gaussian-exact":
        if isinstance(left, VectorMixture):
            raise NotSupported("method 'gaussian-exact' is for queries of one number: take method='coupling'")
        found = gaussian_failure(
            left, right, sigma=terms.scale, granularity=terms.granularity, epsilon=terms.epsilon
        )
        return min(Fraction(1), Fraction(found) * (1 + margin))
    if terms.method == "coupling":
        failure = _coupled(comparison, terms) * (1 + margin)
        return min(Fraction(1), Fraction(math.ceil(failure * _SHORT), _SHORT))
    steps = lattice_steps(comparison, terms.granularity)
    shift = None if steps is None else Fraction(steps * terms.granularity / terms.scale)
    if terms.method == "wasserstein":
        if shift is None:
            raise NotSupported(NO_DISTANCE)
        return shift
    if shift is not None and shift <= enough < math.inf:
        return shift
    return _laplace(comparison, terms, shift, enough, margin)


NO_DISTANCE = (
    "no bound on how far the mixtures are apart is known where weights of equal deviations differ: "
    "take method='laplace-certified', 'gaussian-exact' or 'coupling'"
)


def lattice_steps(comparison: Comparison, granularity: Fraction) -> int | None:
    """How many steps of the lattice a coupling of the rounded queries moves at most; None if unbounded."""
    left, right = comparison.left, comparison.right
    if isinstance(left, Finite):
        distance = infinity_distance(left.rounded(granularity), right.rounded(granularity))
        return None if distance is None else int(distance)
    distance = infinity_distance(left, right)
    # Two numbers at most n steps apart round to integers at most n apart, for every whole n.
    return None if distance is None else math.ceil(distance / granularity)


def _laplace(
    comparison: Comparison, terms: Any, shift: Fraction | None, enough: float, margin: Fraction
) -> Fraction:
    left, right = comparison.left, comparison.right
    lattice = Fraction(terms.granularity / terms.scale)
    if isinstance(left, VectorMixture):
        raise NotSupported("method 'laplace-certified' is for queries of one number: take method='coupling'")
    if isinstance(left, Finite):
        steps = left.rounded(terms.granularity), right.rounded(terms.granularity)
        found = Fraction(finite_loss(*steps, 1 / lattice))
        return found * (1 + margin) if shift is None else min(found * (1 + margin), shift)
    tolerance = float(terms.grid_step)
    # A loss that is nearly attained far out cannot be bounded by much less than the shift.
    if shift is not None and shift <= far_loss(left, right, terms.scale) + tolerance:
        return shift
    try:
        loss = laplace_loss(left, right, terms.scale, tolerance=tolerance, enough=enough)
    except NotSupported:
        if shift is None or enough < math.inf:
            raise
        return shift
    # Rounding moves the query by half a step, under either secret.
    found = (Fraction(loss) + lattice) * (1 + margin)
    return found if shift is None else min(found, shift)


def _coupled(comparison: Comparison, terms: Any) -> Fraction:
    steps = math.floor(terms.epsilon * terms.scale / terms.granularity)
    left, right = comparison.left, comparison.right
    if isinstance(left, Finite):
        return coupling_failure(
            left.rounded(terms.granularity), right.rounded(terms.granularity), Fraction(steps)
        )
    if not isinstance(left, VectorMixture):
        return coupling_failure(left, right, steps * terms.granularity)
    # In L1 a move of length D is at most sqrt(m) D, and rounding adds at most a step to each coordinate.
    size = left.dimension
    room = (steps - size) * terms.granularity
    return coupling_failure(left, right, root_down(room**2 / size)) if room > 0 else Fraction(1)
