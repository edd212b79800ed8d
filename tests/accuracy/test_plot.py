"""Curves of errors: what is exact stays below what is proved, what is in print stands beside it."""

import math
import sys
from dataclasses import replace

import pytest

import sfumato as sf
from sfumato.accuracy import Scenario, curves, plot
from sfumato.accuracy.histogram_method import histogram_quantile_failure, published_histogram_failure

# A public data set is the same in every simulation, so that a median is known exactly.
EVEN = Scenario.of_data([100 * (i + 0.5) / 4000 for i in range(4000)])
UNIFORM = Scenario.named("uniform", low=0, high=100)
SIZED = {"neighbours": "substitution", "nulls": "lower", "rows": 2000}
ONE = sf.PureDP(1)
METHODS = sf.quantile_methods


def median(method="auto", **changes):
    """Without verification, as the theorems are about a draw alone."""
    known = {"probs": (0.5,), "budget": ONE, "bounds": (0, 100), "method": method, "verify": 0, **SIZED}
    return sf.Quantiles(**{**known, **changes})


def mean(**changes):
    return sf.Mean(**{"budget": ONE, "bounds": (0, 100), **SIZED, **changes})


CASES = {
    "mean": (mean(), {}),
    "mean, private size": (mean(neighbours="add-remove", rows=None), {"n": 500, "scenario": UNIFORM}),
    "median": (median(), {"scenario": EVEN}),
    "median, verified": (median(verify="auto"), {"scenario": EVEN, "sizes": [400], "epsilons": [0.5, 5]}),
    "median, random data": (median(), {"scenario": UNIFORM, "sizes": [400], "epsilons": [0.2, 5]}),
    "median, add-remove": (
        median(neighbours="add-remove", rows=None),
        {"n": 500, "scenario": EVEN, "sizes": [100, 900], "epsilons": [0.2, 5]},
    ),
    "quartiles": (
        median("independent", probs=(0.25, 0.5, 0.75)),
        {"scenario": UNIFORM, "sizes": [400], "epsilons": [0.2, 5]},
    ),
    "histogram": (
        median(METHODS.FromHistogram(steps=200, published=True)),
        {"scenario": UNIFORM, "sizes": [400, 8000], "epsilons": [0.2]},
    ),
    "histogram on average": (
        median(METHODS.FromHistogram(steps=200)),
        {"scenario": UNIFORM, "measure": "mean", "sizes": [400, 8000], "epsilons": [0.2]},
    ),
    "inverse sensitivity": (
        median(METHODS.InverseSensitivity(radius=0.1), rows=20_000),
        {"scenario": UNIFORM, "sizes": [5000], "epsilons": [0.5, 4]},
    ),
    "inverse proportion": (sf.InverseProportion(budget=ONE, between=(0, 50), **SIZED), {}),
    "variance": (
        sf.Variance(budget=ONE, bounds=(0, 100), **SIZED),
        {"scenario": UNIFORM, "sizes": [500], "epsilons": [3]},
    ),
}


def by_curve(records):
    """The errors of each curve by panel and place."""
    found = {}
    for record in records:
        found.setdefault(record["curve"], {})[(record["panel"], record["x"])] = record["error"]
    return found


def kinds(records):
    return {record["curve"]: record["kind"] for record in records}


@pytest.mark.parametrize("name", CASES)
def test_what_is_exact_or_simulated_stays_below_every_proved_bound_at_every_place(name):
    query, asked = CASES[name]
    records = curves(query, **asked)
    found, kind = by_curve(records), kinds(records)
    own = next(iter(found))
    assert kind[own] in ("exact", "simulated")
    proved = [curve for curve in found if kind[curve] == "bound" or curve.startswith("corrected bound")]
    if name != "mean":
        assert proved
    for curve in proved:
        shared = set(found[curve]) & set(found[own])
        assert shared
        for place in shared:
            assert found[own][place] <= found[curve][place] * (1 + 1e-9), (curve, place)


@pytest.mark.parametrize("name", [name for name in CASES if name != "histogram on average"])
def test_the_first_curve_is_what_the_query_says_of_itself(name):
    query, asked = CASES[name]
    if name == "inverse proportion":
        asked = {"measure": "kept"}
    known = {key: asked[key] for key in ("n", "scenario") if key in asked}
    said = query.accuracy(known.pop("n", None), **known)
    records = [record for record in curves(query, **asked) if record["own"]]
    expected = said.rank_error if records[0]["unit"] == "ranks" else said.error
    assert records[0]["error"] == expected
    assert {record["panel"] for record in records} == {"epsilon", "n"}


def test_the_published_rank_bound_is_false_where_no_rank_is_whole():
    # One record in the middle: every answer but its own point is half a rank away.
    asked = {"confidence": 0.1, "scenario": Scenario.of_data([50.0]), "epsilons": [10], "sizes": [1]}
    found = by_curve(curves(median(rows=1, budget=sf.PureDP(10)), **asked))
    place = ("epsilon", 10.0)
    assert found["published bound [A24]"][place] < found["exact"][place] == 0.5
    assert found["corrected bound, by gaps"][place] == 0.5


def test_the_published_limit_of_a_proportion_is_off_by_the_root_of_e_to_the_epsilon():
    found = by_curve(curves(CASES["inverse proportion"][0]))
    for place, exact in found["exact"].items():
        epsilon = place[1] if place[0] == "epsilon" else 1.0
        n = 2000 if place[0] == "epsilon" else place[1]
        # The limit is one for counts far from 0 and n.
        if epsilon * n > 200:
            assert found["corrected limit"][place] == pytest.approx(exact, rel=1e-3)
            assert found["published limit [A24]"][place] == pytest.approx(
                exact * math.exp(epsilon / 2), rel=1e-3
            )
        if place in found["lower bound"]:
            assert found["lower bound"][place] < exact


def test_bounds_of_the_histogram_method_are_the_theorems_solved_for_the_distance():
    query, asked = CASES["histogram"]
    found = by_curve(curves(query, **asked))
    place = ("n", 8000.0)
    distance = found["corrected bound, population"][place]
    sized = replace(query, rows=8000)
    scan = query.chosen.scans(sized.facts)[0]
    terms = {
        "rows": 8000,
        "steps": 200,
        "order": 0.5,
        "failure": 0.025,
        "radius": scan.rank_error(200, 0.975),
    }
    terms |= {"law": UNIFORM, "bounds": (0, 100)}
    assert histogram_quantile_failure(distance=distance, **terms) <= 0.05
    assert histogram_quantile_failure(distance=distance / 1.01, **terms) > 0.05
    printed = found["published bound [C22]"][place] / 100
    terms = {"rows": 8000, "steps": 200, "failure": 0.025, "epsilon": 1}
    assert published_histogram_failure(distance=printed, **terms) <= 0.05 + 1e-12
    # It is about distances up to a tenth, and says nothing for few rows.
    assert ("n", 400.0) not in found["published bound [C22]"]


def test_a_theorem_about_another_law_is_not_drawn():
    query, _ = CASES["histogram"]
    asked = {"sizes": [8000], "epsilons": [1]}
    normal = Scenario.named("normal", mean=50, sd=10)
    assert "published bound [C22]" not in by_curve(curves(query, scenario=normal, **asked))
    assert "corrected bound, population" in by_curve(curves(query, scenario=normal, **asked))
    # Without a scenario ranks are all that is known.
    assert set(by_curve(curves(query, **asked))) == {"bound on any data"}


def test_theorems_about_a_draw_are_not_drawn_for_quantiles_that_are_verified():
    asked = {"sizes": [400], "epsilons": [0.5, 5], "scenario": EVEN}
    assert "corrected bound, by gaps" in by_curve(curves(median(), **asked))
    assert set(by_curve(curves(median(verify="auto"), **asked))) == {"simulated", "bound on any data"}
    subtitle = plot(median(verify="auto"), **asked).to_dict()["title"]["subtitle"]
    assert "method single, verified by counts" in subtitle[0]


def test_a_density_that_is_not_known_leaves_the_smooth_bound_out():
    query = CASES["inverse sensitivity"][0]
    data = Scenario.of_data(range(101))
    asked = {"sizes": [5000], "epsilons": [1]}
    assert "corrected bound [C22]" not in by_curve(curves(query, scenario=data, **asked))
    normal = Scenario.named("normal", mean=50, sd=10)
    found = by_curve(curves(query, scenario=normal, **asked))
    assert all(bound > found["simulated"][place] for place, bound in found["corrected bound [C22]"].items())


def test_a_mean_shows_where_more_budget_no_longer_helps():
    found = by_curve(curves(mean(), scenario=UNIFORM))
    floor = found["sampling alone"][("epsilon", 10.0)]
    assert floor == pytest.approx(100 / math.sqrt(12 * 2000))
    total = found["population, root mean square"]
    assert total[("epsilon", 10.0)] < 1.001 * floor < total[("epsilon", 0.1)]
    # Without a scenario nothing is known of the spread.
    assert set(by_curve(curves(mean()))) == {"exact"}


@pytest.mark.parametrize("method", ["flip", "exponential"])
@pytest.mark.parametrize("measure", ["kept", "mean"])
def test_choices_are_drawn_by_the_number_of_candidates(method, measure):
    query = sf.Choose(candidates=list("abcdefgh"), sensitivity=1, budget=ONE, method=method)
    records = curves(query, measure=measure)
    assert {record["panel"] for record in records} == {"epsilon", "candidates"}
    found = by_curve(records)
    sharp, printed = list(found)
    assert printed == "published bound [MT07]"
    assert all(found[sharp][place] < found[printed][place] for place in found[sharp])
    if measure == "kept" and method == "exponential":
        own = next(record for record in records if record["own"])
        assert own["error"] == pytest.approx(query.radius(0.95), rel=1e-6)


def test_every_budget_keeps_its_own_parameter_and_its_kind():
    for budget, name in ((sf.ZCDP(0.1), "rho"), (sf.ApproxDP(1, 1e-6), "epsilon")):
        records = curves(mean(budget=budget), sizes=[100])
        assert {record["panel"] for record in records} == {name, "n"}
        own = next(record for record in records if record["own"])
        assert own["error"] == mean(budget=budget).accuracy().error


def test_given_places_are_looked_at_and_the_query_s_own():
    records = curves(mean(), epsilons=[0.5, 2], sizes=range(10, 30, 10))
    places = {(record["panel"], record["x"]) for record in records}
    assert places == {("epsilon", 0.5), ("epsilon", 1.0), ("epsilon", 2.0), ("n", 10), ("n", 20), ("n", 2000)}


def test_a_bound_beyond_all_that_is_possible_is_left_out():
    found = by_curve(curves(median(rows=20), scenario=EVEN, epsilons=[0.01, 50], sizes=[20]))
    assert ("epsilon", 0.01) in found["exact"]
    assert ("epsilon", 0.01) not in found["published bound [A24]"]
    assert all(error <= 20 for curve in found.values() for error in curve.values())


def test_wrong_parameters_are_named():
    private = mean(neighbours="add-remove", rows=None)
    with pytest.raises(sf.InvalidParameter, match="n must be given"):
        curves(private)
    for name, value in (
        ("epsilons", 3),
        ("epsilons", []),
        ("epsilons", [-1]),
        ("sizes", [1.5]),
        ("sizes", [0]),
    ):
        with pytest.raises(sf.InvalidParameter, match=f"^{name} must be"):
            curves(mean(), **{name: value})
    with pytest.raises(sf.InvalidParameter, match="measure must be one of"):
        curves(mean(), measure="median")
    with pytest.raises(sf.InvalidParameter, match="scenario must be"):
        curves(mean(), scenario="uniform")
    with pytest.raises(sf.InvalidParameter, match="confidence must be"):
        curves(mean(), confidence=1)
    with pytest.raises(sf.InvalidParameter, match="query must be"):
        curves("mean")


def panels(chart):
    return chart.to_dict()["vconcat"]


def test_the_picture_shows_the_numbers_of_the_curves_and_marks_the_query():
    query, asked = CASES["median"]
    records = curves(query, **asked)
    chart = plot(query, **asked)
    for panel, name in zip(panels(chart), ("epsilon", "n"), strict=True):
        drawn = [
            row
            for layer in panel["layer"]
            if layer["mark"]["type"] == "line"
            for row in layer["data"]["values"]
        ]
        numbers = {(row["curve"], row["x"], row["error"]) for row in drawn}
        assert numbers == {(r["curve"], r["x"], r["error"]) for r in records if r["panel"] == name}
        (spot,) = next(x for x in panel["layer"] if x["mark"]["type"] == "point")["data"]["values"]
        own = next(r for r in records if r["own"] and r["panel"] == name)
        assert (spot["x"], spot["error"]) == (own["x"], own["error"])
    heading = chart.to_dict()["title"]
    assert heading["text"] == "error of the median of values, PureDP(epsilon=1.0)"
    assert heading["subtitle"] == [f"n = 2,000; method single; data like {EVEN.words}"]
    assert "ranks" in str(panels(chart)[0]["layer"][0]["encoding"]["y"]["title"])


def test_a_query_without_a_number_of_values_has_one_panel():
    count = sf.Count(budget=ONE, between=(0, 50), neighbours="add-remove")
    assert len(panels(plot(count))) == 1


def test_a_query_without_an_error_has_no_picture():
    with pytest.raises(
        sf.NotSupported, match="plot needs an error that is positive and finite, and this count"
    ):
        plot(sf.Count(budget=ONE, **SIZED))


def test_without_altair_numbers_are_there_and_the_picture_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    assert curves(mean())
    with pytest.raises(sf.MissingExtra, match=r"sfumato\[charts\]"):
        plot(mean())


def test_hostile_columns_are_words_in_the_picture():
    heading = plot(mean(column="</script>\n\x1b" + "x" * 300)).to_dict()["title"]["text"]
    assert heading.isprintable()
    assert len(heading) < 100


def test_a_bound_of_the_wrong_constant_would_be_noticed():
    # The mutant: a bound that is an eighth of what is proved.
    query, asked = CASES["median"]
    found = by_curve(curves(query, **asked))
    bound, exact = found["corrected bound, by gaps"], found["exact"]
    assert any(bound[place] / 8 < exact[place] for place in set(bound) & set(exact))
    assert all(bound[place] >= exact[place] for place in set(bound) & set(exact))
