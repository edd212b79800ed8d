"""The order in which answers are drawn: keys, then what is counted first, then the rest, as asked."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import drawing
from sfumato.drawing import draw
from sfumato.laws import SeededBits, SystemBits


class Law:
    """A law that writes down when it is drawn from; its outcome is its name."""

    def __init__(self, name, log):
        self.name, self._log = name, log

    def sample(self, bits):
        self._log.append(f"draw {self.name}")
        return (len(draws(self._log)),)


class Stepped(Law):
    """A law that goes on after its first step; `further` says how often."""

    def __init__(self, name, log, further=1):
        super().__init__(name, log)
        self._further = further

    @property
    def first(self):
        return Law(f"{self.name} first", self._log)

    def after(self, first):
        self._log.append(f"read {self.name} after {first}")
        name = f"{self.name} after {first}"
        return Stepped(name, self._log, self._further - 1) if self._further > 1 else Law(name, self._log)


class Asked:
    """A question with fixed keys, or with some that are found."""

    def __init__(
        self,
        name,
        log,
        *,
        keys: Any = ((),),
        by=(),
        found=None,
        steps=False,
        verified=False,
        other=False,
    ):
        self.question = SimpleNamespace(by=by, where=None)
        self.column = SimpleNamespace(name=name)
        self.keys, self.other = keys, other
        further = steps + verified
        query = SimpleNamespace(
            look=lambda column: column,
            law=lambda column: Stepped(column, log, further) if further else Law(column, log),
            in_two_steps=steps,
        )
        self.any = query
        self.search = None
        if found is not None:

            def chosen(keys, counts, bits):
                log.append(f"find {name} {counts.tolist()}")
                return found

            self.search = SimpleNamespace(least=3, found=chosen)

    def queries(self, keys):
        listed = [*keys, *([(None,)] if self.other else [])]
        return dict.fromkeys(listed if self.question.by else [()], self.any)

    def answer(self, releases, *, private):
        assert all(release.private is private for release in releases.values())
        return {key: release.outcome for key, release in releases.items()}, private


class Reading:
    """Columns are told by their name and group; rounds and keys are written down."""

    def __init__(self, log, lazily):
        self._log, self._lazily = log, lazily

    def counted_keys(self, by, where, keys, least):
        self._log.append(f"count keys {least}")
        return [("a",), ("b",)], np.array([5, 6])

    def parts(self, column, where, groups):
        return tuple(f"{column}{group}" for group in range(groups.count))

    def settled(self, makers):
        # One after the other where the table is in memory; all at once where it is in an engine.
        found = (make() for make in (list(makers) if self._lazily else makers))
        return iter(list(found)) if self._lazily else found


def answers(lazily):
    log: list[str] = []
    questions = [
        Asked("plain", log),
        Asked("stepped", log, by=("team",), keys=(("x",), ("y",)), steps=True),
        Asked("found", log, by=("team",), found=(("b",),), keys=None, other=True),
        Asked("verified", log, by=("team",), keys=(("x",), ("y",)), verified=True),
        Asked("again", log, steps=True),
        Asked("both", log, steps=True, verified=True),
        Asked("none", log, by=("team",), found=(), keys=None),
    ]
    data: Any = SimpleNamespace(reading=lambda bits, columns: Reading(log, lazily))
    return draw(data, questions, SeededBits(1)), log  # type: ignore[arg-type]


FINDS = ["find found [5, 6]", "find none [5, 6]"]
DRAWS = [
    *FINDS,
    *(f"draw {name} first" for name in ("stepped0", "stepped1", "again0", "both0")),
    "draw plain0",
]


def draws(log):
    return [line for line in log if line.startswith("draw")]


def short(line):
    """A draw without what was drawn before it."""
    return line if " after" not in line else line.split(" after")[0] + " first" * line.endswith(") first")


@pytest.mark.parametrize("lazily", [False, True], ids=["memory", "engine"])
def test_keys_are_found_first_then_first_steps_then_the_rest_in_the_order_of_the_questions(lazily):
    found, log = answers(lazily)
    drawn = [line for line in log if not line.startswith(("count keys", "read"))]
    assert drawn[: len(DRAWS)] == DRAWS
    assert [short(line) for line in drawn[len(DRAWS) :]] == [
        *("draw stepped0", "draw stepped1", "draw found0", "draw found1"),
        *("draw verified0 first", "draw verified1 first", "draw again0", "draw both0 first"),
        # What is read after a draw is drawn from after all of these.
        *("draw verified0", "draw verified1", "draw both0"),
    ]
    keys = [[()], [("x",), ("y",)], [("b",), (None,)], [("x",), ("y",)], [()], [()], []]
    assert [list(each) for each, _ in found] == keys


@pytest.mark.parametrize("lazily", [False, True], ids=["memory", "engine"])
def test_in_memory_one_law_is_held_at_a_time_and_in_an_engine_all_that_verifies_is_read_at_once(lazily):
    _, log = answers(lazily)
    drawn = log.index("draw verified0 first")
    read = next(place for place, line in enumerate(log) if line.startswith("read verified0"))
    between = [short(line) for line in draws(log[drawn + 1 : read])]
    assert between == (["draw verified1 first", "draw again0", "draw both0 first"] if lazily else [])


def test_tables_in_memory_and_in_engines_draw_in_one_order():
    (_, memory), (_, engine) = answers(False), answers(True)
    assert [line for line in memory if line.startswith(("draw", "find"))] == [
        line for line in engine if line.startswith(("draw", "find"))
    ]


def test_a_law_in_two_steps_goes_on_from_its_own_first_step_and_tells_both():
    found, log = answers(True)
    drawn = draws(log)
    for outcome, name in [
        (found[1][0][("x",)], "stepped0"),
        (found[1][0][("y",)], "stepped1"),
        (found[3][0][("y",)], "verified1"),
        (found[4][0][()], "again0"),
    ]:
        first, last = outcome
        assert drawn[first - 1] == f"draw {name} first"
        assert drawn[last - 1] == f"draw {name} after ({first},)"
    first, middle, last = found[5][0][()]
    assert drawn[middle - 1] == f"draw both0 after ({first},) first"
    assert drawn[last - 1] == f"draw both0 after ({first},) after ({middle},)"


def test_keys_are_counted_down_to_the_least_that_is_named():
    _, log = answers(True)
    assert [line for line in log if line.startswith("count keys")] == ["count keys 3"] * 2


def test_the_order_of_draws_decides_seeded_answers(monkeypatch):
    # A mutant that draws first steps with the rest gives other answers, which the tests of engines would see.
    table = {"x": np.linspace(0, 9, 50)}
    data = sf.Dataset(table, unit="row", neighbours="add-remove", schema={"x": sf.Field(bounds=(0, 9))})
    of_x: dict[str, Any] = {"budget": sf.PureDP(1), "column": "x"}
    queries = [sf.Sum(**of_x), sf.Quantiles(**of_x, probs=(0.25, 0.75), step=1)]
    questions = [sf.Question(query=each) for each in queries]

    def drawn():
        session = sf.Session(data, budget=sf.PureDP(9), bits=SeededBits(3))
        return [each.outcome for each in session.answer_all(questions)]

    right = drawn()
    assert drawn() == right
    monkeypatch.setattr(drawing, "_first_parts", lambda *args: {})
    monkeypatch.setattr(drawing, "_law", lambda query, column, first: query.law(query.look(column)))
    assert drawn() != right


def test_answers_are_private_by_the_type_of_the_bits():
    log: list[str] = []
    data: Any = SimpleNamespace(reading=lambda bits, columns: Reading(log, False))
    for bits, private in ((SeededBits(1), False), (SystemBits(), True)):
        ((_, told),) = draw(data, [Asked("plain", log)], bits)  # type: ignore[list-item]
        assert told is private
