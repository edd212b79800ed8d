"""The respondent's side: answers by the design, a memory that repeats them, and truths that stay unseen."""

import json
import math

import numpy as np
import pytest
from scipy.stats import chi2
from tests.laws.fit import FALSE_ALARM
from tests.local.designs import CATEGORICAL, CHANNELS, COLOURS, DESIGNS, SHARES

import sfumato as sf
from sfumato.laws import SeededBits, SystemBits
from sfumato.local import (
    DirectEncoding,
    LocalDP,
    Memory,
    PermanentUnary,
    Ranges,
    Respondent,
    Tally,
    Warner,
    simulate,
)


def a_truth(design):
    if len(design.labels) == 1:
        return 1.25 if design.labels == ("mean",) else True
    return 0.125 if isinstance(design, Ranges) else design.categories[1]


@pytest.mark.parametrize("name", [name for name in CHANNELS if name != "permanent"])
def test_an_answer_is_one_that_the_analyst_can_read_and_survives_json(name):
    design = CHANNELS[name]
    device = Respondent(json.loads(json.dumps(design.to_dict())), question="?", bits=SystemBits(), limit=100)
    answers = [json.loads(json.dumps(device.answer(a_truth(design)))) for _ in range(20)]
    tally = Tally.of(design, answers)
    assert tally.size == 20
    assert device.spent == design.cost.repeated(20)
    assert device.private


def chi_square(observed, chances, size):
    expected = np.array([float(chance) * size for chance in chances])
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


@pytest.mark.parametrize("name", [name for name in SHARES if name != "one bit"])
def test_answers_of_many_devices_fit_the_matrix_and_reject_a_neighbouring_one(name):
    design, size = SHARES[name], 60_000
    rows = design.matrix()
    outputs = design.draw(np.full(size, len(rows) - 1), SeededBits(11))
    codes = outputs @ (1 << np.arange(outputs.shape[1])[::-1]) if outputs.ndim == 2 else outputs
    observed = np.bincount(codes, minlength=len(rows[0]))
    assert chi_square(observed, rows[-1], size) > FALSE_ALARM
    assert chi_square(observed, rows[0], size) < FALSE_ALARM  # the law of another truth


def test_simulation_and_devices_draw_the_same_law():
    design, size = DirectEncoding.of_epsilon(COLOURS, epsilon=2), 3000
    device = Respondent(design, question="?", bits=SeededBits(5), limit=10**5)
    one_by_one = Tally.of(design, [device.answer("green") for _ in range(size)])
    at_once = simulate(design, ["green"] * 40_000, bits=SeededBits(6))
    for tally in (one_by_one, at_once):
        assert chi_square(np.array(tally.counts), design.matrix()[1], tally.size) > FALSE_ALARM
    assert not device.private


def test_the_same_question_gets_the_same_answer_at_no_new_cost():
    design = Warner.of_epsilon(0.5)
    for seed in range(20):
        memory = Memory()
        device = Respondent(design, question="voted?", memory=memory, bits=SeededBits(seed), limit=100)
        answers = {device.answer(True) for _ in range(50)}
        assert len(answers) == 1
        assert device.spent == memory.spent == LocalDP(0.5)
        # A changed truth does not change it: the answer depends on the first one alone.
        assert {device.answer(False) for _ in range(50)} == answers


def test_fresh_answers_differ_and_cost_each_time():
    device = Respondent(Warner.of_epsilon(0.5), question="voted?", bits=SeededBits(1), limit=100)
    assert {device.answer(True) for _ in range(200)} == {True, False}
    assert device.spent == LocalDP(0.5).repeated(200)


def asked_two_questions(memory_type, seed):
    """The answers of one respondent, in whose truth the two questions differ, to both."""
    design, memory, bits = Warner(keep=0.999), memory_type(), SeededBits(seed)
    first = Respondent(design, question="first?", memory=memory, bits=bits, limit=100).answer(True)
    second = Respondent(design, question="second?", memory=memory, bits=bits, limit=100).answer(False)
    return first, second, memory


def test_questions_have_answers_of_their_own():
    drawn = [asked_two_questions(Memory, seed) for seed in range(10)]
    assert [(first, second) for first, second, _ in drawn].count((True, False)) >= 9
    assert all(memory.questions == ("first?", "second?") for _, _, memory in drawn)
    assert all(memory.spent == Warner(keep=0.999).cost.repeated(2) for _, _, memory in drawn)


def test_mutant_a_memory_without_the_question_is_noticed():
    class Forgetful(Memory):
        def recall(self, question, design):
            return super().recall("any", design)

        def keep(self, question, design, answer):
            super().keep("any", design, answer)

    drawn = [asked_two_questions(Forgetful, seed) for seed in range(10)]
    assert [(first, second) for first, second, _ in drawn].count((True, False)) == 0


def test_a_question_is_not_answered_afresh_under_another_design():
    memory = Memory()
    Respondent(Warner.of_epsilon(1), question="voted?", memory=memory, limit=100).answer(True)
    again = Respondent(Warner.of_epsilon(1.5), question="voted?", memory=memory, limit=100)
    with pytest.raises(sf.NotSupported, match="another design"):
        again.answer(True)
    with pytest.raises(sf.NotSupported, match="for good"):
        memory.keep("voted?", Warner.of_epsilon(1), True)


@pytest.mark.parametrize("name", CHANNELS)
def test_a_memory_reads_back_and_holds_no_truth(name):
    design, memory = CHANNELS[name], Memory()
    device = Respondent(design, question="?", memory=memory, bits=SeededBits(3), limit=100)
    answer = device.answer(a_truth(design))
    text = memory.to_json()
    again = Memory.from_json(text)
    assert again.to_json() == text
    assert again.spent == design.cost
    if name != "permanent":
        assert Respondent(design, question="?", memory=again, limit=100).answer(a_truth(design)) == answer
    assert "truth" not in json.dumps(json.loads(text)["kept"][0]["answer"])


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": 1}', '{"format": 2, "kept": []}', '{"format": 1, "kept": [3]}', "nonsense"],
)
def test_what_is_no_memory_is_refused(text):
    with pytest.raises(sf.InvalidParameter, match="a memory must be JSON"):
        Memory.from_json(text)


def test_a_memory_with_an_impossible_answer_is_refused():
    memory = Memory()
    Respondent(CATEGORICAL["direct"], question="?", memory=memory, limit=100).answer("red")
    record = json.loads(memory.to_json())
    record["kept"][0]["answer"] = "violet"
    with pytest.raises(sf.InvalidParameter, match="answers must be categories"):
        Memory.from_json(json.dumps(record))


def test_permanent_bits_stay_and_reports_differ():
    design = PermanentUnary(categories=COLOURS, permanent=(0.75, 0.25), instant=(0.8, 0.2))
    memory = Memory()
    device = Respondent(design, question="?", memory=memory, bits=SeededBits(4), limit=100)
    reports = np.array([device.answer("red") for _ in range(4000)])
    kept = np.array(json.loads(memory.to_json())["kept"][0]["answer"])
    assert memory.spent == design.cost
    # Each report flips the kept bits afresh: their averages show the kept bits, not the truth.
    assert np.abs(reports.mean(axis=0) - np.where(kept, 0.8, 0.2)).max() < 5 * math.sqrt(0.16 / 4000)
    with pytest.raises(sf.NotSupported, match="need a memory"):
        Respondent(design, question="?", limit=100)


def test_a_respondent_stops_at_the_limit():
    device = Respondent(Warner.of_epsilon(0.1), question="?", limit=LocalDP(0.3))
    for _ in range(3):
        device.answer(True)
    with pytest.raises(sf.BudgetExceeded, match=r"epsilon=0\.4\) in all, and the limit is"):
        device.answer(True)
    assert device.spent == LocalDP(0.3)
    memory = Memory()
    Respondent(Warner.of_epsilon(1), question="one?", memory=memory, limit=LocalDP(1.5)).answer(True)
    second = Respondent(Warner.of_epsilon(1), question="two?", memory=memory, limit=LocalDP(1.5))
    with pytest.raises(sf.BudgetExceeded):
        second.answer(True)


def test_a_limit_is_required_and_is_an_epsilon_or_a_cost():
    with pytest.raises(TypeError, match="limit"):
        Respondent(Warner.of_epsilon(1), question="?")
    assert Respondent(Warner.of_epsilon(1), question="?", limit=2).limit == LocalDP(2)
    assert Respondent(Warner.of_epsilon(1), question="?", limit=np.int64(2)).limit == LocalDP(2)
    for wrong in ("2", None, -1, math.nan, True):
        with pytest.raises(sf.InvalidParameter):
            Respondent(Warner.of_epsilon(1), question="?", limit=wrong)
    strong = Respondent(
        {"format": 1, "type": "warner", "keep": f"{10**300 - 1}/{10**300}"}, question="?", limit=2
    )
    with pytest.raises(sf.BudgetExceeded):
        strong.answer(True)
    with pytest.raises(sf.InvalidParameter, match="memory must be"):
        Respondent(Warner.of_epsilon(1), question="?", limit=2, memory={})


def test_a_question_in_other_words_counts_against_the_limit():
    memory = Memory()
    for question in ("Did you vote?", "Have you voted?"):
        Respondent(Warner.of_epsilon(1), question=question, memory=memory, limit=2).answer(True)
    assert memory.spent == LocalDP(2)
    third = Respondent(Warner.of_epsilon(1), question="You voted?", memory=memory, limit=2)
    with pytest.raises(sf.BudgetExceeded):
        third.answer(True)
    again = Respondent(Warner.of_epsilon(1), question="Did you vote?", memory=memory, limit=2)
    again.answer(True)
    assert memory.spent == LocalDP(2)


def test_who_reads_a_memory_of_permanent_bits_learns_more_than_from_a_report():
    design = CATEGORICAL["permanent"]
    memory = Memory()
    Respondent(design, question="?", memory=memory, limit=3).answer("red")
    # The kept bits are the first stage, whose odds are those of all reports together.
    assert memory.spent == design.kept.cost == design.cost
    assert not design.cost.fits(design.report_cost)
    assert "stay on the device" in " ".join(Memory.__doc__.split())


def test_designs_that_protect_nobody_are_refused():
    with pytest.raises(sf.NotSupported, match="give the truth away"):
        Respondent(DESIGNS["identity"], question="?", limit=100)
    with pytest.raises(sf.NotSupported, match="let the device draw it"):
        Respondent(DESIGNS["trait"], question="?", limit=LocalDP(math.inf))
    with pytest.raises(sf.NotSupported, match="is in one sample"):
        Respondent(DESIGNS["two samples"], question="?", limit=100)
    knowing = Respondent(DESIGNS["identity"], question="?", limit=LocalDP(math.inf))
    assert knowing.answer(True) is True


CANARY = 987654.321
HOSTILE = [
    None,
    "CANARY-7f3a91",
    b"CANARY",
    math.nan,
    np.nan,
    1 + 2j,
    [True],
    {"CANARY": 1},
    np.array([CANARY, CANARY]),
    object(),
    "NaN",
    np.array("CANARY"),
]


@pytest.mark.parametrize("truth", HOSTILE, ids=lambda truth: type(truth).__name__)
@pytest.mark.parametrize("name", CHANNELS)
def test_a_truth_that_does_not_fit_is_refused_without_being_shown(name, truth):
    design = CHANNELS[name]
    device = Respondent(design, question="?", memory=Memory() if name == "permanent" else None, limit=100)
    with pytest.raises(sf.InvalidParameter) as caught:
        device.answer(truth)
    assert "not shown" in str(caught.value)
    assert "CANARY" not in str(caught.value)
    assert "987654" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert device.spent == LocalDP(0)


@pytest.mark.parametrize("name", ["dithered", "binned", "one bit"])
def test_numbers_out_of_bounds_are_clamped_and_never_refused(name):
    device = Respondent(CHANNELS[name], question="?", limit=100)
    for truth in (CANARY, -CANARY, math.inf, -math.inf, 10**400, 0, np.float32(0.1), np.int64(2)):
        device.answer(truth)


@pytest.mark.parametrize("truth", [1, 0, "yes", np.int64(1), "True"])
def test_only_true_and_false_answer_a_yes_or_no_question(truth):
    with pytest.raises(sf.InvalidParameter, match="True or False"):
        Respondent(Warner(keep=0.75), question="?", limit=100).answer(truth)


def test_wrong_parameters_of_a_device_are_refused():
    with pytest.raises(sf.InvalidParameter, match="question must be printable"):
        Respondent(Warner(keep=0.75), question="", limit=100)
    with pytest.raises(sf.InvalidParameter, match="design must be one of"):
        Respondent(0.75, question="?", limit=100)


def test_bits_used_do_not_depend_on_the_truth():
    class Counting(SeededBits):
        used = 0

        def words(self, count):
            self.used += count
            return super().words(count)

    for name in SHARES:
        design = SHARES[name]
        used = set()
        for place in range(len(design.matrix())):
            bits = Counting(9)
            design.draw(np.full(100, place), bits)
            used.add(bits.used)
        assert len(used) == 1, name
