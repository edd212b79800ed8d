"""Quantiles of a bounded column."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np

from sfumato.accuracy.scenario import Scenario
from sfumato.accuracy.statement import Accuracy
from sfumato.checks import Number, boolean, checked_confidence, compact, exact, keep, positive, shown, whole
from sfumato.data.column import Column
from sfumato.data.counts import MAX_ROWS
from sfumato.data.field import Field
from sfumato.data.part import WHOLE, Part
from sfumato.errors import InvalidParameter, MissingBounds, NotSupported
from sfumato.grid import MAX_CELLS, MAX_RATIO, Floats
from sfumato.laws import Law
from sfumato.laws.grades import MAX_PARTS
from sfumato.privacy import ApproxDP, Budget, Event, Neighbours, PureDP, for_changes, per_change
from sfumato.quantile_methods.auto import best_by_name, choose, most_of_leaves
from sfumato.quantile_methods.counted import SHARE, Counted
from sfumato.quantile_methods.foreseen_width import part_words
from sfumato.quantile_methods.framed import checked_share
from sfumato.quantile_methods.method import (
    FINEST,
    MAX_ORDERS,
    Facts,
    Method,
    Orders,
    Points,
    Several,
    enclosed,
    sampling_ranks,
)
from sfumato.quantile_methods.methods import read_method
from sfumato.quantile_methods.resolved import (
    MOST_SAID,
    Resolved,
    longest_method,
    may_become,
    read_resolved,
    with_longest,
)
from sfumato.quantile_methods.spacing import (
    calibrate,
    ends,
    interval_words,
    scenario_widths,
    slope_widths,
    spaced,
    unverified,
    widths,
)
from sfumato.quantile_methods.tree import Tree
from sfumato.quantile_methods.verified import (
    Verified,
    checked_verify,
    most_counted,
    outer_share,
    verified_rest,
    verify_share,
)
from sfumato.query import Answer, Cost, Interval, Outcome
from sfumato.release import ANY_DATA, SLOPES
from sfumato.statistics.statistic import checked_bounds, strength
from sfumato.statistics.sum import Bounded

# More orders are not verified by "auto", and more than the second number by no share: each walks past the
# thresholds of all, so that the time grows with the square of their number.
MOST_VERIFIED, MOST_ASKED = 128, 256
# What is said of a part that verifies, where a count decides whether it is spent.
_FEW, _TOLD = "values are few", "a tree tells them"


@dataclass(frozen=True, kw_only=True)
class Quantiles(Bounded):
    r"""Quantiles of a column: for each order a public point within a few ranks of the data's own.

    Guarantee:
        Exactly the cost stated, under both relations, with ties, nulls and empty columns.
        Proof: docs/proofs/quantiles.md.

    Args:
        probs: orders inside (0, 1), in any order, repeated or not; fractions with denominators up to 100,000.
        method: a method such as `Recursive()`, its name, or "auto" for the best by public facts.
        step: the distance of the points that can be answered; unless given, that of the schema, else 1 for
            integer columns, and for real ones a round number, with as many points as the budget can search,
            from about 2**18 to 2**32.
        n_hint: a public guess of the number of rows where it is private; without one, methods that need the
            number spend a twentieth of the budget on it.
        scalar: whether the one order asked for is answered as a number and not as an array.
        interval_share: the part of the budget that is spent on two outer orders, which make the interval
            narrow; 0 for none, "auto" for the part that serves most data best.
        verify: the part of the budget that counts the values around the answers, so that the interval holds
            on any data; 0 for none, "auto" for half, or two fifths for one order under a pure budget; none
            where the method or an `interval_share` tells the interval, for more than 128 orders, and where
            so few values meet the budget that counts tell nothing.
        on_points: whether the values are points of the grid, as integers are; a session finds out.
        resolved: what all of this came to where a choice was left, "auto" and the grid; a release fills it
            in, so that later versions read it as it was drawn.

    >>> from sfumato.privacy import PureDP
    >>> query = Quantiles(probs=(0.5,), budget=PureDP(1), bounds=(0, 1), neighbours="add-remove", verify=0)
    >>> query.cost, query.rank_error(0.95)
    (PureDP(epsilon=1.0), 25)
    """

    name: ClassVar[str] = "quantiles"
    answers_values: ClassVar[bool] = True

    probs: Sequence[Number] = ()
    method: Any = "auto"
    step: Number | None = None
    n_hint: int | None = None
    scalar: bool = False
    interval_share: Number | Literal["auto"] = 0
    verify: Number | Literal["auto"] = "auto"
    on_points: bool = False
    resolved: Resolved | None = None
    takes_scenario: ClassVar[tuple[str, ...]] = ("interval", "population_interval")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "probs", _orders(self.probs))
        object.__setattr__(self, "method", read_method(self.method))
        if self.noise != "auto":
            raise InvalidParameter(f"noise must be left out for quantiles, got noise={self.noise!r}")
        if self.step is not None:
            object.__setattr__(self, "step", positive("step", self.step))
        if self.n_hint is not None:
            keep(self, n_hint=whole("n_hint", self.n_hint, least=1, most=MAX_ROWS))
        if boolean("scalar", self.scalar) and len(self.probs) != 1:
            raise InvalidParameter(f"scalar goes with one order, got scalar={shown(self.scalar)}")
        keep(self, interval_share=checked_share(self.interval_share, self.method))
        keep(self, verify=checked_verify(self.verify, self.method))
        if self.verify not in (0, "auto") and len(set(self.probs)) > MOST_ASKED:
            raise InvalidParameter(
                f"verify must be 0 or 'auto' for more than {MOST_ASKED} orders; got {shown(self.verify)}"
            )
        if self.verify not in (0, "auto") and self.interval_share:
            raise InvalidParameter(
                f"verify must be 0 or 'auto' with an interval_share, got {shown(self.verify)}"
            )
        boolean("on_points", self.on_points)
        keep(self, resolved=read_resolved(self.resolved))
        if self.resolved is not None and not self._fits(self.resolved):
            raise InvalidParameter(f"resolved must fit what was asked, got {shown(self.resolved)}")

    def _fits(self, done: Resolved) -> bool:
        """Whether this query may have come to these choices."""
        one = len(self.orders) == 1 and not hasattr(done.method, "interval")
        framed = bool(self._share) or (bool(done.verify) and one)
        on_default = self.step is None and self.bounds is not None
        return (
            may_become(self.method, done.method)
            and done.frame != "auto"
            and (not done.verify or self._verifies)
            and self._verify in ("auto", done.verify if self._verifies else self._verify)
            and bool(done.frame) == framed == (done.outer is not None)
            and (not self._share or self._share in ("auto", checked_share(done.frame, done.method)))
            and all(
                (points.cells is not None) == on_default for points in (done.points, done.outer) if points
            )
        )

    def bind(self, column: Column, field: Field, neighbours: Neighbours, part: Part = WHOLE) -> Self:
        """The query with the public facts of a data set filled in; integers and days are their own grid."""
        bound = super().bind(column, field, neighbours, part)
        if bound.step is None and field.step is not None and bound.bounds is not None:
            bound = replace(bound, step=field.step)
        whole_numbers = column.kind == "integer" or (column.kind == "unknown" and bound.reads == "date")
        if whole_numbers and bound.step is None and bound.bounds is not None:
            whole_ends = bound.lower.denominator == bound.upper.denominator == 1
            far = max(abs(bound.lower), abs(bound.upper))
            if whole_ends and bound.upper - bound.lower < MAX_CELLS and far <= MAX_RATIO:
                bound = replace(bound, step=Fraction(1))
        # Another column may have been asked before, whose values were points.
        gridded = whole_numbers and bound.bounds is not None and bound.step is not None
        return replace(bound, on_points=gridded and bound.lower.denominator == bound.step == 1)

    def declared(self, field: Field) -> dict[str, Any]:
        """The bounds, unless the query has its own or its method needs none; nothing is resolved yet."""
        if self.method != "auto" and not self.method.needs_bounds:
            return {"bounds": None, "resolved": None}
        given = field.bounds if self.bounds is None else self.bounds
        if given is None:
            raise MissingBounds(
                "bounds must be given, as bounds=(lower, upper) from public knowledge; if there is none, "
                "sf.find_bounds finds some at a cost of its own, and method='unbounded' needs none"
            )
        # What a release came to says nothing of other data.
        return {"bounds": checked_bounds(given), "resolved": None}

    def check(self, column: Column) -> None:
        """Refuse a column that does not store numbers, and facts that the method cannot serve."""
        super().check(column)
        facts = self.facts if self._counted is None else self._counted.settled(MAX_ROWS)
        self._pick(facts)[0].check(facts)

    @cached_property
    def orders(self) -> Orders:
        """The distinct orders, increasing."""
        return tuple(sorted(set(self.asked)))

    @cached_property
    def asked(self) -> Orders:
        """The orders as they were asked for, with repetitions, each as the fraction that is used."""
        return tuple(_short(Fraction(q), self._finest) for q in self.probs)

    @property
    def _share(self) -> Fraction | Literal["auto"]:
        return cast(Fraction | Literal["auto"], self.interval_share)

    @property
    def _verify(self) -> Fraction | Literal["auto"]:
        return cast(Fraction | Literal["auto"], self.verify)

    @property
    def _verifies(self) -> bool:
        """Whether a part of the budget may verify the answers: the method must not tell its own interval."""
        told = self.method != "auto" and (hasattr(self.method, "interval") or not self.method.needs_bounds)
        many = self._verify == "auto" and len(self.orders) > MOST_VERIFIED
        return bool(self._verify) and not told and not self._share and not many

    @property
    def _finest(self) -> int:
        # Tables of weights have about parts / epsilon entries: tiny budgets get shorter fractions.
        size = strength(self.budget)[1] / self.changed_rows
        wanted = int(2**28 * size) // len(self.probs).bit_length()
        return min(max(wanted, 100), MAX_PARTS)

    @cached_property
    def row_budget(self) -> Budget:
        """What one of the rows that a person can change may cost."""
        if self.changed_rows == 1 or not isinstance(self.budget, ApproxDP):
            return per_change(self.budget, self.changed_rows)
        # Epsilons and roots of rhos are divided alike: what serves better for one row does for several.
        whole = self._facts_under(self.budget)
        if self.resolved is not None:
            pure = self.resolved.pure
        elif self._counts_first:
            pure = isinstance(Counted.under(whole).facts.budget, PureDP)
        else:
            pure = self._pick(whole)[0].terms(whole).pure
        return per_change(self.budget, self.changed_rows, pure=pure)

    @cached_property
    def facts(self) -> Facts:
        """What the method may know."""
        each = self._facts_under(self.row_budget)
        if self.changed_rows == 1 or self._counts_first or not isinstance(self._pick(each)[0], Tree):
            return each
        several = Several(self.budget, self.changed_rows, both_ways=self.neighbours == "substitution")
        return replace(each, several=several)

    def _facts_under(self, budget: Budget) -> Facts:
        bounds = None if self.bounds is None else (self.lower, self.upper)
        return Facts(
            orders=self.orders,
            finest=self._finest,
            budget=budget,
            bounds=bounds,
            step=None if self.step is None else Fraction(self.step),
            replaces=self.substitution,
            size=self._known_size,
            size_is_public=self.size_is_public,
            nulls=self.null_rule,
            on_points=self.on_points,
            points=None if self.resolved is None else self.resolved.points,
        )

    @property
    def _known_size(self) -> int | None:
        return self.n_hint if self.n_hint is not None and not self.size_is_public else self.rows

    @property
    def _counts_first(self) -> bool:
        """Whether a method needs the number of values, and nothing is known of it."""
        if self.resolved is not None:
            return bool(self.resolved.count)
        needed = len(self.orders) > 1 if self.method == "auto" else self.method.needs_size
        return self._known_size is None and (needed or bool(self._share) or self._verifies)

    @cached_property
    def _counted(self) -> Counted | None:
        """How the number of values is found first, where that is done."""
        if not self._counts_first:
            return None
        return Counted.under(self.facts, SHARE if self.resolved is None else self.resolved.count)

    def _settled(self, outcome: Outcome) -> tuple[Method, Facts, Outcome]:
        """The method, its facts and its own part of the outcome."""
        if self._counted is None:
            return self.chosen, self.facts, outcome
        facts = self._counted.settled(outcome[0])
        return self._pick(facts)[0], facts, outcome[1:]

    def resolved_by(self, outcome: Outcome = ()) -> Self:
        """The query with what its choices came to; a count that is drawn first may decide them."""
        if self.resolved is not None or (self._counted is not None and not outcome):
            return self
        facts = self.facts if self._counted is None else self._counted.settled(outcome[0])
        done = replace(
            self._resolve(facts).completed(facts),
            count=Fraction(0) if self._counted is None else SHARE,
            pure=isinstance(self.row_budget, PureDP),
        )
        return replace(self, resolved=done)

    @property
    def longest_resolved(self) -> Resolved:
        """What no choice of this query is longer than, when it is written."""
        finest = Points(bits=FINEST, cells=MAX_CELLS)
        done = self._resolve(self.facts if self._counted is None else self._counted.settled(MAX_ROWS))
        return replace(
            done,
            method=longest_method() if self.method == "auto" else with_longest(self.method),
            said="x" * MOST_SAID,
            points=finest,
            frame=Fraction(29, 100) if done.frame and self._share in ("auto", 0) else done.frame,
            outer=finest,
            count=SHARE,
        )

    def _pick(self, facts: Facts) -> tuple[Method, str]:
        done = self._resolve(facts) if self.resolved is None else self.resolved
        return done.whole, done.said

    def _resolve(self, facts: Facts) -> Resolved:
        """What the choices come to under these facts."""
        method, said = self.method, ""
        verify = verify_share(self._verify, facts) if self._verifies else Fraction(0)
        if method == "auto":
            name, reason = choose(facts, verify=verify, leaves=not self._share)
            method, said = best_by_name(name), f", chosen for {reason}"
        if self._counts_first:
            told = self.method == "auto" and self._may_be_told(facts)
            reasons = [_FEW] * (verify > 0 and self._verify == "auto") + [_TOLD] * told
            said = f", unless {' or '.join(reasons)}" if reasons else ""
        frame = self._share
        if verify and len(self.orders) == 1 and not hasattr(method, "interval"):
            frame = outer_share(verified_rest(facts, verify))
        return Resolved(method=method, said=said, points=facts.made, frame=frame, verify=verify)

    def _may_be_told(self, facts: Facts) -> bool:
        """Whether a tree may be chosen in place of counts that verify."""
        return self._verifies and len(self.orders) > 1 and bool(most_of_leaves(facts))

    @cached_property
    def chosen(self) -> Method:
        """The method that answers, where it is known before the data."""
        return self._pick(self.facts)[0]

    @property
    def mechanism(self) -> Any:
        """What draws the answers: the method, where it is known before the data."""
        return self.chosen

    @cached_property
    def event(self) -> Event:
        """What a release costs, for an accountant: for all rows that a person can change."""
        each = self.chosen.terms(self.facts).event if self._counted is None else self._counted.event
        return each if self.facts.several else for_changes(each, self.changed_rows)

    @cached_property
    def cost(self) -> Cost:
        """What a release costs."""
        if self.facts.several or (self._counted is None and self.changed_rows == 1):
            return self.chosen.terms(self.facts).cost
        rest = self.row_budget if self._counted is None else self._counted.facts.budget
        pure = isinstance(rest, PureDP)
        return PureDP(self.budget.epsilon) if pure else self.budget  # type: ignore[union-attr]

    def look(self, column: Column) -> Any:
        """The data as the method wants them; the column itself where the method is not known yet."""
        return self.chosen.look(column, self.facts) if self._counted is None else column

    def law(self, view: Any) -> Law:
        """The joint law of the raw outcome."""
        if self._counted is None:
            law: Any = self.chosen.law(view, self.facts)
        else:
            law = self._counted.law(view, lambda facts: self._pick(facts)[0])
        return cast(Law, law)

    @property
    def in_two_steps(self) -> bool:
        """Whether its law draws a first part, on which what it reads next depends."""
        return self._counted is not None

    @property
    def parts_drawn(self) -> int:
        """How many integers the law draws, at most, whatever the number of values is."""
        if self._counted is None:
            return self.chosen.most_drawn(self.facts)
        facts = self._counted.settled(MAX_ROWS)
        most = [self._pick(facts)[0].most_drawn(facts)]
        if self.method == "auto" and self._verifies:
            # With two outer orders where there is one.
            most.append(len(self.orders) + 2 + most_counted(len(self.orders)))
        if self.method == "auto" and not self._share:
            most.append(most_of_leaves(facts))
        return 1 + max(most)

    def possible(self, outcome: Outcome) -> bool:
        """Whether the law could have drawn this outcome."""
        if self._counted is not None and not (outcome and abs(outcome[0]) < 2**60):
            return False
        method, facts, own = self._settled(outcome)
        return method.possible(own, facts)

    def value(self, outcome: Outcome) -> Answer:
        """The released quantiles, not decreasing in their orders."""
        found = self._by_order(outcome)
        values = np.array([found[q] for q in self.asked])
        return float(values[0]) if self.scalar else values

    def _by_order(self, outcome: Outcome) -> dict[Fraction, float]:
        method, facts, own = self._settled(outcome)
        values = [float(value) for value in method.answers(own, facts)]
        return dict(zip(self.orders, values, strict=True))

    def cdf(self, outcome: Outcome, points: Sequence[Number]) -> Floats:
        """The share of the data at or below each of some points, where the method knows it."""
        method, facts, own = self._settled(outcome)
        if not hasattr(method, "cdf"):
            raise NotSupported(f"cdf needs method='tree', got method={method.name!r}")
        found: Floats = method.cdf(own, facts, [exact("points", point) for point in points])
        return found

    @property
    def sized(self) -> bool:  # type: ignore[override]
        """Whether the accuracy depends on the private number of values: where the method does."""
        return self._counted is not None

    def rank_error(self, confidence: float, rows: int = 1) -> int:
        """How many ranks an answer is from its target, at most, on any data, all together.

        `rows` is a guess of the number of rows, which counts where the method depends on it.
        """
        facts = self.facts if self._counted is None else self._counted.settled(rows)
        return self._pick(facts)[0].rank_error(facts, checked_confidence(confidence))

    def drawn_rank_error(self, outcome: Outcome, confidence: float) -> int:
        """The same for an outcome that was drawn, which tells a count of the values if there was one."""
        method, facts, _ = self._settled(outcome)
        return method.rank_error(facts, checked_confidence(confidence))

    def accuracy(
        self, n: int | None = None, *, confidence: Number = 0.95, scenario: Scenario | None = None
    ) -> Accuracy:
        """How many ranks the answers would be off on any data; under a scenario also how far in value."""
        from sfumato.quantile_methods.foresight import foresee

        return foresee(self, n, confidence, scenario)

    def prepare(self) -> None:
        """Find ahead of the data what intervals at 95 % take longest for; from public facts alone."""
        if self._counted is None and not self._verifies:
            calibrate(self.chosen, self.facts, 0.95)

    def interval(self, outcome: Outcome, confidence: float, scenario: Any = None) -> Interval:
        """Where each of the data's quantiles lies, with this confidence for each.

        Released quantiles tell how spread the data are between them; with an `interval_share` two outer ones
        tell it beyond them. A tree tells on any data. A `scenario` says how data like these are spread, and
        "any data" asks for what holds on all of them: by counts that verify it, or between released quantiles
        that are surely below and above, or the bounds. "slopes" asks for that by released neighbours, around
        what was drawn, also where the interval was verified. docs/intervals.md.
        """
        return self._around(outcome, checked_confidence(confidence), scenario, population=False)

    def population_interval(self, outcome: Outcome, confidence: float, scenario: Any = None) -> Interval:
        """The same for the population's quantiles, of which the data are independent draws."""
        return self._around(outcome, checked_confidence(confidence), scenario, population=True)

    def _around(self, outcome: Outcome, level: float, scenario: Any, *, population: bool) -> Interval:
        method, facts, own = self._settled(outcome)
        reach = None
        if isinstance(scenario, str) and scenario == SLOPES:
            method, facts, own = unverified(method, facts, own)
            reach = slope_widths(method, facts, own, level, population=population)
        elif scenario is not None and not (isinstance(scenario, str) and scenario == ANY_DATA):
            reach = scenario_widths(self, facts, scenario, level, population=population)
        elif scenario is None and self._by_slopes(method, facts):
            reach = widths(method, facts, own, level, population=population)
        if reach is None:
            failure = (1 - level) / 2 / len(self.orders) if population else None
            return self._between(outcome, 1 - (1 - level) / 2 if population else level, failure)
        values = [float(value) for value in method.answers(own, facts)]
        low, high = ends(values, reach, facts, level, on_points=self.on_points)
        places = [self.orders.index(q) for q in self.asked]
        low, high = low[places], high[places]
        return (float(low[0]), float(high[0])) if self.scalar else (low, high)

    def _by_slopes(self, method: Method, facts: Facts) -> bool:
        """Whether the interval supposes that there are no gaps: not where it was to be verified."""
        return not self._verifies and spaced(method, facts)

    def _between(self, outcome: Outcome, confidence: float, failure: float | None) -> Interval:
        method, facts, own = self._settled(outcome)
        if hasattr(method, "interval"):
            found = dict(zip(self.orders, method.interval(own, facts, confidence, failure), strict=True))
        else:
            size = self._least_size(facts)
            need = method.rank_error(facts, confidence) + 1
            need += 0 if failure is None else math.ceil(sampling_ranks(size, failure))
            found = enclosed(self.orders, method.brackets(own, facts), size, need, method.ends(facts))
        ends = [found[q] for q in self.asked]
        low, high = (np.array([float(end) for end in side]) for side in zip(*ends, strict=True))
        return (float(low[0]), float(high[0])) if self.scalar else (low, high)

    def taken_size(self, outcome: Outcome) -> int | None:
        """The number of values that the method went by: public, guessed or counted; None for none."""
        return self._settled(outcome)[1].size

    def _least_size(self, facts: Facts) -> int:
        """The number of values; where it is private, half of what is known about it, which a note says."""
        return facts.known_size // (1 if self.size_is_public else 2) if facts.size is not None else 0

    def error(self, rows: int, confidence: float) -> float:
        """How many ranks an answer is from its target, at most, with this confidence."""
        return float(self.rank_error(confidence, rows))

    def accuracy_words(self, error: float) -> str:
        """The accuracy in words: ranks, which hold on any data."""
        if error >= MAX_ROWS:
            return "no accuracy holds on all data"
        return f"within {int(error):,} ranks on any data"

    def labels(self) -> tuple[str, ...]:
        """The orders."""
        return tuple(compact(Fraction(q)) for q in self.probs)

    @property
    def described(self) -> str:
        """The mechanism in words, and why it was chosen."""
        if self._counted is not None:
            then = "the method that suits it" if self.method == "auto" else f"the method {self.method.name}"
            return f"{self._counted.words}; then {then}{self._divides}"
        method, why = self._pick(self.facts)
        return f"{method.words(self.facts)}{why}{self._divides}"

    @property
    def _divides(self) -> str:
        return f"; {self.divided}" if self.divided else ""

    @property
    def divided(self) -> str:
        """Which part of the budget verifies the intervals, in words; nothing where none does."""
        if not self._verifies:
            return ""
        if self._counted is None:
            return part_words(self.chosen.share, "the budget") if isinstance(self.chosen, Verified) else ""
        done = self._resolve(self._counted.settled(MAX_ROWS)) if self.resolved is None else self.resolved
        return part_words(done.verify, "the rest") + done.said if done.verify else ""

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """What a reader should know."""
        method, facts, own = self._settled(outcome)
        notes = list(self.changes_notes if self.bounds is None else super().notes(outcome))
        if self._counted is not None:
            notes.append(f"about {facts.size:,} values were counted; the method was {method.words(facts)}")
        error = method.rank_error(facts, 0.95)
        if facts.size is not None and error >= self._least_size(facts):
            notes.append("on some data the answers would be dominated by noise")
        elif error < MAX_ROWS:
            sure = "on any data, at 95 % confidence"
            notes.append(f"answers are within {error:,} ranks of their targets {sure}{method.beyond(facts)}")
        by_slopes = self._by_slopes(method, facts)
        told = hasattr(method, "interval") or by_slopes
        if not self.size_is_public and facts.size is not None and not told:
            half = f"{self._least_size(facts):,}"
            notes.append(f"the number of values is private; the interval holds if there are at least {half}")
        if not self.size_is_public and self._counted is None and by_slopes:
            taken = f"the interval takes it as {facts.size:,}, and is too narrow if it is far less"
            notes.append(f"the number of values is private; {taken}")
        notes.append(interval_words(method, facts, own, verifies=self._verifies))
        return tuple(notes)


def _orders(probs: object) -> Orders:
    listed = probs.tolist() if isinstance(probs, np.ndarray) else probs
    if not isinstance(listed, list | tuple) or not 1 <= len(listed) <= MAX_ORDERS:
        raise InvalidParameter(f"probs must be 1 to {MAX_ORDERS:,} numbers, got probs={shown(probs)}")
    given = [exact("probs", prob) for prob in listed]
    if any(not 0 < q < 1 for q in given):
        raise InvalidParameter(
            f"probs must be inside (0, 1), got probs={shown(probs)}: the extremes of data cannot be "
            "released; use orders such as 0.01 and 0.99"
        )
    orders = tuple(_nearest(q, MAX_PARTS) for q in given)
    if any(not 0 < q < 1 for q in orders):
        raise InvalidParameter(
            f"probs must be at least 1/{MAX_PARTS:,} away from 0 and 1, got probs={shown(probs)}"
        )
    return orders


def _nearest(order: Fraction, finest: int) -> Fraction:
    # A query is checked each time that a public fact is filled in; most orders are short already.
    return order if order.denominator <= finest else order.limit_denominator(finest)


def _short(order: Fraction, finest: int) -> Fraction:
    """An order near this one with a short denominator, still inside (0, 1)."""
    return min(max(_nearest(order, finest), Fraction(1, finest)), 1 - Fraction(1, finest))
