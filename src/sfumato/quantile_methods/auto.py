"""Which method answers when none is named: the one with the smallest error that public facts foretell.

docs/quantiles.md derives the formulas; benchmarks/quantile_grid.py measures the choice.
"""

from fractions import Fraction
from typing import Any

from sfumato.laws.chain import slack
from sfumato.quantile_methods.equi_depth import MOST_DRAWN as MOST_DRAWN_EQUI_DEPTH
from sfumato.quantile_methods.equi_depth import EquiDepth
from sfumato.quantile_methods.expected_errors import expected_error
from sfumato.quantile_methods.interpolated import MOST_DRAWN, informative
from sfumato.quantile_methods.method import EMPHASIS, Facts
from sfumato.quantile_methods.methods import METHODS
from sfumato.quantile_methods.recursive import Recursive
from sfumato.quantile_methods.single import Single
from sfumato.quantile_methods.tree import Tree
from sfumato.quantile_methods.verified import Verified, verified_rest

# Beyond this many orders a joint draw takes seconds.
MOST_JOINT = 256
# For fewer orders the intervals of counts are about twice as wide as verified ones, and outcomes stay short.
LEAST_EQUI_DEPTH = 32
# A tree is trusted where each of its leaves is one point: inside a leaf of several points the data can be
# anywhere, and on vague bounds nearly all of them are in a few leaves.
MOST_LEAVES = 2**16
# Counts of leaves find heaps that draws miss, so that they may err by a little more where there are none.
TOLERATED = 1.1
REASONS = {
    "joint": "of many values",
    "interpolated": "of few values",
    "recursive": "of very many values",
    "tree": "on few points",
    "equi_depth": "that many counts tell",
}


def most_of_leaves(facts: Facts) -> int:
    """How many integers a method that counts leaves would draw, where `choose` may take one; 0 elsewhere."""
    tree = Tree().most_drawn(facts) if _leaves_are_points(facts) else 0
    return max(tree, MOST_DRAWN_EQUI_DEPTH if len(facts.orders) >= LEAST_EQUI_DEPTH else 0)


def choose(facts: Facts, *, verify: Fraction = Fraction(0), leaves: bool = True) -> tuple[str, str]:
    """The name of the method and the reason in words.

    Args:
        facts: the public facts, with the budget for everything.
        verify: the part of the budget that verifies the answers, unless a method tells its own interval.
        leaves: whether a method that counts leaves may be taken.
    """
    count, left = len(facts.orders), verified_rest(facts, verify) if verify else facts
    if count == 1:
        return "single", "one quantile"
    if 100 * slack(MOST_DRAWN) > left.buy(1).range:
        return "recursive", "a budget too small for a joint draw"
    drawn: dict[str, Facts] = {}
    if Recursive().finds_its_way(left):
        drawn["recursive"] = left
    if count <= informative(left, MOST_JOINT):
        drawn["joint"] = left
    if count > informative(left):
        drawn["interpolated"] = left
    expected = {name: expected_error(METHODS[name](), left) for name in drawn}
    best = min(expected, key=lambda name: expected[name])
    least = Verified(method=METHODS[best](), share=verify).expected_error(facts) if verify else expected[best]
    counted = {}
    # Few values make wide leaves.
    if leaves and _leaves_are_points(facts) and Tree().leaf_width(facts) == 1:
        counted["tree"] = expected_error(Tree(), facts)
    if leaves and count >= LEAST_EQUI_DEPTH and EquiDepth().finds_its_way(facts):
        counted["equi_depth"] = expected_error(EquiDepth(), facts)
    if counted:
        counting = min(counted, key=lambda name: counted[name])
        best = counting if counted[counting] < TOLERATED * least else best
    return best, f"{count} quantiles {REASONS[best]}"


def best_by_name(name: str) -> Any:
    """The method of this name with the options that serve most data best."""
    return Single(emphasis=EMPHASIS) if name == "single" else METHODS[name]()


def _leaves_are_points(facts: Facts) -> bool:
    return facts.step is not None and facts.grid.cells <= MOST_LEAVES
