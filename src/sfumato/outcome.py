"""What a charged request drew, as a ledger keeps it: keys and integers, and the public facts they belong to.

The outcome is stored before anything is made of it. A release, its intervals and its report are functions of
these bytes, so that whatever fails later, the same request leads to the same answer.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from sfumato.asked import Asked, query_of_group
from sfumato.checks import MAX_NAME
from sfumato.errors import InvalidParameter
from sfumato.grouped import Found, GroupedRelease, GroupKey
from sfumato.privacy import Amount, budget_from_dict, event_from_dict
from sfumato.quantile_methods import read_query
from sfumato.query import Outcome, Query, decode, encode, parameters
from sfumato.release import Release
from sfumato.result import Answered, Result
from sfumato.statistics.statistic import LARGEST_PART

FORMAT = 1
# Databases keep values of up to 10^9 bytes.
MAX_OUTCOME = 2**29
# The most that JSON takes for a character of a key, and for an integer of an outcome with what is around it.
_BYTES_OF_A_CHARACTER, _BYTES_OF_AN_INTEGER = 6, len(str(-LARGEST_PART)) + 2


@dataclass(frozen=True)
class DrawnOutcome:
    """The answers of a request, with the public facts that were stored with them."""

    facts: Mapping[str, Any]
    answers: tuple[Answered, ...]
    results: tuple[Result, ...]


def write_outcome(facts: Mapping[str, Any], asked: Sequence[Asked], answers: Sequence[Answered]) -> bytes:
    """The bytes that are kept of the answers; only their integers and keys are looked at."""
    drawn = [
        {
            **_heading(one),
            "keys": list(map(list, releases)),
            "outcomes": [each.outcome for each in releases.values()],
            **_resolutions(one, releases.values()),
        }
        for one, releases in zip(asked, map(_releases, answers), strict=True)
    ]
    record = {"format": FORMAT, "facts": dict(facts), "questions": drawn}
    # Nothing that a key may hold can fail to be encoded.
    return json.dumps(record, ensure_ascii=False, allow_nan=False).encode(errors="surrogatepass")


def read_outcome(stored: bytes) -> DrawnOutcome:
    """The answers behind the bytes of `write_outcome`, which a ledger vouches for."""
    record = json.loads(stored)
    if record["format"] != FORMAT:
        raise InvalidParameter(f"format of an outcome must be {FORMAT}; got {record['format']!r}")
    answers = tuple(map(_read_answer, record["questions"]))
    results = tuple(
        Result.of(one["name"], answer, tuple(map(tuple, one["where"])))
        for one, answer in zip(record["questions"], answers, strict=True)
    )
    return DrawnOutcome(record["facts"], answers, results)


def require_storable(facts: Mapping[str, Any], asked: Sequence[Asked]) -> None:
    """Refuse questions whose outcome may be too long to keep; decided by public facts, before the charge."""
    if most_bytes(facts, asked) > MAX_OUTCOME:
        numbers = sum(_most_groups(one) * one.any.parts_drawn for one in asked)
        raise InvalidParameter(
            f"questions must draw fewer numbers at once; got up to {numbers:,} in all, of which a request "
            f"keeps at most {MAX_OUTCOME:,} bytes. Ask for fewer groups, or in several requests"
        )


def most_bytes(facts: Mapping[str, Any], asked: Sequence[Asked]) -> int:
    """How long the outcome can be, whatever is drawn."""
    return len(write_outcome(facts, (), ())) + sum(map(_most_bytes, asked))


def _most_bytes(one: Asked) -> int:
    heading, columns = len(json.dumps(_heading(one))), len(one.question.by)
    if one.keys is None:
        keys = one.most_keys * columns * (_BYTES_OF_A_CHARACTER * MAX_NAME + len('"", '))
    else:
        keys = len(json.dumps(one.keys))
    rest = _most_groups(one) * (one.any.parts_drawn * _BYTES_OF_AN_INTEGER + len("[], []  ") + 6 * columns)
    return heading + len('"keys": , "outcomes": , {}') + keys + rest + _most_resolved(one)


def _most_resolved(one: Asked) -> int:
    if not _resolves_each(one):
        return 0
    query: Any = one.any
    each = len(json.dumps(encode(query.longest_resolved))) + len(", , ") + len(str(_most_groups(one)))
    return len('"resolved": [], "resolutions": [], ') + _most_groups(one) * each


def _most_groups(one: Asked) -> int:
    return (one.most_keys if one.keys is None else len(one.keys)) + one.other


def _heading(one: Asked) -> dict[str, Any]:
    query, search = one.any, one.search
    found = None if search is None else Found.of(search, query, private=True)
    return {
        "name": one.question.title,
        "where": one.conditions,
        "by": one.question.by,
        "statistic": query.name,
        "parameters": parameters(query),
        "found": found
        and {"words": found.words, "cost": found.cost.to_dict(), "event": found.event.to_dict()},
    }


def _resolves_each(one: Asked) -> bool:
    """Whether a count of each group decides how it is answered; elsewhere one choice is in the heading."""
    return getattr(one.any, "in_two_steps", False)


def _resolutions(one: Asked, releases: Iterable[Release]) -> dict[str, Any]:
    """The different choices that were made, each once, and which of them each outcome was drawn under."""
    if not _resolves_each(one):
        return {}
    made = [cast(Any, each.query).resolved for each in releases]
    places = {choice: place for place, choice in enumerate(dict.fromkeys(made))}
    return {"resolved": list(map(encode, places)), "resolutions": [places[choice] for choice in made]}


def _releases(answer: Answered) -> Mapping[GroupKey, Release]:
    return answer.releases if isinstance(answer, GroupedRelease) else {(): answer}


def _read_answer(record: Mapping[str, Any]) -> Answered:
    query = read_query(record["statistic"], record["parameters"])
    keys = list(map(tuple, record["keys"]))
    outcomes: list[Outcome] = list(map(tuple, record["outcomes"]))
    queries = [query] * len(outcomes)
    if "resolved" in record:
        made = [replace(query, resolved=decode(choice)) for choice in record["resolved"]]
        queries = [made[place] for place in record["resolutions"]]
    if not record["by"]:
        return Release(queries[0], outcomes[0], private=True)
    conditions, by = tuple(map(tuple, record["where"])), tuple(record["by"])
    releases = {
        key: Release(query_of_group(each, conditions, by, key), outcome, private=True)
        for key, each, outcome in zip(keys, queries, outcomes, strict=True)
    }
    return GroupedRelease(by, releases, _read_found(record["found"], query))


def _read_found(record: Mapping[str, Any] | None, query: Query) -> Found | None:
    if record is None:
        return None
    cost = budget_from_dict(record["cost"])
    assert isinstance(cost, Amount)
    return Found(record["words"], cost, event_from_dict(record["event"]), query)
