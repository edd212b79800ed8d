"""Errors of a query against its budget and against the number of values: what holds, and what is in print."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sfumato.accuracy.budget_search import checked_query, with_budget
from sfumato.accuracy.curve_lines import Line, Setting, is_choice, lines_of
from sfumato.accuracy.inverse import parameter, resized
from sfumato.accuracy.progress import steps
from sfumato.accuracy.scenario import Scenario
from sfumato.checks import Number, checked_confidence, one_of, positive, shown, whole
from sfumato.errors import InvalidParameter, NotSupported

MEASURES = ("auto", "kept", "mean")
MOST_ROWS = 2**40
# Straight lines need few points, and most simulations take a second or two.
_POINTS, _SLOW = 17, 3
_SIMULATED = {"single": 9, "independent": 5, "inverse_sensitivity": 5, "joint": 5}


def curves(
    query: Any,
    *,
    n: int | None = None,
    confidence: Number = 0.95,
    scenario: Scenario | None = None,
    epsilons: Sequence[Number] | None = None,
    sizes: Sequence[int] | None = None,
    measure: str = "auto",
) -> list[dict[str, Any]]:
    """The errors of a query as its budget grows and as the number of values grows, with published bounds.

    Guarantee:
        Follows from public facts and the scenario; nothing is read or spent. Curves named "exact" or
        "simulated" are those of `query.accuracy`; a curve named "published" is a theorem as it is in print,
        which may be false, and one named "corrected" or "bound" is proved.

    Args:
        query: a statistic, quantiles or a choice, with its budget.
        n: the number of values, or of candidates of a choice; what is public of it unless given.
        confidence: with which an error is kept.
        scenario: what is publicly assumed about the data; some curves exist only with one.
        epsilons: the budgets to look at: epsilons, or rhos for a zCDP budget. A hundredfold range otherwise.
        sizes: the numbers of values to look at. A hundredfold range otherwise.
        measure: "kept" for the error that is kept with the confidence, "mean" for the mean absolute error,
            "auto" for the one that the theorems about this query are about.

    Returns:
        Records with `panel` ("epsilon", "rho", "n" or "candidates"), `x`, `curve`, `kind`, `error`, `unit`,
        and `own`, which is true where the budget and the number are the query's.

    Raises:
        InvalidParameter: `n` is needed and not known, or a parameter breaks a rule.

    >>> import sfumato as sf
    >>> facts = {"neighbours": "substitution", "nulls": "lower", "rows": 1000}
    >>> query = sf.Mean(budget=sf.PureDP(1), bounds=(0, 1), **facts)
    >>> [own] = [r for r in curves(query) if r["panel"] == "epsilon" and r["own"] and r["curve"] == "exact"]
    >>> own["x"], round(own["error"], 6), own["unit"]
    (1.0, 0.002996, 'values')
    """
    checked_query("query", query)
    level, kind = checked_confidence(confidence), one_of("measure", measure, MEASURES)
    if scenario is not None and not isinstance(scenario, Scenario):
        raise InvalidParameter(f"scenario must be an accuracy.Scenario, got scenario={shown(scenario)}")
    if kind == "auto":
        kind = "mean" if query.name == "inverse_proportion" else "kept"
    size = _size(query, n)
    own = _resized(Setting(query, None, level, scenario, kind), size)
    lines = lines_of(own)
    settings = list(_settings(own, epsilons, sizes))
    records = []
    for i in steps(len(settings), f"errors of {query.name}"):
        panel, x, setting, simulates = settings[i]
        for line in lines:
            error = _stated(line, setting) if simulates or not line.own else None
            if error is not None:
                mine = setting == own
                place = {"panel": panel, "x": x, "curve": line.name, "kind": line.kind}
                records.append({**place, "error": error, "unit": line.unit, "own": mine})
    return records


def _stated(line: Line, setting: Setting) -> float | None:
    """The error at a setting, or None where the theorem says nothing there."""
    try:
        error = line.error(setting)
    except (InvalidParameter, NotSupported):
        return None
    if error is None or not 0 < error < math.inf:
        return None
    # A bound beyond all that is possible says nothing, and would squeeze the others into a corner.
    return error if line.own or error <= setting.largest(line.unit) else None


def _size(query: Any, n: object) -> int | None:
    if n is not None:
        return whole("n", n, least=1, most=MOST_ROWS)
    if is_choice(query):
        return len(query.options)
    known = query.rows if query.rows is not None else getattr(query, "n_hint", None)
    if not known and (query.sized or query.name in ("quantiles", "histogram", "first_passing")):
        raise InvalidParameter(f"n must be given, a guess of the number of values, got n={n}")
    return known or None


def _settings(own: Setting, epsilons: object, sizes: object) -> Iterator[tuple[str, float, Setting, bool]]:
    """Every place that is looked at, with its panel, and whether a simulation is worth its time there."""
    query, few = own.query, _POINTS // (_count(own) - 1)
    name, size = parameter(query.budget)
    budgets = _spread(size) if epsilons is None else _given("epsilons", epsilons, positive)
    chosen = {*(budgets[::few] if epsilons is None else budgets), size}
    for budget in sorted({*budgets, size}):
        changed = with_budget(query, resized(query.budget)(budget))
        yield name, float(budget), replace(own, query=changed), budget in chosen
    if own.n is None:
        return
    least = 1 if is_choice(query) else 2
    if sizes is None:
        wanted = [max(round(number), least) for number in _spread(Fraction(own.n))]
    else:
        wanted = _given("sizes", sizes, lambda label, item: whole(label, item, least=1, most=MOST_ROWS))
    chosen = {*(wanted[::few] if sizes is None else wanted), own.n}
    for number in sorted({*wanted, own.n}):
        panel = "candidates" if is_choice(query) else "n"
        yield panel, float(number), _resized(own, int(number)), number in chosen


def _resized(own: Setting, n: int | None) -> Setting:
    """The same query for another number of values."""
    query = own.query
    changes: dict[str, Any] = {}
    if not is_choice(query) and n is not None:
        changes |= {"rows": n} if query.rows is not None else {}
        changes |= {"n_hint": n} if getattr(query, "n_hint", None) is not None else {}
    return replace(own, query=replace(query, **changes) if changes else query, n=n)


def _count(own: Setting) -> int:
    """At how many places of a panel the query itself is looked at: few where each takes a simulation."""
    if own.query.name != "quantiles" or own.scenario is None:
        return _POINTS
    return _SLOW if own.query.sized else _SIMULATED.get(own.query.chosen.name, _SLOW)


def _spread(center: Fraction) -> list[Fraction]:
    """Numbers of two digits from a tenth to ten times the center, as far apart as on a logarithmic axis."""
    wanted = [float(center) * 10 ** (2 * i / (_POINTS - 1) - 1) for i in range(_POINTS)]
    return [Fraction(f"{number:.1e}") for number in wanted]


def _given(name: str, values: object, check: Callable[[str, object], Any]) -> list[Any]:
    listed = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(listed, list | tuple | range) or not 1 <= len(listed) <= 1000:
        raise InvalidParameter(f"{name} must be a list of 1 to 1000 numbers, got {name}={shown(values)}")
    return [check(name, item) for item in listed]
