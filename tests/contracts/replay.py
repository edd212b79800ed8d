"""Record and replay: what a session draws and charges on a table, and whether neighbours look alike."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np

import sfumato as sf
from sfumato.laws import Bits, DiscreteGaussian, DiscreteLaplace, Law, Point, SeededBits, Shifted
from sfumato.privacy import Amount, Event, GaussianEvent, LaplaceEvent
from sfumato.query import Cost
from sfumato.statistics import STATISTICS

NULLS = ("drop", "lower", "upper", None)


def budgets() -> list[tuple[Any, str]]:
    return [
        (sf.PureDP(1), "auto"),
        (sf.PureDP(0.01), "laplace"),
        (sf.ApproxDP(1, 1e-6), "auto"),
        (sf.ApproxDP(0.5, 1e-5), "gaussian"),
        (sf.ZCDP(0.1), "gaussian"),
    ]


@dataclass(frozen=True)
class Table:
    """Rows of (number, text, truth), some of them null."""

    rows: list[tuple[float, str | None, bool | None]]

    def dataset(self, relation: str) -> sf.Dataset:
        truths = [row[2] for row in self.rows]
        filled = np.array([bool(truth) for truth in truths], dtype=bool)
        columns = {
            "number": np.array([row[0] for row in self.rows], dtype=np.float64),
            "text": np.array([row[1] for row in self.rows], dtype=object),
            "truth": np.ma.MaskedArray(filled, mask=[truth is None for truth in truths]),
        }
        return sf.Dataset(columns, unit="row", neighbours=relation)


@dataclass(frozen=True, eq=False)
class Draw:
    """One call of a law: its noise, and the private integers that it was centered on."""

    noise: Law
    center: np.ndarray


@dataclass
class Answer:
    """The trace of one question: what it was charged, what it drew, what an observer sees."""

    query: Any
    event: Event
    cost: Cost
    spent: Amount
    draws: list[Draw]
    words: int
    outcome: tuple[int, ...]


@dataclass
class CountedBits(Bits):
    """Seeded bits that count how many words were taken."""

    seed: int
    used: int = 0
    private: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._bits = SeededBits(self.seed)

    def words(self, count: int) -> Any:
        self.used += count
        return self._bits.words(count)


@contextmanager
def recorded() -> Iterator[list[Draw]]:
    """Every draw of noise around a center, and every exact answer, in order."""
    draws: list[Draw] = []
    shifted, point = Shifted.sample, Point.sample

    def shifted_sample(law: Shifted, bits: Bits, size: int | None = None) -> Any:
        draws.append(Draw(law.noise, np.atleast_1d(np.array(law.center, dtype=object))))
        return shifted(law, bits, size)

    def point_sample(law: Point, bits: Bits, size: int | None = None) -> Any:
        draws.append(Draw(Point(0), np.atleast_1d(np.array(law.value, dtype=object))))
        return point(law, bits, size)

    with patch.object(Shifted, "sample", shifted_sample), patch.object(Point, "sample", point_sample):
        yield draws


def replay(table: Table, relation: str, asked: list[tuple[str, dict[str, Any]]], seed: int) -> list[Answer]:
    """The traces of all questions; a refusal on public facts stands for its answer."""
    answers = []
    for name, parameters in asked:
        bits = CountedBits(seed)
        with recorded() as draws:
            session = sf.Session(table.dataset(relation), budget=parameters["budget"], bits=bits)
            release = session.answer(STATISTICS[name](**parameters))
        answers.append(
            Answer(
                release.query, release.event, release.cost, session.spent, draws, bits.used, release.outcome
            )
        )
    return answers


CORNERS = [
    (0.0, "a", True),
    (1.0, "b", False),
    (-9.0, "c", True),
    (9.0, "a", None),
    (math.inf, None, False),
    (math.nan, "b", None),
]
QUESTIONS = [
    ("count", {"column": "text"}),
    ("count", {"column": "number", "between": (0, 1)}),
    ("proportion", {"column": "truth"}),
    ("sum", {"column": "number", "bounds": (-1, 3)}),
    ("sum", {"column": "number", "bounds": (1, 3)}),
    ("mean", {"column": "number", "bounds": (-1, 3)}),
    ("variance", {"column": "number", "bounds": (-1, 3)}),
    ("histogram", {"column": "number", "bounds": (0, 3), "bins": 3}),
    ("histogram", {"column": "text", "categories": ("a", "b"), "other": True}),
]


def corner_pairs() -> Iterator[tuple[str, Table, Table]]:
    """Neighbouring tables that differ in one of the extreme rows."""
    for place, row in enumerate(CORNERS):
        rest = [*CORNERS[:place], *CORNERS[place + 1 :]]
        yield "add-remove", Table(CORNERS), Table(rest)
        for other in CORNERS[place + 1 :]:
            yield "substitution", Table([*rest, row]), Table([other, *rest])


def assert_corner_tables_leave_the_same_trace() -> None:
    for relation, left, right in corner_pairs():
        for nulls in NULLS[:3]:
            for budget, noise in budgets()[::3]:
                asked = [
                    (name, {**public, "budget": budget, "noise": noise, "nulls": nulls})
                    for name, public in QUESTIONS
                ]
                assert_same_trace(*(replay(table, relation, asked, 7) for table in (left, right)))


def assert_same_trace(left: list[Answer], right: list[Answer]) -> None:
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        assert one.query == other.query
        assert (one.event, one.cost, one.spent) == (other.event, other.cost, other.spent)
        assert one.words == other.words, "the number of random words depends on the data"
        assert [draw.noise for draw in one.draws] == [draw.noise for draw in other.draws]
        assert [draw.center.shape for draw in one.draws] == [draw.center.shape for draw in other.draws]
        assert len(one.outcome) == len(other.outcome)
        assert_within_sensitivity(one, other)


def assert_within_sensitivity(one: Answer, other: Answer) -> None:
    """The centers differ by at most what the event declares, in exact numbers."""
    pure, rho, moves = Fraction(0), Fraction(0), []
    for left, right in zip(one.draws, other.draws, strict=True):
        moved = [abs(int(step)) for step in left.center - right.center if step]
        moves += moved
        if isinstance(left.noise, Point):
            assert not moved, "a public answer depends on the data"
        elif isinstance(left.noise, DiscreteLaplace):
            pure += sum(moved) / left.noise.scale
        else:
            assert isinstance(left.noise, DiscreteGaussian)
            rho += sum(step**2 for step in moved) / (2 * left.noise.sigma_squared)
    event = one.event
    if isinstance(event, LaplaceEvent):
        assert sum(moves) <= event.sensitivity
    if isinstance(event, GaussianEvent):
        assert len(moves) <= event.coordinates
        assert rho <= event.rho
    else:
        assert rho == 0
        assert pure <= event.pure_epsilon
