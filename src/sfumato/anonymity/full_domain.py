"""The best levels of hierarchies for all rows at once: an optimal search with a suppression limit.

Each metric has a lower bound that never falls when levels rise. The search looks at the open levels with the
least bound first, and ends when no open bound is below the best that was found, whatever the goals are.

Levels that suppress too many rows by the goals for which that number never rises with the levels
(`Judged.barred`) close all below them. After each such find the search climbs towards the top by bisection,
to close as many as it can [EEJ09].

With suppression no metric but the height is monotone: higher levels may bring back rows that were suppressed.
So all levels that serve are candidates, not only the minimal ones, and only a bound closes them.
Proofs: docs/proofs/anonymity.md.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.accuracy.progress import steps
from sfumato.anonymity.goals import Checker, Goal
from sfumato.anonymity.lattice import Judged, Lattice, Node
from sfumato.anonymity.levels import Hierarchy
from sfumato.anonymity.partition import Partition
from sfumato.anonymity.rows import Rows
from sfumato.checks import one_of
from sfumato.errors import InvalidParameter

Metric = Literal["loss", "discernibility", "height"]
METRICS: tuple[Metric, ...] = ("loss", "discernibility", "height")

MOST_NODES = 200_000
# Sums of losses in float64 that differ by less are ties.
_TIE = 1e-10


def full_domain(
    rows: Rows,
    hierarchies: Mapping[str, Hierarchy],
    goals: Checker | Sequence[Goal],
    *,
    suppression: object = 0,
    metric: Metric = "loss",
) -> Partition:
    r"""The classes of the best levels: one level for each column, the same for all rows.

    Rows in classes that miss a goal are suppressed, at most the share `suppression` of all. Among all levels
    for which that is so, none is better by the metric: "loss" is the average normalised certainty penalty of
    all cells, those of suppressed rows 1; "discernibility" is :math:`\sum |E|^2 + n s` over kept classes E
    and s suppressed rows; "height" is the sum of the levels. Ties go to the least loss, then to the fewest
    suppressed rows, then to the lowest levels of the first columns.

    Guarantee:
        Every class meets every goal. The levels are optimal, and do not depend on the order of the rows. This
        is no differential privacy.

    Args:
        rows: the coded table.
        hierarchies: for each column by name; a column without one has two levels, its values and "*".
        goals: what each class must have.
        suppression: the largest share of rows that may be suppressed, in [0, 1]; one row at least is kept.
        metric: "loss", "discernibility" or "height".

    Raises:
        InvalidParameter: no levels serve, there are too many of them, or values are not in a hierarchy.

    References:
        [EEJ09] for the search by bisection, [Sam01] for the lattice of levels, [LDR05] for pruning.

    >>> from sfumato.anonymity.goals import KAnonymity
    >>> from sfumato.anonymity.hierarchies import Ranges
    >>> from sfumato.anonymity.rows import rows_of
    >>> rows = rows_of({"age": [21, 23, 34, 38, 39, 71]}, ["age"])
    >>> found = full_domain(rows, {"age": Ranges(width=10)}, [KAnonymity(2)], suppression=0.2)
    >>> found.labels, found.suppressed, found.levels
    ((('[20, 30)', '[30, 40)'),), 1, (1,))
    """
    one_of("metric", metric, METRICS)
    lattice = Lattice(rows, hierarchies, goals, suppression)
    if lattice.count > MOST_NODES:
        raise InvalidParameter(
            f"hierarchies must have at most {MOST_NODES} combinations of levels, got {lattice.count}: "
            "give fewer levels, or use datafly"
        )
    best = _Search(lattice, metric).best()
    if best is None:
        raise lattice.refused()
    return lattice.partition(best.node)


class _Search:
    def __init__(self, lattice: Lattice, metric: Metric) -> None:
        self.lattice, self.metric = lattice, metric
        shape = tuple(height + 1 for height in lattice.heights)
        self.top: Node = lattice.heights
        # The climb takes the cheapest rise of a column: what is barred there lies above most that is.
        self.costs = lattice.mean_losses if metric == "loss" else lattice.log_pairs
        # Nothing that serves has a metric below this; infinity where nothing is left to find.
        self.bound = self._first_bounds(shape)
        # 1 where levels are known not to be barred, -1 where they are known to be.
        self.known = np.zeros(shape, dtype=np.int8)
        self.found: Judged | None = None
        # Nothing above levels that serve is better: the metric rises, and no row comes back.
        self.rising = lattice.most == 0 or metric == "height"

    def best(self) -> Judged | None:
        for _ in steps(self.lattice.count, "searching levels"):
            node = self._next()
            if node is None:
                break
            if self._barred(node):
                self._climb(node)
        return self.found

    def _first_bounds(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        total = np.zeros(shape)
        if self.metric == "discernibility":
            return total
        width = len(shape)
        for j, losses in enumerate(self.lattice.mean_losses):
            column = np.arange(shape[j]) if self.metric == "height" else losses / width
            total += column.reshape([-1 if i == j else 1 for i in range(width)])
        return total

    def _next(self) -> Node | None:
        place = int(np.argmin(self.bound))
        least = float(self.bound.flat[place])
        if not np.isfinite(least) or (self.found is not None and least > self._key(self.found)[0] + _TIE):
            return None
        return tuple(int(i) for i in np.unravel_index(place, self.bound.shape))

    def _barred(self, node: Node) -> bool:
        """Looks at levels, and tells whether these and all below them suppress too many rows."""
        judged = self.lattice.judged(node)
        above = tuple(slice(level, None) for level in node)
        below = tuple(slice(None, level + 1) for level in node)
        if self.metric == "discernibility":
            np.maximum(self.bound[above], judged.pairs, out=self.bound[above])
        self.bound[node] = np.inf
        serves = self.lattice.serves(judged.suppressed)
        if serves and (self.found is None or self._key(judged) < self._key(self.found)):
            self.found = judged
        if serves and self.rising:
            self.bound[above] = np.inf
        if self.lattice.serves(judged.barred):
            self.known[above] = 1
            return False
        self.known[below] = -1
        self.bound[below] = np.inf
        return True

    def _climb(self, node: Node) -> None:
        """Bisects a chain from barred levels to the top, to close all below the last of them."""
        chain = self._chain(node)
        low, high = 0, len(chain)
        while high - low > 1:
            middle = (low + high) // 2
            known = int(self.known[chain[middle]])
            if known == -1 or (known == 0 and self._barred(chain[middle])):
                low = middle
            else:
                high = middle

    def _chain(self, node: Node) -> list[Node]:
        """One level at a time to the top, by the column that then costs least."""
        chain = [node]
        while chain[-1] != self.top:
            here = chain[-1]
            rises = [
                (float(self.costs[j][level + 1] - self.costs[j][level]), j)
                for j, level in enumerate(here)
                if level < self.top[j]
            ]
            raised = min(rises)[1]
            chain.append(tuple(level + (j == raised) for j, level in enumerate(here)))
        return chain

    def _key(self, judged: Judged) -> tuple[float, float, int, Node]:
        loss = round(judged.loss, 10)
        value = {
            "loss": loss,
            "discernibility": float(judged.discernibility),
            "height": float(sum(judged.node)),
        }[self.metric]
        return value, loss, judged.suppressed, judged.node
