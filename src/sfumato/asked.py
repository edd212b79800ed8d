"""Questions with the public facts of a data set filled in, and the digest that tells requests apart."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
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
from sfumato.query import Charged, Cost, Query, encode, parameters
from sfumato.question import Question
from sfumato.release import Release
from sfumato.result import Answered

# Of the digest of questions.
FORMAT = 1


@dataclass(frozen=True)
class Asked:
    """A question with the public facts of the data filled in: one query for all keys, which cost the same."""

    question: Question
    column: Column
    any: Query
    # All that may be answered; None where the data hold the keys.
    keys: tuple[Key, ...] | None
    # What the words of a key are added to.
    conditions: tuple[tuple[str, str], ...] = ()
    search: KeySearch | None = None

    @property
    def other(self) -> bool:
        """Whether the rows of no key make one more group."""
        return self.question.groups is not None and self.question.groups.other

    @property
    def most_keys(self) -> int:
        """How many keys may be answered."""
        if self.keys is not None:
            return len(self.keys)
        return 0 if self.search is None else self.search.answered

    @property
    def charged(self) -> Charged:
        """What is paid for: the statistic, and the search for its groups."""
        return self.any if self.search is None else Searched(self.any, self.search)

    def queries(self, keys: Sequence[Key]) -> dict[GroupKey, Query]:
        """The query of each key, and of the other rows if they make a group; one event stands for all."""
        by = self.question.by
        if not by:
            return {(): self.any}
        listed: list[GroupKey] = [*keys, *([(None,) * len(by)] if self.other else [])]
        return {key: query_of_group(self.any, self.conditions, by, key) for key in listed}

    def answer(self, releases: Mapping[GroupKey, Release], *, private: bool) -> Answered:
        """The releases of all keys as one answer, which were found and drawn with private bits or not."""
        if not self.question.by:
            return releases[()]
        found = None if self.search is None else Found.of(self.search, self.any, private=private)
        return GroupedRelease(tuple(self.question.by), releases, found)


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
    # One choice for all groups, unless a count of each decides it.
    resolved_by: Callable[[], Query] | None = getattr(bound, "resolved_by", None)
    bound = bound if resolved_by is None else resolved_by()
    if search is not None:
        search = search.beside(bound.cost, question.query.budget)
    return Asked(question, column, bound, keys, data.part(where).among, search)


def ask_all(data: Dataset, questions: Sequence[Question]) -> list[Asked]:
    """Every question with the public facts filled in."""
    if not questions or not all(isinstance(question, Question) for question in questions):
        raise InvalidParameter(f"questions must be at least one Question, got {shown(questions)}")
    return [ask(data, question) for question in questions]


def digest_of(data: Dataset, questions: Sequence[Question]) -> str:
    """What tells requests apart: a digest of the questions and of the declared facts of the data set.

    Nothing that is read from the data enters, neither their content nor the number of rows: whether two
    requests are the same tells nothing about the data.
    """
    declared = {name: parameters(field) for name, field in data.schema.items()}
    told = [FORMAT, data.neighbours, declared, [question_facts(data, question) for question in questions]]
    text = json.dumps(told, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def question_facts(data: Dataset, question: Question) -> dict[str, Any]:
    """All that decides the answer but the data, in JSON's types.

    Parameters with their usual values are left out: one that a later version adds must not make another
    question of this one. So is what was resolved, which follows from the others.
    """
    query, groups = question.query, question.groups
    usual = {field.name: field.default for field in fields(cast(Any, query))}
    given = {name: value for name, value in parameters(query).items() if value != encode(usual[name])}
    given.pop("resolved", None)
    facts = {
        "statistic": query.name,
        "parameters": given,
        **data.facts(question.where),
        "by": list(question.by),
    }
    chosen = {} if groups is None else groups.facts()
    return {**facts, "groups": chosen} if chosen else facts


def query_of_group(
    query: Query, conditions: tuple[tuple[str, str], ...], by: Sequence[str], key: GroupKey
) -> Query:
    """The query of one group: all but its words is the same for every group."""
    words = [OTHER if part is None else category_words(part) for part in key]
    among = (*conditions, *zip(by, words, strict=True))
    return replace(query, among=among)  # type: ignore[type-var]
