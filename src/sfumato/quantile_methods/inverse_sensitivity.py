"""Inverse sensitivity: how many records must change for a point to become the quantile."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.checks import Number, compact, exact, shown
from sfumato.data.ranks import Ranks
from sfumato.errors import InvalidParameter
from sfumato.quantile_methods.independent import Independent, NodesLaw
from sfumato.quantile_methods.method import Facts, Orders, QuantileLaw
from sfumato.quantile_methods.node import Node, Target
from sfumato.query import Outcome


@dataclass(frozen=True, kw_only=True)
class InverseSensitivity(Independent):
    """Each order by the number of records that would have to change, plain or smoothed over a radius.

    The quantile of order p is the record of rank k = ceil(p n). A point costs as many changes as it takes to
    make it that record; smoothed, as many as the best point within the radius costs.

    Guarantee:
        The number of changes moves by at most 1 with one record under both relations, so that c = range / 2.
        Proof: docs/proofs/quantiles.md.

    Args:
        radius: how far, in the units of the data, points count for each other; 0 for the plain mechanism,
            None for the width of the bounds over 1000 times the number of values.

    >>> InverseSensitivity(radius=0).needs_size, InverseSensitivity(radius=None).needs_size
    (False, True)
    """

    name: ClassVar[str] = "inverse_sensitivity"

    radius: Number | None = 0

    def __post_init__(self) -> None:
        if self.radius is not None:
            radius = exact("radius", self.radius)
            if radius < 0:
                raise InvalidParameter(f"radius must not be negative, got radius={shown(self.radius)}")
            object.__setattr__(self, "radius", radius)

    @property
    def needs_size(self) -> bool:
        """Whether the radius follows from the number of values."""
        return self.radius is None

    def reach(self, facts: Facts) -> int:
        """The radius in steps of the grid."""
        if self.radius is None:
            return facts.grid.cells // (1000 * facts.known_size)
        return min(math.floor(Fraction(self.radius) / facts.grid.step), facts.grid.cells)

    def constants(self, facts: Facts) -> Orders:
        """Half the range for every order, under both relations."""
        return (self.terms(facts).range / 2,) * len(facts.orders)

    def law(self, view: Ranks, facts: Facts) -> QuantileLaw:
        """The law of the points, before they are sorted."""
        nodes = []
        for order, c in zip(facts.orders, self.constants(facts), strict=True):
            rank = max(math.ceil(order * view.size), 1)
            target = Target(Fraction(rank - 1), Fraction(rank))
            nodes.append(Node(view, 0, view.points - 1, 0, view.size, target, c, 1, self.reach(facts)))
        view.refine(node.reads() for node in nodes)
        return NodesLaw(tuple(nodes))

    def denominators(self, facts: Facts) -> Sequence[int]:
        """Distances are whole numbers of records."""
        return [1] * len(facts.orders)

    def brackets(self, outcome: Outcome, facts: Facts) -> Sequence[tuple[Fraction, Fraction]]:
        """The points that counted for the answer, with those of the radius."""
        away, (least, most) = self.reach(facts) * facts.grid.step, self.ends(facts)
        pairs = super().brackets(outcome, facts)
        return [(max(low - away, least), min(high + away, most)) for low, high in pairs]

    def beyond(self, facts: Facts) -> str:
        """What the rank error leaves out, in words."""
        away = self.reach(facts) * facts.grid.step
        return f" (of a value at most {compact(away)} away)" if away else ""

    def words(self, facts: Facts) -> str:
        """The mechanism in words."""
        smooth = f", smoothed over {self.reach(facts):,} points" if self.reach(facts) else ""
        return f"inverse sensitivity on {facts.grid.cells:,} points for each quantile{smooth}"
