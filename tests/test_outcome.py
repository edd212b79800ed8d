"""A charged request has one outcome: bounded before the charge, stored before anything is made of it."""

import json

import numpy as np
import pytest

import sfumato as sf
from sfumato import outcome, session
from sfumato.asked import ask_all
from sfumato.checks import MAX_NAME
from sfumato.errors import InvalidParameter, RequestConflict
from sfumato.laws import RequestBits, SeededBits
from sfumato.ledger import failpoints
from sfumato.outcome import most_bytes, read_outcome, write_outcome
from sfumato.privacy import Amount
from sfumato.quantile_methods import METHODS, Quantiles
from sfumato.question import Question
from sfumato.statistics.statistic import LARGEST_PART

TEAMS = ("red", "blue", "gr\u00fcn\x01\U0001f600")
VALUES = np.arange(300) % 97
SCHEMA = {
    "pay": sf.Field(bounds=(0, 96), kind="integer"),
    "team": sf.Field(categories=TEAMS),
    "job": sf.Field(kind="text"),
}
PURE = sf.PureDP(1)


def dataset(values=VALUES, relation="add-remove"):
    frame = {
        "pay": values,
        "team": [TEAMS[i % 3] for i in range(len(values))],
        "job": ["clerk" if i % 5 else "cook" for i in range(len(values))],
    }
    return sf.Dataset(frame, unit="row", neighbours=relation, schema=SCHEMA, name="people")


def opened(tmp_path, data=None):
    address = f"sqlite:///{tmp_path / 'ledger.db'}"
    return sf.Session(dataset() if data is None else data, budget=sf.PureDP(9), ledger=address)


def mean(epsilon=0.5):
    return sf.Mean(column="pay", budget=sf.PureDP(epsilon))


STATISTICS = [
    sf.Count(column="pay", budget=PURE),
    sf.Sum(column="pay", budget=PURE),
    sf.Mean(column="pay", budget=PURE),
    sf.Mean(column="pay", budget=sf.ApproxDP(1, 1e-6), interval_share=0.2),
    sf.Variance(column="pay", budget=PURE),
    sf.Proportion(column="pay", budget=PURE, between=(3, 9)),
    sf.Histogram(column="pay", budget=PURE, bins=5),
    sf.MostCommon(column="team", budget=PURE, picks=2),
    *(
        Quantiles(column="pay", probs=probs, budget=PURE, interval_share=share)
        for probs in ([0.5], [i / 10 for i in range(1, 10)], [i / 40 for i in range(1, 40)])
        for share in (0, 0.2)
    ),
    *(
        Quantiles(column="pay", probs=(0.5,) if name == "single" else (0.25, 0.5), budget=PURE, method=name)
        for name, method in METHODS.items()
        if method.needs_bounds
    ),
]


@pytest.mark.parametrize("relation", ["add-remove", "substitution"])
@pytest.mark.parametrize("query", STATISTICS, ids=lambda query: query.name)
def test_no_outcome_is_longer_than_was_foreseen_from_public_facts(query, relation):
    data = dataset(relation=relation)
    for by in ((), ("team",)):
        questions = [Question(query=query, by=by, where={"job": "clerk"})]
        asked = ask_all(data, questions)
        answers = session.draw(data, asked, SeededBits(1))
        stored = write_outcome({"title": "x"}, asked, answers)
        assert len(stored) <= most_bytes({"title": "x"}, asked)
        releases = answers[0].releases.values() if by else answers
        assert all(len(release.outcome) <= asked[0].any.parts_drawn for release in releases)


def test_the_longest_outcome_fits_what_was_foreseen(monkeypatch):
    """Keys of the longest names, integers of the most digits, and as many groups as are answered."""
    data, limit = dataset(), 50
    groups = sf.Groups(keys="private", other=True, most=limit)
    query = sf.Variance(column="pay", budget=sf.ApproxDP(1, 1e-6))
    asked = ask_all(data, [Question(query=query, by=("job",), groups=groups)])
    keys = [(f"{i:04}" + "\x01" * (MAX_NAME - 4),) for i in range(limit)]
    largest = (1 - LARGEST_PART,) * asked[0].any.parts_drawn
    releases = {
        key: sf.Release(query, largest, private=True) for key, query in asked[0].queries(keys).items()
    }
    stored = write_outcome({}, asked, [asked[0].answer(releases, private=True)])
    assert len(releases) == limit + 1
    assert 0.9 * most_bytes({}, asked) < len(stored) <= most_bytes({}, asked)


def test_too_long_an_outcome_is_refused_before_the_charge(tmp_path, monkeypatch):
    monkeypatch.setattr(outcome, "MAX_OUTCOME", 2000)
    with opened(tmp_path) as open_session:
        query = sf.Histogram(column="pay", budget=PURE, bins=50)
        with pytest.raises(InvalidParameter, match="got up to 50 in all"):
            open_session.answer(query, request="long")
        assert open_session.spent == Amount()
        assert open_session._ledger.entry("long") is None
        open_session.answer(mean(), request="short")


def test_found_groups_beyond_the_limit_are_not_answered():
    """The first in the order of keys: a function of what was selected, which costs nothing."""
    rows = 400
    jobs = [f"job {i % 8}" for i in range(rows)]
    data = sf.Dataset({"job": jobs, "pay": np.ones(rows)}, unit="row", neighbours="add-remove")
    query = sf.Count(column="pay", budget=sf.ApproxDP(8, 1e-3))
    with sf.Session(data, budget=sf.ApproxDP(99, 0.1)) as open_session:
        every = open_session.answer_by(query, ["job"], groups=sf.Groups(keys="private"))
        some = open_session.answer_by(query, ["job"], groups=sf.Groups(keys="private", most=3, other=True))
    assert len(every) == 8
    assert some.keys == (*every.keys[:3], (None,))
    assert abs(some[(None,)].value - 5 * rows / 8) < 20
    assert "at most 3 groups" in some.found.words


@pytest.mark.parametrize(
    "query", [mean(), Quantiles(column="pay", probs=(0.25, 0.5, 0.75), budget=sf.PureDP(0.5))]
)
def test_a_request_that_fails_after_the_draw_is_drawn_again_as_it_was(tmp_path, monkeypatch, query):
    """Whoever makes the store fail when the draw does not suit them gets the same draw again."""
    drawn, draw = [], session.draw

    def noting(*arguments):
        answers = draw(*arguments)
        drawn.append(answers[0].outcome)
        return answers

    def full(name):
        if name == "before-reply":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(session, "draw", noting)
    with opened(tmp_path) as open_session:
        monkeypatch.setattr(failpoints, "fail_point", full)
        for _ in range(4):
            with pytest.raises(OSError, match="No space") as caught:
                open_session.answer(query, request="monday")
            assert "request 'monday' was charged PureDP(epsilon=0.5)" in caught.value.__notes__[0]
        monkeypatch.setattr(failpoints, "fail_point", lambda name: None)
    with opened(tmp_path) as open_session:
        made = open_session.answer(query, request="monday")
        assert open_session.answer(query, request="monday").outcome == made.outcome
        assert open_session._ledger.spent == Amount(epsilon=0.5)
        other = open_session.answer(query, request="tuesday")
    assert len(drawn) == 6
    assert set(drawn[:5]) == {made.outcome}
    assert other.outcome == drawn[5] != made.outcome


def test_bits_of_a_request_depend_on_its_secret_and_on_the_content():
    words = [
        tuple(RequestBits(secret, content).words(4))
        for secret, content in ((bytes(32), b"a"), (bytes(32), b"b"), (bytes(31) + b"a", b""))
    ]
    assert len(set(words)) == 3
    bits = RequestBits(bytes(32), b"a")
    assert tuple(bits.words(4)) == words[0] != tuple(bits.words(4))
    with pytest.raises(InvalidParameter, match="32 bytes"):
        RequestBits(b"short", b"a")


def test_what_fails_after_the_outcome_is_stored_changes_nothing(tmp_path, monkeypatch):
    with opened(tmp_path) as open_session:
        monkeypatch.setattr(session, "read_outcome", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            open_session.answer(mean(), request="monday")
        monkeypatch.undo()
        monkeypatch.setattr(session, "draw", lambda *_: 1 / 0)
        stored = open_session.answer_once([Question(query=mean())], request="monday")
        assert open_session.answer(mean(), request="monday") == read_outcome(stored).answers[0]


def test_the_same_request_about_other_data_returns_the_stored_answer(tmp_path):
    for relation, other in (("add-remove", VALUES[:-1]), ("substitution", VALUES[:-9])):
        folder = tmp_path / relation
        folder.mkdir()
        with opened(folder, dataset(relation=relation)) as open_session:
            first = open_session.answer(mean(), request="monday")
        with (
            opened(folder, dataset(other, relation=relation)) as open_session,
            pytest.warns(UserWarning, match="data have changed"),
        ):
            again = open_session.answer(mean(), request="monday")
        assert again == first
        assert again.query.rows == first.query.rows


def test_the_digest_of_a_request_has_nothing_of_the_data(tmp_path):
    questions = [Question(query=mean()), Question(query=sf.Count(column="pay", budget=PURE), by=("team",))]
    digests = {
        session.digest_of(dataset(values, "substitution"), questions)
        for values in (VALUES, VALUES[:-1], VALUES[::-1], VALUES * 1.5, np.zeros(0))
    }
    assert len(digests) == 1


def test_what_was_not_paid_for_is_not_drawn(tmp_path, monkeypatch):
    """The parts of a plan's budget may follow the public number of rows, which the digest leaves out."""

    def stop(name):
        if name == "before-reply":
            raise KeyboardInterrupt

    monkeypatch.setattr(failpoints, "fail_point", stop)
    with opened(tmp_path) as open_session:
        with pytest.raises(KeyboardInterrupt):
            open_session.answer_once([Question(query=mean(0.1))], request="monday", digest="d")
        monkeypatch.undo()
        with pytest.raises(RequestConflict, match="other facts"):
            open_session.answer_once([Question(query=mean(0.7))], request="monday", digest="d")
        open_session.answer_once([Question(query=mean(0.1))], request="monday", digest="d")
        assert open_session._ledger.spent == Amount(epsilon=0.1)


def test_an_outcome_reads_back_as_the_answers_it_was_made_of():
    data = dataset()
    questions = [
        Question(query=mean(), name="the mean"),
        Question(query=sf.Count(column="pay", budget=PURE), by=("team",), where={"job": "cook"}),
        Question(
            query=sf.Count(column="pay", budget=sf.ApproxDP(1, 1e-3)),
            by=("job",),
            groups=sf.Groups(keys="private", other=True),
        ),
    ]
    asked = ask_all(data, questions)
    answers = session.draw(data, asked, SeededBits(3))
    read = read_outcome(write_outcome({"a": 1}, asked, answers))
    assert read.facts == {"a": 1}
    assert [result.name for result in read.results] == ["the mean", "count of pay", "count of pay"]
    assert read.answers[0].outcome == answers[0].outcome
    for made, again in zip(answers[1:], read.answers[1:], strict=True):
        assert made.keys == again.keys
        assert [made[key].query for key in made] == [again[key].query for key in again]
        assert [made[key].outcome for key in made] == [again[key].outcome for key in again]
        assert (made.cost, made.event) == (again.cost, again.event)
    with pytest.raises(InvalidParameter, match="format"):
        read_outcome(json.dumps({"format": 2, "facts": {}, "questions": []}).encode())
