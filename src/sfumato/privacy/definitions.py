"""What is promised: three definitions of privacy as exact budgets, and exact amounts spent of them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar, TypeVar

from sfumato.checks import Number, between, decimal, exact, positive, whole
from sfumato.errors import InvalidParameter
from sfumato.privacy.records import read_fraction, read_tag, write_record

__all__ = ["Amount", "ApproxDP", "Budget", "PureDP", "ZCDP", "budget_from_dict"]

# Sums of budgets with unlike denominators grow; this stays below the digit limit of Python's int().
MAX_AMOUNT_BITS = 8192

Self = TypeVar("Self", bound="_Exact")


class _Exact:
    """Fields that are exact fractions: printed as decimals, added, scaled and compared without rounding."""

    TYPE: ClassVar[str]

    def _numbers(self) -> dict[str, Fraction]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={decimal(value)}" for name, value in self._numbers().items())
        return f"{type(self).__name__}({inside})"

    def __add__(self: Self, other: Self) -> Self:
        # Different kinds have no sum: (epsilon, delta) and rho only compose through a conversion.
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = self._numbers(), other._numbers()
        return type(self)(**{name: mine[name] + theirs[name] for name in mine})

    def share(self: Self, fraction: Number) -> Self:
        """The part of this budget given by a fraction in (0, 1]; every field is multiplied exactly."""
        part = exact("fraction", fraction)
        if not 0 < part <= 1:
            raise InvalidParameter(f"fraction must be in (0, 1], got fraction={decimal(part)}")
        return type(self)(**{name: value * part for name, value in self._numbers().items()})

    def split(self: Self, parts: int) -> tuple[Self, ...]:
        """`parts` equal budgets whose sum is exactly the whole."""
        count = whole("parts", parts, least=1, most=1_000_000)
        return (self.share(Fraction(1, count)),) * count

    def fits(self: Self, cap: Self) -> bool:
        """Whether every field is at most that of a cap of the same kind; compared exactly."""
        if type(cap) is not type(self):
            raise InvalidParameter(f"cap must be of the kind {type(self).__name__}, got cap={cap!r}")
        theirs = cap._numbers()
        return all(value <= theirs[name] for name, value in self._numbers().items())

    def to_dict(self) -> dict[str, object]:
        """A JSON-safe record with exact numbers such as "1/10"; `budget_from_dict` reads it back."""
        return write_record(self.TYPE, self._numbers())


@dataclass(frozen=True, repr=False)
class PureDP(_Exact):
    r"""Pure differential privacy with an exact epsilon.

    Guarantee:
        For neighbours :math:`x, y` and every event :math:`A`,
        :math:`P(M(x) \in A) \le e^{\varepsilon} P(M(y) \in A)`.

    Raises:
        InvalidParameter: epsilon is not a positive finite number.

    References:
        [DR14].

    >>> PureDP(0.1)
    PureDP(epsilon=0.1)
    >>> PureDP(0.1) + PureDP(0.1) + PureDP(0.1) == PureDP(0.3)
    True
    """

    TYPE: ClassVar[str] = "pure"
    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))


@dataclass(frozen=True, repr=False)
class ApproxDP(_Exact):
    r"""Approximate differential privacy with exact epsilon and delta.

    Guarantee:
        For neighbours :math:`x, y` and every event :math:`A`,
        :math:`P(M(x) \in A) \le e^{\varepsilon} P(M(y) \in A) + \delta`.

    Raises:
        InvalidParameter: epsilon is not positive and finite, or delta is not inside (0, 1).

    References:
        [DR14], [Meiser18] for what delta means.

    >>> ApproxDP(epsilon=1, delta=1e-6).split(4)[0]
    ApproxDP(epsilon=0.25, delta=2.5e-07)
    """

    TYPE: ClassVar[str] = "approximate"
    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(self, "delta", between("delta", delta, 0, 1))


@dataclass(frozen=True, repr=False)
class ZCDP(_Exact):
    r"""Zero-concentrated differential privacy with an exact rho.

    Guarantee:
        For neighbours :math:`x, y` and every order :math:`\alpha > 1`, the Rényi divergence
        :math:`D_\alpha(M(x) \| M(y))` is at most :math:`\alpha \rho`.

    Raises:
        InvalidParameter: rho is not a positive finite number.

    References:
        [BS16].

    >>> ZCDP(0.5).share(0.2)
    ZCDP(rho=0.1)
    """

    TYPE: ClassVar[str] = "zcdp"
    rho: Fraction

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", positive("rho", rho))


Budget = PureDP | ApproxDP | ZCDP


@dataclass(frozen=True, repr=False)
class Amount(_Exact):
    """How much of a budget was or may be spent: a budget whose fields may be zero.

    Guarantee:
        Exact sums and comparisons: three times 0.1 is 0.3, and one unit more is more.

    Raises:
        InvalidParameter: a field is negative, not finite, or a fraction of absurd length.

    >>> Amount(epsilon=0.1) + Amount(epsilon=0.2)
    Amount(epsilon=0.3)
    >>> Amount()
    Amount()
    """

    TYPE: ClassVar[str] = "amount"
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        for name, value in self._numbers().items():
            object.__setattr__(self, name, _amount(name, value))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={decimal(value)}" for name, value in self._numbers().items() if value)
        return f"Amount({inside})"

    @property
    def words(self) -> str:
        """The amount for people.

        >>> Amount(epsilon=0.5, delta=1e-6).words, Amount().words
        ('epsilon 0.5, delta 1e-06', 'nothing')
        """
        return (
            ", ".join(f"{name} {decimal(value)}" for name, value in self._numbers().items() if value)
            or "nothing"
        )

    def __sub__(self, other: "Amount") -> "Amount":
        """What is left; InvalidParameter if more is taken than there is."""
        mine, theirs = self._numbers(), other._numbers()
        return Amount(**{name: mine[name] - theirs[name] for name in mine})

    @classmethod
    def of(cls, budget: Budget) -> "Amount":
        """The whole of a budget."""
        return cls(**budget._numbers())


def _amount(name: str, value: object) -> Fraction:
    fraction = value if type(value) is Fraction else exact(name, value)
    if fraction < 0:
        raise InvalidParameter(f"{name} must not be negative, got {name}={decimal(fraction)}")
    if max(fraction.numerator.bit_length(), fraction.denominator.bit_length()) > MAX_AMOUNT_BITS:
        raise InvalidParameter(
            f"{name} must be a fraction of at most {MAX_AMOUNT_BITS} bits: use decimal costs"
        )
    return fraction


_KINDS: dict[str, type[PureDP | ApproxDP | ZCDP | Amount]] = {
    kind.TYPE: kind for kind in (PureDP, ApproxDP, ZCDP, Amount)
}


def budget_from_dict(record: Mapping[str, object]) -> PureDP | ApproxDP | ZCDP | Amount:
    """Reads back what `to_dict` of a budget or an amount wrote, exactly.

    Guarantee:
        The result equals the budget that was written; anything else is refused.

    Raises:
        InvalidParameter: another format, type, set of fields, or a number that is not exact text.

    >>> budget_from_dict(PureDP(0.1).to_dict())
    PureDP(epsilon=0.1)
    """
    tag = read_tag(record, {name: _fields(kind) for name, kind in _KINDS.items()}, "budget")
    kind = _KINDS[tag]
    return kind(**{name: read_fraction(record, name) for name in _fields(kind)})


def _fields(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
