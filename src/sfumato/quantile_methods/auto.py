"""Which method answers when none is named: the one with the smallest error that public facts foretell.

docs/quantiles.md derives the formulas; benchmarks/quantile_grid.py measures the choice.
"""

import math

from sfumato.laws.chain import slack
from sfumato.quantile_methods.interpolated import MOST_DRAWN, Interpolated, informative
from sfumato.quantile_methods.joint import Joint
from sfumato.quantile_methods.method import COARSEST, Facts
from sfumato.quantile_methods.recursive import Recursive
from sfumato.quantile_methods.tree import Tree

# Beyond this many orders a joint draw takes seconds.
MOST_JOINT = 256
# A tree is trusted where each of its leaves is one point: inside a leaf of several points the data can be
# anywhere, and on vague bounds nearly all of them are in a few leaves.
MOST_LEAVES = 2**16
# What a quarter of the records must outweigh for a recursion to find its way between the points: twice the
# log of their number on the coarsest grid.
LEAST_WEIGHT = 2 * COARSEST * math.log(2)
# The mean size of a normal number, as a part of its standard deviation.
MEAN_SIZE = math.sqrt(2 / math.pi)
# The mean of sqrt(t (1 - t)) over (0, 1): how far a bridge of many steps strays on average, as a part of the
# deviation of all its steps together.
BRIDGE = math.pi / 8

REASONS = {
    "joint": "of many values",
    "interpolated": "of few values",
    "recursive": "of very many values",
    "tree": "on few points",
}


def most_in_tree(facts: Facts) -> int:
    """How many integers a tree would draw, where `choose` can take one; 0 elsewhere."""
    return Tree().most_drawn(facts) if _leaves_are_points(facts) else 0


def choose(facts: Facts, *, tree: bool = True) -> tuple[str, str]:
    """The name of the method and the reason in words; no tree if `tree` excludes it."""
    count = len(facts.orders)
    if count == 1:
        return "single", "one quantile"
    if 100 * slack(MOST_DRAWN) > facts.buy(1).range:
        return "recursive", "a budget too small for a joint draw"
    expected = {}
    if _recursion_finds_its_way(facts):
        expected["recursive"] = _recursive_error(facts)
    if count <= informative(facts, MOST_JOINT):
        expected["joint"] = _joint_error(facts)
    if count > informative(facts):
        expected["interpolated"] = _interpolated_error(facts)
    if tree and _leaves_are_points(facts):
        expected["tree"] = _tree_error(facts)
    best = min(expected, key=lambda name: expected[name])
    return best, f"{count} quantiles {REASONS[best]}"


def _leaves_are_points(facts: Facts) -> bool:
    return facts.step is not None and facts.grid.cells <= MOST_LEAVES


def _recursion_finds_its_way(facts: Facts) -> bool:
    """Whether the first nodes tell half of their records from no records; if not, all below them are lost."""
    return float(min(Recursive().constants(facts))) * facts.known_size / 4 >= LEAST_WEIGHT


def _joint_error(facts: Facts) -> float:
    """The records between two orders miss their number by a Laplace law of scale 1/c, and add up to all."""
    steps = len(facts.orders) + 1
    return MEAN_SIZE * BRIDGE * math.sqrt(2 * steps) / float(Joint().constant(facts))


def _interpolated_error(facts: Facts) -> float:
    """The error of the orders drawn, and of lines between them."""
    drawn = Interpolated().chosen(facts)
    size, gaps = facts.known_size, len(drawn.orders) + 1
    # Between two orders drawn, a sample strays from a line as a bridge does.
    stray = MEAN_SIZE * BRIDGE * math.sqrt(size / gaps)
    # In the two outer gaps a line to the bound may tell nothing; on points it misses a quarter of a tie.
    lost = size / (2 * gaps**2) + size / (4 * facts.grid.cells)
    return math.hypot(_joint_error(drawn), stray) + lost


def _recursive_error(facts: Facts) -> float:
    """A node errs by a Laplace law of scale 1/c, and passes a part on: a third of its variance on average."""
    constants = Recursive().constants(facts)
    scale = sum(1 / float(c) for c in constants) / len(constants)
    levels = len(facts.orders).bit_length()
    return MEAN_SIZE * scale * math.sqrt(2 * (levels + 1) / 3)


def _tree_error(facts: Facts) -> float:
    """The deviation of a prefix after least squares."""
    return MEAN_SIZE * Tree().deviation(facts)
