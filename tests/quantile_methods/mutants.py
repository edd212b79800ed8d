"""Named ways to break the privacy of quantiles, and for each the check that must notice.

Each is a defect of an exact law, on a pair of columns that shows it: so many records at each place of a line
whose empty runs have the given widths. Losses are for a requested epsilon of 1 unless said otherwise.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.laws.test_grades import assert_falls_slowly
from tests.mutants import Mutant, replaced
from tests.quantile_methods.cases import ORDERS, WIDE, Line, ask, pair_loss

from sfumato.audit import exact, worst_case
from sfumato.laws.chain import Chain
from sfumato.laws.coins import exp_bounds
from sfumato.laws.graded import Graded
from sfumato.laws.grades import Grades, grades
from sfumato.mechanisms import GaussianMechanism, Sensitivity, additive
from sfumato.privacy import ZCDP, PureDP
from sfumato.quantile_methods import (
    FromHistogram,
    Independent,
    InverseSensitivity,
    Joint,
    Recursive,
    Single,
    crossings,
)
from sfumato.quantile_methods import method as purchases
from sfumato.quantile_methods.adaptive import AdaptiveLaw, CountsLaw
from sfumato.quantile_methods.equi_depth import EquiDepth
from sfumato.quantile_methods.node import Node, Target
from sfumato.quantile_methods.node_counts import NodeCounts
from sfumato.quantile_methods.recursive import Branch, RecursiveLaw, branches
from sfumato.quantile_methods.verified import Verified


def pair(
    method: Any,
    orders: Sequence[Fraction],
    relation: str,
    widths: Sequence[int],
    left: Sequence[int],
    right: Sequence[int],
    epsilon: int = 1,
) -> Callable[[], None]:
    """The loss of one pair of columns stays under epsilon."""

    def check() -> None:
        loss = pair_loss(
            method, orders, relation, Line.of(widths), left, right, nulls="lower", budget=PureDP(epsilon)
        )
        assert loss <= epsilon * (1 + 1e-9), f"loss {loss:.6g} of {epsilon}"

    return check


def small(size: int = 4, cells: int = 4, **parameters: Any) -> Callable[[], None]:
    """The exact audit of a query on all small data sets."""

    def check() -> None:
        worst = worst_case(ask(**parameters), size=size, cells=cells)
        assert worst.loss.holds, str(worst)

    return check


def whole_range(method: Any, facts: Any) -> Any:
    return tuple(method.terms(facts).range for _ in facts.orders)


def constants_of_add_remove(kind: Any) -> Callable[[], AbstractContextManager[Any]]:
    constants = kind.constants
    return replaced(kind, "constants", lambda self, facts: constants(self, replace(facts, replaces=False)))


def half_the_range_everywhere(method: Recursive, facts: Any) -> Any:
    span = method.terms(facts).range
    return tuple(span / 2 for _ in facts.orders)


def node_at(rounding: Callable[[Fraction], int]) -> Any:
    def quantile_node(ranks: Any, order: Fraction, c: Fraction) -> Node:
        rank = Fraction(rounding(order * ranks.size))
        return Node(ranks, 0, ranks.points - 1, 0, ranks.size, Target(rank, rank), c, order.denominator)

    return lambda: patch("sfumato.quantile_methods.independent.quantile_node", quantile_node)


def visiting(
    *, target: Callable[[Branch, Fraction], Fraction] = lambda branch, rank: rank, balanced: bool = False
) -> Callable[[], AbstractContextManager[Any]]:
    """The recursion with another target for its nodes, or with ties on both sides of a released point."""

    def visit(law: RecursiveLaw, points: dict[int, int]) -> Any:
        ranks, tree = law.ranks, law.tree
        parts = [(0, len(tree), 0, ranks.points - 1, 0, ranks.size)]
        while parts:
            begin, end, first, last, after, upto = parts.pop()
            if begin == end:
                continue
            middle = (begin + end) // 2
            relative, c = tree[middle].relative, law.constants[middle]
            rank = target(tree[middle], relative * (upto - after))
            goal = Target(rank, rank)
            yield middle, Node(ranks, first, last, after, upto, goal, c, relative.denominator)
            point = points[middle]
            at = min(max(ranks.upto(point), after), upto)
            if balanced:
                wanted = after + math.floor(relative * (upto - after))
                at = min(max(wanted, ranks.below(point), after), at)
            parts.append((middle + 1, end, point, last, at, upto))
            parts.append((begin, middle, first, point, after, at))

    return replaced(RecursiveLaw, "_visit", visit)


def rounded_below_the_root(rounding: Callable[[Fraction], int]) -> Callable[[Branch, Fraction], Fraction]:
    return lambda branch, rank: rank if branch.root else Fraction(rounding(rank))


def law_of_absolute_orders(method: Recursive, view: Any, facts: Any) -> RecursiveLaw:
    tree = [Branch(each.middle, facts.orders[each.middle], each.root) for each in branches(facts)]
    return RecursiveLaw(view, tree, method.constants(facts))


@contextmanager
def weights_of_floats() -> Any:
    """Weights by exp() in float64, as far as there are records; there is no last level."""
    with (
        patch.multiple(Grades, last=property(lambda self: 2**40), reach=property(lambda self: 2**40)),
        patch.object(Graded, "logpmf", float_logpmf),
    ):
        yield


def float_logpmf(law: Graded, point: int) -> float:
    weights = np.exp(-float(law._grades.c) / law._grades.parts * law._levels)
    weight = float(weights[law._run_of(point)])
    return math.log(weight / float(weights @ law._lengths)) if weight else -math.inf


def floored(x: Fraction, precision: int) -> tuple[int, int]:
    low, _ = exp_bounds(x, precision)
    return low, low


def weights_fall_slowly() -> None:
    c, parts = Fraction(1, 2), 10
    assert_falls_slowly(Grades(c, parts).weights(np.arange(40)), c, parts)


def seeded_places(order: Any, count: Any, bits: int) -> Any:
    """The places of a random split that is drawn anew for each count, with a seed that anyone can repeat."""
    return np.array([split_of(int(n), bits)[k] for k, n in zip(order, count, strict=True)], dtype=np.int64)


def split_of(count: int, bits: int) -> Any:
    shares = np.full(2**bits, 2.0**-bits)
    return np.repeat(np.arange(2**bits), np.random.default_rng(count).multinomial(count, shares))


def seeded_below(part: int, count: int, bits: int) -> int:
    return int((split_of(count, bits) < part).sum())


def equal_values() -> None:
    """Columns of one value, with one record more each time."""
    query = ask(Recursive(subcells=16), MEDIAN, bounds=(0, 1), neighbours="add-remove")
    for rows in range(12):
        loss = exact(query, np.zeros(rows), np.zeros(rows + 1))
        assert loss.holds, f"loss {loss.amount:.6g} of 1"


def generous_root(square: Fraction) -> Fraction:
    # r^2/8 for a range is r^2/2 for a pure bound; here the two are confused the wrong way around.
    return 2 * ROOT_DOWN(square)


def chain_of_rounded_gaps(order: Any, gaps: Sequence[Fraction], c: Fraction) -> Chain:
    ends = [math.ceil(end) for end in accumulate(gaps)]
    return Chain(order, [Fraction(high - low) for low, high in pairwise([0, *ends])], c)


def law_on_whole_counts(scan: crossings.Scan, counts: Any) -> Any:
    """Counts against the target rounded down, with noise in whole ranks, as if the target did not move."""
    unit = scan.order.denominator
    scales = scan.mechanism.threshold_scale / unit, scan.mechanism.query_scale / unit
    mechanism = replace(scan.mechanism, threshold_scale=scales[0], query_scale=scales[1])
    return mechanism.law(np.cumsum(counts), math.floor(scan.order * int(counts.sum())))


def one_more_record_before_the_end() -> None:
    query = ask(FromHistogram(steps=8), (Fraction(3, 10),), bounds=(0, 3), neighbours="add-remove")
    loss = exact(query, np.array([0.0, 0, 1, 1, 1, 3]), np.array([0.0, 0, 1, 1, 1, 2, 3]))
    assert loss.holds, f"loss {loss.amount:.6g} of 1"


def a_record_across_the_median() -> None:
    query = ask(Single(flip=True), MEDIAN, budget=ZCDP(0.005), nulls="lower")
    loss = exact(query, np.array([0.0, 0, 0, 1, 3, 3]), np.array([0.0, 0, 1, 3, 3, 3]))
    assert loss.holds, f"loss {loss.amount:.6g} of {loss.charged}"


def verifying(name: str, new: Any) -> Callable[[], AbstractContextManager[Any]]:
    """Verification with one of its rules replaced; what was derived by the other is forgotten."""

    @contextmanager
    def defect() -> Any:
        kept = [Verified.own, Verified.noise, Verified.positions]
        try:
            for each in kept:
                each.cache_clear()
            with patch.object(Verified, name, new):
                yield
        finally:
            for each in kept:
                each.cache_clear()

    return defect


NOISE = Verified.noise


def half_the_noise(method: Verified, facts: Any) -> Any:
    noise = NOISE(method, facts)
    if isinstance(noise, GaussianMechanism):
        return replace(noise, sigma_squared=noise.sigma_squared / 4)
    return replace(noise, scale=noise.scale / 2)


def noise_for_one_cell(method: Verified, facts: Any) -> Any:
    """As if a replaced record left a cell and entered none."""
    return additive(method._whole(facts).share(method.share), Sensitivity.scalar(1), "auto")


def whole_budget_for_the_quantiles(method: Verified, facts: Any) -> Any:
    return replace(facts, budget=method._whole(facts), points=facts.made)


def law_with_thresholds_at_true_ranks(method: Verified, view: Any, facts: Any) -> Any:
    """Thresholds where the data's own quantiles are, which would be the best places."""

    class AtRanks(AdaptiveLaw):
        def after(self, drawn: Any) -> Any:
            number = len(method.positions(facts))
            size = view[1].size
            wanted = [max(math.ceil(Fraction(i + 1, number + 1) * size), 1) for i in range(number)]
            cells = tuple(int(view[1].positions(rank, rank)[0]) if size else 0 for rank in wanted)
            below = view[1].below_cells(np.array(cells, dtype=np.int64))
            counts = np.diff(np.concatenate([[0], below, [size]]))
            return CountsLaw(cells, method.noise(facts).law(counts))

    return AtRanks(method.method.law(view[0], method.own(facts)), view[1], method, facts)


def verified(relation: str, **others: Any) -> Callable[[], None]:
    """The exact audit of quantiles and counts together; most of the budget counts."""
    given = {"bounds": (0, 2), "n_hint": 4, "verify": Fraction(3, 4), "neighbours": relation, **others}
    return small(size=3, cells=3, method=Joint(subcells=1), probs=THIRDS, **given)


def leaves_at_true_ranks(method: EquiDepth, drawn: Any, ranks: Any, facts: Any) -> Any:
    """Leaves that hold exactly equally many values."""
    nodes = method.nodes(facts)
    wanted = [max(math.ceil(Fraction(i, nodes.leaves) * ranks.size), 1) for i in range(1, nodes.leaves)]
    cells = [int(ranks.positions(rank, rank)[0]) if ranks.size else 0 for rank in wanted]
    below = ranks.below_cells(np.array(cells, dtype=np.int64))
    leaves = np.diff(np.concatenate([[0], below, [ranks.size]]))
    return CountsLaw((), nodes.mechanism.law(nodes.of_leaves(leaves)))


def whole_budget_for_the_nodes(method: EquiDepth, facts: Any) -> Any:
    return NodeCounts(facts, method.plan(facts).leaves)


def parts_of_the_values(method: EquiDepth, drawn: Any, ranks: Any, facts: Any) -> Any:
    """Leaves as they were drawn, whose parts hold about equally many values."""
    nodes, ends, parts = method.nodes(facts), method._ends(drawn, facts), method.plan(facts).parts
    for place in range(1, nodes.leaves):
        first = place // parts * parts
        if place > first and ranks.size:
            rank = max(math.ceil(Fraction(place, nodes.leaves) * ranks.size), 1)
            ends[place] = min(max(int(ranks.positions(rank, rank)[0]), ends[first]), ends[first + parts])
    below = ranks.below_cells(np.array(ends[1:-1], dtype=np.int64))
    counts = np.diff(np.concatenate([[0], below, [ranks.size]]))
    return CountsLaw((), nodes.mechanism.law(nodes.of_leaves(counts)))


def equi_depth(relation: str, leaves: int = 4, parts: int = 1, **others: Any) -> Callable[[], None]:
    """The exact audit of edges and counts together."""
    given = {"bounds": (0, 2), "n_hint": 4, "neighbours": relation, **others}
    return small(size=3, cells=3, method=EquiDepth(leaves=leaves, parts=parts, subcells=1), **given)


ROOT_DOWN = purchases.root_down
MEDIAN, THIRDS, QUARTILES, TAILS = ORDERS[0], ORDERS[3], ORDERS[4], ORDERS[5]
RECURSIVE = Recursive(subcells=1)

QUANTILE_MUTANTS: dict[str, Mutant] = {
    "weights of the published algorithm": Mutant(
        replaced(Independent, "constants", whole_range),
        pair(Single(), MEDIAN, "substitution", (0, WIDE, 4, 0), (9, 3, 8), (8, 3, 9)),
    ),
    "target rounded up": Mutant(
        node_at(math.ceil), pair(Single(), MEDIAN, "add-remove", (WIDE, 4, 0), (4, 2), (4, 3))
    ),
    "target rounded down": Mutant(
        node_at(math.floor), pair(Single(), MEDIAN, "add-remove", (0, WIDE, 4, 0), (2, 3, 2), (2, 3, 3))
    ),
    "child sizes rounded, substitution": Mutant(
        visiting(target=rounded_below_the_root(math.ceil)),
        pair(RECURSIVE, QUARTILES, "substitution", (1024, 2, WIDE, 1024), (1, 3, 1), (0, 3, 2)),
    ),
    "child sizes rounded, add-remove": Mutant(
        visiting(target=rounded_below_the_root(math.floor)),
        pair(RECURSIVE, QUARTILES, "add-remove", (2, 4, WIDE, 4), (1, 0, 3), (2, 0, 3)),
    ),
    "half the range at every node": Mutant(
        replaced(Recursive, "constants", half_the_range_everywhere),
        pair(RECURSIVE, TAILS, "substitution", (2, 4, 1024, 4, WIDE, 2), (2, 5, 4, 9, 0), (2, 4, 4, 9, 1)),
    ),
    "constants of add-remove under substitution": Mutant(
        constants_of_add_remove(Independent),
        pair(Single(), MEDIAN, "substitution", (0, WIDE, 4, 0), (9, 3, 8), (8, 3, 9)),
    ),
    "constants of add-remove under substitution, recursive": Mutant(
        constants_of_add_remove(Recursive),
        pair(RECURSIVE, QUARTILES, "substitution", (4, WIDE, 2, 4, 2), (4, 2, 2, 0), (3, 2, 3, 0)),
    ),
    "records at the released point split to balance ranks": Mutant(
        visiting(balanced=True),
        pair(RECURSIVE, QUARTILES, "add-remove", (2, WIDE, 1024, 4), (0, 2, 4), (1, 2, 4)),
    ),
    "order of the whole used in the parts": Mutant(
        replaced(Recursive, "law", law_of_absolute_orders),
        pair(RECURSIVE, QUARTILES, "add-remove", (2, 2, WIDE, 4, 2), (1, 1, 7, 3), (2, 1, 7, 3)),
    ),
    "full budget for every order": Mutant(
        replaced(Independent, "terms", lambda self, facts: facts.buy(1)),
        small(method=Independent(), probs=QUARTILES),
    ),
    "recursion charged for one level": Mutant(
        replaced(Recursive, "terms", lambda self, facts: facts.buy(1)),
        pair(RECURSIVE, QUARTILES, "add-remove", (4, WIDE, 4, 4), (2, 1, 0), (2, 1, 1)),
    ),
    "weights that underflow": Mutant(
        weights_of_floats,
        pair(Single(), MEDIAN, "substitution", (0, WIDE, 4, 0), (9, 3, 8), (8, 3, 9), epsilon=1200),
    ),
    "weights rounded down": Mutant(
        lambda: patch("sfumato.laws.grades.exp_bounds", floored), weights_fall_slowly
    ),
    "weights by the denominator that the target has": Mutant(
        replaced(Node, "_grades", property(lambda node: grades(node.c, node.target.low.denominator))),
        pair(Single(), ORDERS[2], "add-remove", (2**20, 2**20, 4, 4), (40, 2, 3), (40, 2, 4), epsilon=2),
    ),
    "inverse sensitivity at twice its constant": Mutant(
        replaced(InverseSensitivity, "constants", whole_range),
        small(method=InverseSensitivity(), neighbours="add-remove"),
    ),
    "permute-and-flip at twice its constant": Mutant(
        replaced(Independent, "constants", whole_range), small(method=Single(flip=True))
    ),
    "a rho buys twice the range": Mutant(
        replaced(purchases, "root_down", generous_root),
        small(method=Single(), bounds=(0, 60), cells=3, budget=ZCDP(0.1)),
    ),
    "ties spread by a seed": Mutant(
        lambda: patch.multiple("sfumato.data.ranks", spread=seeded_places, spread_below=seeded_below),
        equal_values,
    ),
    "joint gaps rounded": Mutant(
        lambda: patch("sfumato.quantile_methods.joint.Chain", chain_of_rounded_gaps),
        pair(Joint(subcells=1), THIRDS, "add-remove", (2, 1024, WIDE, 4), (1, 0, 4), (2, 0, 4)),
    ),
    "joint constant of a single quantile": Mutant(
        replaced(Joint, "constant", lambda self, facts: self.terms(facts).range / 2),
        pair(
            Joint(subcells=1),
            THIRDS,
            "substitution",
            (2, 1024, 0, WIDE, 2, 1024),
            (3, 4, 1, 2, 1),
            (3, 3, 1, 3, 1),
        ),
    ),
    "permute-and-flip charged as a range": Mutant(
        replaced(Single, "terms", lambda self, facts: facts.buy(1)), a_record_across_the_median
    ),
    "whole counts against a target that moves": Mutant(
        replaced(crossings.Scan, "law", law_on_whole_counts), one_more_record_before_the_end
    ),
    "half the noise on counts that verify": Mutant(
        verifying("noise", half_the_noise), verified("add-remove")
    ),
    "half the noise on counts that verify and have a known total": Mutant(
        verifying("noise", half_the_noise), verified("substitution", nulls="lower", rows=3, n_hint=None)
    ),
    "half the noise on counts that verify, under a rho": Mutant(
        verifying("noise", half_the_noise), verified("substitution", budget=ZCDP(0.1))
    ),
    "counts that verify with the noise of one cell under substitution": Mutant(
        verifying("noise", noise_for_one_cell), verified("substitution")
    ),
    "the share that verifies is not taken from the quantiles": Mutant(
        verifying("own", whole_budget_for_the_quantiles), verified("substitution", nulls="lower")
    ),
    "thresholds that verify at the true ranks": Mutant(
        verifying("law", law_with_thresholds_at_true_ranks), verified("add-remove", nulls="lower")
    ),
    "the share that draws edges is not taken from the counts of leaves": Mutant(
        replaced(EquiDepth, "nodes", whole_budget_for_the_nodes), equi_depth("add-remove")
    ),
    "the share that draws edges is not taken from the counts of leaves, under a rho": Mutant(
        replaced(EquiDepth, "nodes", whole_budget_for_the_nodes), equi_depth("substitution", budget=ZCDP(0.1))
    ),
    "leaves at the true ranks": Mutant(
        replaced(EquiDepth, "after", leaves_at_true_ranks), equi_depth("add-remove")
    ),
    "parts of leaves that follow the values": Mutant(
        replaced(EquiDepth, "after", parts_of_the_values),
        equi_depth("substitution", leaves=2, parts=2),
    ),
}
