"""What every statistic of one column has in common."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar, Self

from sfumato.accuracy.scenario import Scenario
from sfumato.accuracy.statement import Accuracy
from sfumato.checks import Number, keep, one_of, pair, shown, whole
from sfumato.data.column import Column
from sfumato.data.counts import MAX_ROWS, NULL_RULES, NullRule
from sfumato.data.dataset import Field
from sfumato.errors import InvalidParameter, MissingBounds
from sfumato.grid import exact_bounds
from sfumato.mechanisms import Additive, GaussianMechanism, Noise
from sfumato.mechanisms.additive import NOISES
from sfumato.privacy import (
    ZCDP,
    Amount,
    ApproxDP,
    Budget,
    Event,
    FreeEvent,
    Neighbours,
    PureDP,
    check_neighbours,
)
from sfumato.query import Cost, Outcome

# Weaker than this and noise leaves 64-bit integers, stronger and it is no privacy: both are mistakes.
WEAKEST, STRONGEST = Fraction(1, 10**12), Fraction(10**6)


@dataclass(frozen=True, kw_only=True)
class Statistic(ABC):
    """The public parameters of any statistic of one column.

    Args:
        budget: what the release may cost.
        column: the name of the column.
        neighbours: what one person can change: "substitution" or "add-remove"; a session fills it in.
        nulls: "drop" (the default) leaves nulls out, so that the number of values is private; "lower" and
            "upper" count them as that bound, which keeps the number of rows public under substitution.
        noise: "laplace", "gaussian", or "auto" for the one with the smaller variance.
        rows: the public number of rows under substitution; a session fills it in.
    """

    name: ClassVar[str]
    # Whether the accuracy depends on the number of values, which may be private.
    sized: ClassVar[bool] = False

    budget: Budget
    column: str = "values"
    neighbours: Neighbours | None = None
    nulls: NullRule | None = None
    noise: Noise = "auto"
    rows: int | None = None

    def __post_init__(self) -> None:
        check_budget(self.budget)
        if self.neighbours is not None:
            check_neighbours(self.neighbours)
        if self.nulls is not None:
            one_of("nulls", self.nulls, NULL_RULES)
        one_of("noise", self.noise, NOISES)
        if self.rows is not None:
            keep(self, rows=whole("rows", self.rows, least=0, most=MAX_ROWS))

    @property
    def substitution(self) -> bool:
        """Whether neighbours differ in one replaced record, and not in one more or one less."""
        if self.neighbours is None:
            raise InvalidParameter(
                "neighbours must be 'substitution' or 'add-remove', or come from a session's data set"
            )
        return self.neighbours == "substitution"

    @property
    def null_rule(self) -> NullRule:
        """What becomes of nulls."""
        return self.nulls or "drop"

    @property
    @abstractmethod
    def mechanism(self) -> Additive | FreeEvent:
        """The noise on the integers that are released, or why none is needed."""

    @property
    def size_is_public(self) -> bool:
        """Whether the number of values that count is a public fact."""
        return self.substitution and self.null_rule != "drop"

    @property
    def public_rows(self) -> int:
        """The public number of rows, or a refusal if no data set has filled it in."""
        if self.rows is None:
            raise InvalidParameter("rows must be given, or come from a session's data set, got rows=None")
        return self.rows

    @property
    def public_size(self) -> int:
        """The public number of values, at least 1, or a refusal."""
        if not self.rows:
            raise InvalidParameter(
                f"rows must be at least 1 to divide by a public number of rows, got {self.rows}"
            )
        return self.rows

    def refuse_no_rows(self) -> None:
        """Refuse to divide by a public number of rows that is zero; a private one is never looked at."""
        if self.size_is_public and self.rows is not None:
            _ = self.public_size

    def bind(self, column: Column, field: Field, neighbours: Neighbours) -> Self:
        """The query with the public facts of a data set filled in; what it says itself comes first."""
        if self.neighbours not in (None, neighbours):
            raise InvalidParameter(
                f"neighbours must be that of the data set, {neighbours!r}, got neighbours={self.neighbours!r}"
            )
        # A column whose type has no room for nulls keeps its number of rows public without a rule.
        nulls = self.nulls or field.nulls or ("drop" if column.nullable else "lower")
        rows = column.rows if neighbours == "substitution" else None
        return replace(self, neighbours=neighbours, nulls=nulls, rows=rows, **self.declared(field))

    def declared(self, field: Field) -> dict[str, Any]:
        """What this statistic takes from the schema."""
        return {}

    def check(self, column: Column) -> None:
        """Refuse a column that does not store numbers."""
        column.require("integer", "real", hint="; use proportion or histogram" * (column.kind != "text"))

    @property
    def event(self) -> Event:
        """What a release costs, for an accountant."""
        return self.mechanism if isinstance(self.mechanism, FreeEvent) else self.mechanism.event

    @property
    def cost(self) -> Cost:
        """What a release costs: the whole budget, without its delta if Laplace noise was chosen."""
        if isinstance(self.mechanism, FreeEvent):
            return Amount()
        if isinstance(self.budget, ZCDP) or isinstance(self.mechanism, GaussianMechanism):
            return self.budget
        return PureDP(self.budget.epsilon)

    def possible(self, outcome: Outcome) -> bool:
        """Whether the outcome has the right number of integers, none beyond what noise on sums can reach."""
        return len(outcome) == self.parts_drawn and all(abs(part) < 2**150 for part in outcome)

    @property
    def parts_drawn(self) -> int:
        """How many integers the law draws: one, unless a statistic says otherwise."""
        return 1

    def accuracy_words(self, error: float) -> str:
        """The accuracy in words, for a preview."""
        return f"within ±{error:g}"

    def accuracy(
        self, n: int | None = None, *, confidence: Number = 0.95, scenario: Scenario | None = None
    ) -> Accuracy:
        """How far the answer would be from the data's, before anything is read or paid.

        Args:
            n: the number of values; a guess where it is private. The public number of rows unless given.
            confidence: of each number by itself.
            scenario: what is publicly assumed about the data, where the error depends on them.

        Raises:
            InvalidParameter: `n` is needed and not known, or a parameter is out of range.
            NotSupported: the answer is no number.
        """
        from sfumato.statistics.foresight import foresee

        return foresee(self, n, confidence, scenario)

    def labels(self) -> tuple[str, ...]:
        """The names of the numbers released."""
        return (self.name,)

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """What a reader should know: how nulls were treated, if that costs accuracy."""
        if self.substitution and not self.size_is_public and self.sized:
            return (
                "nulls are left out, so the number of values is private; "
                "nulls='lower' or 'upper' makes it public and narrows the interval",
            )
        return ()


def check_budget(budget: object) -> None:
    """Refuse what is no budget, and one that is far too small or too large."""
    if not isinstance(budget, PureDP | ApproxDP | ZCDP):
        raise InvalidParameter(f"budget must be PureDP, ApproxDP or ZCDP, got budget={shown(budget)}")
    name, size = strength(budget)
    if not WEAKEST <= size <= STRONGEST:
        limits = f"[{float(WEAKEST)}, {float(STRONGEST)}]"
        raise InvalidParameter(f"{name} must be in {limits} for a statistic, got {budget!r}")


def strength(budget: Budget) -> tuple[str, Fraction]:
    """The parameter that says how strong the noise is, on the scale of epsilon."""
    if isinstance(budget, ZCDP):
        return "sqrt(2 rho)", Fraction(sqrt(2 * budget.rho))
    return "epsilon", budget.epsilon


def checked_bounds(bounds: object) -> tuple[Fraction, Fraction]:
    """The two public bounds as exact numbers."""
    if bounds is None:
        raise MissingBounds(
            "bounds must be given, as bounds=(lower, upper) from public knowledge, such as (0, 250_000) for "
            "yearly salaries; reading them from the data would reveal its extremes"
        )
    return exact_bounds(*pair("bounds", bounds))


def resolution(budget: Budget, *, bits: int, range_bits: int) -> int:
    """How many lattice steps a sum gets: fine beside the noise, and small enough for 64-bit noise.

    2**bits steps at epsilon 1 and above; fewer at smaller epsilon, where the noise is coarser anyway, but
    never fewer than 2**(bits - range_bits).
    """
    _, size = strength(budget)
    return max(int(2**bits * min(size, Fraction(1))), 1 << (bits - range_bits))


def dominated(width: float, range_: float) -> tuple[str, ...]:
    """A note when the 95 % interval covers half of all possible answers."""
    if width < range_ / 2:
        return ()
    return ("the answer is dominated by noise: its 95 % interval covers half of the possible values or more",)
