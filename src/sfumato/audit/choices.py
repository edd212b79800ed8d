"""Audits of mechanisms that `worst_case` has no inputs for: choices by scores, scans, streams, bounded noise.

Each takes every small input and every change that one record may make to it, and compares all outcomes.
"""

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from sfumato.audit import listed
from sfumato.audit.compare import cells_of
from sfumato.audit.exact import Loss, WorstCase
from sfumato.audit.listings import Listing
from sfumato.errors import InvalidParameter
from sfumato.grid import Floats
from sfumato.mechanisms import (
    AboveThreshold,
    BoundedNoiseMechanism,
    ExponentialMechanism,
    SparseMechanism,
    TopMechanism,
    ZeroSumMechanism,
)
from sfumato.mechanisms.moves import AnyQueries, CountsAtOrder
from sfumato.privacy import ZCDP, ApproxDP, PureDP

Vector = tuple[int, ...]
Scan = tuple[Vector, int]  # values and threshold
Pairs = Iterable[tuple[Any, Any]]
LogLaw = Callable[[Any], Floats]


def worst_listed(name: str, logs: LogLaw, pairs: Pairs, cost: PureDP | ZCDP | ApproxDP) -> WorstCase:
    """The largest loss over the pairs, for a law given by the log probabilities of all its outcomes."""
    known = cache(logs)
    seen, upper = 0, 0.0
    worst: tuple[float, Any, Any] | None = None
    for left, right in pairs:
        seen += 1
        lower, most = _between(known(left), known(right), cost)
        upper = max(upper, most)
        if worst is None or lower > worst[0]:
            worst = lower, left, right
    if worst is None:
        raise InvalidParameter("there are no neighbouring pairs to audit")
    unit = "delta" if isinstance(cost, ApproxDP) else "rho" if isinstance(cost, ZCDP) else "epsilon"
    charged = float(getattr(cost, unit))
    loss = Loss(worst[0], charged, cost, None, upper if upper > worst[0] else None)
    return WorstCase(name, loss, seen, *worst[1:])


def _between(left: Floats, right: Floats, cost: PureDP | ZCDP | ApproxDP) -> tuple[float, float]:
    """Two bounds of the loss in the currency of a cost; equal but for a rho, which is found by a search."""
    if isinstance(cost, ZCDP):
        outcomes = range(len(left))
        return cells_of(Listing(outcomes, left), Listing(outcomes, right)).rho()
    if isinstance(cost, ApproxDP):
        exact = listed.hockey_stick(left, right, float(cost.epsilon))
    else:
        exact = listed.log_ratios(listed.Pair(left, right)).worse
    return exact, exact


def worst_choice(
    mechanism: ExponentialMechanism | TopMechanism, *, candidates: int, top: int, zcdp: bool = False
) -> WorstCase:
    """Every row of scores from 0 to `top`, and every change of each by up to the sensitivity."""
    reach = int(mechanism.sensitivity)
    picks = mechanism.picks if isinstance(mechanism, TopMechanism) else 1
    outcomes = list(itertools.permutations(range(candidates), picks))

    def logs(scores: Vector) -> Floats:
        law: Any = mechanism.law(scores)
        if isinstance(mechanism, TopMechanism):
            return np.array([law.logpmf(chosen) for chosen in outcomes])
        return np.asarray(law.logpmf(law.outcomes()))

    # Only differences of scores count, so that for scores that move together one direction is both.
    moves = range(reach + 1) if mechanism.monotone else range(-reach, reach + 1)
    pairs = _moved(itertools.product(range(top + 1), repeat=candidates), moves)
    cost = ZCDP(mechanism.event.rho) if zcdp else PureDP(mechanism.epsilon)
    return worst_listed(type(mechanism).__name__, logs, pairs, cost)


def worst_bounded(mechanism: BoundedNoiseMechanism) -> WorstCase:
    """Every change of all the integers, each by up to the sensitivity; all rows of answers are listed."""
    reach, queries = mechanism.sensitivity, mechanism.queries
    answers = np.arange(-mechanism.bound - reach, mechanism.bound + reach + 1)

    def logs(values: Vector) -> Floats:
        total = np.zeros(1)
        for value in values:
            total = np.add.outer(total, mechanism.noise.logpmf(answers - value)).ravel()
        return total

    pairs = _moved([(0,) * queries], range(-reach, reach + 1))
    return worst_listed("BoundedNoiseMechanism", logs, pairs, mechanism.budget)


def worst_partition(mechanism: ZeroSumMechanism, *, counts: int, total: int) -> WorstCase:
    """Every way to divide records among some counts, and every record that moves to another count.

    Outcomes are those within three records of some division; further ones have the same log ratios.
    """

    def divided(low: int, high: int) -> list[Vector]:
        rows = itertools.product(range(low, high + 1), repeat=counts - 1)
        every = ((*row, total - sum(row)) for row in rows)
        return [row for row in every if low <= row[-1] <= high]

    outcomes, inputs = np.array(divided(-3, total + 3)), divided(0, total)

    def logs(center: Vector) -> Floats:
        return np.asarray(mechanism.law(np.array(center)).logpmf(outcomes))

    pairs = (
        (left, right)
        for left, right in itertools.permutations(inputs, 2)
        if sum(abs(a - b) for a, b in zip(left, right, strict=True)) == 2
    )
    return worst_listed("ZeroSumMechanism", logs, pairs, PureDP(mechanism.event.pure_epsilon))


def worst_crossing(mechanism: AboveThreshold, *, values: int, rows: int, run: int) -> WorstCase:
    """Every short scan; and, where the bound is reached, long runs of equal values."""

    def logs(scan: Scan) -> Floats:
        law = mechanism.law(np.array(scan[0], dtype=np.int64), scan[1])
        return np.asarray(law.logpmf(law.outcomes()))

    moves = mechanism.moves
    pairs: Pairs
    if isinstance(moves, CountsAtOrder):
        pairs = itertools.chain(
            _counts_at_order(moves.order, values, rows), _counts_at_order(moves.order, values, 3, run)
        )
    else:
        reach, general = moves.sensitivity, isinstance(moves, AnyQueries)
        steps = range(-reach, reach + 1) if general else range(reach + 1)
        short = _moved(itertools.product(range(-2, 2), repeat=values), steps)
        last = -reach if general else 0
        long = (((0,) * run + (low,), (reach,) * run + (low + last,)) for low in (0, -20 * reach))
        pairs = (((left, 0), (right, 0)) for left, right in itertools.chain(short, long))
    return worst_listed("AboveThreshold", logs, pairs, PureDP(mechanism.cost))


def worst_stream(mechanism: SparseMechanism, *, values: int) -> WorstCase:
    """Every stream of up to `values` values around the threshold, over all transcripts."""
    # Numbers beyond all values, where the ratio of a noisy number no longer changes, and numbers near them.
    far = 2 * mechanism.moves.order.denominator * values if isinstance(mechanism.moves, CountsAtOrder) else 6
    numbers: tuple[Any, ...] = ("above",) if mechanism.answer_scale is None else (-far, 0, 1, far)

    @cache
    def factors(pattern: tuple[tuple[int, Any], ...]) -> float:
        # The answers to a row of values commute, so that rows that are permuted are computed once.
        law = mechanism.law(tuple(value for value, _ in pattern), 0)
        return law.logpmf(tuple(answer for _, answer in pattern))

    def logs(row: Vector) -> Floats:
        told = _transcripts(len(row), mechanism.crossings, numbers)
        found = (factors(tuple(sorted(zip(row, each, strict=False), key=_below_first))) for each in told)
        return np.array(list(found))

    return worst_listed("SparseMechanism", logs, _streams(mechanism, values), PureDP(mechanism.cost))


def _streams(mechanism: SparseMechanism, values: int) -> Pairs:
    moves = mechanism.moves
    if isinstance(moves, CountsAtOrder):
        for pair in _counts_at_order(moves.order, values, values + 1):
            left, right = (tuple(count - bar for count in counts) for counts, bar in pair)
            yield left, right
        return
    reach, general = moves.sensitivity, isinstance(moves, AnyQueries)
    rows = itertools.chain.from_iterable(
        itertools.product(range(-3, 2), repeat=length) for length in range(1, values + 1)
    )
    yield from _moved(rows, range(-reach if general else 0, reach + 1))


def _moved(rows: Iterable[Vector], moves: Iterable[int]) -> Iterator[tuple[Vector, Vector]]:
    steps = tuple(moves)
    for row in rows:
        for move in itertools.product(steps, repeat=len(row)):
            if any(move):
                yield row, tuple(value + by for value, by in zip(row, move, strict=True))


def _counts_at_order(order: Fraction, cells: int, most: int, repeat: int = 1) -> Iterator[tuple[Scan, Scan]]:
    """The queries b F - a n before and after a record is added, each asked `repeat` times."""
    a, b = order.numerator, order.denominator

    def scan(chosen: Vector) -> Scan:
        counts = np.cumsum(np.bincount(np.array(chosen, dtype=np.int64), minlength=cells))
        return tuple(np.repeat(b * counts, repeat).tolist()), a * len(chosen)

    for rows in range(most):
        for chosen in itertools.combinations_with_replacement(range(cells), rows):
            for cell in range(cells):
                left, right = scan(chosen), scan((*chosen, cell))
                yield left, right
                # The last point may be left out, so that none is above.
                yield (left[0][:-repeat], left[1]), (right[0][:-repeat], right[1])


@cache
def _transcripts(length: int, crossings: int, numbers: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """All that can be told about so many values, each crossing told in each of the given ways."""
    every = itertools.chain.from_iterable(
        itertools.product(("below", *numbers), repeat=told) for told in range(1, length + 1)
    )

    def possible(answers: tuple[Hashable, ...]) -> bool:
        above = sum(answer != "below" for answer in answers)
        if above == crossings:
            return answers[-1] != "below"
        return above < crossings and len(answers) == length

    return [answers for answers in every if possible(answers)]


def _below_first(told: tuple[int, Any]) -> tuple[bool, int, str]:
    return told[1] != "below", told[0], str(told[1])
