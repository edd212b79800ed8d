"""From a table to an anonymised one: roles and goals in, a table of the same kind out, with what it cost."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.goals import Checker, Goal
from sfumato.anonymity.linkage import CoarsenedColumn, Linkage, linkage_of, listing
from sfumato.anonymity.measures import Measures, measures_of
from sfumato.anonymity.partition import Partition, classes_of
from sfumato.anonymity.released import STAR, Columns, by_content, columns_in, content_codes, eager, released
from sfumato.anonymity.rows import Rows, rows_of
from sfumato.anonymity.settings import ROLES, Settings, goal_words, listed_goals
from sfumato.anonymity.utility import Utility, utility
from sfumato.errors import InvalidParameter
from sfumato.release import printable


@dataclass(frozen=True, kw_only=True, eq=False)
class Anonymized:
    """An anonymised table, with what was done, what it loses and which risks are left.

    Guarantee:
        Every class of `table`, the rows that show the same in all quasi-identifiers, meets every goal of
        `settings`; with `KAnonymity(k)` it has at least k rows. That was checked on `table` itself. It is no
        differential privacy: docs/anonymity.md says what it does not protect.

    Args:
        table: what may be published, a table of the kind that was given.
        settings: what was asked for.
        partition: the class of every row of the table that was given.
        before, after: measures of the two tables.
        utility: what the coarsening loses.
        linkage: which rows the sensitive and kept columns single out, which are published as they are.
        columns: the columns of the table that was given with their kinds, for the plan of a release with
            differential privacy.
        notes: what a reader should know.

    >>> print(anonymize({"age": [31, 33, 58, 59]}, quasi=["age"], k=2))
    4 of 4 rows kept in 2 classes, by mondrian
      rows in the smallest class  2   (before: 1)
      asked for: at least 2 rows in each class
      average loss of a cell      5.36 %
      k-anonymity is not differential privacy: see docs/anonymity.md
    """

    table: Any
    settings: Settings
    partition: Partition
    before: Measures
    after: Measures
    utility: Utility
    linkage: Linkage
    columns: Columns = ()
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows there were."""
        return self.partition.n

    @property
    def removed(self) -> int:
        """How many rows of the table are not in the anonymised one."""
        return self.rows - self.after.rows

    def plot(self, *, title: str = "", width: int = 560) -> Any:
        """The class sizes before and after as an Altair chart."""
        from sfumato.charts.classes import class_sizes

        tables = {"before": dict(self.before.histogram), "after": dict(self.after.histogram)}
        return class_sizes(tables, k=self.settings.k, title=title, width=width)

    def report(self, path: str | os.PathLike[str], *, title: str = "Anonymised table") -> Path:
        """Write one page of HTML with charts, risks, losses and a warning; returns its path."""
        from sfumato.report.anonymity_page import anonymity_html
        from sfumato.whole_files import write_file

        target = Path(path)
        write_file(target, anonymity_html(self, title=title).encode())
        return target

    def to_dict(self) -> dict[str, Any]:
        """What was done and what came of it, without the table, in JSON's types."""
        return {
            "rows": self.rows,
            "kept": self.after.rows,
            "suppressed": self.partition.suppressed,
            "method": self.settings.method,
            "goals": [goal_words(goal) for goal in self.settings.goals],
            "levels": None
            if self.partition.levels is None
            else dict(zip(self.settings.quasi, self.partition.levels, strict=True)),
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "utility": self.utility.to_dict(),
            "linkage": self.linkage.to_dict(),
            "warnings": list(self.linkage.warnings),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        classes = self.after.classes
        lines = [
            f"{self.after.rows:,} of {self.rows:,} rows kept in {classes:,} class{'es' * (classes > 1)}, "
            f"by {self.settings.method}",
            f"  rows in the smallest class  {self.after.k:,}   (before: {self.before.k:,})",
            *(f"  asked for: {printable(goal_words(goal))}" for goal in self.settings.goals),
            f"  average loss of a cell      {100 * self.utility.gcp:.3g} %",
            *(f"  note: {note}" for note in self.notes),
            *(f"  warning: {warning}" for warning in self.linkage.warnings),
            "  k-anonymity is not differential privacy: see docs/anonymity.md",
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def anonymize(
    table: Any,
    *,
    quasi: Sequence[str],
    k: int | None = None,
    goals: Sequence[Goal] = (),
    sensitive: Sequence[str] = (),
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    method: str = "mondrian",
    hierarchies: Mapping[str, Any] | None = None,
    suppression: object = 0,
    suppressed: str = "remove",
    order: str = "sorted",
    metric: str = "loss",
) -> Anonymized:
    """Coarsens the quasi-identifiers of a table until every class of rows meets the goals.

    Every column of the table has one role: `quasi`, `sensitive`, `keep` or `drop`.

    Guarantee:
        Rows that show the same in all quasi-identifiers are a class. Every class of the released table has
        at least k rows and meets every other goal; that is checked on the released table. This is a property
        of the table, not differential privacy: other knowledge, other releases, or a class of one sensitive
        value can still give people away (docs/anonymity.md). The result does not depend on the order of the
        rows; with order="sorted" neither does their place in it.

    Args:
        table: a pandas, Polars or PyArrow table, or a mapping of arrays; a lazy frame of Polars is collected.
            The result is of the same kind; generalised columns are text, others stay as they are.
        quasi: the columns that others may know of a person, which are generalised.
        k: how many rows each class must have, the same as the goal `KAnonymity(k)`.
        goals: more goals; `sensitive` has their columns in any case.
        sensitive: columns that nobody should learn of a person; they are published as they are and measured.
        keep: columns that are published as they are, because nobody knows them of a person. `linkage` of the
            result counts the rows that somebody who knows them after all can find.
        drop: columns that are not published, such as names.
        method: "mondrian" or "mondrian-relaxed" find ranges for each part of the table; "full-domain" finds
            the best levels of hierarchies for all rows at once, "datafly" good ones.
        hierarchies: how each quasi-identifier may be coarsened; trees alone for Mondrian, which needs none.
        suppression: the share of rows that may be suppressed instead; not with Mondrian.
        suppressed: "remove" leaves suppressed rows out; "star" shows "*" in their quasi-identifiers, if they
            meet the goals as a class of their own, and else leaves them out.
        order: "sorted" puts rows in the order of what they show, because the place of a row can tell who it
            is; "kept" keeps the order of the table. An index of pandas is dropped, as it names rows.
        metric: what "full-domain" makes small: "loss", "discernibility" or "height".

    Raises:
        InvalidParameter: a setting breaks a rule, a column is not there or has no role, or nothing meets the
            goals.
        SchemaMismatch: a quasi-identifier or sensitive column holds no numbers, booleans, text or dates.
        NotSupported: the table lies in an engine.

    References:
        [Swe02] for k-anonymity and Datafly, [LDR06] for Mondrian.

    >>> people = {"age": [31, 33, 58, 59], "illness": ["flu", "asthma", "flu", "flu"]}
    >>> anonymize(people, quasi=["age"], sensitive=["illness"], k=2).table
    {'age': ['[31, 33]', '[31, 33]', '[58, 59]', '[58, 59]'], 'illness': ['asthma', 'flu', 'flu', 'flu']}
    """
    listed = listed_goals(k, goals)
    settings = Settings(
        quasi=quasi,  # type: ignore[arg-type]  # reason: made a tuple of names by the class
        goals=listed,
        sensitive=sensitive,  # type: ignore[arg-type]  # reason: as above
        keep=keep,  # type: ignore[arg-type]  # reason: as above
        drop=drop,  # type: ignore[arg-type]  # reason: as above
        method=method,
        hierarchies={} if hierarchies is None else hierarchies,
        suppression=suppression,  # type: ignore[arg-type]  # reason: read exactly by the class
        suppressed=suppressed,
        order=order,
        metric=metric,
    )
    return carried_out(table, settings)


def carried_out(table: Any, settings: Settings, *, stored: Any = None) -> Anonymized:
    """Anonymise by settings; with `stored`, the same rows, cells are released as they are stored there."""
    given = eager(table)
    columns = columns_in(given)
    _require(settings, [name for name, _ in columns])
    rows = rows_of(given, settings.quasi, settings.sensitive)
    checker = Checker(rows, settings.goals)
    names = [name for name, _ in columns if name not in settings.drop]
    coded = {one.name: one.codes for one in rows.sensitive}
    others = {
        name: coded[name] if name in coded else content_codes(given, name)
        for name in names
        if name not in settings.quasi
    }
    partition = _partition(rows, checker, settings, lambda: by_content(others.values(), rows.n))
    places, labels, notes = _shown(partition, checker, settings)
    kept = np.flatnonzero(places >= 0)
    order = kept if settings.order == "kept" else by_content(others.values(), rows.n, places, kept)
    shown = {name: (texts, places) for name, texts in zip(settings.quasi, labels, strict=True)}
    # Where another table leaves, this one is for the test of the goals alone.
    looked = names if stored is None else [*settings.quasi, *settings.sensitive]
    read = released(given, looked, order, shown)
    seen = rows_of(read, settings.quasi, settings.sensitive)
    classes, count = _classes(seen)
    _verify(classes, count, order, rows, checker)
    out = read
    if stored is not None:
        source = eager(stored)
        out = released(source, names, order, shown)
        # Cells that are equal as numbers can differ as they are stored, such as 1.10 and 1.1.
        others |= {name: content_codes(source, name) for name in settings.sensitive}
    coarsened = [
        CoarsenedColumn(one.name, label.codes, one.codes[order])
        for one, label in zip(rows.quasi, seen.quasi, strict=True)
    ]
    return Anonymized(
        table=_lazy_as(table, out),
        settings=settings,
        partition=partition,
        before=measures_of(rows, *_classes(rows)),
        after=measures_of(seen, classes, count),
        utility=utility(rows, partition, k=settings.k),
        linkage=linkage_of(
            classes, {name: codes[order] for name, codes in others.items()}, settings.role_of, coarsened
        ),
        columns=columns,
        notes=notes,
    )


def _require(settings: Settings, names: Sequence[str]) -> None:
    for role in ROLES:
        for name in getattr(settings, role):
            if name not in names:
                raise InvalidParameter(f"{role} must name columns of the table, got {role} with {name!r}")
    roles = settings.role_of
    without = [repr(name) for name in names if name not in roles]
    if without:
        raise InvalidParameter(
            f"quasi, sensitive, keep and drop must name every column of the table; got no role for "
            f"{listing(without)}. Name each in one: drop leaves a column out, keep publishes it as it is"
        )


def _partition(
    rows: Rows, checker: Checker, settings: Settings, order: Callable[[], NDArray[np.int64]]
) -> Partition:
    whole = np.zeros(rows.n, dtype=np.int32)
    if not settings.suppression and not checker.met(whole, 1)[0]:
        # Only whether it is so is told: for k that is the number of rows.
        raise InvalidParameter(
            f"goals must be met by the table as one class, or no coarsening meets them; the table has "
            f"{rows.n:,} row{'s' * (rows.n > 1)}, got: {'; '.join(map(goal_words, settings.goals))}"
        )
    if settings.method.startswith("mondrian"):
        from sfumato.anonymity.mondrian import mondrian

        if settings.method == "mondrian":
            return mondrian(rows, settings.goals, trees=settings.hierarchies)
        # Rows that are equal in all coded columns are parted here, by what else they hold.
        placed = order()
        ordered = Rows(
            *(
                tuple(replace(one, codes=one.codes[placed]) for one in some)
                for some in (rows.quasi, rows.sensitive)
            )
        )
        found = mondrian(ordered, settings.goals, relaxed=True, trees=settings.hierarchies)
        return replace(found, classes=found.classes[np.argsort(placed)])
    if settings.method == "datafly":
        from sfumato.anonymity.datafly import datafly

        return datafly(rows, settings.hierarchies, settings.goals, suppression=settings.suppression)
    from sfumato.anonymity.full_domain import full_domain

    return full_domain(
        rows,
        settings.hierarchies,
        settings.goals,
        suppression=settings.suppression,
        metric=settings.metric,  # type: ignore[arg-type]  # reason: checked by the settings
    )


def _shown(
    partition: Partition, checker: Checker, settings: Settings
) -> tuple[NDArray[np.int32], tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """The class that each row shows, -1 where it is removed; the labels of classes; what to tell of it."""
    classes, labels = partition.classes, partition.labels
    if settings.suppressed == "remove" or not partition.suppressed:
        return classes, labels, ()
    stars = [place for place, row in enumerate(zip(*labels, strict=True)) if set(row) == {STAR}]
    place = stars[0] if stars else partition.count
    places = np.where(classes < 0, place, classes).astype(np.int32)
    # A table of a few rows of stars would show that these few are unlike all others.
    if not checker.met(np.where(places == place, 0, -1), 1)[0]:
        words = f"{partition.suppressed:,} suppressed rows do not meet the goals as a class of stars: removed"
        return classes, labels, (words,)
    return places, labels if stars else tuple((*texts, STAR) for texts in labels), ()


def _verify(
    classes: NDArray[np.int32], count: int, order: NDArray[np.int64], rows: Rows, checker: Checker
) -> None:
    """Test the goals on the classes of the table that leaves, by what its cells show and nothing else."""
    places = np.full(rows.n, -1, dtype=np.int64)
    places[order] = classes
    if not checker.met(places, count).all():
        raise AssertionError("a class of the anonymised table does not meet the goals")


def _classes(rows: Rows) -> tuple[NDArray[np.int32], int]:
    """The class of each row and the number of classes."""
    columns = [one.codes for one in rows.quasi]
    first = np.zeros(rows.n, dtype=np.bool_)
    first[0] = True
    for codes in columns:
        first[1:] |= codes[1:] != codes[:-1]
    # In a sorted table the rows of a class lie together, and one of them stands for all.
    starts = np.flatnonzero(first)
    found, keys = classes_of([codes[starts] for codes in columns], [len(one.values) for one in rows.quasi])
    return np.repeat(found, np.diff(starts, append=rows.n)), len(keys)


def _lazy_as(table: Any, out: Any) -> Any:
    import narwhals as nw

    if isinstance(table, Mapping) or not isinstance(nw.from_native(table), nw.LazyFrame):
        return out
    return out.lazy()
