"""How the budget of a plan is divided over its queries: wanted accuracies first, then shares, exactly.

In a plan with a delta the queries are paid for as one batch, which costs less than its parts. What is gained
so is given to the queries with a share: their epsilons grow by one common factor.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.accuracy.inverse import epsilon_for
from sfumato.checks import compact, decimal, readable
from sfumato.errors import InvalidParameter, NotSupported, SfumatoError
from sfumato.plan.binding import assumed_rows, bound, charged
from sfumato.plan.model import Plan
from sfumato.plan.problems import PlanError
from sfumato.privacy import ZCDP, ApproxDP, Budget, Event, FreeEvent, PureDP, compose

# The factor is a number of hundredths. Each evaluation composes the whole batch.
HUNDREDTH = Fraction(1, 100)
MOST_EVALUATIONS, LEAST_EVALUATIONS = 12, 4
# The search ends within a hundredth of the best factor.
CLOSE = 100
# So many queries are made ready in all: a plan of hundreds gets a coarser factor, not a long wait.
MOST_BOUND = 4000
LARGEST = 100_000


@dataclass(frozen=True)
class Allocation:
    """What each query of a plan may cost.

    Args:
        budgets: for each query, in order; the whole budget, of which nothing is spent, where it is free.
        factor: by which the epsilons of shares grew, because all are paid for as one batch.
    """

    budgets: tuple[Budget, ...]
    factor: Fraction


def allocate(plan: Plan, rows: int | None = None, budget: Budget | None = None) -> Allocation:
    """The budget of a plan over its queries; PlanError if it does not suffice.

    Args:
        rows: the public number of rows, or a public guess of it.
        budget: another one in place of that of the plan.
    """
    whole = plan.budget.value if budget is None else budget
    size = plan.data.rows if rows is None else rows
    # A check, a preview and a release ask for the same; threads that come together find equal ones.
    kept = plan._allocated
    if (size, whole) not in kept:
        kept[size, whole] = _allocate(plan, whole, size)
    found: Allocation = kept[size, whole]
    return found


def _allocate(plan: Plan, whole: Budget, rows: int | None) -> Allocation:
    count = len(plan.queries)
    trial = whole.share(Fraction(1, count))
    free = tuple(isinstance(charged(plan, i, trial, rows).event, FreeEvent) for i in range(count))
    paying = [i for i in range(count) if not free[i]]
    _refuse_shares_of_nothing(plan, free)
    if not paying:
        return Allocation((whole,) * count, Fraction(1))
    sizes, deltas = _divided(plan, whole, paying, rows)
    factor = Fraction(1)
    growing = [i for i in paying if plan.queries[i].accuracy is None]
    if isinstance(whole, ApproxDP) and growing and len(paying) > 1:
        factor = _Growth(plan, whole, sizes, deltas, growing, rows).factor()
    budgets = [
        whole if free[i] else _budget(whole, sizes[i] * (factor if i in growing else 1), deltas[i])
        for i in range(count)
    ]
    return Allocation(tuple(budgets), factor)


def _budget(kind: Budget, size: Fraction, delta: Fraction) -> Budget:
    if isinstance(kind, ZCDP):
        return ZCDP(size)
    return ApproxDP(size, delta) if isinstance(kind, ApproxDP) else PureDP(size)


def _size(budget: Budget) -> tuple[str, Fraction]:
    return ("rho", budget.rho) if isinstance(budget, ZCDP) else ("epsilon", budget.epsilon)


def _refuse_shares_of_nothing(plan: Plan, free: Sequence[bool]) -> None:
    problems = []
    for i, query in enumerate(plan.queries):
        for key in ("share", "accuracy"):
            if free[i] and getattr(query, key) is not None:
                words = "must be left out: the number of all rows is public here, and its count costs nothing"
                problems.append(plan.problem(("queries", i, key), words))
    if problems:
        raise PlanError(problems)


def _divided(
    plan: Plan, whole: Budget, paying: Sequence[int], rows: int | None
) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    """The epsilon or rho of each query, and its delta: both add up to at most those of the whole."""
    name, size = _size(whole)
    delta = whole.delta if isinstance(whole, ApproxDP) else Fraction(0)
    shares = {i: Fraction(plan.queries[i].share or 0) for i in paying if plan.queries[i].share is not None}
    asked = sum(shares.values(), Fraction(0))
    if asked > 1:
        words = f"shares must add up to at most 1, the whole budget, got {compact(asked)}"
        raise plan.error(("queries", max(shares), "share"), words)
    others = [i for i in paying if i not in shares]
    if others and asked == 1:
        words = "has no share, but the shares of the other queries add up to the whole budget"
        raise plan.error(("queries", others[0]), words)
    # Queries without a share divide the delta that the shares leave, whatever their epsilon.
    deltas = {i: delta * (shares[i] if i in shares else (1 - asked) / len(others)) for i in paying}
    sizes: dict[int, Fraction] = {}
    left = size
    wanted = [i for i in others if plan.queries[i].accuracy is not None]
    for i in wanted:
        sizes[i] = _needed(plan, i, _budget(whole, left, deltas[i]), rows) if left > 0 else left
        if sizes[i] > left or left <= 0:
            rest = _budget(whole, left, deltas[i]) if left > 0 else None
            raise _out_of_reach(plan, i, whole, rest, sizes[i], rows)
        left -= sizes[i]
    sizes |= {i: share * size for i, share in shares.items()}
    left -= asked * size
    equal = [i for i in others if i not in wanted]
    if left < 0 or (equal and left == 0):
        place = ("queries", equal[0]) if left == 0 else ("queries", max(shares), "share")
        words = (
            f"wanted accuracies take {name} {decimal(size - left - asked * size)} of {decimal(size)}, "
            f"so that nothing is left for this query"
            if left == 0
            else f"shares take {compact(asked)} of the budget, but wanted accuracies leave "
            f"{name} {decimal(left + asked * size)} of {decimal(size)}"
        )
        raise plan.error(place, words)
    sizes |= {i: left / len(equal) for i in equal}
    return sizes, deltas


def _needed(plan: Plan, index: int, budget: Budget, rows: int | None) -> Fraction:
    """The epsilon or rho at which a query is as accurate as wanted."""
    wanted = plan.queries[index].accuracy
    n, _ = assumed_rows(plan, index, rows)
    query: Any = bound(plan, index, budget, rows)
    place = ("queries", index, "accuracy")
    try:
        found = epsilon_for(
            query,
            error=wanted.error if wanted else None,
            rank_error=wanted.rank_error if wanted else None,
            confidence=float(wanted.confidence) if wanted else 0.95,
            n=n,
        )
    except (InvalidParameter, NotSupported) as error:
        if n is None and "n must be given" in str(error):
            words = "needs the number of rows: give rows in [data], or n_hint here, as a public guess"
            raise plan.error(place, words) from None
        raise plan.error(place, str(error)) from None
    return _size(found.budget)[1]


def _out_of_reach(
    plan: Plan, index: int, budget: Budget, left: Budget | None, needed: Fraction, rows: int | None
) -> PlanError:
    name, whole = _size(budget)
    place = ("queries", index, "accuracy")
    if left is None:
        return plan.error(place, f"nothing of the budget is left for this query: {name} {decimal(whole)}")
    size = _size(left)[1]
    words = f"needs {name} {decimal(needed)}, but {decimal(size)} of {decimal(whole)} is left for it"
    return plan.error(place, words + _within_reach(plan, index, left, rows))


def _within_reach(plan: Plan, index: int, left: Budget, rows: int | None) -> str:
    wanted = plan.queries[index].accuracy
    n, _ = assumed_rows(plan, index, rows)
    confidence = float(wanted.confidence) if wanted else 0.95
    query: Any = bound(plan, index, left, rows)
    try:
        reached = query.accuracy(n, confidence=confidence)
    except SfumatoError:
        return ""
    ranks = wanted is not None and wanted.rank_error is not None
    figure = reached.rank_error if ranks else reached.error
    if figure is None:
        return ""
    return f", with which {'rank_error' if ranks else 'error'} = {readable(figure)} can be reached"


class _Growth:
    """The search for the factor by which shares may grow when all queries are paid for as one batch.

    Factors are tried along the line through known costs, until the largest that fits is within a hundredth of
    one that does not. The batch at the factor that is returned was composed, and its cost compared with what
    was given out.
    """

    def __init__(
        self,
        plan: Plan,
        whole: ApproxDP,
        sizes: dict[int, Fraction],
        deltas: dict[int, Fraction],
        growing: Sequence[int],
        rows: int | None,
    ) -> None:
        self._plan, self._whole, self._rows = plan, whole, rows
        self._sizes, self._deltas, self._growing = sizes, deltas, set(growing)
        self._target = sum(sizes.values(), Fraction(0))
        self._left = max(min(MOST_BOUND // len(growing), MOST_EVALUATIONS), LEAST_EVALUATIONS)
        self._fixed = [self._event(i, Fraction(1)) for i in sizes if i not in self._growing]

    def _event(self, index: int, factor: Fraction) -> Event:
        budget = ApproxDP(self._sizes[index] * factor, self._deltas[index])
        return charged(self._plan, index, budget, self._rows).event

    def _cost(self, hundredths: int) -> Fraction | None:
        """The epsilon of the batch at a factor; None where the factor is out of some range."""
        self._left -= 1
        try:
            events = [self._event(i, hundredths * HUNDREDTH) for i in sorted(self._growing)]
            return compose([*self._fixed, *events], delta=self._whole.delta).epsilon
        except SfumatoError:
            return None

    def factor(self) -> Fraction:
        """The largest factor found at which the batch fits; 1 if there is none."""
        low, low_cost = 100, self._cost(100)
        if low_cost is None or low_cost > self._target:
            return Fraction(1)
        high, high_cost = LARGEST, None
        while self._left > 0 and high - low > max(low // CLOSE, 1):
            # A cost grows about in proportion to the factor: along the line through what is known.
            if high_cost is None:
                guess = int(low * self._target / low_cost)
            else:
                guess = low + int((high - low) * (self._target - low_cost) / (high_cost - low_cost))
            guess = min(max(guess, low + 1), high - 1)
            cost = self._cost(guess)
            if cost is not None and cost <= self._target:
                low, low_cost = guess, cost
            else:
                high, high_cost = guess, cost
        return low * HUNDREDTH
