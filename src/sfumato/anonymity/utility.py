"""What generalisation loses: the usual metrics of a partition of a table's rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.anonymity.class_counts import ClassCounts
from sfumato.anonymity.measures import fact_lines, html_table
from sfumato.anonymity.partition import Partition
from sfumato.anonymity.rows import Rows
from sfumato.checks import normal, readable, whole
from sfumato.errors import InvalidParameter
from sfumato.release import printable


@dataclass(frozen=True, kw_only=True)
class Utility:
    r"""What a partition of rows loses against the table that it was made from.

    Guarantee:
        Numbers about one table, by their definitions, to the rounding of float64; `discernibility` is exact.
        A suppressed row counts as fully lost in each of them but `average_class_size`. They say nothing of
        privacy.

    Args:
        rows: the number of rows, suppressed ones included.
        suppressed: the number of suppressed rows.
        classes: the number of classes of kept rows.
        discernibility: :math:`\sum_E |E|^2 + n \cdot` suppressed rows.
        average_class_size: kept rows over classes over k, 1 at best; None if no row is kept.
        losses: the average normalised certainty penalty of each quasi-identifier, from 0 to 1.
        gcp: the average of the penalties over all cells.
        weighted_loss: their average with the weights given.
        precision: 1 minus the average of level over height; None if classes have no levels.
        height: the sum of the levels; None likewise.
        classification: for each sensitive column the share of rows that do not have the most frequent value
            of their class.

    References:
        [BA05] for discernibility, [LDR06] for the class size, [XWPWSF06] for the penalty, [Swe02] for the
        precision, [Iye02] for the classification metric.

    >>> from sfumato.anonymity.partition import as_it_is
    >>> from sfumato.anonymity.rows import rows_of
    >>> rows = rows_of({"age": [31, 31, 58, 58]}, ["age"])
    >>> print(utility(rows, as_it_is(rows)))
    4 of 4 rows kept in 2 classes
      average loss of a cell        0
      discernibility                8
      class size over k             1
    """

    rows: int
    suppressed: int
    classes: int
    discernibility: int
    average_class_size: float | None
    losses: tuple[tuple[str, float], ...]
    gcp: float
    weighted_loss: float
    precision: float | None
    height: int | None
    classification: tuple[tuple[str, float], ...]

    def to_dict(self) -> dict[str, Any]:
        """The numbers in JSON's types."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return plain | {"losses": dict(self.losses), "classification": dict(self.classification)}

    def facts(self) -> list[tuple[str, str]]:
        """The numbers with their names, for people."""
        found = [("average loss of a cell", readable(self.gcp))]
        if len(self.losses) > 1:
            found += [(f"loss of {printable(name)}", readable(loss)) for name, loss in self.losses]
        found.append(("discernibility", f"{self.discernibility:,}"))
        if self.average_class_size is not None:
            found.append(("class size over k", readable(self.average_class_size)))
        if self.precision is not None:
            found.append(("precision", readable(self.precision)))
        modes = ((printable(name), readable(share)) for name, share in self.classification)
        return [*found, *((f"not the mode of {name}", share) for name, share in modes)]

    def _title(self) -> str:
        classes = f"{self.classes:,} class{'es' * (self.classes != 1)}"
        return f"{self.rows - self.suppressed:,} of {self.rows:,} rows kept in {classes}"

    def __str__(self) -> str:
        return "\n".join([self._title(), *fact_lines(self.facts())])

    def _repr_html_(self) -> str:
        return f"<div>{html_table(self._title(), self.facts())}</div>"


def utility(
    rows: Rows, partition: Partition, *, k: int | None = None, weights: Mapping[str, object] | None = None
) -> Utility:
    """Finds what a partition loses against the rows that it was made from.

    Guarantee:
        The definitions of `Utility`; the same whatever the order of the rows. No differential privacy.

    Args:
        rows: the coded columns of the table.
        partition: the classes of its rows.
        k: the k that was asked for, for the class size; the size of the smallest class if not given.
        weights: a positive weight for each quasi-identifier, for the weighted loss; 1 if not given.

    Raises:
        InvalidParameter: the partition is of other rows, or k or a weight breaks a rule.

    >>> from sfumato.anonymity.partition import as_it_is
    >>> from sfumato.anonymity.rows import rows_of
    >>> rows = rows_of({"age": [31, 31, 58, 58]}, ["age"])
    >>> utility(rows, as_it_is(rows)).discernibility
    8
    """
    if partition.n != rows.n or len(partition.losses) != len(rows.quasi):
        raise InvalidParameter(f"partition must be of the {rows.n:,} rows given, got one of {partition.n:,}")
    names = [coded.name for coded in rows.quasi]
    heavy = np.array([normal(f"weights[{name!r}]", (weights or {}).get(name, 1)) for name in names])
    unknown = sorted(set(weights or {}) - set(names))
    if unknown:
        raise InvalidParameter(f"weights must be of quasi-identifiers, got {unknown[0]!r}")
    sizes, gone, n = partition.sizes, partition.suppressed, partition.n
    losses = np.array([(float(sizes @ loss) + gone) / n for loss in partition.losses])
    kept = n - gone
    least = int(sizes.min(initial=n)) if k is None else whole("k", k, least=1, most=2**31 - 1)
    return Utility(
        rows=n,
        suppressed=gone,
        classes=partition.count,
        discernibility=sum(size * size for size in sizes.tolist()) + n * gone,
        average_class_size=kept / (partition.count * least) if kept else None,
        losses=tuple(zip(names, losses.tolist(), strict=True)),
        gcp=float(losses.mean()),
        weighted_loss=float(losses @ heavy / heavy.sum()),
        precision=_precision(partition),
        height=None if partition.levels is None else sum(partition.levels),
        classification=tuple((coded.name, _off_mode(partition, coded)) for coded in rows.sensitive),
    )


def _precision(partition: Partition) -> float | None:
    if partition.levels is None or partition.heights is None:
        return None
    # A column that cannot be generalised loses nothing while its row is kept.
    shares = [a / b if b else 0.0 for a, b in zip(partition.levels, partition.heights, strict=True)]
    gone, n = partition.suppressed, partition.n
    return 1 - ((n - gone) * sum(shares) / len(shares) + gone) / n


def _off_mode(partition: Partition, coded: Any) -> float:
    kept = np.flatnonzero(partition.classes >= 0)
    counts = ClassCounts.of(partition.classes[kept], partition.count, coded.codes[kept], len(coded.values))
    return (partition.n - int(counts.largest.sum())) / partition.n
