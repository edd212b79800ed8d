"""Mechanisms of a reader's own that are wrong in some way: refused in words, never taken as they are."""

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato import lab
from sfumato.errors import InvalidParameter
from sfumato.lab import Own, Points, datasets, first_quartiles, run, runs, several_risks

UNIFORM = datasets.uniform()
MEDIAN = sf.Quantiles(probs=[0.5], budget=sf.PureDP(1), bounds=(0, 1), verify=0)


def tried(function, *, sweep=None, **given):
    given = given or {"statistic": np.mean}
    own = Own(function=function, **given)
    return run(own, data=UNIFORM, sweep={"n": [5], **(sweep or {})}, repeats=3, sets=2)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        np.nan,
        np.inf,
        "1.5",
        1j,
        {},
        [],
        [1, [2]],
        np.zeros((2, 2)),
        np.array([1j]),
        10**400,
        [1.0, None],
    ],
)
def test_an_answer_is_finite_numbers(answer):
    with pytest.raises(InvalidParameter, match="function must return a finite number"):
        tried(lambda values: answer)
    with pytest.raises(InvalidParameter, match="statistic must return a finite number"):
        tried(lambda values: 0.0, statistic=lambda values: answer)


def test_an_answer_has_as_many_numbers_as_what_it_estimates():
    # Arrays of other shapes would be stretched to fit.
    with pytest.raises(InvalidParameter, match="estimates, 2, got 1"):
        tried(lambda values: 0.5, probs=[0.25, 0.5])
    with pytest.raises(InvalidParameter, match="estimates, 1, got 3"):
        tried(lambda values: np.zeros(3))
    with pytest.raises(InvalidParameter, match="as many numbers on every call"):
        tried(lambda values: np.zeros(1 + int(1e6 * values[0]) % 7), probs=[0.5])


def test_a_setting_that_no_subject_takes_is_refused():
    with pytest.raises(InvalidParameter, match="'epsilom'"):
        tried(lambda values, epsilon=1: 0.5, sweep={"epsilom": [1, 2]})
    both = {
        "a": Own(function=lambda values, share: share, probs=[0.5]),
        "b": Own(function=np.median, probs=[0.5]),
    }
    frame = run(both, data=UNIFORM, sweep={"n": [5], "share": [0.1, 0.2]}, repeats=1)
    assert len(frame) == 4


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda values, epsilon: 0.5, "'epsilon'"),
        (lambda: 0.5, "too many positional"),
        (lambda values, n: 0.5, "'n'"),
    ],
)
def test_a_function_that_cannot_be_called_is_refused_before_it_is(function, words):
    with pytest.raises(InvalidParameter, match=words):
        tried(function)


@pytest.mark.parametrize(
    "given",
    [
        {"probs": 0.5},
        {"probs": []},
        {"probs": [2]},
        {"probs": "0.5"},
        {"probs": [np.nan]},
        {"statistic": 3},
        {"probs": [0.5], "settings": {"bonds": 1}},
        {"probs": [0.5], "settings": "abc"},
        {"probs": [0.5], "settings": {"rng": 1}},
        {"probs": [0.5], "batched": "yes"},
    ],
)
def test_parameters_are_checked(given):
    name = next(reversed(given))
    with pytest.raises(InvalidParameter, match=name):
        Own(function=lambda values, rng: 0.5, **given)


@pytest.mark.parametrize("values", ["abc", [1j], [[1, 2], [3]], [10**400], np.ma.array([1], mask=[True])])
def test_a_law_is_of_numbers(values):
    with pytest.raises(InvalidParameter, match="finite numbers"):
        Points(values, [1])


def test_a_function_may_change_what_it_is_given():
    def careless(values):
        values.sort()
        found = values[2]
        values[:] = 0
        return found

    frame = tried(careless, probs=[0.5])
    assert frame["mean"].to_list() == [0.0]
    law = Own(function=lambda values: (values.fill(7), Points([0.0], [1.0]))[1], probs=[0.5])
    row = run(law, data=UNIFORM, sweep={"n": [5]}, repeats=2).row(0, named=True)
    assert row["exact"] == pytest.approx(row["mean"])


def test_an_error_of_a_function_says_where_it_was():
    with pytest.raises(ZeroDivisionError) as caught:
        tried(lambda values, epsilon: 1 / 0, sweep={"epsilon": [3]})
    assert "'epsilon': 3" in caught.value.__notes__[0]


def test_names_hide_neither_results_nor_one_another():
    for name in ("risk", "mean", "sets", "subject"):
        with pytest.raises(InvalidParameter, match=f"'{name}'"):
            tried(lambda values, **settings: 0.5, sweep={name: [1]})
    with pytest.raises(InvalidParameter, match="name 1"):
        run({1: MEDIAN, "1": MEDIAN}, data=UNIFORM, sweep={"n": [5]})
    answers = Own(function=lambda values: np.zeros(3), probs=[0.25, 0.5, 0.75])
    for figure, name in (
        (11, "joint"),
        (14, "plain"),
        ("S2", "inverse sensitivity"),
        (8, first_quartiles.QEXP),
    ):
        with pytest.raises(InvalidParameter, match=f"own must have.*'{name}'"):
            lab.draw(figure, effort=lab.Effort(share=0.01), own={name: answers})
    with pytest.raises(InvalidParameter, match="own must be a mapping"):
        lab.draw(11, own=[answers])


def test_a_mechanism_without_a_budget_can_stand_in_a_figure():
    given = {"data": UNIFORM, "sweep": {"n": [20], "epsilon": [1, 2]}, "repeats": 2}
    plain = {"plain": Own(function=lambda values, probs: np.quantile(values, [0.25, 0.75]), probs=[0.5])}
    guests = several_risks.asked_for(plain, (Fraction(1, 4), Fraction(3, 4)))
    assert len(run(guests, **given)) == 2
    with pytest.raises(InvalidParameter, match="'epsilon'"):
        run(Own(function=np.median, probs=[0.5]), **given)


@pytest.mark.parametrize(
    "given",
    [{"share": 0}, {"share": 2}, {"share": np.nan}, {"seed": -1}, {"seed": 1.5}, {"jobs": 0}, {"cache": 3}],
)
def test_an_effort_is_checked(given):
    with pytest.raises(InvalidParameter, match=next(iter(given))):
        lab.Effort(**given)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"risks": []}, "risks must be a list"),
        ({"risks": "squared"}, "risks must be a list"),
        ({"sweep": [1]}, "sweep must be a mapping"),
        ({"sweep": {1: [2]}}, "sweep must map names"),
        ({"sweep": {"n": [5], "rho": [1], "epsilon": [1]}}, "one budget"),
        ({"sweep": {"n": [10**9]}}, "n must be"),
        ({"data": np.ma.array([1.0, 2.0], mask=[0, 1])}, "data must be"),
        ({"data": [[1], [2, 3]]}, "data must be"),
        ({"cache": ""}, "cache must be"),
        ({"cache": "\0"}, "cache must be"),
    ],
)
def test_experiments_that_cannot_be_run_are_refused(change, words):
    given = {"data": UNIFORM, "sweep": {"n": [5]}, "repeats": 2, **change}
    with pytest.raises(InvalidParameter, match=words):
        run(MEDIAN, **given)


def test_settings_of_several_types_are_told_in_words():
    any_of = [None, 1, "x", 2.5, True, 2**80]
    frame = tried(lambda values, a: 0.5, sweep={"a": any_of})
    assert frame["a"].to_list() == [None, "1", "x", "2.5", "True", str(2**80)]
    late = tried(lambda values, a: 0.5, sweep={"a": [*range(120), "x"]})
    assert late["a"].to_list()[-2:] == ["119", "x"]


def test_functions_as_settings_have_the_same_draws_in_every_process():
    cells = [
        runs._Cell(
            "a",
            None,
            UNIFORM,
            (0, 1),
            5,
            {"by": function, "of": frozenset("abc")},
            {},
            runs._Plan(1, 1, (), "data", 0, 0.9),
        )
        for function in (lambda values: 1, lambda values: 1)
    ]
    assert cells[0].randomness().rng.random() == cells[1].randomness().rng.random()


def test_data_sets_in_blocks_are_those_of_one_draw(monkeypatch):
    sources = [
        UNIFORM,
        datasets.normal(0, 1, bounds=(-3, 3)),
        datasets.beta(),
        datasets.poisson(3, bounds=(0, 9)),
        datasets.integers(0, 9),
        datasets.bernoulli(0.3),
        datasets.clusters([0, 5], 1, bounds=(-5, 10)),
        datasets.fixed(np.arange(7.0), bounds=(0, 7)),
    ]
    for source in sources:
        parts = list(source.blocks(10, 7, 3, most=4))
        assert [len(part) for part in parts] == [4, 4, 2]
        assert np.array_equal(np.concatenate(parts), source.draw(10, 7, 3)), source.name
    own = Own(function=lambda values, rng: rng.normal(), statistic=np.mean)
    given = {"data": UNIFORM, "sweep": {"n": [7]}, "sets": 10, "repeats": 3, "risks": ["squared", "sup"]}
    whole = run(own, **given)
    monkeypatch.setattr(runs, "BLOCK_VALUES", 20)
    assert whole.equals(run(own, **given))


def test_coverage_of_a_population_is_counted_on_every_data_set():
    mean = sf.Mean(budget=sf.PureDP(1), bounds=(0, 1), nulls="lower")
    given = {"data": UNIFORM, "sweep": {"n": [20]}, "repeats": 5, "sets": 4, "target": "population"}
    frame = run(mean, risks=["coverage", "squared"], **given)
    assert 0 < frame["mean"][0] <= 1
