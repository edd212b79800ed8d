"""Experiments: exact risks, simulated ones beside them, and the same frame whoever computes it."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter, MissingBounds, NotSupported
from sfumato.lab import Own, Points, cache, datasets, run, runs
from sfumato.lab.quantile_rows import QuantileRows

MEDIAN = sf.Quantiles(probs=[0.5], method="single", budget=sf.PureDP(1), bounds=(0, 1), verify=0)
UNIFORM = datasets.uniform()


def noisy_mean(values, epsilon, rng):
    return values.mean() + rng.laplace() / (epsilon * len(values))


def drawn_cell(values, epsilon):
    """The exponential mechanism for a median on eleven points, as a law."""
    points = np.linspace(0, 1, 11)
    below = np.searchsorted(np.sort(values), points)
    weights = np.exp(-epsilon * np.abs(below - len(values) / 2) / 2)
    return Points(points, weights / weights.sum())


def in_bounds(values, bounds):
    return np.full(2, bounds[1])


def many(rows, size, epsilon, rng):
    return rows.mean(axis=1)[:, None] + rng.laplace(size=(len(rows), size)) / epsilon


def strayed(frame):
    """The farthest that a simulated mean is from its exact value, in standard errors of the draws."""
    both = frame.filter(pl.col("exact").is_not_null())
    assert len(both)
    return float(((both["mean"] - both["exact"]).abs() / both["noise_se"]).max())


def test_exact_and_simulated_risks_agree_for_every_kind_of_law():
    whole = {"budget": sf.PureDP(1), "nulls": "lower"}
    subjects = {
        "median": MEDIAN,
        "mean": sf.Mean(bounds=(0, 1), **whole),
        "sum": sf.Sum(bounds=(0, 1), budget=sf.ZCDP(0.1)),
        "count": sf.Count(budget=sf.PureDP(0.1), neighbours="add-remove"),
        "law": Own(function=drawn_cell, probs=[0.5]),
    }
    sweep = {"n": [7, 100], "epsilon": [0.2, 1]}
    risks = ["squared", "absolute", "sup"]
    frame = run(subjects, data=UNIFORM, sweep=sweep, repeats=400, sets=5, risks=risks, seed=11)
    assert set(frame.filter(pl.col("exact").is_not_null())["subject"]) == set(subjects)
    assert strayed(frame) < 4


def test_quantiles_by_rank_agree_too():
    subjects = {"median": MEDIAN, "law": Own(function=drawn_cell, probs=[0.5])}
    frame = run(subjects, data=UNIFORM, sweep={"n": [50], "epsilon": [0.3]}, repeats=2000, risks=["rank"])
    assert frame["exact"].null_count() == 0
    assert strayed(frame) < 4


def test_a_small_joint_law_is_listed():
    method = sf.quantile_methods.Joint(subcells=1)
    query = sf.Quantiles(
        probs=[0.25, 0.75], budget=sf.PureDP(1), bounds=(0, 8), step=1, method=method, verify=0
    )
    frame = run(
        query, data=datasets.integers(0, 7), sweep={"n": [20]}, repeats=2000, risks=["squared", "rank"]
    )
    assert frame["exact"].null_count() == 0
    assert strayed(frame) < 4


def test_a_shifted_draw_is_caught(monkeypatch):
    honest = QuantileRows.sample
    monkeypatch.setattr(QuantileRows, "sample", lambda *given: honest(*given) + 0.005)
    frame = run(MEDIAN, data=UNIFORM, sweep={"n": [1000]}, repeats=2000)
    assert strayed(frame) > 4


class Misstated(Points):
    """Draws that are not those of the law that is told."""

    def draw(self, count, rng):
        return 1.05 * super().draw(count, rng)


def test_a_law_that_is_misstated_is_caught():
    def function(values, epsilon):
        law = drawn_cell(values, epsilon)
        return Misstated(law.values, law.probabilities)

    own = Own(function=function, probs=[0.5])
    assert strayed(run(own, data=UNIFORM, sweep={"n": [100], "epsilon": [1]}, repeats=5000)) > 4


def test_risks_are_what_they_are_called():
    off = Own(function=lambda values: np.array([1.0, -3.0]), statistic=lambda values: [0.0, 0.0])
    frame = run(off, data=[0, 1], repeats=2, risks=["squared", "absolute", "sup"])
    assert frame["mean"].to_list() == [10.0, 2.0, 3.0]
    ranks = Own(function=lambda values: values.max(), probs=[0.25])
    assert run(ranks, data=np.arange(8), repeats=2, risks=["rank"])["mean"].to_list() == [5.0]
    ties = Own(function=lambda values: 1.0, probs=[0.5])
    assert run(ties, data=[0, 1, 1, 1, 2], repeats=1, risks=["rank"])["mean"].to_list() == [0.0]


def test_coverage_is_the_share_of_intervals_that_hold_the_truth():
    query = sf.Mean(budget=sf.PureDP(1), bounds=(0, 1), nulls="lower")
    frame = run(query, data=UNIFORM, sweep={"n": [200]}, repeats=500, risks=["coverage"], confidence=0.8)
    assert abs(frame["mean"][0] - 0.8) < 4 * math.sqrt(0.8 * 0.2 / 500)
    with pytest.raises(NotSupported, match="coverage"):
        run(
            Own(function=noisy_mean, statistic=np.mean),
            data=[0, 1],
            sweep={"epsilon": [1]},
            risks=["coverage"],
        )


def test_times_are_medians_and_positive():
    frame = run(MEDIAN, data=UNIFORM, sweep={"n": [50]}, repeats=5, risks=["time"])
    assert 0 < frame["mean"][0] < 60
    assert frame["exact"][0] is None


def test_the_frame_is_the_same_in_any_number_of_processes_and_any_company():
    subjects = {"median": MEDIAN, "mine": Own(function=noisy_mean, statistic=np.mean)}
    given = {"data": UNIFORM, "sweep": {"n": [30], "epsilon": [0.5, 1]}, "repeats": 5, "sets": 3, "seed": 5}
    alone = run(subjects, **given)
    assert alone.equals(run(subjects, jobs=2, **given))
    assert alone.filter(subject="mine").equals(run({"mine": subjects["mine"]}, **given))
    assert not alone.equals(run(subjects, **{**given, "seed": 6}))


def test_all_subjects_and_settings_see_the_same_data():
    seen = []

    def look(values, epsilon):
        seen.append(values.copy())
        return values.mean()

    run(
        {"one": Own(function=look, statistic=np.mean), "two": Own(function=look, statistic=np.mean)},
        data=UNIFORM,
        sweep={"n": [10], "epsilon": [1, 2]},
        repeats=1,
    )
    assert len(seen) == 4
    assert all(np.array_equal(seen[0], other) for other in seen)


def test_standard_errors_tell_data_sets_from_draws():
    frame = run(MEDIAN, data=UNIFORM, sweep={"n": [50]}, repeats=20, sets=100, risks=["absolute"])
    row = frame.row(0, named=True)
    # Data sets are independent, so that both parts add up to the whole.
    assert row["se"] ** 2 == pytest.approx(row["noise_se"] ** 2 + row["exact_se"] ** 2, rel=0.5)
    single = run(MEDIAN, data=UNIFORM, sweep={"n": [50]}, repeats=1, sets=400, risks=["absolute"]).row(
        0, named=True
    )
    assert abs(single["mean"] - single["exact"]) < 4 * single["noise_se"] < 8 * single["se"]


def test_the_population_can_be_the_target():
    of_data = run(MEDIAN, data=UNIFORM, sweep={"n": [20]}, repeats=50, sets=50)
    of_all = run(MEDIAN, data=UNIFORM, sweep={"n": [20]}, repeats=50, sets=50, target="population")
    assert of_all["mean"][0] > of_data["mean"][0]
    assert of_all["exact"][0] > of_data["exact"][0]
    assert max(strayed(of_all), strayed(of_data)) < 4
    with pytest.raises(InvalidParameter, match="target"):
        run(
            Own(function=noisy_mean, statistic=np.mean),
            data=UNIFORM,
            sweep={"n": [5], "epsilon": [1]},
            target="population",
        )


def test_orders_that_are_asked_for_twice_count_twice():
    sweep = {"n": [50], "probs": [[0.5], [0.5, 0.5]]}
    once, twice = run(replace(MEDIAN, step=0.001), data=UNIFORM, sweep=sweep)["exact"]
    assert twice == pytest.approx(2 * once, rel=1e-9)


@pytest.mark.parametrize("condition", [{}, {"equals": 1}, {"between": (0.5, 2)}], ids=str)
def test_shares_are_of_ones_or_of_what_meets_a_condition(condition):
    query = sf.Proportion(budget=sf.PureDP(1), nulls="lower", **condition)
    given = {"data": datasets.bernoulli(0.3), "sweep": {"n": [50]}, "repeats": 400, "seed": 3}
    assert strayed(run(query, **given)) < 4
    if condition:
        with pytest.raises(InvalidParameter, match="target must be 'data'"):
            run(query, target="population", **given)
    else:
        assert strayed(run(query, target="population", **given)) < 4


def test_functions_get_the_bounds_and_the_settings_that_they_name():
    frame = run(
        Own(function=in_bounds, statistic=lambda values: [0, 0]),
        data=datasets.uniform(0, 3),
        sweep={"n": [4]},
        repeats=1,
        risks=["sup"],
    )
    assert frame["mean"].to_list() == [3.0]
    batched = Own(function=many, statistic=np.mean, batched=True)
    frame = run(batched, data=UNIFORM, sweep={"n": [10], "epsilon": [2]}, repeats=4000, sets=2)
    assert abs(frame["mean"][0] - 0.5) < 4 * frame["noise_se"][0]


def test_sources_methods_and_fractions_are_settings():
    sources = [datasets.uniform(), datasets.beta()]
    sweep = {"data": sources, "n": [20], "method": ["joint", "recursive"], "epsilon": [Fraction(1, 2)]}
    query = sf.Quantiles(probs=[0.25, 0.5], budget=sf.PureDP(1), verify=0)
    frame = run(query, data=None, sweep=sweep, repeats=3)
    assert set(frame["data"]) == {source.name for source in sources}
    assert set(frame["method"]) == {"joint", "recursive"}


# --- the cache ---------------------------------------------------------------------------------


def never(cell):
    raise AssertionError("computed again")


def test_results_are_found_again_by_content(tmp_path, monkeypatch):
    given = {"data": UNIFORM, "sweep": {"n": [30], "epsilon": [0.5, 1]}, "repeats": 5, "cache": tmp_path}
    first = run(MEDIAN, **given)
    assert len(list(tmp_path.rglob("*.json"))) == 2
    monkeypatch.setattr(runs, "_risks", never)
    assert first.equals(run(MEDIAN, **given))
    for change in ({"repeats": 6}, {"seed": 1}, {"sets": 2}, {"data": datasets.uniform(0, 2)}):
        with pytest.raises(AssertionError):
            run(MEDIAN, **{**given, **change})


def test_another_code_is_other_content(tmp_path, monkeypatch):
    given = {"data": UNIFORM, "sweep": {"n": [30]}, "repeats": 5, "cache": tmp_path}
    run(MEDIAN, **given)
    monkeypatch.setattr(cache, "_code", lambda: "another")
    monkeypatch.setattr(runs, "_risks", never)
    with pytest.raises(AssertionError):
        run(MEDIAN, **given)


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe"])
def test_a_damaged_file_is_computed_again(tmp_path, damage):
    given = {"data": UNIFORM, "sweep": {"n": [30]}, "repeats": 5, "cache": tmp_path}
    first = run(MEDIAN, **given)
    (stored,) = tmp_path.rglob("*.json")
    stored.write_bytes(damage)
    assert first.equals(run(MEDIAN, **given))


def test_functions_are_known_by_their_text_and_what_they_hold():
    def scaled(by):
        def function(values):
            return by * values.mean()

        return function

    def other(values):
        return values.mean() + 1

    keys = [cache.content_of(one) for one in (scaled(1), scaled(2), other, noisy_mean, MEDIAN)]
    assert len(set(keys)) == 5
    assert None not in keys
    assert cache.content_of(scaled(2)) == keys[1]
    assert cache.content_of(object()) is None


def test_what_is_not_known_or_depends_on_the_machine_is_not_kept(tmp_path):
    class Callable:
        def __call__(self, values):
            return 0.0

    run(Own(function=Callable(), statistic=np.mean), data=[0, 1], repeats=2, cache=tmp_path)
    run(MEDIAN, data=UNIFORM, sweep={"n": [10]}, repeats=2, risks=["time"], cache=tmp_path)
    assert not list(tmp_path.rglob("*.json"))


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path):
    occupied = tmp_path / "file"
    occupied.write_text("")
    assert len(run(MEDIAN, data=UNIFORM, sweep={"n": [10]}, repeats=2, cache=occupied)) == 1


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"subject": noisy_mean}, "Own"),
        ({"subject": {}}, "at least one"),
        ({"subject": 3}, "subject must be"),
        ({"sweep": {"epsilon": [1]}}, '"n"'),
        ({"sweep": {"n": []}}, "not empty"),
        ({"sweep": {"n": 5}}, "lists"),
        ({"sweep": {"n": [5], "colour": [1]}}, "colour"),
        ({"sweep": {"n": [0]}}, "n must be"),
        ({"sweep": {"n": [5], "epsilon": [-1]}}, "epsilon"),
        ({"data": "uniform"}, "data must be"),
        ({"data": np.array([1.0, np.nan])}, "finite"),
        ({"data": np.zeros((2, 2))}, "data must be"),
        ({"risks": ["cubed"]}, "risks must be"),
        ({"repeats": 0}, "repeats"),
        ({"sets": 0}, "sets"),
        ({"jobs": 0}, "jobs"),
        ({"seed": -1}, "seed"),
        ({"cache": 3}, "cache must be"),
        ({"target": "both"}, "target must be"),
    ],
)
def test_mistakes_are_told_in_words(change, words):
    given = {"subject": MEDIAN, "data": UNIFORM, "sweep": {"n": [5]}, "repeats": 2}
    given |= change
    with pytest.raises(InvalidParameter, match=words):
        run(given.pop("subject"), **given)


def test_a_function_that_cannot_be_sent_needs_one_process():
    own = {"a": Own(function=lambda values: 0.0, statistic=np.mean), "b": MEDIAN}
    with pytest.raises(InvalidParameter, match="jobs must be 1"):
        run(own, data=UNIFORM, sweep={"n": [5]}, repeats=2, jobs=2)


@pytest.mark.parametrize(
    ("values", "chances"),
    [([0, 1], [0.5, 0.6]), ([0, 1], [1.5, -0.5]), ([], []), ([0], [0.5, 0.5]), ([np.nan], [1])],
)
def test_points_are_probabilities(values, chances):
    with pytest.raises(InvalidParameter, match="probabilities"):
        Points(values, chances)


def test_an_own_mechanism_says_what_it_estimates():
    for given in ({}, {"probs": [0.5], "statistic": np.mean}):
        with pytest.raises(InvalidParameter, match="probs or statistic"):
            Own(function=noisy_mean, **given)
    with pytest.raises(NotSupported, match="rank"):
        run(Own(function=lambda values: 0.0, statistic=np.mean), data=[0, 1], repeats=2, risks=["rank"])
    with pytest.raises(InvalidParameter, match="shape"):
        run(
            Own(function=lambda rows, size: np.zeros(3), statistic=np.mean, batched=True),
            data=[0, 1],
            repeats=2,
        )


def test_bounds_are_never_read_from_an_array(tmp_path):
    bare = sf.Quantiles(probs=[0.5], budget=sf.PureDP(1), verify=0)
    # Not by way of a result that was kept for the same values with bounds either.
    run(bare, data=datasets.fixed(np.arange(9), bounds=(0, 8)), repeats=1, cache=tmp_path)
    with pytest.raises(MissingBounds):
        run(bare, data=np.arange(9), repeats=1, cache=tmp_path)
    for subject in (bare, Own(function=in_bounds, statistic=lambda values: [0, 0])):
        with pytest.raises(MissingBounds, match="bounds must be given"):
            run(subject, data=np.arange(9), repeats=1)
        assert len(run(subject, data=datasets.fixed(np.arange(9), bounds=(0, 20)), repeats=1)) == 1
