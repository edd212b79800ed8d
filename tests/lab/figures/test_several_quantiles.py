"""Figures 11 to 17 and the regime map: every statement holds, and each fails on numbers that are wrong."""

from functools import cache

import numpy as np
import polars as pl
import pytest

from sfumato.lab import regimes, run_times
from sfumato.lab.asked_trials import AskedSubject
from sfumato.lab.figure import MODES, QUICK, Effort
from sfumato.lab.figures import (
    independent_run_time,
    joint_run_time,
    largest_error_by_count,
    plain_run_time,
    quartile_risks,
    recursive_run_time,
    regime_map,
    squared_risk_by_count,
)
from sfumato.lab.own import Own
from sfumato.lab.several_risks import orders, recorded
from sfumato.lab.trials import Randomness

# The gallery draws these figures and checks their statements too.
pytestmark = pytest.mark.slow

MODULES = {
    "11": quartile_risks,
    "12": squared_risk_by_count,
    "13": largest_error_by_count,
    "14": independent_run_time,
    "15": joint_run_time,
    "16": recursive_run_time,
    "17": plain_run_time,
    "R2": regime_map,
}
TIMES = ("14", "15", "16", "17")
EVERY = [(number, mode) for number in MODULES for mode in MODES]


@cache
def numbers(number, mode):
    """The numbers of a figure, computed once; the figures about times share theirs."""
    return MODULES["14" if number in TIMES else number].FIGURE.numbers(mode, QUICK, {})


def fallen(number, mode, table):
    """The words of the statements that do not hold."""
    return [said.words for said in MODULES[number].FIGURE.check(table, mode) if not said.holds]


@pytest.mark.parametrize(("number", "mode"), EVERY)
def test_every_statement_holds(number, mode):
    assert MODULES[number].FIGURE.number == number
    assert MODULES[number].FIGURE.check(numbers(number, mode), mode)
    assert fallen(number, mode, numbers(number, mode)) == []


@pytest.mark.parametrize(("number", "mode"), EVERY)
def test_the_picture_is_drawn_and_the_caption_is_short(number, mode):
    figure = MODULES[number].FIGURE
    drawn = figure.chart(numbers(number, mode), mode).to_dict()
    assert drawn["title"]["text"]
    assert 1 <= figure.captions[mode].count(". ") + 1 <= 5


def swapped(one, other, column="curve"):
    """Two curves by each other's names."""
    return lambda table: table.with_columns(pl.col(column).replace({one: other, other: one}))


def scaled(factor, *names, column="curve", more=0.0, only=("exact", "mean")):
    """Some curves larger by a factor, and by a number."""

    def change(table):
        here = pl.col(column).is_in(names) if names else pl.lit(value=True)
        values = [
            pl.when(here).then(pl.col(name) * factor + more).otherwise(pl.col(name)).alias(name)
            for name in only
        ]
        return table.with_columns(values)

    return change


def off_by(errors):
    """Simulated means that are so many standard errors from where they were."""
    return lambda table: table.with_columns(pl.col("mean") + errors * pl.col("noise_se"))


def turned(table):
    """The largest budget where the least was."""
    return table.with_columns(pl.col("epsilon").replace({0.1: 2.0, 2.0: 0.1}))


def without_offset(table):
    """Squares without the last estimate, as they should be."""
    last = table.filter(pl.col("curve") == squared_risk_by_count.LAST)["exact"].to_list()
    drop = iter(last)
    rows = table.to_dicts()
    for row in rows:
        if row["curve"] == "independent":
            less = next(drop)
            row["exact"], row["mean"] = row["exact"] - less + 1e-6, row["mean"] - less + 1e-6
    return pl.DataFrame(rows, schema=table.schema)


def proper_errors(table):
    """The largest errors where the largest estimates were."""
    named = {largest_error_by_count.PLOTTED: largest_error_by_count.MEANT}
    named |= {meant: plotted for plotted, meant in named.items()}
    return table.with_columns(pl.col("panel").replace(named))


def slower(method, factor):
    """The times of one method by a factor."""
    return scaled(factor, method, column="method", only=("microseconds",))


METHOD = {"column": "method"}
# What is wrong with the numbers, and how the statement begins or goes on that must notice.
MUTANTS = {
    "the names of two methods mixed up": (
        "11",
        "corrected",
        swapped("joint", "recursive"),
        "JointExp is below RecExp",
    ),
    "the same as published": ("11", "published", swapped("joint", "recursive"), "JointExp is below RecExp"),
    "independent draws as good as joint ones": (
        "11",
        "corrected",
        scaled(0.3, "independent"),
        "JointExp is below IndExp",
    ),
    "independent draws as good as recursive ones": (
        "11",
        "corrected",
        scaled(0.3, "independent"),
        "RecExp is below IndExp",
    ),
    "independent draws with the names of recursive ones": (
        "11",
        "corrected",
        swapped("recursive", "independent"),
        "RecExp is above IndExp",
    ),
    "a sampler off by six errors": ("11", "published", off_by(6), "errors from the exact ones"),
    "risks of twice the truth": ("11", "published", scaled(2.5), "recorded 0.0052"),
    "risks of a third of the truth": ("11", "corrected", scaled(0.3), "recorded 0.142"),
    "budgets in the wrong order": ("11", "corrected", turned, "falls with ε"),
    "budgets in the wrong order as published": ("11", "published", turned, "falls with ε"),
    "independent draws with a budget each": (
        "12",
        "corrected",
        scaled(20, "independent"),
        "RecExp is not below",
    ),
    "a recursion that pays twice": (
        "12",
        "corrected",
        scaled(4, "recursive"),
        "n = 10,000: RecExp is below IndExp",
    ),
    "a median by recursion that is another draw": (
        "12",
        "corrected",
        scaled(4, "recursive", only=("mean",)),
        "one quantile is the same draw",
    ),
    "draws that are not flat": ("12", "corrected", scaled(0.5, "independent"), "nearly flat"),
    "a recursion far from the recorded one": ("12", "corrected", scaled(4, "recursive"), "recorded 1.49"),
    "all errors squared": ("12", "published", without_offset, "the last estimate is"),
    "the squares of a median": ("12", "published", without_offset, "for one quantile"),
    "a recursion with intervals of its own": (
        "12",
        "published",
        scaled(0.1, "recursive"),
        "RecExp is above IndExp",
    ),
    "samplers off by six errors": ("11", "corrected", off_by(6), "errors from the exact ones"),
    "samplers for many off by six errors": (
        "12",
        "corrected",
        off_by(6),
        "errors from the exact ones",
    ),
    "a largest error of one quantile by another draw": (
        "13",
        "corrected",
        scaled(4, "recursive", only=("mean",)),
        "one quantile is the same draw",
    ),
    "largest errors off by six errors": ("13", "corrected", off_by(6), "errors from the exact ones"),
    "largest estimates off by six errors": (
        "13",
        "published",
        off_by(6),
        "errors from the exact ones",
    ),
    "a sampler of sums off by six errors": (
        "12",
        "published",
        off_by(6),
        "errors from the exact ones",
    ),
    "errors of other methods": (
        "13",
        "corrected",
        swapped("recursive", "independent"),
        "n = 10,000: RecExp is below IndExp",
    ),
    "a sup norm of half": ("13", "corrected", scaled(0.5, only=("mean",)), "recorded 0.149"),
    "errors in place of estimates": ("13", "published", proper_errors, "towards 1 from below"),
    "estimates in place of errors": ("13", "published", proper_errors, "largest estimate is below"),
    "errors that follow the estimates": (
        "13",
        "published",
        scaled(0.01, "recursive"),
        "yet its largest error",
    ),
    "privacy for nothing": ("14", "corrected", slower("independent", 0.01), "IndExp over"),
    "privacy for nothing as published": ("14", "published", slower("independent", 0.01), "IndExp over"),
    "a fast joint draw": ("15", "published", slower("joint", 0.1), "JointExp over RecExp"),
    "another that is slower": ("15", "published", slower("independent", 100), "over the slowest"),
    "a slow joint draw": ("15", "corrected", slower("joint", 10), "JointExp over RecExp"),
    "a joint draw faster than independent ones": (
        "15",
        "corrected",
        slower("joint", 0.05),
        "JointExp over IndExp",
    ),
    "a slow recursion": ("16", "corrected", slower("recursive", 9), "RecExp over IndExp"),
    "a fast recursion": ("16", "published", slower("recursive", 0.1), "RecExp over IndExp"),
    "slow quantiles without privacy": ("17", "corrected", slower("plain", 100), "the fastest private method"),
    "the same as published, slow": ("17", "published", slower("plain", 100), "the fastest private method"),
    "a single draw twice as far": (
        "R2",
        "corrected",
        scaled(2, "independent", **METHOD),
        "one quantile at ε = 0.1",
    ),
    "a single draw twice as far at ε = 1": (
        "R2",
        "corrected",
        scaled(2, "independent", **METHOD),
        "one quantile at ε = 1",
    ),
    "a recursion that is another draw": (
        "R2",
        "corrected",
        scaled(9, "recursive", more=50, **METHOD),
        "for one quantile independent, joint",
    ),
    "a joint draw of no use": ("R2", "corrected", scaled(5, "joint", more=9, **METHOD), "at least 3 log"),
    "a recursion of no use": (
        "R2",
        "corrected",
        scaled(60, "recursive", **METHOD),
        "99 quantiles are better",
    ),
    "a joint draw that is lost on a tight domain": (
        "R2",
        "corrected",
        scaled(20, "joint", **METHOD),
        "on a tight domain",
    ),
    "a histogram that knows more": (
        "R2",
        "corrected",
        swapped("histogram", "joint", **METHOD),
        "the histogram method",
    ),
    "independent draws that know more": (
        "R2",
        "corrected",
        scaled(0.1, "independent", **METHOD),
        "are never the best for three",
    ),
    "independent draws with half of the error": (
        "R2",
        "corrected",
        scaled(0.5, "independent", **METHOD),
        "times 2 m/ε",
    ),
    "a joint draw as far off as the recursion": (
        "R2",
        "corrected",
        swapped("joint", "recursive", **METHOD),
        "9 quantiles a joint draw has",
    ),
    "inverse sensitivity that costs twice": (
        "R2",
        "corrected",
        scaled(2, "inverse_sensitivity", more=9, **METHOD),
        "inverse sensitivity, order by order",
    ),
    "a histogram for wide domains": (
        "R2",
        "corrected",
        scaled(0.1, "histogram", **METHOD),
        "on a domain much wider",
    ),
    "a bad choice": ("R2", "corrected", scaled(3, "auto", more=40, **METHOD), "auto is within"),
    "published rates that favour the recursion": (
        "R2",
        "published",
        swapped("independent", "recursive", **METHOD),
        "IndExp looks best",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_numbers_fail_the_statement_about_them(name):
    number, mode, change, words = MUTANTS[name]
    assert any(words in said for said in fallen(number, mode, change(numbers(number, mode))))


def test_every_statement_has_numbers_that_fail_it():
    for number, mode in EVERY:
        caught = {
            said
            for other, under, change, _ in MUTANTS.values()
            if (other, under) == (number, mode)
            for said in map(_kind, fallen(number, mode, change(numbers(number, mode))))
        }
        said = {_kind(each.words) for each in MODULES[number].FIGURE.check(numbers(number, mode), mode)}
        assert said <= caught, (number, mode, said - caught)


def _kind(words):
    """A statement without its numbers."""
    return "".join(letter for letter in words.split(":")[0] if letter.isalpha())[:24]


def test_a_recursion_with_the_wrong_interval_does_not_agree_with_its_law(monkeypatch):
    def broken(function, probs, **settings):
        return quartile_risks_script(
            function, probs, **{**settings, **({"own_interval": False} if settings else {})}
        )

    quartile_risks_script = quartile_risks.script
    monkeypatch.setattr(quartile_risks, "script", broken)
    table = quartile_risks.FIGURE.numbers("published", QUICK, {})
    assert any("errors from the exact ones" in words for words in fallen("11", "published", table))


def test_the_same_effort_gives_the_same_numbers():
    again = largest_error_by_count.FIGURE.numbers("published", QUICK, {})
    assert again.equals(numbers("13", "published"))
    other = largest_error_by_count.FIGURE.numbers("published", Effort(share=0.1, seed=1), {})
    assert not other.equals(again)


def guess(values, probs, rng):
    """A mechanism that reads nothing."""
    return np.sort(rng.random(len(probs)))


def test_a_mechanism_of_ones_own_joins_the_curves():
    own = {"guess": Own(function=guess, probs=[0.5])}
    for module in (quartile_risks, independent_run_time):
        table = module.FIGURE.numbers("published", QUICK, own)
        assert "guess" in set(table["curve" if "curve" in table.columns else "method"])
        assert all(said.holds for said in module.FIGURE.check(table, "published"))
        assert "guess" in str(module.FIGURE.chart(table, "published").to_dict())


def test_a_mechanism_of_ones_own_can_win_the_map_and_changes_no_statement():
    table = numbers("R2", "corrected")
    best = table.filter(pl.col("method") == "joint").with_columns(
        pl.lit("mine").alias("method"), pl.col("mean") / 9
    )
    more = pl.concat([table, best])
    figure = regime_map.FIGURE
    assert figure.check(more, "corrected") == figure.check(table, "corrected")
    assert "mine" in str(figure.chart(more, "corrected").to_dict())
    assert "mine" not in str(figure.chart(table, "corrected").to_dict())


def test_statements_of_full_effort_hold_and_fail_on_places_that_are_named_so():
    table = numbers("R2", "corrected")
    many = pl.col("orders") == 99
    # Where the recursion tells something, as if at a tenth of the budget: then the statement must fail.
    renamed = table.filter(many).with_columns(pl.lit(0.1).alias("epsilon"))
    flat = renamed.filter(pl.col("method") == regimes.FLAT).select("data", pl.col("mean").alias("flat"))
    useless = renamed.join(flat, on="data").with_columns(pl.col("flat").alias("mean")).drop("flat")
    # Where the rule says a joint draw, with three quarters of the recursion's error, and with more.
    ruled = table.filter(many).with_columns(pl.lit(10_000).cast(table.schema["n"]).alias("n"))
    told = {}
    for name, more in {"tells": renamed, "useless": useless, "ruled": ruled}.items():
        said = regime_map.FIGURE.check(pl.concat([table, more.select(table.columns)]), "corrected")
        told[name] = {_kind(one.words): one.holds for one in said}
    nothing = _kind("99 quantiles of 1,000 records at ε = 0.1 tell nothing by any of the five")
    assert (told["tells"][nothing], told["useless"][nothing]) == (False, True)
    assert told["ruled"][_kind("for 99 quantiles a joint draw has")] is False
    assert nothing not in told["ruled"]


def raw_and_counted(n, count, epsilon):
    """The mean rank error on lognormal data by counting records, and as the map has it."""
    place = regimes.Place("lognormal", n, count, epsilon, 2, 20)
    source = regimes.SOURCES[place.data]
    trial = AskedSubject(place.query("recursive")).trial(source.draw(2, n, 5), source.bounds)
    answers = trial.draw(20, Randomness.of(3))
    targets = np.array([float(order) * n for order in place.orders])
    raw = [
        np.abs(np.searchsorted(np.sort(row), given) - targets).mean()
        for row, given in zip(trial.rows, answers, strict=True)
    ]
    return float(np.mean(raw)), float(trial.ranks_off(answers).mean())


def test_the_map_counts_records_also_on_a_coarse_grid(monkeypatch):
    raw, counted = raw_and_counted(1000, 1, 0.1)
    assert abs(raw - counted) < 0.5
    assert 10 < raw < 30  # 1/sinh(0.05) = 20
    monkeypatch.setattr(regimes, "POINTS", 2**12)
    raw, counted = raw_and_counted(1000, 1, 0.1)
    assert abs(raw - counted) < 0.5
    assert raw > 30


def test_recorded_values_have_the_errors_of_as_many_draws():
    row = {"mean": 1.0, "se": 0.01, "noise_se": 0.01, "sets": 100, "repeats": 100}
    # A hundred draws in place of ten thousand: an error ten times as large.
    assert recorded("", row, 1.39, 0.0, 10, 10).holds
    assert not recorded("", row, 1.42, 0.0, 10, 10).holds
    assert not recorded("", row, 1.39, 0.0, 100, 100).holds


def test_the_map_covers_what_it_names_and_leaves_long_draws_to_full_effort():
    full = list(regimes.places("corrected", Effort()))
    quick = list(regimes.places("corrected", QUICK))
    assert len(full) == len(regimes.SOURCES) * len(regimes.SIZES) * len(regimes.COUNTS) * len(
        regimes.EPSILONS
    )
    assert {(one.data, one.n, one.count) for one in quick} < {(one.data, one.n, one.count) for one in full}
    assert {one.data for one in quick} == set(regimes.SOURCES)


def test_times_are_positive_and_as_many_for_each_method():
    table = numbers("14", "corrected")
    assert set(table["method"]) == set(run_times.NAMES)
    assert (table["microseconds"] > 0).all()
    assert table.group_by("method").len()["len"].to_list() == [run_times.RUNS] * 4


def test_orders_split_evenly():
    assert [float(order) for order in orders(3)] == [0.25, 0.5, 0.75]
