"""Which method answers when none is named: a rule on public facts; benchmarks/quantile_errors.py tests it."""

from sfumato.laws.chain import slack
from sfumato.quantile_methods.interpolated import MOST_DRAWN, informative
from sfumato.quantile_methods.method import Facts
from sfumato.quantile_methods.tree import Tree

# From so many orders on, a tree of counts whose leaves are the points of the grid is the most accurate.
LEAST_TREE, MOST_LEAVES = 200, 2**16
# Below so few orders noise has the tree's levels to pay for, and nothing to share them with.
FEWEST_TREE = 10


def most_in_tree(facts: Facts) -> int:
    """How many integers a tree would draw, where `choose` can take one; 0 elsewhere."""
    chosen = len(facts.orders) >= FEWEST_TREE and facts.grid.cells <= MOST_LEAVES
    return Tree().most_drawn(facts) if chosen else 0


def choose(facts: Facts, *, tree: bool = True) -> tuple[str, str]:
    """The name of the method and the reason in words.

    A joint draw of all orders is the most accurate if enough values lie between two of them; see
    `informative`. If not, a tree on a grid of few points, unless `tree` excludes it, and else a joint draw
    of some orders.
    """
    count = len(facts.orders)
    if count == 1:
        return "single", "one quantile"
    few_points = tree and facts.grid.cells <= MOST_LEAVES
    if 100 * slack(MOST_DRAWN) > facts.buy(1).range:
        return "recursive", "a budget too small for a joint draw"
    if count >= LEAST_TREE and few_points:
        return "tree", f"{count} quantiles on few points"
    if informative(facts) >= min(count, MOST_DRAWN):
        return ("joint" if count <= MOST_DRAWN else "recursive"), f"{count} quantiles of many values"
    if few_points and count >= FEWEST_TREE:
        return "tree", f"{count} quantiles of few values on few points"
    return "interpolated", f"{count} quantiles of few values"
