"""Datafly: a quick and greedy choice of levels."""

from collections.abc import Mapping, Sequence

from sfumato.anonymity.goals import Checker, Goal
from sfumato.anonymity.lattice import Lattice
from sfumato.anonymity.levels import Hierarchy
from sfumato.anonymity.partition import Partition
from sfumato.anonymity.rows import Rows


def datafly(
    rows: Rows,
    hierarchies: Mapping[str, Hierarchy],
    goals: Checker | Sequence[Goal],
    *,
    suppression: object = 0,
) -> Partition:
    """The classes of levels found greedily: the column that shows most values rises, until few rows are left.

    While more than the share `suppression` of all rows are in classes that miss a goal, the column with the
    most distinct labels goes up one level, the first one of equals. Then these rows are suppressed.

    Guarantee:
        Every class meets every goal, and no more rows are suppressed than allowed. The levels need not be the
        best (`full_domain` finds these), and do not depend on the order of the rows. This is no differential
        privacy.

    Args:
        rows: the coded table.
        hierarchies: for each column by name; a column without one has two levels, its values and "*".
        goals: what each class must have.
        suppression: the largest share of rows that may be suppressed, in [0, 1]; one row at least is kept.

    Raises:
        InvalidParameter: the top is reached and too many rows miss a goal, or values are not in a hierarchy.

    References:
        [Swe02] for the method.

    >>> from sfumato.anonymity.goals import KAnonymity
    >>> from sfumato.anonymity.hierarchies import Ranges
    >>> from sfumato.anonymity.rows import rows_of
    >>> rows = rows_of({"age": [21, 23, 34, 38], "sex": ["f", "m", "f", "m"]}, ["age", "sex"])
    >>> found = datafly(rows, {"age": Ranges(width=10)}, [KAnonymity(2)])
    >>> found.levels, found.labels
    ((2, 0), (('[20, 40)', '[20, 40)'), ('f', 'm')))
    """
    lattice = Lattice(rows, hierarchies, goals, suppression)
    node = (0,) * len(lattice.levels)
    while not lattice.serves(lattice.judged(node).suppressed):
        shown = [
            (-len(levels.labels[level]), j)
            for j, (levels, level) in enumerate(zip(lattice.levels, node, strict=True))
            if level < levels.height
        ]
        if not shown:
            raise lattice.refused()
        raised = min(shown)[1]
        node = tuple(level + (j == raised) for j, level in enumerate(node))
    return lattice.partition(node)
