"""What a plan publishes: all results, with the public facts that they rest on."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sfumato.data.column import Category
from sfumato.errors import InvalidParameter
from sfumato.front import read_release
from sfumato.grouped import OTHER
from sfumato.outcome import read_outcome
from sfumato.privacy import Amount, Budget, Neighbours, budget_from_dict, check_neighbours
from sfumato.result import Result

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Publication:
    """All results of a plan, with the public facts that they rest on.

    Guarantee:
        Holds what may be published and nothing else; intervals and tables are computed from it at no cost.

    >>> Publication.read("{}")
    Traceback (most recent call last):
    sfumato.errors.InvalidParameter: the text must be a release.json that sfumato release wrote
    """

    title: str
    about: str
    dataset: str
    unit: str
    rows_per_unit: int | None
    neighbours: Neighbours
    rows: int | None
    budget: Budget
    price: Amount
    composition: str
    request: str
    edition: str
    plan_digest: str
    version: str
    # What read the data, where the plan names it.
    engine: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    # In how many groups of a result a person counts, where that is bounded.
    groups_per_unit: int | None = None
    results: tuple[Result, ...]

    def facts(self) -> dict[str, Any]:
        """All but the results, in JSON's types."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        plain["versions"] = dict(self.versions)
        said = {"engine": self.engine, "groups_per_unit": self.groups_per_unit}
        plain |= {name: fact for name, fact in said.items() if fact is not None}
        exact = {"budget": self.budget.to_dict(), "price": self.price.to_dict()}
        return {"format": FORMAT, "software": "sfumato", **plain, **exact}

    def to_json(self) -> str:
        """All of it as text, which is what a ledger keeps; `Publication.read` reads it back."""
        record = {**self.facts(), "results": [result.to_dict() for result in self.results]}
        return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)

    @classmethod
    def read(cls, text: str | bytes) -> "Publication":
        """Reads back what `to_json` wrote.

        Raises:
            InvalidParameter: the text is something else.
        """
        try:
            record = json.loads(text)
            return cls(**_read_facts(record), results=tuple(map(_read_result, record["results"])))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise InvalidParameter("the text must be a release.json that sfumato release wrote") from None

    @classmethod
    def of_outcome(cls, stored: bytes) -> "Publication":
        """The publication of an outcome that a ledger keeps: a function of these bytes alone."""
        drawn = read_outcome(stored)
        return cls(**_read_facts(drawn.facts), results=drawn.results)

    def rows_of_numbers(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """Every released number in a row of its own, in full precision, for a table in a file."""
        columns, rows = self._key_columns, []
        for result in self.results:
            where = "; ".join(f"{column}: {words}" for column, words in result.where)
            quoted = any(None in key for key, _ in result.releases)
            for key, release in result.releases:
                named = {name: _text(part, quoted) for name, part in zip(result.by, key, strict=True)}
                for label, value, low, high in release.numbers(confidence):
                    rows.append(
                        {
                            "result": result.name,
                            "statistic": result.statistic,
                            "column": result.column,
                            "where": where,
                            **{column: named.get(name) for name, column in columns.items()},
                            "label": label,
                            "value": value,
                            "low": low,
                            "high": high,
                            "confidence": confidence,
                            "cost": result.cost,
                        }
                    )
        return rows

    @property
    def number_columns(self) -> tuple[str, ...]:
        """The names in a row of numbers, which a table without rows has as well."""
        before, after = _TOLD[: _TOLD.index("label")], _TOLD[_TOLD.index("label") :]
        return (*before, *self._key_columns.values(), *after)

    @property
    def _key_columns(self) -> dict[str, str]:
        names = dict.fromkeys(name for result in self.results for name in result.by)
        # A column that groups is never taken for one that tells of the number.
        return {name: f"{name} (group)" if name in _TOLD else name for name in names}


_TOLD = ("result", "statistic", "column", "where", "label", "value", "low", "high", "confidence", "cost")
_PLAIN = (
    "title",
    "about",
    "dataset",
    "unit",
    "rows_per_unit",
    "neighbours",
    "rows",
    "composition",
    "request",
    "edition",
    "plan_digest",
    "version",
)


def _read_result(record: Mapping[str, Any]) -> Result:
    """Reads back what `Result.to_dict` wrote."""
    releases = tuple((tuple(part["key"]), read_release(part["release"])) for part in record["releases"])
    found = str(record.get("found", ""))
    search, paid = (budget_from_dict(record[name]) if found else Amount() for name in ("search", "paid"))
    if not isinstance(search, Amount) or not isinstance(paid, Amount) or not (releases or found):
        raise ValueError
    if any(len(key) != len(record["by"]) for key, _ in releases):
        raise ValueError
    if not all(release.private for _, release in releases) or record.get("private", True) is not True:
        raise ValueError  # seeded bits drew it
    name, statistic, column = (str(record[fact]) for fact in ("name", "statistic", "column"))
    where = tuple((str(condition), str(words)) for condition, words in record["where"])
    by = tuple(map(str, record["by"]))
    return Result(name, statistic, column, by, where, releases, found, search, paid)


def _read_facts(record: Mapping[str, Any]) -> dict[str, Any]:
    """Reads back what `Publication.facts` wrote."""
    if record["format"] != FORMAT or record["software"] != "sfumato":
        raise ValueError
    facts = {name: record[name] for name in _PLAIN}
    facts |= {name: record[name] for name in ("engine", "groups_per_unit") if name in record}
    _check_facts(facts)
    check_neighbours(facts["neighbours"])
    versions = {str(package): str(number) for package, number in record["versions"].items()}
    budget, price = budget_from_dict(record["budget"]), budget_from_dict(record["price"])
    if isinstance(budget, Amount) or not isinstance(price, Amount):
        raise ValueError
    return {**facts, "versions": versions, "budget": budget, "price": price}


def _check_facts(facts: Mapping[str, Any]) -> None:
    for name, value in facts.items():
        optional = name in ("rows", "rows_per_unit", "groups_per_unit")
        if not (type(value) is int or value is None if optional else isinstance(value, str)):
            raise ValueError


def _text(part: Category | None, quoted: bool) -> str:
    # A key of the data may have the name of the other rows.
    return OTHER if part is None else repr(part) if quoted and part == OTHER else str(part)
