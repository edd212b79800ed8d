"""The sum of a column on a lattice, with its smallest and its largest records, in one pass."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.checks import one_of, whole
from sfumato.data.admission import admit
from sfumato.data.column import CHUNK
from sfumato.data.counts import MAX_ROWS, settle
from sfumato.data.engine_column import EngineColumn
from sfumato.grid import Floats, Ints, Lattice


@dataclass(frozen=True, eq=False)
class Extremes:
    """Lattice points counted from the lower end: their number, their exact sum, the smallest and the largest.

    Private: nothing here may be published without a mechanism. Memory is a few times `keep`.

    >>> lattice = Lattice.over(0, 10, points=10, origin=0)
    >>> found = Extremes.of([7.0, 1.0, 99.0, 4.0], lattice, nulls="lower", keep=2)
    >>> found.total, found.smallest.tolist(), found.largest.tolist()
    (22, [1, 4], [10, 7])
    """

    size: int
    total: int
    smallest: Ints
    largest: Ints

    @classmethod
    def of(cls, values: Any, lattice: Lattice, *, nulls: str, keep: int) -> "Extremes":
        """Round a column to a lattice; nulls become a bound, so that the number of records is that of rows.

        Raises:
            SchemaMismatch: the column does not store numbers.
        """
        one_of("nulls", nulls, ("lower", "upper"))
        whole("keep", keep, least=0, most=MAX_ROWS)
        column = admit(values)
        column.require("integer", "real")
        if isinstance(column, EngineColumn):
            return column.extremes(lattice, "lower" if nulls == "lower" else "upper", keep)
        place = lattice.low if nulls == "lower" else lattice.high
        total, waiting = 0, 0
        pieces: list[Ints] = []
        ends = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        points: Floats = np.empty(CHUNK)
        for chunk in column.chunks():
            point = points[: len(chunk)]
            lattice.locate(chunk, point)
            settle(chunk, point, float(place))
            # The sum of a chunk of whole numbers below 2**37 is exact in float64.
            total += int(point.sum()) - lattice.low * len(chunk)
            pieces.append(point.astype(np.int64) - lattice.low)
            waiting += len(chunk)
            if waiting >= 2 * keep:
                ends, pieces, waiting = _narrowed(ends, pieces, keep), [], 0
        smallest, largest = _narrowed(ends, pieces, keep)
        return cls(column.rows, total, np.sort(smallest), np.sort(largest)[::-1])


def _narrowed(ends: tuple[Ints, Ints], pieces: list[Ints], keep: int) -> tuple[Ints, Ints]:
    """The `keep` smallest and the `keep` largest of what is kept and what is new."""
    low, high = (np.concatenate([end, *pieces]) for end in ends)
    if len(low) <= keep:
        return low, high
    if not keep:
        return low[:0], high[:0]
    return np.partition(low, keep - 1)[:keep], np.partition(high, len(high) - keep)[len(high) - keep :]
