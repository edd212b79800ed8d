"""What a table is: how large its classes are, how diverse and how close to the whole in sensitive values."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, inf, isinf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.class_counts import ClassCounts
from sfumato.anonymity.linkage import Linkage, linkage_of
from sfumato.anonymity.partition import class_sizes, classes_of
from sfumato.anonymity.released import columns_in, content_codes, eager
from sfumato.anonymity.risk import Risk, class_histogram
from sfumato.anonymity.rows import Coded, Rows, rows_of
from sfumato.checks import readable
from sfumato.errors import InvalidParameter
from sfumato.release import printable

# Recursive diversity is told for places up to this one.
MOST_PLACES = 10


@dataclass(frozen=True, kw_only=True)
class SensitiveMeasures:
    r"""What the classes of a table tell of one sensitive column, each the worst over all classes.

    Guarantee:
        With the share :math:`q_v` of a value in a class and :math:`p_v` in the table, every number is that of
        its definition, to the rounding of float64; `distinct` is exact. None is differential privacy.

    Args:
        column: the name of the column.
        distinct: the least number of values in a class, a null being a value of its own.
        entropy: the least exponential of the entropy, a real number: :math:`\exp(-\sum q_v \log q_v)`.
        recursive: pairs (l, c): classes are recursively (c', l)-diverse for every c' above c, and not for c.
        closeness_ordered: the largest earth mover's distance along the order of the values; None for text and
            booleans, which have no order.
        closeness_equal: the largest distance where all values are equally far apart.
        alpha: the largest share of one value in a class.
        basic_beta: the largest relative gain :math:`(q_v - p_v) / p_v`.
        enhanced_beta: the same if no gain of a value is above :math:`-\log p_v`; else infinity, as no number
            would do.
        delta: the largest :math:`|\log(q_v / p_v)|`; infinity if a class lacks a value of the table.
        delta_present: the same over values that a class has.

    References:
        [MKGV07] for diversity, [LLV07] for closeness, [WLFW06] for alpha, [CK12] for beta, [BS08] for delta.

    >>> table = {"sex": ["f", "f", "m", "m"], "ill": ["flu", "flu", "flu", "asthma"]}
    >>> found = measure(table, quasi=["sex"], sensitive=["ill"]).column("ill")
    >>> found.distinct, found.alpha, found.closeness_equal
    (1, 1.0, 0.25)
    """

    column: str
    distinct: int
    entropy: float
    recursive: tuple[tuple[int, float], ...]
    closeness_ordered: float | None
    closeness_equal: float
    alpha: float
    basic_beta: float
    enhanced_beta: float
    delta: float
    delta_present: float

    @property
    def closeness(self) -> float:
        """The distance that fits the column: along the order if it has one."""
        return self.closeness_equal if self.closeness_ordered is None else self.closeness_ordered

    def to_dict(self) -> dict[str, Any]:
        """The numbers in JSON's types; None stands for infinity."""
        plain = {name: _finite(getattr(self, name)) for name in self.__dataclass_fields__}
        return plain | {"recursive": {str(place): times for place, times in self.recursive}}

    def facts(self) -> list[tuple[str, str]]:
        """The numbers with their names, for people."""
        ordered = [] if self.closeness_ordered is None else [("along the order", self.closeness_ordered)]
        distances = [*ordered, ("at equal distances", self.closeness_equal)]
        return [
            ("values, l", f"{self.distinct:,}"),
            ("exp of the entropy, l", readable(self.entropy)),
            *((f"c for recursive l = {place}", f"above {readable(c)}") for place, c in self.recursive),
            *((f"distance {words}, t", readable(distance)) for words, distance in distances),
            ("share of one value, alpha", readable(self.alpha)),
            ("relative gain, basic beta", readable(self.basic_beta)),
            ("and enhanced beta", _or_none(self.enhanced_beta)),
            ("log ratio, delta", _or_none(self.delta)),
        ]


@dataclass(frozen=True, kw_only=True)
class Measures:
    """What a table is, as it is: k, its classes, its risks, and its sensitive columns.

    Guarantee:
        Classes are the rows that show the same in all quasi-identifiers; null is a value of its own. k is
        the number of rows of the smallest class, exactly. The numbers describe the table alone: no
        differential privacy, and nothing about other tables that could be joined to it.

    Args:
        rows: the number of rows.
        classes: the number of classes.
        k: the number of rows of the smallest class.
        histogram: pairs (size, how many classes have it), by size.
        sensitive: a record for each sensitive column.
        linkage: which rows the other columns single out; None where they were not looked at.

    >>> print(measure({"age": [31, 31, 58], "sex": ["f", "f", "m"]}, quasi=["age", "sex"]))
    3 rows in 2 classes, k = 1
      rows alone in their class     1
      highest risk of a row         1
      average risk of a row         0.666667
    """

    rows: int
    classes: int
    k: int
    histogram: tuple[tuple[int, int], ...]
    sensitive: tuple[SensitiveMeasures, ...] = ()
    linkage: Linkage | None = None

    @property
    def risk(self) -> Risk:
        """The risks that rows are picked out."""
        return Risk(histogram=self.histogram)

    def column(self, name: str) -> SensitiveMeasures:
        """What was found of a sensitive column."""
        for found in self.sensitive:
            if found.column == name:
                return found
        listed = ", ".join(repr(found.column) for found in self.sensitive) or "none"
        raise InvalidParameter(
            f"name must be of a sensitive column that was measured ({listed}), got {name!r}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers in JSON's types."""
        found = {
            "rows": self.rows,
            "classes": self.classes,
            "k": self.k,
            "histogram": [list(pair) for pair in self.histogram],
            "risk": self.risk.to_dict(),
            "sensitive": {found.column: found.to_dict() for found in self.sensitive},
        }
        return found if self.linkage is None else found | {"linkage": self.linkage.to_dict()}

    def facts(self) -> list[tuple[str, str]]:
        """The numbers of the classes with their names, for people."""
        risk = self.risk
        return [
            ("rows alone in their class", f"{risk.uniques:,}"),
            ("highest risk of a row", readable(risk.highest)),
            ("average risk of a row", readable(risk.average)),
        ]

    def _title(self) -> str:
        rows, classes = f"{self.rows:,} row{'s' * (self.rows != 1)}", f"class{'es' * (self.classes != 1)}"
        return f"{rows} in {self.classes:,} {classes}, k = {self.k:,}"

    def __str__(self) -> str:
        lines = [self._title(), *fact_lines(self.facts())]
        for title, facts in self._parts():
            lines += [f"  {title}:", *("  " + line for line in fact_lines(facts))]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        tables = [(self._title(), self.facts()), *self._parts()]
        return f"<div>{''.join(html_table(title, facts) for title, facts in tables)}</div>"

    def _parts(self) -> list[tuple[str, list[tuple[str, str]]]]:
        parts = [(f"{printable(found.column)}, the worst class", found.facts()) for found in self.sensitive]
        return parts if self.linkage is None else [*parts, *self.linkage.parts()]


def measure(table: Any, *, quasi: Sequence[str], sensitive: Sequence[str] = ()) -> Measures:
    """Measures the anonymity of a table as it is: k, diversity, closeness, risks, and what others single out.

    Guarantee:
        Numbers about this table alone, with the definitions of `Measures` and `SensitiveMeasures`. They are
        computed from the data without noise and are for the one who holds them: no differential privacy.

    Args:
        table: a pandas, Polars or PyArrow table, or a mapping of arrays; a lazy frame of Polars is collected.
        quasi: the columns that others may know of a person.
        sensitive: the columns that nobody should learn of a person. Which rows these and all columns without
            a role single out is in `linkage`.

    Raises:
        InvalidParameter: a column is not there or named twice, the table is empty, a number is infinite.
        SchemaMismatch: a column holds no numbers, booleans, text or dates, or mixes them.
        NotSupported: the table lies in an engine.

    >>> measure({"age": [31, 31, 58, 58]}, quasi=["age"]).k
    2
    """
    rows = rows_of(table, quasi, sensitive)
    sizes = [len(coded.values) for coded in rows.quasi]
    classes, keys = classes_of([coded.codes for coded in rows.quasi], sizes)
    given = eager(table)
    known = {coded.name: coded.codes for coded in rows.sensitive}
    others = {
        name: known[name] if name in known else content_codes(given, name)
        for name, _ in columns_in(given)
        if name not in quasi
    }
    roles = {name: "sensitive" if name in known else "none" for name in others}
    return replace(measures_of(rows, classes, len(keys)), linkage=linkage_of(classes, others, roles))


def measures_of(rows: Rows, classes: NDArray[Any], count: int) -> Measures:
    """Measures of the rows of classes 0 to count - 1; the others, of class -1, count as not there."""
    sizes = class_sizes(classes, count)
    kept = np.flatnonzero(classes >= 0)
    histogram = class_histogram(sizes)
    held = [
        _sensitive(coded, classes[kept], count, coded.codes[kept]) for coded in rows.sensitive if len(kept)
    ]
    return Measures(
        rows=len(kept),
        classes=int(np.count_nonzero(sizes)),
        k=histogram[0][0] if histogram else 0,
        histogram=histogram,
        sensitive=tuple(held),
    )


def _sensitive(coded: Coded, classes: NDArray[Any], count: int, codes: NDArray[Any]) -> SensitiveMeasures:
    # Only values of these rows: the others may have been on suppressed rows.
    codes, held = classes_of([codes], [len(coded.values)])
    found = ClassCounts.of(classes, count, codes, len(held))
    total = class_sizes(codes, len(held))
    rows = int(total.sum())
    distinct = int(found.distinct.min())
    expected = found.sizes[found.owners] * total[found.codes].astype(np.float64)
    # How many times as frequent a value is in its class as in the table.
    lift = found.counts * float(rows) / expected
    limit = -np.log(total[found.codes] / rows)
    gain = lift - 1
    beta = max(float(gain.max()), 0.0)
    present = float(np.abs(np.log(lift)).max())
    return SensitiveMeasures(
        column=coded.name,
        distinct=distinct,
        entropy=max(1.0, exp(float(found.entropies.min()))),
        recursive=tuple(
            (place, float((found.largest / found.without_top(place - 1)).max()))
            for place in range(2, min(distinct, MOST_PLACES) + 1)
        ),
        closeness_ordered=_distance(found, total, ordered=True) if coded.ordered else None,
        closeness_equal=_distance(found, total, ordered=False),
        alpha=float((found.largest / found.sizes).max()),
        basic_beta=beta,
        enhanced_beta=inf if bool(np.any((gain > limit) & (gain > 0))) else beta,
        delta=present if distinct == len(held) else inf,
        delta_present=present,
    )


def _distance(found: ClassCounts, total: NDArray[np.int64], *, ordered: bool) -> float:
    moved, scale = found.moved(total, ordered=ordered)
    distances = np.asarray(moved / (found.sizes * float(total.sum()) * scale), dtype=np.float64)
    return float(distances.max())


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and isinf(value) else value


def _or_none(value: float) -> str:
    return "no number will do" if isinf(value) else readable(value)


def fact_lines(facts: Sequence[tuple[str, str]]) -> list[str]:
    """Facts as lines of text, their names padded to one width."""
    width = max(28, *(len(name) for name, _ in facts))
    return [f"  {name:<{width}}  {text}" for name, text in facts]


def html_table(title: str, facts: Sequence[tuple[str, str]]) -> str:
    """Facts as a small table of HTML."""
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{html.escape(text)}</td></tr>" for name, text in facts
    )
    return f"<b>{html.escape(title)}</b><table><tbody>{rows}</tbody></table>"
