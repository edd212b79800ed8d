"""Every method for quantiles with its options, and audits that are sharp: few records far apart."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.audit.pairs import neighbouring_pairs
from sfumato.audit.shipped import METHOD_OPTIONS, NULLS, RELATIONS  # noqa: F401  reason: for the tests
from sfumato.audit.shipped import QUANTILE_RULES as FEW_RULES
from sfumato.data.admission import admit
from sfumato.privacy import ZCDP, ApproxDP, Budget, PureDP
from sfumato.quantile_methods import METHODS, Quantiles

F = Fraction
BUDGETS: tuple[Budget, ...] = (PureDP(1), ZCDP(0.1), ApproxDP(1, 1e-6))
ORDERS = (
    (F(1, 2),),
    (F(1, 4),),
    (F(9, 10),),
    (F(1, 3), F(2, 3)),
    (F(1, 4), F(1, 2), F(3, 4)),
    (F(1, 20), F(1, 2), F(19, 20)),
)


# "upper" is the mirror image of "lower".
RULES = tuple((b, n) for b in BUDGETS for n in NULLS if n != "upper" or isinstance(b, PureDP))


@dataclass(frozen=True)
class Entry:
    """How the tests ask for one method."""

    # Options for grids of any size and for grids that can be listed; METHOD_OPTIONS has those of audits.
    any_grid: tuple[dict[str, Any], ...] = ({},)
    listed: tuple[dict[str, Any], ...] = ()
    most: int = 10_000
    # How many orders it answers quickly, for the test of many.
    many: int = 10_000
    # Whether answers are points of the grid of bounds and step.
    on_grid: bool = True
    # Audits of all data sets: (size, upper bound) for one order and for several, budgets and null rules.
    shapes: tuple[tuple[int, int], tuple[int, int]] = ((4, 3), (3, 2))
    rules: tuple[tuple[Budget, str], ...] = RULES
    # Whether all outcomes can be listed; laws of sums of noise have no end.
    listed_law: bool = True
    # Whether answers lie where the data do when the budget is enormous.
    exact: bool = True


# A method that is added to METHODS needs a line here: without one the contract fails.
ENTRIES: dict[str, Entry] = {
    "single": Entry(listed=({"flip": True},), most=1, many=1),
    "independent": Entry(many=2000, shapes=((3, 2), (3, 2)), rules=FEW_RULES),
    "joint": Entry(
        any_grid=({}, {"subcells": 2**10}),
        many=50,
        shapes=((3, 2), (3, 2)),
        rules=FEW_RULES,
    ),
    "interpolated": Entry(
        any_grid=({"drawn": 2}, {"drawn": 16}),
        rules=FEW_RULES,
        exact=False,
    ),
    "recursive": Entry(
        shapes=((3, 2), (3, 2)),
        rules=FEW_RULES,
        any_grid=({}, {"subcells": 1}, {"subcells": 2**10}),
    ),
    "histogram": Entry(
        any_grid=({"steps": 64}, {"steps": 64, "one_sided": False}, {"steps": 64, "published": True}),
        many=20,
        shapes=((3, 2), (2, 1)),
        rules=FEW_RULES,
        on_grid=False,
        exact=False,
    ),
    "inverse_sensitivity": Entry(any_grid=({}, {"radius": F(1, 2)}), many=2000, shapes=((4, 2), (3, 2))),
    "unbounded": Entry(
        any_grid=({"ratio": F(11, 10), "largest": 10**6}, {"ratio": 2, "lower": 0, "largest": 10**4}),
        many=20,
        shapes=((3, 2), (2, 1)),
        rules=FEW_RULES,
        on_grid=False,
        exact=False,
    ),
    "tree": Entry(
        any_grid=({"leaves": 64}, {"leaves": 256, "branching": 4}),
        shapes=((3, 2), (3, 1)),
        rules=FEW_RULES,
        many=1000,
        on_grid=False,
        exact=False,
        listed_law=False,
    ),
    "equi_depth": Entry(
        any_grid=({"leaves": 8}, {"leaves": 64, "parts": 4, "subcells": 2**10}),
        shapes=((3, 2), (3, 2)),
        rules=FEW_RULES,
        many=1000,
        exact=False,
        listed_law=False,
    ),
}


def methods(which: str) -> list[Any]:
    """Every method with each of its sets of options; `which` is a field of Entry, or "audited"."""
    return [
        METHODS[name](**options)
        for name in METHODS
        if name in ENTRIES
        for options in (METHOD_OPTIONS[name] if which == "audited" else getattr(ENTRIES[name], which))
    ]


def serves(method: Any, orders: Sequence[Any]) -> bool:
    return len(orders) <= ENTRIES[method.name].most


def ask(method: Any = "auto", probs: Sequence[Any] = (F(1, 2),), **others: Any) -> Quantiles:
    """A query on a small grid, without verification, unless said otherwise."""
    given: dict[str, Any] = {"budget": PureDP(1), "bounds": (0, 3), "step": 1, "verify": 0}
    given.update(neighbours="substitution", nulls="drop")
    return Quantiles(probs=probs, method=method, **{**given, **others})


def law_of(query: Quantiles, values: Any) -> Any:
    """The law that a session would draw from."""
    data = admit(np.asarray(values, dtype=np.float64))
    if query.rows is None and query.neighbours == "substitution":
        query = replace(query, rows=data.rows)
    return query.law(query.look(data))


# --- sharp audits: long empty runs between a few places -------------------------------------------

# Methods whose outcomes do not decrease.
ORDERED = ("recursive", "joint")
WIDE = 2**31
NARROW = 4


@dataclass(frozen=True)
class Line:
    """Places for records on a long line, with one wide empty run, and the points worth comparing."""

    places: tuple[int, ...]
    length: int

    @classmethod
    def of(cls, widths: Sequence[int]) -> "Line":
        """A line whose empty runs, before, between and behind the places, have these widths."""
        *starts, length = itertools.accumulate(width + 1 for width in widths)
        return cls(tuple(start - 1 for start in starts), length - 1)

    @property
    def points(self) -> list[int]:
        """The places, and the middle of each empty run."""
        ends = itertools.pairwise((-1, *self.places, self.length))
        return sorted({*self.places, *((low + high) // 2 for low, high in ends if low + 1 < high)})

    @property
    def bounds(self) -> tuple[int, int]:
        return 0, self.length - 1

    def data(self, counts: Sequence[int]) -> np.ndarray:
        """So many records at each place."""
        return np.repeat(np.array(self.places, dtype=np.float64), counts)


def lines(places: int) -> Iterator[Line]:
    """Lines on which one run after the other is wide."""
    for wide in range(places + 1):
        yield Line.of([WIDE if i == wide else NARROW for i in range(places + 1)])


def fine_query(line: Line, method: Any, orders: Sequence[Fraction], relation: str, **others: Any) -> Any:
    """A query whose points are the integers of the line: round numbers are cells as all others."""
    if hasattr(method, "emphasis"):
        method = replace(method, emphasis=F(0))
    return ask(method, orders, bounds=line.bounds, step=1, neighbours=relation, **others)


def difference(left: Any, right: Any, outcomes: Sequence[tuple[int, ...]]) -> float:
    """The largest |log ratio| at the given outcomes: a lower bound of the loss."""
    worst = 0.0
    for outcome in outcomes:
        one, other = left.logpmf(outcome), right.logpmf(outcome)
        if one != other:
            worst = max(worst, abs(one - other))
    return worst


def outcomes_on(points: Sequence[int], count: int, *, ordered: bool) -> list[tuple[int, ...]]:
    if ordered:
        return list(itertools.combinations_with_replacement(points, count))
    return list(itertools.product(points, repeat=count))


def pair_loss(
    method: Any,
    orders: Sequence[Fraction],
    relation: str,
    line: Line,
    left: Sequence[int],
    right: Sequence[int],
    **others: Any,
) -> float:
    """The loss between two columns, given by how many records are at each place; nulls last."""
    query = fine_query(line, method, orders, relation, **others)
    laws = [law_of(query, _with_nulls(line, counts)) for counts in (left, right)]
    return difference(*laws, outcomes_on(line.points, len(orders), ordered=method.name in ORDERED))


def _with_nulls(line: Line, counts: Sequence[int]) -> np.ndarray:
    known = line.data(counts[: len(line.places)])
    return np.append(known, [math.nan] * sum(counts[len(line.places) :]))


def worst_on_lines(
    method: Any,
    orders: Sequence[Fraction],
    relation: str,
    *,
    size: int,
    places: int,
    nulls: str = "drop",
    budget: Budget = PureDP(1),  # noqa: B008
) -> tuple[float, Any]:
    """The largest loss over all neighbouring data sets of `size` records at `places`, and where it is.

    Nulls are a place too. One run of points is wide, each in turn, so that the normaliser is decided there.
    """
    worst: tuple[float, Any] = (0.0, None)
    for line in lines(places):
        query = fine_query(line, method, orders, relation, nulls=nulls, budget=budget)
        records = (*map(float, line.places), math.nan)
        logs = _Logs(query, records, outcomes_on(line.points, len(orders), ordered=method.name in ORDERED))
        for left, right in neighbouring_pairs(records, size, relation):
            with np.errstate(invalid="ignore"):
                apart = np.nan_to_num(np.abs(logs.of(left) - logs.of(right)), nan=0.0, posinf=math.inf).max()
            if apart > worst[0]:
                worst = float(apart), (line.places, left, right)
    return worst


class _Logs:
    """The log probabilities of some outcomes on data sets, each computed once."""

    def __init__(self, query: Quantiles, records: tuple[float, ...], outcomes: list[Any]) -> None:
        self._query, self._records, self._outcomes = query, records, outcomes
        self._known: dict[tuple[int, ...], np.ndarray] = {}

    def of(self, chosen: tuple[int, ...]) -> np.ndarray:
        if chosen not in self._known:
            law = law_of(self._query, [self._records[i] for i in chosen])
            self._known[chosen] = np.array([law.logpmf(outcome) for outcome in self._outcomes])
        return self._known[chosen]
