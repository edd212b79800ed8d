"""What was done: frozen records from which any accountant can work; they hold no data.

Events are append-only in meaning: a stored record must mean the same next year, so a field is never
reinterpreted; a new meaning gets a new type tag.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import ClassVar, Union

from sfumato.checks import Number, one_of, positive, shown, whole
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws.bounded import MAX_BOUND, POWERS
from sfumato.privacy.records import (
    FORMAT,
    plain,
    read_fraction,
    read_integer,
    read_tag,
    short_text,
)
from sfumato.privacy.stated_events import (
    ApproxEvent,
    ConcentratedEvent,
    FreeEvent,
    OneShotEvent,
    PureEvent,
    RangeEvent,
    Simple,
    field_names,
)

__all__ = [
    "MAX_COORDINATES",
    "MAX_PARTS",
    "MAX_QUERIES",
    "MAX_SENSITIVITY",
    "ApproxEvent",
    "BoundedNoiseEvent",
    "ComposedEvent",
    "ConcentratedEvent",
    "Event",
    "FreeEvent",
    "GaussianEvent",
    "GaussianVectorEvent",
    "LaplaceEvent",
    "OneShotEvent",
    "PureEvent",
    "RangeEvent",
    "event_from_dict",
    "flatten",
    "scalar_shift",
]

MAX_SENSITIVITY, MAX_SQUARE = 2**256, 2**400
MAX_COORDINATES, MAX_PARTS = 2**32, 1_000_000
MAX_QUERIES = 10**7


@dataclass(frozen=True, repr=False)
class LaplaceEvent(Simple):
    r"""Discrete Laplace noise was added to an integer, or to each entry of an integer vector.

    Guarantee:
        Pure DP with :math:`\varepsilon = \Delta / b`, where one change of a record moves the answer by at
        most :math:`\Delta` (`sensitivity`, in L1 for a vector) and :math:`b` is `scale`. A scalar shift by
        :math:`\Delta` dominates every vector shift of that L1 norm: docs/proofs/composition.md, lemma 2.

    References:
        [DR14], [CKS20].

    >>> LaplaceEvent(sensitivity=1, scale=10).pure_epsilon
    Fraction(1, 10)
    """

    TYPE: ClassVar[str] = "laplace"
    sensitivity: int
    scale: Fraction

    def __init__(self, sensitivity: int, scale: Number) -> None:
        sensitivity = whole("sensitivity", sensitivity, least=1, most=MAX_SENSITIVITY)
        object.__setattr__(self, "sensitivity", sensitivity)
        object.__setattr__(self, "scale", positive("scale", scale))

    @property
    def pure_epsilon(self) -> Fraction:
        """The exact pure cost."""
        return self.sensitivity / self.scale

    @property
    def rho(self) -> Fraction:
        """The zCDP cost of the pure bound."""
        return self.pure_epsilon**2 / 2


@dataclass(frozen=True, repr=False)
class GaussianEvent(Simple):
    r"""Discrete Gaussian noise was added to each entry of an integer vector, or of several in turn.

    Guarantee:
        :math:`\rho`-zCDP with :math:`\rho = \Delta_2^2 / (2 \sigma^2)`. `coordinates` is how many entries
        one change of a record can move. With one coordinate the shift is a whole number and the exact
        :math:`\delta(\varepsilon)` is known. With more, a part of the vector may follow earlier noisy parts,
        and an entry may have larger noise and move as much further; its curve is that of theorems 1 and 3 of
        docs/proofs/gaussian.md.

    Raises:
        InvalidParameter: a field is not positive, or one coordinate with a sensitivity_squared that is
            not the square of a whole number.

    References:
        [CKS20].

    >>> GaussianEvent(sensitivity_squared=1, sigma_squared=50, coordinates=1).rho
    Fraction(1, 100)
    """

    TYPE: ClassVar[str] = "gaussian"
    sensitivity_squared: Fraction
    sigma_squared: Fraction
    coordinates: int

    def __init__(self, sensitivity_squared: Number, sigma_squared: Number, coordinates: int) -> None:
        coordinates = whole("coordinates", coordinates, least=1, most=MAX_COORDINATES)
        object.__setattr__(self, "sensitivity_squared", _square("sensitivity_squared", sensitivity_squared))
        object.__setattr__(self, "sigma_squared", _square("sigma_squared", sigma_squared))
        object.__setattr__(self, "coordinates", coordinates)
        if coordinates == 1:
            scalar_shift(self.sensitivity_squared)

    @property
    def pure_epsilon(self) -> None:
        """None: Gaussian noise has no finite pure cost."""
        return None

    @property
    def rho(self) -> Fraction:
        """The exact zCDP cost."""
        return self.sensitivity_squared / (2 * self.sigma_squared)


@dataclass(frozen=True, init=False, repr=False)
class GaussianVectorEvent(GaussianEvent):
    r"""The same discrete Gaussian noise was added to each entry of one integer vector that the data fix.

    Guarantee:
        That of a `GaussianEvent`. Its curve is the largest :math:`\delta(\varepsilon)` of all integer shifts
        of at most `coordinates` entries and a squared L2 norm of at most `sensitivity_squared`:
        docs/proofs/gaussian.md, theorem 4.

    References:
        [CKS20].

    >>> GaussianVectorEvent(sensitivity_squared=2, sigma_squared=50, coordinates=2).rho
    Fraction(1, 50)
    """

    TYPE: ClassVar[str] = "gaussian-vector"


@dataclass(frozen=True, repr=False)
class BoundedNoiseEvent(Simple):
    r"""Bounded noise was added to each of several integers, asked for one after the other.

    Guarantee:
        :math:`(\varepsilon, \delta)`-DP along the curve of `bounded_noise_delta`, if one change of a record
        moves each of the `queries` integers by at most `sensitivity`. Some outcomes are possible for one of
        two neighbours only, so there is no pure and no zCDP cost. Proof: docs/proofs/bounded-noise.md.

    References:
        [DaganKur22].

    >>> BoundedNoiseEvent(sensitivity=1, bound=124, power=2, queries=10).pure_epsilon is None
    True
    """

    TYPE: ClassVar[str] = "bounded"
    sensitivity: int
    bound: int
    power: int
    queries: int

    def __init__(self, sensitivity: int, bound: int, power: int, queries: int) -> None:
        object.__setattr__(self, "sensitivity", whole("sensitivity", sensitivity, least=1, most=MAX_BOUND))
        object.__setattr__(self, "bound", whole("bound", bound, least=1, most=MAX_BOUND))
        object.__setattr__(self, "power", one_of("power", power, POWERS))
        object.__setattr__(self, "queries", whole("queries", queries, least=1, most=MAX_QUERIES))

    @property
    def pure_epsilon(self) -> None:
        """None: an outcome can tell two neighbours apart for certain."""
        return None

    @property
    def rho(self) -> Fraction:
        """Always refused: an outcome can tell two neighbours apart for certain, so there is no zCDP cost."""
        raise NotSupported(f"{self!r} has no finite zCDP cost: state an ApproxDP cost")


@dataclass(frozen=True)
class ComposedEvent:
    """Several events were fixed together and all done.

    Guarantee:
        Pure and zCDP costs are the sums over the parts; parts that are themselves composed are flattened,
        which means the same.

    Raises:
        InvalidParameter: there are no parts, too many, or something that is not an event.

    References:
        [DR14], [BS16]; docs/proofs/composition.md.

    >>> ComposedEvent([LaplaceEvent(1, 10), PureEvent(0.2, "exponential")]).pure_epsilon
    Fraction(3, 10)
    """

    TYPE: ClassVar[str] = "composed"
    parts: tuple["Event", ...]

    def __init__(self, parts: Iterable["Event"]) -> None:
        object.__setattr__(self, "parts", flatten(parts))
        if not 1 <= len(self.parts) <= MAX_PARTS:
            raise InvalidParameter(f"parts must be 1 to {MAX_PARTS} events, got {len(self.parts)}")

    @property
    def pure_epsilon(self) -> Fraction | None:
        """The sum of the pure costs, or None if a part has none."""
        costs = [part.pure_epsilon for part in self.parts]
        known = [cost for cost in costs if cost is not None]
        return sum(known, Fraction(0)) if len(known) == len(costs) else None

    @property
    def rho(self) -> Fraction:
        """The sum of the zCDP costs."""
        return sum((part.rho for part in self.parts), Fraction(0))

    def to_dict(self) -> dict[str, object]:
        """A JSON-safe exact record; `event_from_dict` reads it back."""
        return {"format": FORMAT, "type": self.TYPE, "parts": [part.to_dict() for part in self.parts]}


SimpleEvent = (
    LaplaceEvent
    | GaussianEvent
    | BoundedNoiseEvent
    | PureEvent
    | ApproxEvent
    | RangeEvent
    | ConcentratedEvent
    | FreeEvent
    | OneShotEvent
)
Event = Union[SimpleEvent, ComposedEvent]  # noqa: UP007 (used as text)


def flatten(events: Iterable[Event]) -> tuple[Event, ...]:
    """The simple events of a sequence, composed ones opened, in order."""
    simple: list[Event] = []
    for event in events:
        if isinstance(event, OneShotEvent):
            raise event.refused()
        if isinstance(event, ComposedEvent):
            simple.extend(event.parts)
        elif isinstance(event, SimpleEvent):
            simple.append(event)
        else:
            raise InvalidParameter(f"events must be privacy events, got {shown(event)}")
    return tuple(simple)


def scalar_shift(sensitivity_squared: Fraction) -> int:
    """The whole number whose square is the sensitivity of a single coordinate."""
    root = isqrt(sensitivity_squared.numerator)
    if root * root != sensitivity_squared:
        raise InvalidParameter(
            "sensitivity_squared must be the square of a whole number when coordinates is 1, "
            f"got sensitivity_squared={plain(sensitivity_squared)}"
        )
    return root


def event_from_dict(record: Mapping[str, object]) -> Event:
    """Reads back what `to_dict` of an event wrote, exactly.

    Guarantee:
        The result equals the event that was written; anything else is refused.

    Raises:
        InvalidParameter: another format, type, set of fields, or a value out of its range.

    >>> event_from_dict(LaplaceEvent(1, 10).to_dict())
    LaplaceEvent(sensitivity=1, scale=10)
    """
    tag = read_tag(record, _FIELDS, "event")
    if tag == "composed":
        parts = record["parts"]
        if not isinstance(parts, list):
            raise InvalidParameter(f"parts must be a list, got {type(parts).__name__}")
        # Written records are flat; refusing nesting also bounds the recursion on a hostile record.
        if any(isinstance(part, Mapping) and part.get("type") == "composed" for part in parts):
            raise InvalidParameter("parts must be simple events, got a composed one inside a composed one")
        return ComposedEvent(event_from_dict(part) for part in parts)
    if tag == "free":
        return FreeEvent(short_text("reason", record["reason"]))
    if tag == "pure":
        return PureEvent(read_fraction(record, "epsilon"), short_text("name", record["name"]))
    if tag == "one-shot":
        name = short_text("name", record["name"])
        return OneShotEvent(read_fraction(record, "epsilon"), read_fraction(record, "delta"), name)
    if tag == "approx":
        name = short_text("name", record["name"])
        return ApproxEvent(read_fraction(record, "epsilon"), read_fraction(record, "delta"), name)
    if tag == "range":
        return RangeEvent(read_fraction(record, "range"), short_text("name", record["name"]))
    if tag == "concentrated":
        return ConcentratedEvent(read_fraction(record, "rho"), short_text("name", record["name"]))
    if tag == "laplace":
        return LaplaceEvent(read_integer(record, "sensitivity"), read_fraction(record, "scale"))
    if tag == "bounded":
        return BoundedNoiseEvent(*(read_integer(record, name) for name in _FIELDS[tag]))
    square, variance = read_fraction(record, "sensitivity_squared"), read_fraction(record, "sigma_squared")
    kind = GaussianVectorEvent if tag == "gaussian-vector" else GaussianEvent
    return kind(square, variance, read_integer(record, "coordinates"))


_FIELDS: dict[str, tuple[str, ...]] = {
    kind.TYPE: field_names(kind)
    for kind in (
        LaplaceEvent,
        GaussianEvent,
        GaussianVectorEvent,
        BoundedNoiseEvent,
        PureEvent,
        ApproxEvent,
        RangeEvent,
        ConcentratedEvent,
        FreeEvent,
        OneShotEvent,
        ComposedEvent,
    )
}


def _square(name: str, value: object) -> Fraction:
    # Far beyond any lattice, and far inside the range of float64, which the curves of delta use.
    square = positive(name, value)
    if not Fraction(1, MAX_SQUARE) <= square <= MAX_SQUARE:
        raise InvalidParameter(f"{name} must be in [2^-400, 2^400], got {name}={shown(value)}")
    return square
