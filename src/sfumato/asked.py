"""Questions with the public facts of a data set filled in, and what their answers are stored as."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from sfumato.checks import shown
from sfumato.data.column import Column
from sfumato.data.conditions import category_words
from sfumato.data.dataset import Dataset
from sfumato.errors import InvalidParameter
from sfumato.grouped import GroupedRelease, Key
from sfumato.query import Outcome, Query, encode, parameters
from sfumato.question import Question
from sfumato.release import Release
from sfumato.result import Answered, Result

# Of the digest of questions, and of a reply that is no publication.
FORMAT = 1


@dataclass(frozen=True)
class Asked:
    """A question with the public facts of the data filled in: a query for every key, all of one cost."""

    question: Question
    column: Column
    queries: dict[Key, Query]
    rows: Mapping[str, Any]

    @property
    def any(self) -> Query:
        """The query of the first key: what all of them cost together."""
        return next(iter(self.queries.values()))

    def facts(self) -> dict[str, Any]:
        """All that decides the answer but the data, in JSON's types.

        Parameters with their usual values are left out: one that a later version adds must not make another
        question of this one.
        """
        keys = [list(key) for key in self.queries]
        usual = {field.name: field.default for field in fields(cast(Any, self.any))}
        said = {name: value for name, value in parameters(self.any).items() if value != encode(usual[name])}
        asked = {"statistic": self.any.name, "parameters": said, **self.rows}
        return {**asked, "by": list(self.question.by), "keys": keys}


def ask(data: Dataset, question: Question) -> Asked:
    """The question with the public facts of the data filled in, or a refusal; before any charge."""
    query, where, by = question.query, question.where, tuple(question.by)
    column = data.column(query.column)
    data.require(where, by)
    keys: tuple[Key, ...] = data.keys(by) if by else ((),)
    bound = query.bind(column, data.field(query.column), data.neighbours, data.part(where, by, keys[0]))
    bound.check(column)
    queries = {keys[0]: bound}
    conditions = data.part(where).among
    for key in keys[1:]:
        # All but the words is the same for every group, so that one event stands for all.
        among = (*conditions, *zip(by, map(category_words, key), strict=True))
        queries[key] = replace(bound, among=among)  # type: ignore[type-var]
    return Asked(question, column, queries, data.facts(where))


def ask_all(data: Dataset, questions: Sequence[Question]) -> list[Asked]:
    """Every question with the public facts filled in."""
    if not questions or not all(isinstance(question, Question) for question in questions):
        raise InvalidParameter(f"questions must be at least one Question, got {shown(questions)}")
    return [ask(data, question) for question in questions]


def digest_of(asked: Sequence[Asked], fingerprint: str | None) -> str:
    """What tells requests apart: a digest of all public facts of the questions, and of the content."""
    told = [FORMAT, [one.facts() for one in asked], fingerprint]
    text = json.dumps(told, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write_reply(facts: Mapping[str, Any], asked: Sequence[Asked], answers: Sequence[Answered]) -> bytes:
    """What is kept of the answers: JSON with these facts first, then a result for every question."""
    results = [Result.of(one.question, answer).to_dict() for one, answer in zip(asked, answers, strict=True)]
    return json.dumps({**facts, "results": results}, indent=1, ensure_ascii=False, allow_nan=False).encode()


def read_reply(stored: bytes, asked: Sequence[Asked]) -> tuple[Answered, ...]:
    """The answers behind a stored reply: their questions are known, so that the outcomes suffice."""
    answers: list[Answered] = []
    for record, one in zip(json.loads(stored)["results"], asked, strict=True):
        releases = {
            key: Release(query, _outcome(part["release"]), private=True)
            for (key, query), part in zip(one.queries.items(), record["releases"], strict=True)
        }
        by = tuple(one.question.by)
        answers.append(GroupedRelease(by, releases) if by else releases[()])
    return tuple(answers)


def _outcome(record: Mapping[str, Any]) -> Outcome:
    return tuple(int(part) for part in record["outcome"])
