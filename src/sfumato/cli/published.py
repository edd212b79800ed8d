"""A release as tables for the terminal, rounded to what the intervals support."""

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sfumato.cli.output import grid_of, in_symbols
from sfumato.grouped import NONE_NAMED, key_words
from sfumato.release import printable
from sfumato.report.words import SPACE, bare_heading, heading, labels, text

# A statistic by groups is shown as one line for each group if this fits, else as one line for each number.
# Behind every column are two spaces, and one more between two columns.
_GAP = 3


def print_results(console: Console, publication: Any) -> None:
    """A title, the price and a table for each result."""
    for result in publication.results:
        console.print(Text(title(result), style="bold"), soft_wrap=True)
        console.print(
            Text(f"{about(result)}; cost {in_symbols(result.amount, console)}", style="dim"),
            soft_wrap=True,
        )
        if result.found:
            told = f"groups: {result.found}; costs {in_symbols(result.search, console)} of this"
            console.print(Text(told, style="dim"), soft_wrap=True)
        if not result.releases:
            console.print(Text(f"{NONE_NAMED}\n"))
            continue
        wide = _wide(result)
        fits = wide is not None and _width(wide) <= console.width
        console.print(_drawn(wide if fits and wide is not None else _long(result), len(result.by)))
        if fits:
            console.print(Text("values; their 95 % intervals are in results.csv and the report", style="dim"))
        console.print()


def title(result: Any) -> str:
    """The name that the plan gives a result."""
    return printable(result.name)


def about(result: Any) -> str:
    """What was asked, in words: "Deciles of salary by department"."""
    if not result.releases:
        words = bare_heading(result.statistic, result.column, result.by, result.where)
    else:
        words = heading(result.releases[0][1].query, result.by, result.where)
    return text(words).replace(SPACE, " ")


def _long(result: Any) -> list[tuple[str, ...]]:
    """A line for each number, with its interval."""
    rows: list[tuple[str, ...]] = []
    for key, release in result.releases:
        if not rows:
            rows.append((*map(printable, result.by), *release.table()[0]))
        names = tuple(map(key_words, key))
        for place, number in enumerate(_numbers(release)):
            rows.append((*(("",) * len(names) if place else names), *number))
    return rows if _labelled(result) else [_without(row, len(result.by)) for row in rows]


def _wide(result: Any) -> list[tuple[str, ...]] | None:
    """A line for each group with its numbers; None where there are no groups, or one number for each."""
    if not result.by or not _labelled(result):
        return None
    rows: list[tuple[str, ...]] = []
    for key, release in result.releases:
        numbers = _numbers(release)
        if not rows:
            rows.append((*map(printable, result.by), *(number[0] for number in numbers)))
        rows.append((*map(key_words, key), *(number[1] for number in numbers)))
    return rows


def _numbers(release: Any) -> list[tuple[str, ...]]:
    """Label, value and interval of each number, rounded to what the interval supports."""
    named = zip(labels(release.query), release.table()[1:], strict=True)
    return [(label.replace(SPACE, " "), *number[1:]) for label, number in named]


def _labelled(result: Any) -> bool:
    return len(result.releases[0][1].query.labels()) > 1


def _without(row: tuple[str, ...], place: int) -> tuple[str, ...]:
    return row[:place] + row[place + 1 :]


def _width(rows: list[tuple[str, ...]]) -> int:
    return sum(max(map(len, column)) + _GAP for column in zip(*rows, strict=True)) - 1


def _drawn(rows: list[tuple[str, ...]], names: int) -> Table:
    head, *numbers = rows
    # What is no key stands left: labels, where the result has them.
    left = names + (head[names] == "")
    return grid_of(head, numbers, left=left)
