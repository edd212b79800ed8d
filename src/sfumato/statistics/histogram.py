"""How many rows in each public bin or category."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sfumato.checks import Number, checked_confidence, keep, shown, whole
from sfumato.data.column import Category, Column, checked_categories
from sfumato.data.counts import Counts, count_categories
from sfumato.data.field import Field
from sfumato.data.moments import public_text
from sfumato.errors import InvalidParameter, MissingBounds, NotSupported
from sfumato.grid import Edges, Grid, Ints, as_edges
from sfumato.laws import Clamped, Law
from sfumato.mechanisms import Additive, Sensitivity
from sfumato.query import Interval, Outcome
from sfumato.statistics.statistic import Statistic, checked_bounds

MAX_BINS = 2**20
NO_CELLS = (
    "bins, edges or categories must be given: they are public and never read from the data; "
    "text needs its public list of categories, however many values it has"
)


@dataclass(frozen=True, kw_only=True)
class Histogram(Statistic):
    r"""The number of values in each public bin or category.

    Guarantee:
        Exactly the cost stated. A record is in at most one cell: one count moves by 1 under add-remove, two
        under substitution. Two bins with a public total need one count only. Proof: docs/proofs/histogram.md.

    Args:
        bins: how many equal bins divide `bounds`.
        bounds: (lower, upper) of the bins; values outside are counted in the end bins.
        edges: bins of any widths instead, as their increasing edges.
        categories: the public categories instead of bins.
        other: whether values that are no listed category are counted together, last.

    >>> from sfumato.privacy import PureDP
    >>> query = Histogram(budget=PureDP(1), neighbours="add-remove", categories=("a", "b"))
    >>> query.labels(), query.error(100, 0.95)
    (('a', 'b'), 3.0)
    """

    name: ClassVar[str] = "histogram"

    bins: int | None = None
    bounds: tuple[Number, Number] | None = None
    edges: Sequence[Number] | None = None
    categories: Sequence[Category] | None = None
    other: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [name for name in ("bins", "edges", "categories") if getattr(self, name) is not None]
        if len(given) > 1:
            raise InvalidParameter(
                f"only one of bins, edges and categories may be given, got {' and '.join(given)}"
            )
        if self.bins is not None:
            keep(self, bins=whole("bins", self.bins, least=1, most=MAX_BINS))
            if self.bounds is not None:  # else a session's schema may still give them
                object.__setattr__(self, "bounds", checked_bounds(self.bounds))
        elif self.bounds is not None:
            raise InvalidParameter("bounds go with bins, not with edges or categories")
        if self.edges is not None:
            object.__setattr__(self, "edges", _checked_edges(self.edges))
        if self.categories is not None:
            object.__setattr__(self, "categories", checked_categories("categories", self.categories))
        if not isinstance(self.other, bool):
            raise InvalidParameter(f"other must be True or False, got other={shown(self.other)}")
        if self.other and given and self.categories is None:
            raise InvalidParameter("other=True goes with categories")

    def declared(self, field: Field) -> dict[str, Any]:
        """Bounds for the bins, or the categories, unless the query has its own."""
        if self.bins is not None:
            return {"bounds": checked_bounds(field.bounds if self.bounds is None else self.bounds)}
        if self.edges is not None or self.categories is not None:
            return {}
        if field.categories is None:
            raise MissingBounds(NO_CELLS)
        return {"categories": field.categories}

    @cached_property
    def grid(self) -> Grid | Edges | None:
        """The numeric bins, if there are."""
        if self.bins is not None:
            return Grid(*checked_bounds(self.bounds), cells=self.bins)
        return Edges(self.edges) if self.edges is not None else None

    @property
    def cells(self) -> int:
        """How many counts are released."""
        if self.grid is None and self.categories is None:
            raise MissingBounds(NO_CELLS)
        return self.grid.cells if self.grid else len(self.categories or ()) + self.other

    @property
    def total_is_public(self) -> bool:
        """Whether the counts add up to the public number of rows: every row must be in some cell."""
        return self.size_is_public and (self.grid is not None or self.other)

    @property
    def _one_count(self) -> bool:
        return self.total_is_public and self.cells == 2

    @cached_property
    def mechanism(self) -> Additive:
        """The noise on each count."""
        if not self.substitution or self._one_count or self.cells == 1:
            sensitivity = Sensitivity.scalar(1)
        else:
            sensitivity = Sensitivity(l1=2, l2_squared=2, coordinates=2)
        return self.noise_on(sensitivity)

    @property
    def described(self) -> str:
        """The mechanism in words."""
        made = (
            "nearest counts that add up to the number of rows"
            if self.total_is_public
            else "negative counts set to 0"
        )
        return f"{self.mechanism.described()} on each count; {made}"

    def check(self, column: Column) -> None:
        """Refuse a column that has no such bins or categories."""
        if self.grid is not None:
            super().check(column)
        else:
            column.require_categories(self.categories or ())

    def look(self, column: Column) -> Ints:
        """The exact counts; under a null rule that keeps nulls, categories count them with `other`."""
        if self.grid is not None:
            return Counts.of(column, self.grid, nulls=self.null_rule).cells
        counts = count_categories(column, self.categories or (), other=self.other)
        if self.other and self.null_rule != "drop":
            counts[-1] += column.rows - counts.sum()
        return counts

    def law(self, view: Ints) -> Law:
        """The law of the noisy counts."""
        if self._one_count:
            return Clamped(self.mechanism.law(int(view[0])), 0, self.rows)
        return self.mechanism.law(view)

    @property
    def parts_drawn(self) -> int:
        """One count for each cell, or one in all if it tells the other."""
        return 1 if self._one_count else self.cells

    def possible(self, outcome: Outcome) -> bool:
        """Whether the outcome is noisy counts, clamped if one tells the other."""
        most = self.public_rows if self._one_count else 2**60
        least = 0 if self._one_count else -(2**60)
        return super().possible(outcome) and all(least <= part <= most for part in outcome)

    def value(self, outcome: Outcome) -> Ints:
        """The released counts: non-negative, and adding up to the number of rows where that is public."""
        if self._one_count:
            (first,) = outcome
            return np.array([first, self.public_rows - first])
        noisy = np.array(outcome, dtype=np.int64)
        return nearest_counts(noisy, self.public_rows) if self.total_is_public else np.maximum(noisy, 0)

    def interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Where each of the data's counts lies, one at a time; the released count is inside."""
        radius, released = int(self.error(0, confidence)), self.value(outcome)
        center = released if self._one_count else np.array(outcome, dtype=np.int64)
        most = np.iinfo(np.int64).max if self.rows is None else self.rows
        low, high = np.clip(center - radius, 0, most), np.clip(center + radius, 0, most)
        # Counts that were made to add up can leave the range of their own noise: it is widened to them.
        return np.minimum(low, released), np.maximum(high, released)

    def population_interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Refused: counts have no population value."""
        raise NotSupported(
            "population_interval needs a mean, proportion or variance: counts grow with the sample"
        )

    def error(self, rows: int, confidence: float) -> float:
        """How far each noisy count is from the data's, at most, with this confidence for each."""
        return float(self.mechanism.noise.radius(checked_confidence(confidence)))

    def labels(self) -> tuple[str, ...]:
        """The names of the cells."""
        if self.cells and self.grid is None:
            return (
                *(str(category) for category in self.categories or ()),
                *(["other"] if self.other else []),
            )
        edges = [public_text(edge, self.reads) for edge in as_edges(self.grid)]
        last = len(edges) - 2
        return tuple(f"[{edges[i]}, {edges[i + 1]}{']' if i == last else ')'}" for i in range(last + 1))

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """What a reader should know."""
        notes = list(super().notes(outcome))
        if self.grid is not None:
            notes.append("values outside the bins are counted in the end bins")
        if self.error(0, 0.95) >= max(int(self.value(outcome).max()), 1):
            notes.append("the answer is dominated by noise: the noise is as large as the largest count")
        return tuple(notes)


def nearest_counts(noisy: Ints, total: int) -> Ints:
    """The non-negative whole numbers that add up to `total`, nearest to the noisy ones in squared distance.

    >>> nearest_counts(np.array([7, -2, 4]), 10).tolist()
    [7, 0, 3]
    """
    # The projection lowers all by one level and cuts at 0; the level is found on the sorted counts, and in
    # integers, because noise at a small epsilon is beyond what float64 adds exactly.
    ordered = np.sort(noisy)[::-1]
    excess = np.cumsum(ordered) - total
    kept = np.flatnonzero(ordered > excess // np.arange(1, len(ordered) + 1))
    if not len(kept):
        return np.zeros_like(noisy)
    size = int(kept[-1]) + 1
    level, rest = divmod(int(excess[size - 1]), size)
    counts: Ints = np.maximum(noisy - level, 0)
    # A level between two integers lowers `rest` of the counts by one more.
    counts[np.flatnonzero(counts)[size - rest :]] -= 1
    return counts


def _checked_edges(edges: object) -> tuple[Number, ...]:
    if not isinstance(edges, Sequence | np.ndarray) or isinstance(edges, str):
        raise InvalidParameter(f"edges must be increasing numbers, got edges={shown(edges)}")
    return Edges(tuple(edges)).edges
