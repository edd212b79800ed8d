"""Named ways to break privacy, and for each the check of this suite that must notice.

A mutant replaces one small piece of the product. What it breaks is written as the defect would be written
in the product, by someone who meant well.
"""

import copy
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.audit.black_box import assert_drawn_noise_has_the_stated_scale, assert_draws_do_not_refute_epsilon
from tests.contracts import gate
from tests.contracts.privacy import assert_private, cases
from tests.contracts.replay import assert_corner_tables_leave_the_same_trace
from tests.laws import test_enumeration as enumeration
from tests.laws.test_grades import assert_falls_slowly
from tests.quantile_methods.cases import ORDERS, WIDE, Line, ask, pair_loss

from sfumato.audit import exact, worst_case
from sfumato.data import counts
from sfumato.data.counts import Sums
from sfumato.grid import Lattice
from sfumato.laws import Clamped, DiscreteGaussian, DiscreteLaplace, Joint, Point, SeededBits
from sfumato.laws.candidates import Candidates
from sfumato.laws.coins import exp_bounds
from sfumato.laws.graded import Graded
from sfumato.laws.grades import Grades, grades
from sfumato.mechanisms import GaussianMechanism, LaplaceMechanism, Sensitivity, additive
from sfumato.privacy import ZCDP, GaussianEvent, LaplaceEvent, PureDP
from sfumato.quantile_methods import Independent, InverseSensitivity, Recursive, Single
from sfumato.quantile_methods import method as purchases
from sfumato.quantile_methods.node import Node, Target
from sfumato.quantile_methods.recursive import Branch, RecursiveLaw, branches
from sfumato.session import Session
from sfumato.statistics import Count, Histogram, Mean, Sum, Variance

SMALLER = Fraction(99, 100)


@dataclass(frozen=True)
class Mutant:
    """A defect, the check that must notice it, and how it shows."""

    defect: Callable[[], AbstractContextManager[Any]]
    check: Callable[[], Any]
    shows_as: type[BaseException] = AssertionError


def replaced(owner: Any, name: str, new: Any) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: patch.object(owner, name, new)


def audit(question: str, relation: str, budget: Any = PureDP(1)) -> Callable[[], None]:  # noqa: B008
    """The exact audit of the contract, for one statistic."""

    def check() -> None:
        for case in cases(question, relation, budget):
            assert_private(case)

    return check


def enumerate_laplace(scale: int) -> Callable[[], None]:
    """Every word of a small width through the sampler."""

    def check() -> None:
        for pattern in enumeration.PATTERNS:
            enumeration.test_every_word_gives_the_outcome_of_exact_arithmetic(
                Fraction(scale), pattern, two_sided=True
            )

    return check


def enumerate_gaussian() -> None:
    for pattern in enumeration.PATTERNS:
        enumeration.test_every_word_gives_the_gaussian_outcome_of_exact_arithmetic(Fraction(9), pattern)


def smaller_laplace(part: Fraction) -> Any:
    sample = DiscreteLaplace.sample
    return lambda law, bits, size=None: sample(DiscreteLaplace(law.scale * part), bits, size)


def smaller_gaussian(part: Fraction) -> Any:
    sample = DiscreteGaussian.sample
    return lambda law, bits, size=None: sample(DiscreteGaussian(law.sigma_squared * part**2), bits, size)


def numpy_laplace(law: DiscreteLaplace, bits: Any, size: int | None = None) -> Any:
    drawn = np.rint(np.random.laplace(scale=float(law.scale), size=size))  # noqa: NPY002  # the defect
    return int(drawn) if size is None else drawn.astype(np.int64)


def sum_with_reach(reach: Callable[[Sum], int]) -> Any:
    return property(lambda query: additive(query.budget, Sensitivity.scalar(reach(query)), query.noise))


def unclamped(lattice: Lattice, values: Any, out: Any) -> None:
    np.subtract(values, float(lattice.origin), out=out)
    np.multiply(out, float(1 / lattice.step), out=out)
    # Infinities alone are brought back, so that nothing else fails.
    np.copyto(out, np.sign(out) * 8.0 * lattice.high, where=np.isinf(out))
    np.rint(out, out=out)


def without_ties(source: Candidates, prefixes: Any) -> Any:
    steps = np.searchsorted(source.table, prefixes)
    return steps, np.zeros(len(steps), dtype=bool)


def with_shared_bits(source: Candidates, words: Any) -> Any:
    low = (words & np.uint64((1 << source.shift) - 1)).view(np.int64)
    return low, words & np.uint64((1 << source.coin_width) - 1)


def nulls_stay(chunk: Any, located: Any, place: float) -> int:
    return int(np.count_nonzero(np.isnan(chunk)))


def nulls_always_dropped(query: Count, column: Any) -> Sums:
    return Sums(column.rows - column.nulls(), column.rows - column.nulls())


def nulls_add_the_upper_bound() -> Any:
    of = Sums.of

    def mutated(values: Any, lattice: Lattice, *, nulls: Any = "drop", squares: bool = False) -> Sums:
        kept = of(values, lattice, nulls=nulls, squares=squares)
        filled = of(values, lattice, nulls="upper" if nulls == "drop" else nulls, squares=squares)
        return Sums(kept.size, filled.first, filled.second)

    return mutated


def clamped_at_the_size(query: Count, view: Sums) -> Any:
    return Clamped(query.mechanism.law(view.first), 0, view.size)


def mean_with_the_exact_size(query: Mean, view: Sums) -> Any:
    noisy = query.mechanism.law(view.first)
    return noisy if query.size_is_public else Joint((noisy, Point(view.size)))


def noise_on_occupied_cells(query: Histogram, view: Any) -> Any:
    return Joint(tuple(query.mechanism.law(int(count)) if count else Point(0) for count in view))


def moments_at_full_epsilon(query: Variance) -> Any:
    if not query.size_is_public:
        return (query.mechanism,) * 3
    reach, epsilon = query.lattice.high, query.budget.epsilon
    return tuple(
        LaplaceMechanism.calibrated(epsilon=epsilon, sensitivity=change) for change in (2 * reach, reach**2)
    )


class FixedBits(SeededBits):
    """Seeded bits that pass for private ones."""

    private = True

    def __init__(self) -> None:
        super().__init__(0)


def looked_before_charging() -> Any:
    answer = Session.answer

    def mutated(session: Session, query: Any) -> Any:
        bound, column = session._bind(query)
        bound.look(column)
        return answer(session, query)

    return mutated


def refunding() -> Any:
    answer = Session.answer

    def mutated(session: Session, query: Any) -> Any:
        before = copy.deepcopy(session._own._accountant)
        try:
            return answer(session, query)
        except Exception:
            session._own._accountant = before
            raise

    return mutated


def session_that(forgets: Callable[[Session], Any]) -> Any:
    init = Session.__init__

    def mutated(session: Session, *args: Any, **kwargs: Any) -> None:
        init(session, *args, **kwargs)
        forgets(session)

    return mutated


MUTANTS: dict[str, Mutant] = {
    # Noise that is too small.
    "Laplace scale x 0.99": Mutant(
        replaced(LaplaceMechanism, "noise", property(lambda m: DiscreteLaplace(m.scale * SMALLER))),
        audit("sum over zero", "substitution"),
    ),
    "Laplace scale x 0.99 in the sampler": Mutant(
        replaced(DiscreteLaplace, "sample", smaller_laplace(SMALLER)), assert_drawn_noise_has_the_stated_scale
    ),
    "Laplace scale x 0.5 in the sampler": Mutant(
        replaced(DiscreteLaplace, "sample", smaller_laplace(Fraction(1, 2))),
        assert_draws_do_not_refute_epsilon,
    ),
    "sigma x 0.99": Mutant(
        replaced(
            GaussianMechanism, "noise", property(lambda m: DiscreteGaussian(m.sigma_squared * SMALLER**2))
        ),
        audit("mean", "add-remove", ZCDP(0.1)),
    ),
    "sigma x 0.99 in the sampler": Mutant(
        replaced(DiscreteGaussian, "sample", smaller_gaussian(SMALLER)),
        assert_drawn_noise_has_the_stated_scale,
    ),
    # A sensitivity that is too small.
    "sensitivity off by one": Mutant(
        replaced(
            Sensitivity,
            "scalar",
            classmethod(lambda cls, most: cls(max(most - 1, 1), max(most - 1, 1) ** 2, 1)),
        ),
        audit("sum over zero", "substitution"),
    ),
    "sensitivity off by one, replayed": Mutant(
        replaced(
            Sensitivity,
            "scalar",
            classmethod(lambda cls, most: cls(max(most - 1, 1), max(most - 1, 1) ** 2, 1)),
        ),
        assert_corner_tables_leave_the_same_trace,
    ),
    "sensitivity hi - lo instead of the larger size": Mutant(
        replaced(Sum, "mechanism", sum_with_reach(lambda query: query.lattice.high - query.lattice.low)),
        audit("sum above zero", "add-remove"),
    ),
    "a value may become a null unnoticed": Mutant(
        replaced(Sum, "mechanism", sum_with_reach(lambda query: query.lattice.high - query.lattice.low)),
        audit("sum above zero", "substitution"),
    ),
    "add-remove charged for substitution": Mutant(
        replaced(
            Sum,
            "mechanism",
            sum_with_reach(lambda query: max(abs(query.lattice.low), abs(query.lattice.high))),
        ),
        audit("sum over zero", "substitution"),
    ),
    "histogram at full epsilon per cell": Mutant(
        replaced(
            Histogram,
            "mechanism",
            property(lambda query: additive(query.budget, Sensitivity.scalar(1), query.noise)),
        ),
        audit("histogram of 3 bins", "substitution"),
    ),
    "moments at full epsilon each": Mutant(
        replaced(Variance, "parts", property(moments_at_full_epsilon)), audit("variance", "substitution")
    ),
    # Data that pass unchecked.
    "clamp missing": Mutant(replaced(Lattice, "locate", unclamped), audit("mean", "substitution")),
    "clamp missing, replayed": Mutant(
        replaced(Lattice, "locate", unclamped), assert_corner_tables_leave_the_same_trace
    ),
    "NaN passes": Mutant(
        replaced(counts, "settle", nulls_stay), assert_corner_tables_leave_the_same_trace, ValueError
    ),
    "null rule ignored": Mutant(
        replaced(Count, "look", nulls_always_dropped), audit("count", "substitution")
    ),
    "null rule ignored, replayed": Mutant(
        replaced(Count, "look", nulls_always_dropped), assert_corner_tables_leave_the_same_trace
    ),
    "null adds a value under drop": Mutant(
        lambda: patch.object(Sums, "of", nulls_add_the_upper_bound()), audit("variance", "add-remove")
    ),
    # Private numbers in the clear.
    "clamped at the private number of rows": Mutant(
        replaced(Count, "law", clamped_at_the_size), audit("count between", "add-remove")
    ),
    "mean divided by the private number of rows": Mutant(
        replaced(Mean, "law", mean_with_the_exact_size), audit("mean", "add-remove")
    ),
    "no noise on empty cells": Mutant(
        replaced(Histogram, "law", noise_on_occupied_cells), audit("histogram of categories", "add-remove")
    ),
    "no noise on empty cells, replayed": Mutant(
        replaced(Histogram, "law", noise_on_occupied_cells), assert_corner_tables_leave_the_same_trace
    ),
    # Samplers that miss their law.
    "zero counted twice": Mutant(
        lambda: patch(
            "sfumato.laws.laplace.counted_once", lambda sizes, words: np.ones(len(sizes), dtype=bool)
        ),
        enumerate_laplace(1),
    ),
    "zero counted twice by the Gaussian": Mutant(
        lambda: patch(
            "sfumato.laws.gaussian.counted_once", lambda sizes, words: np.ones(len(sizes), dtype=bool)
        ),
        enumerate_gaussian,
    ),
    "tie to the wrong side": Mutant(replaced(Candidates, "find", without_ties), enumerate_laplace(1)),
    "low part and coin share bits": Mutant(
        replaced(Candidates, "split", with_shared_bits), enumerate_laplace(128)
    ),
    # Randomness that someone else knows.
    "seed fixed": Mutant(
        lambda: patch("sfumato.session.default_bits", FixedBits), gate.assert_releases_differ
    ),
    "noise from numpy.random": Mutant(
        replaced(DiscreteLaplace, "sample", numpy_laplace),
        gate.assert_seeding_other_generators_changes_nothing,
    ),
    # Charges that are wrong, late or forgotten.
    "Laplace charged as another law": Mutant(
        replaced(
            LaplaceMechanism,
            "event",
            property(lambda m: LaplaceEvent(sensitivity=m.sensitivity, scale=2 * m.scale)),
        ),
        audit("sum over zero", "substitution"),
    ),
    "Gaussian charged as another law": Mutant(
        replaced(
            GaussianMechanism,
            "event",
            property(
                lambda m: GaussianEvent(
                    sensitivity_squared=m.sensitivity_squared,
                    sigma_squared=2 * m.sigma_squared,
                    coordinates=m.coordinates,
                )
            ),
        ),
        audit("mean", "add-remove", ZCDP(0.1)),
    ),
    "Laplace charged for Gaussian noise": Mutant(
        replaced(LaplaceMechanism, "noise", property(lambda m: DiscreteGaussian(2 * m.scale**2))),
        audit("sum over zero", "substitution"),
    ),
    "charge after look": Mutant(
        lambda: patch.object(Session, "answer", looked_before_charging()),
        gate.assert_charged_before_the_data_are_read,
    ),
    "cap of the ledger skipped": Mutant(
        lambda: patch.object(
            Session, "__init__", session_that(lambda session: setattr(session, "_ledger", None))
        ),
        gate.assert_every_cap_is_charged,
    ),
    "cap of the session skipped": Mutant(
        lambda: patch.object(
            Session,
            "__init__",
            session_that(lambda session: setattr(session._own, "charge", lambda query: None)),
        ),
        gate.assert_every_cap_is_charged,
    ),
    "refund on error": Mutant(
        lambda: patch.object(Session, "answer", refunding()), gate.assert_errors_are_not_refunded
    ),
}


# --- quantiles ------------------------------------------------------------------------------------
# The defects of traps.md, each on a pair of columns that shows it: so many records at each place of a line
# whose empty runs have the given widths. All losses are for a requested epsilon of 1 unless said otherwise.


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
    tree = [Branch(each.middle, facts.orders[each.middle], each.root) for each in branches(facts.orders)]
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


ROOT_DOWN = purchases.root_down
MEDIAN, QUARTILES, TAILS = ORDERS[0], ORDERS[4], ORDERS[5]
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
}
