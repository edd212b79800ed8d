"""Statistics, units and costs in words that need no training; names of the data stay names."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from sfumato.charts.releases import statistic_words
from sfumato.checks import decimal
from sfumato.data.expression_text import parse
from sfumato.data.moments import public_text
from sfumato.errors import SfumatoError
from sfumato.grid import as_edges
from sfumato.grouped import OTHER, key_words

# Keeps a number and its sign on one line.
SPACE = "\u00a0"
# They shape letters and pictures of many scripts, and steer nothing.
_JOINERS = "\u200c\u200d"
_LONGEST = 36
# An expression tells nothing if it is cut where a name is.
_LONGEST_EXPRESSION = 120
# A key of the data may fill a page.
_LONGEST_KEY = 240
_NUMBER_OF_NAMES = 6


@dataclass(frozen=True)
class Name:
    """A word that comes from the plan or the data, and may be of any script."""

    text: str
    longest: int = _LONGEST


Phrase = tuple[str | Name, ...]

# What a number is, and how to read it.
_READ = {
    "sum": "All values added up.",
    "mean": "The average: all values added up and divided by how many there are.",
    "variance": "How far the values spread around their mean; the square of the standard deviation.",
    "proportion": "The part of the values for which this is so: 0 is none and 1 is all.",
    "histogram": "How many rows there are of each kind.",
    "choice": "The best of a public list, chosen by private scores. The better one is the more likely.",
    "most_common": "The most frequent category, or one that is nearly as frequent.",
}
_READ |= {
    "inverse_mean": _READ["mean"],
    "exponential_mean": _READ["mean"],
    "inverse_proportion": _READ["proportion"],
}
_STARTS = {
    "sum": "Sum of ",
    "mean": "Mean of ",
    "variance": "Variance of ",
    "inverse_mean": "Mean of ",
    "exponential_mean": "Mean of ",
    "most_common": "Most common value of ",
}


def plain(text: Any) -> str:
    """A name on one line, with what cannot be seen or would turn the line around written out.

    >>> plain("a\\u202eb"), plain("x\\ny")
    ('a\\\\u202eb', 'x\\\\ny')
    """
    return "".join(c if c.isprintable() or c in _JOINERS else repr(c)[1:-1] for c in str(text))


def group_name(part: Any) -> str:
    """One part of the key of a group, and what all other rows are called.

    >>> group_name(7), group_name(None)
    ('7', '(other)')
    """
    return plain(key_words(part)) if part is None or part == OTHER else cut(str(part), _LONGEST_KEY)


def name(text: Any) -> Name:
    """A name of a column, for readers: underscores are spaces."""
    return Name(plain(str(text).replace("_", " ")))


def text(phrase: Phrase) -> str:
    """A phrase as plain text, its names cut where they are long."""
    return "".join(part if isinstance(part, str) else cut(part.text, part.longest) for part in phrase)


def cut(label: str, longest: int = _LONGEST) -> str:
    """A label that fits a chart or a sentence."""
    label = plain(label)
    return label if len(label) <= longest else label[: longest - 1].rstrip() + "…"


def listed(words: Sequence[Any], join: str) -> Phrase:
    """Names with commas and a last word between them, a long list cut short.

    >>> text(listed(["a", "b", "c"], "or"))
    'a, b or c'
    """
    names: list[str | Name] = [Name(plain(word)) for word in words]
    if len(names) > _NUMBER_OF_NAMES:
        names = [*names[: _NUMBER_OF_NAMES - 1], f"{len(names) - _NUMBER_OF_NAMES + 1} more"]
    parts: list[str | Name] = []
    for place, one in enumerate(names):
        gap = "" if place == 0 else f" {join} " if place == len(names) - 1 else ", "
        parts += [gap, one] if gap else [one]
    return tuple(parts)


def heading(query: Any, by: Sequence[str], where: Sequence[tuple[str, str]]) -> Phrase:
    """What a result is, as a heading: "Deciles of salary by department"."""
    column = name(query.column)
    conditions: Phrase = ()
    if getattr(query, "equals", None):
        conditions = (" equal to ", *listed(query.equals, "or"))
    elif getattr(query, "between", None):
        low, high = query.between
        conditions = (f" from {public(low, query)} to {public(high, query)}",)
    parts: Phrase
    if query.name == "count":
        known: Phrase = (" with known ", column) if query.null_rule == "drop" else ()
        parts = ("Number of rows", *((" with ", column, *conditions) if conditions else known))
    elif query.name in ("proportion", "inverse_proportion"):
        parts = ("Share of ", column, *(conditions or (" that is true",)))
    elif query.name == "choice":
        parts = ("Choice among candidates",)
    elif query.name == "histogram":
        parts = ("Distribution of " if query.grid is not None else "Number of rows by ", column)
    else:
        usual = statistic_words(query)
        parts = (_STARTS.get(query.name, f"{usual.capitalize()} of "), column)
    return (*parts, *_rows(by, where))


def bare_heading(statistic: str, column: str, by: Sequence[str], where: Sequence[tuple[str, str]]) -> Phrase:
    """The heading of a result of which no group is named, and so no query is there to tell more."""
    words = plain(statistic.replace("_", " "))
    return (f"{words[:1].upper()}{words[1:]} of ", name(column), *_rows(by, where))


def _rows(by: Sequence[str], where: Sequence[tuple[str, str]]) -> Phrase:
    """The groups and the conditions of a heading."""
    parts: Phrase = ()
    if by:
        parts = (*parts, " by ", *listed([str(one).replace("_", " ") for one in by], "and"))
    for place, (other, words) in enumerate(where):
        start = ", where " if place == 0 else " and "
        if is_expression(other, words):
            parts = (*parts, start, Name(plain(words), _LONGEST_EXPRESSION))
        else:
            parts = (*parts, start, name(other), " is ", Name(plain(words)))
    return parts


def is_expression(about: str, words: str) -> bool:
    """Whether a condition is an expression, which names its columns itself.

    >>> is_expression("age", "age >= 18"), is_expression("age", "18 to 65")
    (True, False)
    """
    try:
        return ", ".join(parse(words).columns) == about
    except SfumatoError:
        return False


def how_to_read(query: Any) -> str:
    """One sentence on what the numbers of a statistic mean."""
    if query.name == "quantiles":
        if len(query.probs) == 1 and query.probs[0] == Fraction(1, 2):
            return "The value in the middle: half of the values are lower and half are higher."
        least, *_, most = [
            f"{number(100 * Fraction(p))}{SPACE}%" for p in (*sorted(query.probs), max(query.probs))
        ]
        return (
            f"Each number is a value below which a part of all values lies: {least} of them are lower than "
            f"the first number and {most} are lower than the last."
        )
    if query.name == "histogram" and query.grid is not None:
        return "How many values fall into each range. A range has its lower end and not its upper one."
    return _READ.get(query.name, "")


def labels(query: Any) -> list[str]:
    """The labels of the numbers, for readers: ranges with words, orders in per cent."""
    if query.name == "quantiles":
        return [f"{number(100 * Fraction(order))}{SPACE}%" for order in query.probs]
    if query.name == "histogram" and query.grid is not None:
        edges = _short([public(edge, query) for edge in as_edges(query.grid)])
        return [f"{low} to {high}" for low, high in pairwise(edges)]
    if len(query.labels()) == 1:
        return [statistic_words(query).replace("proportion", "share")]
    return [plain(label) for label in query.labels()]


def _short(edges: list[str]) -> list[str]:
    """Times without the hours or the seconds that none of them needs.

    >>> _short(["2024-01-01T00:00:00", "2024-03-01T12:30:00"])
    ['2024-01-01T00:00', '2024-03-01T12:30']
    """
    for end in ("T00:00:00", ":00"):
        if all("T" in edge and edge.endswith(end) for edge in edges):
            return [edge.removesuffix(end) for edge in edges]
    return edges


def label_title(query: Any) -> str:
    """What the labels of a statistic are."""
    if query.name == "quantiles":
        return "lower values"
    if query.name == "histogram":
        return "range" if query.grid is not None else plain(str(query.column).replace("_", " "))
    return ""


def number(value: Any) -> str:
    """A public number, with commas between thousands.

    >>> number(Fraction(5, 2)), number(30000), number(0.1)
    ('2.5', '30,000', '0.1')
    """
    exact = Fraction(value)
    return f"{exact.numerator:,}" if exact.denominator == 1 else f"{float(exact):,.12g}"


def public(value: Any, query: Any) -> str:
    """A public number of the column of a query: a date where the column holds dates."""
    reads: Any = getattr(query, "reads", "number")
    return number(value) if reads == "number" else public_text(Fraction(value), reads)


def cost(amount: Any) -> str:
    """A cost or a budget in symbols: "ε = 1, δ = 0.000001"."""
    symbols = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    shown = [
        f"{symbol}{SPACE}={SPACE}{short(getattr(amount, field))}"
        for field, symbol in symbols.items()
        if getattr(amount, field, 0)
    ]
    return ", ".join(shown) or "nothing"


def short(value: Fraction) -> str:
    """An exact number as a decimal, without a useless end."""
    written = decimal(value).removesuffix(".0")
    # A small delta reads better in full; numbers of very many digits do not.
    return format(Decimal(written), "f") if "e-0" in written else written


def found_words(found: str, search: Any) -> str:
    """How the groups of a result were found, and what that cost."""
    if not found:
        return ""
    return (
        f"Which groups are shown was decided privately too: {plain(found)}. "
        f"This took {cost(search)} of the cost."
    )


def unit_words(unit: str, rows_per_unit: int | None) -> Phrase:
    """Who is protected."""
    if unit == "row":
        return ("one row of the table",)
    most = "one row" if rows_per_unit == 1 else f"{rows_per_unit:,} rows" if rows_per_unit else "several rows"
    return ("all rows with the same ", Name(plain(unit)), f", at most {most}")


def bound_words(unit: str, rows_per_unit: int | None, groups_per_unit: int | None = None) -> Phrase:
    """How much one person can contribute."""
    if unit == "row":
        return ("One person is taken to be one row. A person with several rows is protected less.",)
    most = "one row" if rows_per_unit == 1 else f"{rows_per_unit:,} rows" if rows_per_unit else "several rows"
    return (
        "Of the rows with the same ",
        Name(plain(unit)),
        f", at most {most} were used, chosen at random. The noise is made for that many.",
        *_groups_words(groups_per_unit),
    )


def _groups_words(most: int | None) -> Phrase:
    if most is None:
        return ()
    groups = "one group" if most == 1 else f"{most:,} groups"
    return (f" They count in at most {groups} of a result, chosen at random too.",)


def relation_words(neighbours: str, unit: str) -> str:
    """What one person can change, by the neighbour relation."""
    one = "one row" if unit == "row" else "all rows of one person"
    if neighbours == "substitution":
        return f"The release looks nearly the same if {one} had said anything else (substitution)."
    return f"The release looks nearly the same with {one} and without (add-remove)."
