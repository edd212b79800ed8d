"""An anonymised table as a page for those who decide on its publication: goals, risks, losses, attacks."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sfumato
from sfumato.anonymity.goals import (
    Closeness,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    RecursiveDiversity,
)
from sfumato.anonymity.settings import goal_words
from sfumato.charts import svg
from sfumato.charts.classes import class_sizes
from sfumato.charts.theme import AXIS, BLUE, INK, PALE, VERMILION, WORDS
from sfumato.checks import compact, readable
from sfumato.report import words
from sfumato.report.anonymity_attack import TEXTBOOK, TEXTBOOK_ROLES, Attack, homogeneity
from sfumato.report.anonymity_plan import private_release
from sfumato.report.templating import template

if TYPE_CHECKING:
    from sfumato.anonymity.anonymizing import Anonymized
    from sfumato.anonymity.measures import SensitiveMeasures

_METHODS = {
    "mondrian": "Mondrian: the table is cut along its widest columns as long as every part meets the goals",
    "mondrian-relaxed": "relaxed Mondrian: as Mondrian, but a cut may part rows of the same value",
    "full-domain": "optimal full-domain search: of all levels of the hierarchies the ones that lose least",
    "datafly": "Datafly: the column with the most labels is coarsened, one level at a time",
}
# So many classes that give their rows away are listed.
SHOWN = 5
_METRICS = {
    "loss": "the average loss of a cell",
    "discernibility": "the discernibility",
    "height": "the number of levels",
}


@dataclass(frozen=True)
class Grid:
    """A table of the page, and which of its columns are numbers, which stand right."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...] = (1, 2)


@dataclass(frozen=True)
class Figure:
    """A picture for a wide page and for a phone."""

    wide: str
    narrow: str


def anonymity_html(result: "Anonymized", *, title: str = "Anonymised table", path: str = "table.csv") -> str:
    """One self-contained page about an anonymised table, for those who decide on its publication.

    Guarantee:
        The attack on it uses the published table alone; sizes of classes and risks before are counts over the
        original one. The page asks the network for nothing, runs no script, and escapes every word of the
        table. It claims no differential privacy, and says so.

    Args:
        result: what `anonymize` returned.
        title: of the page.
        path: the name of the file with the original table, for the plan of a private release.

    Raises:
        MissingExtra: Jinja2, Altair or vl-convert is not installed.

    >>> from sfumato.anonymity import anonymize
    >>> people = {"age": [31, 33, 58, 59], "illness": ["flu", "asthma", "flu", "flu"]}
    >>> anonymity_html(anonymize(people, quasi=["age"], k=2, sensitive=["illness"]))[:15]
    '<!DOCTYPE html>'
    """
    settings, after = result.settings, result.after
    attacks = _attacks(result)
    own = attacks[0] if attacks else None
    textbook = homogeneity(TEXTBOOK, *TEXTBOOK_ROLES)
    private = private_release(result.columns, settings.quasi, settings.sensitive, path=path, title=title)
    page: str = template("anonymity.html").render(
        title=words.plain(title),
        version=sfumato.__version__,
        least=f"{max(after.k, 1):,}",
        k=f"{settings.k:,}",
        facts=_facts(result),
        quasi=[words.plain(name) for name in settings.quasi],
        goals=_goals(result),
        notes=result.notes,
        figure=_figure(result),
        risk=_risk(result),
        linkage=_linkage(result),
        singled_out=f"{result.linkage.kept_with_quasi:,}" if result.linkage.kept_with_quasi else "",
        published=f"{result.linkage.rows:,}",
        warnings=[_sentence(words.plain(warning)) for warning in result.linkage.warnings],
        secrets=[_secrets(result, name) for name in settings.sensitive],
        utility=_utility(result),
        done=_done(result),
        columns=_columns(result),
        own=own,
        other_attacks=[one for one in attacks[1:] if one.rows_exposed],
        remedy="" if own is None else words.plain(f"--diversity {shlex.quote(f'{own.column}=2')}"),
        overlapping=settings.method == "mondrian-relaxed",
        sure="" if own is None else f"{int(own.surest.share * own.surest.rows):,}",
        guessed="" if own is None else _percent(float(own.guessed)),
        blind="" if own is None else _percent(float(own.blind)),
        textbook=textbook,
        listed=SHOWN,
        textbook_k=textbook.rows // textbook.classes,
        textbook_table=Grid(
            "Twelve fictional people", tuple(TEXTBOOK), tuple(zip(*TEXTBOOK.values(), strict=True)), ()
        ),
        about=words.plain(settings.sensitive[0]) if settings.sensitive else "counts",
        toml=private.toml,
        python=private.python,
        colours={
            "ink": INK,
            "pale": PALE,
            "blue": BLUE,
            "axis": AXIS,
            "vermilion": VERMILION,
            "vermilion_words": WORDS[VERMILION],
        },
    )
    return page.lstrip()


def _attacks(result: "Anonymized") -> list[Attack]:
    """The attack on each sensitive column, that which is exposed most first."""
    settings = result.settings
    found = [homogeneity(result.table, settings.quasi, name, most=SHOWN) for name in settings.sensitive]
    return sorted(found, key=lambda one: (one.rows_exposed, one.surest.share), reverse=True)


def _facts(result: "Anonymized") -> list[tuple[str, str]]:
    return [
        ("Rows published", f"{result.after.rows:,} of {result.rows:,}"),
        ("Classes", f"{result.after.classes:,}"),
        ("Smallest class", f"{result.after.k:,}; before {result.before.k:,}"),
        ("Loss of a cell", _percent(result.utility.gcp)),
    ]


def _figure(result: "Anonymized") -> Figure:
    tables = {
        f"Before: {result.before.rows:,} rows": dict(result.before.histogram),
        f"After: {result.after.rows:,} rows": dict(result.after.histogram),
    }
    told = (
        f"Shares of rows by the size of their class. Before, the smallest class has {result.before.k:,} and "
        f"{result.before.risk.uniques:,} rows are alone; after, every class has at least {result.after.k:,}."
    )
    k = result.settings.k

    def drawn(width: int, prefix: str) -> str:
        return svg(class_sizes(tables, k=k, width=width), alt=told, prefix=prefix)

    return Figure(drawn(560, "cw"), drawn(250, "cn"))


def _goals(result: "Anonymized") -> Grid:
    rows = []
    for goal in result.settings.goals:
        before, after = (_reached(goal, measures) for measures in (result.before, result.after))
        if isinstance(goal, Closeness) and result.partition.suppressed:
            # The goal is about the table that was given; a reader of the published one has only its rows.
            after += " from the rows that are left"
        rows.append((_sentence(words.plain(goal_words(goal))), before, after))
    return Grid(
        "Every class of the published table meets each goal", ("asked for", "before", "reached"), tuple(rows)
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _reached(goal: Any, measures: Any) -> str:
    """What a table has of what a goal asks for."""
    if isinstance(goal, KAnonymity):
        return f"{measures.k:,}"
    found: SensitiveMeasures = measures.column(goal.column)
    match goal:
        case DistinctDiversity():
            return f"{found.distinct:,}"
        case EntropyDiversity():
            return _number(found.entropy)
        case RecursiveDiversity():
            # Against all values it is a share; for places far down nothing is measured.
            times = found.alpha if goal.l == 1 else dict(found.recursive).get(goal.l)
            if times is None:
                return "no others" if found.distinct < goal.l else "not measured"
            return f"{_number(times)} times"
        case Closeness():
            ordered = goal.distance == "ordered" or (
                goal.distance == "auto" and found.closeness_ordered is not None
            )
            value = found.closeness_ordered if ordered else found.closeness_equal
            return "" if value is None else _number(value)
    return ""


def _risk(result: "Anonymized") -> Grid:
    before, after, k = result.before.risk, result.after.risk, result.settings.k
    rows = [
        ("rows alone in their class", f"{before.uniques:,}", f"{after.uniques:,}"),
        (
            "highest chance that the row picked is the right one",
            _percent(before.highest),
            _percent(after.highest),
        ),
        ("average chance", _percent(before.average), _percent(after.average)),
    ]
    if k > 1:
        few = [_percent(risk.share_below(k)) for risk in (before, after)]
        rows.append((f"rows in classes of fewer than {k:,}", few[0], few[1]))
    return Grid("The chance that a person is found", ("", "before", "after"), tuple(rows))


def _linkage(result: "Anonymized") -> Grid:
    rows = tuple(
        (words.plain(name), role, alone, together) for name, role, alone, together in result.linkage.table()
    )
    return Grid(
        f"Rows that columns published as they are single out, of {result.linkage.rows:,}",
        ("column", "role", "alone", "with the quasi-identifiers"),
        rows,
        (2, 3),
    )


def _secrets(result: "Anonymized", name: str) -> Grid:
    pairs = [measures.column(name) for measures in (result.before, result.after)]
    before, after = pairs
    rows = [
        ("different values, at least", f"{before.distinct:,}", f"{after.distinct:,}"),
        ("values that the entropy is worth, at least", _number(before.entropy), _number(after.entropy)),
        ("share of one value, at most", _percent(before.alpha), _percent(after.alpha)),
        ("distance from the whole table, at most", _number(before.closeness), _number(after.closeness)),
    ]
    return Grid(f"{words.plain(name)}: the worst class", ("", "before", "after"), tuple(rows))


def _utility(result: "Anonymized") -> Grid:
    found = result.utility
    gone = result.partition.suppressed
    read = "0 % is the cell as it was, 100 % a cell that says nothing"
    rows = [
        (
            "average loss of a cell",
            _percent(found.gcp),
            f"{read}, as those of the {gone:,} suppressed row{'s' * (gone > 1)}" if gone else read,
        )
    ]
    rows += [
        (f"loss of {words.plain(name)}", _percent(loss), "")
        for name, loss in found.losses
        if len(found.losses) > 1
    ]
    rows.append(
        (
            "discernibility",
            f"{found.discernibility:,}",
            "squares of class sizes, summed up"
            + (f", and {result.rows:,} for each suppressed row" if gone else "")
            + "; smaller is better",
        )
    )
    if found.average_class_size is not None:
        rows.append(("class size over k", _number(found.average_class_size), "1 is the best that can be"))
    if found.precision is not None:
        rows.append(("precision", _number(found.precision), "1 is no level up, 0 all columns at the top"))
    for name, share in found.classification:
        rows.append(
            (
                f"not the mode of {words.plain(name)}",
                _percent(share),
                "rows that a classifier by class would miss",
            )
        )
    return Grid("What the coarsening loses", ("", "value", "how to read it"), tuple(rows), (1,))


def _done(result: "Anonymized") -> list[tuple[str, str]]:
    settings, gone = result.settings, result.partition.suppressed
    method = _METHODS[settings.method]
    if settings.method == "full-domain":
        method += f", by {_METRICS[settings.metric]}"
    found = [("Method", method)]
    if not settings.method.startswith("mondrian"):
        limit = compact(100 * settings.suppression)
        kept = "removed" if result.rows > result.after.rows or not gone else "shown as stars"
        found.append(
            ("Suppressed", f"{gone:,} rows ({_percent(gone / result.rows)}) of at most {limit} %, {kept}")
        )
    dropped = ", ".join(map(words.plain, settings.drop)) or "none was named"
    order = (
        "by what they show, so that their place tells nothing"
        if settings.order == "sorted"
        else "as in the original"
    )
    found += [("Columns dropped", dropped), ("Order of rows", order)]
    if settings.keep:
        listed = ", ".join(map(words.plain, settings.keep))
        found.append(("Kept as they were", f"{listed}; they count as known to nobody"))
    return found


def _columns(result: "Anonymized") -> Grid:
    """What became of each quasi-identifier."""
    partition, losses = result.partition, dict(result.utility.losses)
    rows = []
    for place, name in enumerate(result.settings.quasi):
        labels = partition.labels[place]
        if partition.levels is None or partition.heights is None:
            coarse = f"{len(set(labels)):,} labels"
        else:
            coarse = f"level {partition.levels[place]} of {partition.heights[place]}"
        rows.append(
            (words.plain(name), coarse, _example(labels, partition.sizes.tolist()), _percent(losses[name]))
        )
    return Grid(
        "The quasi-identifiers, and the label that most rows show",
        ("column", "coarsened to", "such as", "loss"),
        tuple(rows),
        (3,),
    )


def _example(labels: Sequence[str], sizes: Sequence[int]) -> str:
    counts: dict[str, int] = {}
    for label, size in zip(labels, sizes, strict=True):
        counts[label] = counts.get(label, 0) + size
    return words.cut(max(counts, key=lambda label: (counts[label], label))) if counts else ""


def _number(value: float) -> str:
    return readable(float(f"{value:.3g}"))


def _percent(share: float) -> str:
    """A share in words, 0 or 100 % only where it is just that."""
    told = f"{100 * share:.3g}"
    if told == "100" and share < 1:
        told = ">99.9"
    return f"{told}{words.SPACE}%"
