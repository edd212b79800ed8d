"""Releases: what is stored is what was released, on one line each, and nothing else can be read back."""

import json
import math
import re
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile import NUMERIC, RELATIONS, assert_one_line

import sfumato as sf
from sfumato.laws import SeededBits
from sfumato.release import printable, rounded

BUDGETS = {"pure": sf.PureDP(0.5), "approximate": sf.ApproxDP(0.5, 1e-6), "concentrated": sf.ZCDP(0.125)}
VALUES = np.array([0.5, 1.0, 2.5, np.nan, 7.0, 99.0] * 20)
ASKED = {
    **{name: (asked.function, asked.parameters) for name, asked in NUMERIC.items()},
    "histogram of two bins": (sf.histogram, {"bins": 2, "bounds": (0, 1)}),
    "bounds of a third": (sf.mean, {"bounds": (0, 1 / 3)}),
    "sum below zero": (sf.sum, {"bounds": (-7, -0.1)}),
}
WORDS = {
    "categories": (sf.histogram, {"categories": ["a", "b\n"], "other": True}),
    "one category": (sf.histogram, {"categories": ["a"], "other": True}),
    "count of words": (sf.count, {"equals": ["a", "é"]}),
    "share of words": (sf.proportion, {"equals": "a"}),
}


TAGS = {"div", "b", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}


def same(left, right):
    return np.array_equal(np.asarray(left), np.asarray(right))


# --- round trips ----------------------------------------------------------------------------------


@pytest.mark.parametrize("nulls", [None, "drop", "lower", "upper"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("name", [*ASKED, *WORDS])
def test_a_release_survives_json_with_its_intervals(name, budget, relation, nulls):
    function, parameters = {**ASKED, **WORDS}[name]
    column = VALUES if name in ASKED else ["a", "b\n", None, "c"] * 9
    release = function(column, budget=budget, neighbours=relation, nulls=nulls, **parameters)
    again = sf.read_release(release.to_json())
    assert again == release
    assert hash(again) == hash(release)
    assert same(again.value, release.value)
    assert (again.event, again.cost, again.private) == (release.event, release.cost, release.private)
    assert same(again.interval(0.9), release.interval(0.9))
    if budget == BUDGETS["pure"]:
        assert sf.read_release(release.to_dict()) == release
        assert again.to_json() == release.to_json()
        assert str(again) == str(release)
    if function in (sf.mean, sf.variance, sf.proportion):
        low, high = release.population_interval(0.9)
        assert again.population_interval(0.9) == (low, high)
        inner_low, inner_high = release.interval(0.9)
        assert low <= inner_low <= inner_high <= high
    else:
        with pytest.raises(sf.NotSupported, match=r"^population_interval needs .* grows? with the sample$"):
            release.population_interval(0.9)


def test_json_is_plain_and_keeps_integers_as_text():
    record = json.loads(
        sf.count(VALUES, neighbours="add-remove", epsilon=1).to_json(), parse_constant=pytest.fail
    )
    assert (record["format"], record["software"], record["statistic"]) == (1, "sfumato", "count")
    assert all(isinstance(part, str) for part in record["outcome"])
    assert record["parameters"]["budget"] == {"budget": sf.PureDP(1).to_dict()}
    assert record["interval"]["confidence"] == 0.95


def test_derived_entries_are_computed_anew_and_never_believed():
    release = sf.mean(VALUES, bounds=(0, 10), epsilon=1)
    forged = {**release.to_dict(), "value": -5, "cost": "PureDP(epsilon=0.0)", "notes": [], "interval": None}
    assert sf.read_release(forged) == release


# --- hostile records ------------------------------------------------------------------------------


def record(**changes):
    return {**sf.mean(VALUES, bounds=(0, 10), epsilon=1, nulls="lower").to_dict(), **changes}


def parameter(**changes):
    stored = record()
    return {**stored, "parameters": {**stored["parameters"], **changes}}


def without(key):
    stored = record()
    del stored[key]
    return stored


TEXT = json.dumps(record())
HOSTILE = {
    "nothing": "",
    "no object": "[]",
    "number": "5",
    "null": "null",
    "NaN": "NaN",
    "truncated": TEXT[: len(TEXT) // 2],
    "bytes": TEXT.encode(),
    "None": None,
    "list": [TEXT],
    "deep list": "[" * 10**5,
    "deep object": '{"format":' * 10**5,
    "huge number": '{"format": 1' + "0" * 10**5 + "}",
    **{f"without {key}": without(key) for key in ("format", "statistic", "parameters", "outcome", "private")},
    "format 2": record(format=2),
    "format text": record(format="1"),
    "format boolean": record(format=True),
    "format NaN": record(format=float("nan")),
    "unknown statistic": record(statistic="median"),
    "statistic list": record(statistic=["mean"]),
    "statistic None": record(statistic=None),
    "parameters list": record(parameters=[]),
    "parameters None": record(parameters=None),
    "no parameters": record(parameters={}),
    "outcome text": record(outcome="42"),
    "outcome number": record(outcome=42),
    "outcome integers": record(outcome=[42]),
    "outcome float": record(outcome=["1.5"]),
    "outcome real": record(outcome=[1.5]),
    "outcome NaN": record(outcome=["nan"]),
    "outcome spaced": record(outcome=[" 42"]),
    "outcome underscored": record(outcome=["4_2"]),
    "outcome None": record(outcome=[None]),
    "outcome empty": record(outcome=[]),
    "outcome of 5000 digits": record(outcome=["9" * 5000]),
    "unknown parameter": parameter(evil=1),
    "column number": parameter(column=5),
    "column list": parameter(column=["a"]),
    "rows NaN": parameter(rows=float("nan")),
    "rows negative": parameter(rows=-1),
    "rows text": parameter(rows="120"),
    "no rows": parameter(rows=None),
    "relation": parameter(neighbours="bounded"),
    "no relation": parameter(neighbours=None),
    "null rule": parameter(nulls="zero"),
    "noise": parameter(noise="none"),
    "bounds reversed": parameter(bounds=[{"fraction": "1"}, {"fraction": "0"}]),
    "bounds with an exponent": parameter(bounds=[{"fraction": "0"}, {"fraction": "1e999999999"}]),
    "bounds of 10000 digits": parameter(bounds=[{"fraction": "0"}, {"fraction": "9" * 10**4}]),
    "bounds divided by zero": parameter(bounds=[{"fraction": "0"}, {"fraction": "1/0"}]),
    "bounds NaN": parameter(bounds=[float("nan"), 1]),
    "bounds nothing": parameter(bounds=[{}, {}]),
    "bounds two tags": parameter(bounds=[{"fraction": "0", "budget": 1}, {"fraction": "1"}]),
    "bounds number as text": parameter(bounds=[{"fraction": 0}, {"fraction": 1}]),
    "budget number": parameter(budget=1),
    "budget None": parameter(budget=None),
    "budget amount": parameter(budget={"budget": {**sf.PureDP(1).to_dict(), "type": "amount"}}),
    "budget negative": parameter(budget={"budget": {**sf.PureDP(1).to_dict(), "epsilon": "-1"}}),
    "budget with an exponent": parameter(budget={"budget": {**sf.PureDP(1).to_dict(), "epsilon": "1e9"}}),
    "budget huge": parameter(budget={"budget": {**sf.PureDP(1).to_dict(), "epsilon": "9" * 500}}),
    "budget unprovable": parameter(
        budget={"budget": sf.ApproxDP(1000, 1e-300).to_dict()}, bounds=[{"fraction": "0"}, {"fraction": "x"}]
    ),
}


@pytest.mark.parametrize("stored", HOSTILE.values(), ids=HOSTILE)
def test_a_record_that_was_not_written_here_is_refused_in_one_line(stored):
    with pytest.raises(sf.InvalidParameter) as caught:
        sf.read_release(stored)
    assert_one_line(caught.value)


def test_the_record_that_the_hostile_ones_come_from_is_read():
    assert json.loads(sf.read_release(TEXT).to_json()) == json.loads(TEXT)


def test_only_a_true_mark_makes_a_release_private():
    for mark in ("true", 1, "yes", None, False, [True]):
        assert sf.read_release(record(private=mark)).private is False
    assert sf.read_release(record(private=True)).private is True


@pytest.mark.parametrize("relation", [None, "bounded", 3])
def test_a_record_without_its_relation_is_refused(relation):
    ages = list(range(50))
    kept = [
        sf.mean(ages, bounds=(0, 100), epsilon=1),
        sf.count(ages, epsilon=1),
        sf.most_common(["a"], categories=["a", "b"], epsilon=1),
        sf.choose(["a", "b"], [1, 2], sensitivity=1, epsilon=1),
        sf.first_passing(ages, at=(1, 20), count=3, epsilon=1),
    ]
    for release in kept:
        stored = release.to_dict()
        assert sf.read_release(stored) == release
        with pytest.raises(sf.InvalidParameter):
            sf.read_release({**stored, "parameters": {**stored["parameters"], "neighbours": relation}})


# --- what a reader sees ---------------------------------------------------------------------------


def release_of(column="age", outcome=(42,), relation="add-remove", epsilon=1):
    query = sf.Count(column=column, budget=sf.PureDP(epsilon), neighbours=relation)
    return sf.Release(query, outcome, private=True)


def test_text_states_answer_interval_cost_relation_and_method():
    assert str(release_of()) == "\n".join(
        [
            "count of age",
            "  count  42  [39, 45]",
            "  cost: PureDP(epsilon=1.0), add-remove: "
            "one row is added or removed; the number of rows is private",
            "  method: discrete Laplace noise of scale 1, clamped to 0",
        ]
    )
    assert repr(release_of()) == str(release_of())


def test_the_columns_of_a_table_align():
    labels = ["a", "a much longer label", "b"]
    query = sf.Histogram(column="x", budget=sf.PureDP(1), neighbours="add-remove", categories=tuple(labels))
    table = str(sf.Release(query, (5, 1_234_567, 89), private=True)).splitlines()[1:5]
    assert len({len(line) for line in table}) == 1
    wide = 2 + len("a much longer label")
    assert [line[2:wide].strip() for line in table] == ["", *labels]
    value = slice(wide + 2, wide + 2 + len("1,234,567"))
    assert [line[value] for line in table] == ["    value", "        5", "1,234,567", "       89"]
    assert [line[value.stop : value.stop + 2] for line in table] == ["  "] * 4


def test_html_escapes_names_labels_and_notes():
    evil = "<script>alert(1)</script>"
    query = sf.Histogram(
        column=evil, budget=sf.PureDP(1), neighbours="add-remove", categories=(evil, '"&', "<img src=x>")
    )
    text = sf.Release(query, (1, 2, 3), private=False)._repr_html_()
    assert "<script" not in text
    assert "<img" not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 2
    assert "&quot;&amp;" in text
    assert set(re.findall(r"</?(\w+)", text)) == TAGS


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31mred", "\0", "tab\t", "\u202eright to left"], ids=ascii)
def test_names_can_neither_break_a_line_nor_steer_a_terminal(name):
    query = sf.Histogram(column=name, budget=sf.PureDP(1), neighbours="add-remove", categories=(name, "b"))
    release = sf.Release(query, (1, 2), private=True)
    text = str(release)
    assert len(text.splitlines()) == 6 + len(release.notes)  # title, header, two rows, cost, method
    assert all(character.isprintable() for line in text.split("\n") for character in line)
    text.encode()
    assert sf.read_release(release.to_json()) == release


def test_printable_names_are_left_alone():
    assert printable("né 'x' \\ <b>") == "né 'x' \\ <b>"
    assert printable("a\tb") == "a\\tb"


@pytest.mark.parametrize(
    ("number", "width", "text"),
    [
        (5, 0.0, "5"),
        (-1234567, 3.0, "-1,234,567"),
        (np.int64(7), 1.0, "7"),
        (51234.5678, 90.0, "51,235"),
        (51234.5678, 900.0, "51,230"),
        (51234, 8000, "51,200"),
        (51234, 800_000, "51,200"),
        (0.00123456, 1e9, "0.00123"),
        (-51250, 8000, "-51,200"),
        (0.123456, 0.01, "0.123"),
        (0.5, 1.0, "0.500"),
        (0.0, 1.0, "0.0"),
        (0.5, 0.0, "0.500000"),
        (0.5, -1.0, "0.500000"),
        (1e-9, 1e-10, "0.00000000100"),
        (1.25e-20, 1e-21, "1.25e-20"),
        (1.5e150, 1e140, "1.5e+150"),
        (-2.5e300, 1e300, "-2.5e+300"),
        (999999999999999.0, 1.0, "999,999,999,999,999.0"),
        (7, math.inf, "7"),
        (math.inf, math.inf, "none"),
        (None, 1.0, "none"),
    ],
)
def test_numbers_are_rounded_to_what_their_interval_can_tell(number, width, text):
    assert rounded(number, width) == text


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_a_rounded_interval_covers_the_interval_and_is_hardly_wider(low, width):
    high = low + width
    ends = rounded(low, width, math.floor), rounded(high, width, math.ceil)
    shown = [float(end.replace(",", "")) for end in ends]
    assert shown[0] <= low
    assert shown[1] >= high
    assert shown[1] - shown[0] <= 1.21 * width + 1e-6


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["mean", "variance", "proportion"])
def test_notes_say_when_noise_dominates_and_only_then(name, relation):
    asked, bits = NUMERIC[name], SeededBits(20240501)
    tiny = asked.front([2.5] * 4, epsilon=1e-3, neighbours=relation, bits=bits)
    large = asked.front(np.full(10**5, 2.5), epsilon=1, neighbours=relation, bits=bits)
    assert any("dominated by noise" in note for note in tiny.notes)
    assert not any("dominated by noise" in note for note in large.notes)


def test_a_noisy_count_or_sum_is_called_dominated_by_noise():
    query = sf.Count(budget=sf.PureDP(0.01), neighbours="add-remove")
    radius = int(query.error(0, 0.95))
    for outcome, expected in ((0, True), (radius, True), (radius + 1, False)):
        notes = sf.Release(query, (outcome,), private=True).notes
        assert any("dominated by noise" in note for note in notes) is expected
    total = sf.Sum(budget=sf.PureDP(0.01), neighbours="add-remove", bounds=(0, 1))
    assert any("dominated by noise" in note for note in sf.Release(total, (0,), private=True).notes)


def test_notes_say_what_was_clamped():
    assert "values are clamped to [0, 10]" in sf.mean(VALUES, bounds=(0, 10), epsilon=1).notes
    notes = sf.histogram(VALUES, bins=3, bounds=(0, 10), epsilon=1).notes
    assert "values outside the bins are counted in the end bins" in notes


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 1.5, float("nan"), "0.9", True, None], ids=str)
def test_a_confidence_outside_zero_and_one_is_refused_by_name(confidence):
    for release in (release_of(), sf.mean(VALUES, bounds=(0, 10), epsilon=1)):
        with pytest.raises(sf.InvalidParameter, match=r"^confidence must be "):
            release.interval(confidence)
    with pytest.raises(sf.InvalidParameter, match=r"^confidence must be "):
        release.population_interval(confidence)


def test_a_release_cannot_be_changed():
    with pytest.raises(AttributeError):
        release_of().outcome = (7,)


def test_the_labels_of_bins_are_distinct_and_exact():
    release = sf.histogram([1234567.0], edges=[1234566, 1234567, 1234568.5], epsilon=1)
    assert release.query.labels() == ("[1234566, 1234567)", "[1234567, 1234568.5]")


def test_a_release_says_that_dropped_nulls_make_the_size_private():
    values = np.linspace(0, 1, 100)
    private, public = (sf.mean(values, bounds=(0, 1), epsilon=1, nulls=rule) for rule in ("drop", "lower"))
    assert any("number of values is private" in note for note in private.notes)
    assert not any("number of values is private" in note for note in public.notes)


@pytest.mark.parametrize(
    ("release", "outcome"),
    [
        (sf.proportion([1, 2], equals=1, epsilon=1, nulls="lower"), ["10"]),
        (sf.proportion([1, 2], equals=1, epsilon=1, nulls="lower"), ["-1"]),
        (sf.proportion([1, 2], equals=1, epsilon=1), ["1", "-1"]),
        (sf.count([1, 2], neighbours="add-remove", epsilon=1), ["-50"]),
        (sf.count([1, 2], between=(0, 1), epsilon=1), ["3"]),
        (sf.count([1, 2], epsilon=1), ["1", "2"]),
        (sf.histogram(["a"], categories=["a", "b", "c"], epsilon=1), [str(-(2**62))] * 3),
        (sf.histogram(["a"], categories=["a", "b", "c"], epsilon=1), ["1"]),
        (sf.histogram([0.5, 0.7], bins=2, bounds=(0, 1), epsilon=1, nulls="lower"), ["3"]),
        (sf.mean([1.0], bounds=(0, 1), epsilon=1), [str(2**200), "1"]),
    ],
)
def test_a_record_that_no_law_could_have_drawn_is_refused(release, outcome):
    record = {**release.to_dict(), "outcome": outcome}
    with pytest.raises(sf.InvalidParameter, match=r"^stored must be a release"):
        sf.read_release(record)


def test_a_record_of_the_wrong_length_is_refused_before_its_labels_are_made():
    record = sf.histogram([0.5], bins=3, bounds=(0, 1), epsilon=1).to_dict()
    record["parameters"]["bins"] = 2**20
    start = perf_counter()
    with pytest.raises(sf.InvalidParameter):
        sf.read_release(record)
    slow = perf_counter() - start
    start = perf_counter()
    sf.histogram([0.5], bins=2**12, bounds=(0, 1), epsilon=1).query.labels()
    # The labels of all cells would take 2**8 times as long as those of 2**12.
    assert slow < 2**6 * (perf_counter() - start)
