"""From questions that are paid for to their answers: read the data, build the laws, draw."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from sfumato.asked import Asked
from sfumato.data.column import Column
from sfumato.data.dataset import Dataset, Reading
from sfumato.data.groups import Key
from sfumato.data.portion import GroupKeys
from sfumato.grid import Ints
from sfumato.laws import Bits
from sfumato.query import Outcome, Query, raw
from sfumato.release import Release
from sfumato.result import Answered


# A warning of NumPy would tell what numbers the data hold.
@np.errstate(all="ignore")
def draw(data: Dataset, asked: Sequence[Asked], bits: Bits) -> tuple[Answered, ...]:
    """The answers to all questions; comes after the charge.

    Keys are found first, then numbers of values that are counted privately are drawn, then answers, then
    counts that verify them, each in the order of the questions: tables in memory and in engines take the same
    bits for the same draws.
    """
    reading = reading_for(data, asked, bits)
    keys = _keys(reading, asked, bits)
    firsts = _first_parts(reading, asked, keys, bits)
    outcomes = iter(_outcomes(reading, asked, keys, firsts, bits))
    answers = []
    for place, one in enumerate(asked):
        # The type says whether bits are private; an attribute of one object could be set.
        releases = {
            key: Release(query, next(outcomes), type(bits).private)
            for key, query in one.queries(keys[place]).items()
        }
        answers.append(one.answer(releases, private=type(bits).private))
    return tuple(answers)


def _outcomes(
    reading: Reading,
    asked: Sequence[Asked],
    keys: Sequence[tuple[Key, ...]],
    firsts: dict[tuple[int, int], Outcome],
    bits: Bits,
) -> list[Outcome]:
    """What all laws draw, in order; then what those draw that read the data again after a draw."""
    found: list[Outcome] = []
    again: list[int] = []

    def rests() -> Iterator[Callable[[], Any]]:
        counted = [
            firsts.get((place, group), ())
            for place, one in enumerate(asked)
            for group, _ in enumerate(one.queries(keys[place]))
        ]
        laws = reading.settled(_makers(reading, asked, keys, firsts))
        for law, first in zip(laws, counted, strict=True):
            goes_on = hasattr(law, "after")
            drawn = raw((law.first if goes_on else law).sample(bits))
            found.append((*first, *drawn))
            if goes_on:
                again.append(len(found) - 1)
                yield partial(law.after, drawn)

    # A table in memory makes each of these at once, so that one law is held at a time.
    for place, law in zip(again, list(reading.settled(rests())), strict=True):
        found[place] += raw(law.sample(bits))
    return found


def reading_for(data: Dataset, asked: Sequence[Asked], bits: Bits) -> Reading:
    """The columns that some questions need, to be read after the charge."""
    return data.reading(bits, [(one.column.name, one.question.where, one.question.by) for one in asked])


def _keys(reading: Reading, asked: Sequence[Asked], bits: Bits) -> list[tuple[Key, ...]]:
    """The keys that are answered of each question."""
    searched = [one for one in asked if one.search is not None]
    counted = iter(list(reading.settled([partial(_counted_keys, reading, one) for one in searched])))
    found: list[tuple[Key, ...]] = []
    for one in asked:
        if one.search is None:
            found.append(one.keys or ())
        else:
            keys, counts = next(counted)
            found.append(one.search.found(keys, counts, bits))
    return found


def _counted_keys(reading: Reading, one: Asked) -> tuple[Sequence[Key], Ints]:
    least = 1 if one.search is None else one.search.least
    return reading.counted_keys(one.question.by, one.question.where, one.keys, least)


def _parts(reading: Reading, one: Asked, keys: tuple[Key, ...]) -> tuple[Column, ...]:
    groups = GroupKeys(tuple(one.question.by), keys, one.other)
    return reading.parts(one.column.name, one.question.where, groups)


def _first_parts(
    reading: Reading, asked: Sequence[Asked], keys: Sequence[tuple[Key, ...]], bits: Bits
) -> dict[tuple[int, int], Outcome]:
    """What is drawn first by laws in two steps, by question and group."""
    places, makers = [], []
    for place, one in enumerate(asked):
        if getattr(one.any, "in_two_steps", False):
            for group, column in enumerate(_parts(reading, one, keys[place])):
                places.append((place, group))
                makers.append(partial(_first_law, one.any, column))
    return {place: raw(law.sample(bits)) for place, law in zip(places, reading.settled(makers), strict=True)}


def _first_law(query: Any, column: Column) -> Any:
    return query.law(query.look(column)).first


def _makers(
    reading: Reading,
    asked: Sequence[Asked],
    keys: Sequence[tuple[Key, ...]],
    firsts: dict[tuple[int, int], Outcome],
) -> Iterator[Callable[[], Any]]:
    """How to make each law, in the order of the draws; the columns of one question are held at a time."""
    for place, one in enumerate(asked):
        for group, column in enumerate(_parts(reading, one, keys[place])):
            yield partial(_law, one.any, column, firsts.get((place, group)))


def _law(query: Query, column: Column, first: Outcome | None) -> Any:
    law: Any = query.law(query.look(column))
    return law if first is None else law.after(first)
