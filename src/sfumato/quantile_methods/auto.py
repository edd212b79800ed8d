"""Which method answers when none is named: a rule on public facts; benchmarks/quantile_errors.py tests it."""

import math

from sfumato.quantile_methods.method import Facts

# A joint draw of more orders than this takes seconds, and gains little on the recursion.
MOST_JOINT = 128
# From so many orders on, a tree of counts whose leaves are the points of the grid is the most accurate.
LEAST_TREE, MOST_LEAVES = 200, 2**16


def choose(facts: Facts) -> tuple[str, str]:
    """The name of the method and the reason in words.

    With gap = epsilon n / (4 (m + 1)), the exponent that `joint` has for the records between two of m orders,
    `joint` is the most accurate if gap >= 3 log(m + 1), and `recursive` below that.
    """
    count = len(facts.orders)
    if count == 1:
        return "single", "one quantile"
    if count >= LEAST_TREE and facts.grid.cells <= MOST_LEAVES:
        return "tree", f"{count} quantiles on few points"
    if count > MOST_JOINT:
        return "recursive", f"{count} quantiles"
    if joint_exponent(facts) < 3 * math.log(count + 1):
        return "recursive", f"{count} quantiles of few values"
    return "joint", f"{count} quantiles of many values"


def joint_exponent(facts: Facts) -> float:
    """The log weight that `joint` loses when all records between two neighbouring orders are misplaced."""
    return float(facts.buy(1).range) * facts.known_size / (4 * (len(facts.orders) + 1))
