"""The mean rank error of quantiles that public facts foretell, as docs/quantiles.md derives it."""

import math
from typing import Any

from sfumato.quantile_methods.equi_depth import EquiDepth
from sfumato.quantile_methods.independent import Independent
from sfumato.quantile_methods.interpolated import Interpolated
from sfumato.quantile_methods.joint import Joint
from sfumato.quantile_methods.method import BRIDGE, MEAN_SIZE, Facts
from sfumato.quantile_methods.recursive import Recursive
from sfumato.quantile_methods.tree import Tree


def expected_error(method: Any, facts: Facts) -> float:
    """How many ranks the answers of a method are off on average."""
    if isinstance(method, Interpolated):
        return _of_lines(method, facts)
    if isinstance(method, Joint):
        return _of_joint_draws(method, facts)
    if isinstance(method, Recursive):
        return _of_a_recursion(method, facts)
    if isinstance(method, Tree):
        return MEAN_SIZE * method.deviation(facts)
    if isinstance(method, EquiDepth):
        return method.plan(facts).error
    # Each order by itself errs by a Laplace law of scale 1/c.
    constants = Independent().constants(facts)
    return sum(1 / float(c) for c in constants) / len(constants)


def _of_joint_draws(method: Joint, facts: Facts) -> float:
    """The records between two orders miss their number by a Laplace law of scale 1/c, and add up to all."""
    steps = len(facts.orders) + 1
    return MEAN_SIZE * BRIDGE * math.sqrt(2 * steps) / float(method.constant(facts))


def _of_lines(method: Interpolated, facts: Facts) -> float:
    """The error of the orders drawn, and of the curve between them."""
    drawn = method.chosen(facts)
    size, gaps = facts.known_size, len(drawn.orders) + 1
    # Between two orders drawn, a sample strays from a curve as a bridge does.
    stray = MEAN_SIZE * BRIDGE * math.sqrt(size / gaps)
    # In the two outer gaps a line to the bound may tell nothing; on points it misses a quarter of a tie.
    lost = size / (2 * gaps**2) + size / (4 * facts.grid.cells)
    return math.hypot(_of_joint_draws(method, drawn), stray) + lost


def _of_a_recursion(method: Recursive, facts: Facts) -> float:
    """A node errs by a Laplace law of scale 1/c, and passes a part on: a third of its variance on average."""
    constants = method.constants(facts)
    scale = sum(1 / float(c) for c in constants) / len(constants)
    levels = len(facts.orders).bit_length()
    return MEAN_SIZE * scale * math.sqrt(2 * (levels + 1) / 3)
