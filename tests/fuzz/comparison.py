"""The two tables of a case, compared: laws, errors, statuses, charges, warnings, logs, publications."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tests.fuzz.cases import Ask, Case, Side
from tests.fuzz.reference import Reference, Undetermined
from tests.fuzz.routes import Observation, observe
from tests.fuzz.values import CANARIES

from sfumato.asked import Asked, ask_all
from sfumato.audit.compare import compare
from sfumato.audit.exact import LOG_ROUNDING, Loss, least_cost, loss_of
from sfumato.audit.kept_keys import exact_selection
from sfumato.data.groups import Key
from sfumato.data.portion import GroupKeys
from sfumato.drawing import reading_for
from sfumato.errors import NotSupported
from sfumato.laws import Joint, Law, SeededBits

# In this order: a difference in what is charged says more than one in what is logged.
COMPARED = ("error", "status", "charges", "warnings", "logs", "published")
SIDES: tuple[Side, Side] = ("left", "right")


@dataclass(frozen=True)
class Difference:
    """What tells two neighbours apart, or is wrong with one of them."""

    check: str
    words: str

    def __str__(self) -> str:
        return f"{self.check}: {self.words}"


@dataclass
class Tally:
    """How much was compared."""

    cases: int = 0
    void: int = 0
    refused: int = 0
    answers: int = 0
    losses: int = 0
    references: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


def differences(case: Case, folder: Path, tally: Tally | None = None) -> list[Difference]:
    """Everything by which an observer of this case learns more than was paid for; the first says most."""
    tally = Tally() if tally is None else tally
    pair = [observe(case, side, folder / side) for side in SIDES]
    found = [fault for side, seen in zip(SIDES, pair, strict=True) for fault in _faults(side, seen)]
    for name in COMPARED:
        left, right = (getattr(seen, name) for seen in pair)
        if left != right:
            found.append(Difference(name, f"left {left!r}, right {right!r}"))
    if all(seen.data is not None for seen in pair):
        tally.answers += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of the run were compared
            try:
                found += _laws(case, pair, tally)
            except Exception as error:  # of an engine, on groups that were not named before
                found.append(Difference("fault", f"laws cannot be found: {type(error).__name__}: {error}"))
    elif pair[0].error is not None:
        tally.refused += 1
    return found


def _faults(side: Side, seen: Observation) -> Iterator[Difference]:
    """What must not happen on any table."""
    if seen.error is not None and not seen.deliberate:
        yield Difference("fault", f"{side} raised {': '.join(seen.error)[:300]}")
    if seen.charges and (seen.error is not None or seen.status not in (None, 0)):
        yield Difference("charged", f"{side} was charged and not answered: {seen.error or seen.words[-300:]}")
    # Sums and casts that warn do so about values.
    for category, text in seen.warnings:
        if category != "UserWarning":
            yield Difference("warnings", f"{side} warned: {category}: {text[:300]}")
    for canary in CANARIES:
        if canary in seen.words:
            place = seen.words.index(canary)
            yield Difference(
                "canary", f"{side} told a value: {seen.words[max(0, place - 100) : place + 100]!r}"
            )


# --- laws ------------------------------------------------------------------------------------------


def _laws(case: Case, pair: list[Observation], tally: Tally) -> Iterator[Difference]:
    """Laws of the neighbours at most as far apart as was paid for, and each that of the rows that count."""
    asked = [ask_all(seen.data, seen.questions) for seen in pair]
    # Seeded bits choose rows of units by one key: what no one but the changed person has stays as it is.
    readings = [
        reading_for(seen.data, bound, SeededBits(case.seed)) for seen, bound in zip(pair, asked, strict=True)
    ]
    for ask, one, other in zip(case.asks, *asked, strict=True):
        if one.any != other.any:
            yield Difference("question", f"left {one.any!r}, right {other.any!r}")
            continue
        keys = one.keys or ()
        if one.search is not None:
            counted = [_counted(reading, one) for reading in readings]
            keys = tuple(sorted({*counted[0], *counted[1]}, key=repr))
            yield from _search_differences(case, ask, one, counted, keys, tally)
            if one.search.top is not None:
                keys = keys[: one.search.top]
        both = [_group_laws(reading, one, keys) for reading in readings]
        loss = _loss(partial(compare, _joint(both[0]), _joint(both[1])), least_cost(one.any))
        tally.losses += loss is not None
        if loss is not None and loss.verdict == "VIOLATED":
            yield Difference("loss", f"{loss} of {ask}")
        for side, laws in zip(SIDES, both, strict=True):
            yield from _wrong_laws(case, side, ask, one, keys, laws, tally)


def _counted(reading: Any, asked: Asked) -> dict[Key, int]:
    search: Any = asked.search
    question = asked.question
    maker = partial(reading.counted_keys, question.by, question.where, asked.keys, search.least)
    ((keys, counts),) = reading.settled([maker])
    return dict(zip(keys, counts.tolist(), strict=True))


def _group_laws(reading: Any, asked: Asked, keys: Sequence[Key]) -> list[Law]:
    groups = GroupKeys(tuple(asked.question.by), tuple(keys), asked.other)
    parts = reading.parts(asked.column.name, asked.question.where, groups)
    return list(reading.settled([partial(_law, asked.any, part) for part in parts]))


def _law(query: Any, column: Any) -> Any:
    return query.law(query.look(column))


def _joint(laws: list[Law]) -> Law:
    return laws[0] if len(laws) == 1 else Joint(tuple(laws))


def _loss(compared: Any, cost: Any) -> Loss | None:
    try:
        return loss_of(compared(), cost)
    except NotSupported:
        return None


def _search_differences(
    case: Case, ask: Ask, asked: Asked, counted: list[dict[Key, int]], keys: tuple[Key, ...], tally: Tally
) -> Iterator[Difference]:
    """The search for keys: its own loss, and the numbers of people that plain Python counts."""
    search: Any = asked.search
    left, right = (np.array([counts.get(key, 0) for key in keys], dtype=np.int64) for counts in counted)
    losses: list[Loss | None] = []
    if search.selection is not None and len(keys):
        losses.append(_selected(search.selection, left, right))
    if search.top is not None and search.top < len(keys):
        made = partial(compare, search._law(left), search._law(right))
        losses.append(_loss(made, search._largest.cost))
    for loss in losses:
        tally.losses += loss is not None
        if loss is not None and loss.verdict == "VIOLATED":
            yield Difference("loss", f"{loss} of the search for {ask}")
    for side, counts in zip(SIDES, counted, strict=True):
        try:
            expected = Reference(case, side).counted_keys(ask)
        except Undetermined:
            continue
        if asked.keys is not None:
            expected = {key: expected.get(key, 0) for key in asked.keys}
        if counts != expected:
            yield Difference("keys", f"{side} counted {counts!r}, which should be {expected!r}, for {ask}")


def _selected(selection: Any, left: Any, right: Any) -> Loss | None:
    try:
        return exact_selection(selection, left, right)
    except NotSupported:
        return None


def _wrong_laws(
    case: Case, side: Side, ask: Ask, asked: Asked, keys: Sequence[Key], laws: list[Law], tally: Tally
) -> Iterator[Difference]:
    """Groups whose law is not that of the rows that plain Python finds in them."""
    try:
        columns = Reference(case, side).columns(ask, keys, other=asked.other)
    except Undetermined:
        return
    for place, (law, column) in enumerate(zip(laws, columns, strict=True)):
        try:
            apart = compare(law, _law(asked.any, column)).epsilon().lower
        except NotSupported:
            continue
        tally.references += 1
        if apart > LOG_ROUNDING:
            key = keys[place] if place < len(keys) else "others"
            yield Difference("rows", f"{side} is answered of other rows than it should, {key!r} of {ask}")
            return
