"""The private side of tilting: exact integer sums of features, released with exact noise."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato.checks import keep, whole
from sfumato.data.dataset import Dataset
from sfumato.errors import InvalidParameter
from sfumato.grid import Floats, Ints
from sfumato.laws import Law
from sfumato.mechanisms import Additive, Sensitivity, additive
from sfumato.privacy import Budget, Event, Neighbours, PureDP, check_neighbours
from sfumato.public_data.feature_map import FeatureMap, Norm
from sfumato.query import Cost, Outcome

# What one row adds to the count, as a part of the bound on its features. The count has a noise of its own,
# which matters little where features are centred; docs/proofs/public-data.md has the trade.
COUNT_PARTS: dict[Norm, int] = {"l1": 4, "l2": 2}


def norm_for(budget: Budget) -> Norm:
    """Which length of a row's features is bounded: l1 for Laplace noise, l2 for Gaussian noise."""
    return "l1" if isinstance(budget, PureDP) else "l2"


@dataclass(frozen=True, kw_only=True)
class FeatureSums:
    r"""The sums of features over the private rows, released with noise; with a count where that is private.

    Guarantee:
        Costs at most `budget`. With the bound :math:`K` on a row's integer vector, the sums move by at most
        :math:`2K` when a row is replaced; with a count in steps of :math:`c` they move by at most
        :math:`K + c` in L1, and :math:`\sqrt{K^2+c^2}` in L2, when a row is added or removed.
        Proof: docs/proofs/public-data.md.

    Args:
        map: the fitted map from rows to integer vectors.
        budget: what the release may cost; of its kind follows the norm, which must be that of the map.
        neighbours: what one person can change.
        rows: the public number of private rows under substitution, None where it is private.

    >>> from sfumato.public_data.features import Features
    >>> table = Dataset({"x": [0.0, 1.0, 4.0]}, unit="row", neighbours="substitution")
    >>> fitted = Features(numbers=["x"]).fitted(table, norm="l1", steps=1000)
    >>> sums = FeatureSums(map=fitted, budget=PureDP(0.5), neighbours="substitution", rows=3)
    >>> sums.sensitivity, sums.event.pure_epsilon
    (Sensitivity(l1=2000, l2_squared=4000000, coordinates=1, one_vector=True), Fraction(1, 2))
    """

    name: ClassVar[str] = "weights"

    map: FeatureMap
    budget: Budget
    neighbours: Neighbours
    rows: int | None

    def __post_init__(self) -> None:
        check_neighbours(self.neighbours)
        if self.map.norm != norm_for(self.budget):
            raise InvalidParameter(f"norm must be {norm_for(self.budget)!r}, got norm={self.map.norm!r}")
        if (self.rows is None) == (self.neighbours == "substitution"):
            raise InvalidParameter(f"rows must be given under substitution alone, got rows={self.rows}")
        if self.rows is not None:
            keep(self, rows=whole("rows", self.rows, least=1, most=2**40))

    @property
    def column(self) -> str:
        """The columns that are read, for the ledger."""
        return column_words(self.map)

    @property
    def counted(self) -> int:
        """What one row adds to the count, in steps of the lattice; 0 where the number of rows is public."""
        return 0 if self.rows is not None else self.map.steps // COUNT_PARTS[self.map.norm]

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person can move the integers."""
        steps, coordinates = self.map.steps, len(self.map.coordinates)
        if self.rows is not None:
            # An l1 length is never below the l2 length.
            return Sensitivity(2 * steps, 4 * steps**2, coordinates)
        return Sensitivity(steps + self.counted, steps**2 + self.counted**2, coordinates + 1)

    @property
    def mechanism(self) -> Additive:
        """The noise on the integers."""
        return additive(self.budget, self.sensitivity, "laplace" if self.map.norm == "l1" else "gaussian")

    @property
    def event(self) -> Event:
        """What the release costs."""
        return self.mechanism.event

    @property
    def cost(self) -> Cost:
        """What the release costs, as a budget."""
        return self.budget

    def look(self, data: Dataset) -> Ints:
        """Read the data: the exact sums, after the count where that is private."""
        total = np.zeros(len(self.map.coordinates), dtype=np.int64)
        rows = 0
        for _, block in self.map.blocks(data):
            total += block.sum(axis=0)
            rows += len(block)
        return total if self.rows is not None else np.concatenate([[rows * self.counted], total])

    def law(self, view: Ints) -> Law:
        """The law of the integers that are released."""
        return self.mechanism.law(view)

    def read(self, outcome: Outcome) -> "Moments":
        """The means of the features by the released integers, and how the noise moves them."""
        spread = math.sqrt(self.mechanism.noise.variance)
        if self.rows is not None:
            size, sums, error = float(self.rows), outcome, 0.0
        else:
            size, sums, error = outcome[0] / self.counted, outcome[1:], spread / self.counted
        divisor = self.map.steps * max(size, 1.0)
        means = np.array([total / divisor for total in sums])
        # One column for each independent noise; that of the count moves all means at once.
        moves = np.eye(len(means)) / divisor
        if self.rows is None:
            moves = np.column_stack([-means / (self.counted * max(size, 1.0)), moves])
        return Moments(means, moves, size, error)


@dataclass(frozen=True, eq=False)
class Moments:
    """Released means of features: how each unit of noise moves them, the number of rows and its error."""

    means: Floats
    moves: Floats
    rows: float
    rows_error: float


def column_words(fitted: FeatureMap) -> str:
    """The columns of a map for a ledger, which keeps short texts."""
    names = [name for name, _ in (*fitted.numbers, *fitted.categories)]
    words = ", ".join(names)
    return words if len(words) <= 120 else f"{len(names)} columns"
