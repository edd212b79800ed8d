"""What every statistic of one column has in common."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar, Self

from sfumato.accuracy.scenario import Scenario
from sfumato.accuracy.statement import Accuracy
from sfumato.checks import Number, checked_text, keep, one_of, pair, shown, whole
from sfumato.data.column import Column
from sfumato.data.counts import MAX_ROWS, NULL_RULES, NullRule
from sfumato.data.field import Field
from sfumato.data.moments import READS, UNITS, Reads, read_numbers, reading
from sfumato.data.part import WHOLE, Part
from sfumato.errors import InvalidParameter, MissingBounds, NotSupported
from sfumato.grid import exact_bounds
from sfumato.mechanisms import Additive, GaussianMechanism, Noise, Sensitivity, additive
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
    per_change,
)
from sfumato.privacy.changes import checked_changes
from sfumato.query import Cost, Outcome

# Weaker than this and noise leaves 64-bit integers, stronger and it is no privacy: both are mistakes.
WEAKEST, STRONGEST = Fraction(1, 10**12), Fraction(10**6)
# No sum of rows with its noise is as large.
LARGEST_PART = 2**150
# A part meets at most so many conditions: far more than a table has columns for them.
MAX_CONDITIONS = 10_000
# The parameters that are numbers as the column holds, and so may be dates.
_MAY_BE_DATES = ("bounds", "edges", "between", "at")


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
        changes: how many rows one person can add or remove, over all groups together; under substitution an
            even number, of which half leave and half join. None for one row, as `neighbours` says. A session
            fills it in.
        among: the public conditions that the rows meet, as (column, words); none for the whole table. How
            many rows meet them is private. A session fills them in.
        reads: what the numbers of the column stand for: "number", "date" (days since 1970-01-01) or
            "datetime" (seconds of UTC since then). Bounds, edges and ranges that are dates say it; a session
            fills it in.
    """

    name: ClassVar[str]
    # Whether the accuracy depends on the number of values, which may be private.
    sized: ClassVar[bool] = False
    # Whether the answer is a value such as the column holds, and so a date if these are.
    answers_values: ClassVar[bool] = False
    # Why this says nothing about dates, if so.
    not_of_dates: ClassVar[str] = ""

    budget: Budget
    column: str = "values"
    neighbours: Neighbours | None = None
    nulls: NullRule | None = None
    noise: Noise = "auto"
    rows: int | None = None
    changes: int | None = None
    among: tuple[tuple[str, str], ...] = ()
    reads: Reads = "number"

    def __post_init__(self) -> None:
        checked_text("column", self.column)
        one_of("reads", self.reads, READS)
        self._read_dates()
        if self.neighbours is not None:
            check_neighbours(self.neighbours)
        if self.changes is not None:
            keep(self, changes=checked_changes(self.changes))
            if self.neighbours == "substitution" and self.changes % 2:
                raise InvalidParameter(
                    "changes must be even under substitution, where as many rows can join as leave, "
                    f"got changes={self.changes}"
                )
        keep(self, among=checked_conditions(self.among))
        check_budget(self.budget, self.changed_rows)
        if self.nulls is not None:
            one_of("nulls", self.nulls, NULL_RULES)
        one_of("noise", self.noise, NOISES)
        if self.rows is not None:
            keep(self, rows=whole("rows", self.rows, least=0, most=MAX_ROWS))
            if self.among or self.changes is not None:
                raise InvalidParameter(
                    f"rows must be left out where the number of rows is private, got rows={self.rows}"
                )

    def _read_dates(self) -> None:
        """Keep the exact numbers of dates in place of these, and that they were dates."""
        for name in _MAY_BE_DATES:
            given = getattr(self, name, None)
            # One number among them makes all numbers, or is refused with the others.
            if given is None or not hasattr(given, "__getitem__") or isinstance(given, str) or not len(given):
                continue
            if reading(given[0]) == "number":
                continue
            reads, numbers = read_numbers(name, given)
            if self.reads not in ("number", reads):
                raise InvalidParameter(f"{name} must be {self.reads}s, as the rest is, got {reads}s")
            keep(self, reads=reads, **{name: numbers})

    @property
    def answer_reads(self) -> Reads:
        """What the numbers of the answer stand for: those of a count are numbers, whatever was counted."""
        return self.reads if self.answers_values else "number"

    @property
    def changed_rows(self) -> int:
        """How many rows the noise has to hide: one, unless one person can change more."""
        return self.changes or 1

    @property
    def substitution(self) -> bool:
        """Whether the noise is for one replaced record, and not for one or several more or less."""
        if self.neighbours is None:
            raise InvalidParameter(
                "neighbours must be 'substitution' or 'add-remove', or come from a session's data set"
            )
        return self.neighbours == "substitution" and self.changes is None

    @property
    def null_rule(self) -> NullRule:
        """What becomes of nulls."""
        return self.nulls or "drop"

    @property
    @abstractmethod
    def mechanism(self) -> Additive | FreeEvent:
        """The noise on the integers that are released, or why none is needed."""

    @property
    def rows_are_public(self) -> bool:
        """Whether the number of rows is a public fact: that of a part never is."""
        return self.substitution and not self.among

    @property
    def size_is_public(self) -> bool:
        """Whether the number of values that count is a public fact."""
        return self.rows_are_public and self.null_rule != "drop"

    @property
    def row_budget(self) -> Budget:
        """What one of the rows that a person can change may cost, if the budget is divided among them."""
        return per_change(self.budget, self.changed_rows)

    def noise_on(self, sensitivity: Sensitivity, *, one_sign: bool = True) -> Additive:
        """The noise on integers that one row moves so far, scaled for all rows that a person can change.

        `one_sign` says that no row adds to an integer what another takes away, as none does in counts.
        """
        return additive(self.budget, self.moved(sensitivity, one_sign=one_sign), self.noise)

    def moved(self, sensitivity: Sensitivity, *, one_sign: bool) -> Sensitivity:
        """How far all rows that a person can change move integers of all groups, if one row moves so far."""
        if self.changes is None:
            return sensitivity
        return sensitivity.of_rows(self.changes, both_ways=one_sign and self.neighbours == "substitution")

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

    def bind(self, column: Column, field: Field, neighbours: Neighbours, part: Part = WHOLE) -> Self:
        """The query with the public facts of a data set filled in; what it says itself comes first.

        `part` is what is asked about, of which `column` tells its type alone.
        """
        if self.neighbours not in (None, neighbours):
            raise InvalidParameter(
                f"neighbours must be that of the data set, {neighbours!r}, got neighbours={self.neighbours!r}"
            )
        if self.changes not in (None, part.changes):
            raise InvalidParameter(
                f"changes must be that of the data set, {part.changes}, got changes={self.changes}"
            )
        reads = self._read_as(column, field)
        # A column whose type has no room for nulls keeps its number of rows public without a rule.
        nulls = self.nulls or field.nulls or ("drop" if column.nullable else "lower")
        known = neighbours == "substitution" and part.whole and part.changes is None
        return replace(
            self,
            neighbours=neighbours,
            nulls=nulls,
            rows=column.rows if known else None,
            changes=part.changes,
            among=part.among,
            reads=reads,
            **self.declared(field),
        )

    def _read_as(self, column: Column, field: Field) -> Reads:
        """What the numbers stand for, by the column's type; a list without a value is as it was declared."""
        reads = column.reads
        if column.kind == "unknown":
            reads = field.reads if self.reads == "number" else self.reads
        if self.reads not in ("number", reads):
            raise InvalidParameter(
                f"bounds, edges and ranges must fit column {column.name!r}, which stores {column.holds}, "
                f"got a {self.reads}"
            )
        if reads != "number" and self.not_of_dates:
            raise NotSupported(f"column {column.name!r} stores {reads}: {self.not_of_dates}")
        return reads

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
        return len(outcome) == self.parts_drawn and all(abs(part) < LARGEST_PART for part in outcome)

    @property
    def parts_drawn(self) -> int:
        """How many integers the law draws, at most: one, unless a statistic says otherwise."""
        return 1

    def accuracy_words(self, error: float) -> str:
        """The accuracy in words, for a preview."""
        return f"within ±{error:g}{UNITS[self.answer_reads]}"

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
        """What a reader should know: what one person can change, and how nulls were treated."""
        if self.rows_are_public and not self.size_is_public and self.sized:
            return (
                "nulls are left out, so the number of values is private; "
                "nulls='lower' or 'upper' makes it public and narrows the interval",
            )
        return self.changes_notes

    @property
    def changes_notes(self) -> tuple[str, ...]:
        """What one person can change, if the noise is scaled for it."""
        if self.changed_rows == 1:
            return ()
        kept = self.changed_rows // 2 if self.neighbours == "substitution" else self.changed_rows
        if kept == 1:
            return ("one person can leave a group and join another; the noise is scaled for it",)
        used = f"at most {kept:,} rows of each person are used, and further ones are left out at random"
        return (f"{used}: the answer is about the rows used, and the noise is scaled for it",)


def checked_conditions(among: object) -> tuple[tuple[str, str], ...]:
    """The conditions of a part: pairs of a column and words."""
    listed = among if isinstance(among, tuple | list) and len(among) <= MAX_CONDITIONS else (None,)
    pairs = tuple(tuple(pair) if isinstance(pair, tuple | list) else () for pair in listed)
    if any(len(pair) != 2 or not all(type(text) is str for text in pair) for pair in pairs):
        raise InvalidParameter(f"among must be pairs of a column and words, got among={shown(among)}")
    return pairs


def check_budget(budget: object, changes: int = 1) -> None:
    """Refuse what is no budget, and one that is far too small or too large, for each row a person changes."""
    if not isinstance(budget, PureDP | ApproxDP | ZCDP):
        raise InvalidParameter(f"budget must be PureDP, ApproxDP or ZCDP, got budget={shown(budget)}")
    name, size = strength(budget)
    if not WEAKEST <= size <= STRONGEST:
        limits = f"[{float(WEAKEST)}, {float(STRONGEST)}]"
        raise InvalidParameter(f"{name} must be in {limits} for a statistic, got {budget!r}")
    if size / changes < WEAKEST:
        least = f"{name} must be at least {float(WEAKEST)} for each row that one person can change"
        raise InvalidParameter(f"{least}, got {budget!r} and changes={changes}")


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


def resolution(budget: Budget, *, bits: int, range_bits: int, changes: int = 1) -> int:
    """How many lattice steps a sum gets: fine beside the noise, and small enough for 64-bit noise.

    2**bits steps at epsilon 1 and above; fewer at smaller epsilon, where the noise is coarser anyway, but
    never fewer than 2**(bits - range_bits). What counts is what each of several changed rows may cost.
    """
    _, size = strength(budget)
    return max(int(2**bits * min(size / changes, Fraction(1))), 1 << (bits - range_bits))


def dominated(width: float, range_: float) -> tuple[str, ...]:
    """A note when the 95 % interval covers half of all possible answers."""
    if width < range_ / 2:
        return ()
    return ("the answer is dominated by noise: its 95 % interval covers half of the possible values or more",)
