"""From a plan to the questions that a session answers, each with its part of the budget."""

from sfumato.errors import InvalidParameter
from sfumato.plan.allocation import allocate
from sfumato.plan.model import Plan
from sfumato.plan.queries import ask
from sfumato.question import Question


def questions(plan: Plan, rows: int | None = None) -> tuple[Question, ...]:
    """The questions of a plan, each with its part of the budget.

    Guarantee:
        The parts add up to at most the budget, exactly; in a plan with a delta, all questions composed as one
        batch cost at most the budget at its delta. Both follow from public facts; nothing is read or spent.

    Args:
        plan: as `read` gives it.
        rows: the public number of rows, if it is public: rows are people, and the relation is substitution.

    Raises:
        PlanError: the plan asks for what cannot be answered, or for more than its budget pays for.
        InvalidParameter: `rows` is given where the number of rows is private.

    >>> from sfumato.plan import parse
    >>> plan = parse('''
    ... version = 1
    ... title = "Ages"
    ... data = { path = "people.csv", name = "people", unit = "row", neighbours = "add-remove" }
    ... budget.epsilon = 0.5
    ... columns.age = { type = "integer", bounds = [0, 120] }
    ... queries = [{ statistic = "mean", column = "age", share = 0.2 }, { statistic = "count" }]
    ... ''')
    >>> [question.query.budget for question in questions(plan)]
    [PureDP(epsilon=0.1), PureDP(epsilon=0.4)]
    """
    if rows is not None and not plan.size_is_public:
        # A true number of rows would decide how much budget a wanted accuracy takes, and so be told.
        raise InvalidParameter("rows must be left out: the number of rows is private here, got rows")
    if rows is not None and plan.data.rows is not None and rows != plan.data.rows:
        words = f"must be the number of rows, which is public here: {rows:,}, got {plan.data.rows:,}"
        raise plan.error(("data", "rows"), words)
    budgets = allocate(plan, rows).budgets
    return tuple(ask(plan, index, budget) for index, budget in enumerate(budgets))
