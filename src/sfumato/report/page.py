"""From a publication to its page."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato.charts import svg, values_with_intervals
from sfumato.charts.theme import AXIS, BLUE, INK, PALE
from sfumato.release import Release
from sfumato.report import words
from sfumato.report.figures import Figure, figure
from sfumato.report.meaning import meaning
from sfumato.report.numbers import EMPTY, Group, Table, groups, table
from sfumato.report.templating import template

if TYPE_CHECKING:
    from sfumato.publication import Publication
    from sfumato.result import Result

# A longer table is folded, and unfolds in print.
_LONG_TABLE = 40
_NOISY = "dominated by noise"
# Parameters that are numbers of the column, and dates where it holds dates.
_ON_THE_COLUMN = ("bounds", "edges", "between", "at")


@dataclass(frozen=True)
class Section:
    """One result, ready for the page."""

    anchor: str
    # What the plan calls it, where that is not what it would be called anyway.
    name: str
    heading: words.Phrase
    reading: str
    figure: Figure | None
    table: Table
    folded: bool
    notes: tuple[str, ...]
    noisy: tuple[tuple[str, str], ...]
    group_notes: tuple[tuple[str, str], ...]
    method: str
    cost: str
    facts: tuple[tuple[str, str], ...]
    scalar: Group | None
    # How its groups were found, and whether all other rows are one more.
    found: str = ""
    other: bool = False


def html(publication: "Publication", receipt: Mapping[str, Any] | None = None) -> str:
    """One self-contained page about a publication, for the public and for a reviewer.

    Guarantee:
        Post-processing of the publication by public facts: it costs nothing. The page asks the network for
        nothing, runs no script, and escapes every word of the plan and of the data. Numbers are rounded to
        what their intervals support; the publication itself keeps them in full.

    Args:
        publication: what was released.
        receipt: of the same release, as `publish` returns it; the page then names the software, the ledger's
            head and the hash of the released file.

    Raises:
        MissingExtra: Jinja2, Altair or vl-convert is not installed.

    >>> from sfumato.privacy import Amount, PureDP
    >>> from sfumato.publishing import Publication
    >>> words = dict.fromkeys(("about", "composition", "request", "edition", "plan_digest", "version"), "1")
    >>> facts = {"dataset": "pay", "unit": "row", "rows_per_unit": None, "rows": None}
    >>> cost = {"neighbours": "add-remove", "budget": PureDP(1), "price": Amount(epsilon=1)}
    >>> html(Publication(title="Pay", results=(), **facts, **words, **cost))[:15]
    '<!DOCTYPE html>'
    """
    # First, so that nothing is computed where the package for pages is missing.
    form = template("report.html")
    sections = [_section(place, result) for place, result in enumerate(publication.results)]
    told = meaning(publication.price)
    page: str = form.render(
        publication=publication,
        title=words.plain(publication.title),
        about=[
            words.plain(" ".join(part.split())) for part in publication.about.split("\n\n") if part.strip()
        ],
        facts=_key_facts(publication),
        sections=sections,
        meaning=told,
        receipt=_receipt(receipt),
        private=all(result.private for result in publication.results),
        unit=words.unit_words(publication.unit, publication.rows_per_unit),
        bound=words.bound_words(publication.unit, publication.rows_per_unit, publication.groups_per_unit),
        relation=words.relation_words(publication.neighbours, publication.unit),
        price=words.cost(publication.price),
        budget=words.cost(publication.budget),
        colours={"ink": INK, "pale": PALE, "blue": BLUE, "axis": AXIS},
        grouped=any(result.by for result in publication.results),
        declared=any(result.by and not result.found for result in publication.results),
        named=any(result.search.delta for result in publication.results),
        conditions=any(result.where for result in publication.results),
    )
    return page.lstrip()


def prepare() -> None:
    """Loads what draws pages and pictures, which takes a moment, while something else is done.

    Guarantee:
        Draws a picture of nothing and keeps nothing of it. Tells of no fault: `html` does.

    >>> prepare()
    """
    with suppress(Exception):  # `html` tells of what goes wrong
        template("report.html")
        svg(values_with_intervals([{"label": "", "value": 0, "low": -1, "high": 1}]), alt="", prefix="none")


def _section(place: int, result: "Result") -> Section:
    releases: Sequence[tuple[tuple[Any, ...], Release]] = result.releases
    if not releases:
        return _empty(place, result)
    first = releases[0][1]
    query: Any = first.query
    found = groups(releases)
    heading = words.heading(query, result.by, result.where)
    made = table(query, result.by, found)
    shared, own = _notes(releases)
    scalar = found[0] if len(found) == 1 and len(found[0].cells) == 1 and not result.by else None
    return Section(
        anchor=f"result-{place + 1}",
        name=_title(result.name, words.text(heading)),
        heading=heading,
        reading=words.how_to_read(query),
        figure=figure(query, found, heading, f"r{place + 1}"),
        table=made,
        folded=len(made.rows) > _LONG_TABLE,
        notes=shared,
        # What decides whether a number is of any use is not folded.
        noisy=tuple(pair for pair in own if _NOISY in pair[1]),
        group_notes=tuple(pair for pair in own if _NOISY not in pair[1]),
        method=words.plain(first.method),
        cost=words.cost(result.amount),
        facts=(*_parameters(first), *_foreseen(first)),
        scalar=scalar,
        found=words.found_words(result.found, result.search),
        other=any(None in key for key, _ in releases),
    )


def _empty(place: int, result: "Result") -> Section:
    """A result of which no group is named."""
    heading = words.bare_heading(result.statistic, result.column, result.by, result.where)
    return Section(
        anchor=f"result-{place + 1}",
        name=_title(result.name, words.text(heading)),
        heading=heading,
        reading="",
        figure=None,
        table=EMPTY,
        folded=False,
        notes=(),
        noisy=(),
        group_notes=(),
        method="none was needed: there is no number",
        cost=words.cost(result.amount),
        facts=(),
        scalar=None,
        found=words.found_words(result.found, result.search),
    )


def _title(name: str, heading: str) -> str:
    given = words.plain(name)
    return "" if given.casefold() == heading.casefold() else given[:1].upper() + given[1:]


def _notes(
    releases: Sequence[tuple[tuple[Any, ...], Release]],
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """The notes that all groups share, and those of single groups with the groups they are about."""
    counted: Counter[str] = Counter()
    about: dict[str, list[str]] = {}
    for key, release in releases:
        for note in dict.fromkeys(words.plain(note) for note in release.notes):
            counted[note] += 1
            about.setdefault(note, []).append(" · ".join(map(words.group_name, key)))
    shared = tuple(note for note in about if counted[note] == len(releases))
    own = [
        (words.text(words.listed(names, "and")), note)
        for note, names in about.items()
        if counted[note] < len(releases)
    ]
    return shared, tuple(own)


def _parameters(release: Release) -> list[tuple[str, str]]:
    found = []
    for field, value in release.parameters.items():
        if value is None or field in ("budget", "among", "resolved") or value == []:
            continue
        dated = field in _ON_THE_COLUMN and getattr(release.query, "reads", "number") != "number"
        told = _listing(value, release.query if dated else None)
        found.append((field.replace("_", " "), words.plain(told)))
    return found


def _foreseen(release: Release) -> list[tuple[str, str]]:
    """What was told of verified intervals before they were paid for."""
    query: Any = release.query
    if not getattr(query, "divided", ""):
        return []
    told = query.accuracy(query.taken_size(release.outcome)).verified
    return [("foreseen", told)] if told else []


def _listing(value: Any, dates_of: Any = None) -> str:
    if isinstance(value, Mapping):
        return ", ".join(_listing(part, dates_of) for part in value.values())
    if isinstance(value, list):
        return ", ".join(_listing(part, dates_of) for part in value)
    return str(value) if dates_of is None else words.public(value, dates_of)


def _key_facts(publication: "Publication") -> list[tuple[str, words.Phrase]]:
    rows = f"{publication.rows:,}, a public number" if publication.rows is not None else "private"
    facts: list[tuple[str, words.Phrase]] = [
        ("Data", (words.Name(words.plain(publication.dataset)),)),
        ("Rows", (rows,)),
        ("Protected", words.unit_words(publication.unit, publication.rows_per_unit)),
        ("Price", (words.cost(publication.price),)),
    ]
    return facts


def _receipt(receipt: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if receipt is None:
        return None
    ledger = receipt.get("ledger") or {}
    software = receipt.get("software") or {}
    if not isinstance(software, Mapping):
        software = {"sfumato": software}
    return {
        "software": [(words.plain(key), words.plain(value)) for key, value in software.items()],
        "sha256": words.plain(receipt.get("release_sha256") or ""),
        "ledger": [(words.plain(key), words.plain(value)) for key, value in ledger.items()],
        "analyst": words.plain(receipt.get("analyst") or ""),
    }
