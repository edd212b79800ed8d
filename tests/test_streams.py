"""Streams of counts about a data set: what they cost, which counts are legitimate, and what they refuse."""

import copy
import itertools
import os
import pickle
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any

import numpy as np
import pytest
from tests.contracts.gate import watched
from tests.contracts.replay import CountedBits
from tests.hostile import assert_one_line
from tests.mechanisms.streams import ROUNDING, Values, log_mass, patterns

import sfumato as sf
from sfumato.data.admission import admit
from sfumato.data.column import Column
from sfumato.data.counts import Sums
from sfumato.data.field import Field
from sfumato.errors import BudgetExceeded, InvalidParameter, NotSupported, SfumatoError
from sfumato.laws import SeededBits
from sfumato.mechanisms.moves import AnyQueries, SameDirection
from sfumato.mechanisms.sparse import Sparse, SparseMechanism
from sfumato.privacy import Amount
from sfumato.streams import Stream, StreamTerms

RELATIONS = ("substitution", "add-remove")
each_relation = pytest.mark.parametrize("relation", RELATIONS)
AGES = np.array([float(age) for age in range(100)] * 20)


def session(relation: str = "add-remove", budget: Any = None, **options: Any) -> sf.Session:
    columns = {"age": AGES, "sex": np.array(["f", "m"] * 1000, dtype=object)}
    data = sf.Dataset(columns, unit="row", neighbours=relation)
    return sf.Session(data, budget=budget or sf.PureDP(10), **options)


def opened(relation: str = "add-remove", **options: Any) -> Stream:
    given = {"threshold": 1000, "budget": sf.PureDP(1), "column": "age", **options}
    return session(relation).open_stream(**given)


# --- which counts are legitimate -------------------------------------------------------------------


NAN = float("nan")
RECORDS = (0.0, 1.0, 2.0, NAN)
COUNTS = [
    *({"between": between} for between in ((0, 0), (1, 2), (0, 2), (5, 9))),
    *({"equals": equals} for equals in ((0,), (1, 2))),
    {},
]
OFFERS = [{**count, "nulls": nulls} for count in COUNTS for nulls in (None, "drop", "lower", "upper")]


def neighbours(relation: str, most: int = 3) -> Iterator[tuple[tuple[float, ...], tuple[float, ...]]]:
    """Every small data set with each of its neighbours."""
    for size in range(most):
        for common in itertools.combinations_with_replacement(RECORDS, size):
            if relation == "add-remove":
                yield from ((common, (*common, record)) for record in RECORDS)
            else:
                yield from (
                    ((*common, one), (*common, other)) for one, other in itertools.permutations(RECORDS, 2)
                )


@cache
def counts_of(values: tuple[float, ...], relation: str, kind: Any = sf.Count) -> Values:
    """All counts that can be offered, as a stream reads them."""
    column = admit(np.array(values))
    bound = [
        kind(budget=sf.PureDP(1), **offer).bind(column, Field(), relation)  # type: ignore[arg-type]
        for offer in OFFERS
    ]
    return tuple(query.look(column).first for query in bound)


def moves(relation: str, kind: Any = sf.Count) -> set[Values]:
    """How one record moves all counts at once, over all small data sets."""
    found = set()
    for left, right in neighbours(relation):
        ends = (counts_of(values, relation, kind) for values in (left, right))
        before, after = ends
        found.add(tuple(later - earlier for earlier, later in zip(before, after, strict=True)))
    return found


@each_relation
def test_a_record_moves_every_count_by_at_most_one_and_all_together_under_add_remove(relation):
    found = moves(relation)
    assert {part for move in found for part in move} >= {0, 1}
    assert all(abs(part) <= 1 for move in found for part in move)
    mixed = [move for move in found if min(move) < 0 < max(move)]
    # Under substitution one count goes up while another goes down, so that the general row is needed.
    assert bool(mixed) == (relation == "substitution")
    terms = opened(relation).mechanism.moves
    assert terms == (AnyQueries(1) if mixed else SameDirection(1))


class NullsTakenBack(sf.Count):
    """A null under "lower" takes back a match, where it should count for nothing."""

    def look(self, column: Column) -> Sums:
        sums = super().look(column)
        missing = column.nulls() if self.null_rule == "lower" else 0
        return replace(sums, first=sums.first - missing)


@each_relation
def test_nulls_treated_in_another_way_are_caught(relation):
    found = moves(relation, NullsTakenBack)
    mixed = any(min(move) < 0 < max(move) for move in found)
    too_far = any(abs(part) > 1 for move in found for part in move)
    assert mixed or relation == "substitution"
    assert too_far == (relation == "substitution")
    # With the scales that the stream has, such counts lose more than was charged.
    worst = max(loss_of_run(opened(relation).mechanism, up, down) for up, down in pairs_of_parts(found))
    print(f"nulls taken back, {relation}: {worst:.4f}")
    assert worst > 1.2
    right = moves(relation)
    assert (
        max(loss_of_run(opened(relation).mechanism, *pair) for pair in pairs_of_parts(right)) <= 1 + ROUNDING
    )


def pairs_of_parts(found: set[Values]) -> set[tuple[int, int]]:
    return {pair for move in found for pair in itertools.product(set(move), repeat=2)}


def loss_of_run(mechanism: SparseMechanism, run: int, last: int) -> float:
    """Many counts move by `run` and stay below; another moves by `last` and crosses."""
    told = (False,) * 3000 + (True,)
    logs = log_mass(mechanism)
    return abs(logs((0,) * 3000 + (-25,), told) - logs((run,) * 3000 + (last - 25,), told))


# --- audits ----------------------------------------------------------------------------------------


@each_relation
@pytest.mark.parametrize("crossings", [1, 2])
@pytest.mark.parametrize("epsilon", [1, 5])
def test_no_small_data_set_loses_more_than_was_charged(relation, crossings, epsilon):
    stream = opened(relation, crossings=crossings, budget=sf.PureDP(epsilon))
    logs, chosen = log_mass(stream.mechanism), (0, 1, 7, 18, 24)
    worst, seen = 0.0, set()
    for left, right in neighbours(relation):
        ends = tuple(
            tuple(counts_of(values, relation)[place] - 2 for place in chosen) for values in (left, right)
        )
        seen.add(ends)
    for before, after in seen:
        for told in patterns(len(before), crossings):
            worst = max(worst, abs(logs(before, told) - logs(after, told)))
    print(f"{relation}, {crossings} crossings, epsilon {epsilon}: {worst / epsilon:.4f} of the charge")
    assert 0.25 * epsilon < worst <= epsilon + ROUNDING


@each_relation
def test_the_charge_is_reached_in_a_long_run_and_half_the_noise_is_caught_under_substitution(relation):
    mechanism = opened(relation).mechanism
    up_and_down = (1, -1) if relation == "substitution" else (1, 0)
    assert 0.999 <= loss_of_run(mechanism, *up_and_down) <= 1 + ROUNDING
    together = opened("add-remove").mechanism
    loss = loss_of_run(together, 1, -1)
    print(f"noise of add-remove under substitution: {loss:.4f}")
    assert loss == pytest.approx(1.5, abs=1e-3)


# --- the stream is Sparse on exact counts ------------------------------------------------------------


@each_relation
@pytest.mark.parametrize("answers", [None, Fraction(1, 3)])
def test_the_answers_are_those_of_the_mechanism_on_the_exact_counts(relation, answers):
    asked = [{"between": (0, high)} for high in range(0, 100, 3)]
    for seed in range(20):
        here = session(relation, bits=SeededBits(seed))
        options = {"threshold": 900, "crossings": 2, "budget": sf.PureDP(Fraction(1, 20)), "answers": answers}
        stream = here.open_stream(column="age", **options)
        plain = Sparse(stream.mechanism, 900, SeededBits(seed))
        for part in asked:
            if stream.halted:
                break
            count = int((part["between"][1] >= AGES).sum())
            assert stream.offer(**part) == plain.offer(count)
        assert stream.halted == plain.halted
        assert not stream.private
        assert "NOT PRIVATE" in str(stream)


@each_relation
def test_a_count_is_bound_to_the_data_set_as_a_session_binds_it(relation):
    column = np.ma.masked_array(np.arange(6), mask=[0, 0, 0, 0, 1, 1])
    schema = {"x": Field(nulls="upper")}
    data = sf.Dataset({"x": column}, unit="row", neighbours=relation, schema=schema)
    budget = sf.PureDP(10**6)
    options = {"threshold": 4, "crossings": 9, "budget": budget, "answers": Fraction(1, 2)}
    stream = sf.Session(data, budget=budget).open_stream(**options)
    # The schema counts nulls as matches, and an offer may say otherwise.
    assert stream.offer(column="x", between=(0, 2)) == 5
    assert stream.offer(column="x", between=(0, 2), nulls="drop") == "below"
    assert stream.offer(column="x") == 6
    assert stream.offer(sf.Count(column="x", budget=sf.PureDP(1), equals=(0, 1, 2, 3))) == 6
    assert stream.offer(sf.Count(column="x", budget=sf.PureDP(1), nulls="drop")) == "below"


# --- charges ---------------------------------------------------------------------------------------


def test_the_whole_is_charged_to_both_ledgers_when_it_is_opened_and_nothing_later():
    ledger = sf.MemoryLedger(sf.PureDP(1), neighbours="add-remove")
    here = session(budget=sf.PureDP(1), ledger=ledger)
    stream = here.open_stream(threshold=1000, crossings=3, budget=sf.PureDP(0.25))
    assert here.spent == ledger.spent == Amount(epsilon=0.25)
    for _ in range(50):
        assert stream.offer(column="age", between=(200, 300)) == "below"
    assert here.spent == ledger.spent == Amount(epsilon=0.25)
    (entry,) = ledger.entries
    assert (entry.statistic, entry.column, entry.event) == ("stream", "any column", stream.event)
    assert stream.cost == Fraction(1, 4)


@pytest.mark.parametrize(("own", "shared"), [(1, Fraction(1, 2)), (Fraction(1, 2), 1)])
def test_a_refusal_by_either_ledger_leaves_both_unchanged(own, shared):
    ledger = sf.MemoryLedger(sf.PureDP(shared), neighbours="add-remove")
    here = session(budget=sf.PureDP(own), ledger=ledger)
    with pytest.raises(BudgetExceeded):
        here.open_stream(threshold=1000, budget=sf.PureDP(0.75))
    assert here.spent == ledger.spent == Amount()
    assert ledger.entries == ()


def test_nothing_is_drawn_before_the_charge():
    bits = CountedBits(3)
    here = session(budget=sf.PureDP(0.5), bits=bits)
    with pytest.raises(BudgetExceeded):
        here.open_stream(threshold=1000, budget=sf.PureDP(0.75))
    assert bits.used == 0
    here.open_stream(threshold=1000, budget=sf.PureDP(0.5))
    assert bits.used > 0


def test_opening_reads_nothing_and_each_offer_reads_once():
    reads: list[None] = []
    here = sf.Session(watched(lambda: reads.append(None)), budget=sf.PureDP(1))
    stream = here.open_stream(threshold=10**6, budget=sf.PureDP(1))
    assert not reads
    stream.offer(column="x", between=(0, 3))
    assert len(reads) == 1


def test_a_stream_fits_a_concentrated_cap_at_its_pure_price():
    here = session(budget=sf.ZCDP(Fraction(1, 8)))
    here.open_stream(threshold=5, budget=sf.PureDP(Fraction(1, 2)))
    assert here.remaining == Amount()


# --- refusals --------------------------------------------------------------------------------------


OPENINGS = {
    "a concentrated budget": {"budget": sf.ZCDP(1)},
    "an approximate budget": {"budget": sf.ApproxDP(1, 1e-6)},
    "a number for a budget": {"budget": 1},
    "a real threshold": {"threshold": 10.5},
    "a huge threshold": {"threshold": 2**61},
    "no crossings": {"crossings": 0},
    "half a crossing": {"crossings": 0.5},
    "all for the numbers": {"answers": 1},
    "a word for a flag": {"one_sided": "yes"},
    "an unknown column": {"column": "height"},
    "a column that is no name": {"column": 3},
    "a budget beyond the noise": {"budget": sf.PureDP(Fraction(1, 2**60))},
}


@pytest.mark.parametrize("wrong", OPENINGS.values(), ids=OPENINGS)
def test_a_stream_with_a_wrong_public_fact_is_refused_before_the_charge(wrong):
    here = session()
    with pytest.raises(SfumatoError) as caught:
        here.open_stream(**{"threshold": 1000, "budget": sf.PureDP(1), **wrong})
    assert_one_line(caught.value)
    assert here.spent == Amount()


class Peeking(sf.Count):
    """A count that looks at the data in its own way."""

    def look(self, column: Column) -> Sums:
        return Sums(0, 1000 * super().look(column).first)


BUDGET = sf.PureDP(1)
OFFERED = {
    "a mean": ((sf.Mean(column="age", budget=BUDGET, bounds=(0, 1)),), {}),
    "a subclass": ((Peeking(column="age", budget=BUDGET),), {}),
    "a number": ((500,), {}),
    "a name": (("age",), {}),
    "an unknown column": ((), {"column": "CANARY-7f3a91"[:3]}),
    "numbers of a text column": ((), {"column": "sex", "between": (0, 1)}),
    "words of a number column": ((), {"column": "age", "equals": "f"}),
    "a range that falls": ((), {"between": (5, 1)}),
    "a range without an end": ((), {"between": (5, float("nan"))}),
    "two conditions": ((), {"between": (1, 5), "equals": 3}),
    "a null rule that is none": ((), {"nulls": "skip"}),
    "a count and its parts": ((sf.Count(column="age", budget=BUDGET),), {"between": (0, 1)}),
    "another relation": ((sf.Count(column="age", budget=BUDGET, neighbours="substitution"),), {}),
}


@pytest.mark.parametrize(("query", "parts"), OFFERED.values(), ids=OFFERED)
def test_a_hostile_offer_is_refused_before_the_data_are_read_and_uses_up_nothing(query, parts):
    reads: list[None] = []
    ages = watched(lambda: reads.append(None)).column("x")
    columns = {"age": ages, "sex": np.array(["f"] * 10, dtype=object)}
    data = sf.Dataset(columns, unit="row", neighbours="add-remove")
    bits = CountedBits(7)
    stream = sf.Session(data, budget=BUDGET, bits=bits).open_stream(
        column="age", threshold=3, crossings=2, budget=BUDGET
    )
    drawn = bits.used
    with pytest.raises(SfumatoError) as caught:
        stream.offer(*query, **parts)
    assert_one_line(caught.value)
    assert not reads
    assert stream.remaining == 2
    assert bits.used == drawn


def test_an_offer_without_a_column_is_refused_unless_the_stream_has_one():
    with pytest.raises(InvalidParameter, match=r"^column must be given"):
        opened(column=None).offer(between=(0, 3))
    assert opened(threshold=10**6).offer(between=(0, 3)) == "below"


def test_a_closed_session_closes_its_streams_and_reads_nothing_more():
    reads: list[None] = []
    with sf.Session(watched(lambda: reads.append(None)), budget=BUDGET) as here:
        stream = here.open_stream(threshold=3, budget=BUDGET, column="x")
    with pytest.raises(SfumatoError, match=r"^the session is closed"):
        stream.offer(between=(0, 9))
    with pytest.raises(SfumatoError, match=r"^the session is closed"):
        here.open_stream(threshold=3, budget=BUDGET)
    assert not reads
    assert stream.remaining == 1


def test_a_halted_stream_reads_nothing_more():
    reads: list[None] = []
    here = sf.Session(watched(lambda: reads.append(None)), budget=BUDGET)
    stream = here.open_stream(threshold=-(10**6), budget=BUDGET, column="x")
    assert stream.offer() == "above"
    before = len(reads)
    with pytest.raises(BudgetExceeded, match=r"^1 crossing told"):
        stream.offer()
    assert len(reads) == before


# --- copies, threads and processes -------------------------------------------------------------------


def told_to_two_threads() -> tuple[list[Any], int]:
    """What two threads on the last crossing are told, if both could compare before either is done."""
    stream, told, refused = opened(threshold=-(10**6)), list[Any](), list[Any]()
    comparisons, together = stream._sparse._comparisons, Barrier(2)
    answer = comparisons.told

    def slowly(value: int) -> Any:
        # With a lock the second never comes, and the first goes on alone.
        with suppress(BrokenBarrierError):
            together.wait(0.2)
        return answer(value)

    comparisons.told = slowly  # type: ignore[method-assign]

    def ask() -> None:
        try:
            told.append(stream.offer(between=(0, 50)))
        except BudgetExceeded as error:
            refused.append(error)

    threads = [Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told, len(refused)


def test_two_threads_on_the_last_crossing_are_told_one():
    assert told_to_two_threads() == (["above"], 1)


def test_a_stream_without_its_lock_is_caught_every_time(monkeypatch):
    class NoLock:
        __enter__ = __exit__ = lambda *_: None

    monkeypatch.setattr("sfumato.mechanisms.sparse.Lock", NoLock)
    for _ in range(5):
        assert told_to_two_threads() == (["above", "above"], 0)


def test_a_stream_cannot_be_copied_or_stored():
    stream = opened()
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(NotSupported, match="copied"):
            duplicate(stream)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_is_told_nothing():
    stream = opened(threshold=-(10**6))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            stream.offer(between=(0, 50))
        except NotSupported:
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert stream.offer(between=(0, 50)) == "above"


# --- what is printed ---------------------------------------------------------------------------------


def test_a_stream_prints_its_cost_threshold_crossings_and_accuracy():
    stream = opened(crossings=2, answers=0.5)
    assert stream.offer() > 1000
    lines = str(stream).splitlines()
    assert lines[0] == "stream of counts of age above 1,000"
    assert lines[1] == "  crossings: 1 told, 1 remaining"
    assert lines[2] == "  cost: PureDP(epsilon=1.0) for all of it, add-remove, charged when opened"
    assert lines[3] == f"  method: {stream.mechanism.described()}"
    assert f"within {stream.error(1000):,} of the threshold" in lines[4]
    assert lines[5] == f"  numbers: within ±{stream.mechanism.answer_radius(0.95)}, all of them"
    assert repr(stream) == "Stream(threshold=1000, 1 crossing remaining, cost=1)"
    assert stream.error(10) < stream.error(1000) < stream.error(1000, 0.999)


def test_a_name_that_could_steer_a_terminal_is_escaped():
    data = sf.Dataset({"a\x1b[2J\n": [1.0, 2.0]}, unit="row", neighbours="add-remove")
    stream = sf.Session(data, budget=BUDGET).open_stream(threshold=1, budget=BUDGET, column="a\x1b[2J\n")
    assert "\x1b" not in str(stream)
    assert len(str(stream).splitlines()) == 5


def test_the_terms_state_what_is_charged():
    terms = StreamTerms.of(
        threshold=3,
        crossings=2,
        budget=BUDGET,
        answers=None,
        one_sided=True,
        neighbours="add-remove",
        column="age",
    )
    assert (terms.name, terms.column, terms.neighbours) == ("stream", "age", "add-remove")
    assert terms.cost == BUDGET
    assert terms.event.pure_epsilon == 1
