"""Questions with the public facts of a data set filled in, and what their answers are stored as."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, cast

from sfumato.checks import shown
from sfumato.data.column import Column
from sfumato.data.conditions import category_words
from sfumato.data.dataset import Dataset
from sfumato.data.groups import Key
from sfumato.errors import InvalidParameter
from sfumato.grouped import OTHER, Found, GroupedRelease, GroupKey, together
from sfumato.groups import KeySearch, without
from sfumato.privacy import ComposedEvent, Event, Neighbours
from sfumato.query import Charged, Cost, Outcome, Query, encode, parameters
from sfumato.question import Question
from sfumato.release import Release
from sfumato.result import Answered, Result

# Of the digest of questions, and of a reply that is no publication.
FORMAT = 1


@dataclass(frozen=True)
class Asked:
    """A question with the public facts of the data filled in: one query for all keys, which cost the same."""

    question: Question
    column: Column
    any: Query
    # All that may be answered; None where the data hold the keys.
    keys: tuple[Key, ...] | None
    rows: Mapping[str, Any]
    # What the words of a key are added to.
    conditions: tuple[tuple[str, str], ...] = ()
    search: KeySearch | None = None

    @property
    def other(self) -> bool:
        """Whether the rows of no key make one more group."""
        return self.question.groups is not None and self.question.groups.other

    @property
    def charged(self) -> Charged:
        """What is paid for: the statistic, and the search for its groups."""
        return self.any if self.search is None else Searched(self.any, self.search)

    def queries(self, keys: Sequence[Key]) -> dict[GroupKey, Query]:
        """The query of each key, and of the other rows if they make a group.

        All but the words is the same for every group, so that one event stands for all.
        """
        by = self.question.by
        if not by:
            return {(): self.any}
        listed: list[GroupKey] = [*keys, *([(None,) * len(by)] if self.other else [])]
        words = [tuple(OTHER if part is None else category_words(part) for part in key) for key in listed]
        return {
            key: replace(self.any, among=(*self.conditions, *zip(by, told, strict=True)))  # type: ignore[type-var]
            for key, told in zip(listed, words, strict=True)
        }

    def answer(self, releases: Mapping[GroupKey, Release], *, private: bool) -> Answered:
        """The releases of all keys as one answer, which were found and drawn with private bits or not."""
        if not self.question.by:
            return releases[()]
        found = None if self.search is None else Found.of(self.search, self.any, private=private)
        return GroupedRelease(tuple(self.question.by), releases, found)

    def facts(self) -> dict[str, Any]:
        """All that decides the answer but the data, in JSON's types.

        Parameters with their usual values are left out: one that a later version adds must not make another
        question of this one.
        """
        usual = {field.name: field.default for field in fields(cast(Any, self.any))}
        said = {name: value for name, value in parameters(self.any).items() if value != encode(usual[name])}
        asked = {"statistic": self.any.name, "parameters": said, **self.rows, "by": list(self.question.by)}
        groups = {} if self.question.groups is None else self.question.groups.facts()
        told = {"groups": groups} if groups else {}
        return {**asked, "keys": None if self.keys is None else [list(key) for key in self.keys], **told}


@dataclass(frozen=True)
class Searched:
    """What a ledger is charged with for a statistic of groups that are found first."""

    name: ClassVar[str] = "groups"

    query: Query
    search: KeySearch

    @property
    def column(self) -> str:
        """Of which column."""
        return self.query.column

    @property
    def neighbours(self) -> Neighbours | None:
        """The relation of the data set."""
        return self.query.neighbours

    @property
    def event(self) -> Event:
        """The search and the statistic, composed."""
        return ComposedEvent([self.search.event, self.query.event])

    @property
    def cost(self) -> Cost:
        """What both cost together."""
        return together(self.search.cost, self.query.cost)


def ask(data: Dataset, question: Question) -> Asked:
    """The question with the public facts of the data filled in, or a refusal; before any charge."""
    query, where, by, groups = question.query, question.where, tuple(question.by), question.groups
    column = data.column(query.column)
    search: KeySearch | None = None
    if groups is not None:
        search, rest = groups.priced(query.budget, data.moved_keys, data.neighbours)
        query = without(query, rest)
    keys: tuple[Key, ...] | None
    if search is not None:
        # Refused here and not when keys are counted, which is after the charge.
        data.require_keys(by)
    if groups is not None and groups.private:
        data.require(where)
        keys, key = None, None
    else:
        data.require(where, by)
        keys = data.keys(by) if by else ((),)
        key = keys[0]
    bound = query.bind(column, data.field(query.column), data.neighbours, data.part(where, by, key))
    bound.check(column)
    if search is not None:
        search = search.beside(bound.cost, question.query.budget)
    return Asked(question, column, bound, keys, data.facts(where), data.part(where).among, search)


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
    results = [
        Result.of(one.question, answer, one.conditions).to_dict()
        for one, answer in zip(asked, answers, strict=True)
    ]
    return json.dumps({**facts, "results": results}, indent=1, ensure_ascii=False, allow_nan=False).encode()


def read_reply(stored: bytes, asked: Sequence[Asked]) -> tuple[Answered, ...]:
    """The answers behind a stored reply: their questions are known, so that keys and outcomes suffice."""
    answers: list[Answered] = []
    for record, one in zip(json.loads(stored)["results"], asked, strict=True):
        outcomes = {tuple(part["key"]): _outcome(part["release"]) for part in record["releases"]}
        queries = one.queries([key for key in outcomes if None not in key])
        releases = {key: Release(query, outcomes[key], private=True) for key, query in queries.items()}
        answers.append(one.answer(releases, private=True))
    return tuple(answers)


def _outcome(record: Mapping[str, Any]) -> Outcome:
    return tuple(int(part) for part in record["outcome"])
