"""Questions with the public facts of a data set filled in, and what their answers are stored as."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sfumato.checks import shown
from sfumato.data.column import Column
from sfumato.data.dataset import Dataset
from sfumato.errors import InvalidParameter
from sfumato.grouped import GroupedRelease, Key
from sfumato.query import Outcome, Query, parameters
from sfumato.question import Question
from sfumato.release import Release

Answered = Release | GroupedRelease


@dataclass(frozen=True)
class Asked:
    """A question with the public facts of the data filled in: a query for every key, all of one cost."""

    question: Question
    column: Column
    queries: dict[Key, Query]

    @property
    def any(self) -> Query:
        """The query of the first key: what all of them cost together."""
        return next(iter(self.queries.values()))

    def facts(self) -> dict[str, Any]:
        """All that decides the answer but the data, in JSON's types."""
        keys = [list(key) for key in self.queries]
        shared = {"statistic": self.any.name, "parameters": parameters(self.any)}
        return {**shared, "by": list(self.question.by), "keys": keys}


def ask(data: Dataset, question: Question) -> Asked:
    """The question with the public facts of the data filled in, or a refusal; before any charge."""
    query, where, by = question.query, question.where, tuple(question.by)
    column = data.column(query.column)
    data.require(where, by)
    keys: tuple[Key, ...] = data.keys(by) if by else ((),)
    bound = query.bind(column, data.field(query.column), data.neighbours, data.part(where, by, keys[0]))
    bound.check(column)
    queries = {keys[0]: bound}
    for key in keys[1:]:
        # All but the words is the same for every group, so that one event stands for all.
        queries[key] = replace(bound, among=data.part(where, by, key).among)  # type: ignore[type-var]
    return Asked(question, column, queries)


def ask_all(data: Dataset, questions: Sequence[Question]) -> list[Asked]:
    """Every question with the public facts filled in."""
    if not questions or not all(isinstance(question, Question) for question in questions):
        raise InvalidParameter(f"questions must be at least one Question, got {shown(questions)}")
    return [ask(data, question) for question in questions]


def digest_of(asked: Sequence[Asked]) -> str:
    """What tells questions apart: a digest of all their public facts."""
    facts = [one.facts() for one in asked]
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write_answers(answers: Sequence[Answered]) -> bytes:
    """The answers as a stored reply."""
    return json.dumps([answer.to_dict() for answer in answers]).encode()


def read_answers(stored: bytes, asked: Sequence[Asked]) -> tuple[Answered, ...]:
    """The answers behind a stored reply: their questions are known, so that the outcomes suffice."""
    answers: list[Answered] = []
    for record, one in zip(json.loads(stored), asked, strict=True):
        records = [part["release"] for part in record["releases"]] if one.question.by else [record]
        releases = {
            key: Release(query, _outcome(stored_one), private=True)
            for (key, query), stored_one in zip(one.queries.items(), records, strict=True)
        }
        by = tuple(one.question.by)
        answers.append(GroupedRelease(by, releases) if by else releases[()])
    return tuple(answers)


def _outcome(record: Mapping[str, Any]) -> Outcome:
    return tuple(int(part) for part in record["outcome"])
