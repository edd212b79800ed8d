"""What a plan publishes: all results, with the public facts that they rest on."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sfumato.data.column import Category
from sfumato.errors import InvalidParameter
from sfumato.front import read_release
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
    plan_digest: str
    version: str
    versions: Mapping[str, str] = field(default_factory=dict)
    results: tuple[Result, ...]

    def facts(self) -> dict[str, Any]:
        """All but the results, in JSON's types."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        plain["versions"] = dict(self.versions)
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
            if record["format"] != FORMAT or record["software"] != "sfumato":
                raise ValueError
            facts = {name: record[name] for name in _PLAIN}
            _check_facts(facts)
            check_neighbours(facts["neighbours"])
            versions = {str(package): str(number) for package, number in record["versions"].items()}
            budget, price = budget_from_dict(record["budget"]), budget_from_dict(record["price"])
            if isinstance(budget, Amount) or not isinstance(price, Amount):
                raise ValueError
            results = tuple(map(_read_result, record["results"]))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise InvalidParameter("the text must be a release.json that sfumato release wrote") from None
        return cls(**facts, versions=versions, budget=budget, price=price, results=results)

    def rows_of_numbers(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """Every released number in a row of its own, in full precision, for a table in a file."""
        names = dict.fromkeys(name for result in self.results for name in result.by)
        # A column that groups is never taken for one that tells of the number.
        columns = {name: f"{name} (group)" if name in _TOLD else name for name in names}
        rows = []
        for result in self.results:
            where = "; ".join(f"{column}: {words}" for column, words in result.where)
            for key, release in result.releases:
                named = dict(zip(result.by, key, strict=True))
                for label, value, low, high in release.numbers(confidence):
                    rows.append(
                        {
                            "result": result.name,
                            "statistic": result.statistic,
                            "column": result.column,
                            "where": where,
                            **{column: _text(named.get(name)) for name, column in columns.items()},
                            "label": label,
                            "value": value,
                            "low": low,
                            "high": high,
                            "confidence": confidence,
                            "cost": result.cost,
                        }
                    )
        return rows


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
    "plan_digest",
    "version",
)


def _read_result(record: Mapping[str, Any]) -> Result:
    """Reads back what `Result.to_dict` wrote."""
    releases = tuple((tuple(part["key"]), read_release(part["release"])) for part in record["releases"])
    if not releases or any(len(key) != len(record["by"]) for key, _ in releases):
        raise ValueError
    if not all(release.private for _, release in releases):
        raise ValueError  # seeded bits drew it
    name, statistic, column = (str(record[fact]) for fact in ("name", "statistic", "column"))
    where = tuple((str(condition), str(words)) for condition, words in record["where"])
    return Result(name, statistic, column, tuple(map(str, record["by"])), where, releases)


def _check_facts(facts: Mapping[str, Any]) -> None:
    for name, value in facts.items():
        optional = name in ("rows", "rows_per_unit")
        if not (type(value) is int or value is None if optional else isinstance(value, str)):
            raise ValueError


def _text(part: Category | None) -> str | None:
    return None if part is None else str(part)
