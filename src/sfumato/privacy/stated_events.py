"""Events that state a bound proved elsewhere, or cost nothing; and what all simple events share."""

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.checks import Number, exact, inside, positive
from sfumato.errors import NotSupported
from sfumato.privacy.records import plain, short_text, write_record


def field_names(kind: Any) -> tuple[str, ...]:
    """The fields of a kind of event, in the order in which they are written."""
    return tuple(field.name for field in fields(kind))


class Simple:
    """Printing and writing of an event whose fields are numbers and texts."""

    TYPE: ClassVar[str]

    def _values(self) -> dict[str, int | Fraction | str]:
        return {name: getattr(self, name) for name in field_names(type(self))}

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={plain(value)}" for name, value in self._values().items())
        return f"{type(self).__name__}({inside})"

    def to_dict(self) -> dict[str, object]:
        """A JSON-safe exact record; `event_from_dict` reads it back."""
        return write_record(self.TYPE, self._values())


@dataclass(frozen=True, repr=False)
class PureEvent(Simple):
    r"""A mechanism with a proved pure bound was run.

    Guarantee:
        Pure DP with `epsilon`; `name` says which mechanism, whose proof is docs/proofs/<name>.md.

    References:
        [DR14], [BS16] for the zCDP cost.

    >>> PureEvent(epsilon=0.5, name="exponential").rho
    Fraction(1, 8)
    """

    TYPE: ClassVar[str] = "pure"
    epsilon: Fraction
    name: str

    def __init__(self, epsilon: Number, name: str) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(self, "name", short_text("name", name))

    @property
    def pure_epsilon(self) -> Fraction:
        """The exact pure cost."""
        return self.epsilon

    @property
    def rho(self) -> Fraction:
        """The zCDP cost of the pure bound."""
        return self.pure_epsilon**2 / 2


@dataclass(frozen=True, repr=False)
class ApproxEvent(Simple):
    r"""A mechanism with a proved approximate bound was run.

    Guarantee:
        :math:`(\varepsilon, \delta)`-DP with `epsilon` and `delta`; `name` says which mechanism, whose proof
        is docs/proofs/<name>.md. No pure and no zCDP cost is claimed.

    Raises:
        InvalidParameter: epsilon is not positive, delta is not inside (0, 1), or name is not a short text.

    References:
        [DR14]; [KOV15] for what several cost together.

    >>> ApproxEvent(epsilon=0.5, delta=1e-6, name="partition-selection").pure_epsilon is None
    True
    """

    TYPE: ClassVar[str] = "approx"
    epsilon: Fraction
    delta: Fraction
    name: str

    def __init__(self, epsilon: Number, delta: Number, name: str) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(self, "delta", inside("delta", delta))
        object.__setattr__(self, "name", short_text("name", name))

    @property
    def pure_epsilon(self) -> None:
        """None: the bound may fail with a probability of delta."""
        return None

    @property
    def rho(self) -> Fraction:
        """Always refused: with a probability of delta nothing is promised, so there is no zCDP cost."""
        raise NotSupported(f"{self!r} has no finite zCDP cost: state an ApproxDP cost")


@dataclass(frozen=True, repr=False)
class RangeEvent(Simple):
    r"""A mechanism whose log ratio between two neighbours spans at most `range` over all outcomes was run.

    Guarantee:
        Pure DP with :math:`\varepsilon = r`, and :math:`r^2/8`-zCDP, a quarter of what a pure bound gives.
        Proof: docs/proofs/composition.md.

    References:
        [BS16]; [Hoeffding63] for the lemma.

    >>> RangeEvent(range=1, name="quantiles").rho
    Fraction(1, 8)
    """

    TYPE: ClassVar[str] = "range"
    range: Fraction
    name: str

    def __init__(self, range: Number, name: str) -> None:
        object.__setattr__(self, "range", positive("range", range))
        object.__setattr__(self, "name", short_text("name", name))

    @property
    def pure_epsilon(self) -> Fraction:
        """The exact pure cost."""
        return self.range

    @property
    def rho(self) -> Fraction:
        """The exact zCDP cost."""
        return self.range**2 / 8


@dataclass(frozen=True, repr=False)
class ConcentratedEvent(Simple):
    """A mechanism that is known to be zCDP, and by no smaller description, was run.

    Guarantee:
        :math:`\\rho`-zCDP. No pure epsilon is claimed.

    References:
        [BS16].

    >>> ConcentratedEvent(rho=0.125, name="quantiles").pure_epsilon is None
    True
    """

    TYPE: ClassVar[str] = "concentrated"
    rho: Fraction
    name: str

    def __init__(self, rho: Number, name: str) -> None:
        object.__setattr__(self, "rho", positive("rho", rho))
        object.__setattr__(self, "name", short_text("name", name))

    @property
    def pure_epsilon(self) -> None:
        """None is known."""
        return None


@dataclass(frozen=True, repr=False)
class FreeEvent(Simple):
    """An answer that is a public fact was given; it costs nothing.

    Guarantee:
        The answer is the same for all neighbours, for the stated reason.

    Raises:
        InvalidParameter: reason is not a short text.

    >>> FreeEvent("the number of rows is public under substitution").pure_epsilon
    Fraction(0, 1)
    """

    TYPE: ClassVar[str] = "free"
    reason: str

    def __post_init__(self) -> None:
        short_text("reason", self.reason)

    @property
    def pure_epsilon(self) -> Fraction:
        """Zero."""
        return Fraction(0)

    rho = pure_epsilon


@dataclass(frozen=True, repr=False)
class OneShotEvent(Simple):
    r"""A release was made whose guarantee does not add up with that of any other.

    Guarantee:
        :math:`(\varepsilon, \delta)`-Pufferfish privacy of one release, for the secrets and scenarios of its
        model; delta may be 0. It states nothing about two releases: every accountant, composition and ledger
        refuses it. `name` says which mechanism. Proof, and two releases that leak: docs/proofs/pufferfish.md.

    Raises:
        InvalidParameter: epsilon is not positive, delta is not in [0, 1), or name is not a short text.

    References:
        [KM14].

    >>> OneShotEvent(epsilon=1, delta=0, name="pufferfish")
    OneShotEvent(epsilon=1, delta=0, name='pufferfish')
    """

    TYPE: ClassVar[str] = "one-shot"
    epsilon: Fraction
    delta: Fraction
    name: str

    def __init__(self, epsilon: Number, delta: Number, name: str) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(self, "delta", inside("delta", delta) if exact("delta", delta) else Fraction(0))
        object.__setattr__(self, "name", short_text("name", name))

    def refused(self) -> NotSupported:
        """The error of whoever is asked to add it up."""
        return NotSupported(
            f"{self!r} is one-shot: Pufferfish costs do not add up with any other, so no accountant, "
            "composition or ledger takes it; for a further release make a model that covers all of them"
        )

    @property
    def pure_epsilon(self) -> Fraction | None:
        """Always refused: a cost that can be read off as a number would be added."""
        raise self.refused()

    @property
    def rho(self) -> Fraction:
        """Always refused: there is no zCDP cost."""
        raise self.refused()
