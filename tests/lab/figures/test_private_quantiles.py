"""Figures 4 to 10: one private quantile."""

import numpy as np
import polars as pl
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.lab import drawn_medians as medians
from sfumato.lab import first_quartiles as quartiles
from sfumato.lab import uniform_medians as uniform
from sfumato.lab.figure import MODES, QUICK, Effort
from sfumato.lab.figures import (
    chosen_budget,
    medians_at_a_large_budget,
    medians_at_a_small_budget,
    medians_without_a_budget,
    quartile_risk_by_budget,
    quartile_risk_by_range,
    quartile_risk_by_size,
)
from sfumato.lab.judging import same_average
from sfumato.lab.own import Own
from sfumato.lab.published_quantile import cells, sample_quantile
from sfumato.lab.trials import Expected

# The gallery draws these figures and checks their statements too.
pytestmark = pytest.mark.slow

MODULES = {
    "4": medians_at_a_small_budget,
    "5": medians_at_a_large_budget,
    "6": medians_without_a_budget,
    "7": chosen_budget,
    "8": quartile_risk_by_size,
    "9": quartile_risk_by_range,
    "10": quartile_risk_by_budget,
}
CASES = [(number, mode) for number in MODULES for mode in MODES]


@pytest.fixture(scope="module")
def frames():
    return {(number, mode): MODULES[number].FIGURE.numbers(mode, QUICK, {}) for number, mode in CASES}


def broken(number, mode, frame):
    return {place for place, one in enumerate(MODULES[number].FIGURE.check(frame, mode)) if not one.holds}


@pytest.mark.parametrize(("number", "mode"), CASES)
def test_every_statement_holds_and_has_numbers_in_it(frames, number, mode):
    statements = MODULES[number].FIGURE.check(frames[number, mode], mode)
    assert [one.words for one in statements if not one.holds] == []
    assert all(any(letter.isdigit() for letter in one.words) for one in statements)


@pytest.mark.parametrize(("number", "mode"), CASES)
def test_the_picture_shows_the_law_and_the_draws(frames, number, mode):
    told = str(MODULES[number].FIGURE.chart(frames[number, mode], mode).to_dict())
    words = ["private median", "law of a draw", "sample median"] if number in "4567" else ["QExp", "Laplace"]
    assert all(word in told for word in (*words, "ε"))
    assert "simulated" in told or number in "456"
    assert "nan" not in told.lower().split("'")


@pytest.mark.parametrize("number", ["4", "7", "10"])
def test_the_same_effort_gives_the_same_numbers(frames, number):
    for mode in MODES:
        again = MODULES[number].FIGURE.numbers(mode, QUICK, {})
        assert again.equals(frames[number, mode])


def test_another_seed_gives_other_numbers_of_the_same_kind(frames):
    other = MODULES["4"].FIGURE.numbers("published", Effort(share=0.1, seed=5), {})
    assert not other.equals(frames["4", "published"])
    assert other.columns == frames["4", "published"].columns


def scaled(column, factor, **where):
    """A frame with a column multiplied where other columns have certain values."""

    def mutant(frame):
        chosen = pl.lit(True)
        for name, value in where.items():
            chosen &= pl.col(name).is_in(value) if isinstance(value, list) else pl.col(name) == value
        changed = pl.when(chosen).then(pl.col(column) * factor).otherwise(pl.col(column))
        return frame.with_columns(changed.alias(column))

    return mutant


def put(column, value, **where):
    """A frame with a number in place of others."""
    to_nothing, unit = scaled(column, 0, **where), scaled(column, 1, **where)

    def mutant(frame):
        changed = to_nothing(frame)[column] != unit(frame)[column]
        values = pl.when(changed).then(pl.lit(value)).otherwise(pl.col(column))
        return frame.with_columns(values.alias(column))

    return mutant


def median_mutants(number):
    names = {
        "an average twice too large": scaled("exact", 2, part=medians.ROOT),
        "draws spread twice as wide": scaled("mean", 2, part=medians.ROOT, name=uniform.THESE),
        "draws that do not fit": scaled("mean", 1e-9, part=medians.LEVEL),
        "another law than the product's": scaled("exact", 1.02, name=uniform.MODEL),
    }
    if number == "5":
        small = f"{uniform.AVERAGE}, ε = 0.05"
        names["a small budget that is nearly as good"] = scaled("exact", 0.5, name=small)
    if number == "6":
        names["a peak"] = scaled("exact", 10, part="largest log ratio of densities")
        names["a shorter range"] = scaled("exact", 0.99, part="root mean squared error about the middle")
    return names


def chosen_mutants(mode):
    values, ranks = chosen_budget.VALUES, chosen_budget.RANKS
    return {
        "draws spread wider": scaled("mean", 2, part=medians.ROOT),
        "draws that do not fit": scaled("mean", 1e-9, part=medians.LEVEL),
        "misses twice as often": scaled("mean", 2, name=values),
        "ranks missed three times as often": scaled("mean", 3, name=ranks),
        "a tail on these data": lambda frame: frame.with_columns(
            pl.when(pl.col("part") == chosen_budget.BEYOND)
            .then(0.02)
            .otherwise(pl.col("exact"))
            .alias("exact")
        ),
        "no misses with few records": scaled("exact", 1e-3, name=values),
        "an ε that is a little off": scaled(
            "exact", 1.01, part=chosen_budget.BUDGET, name=chosen_budget.THESE
        ),
        "an ε without the data": lambda frame: frame.with_columns(
            pl.when(pl.col("name") == "same data, zeros raised to 1")
            .then(0.98592)
            .otherwise(pl.col("exact"))
            .alias("exact")
        ),
        "ranks missed": scaled("end", 100, name=ranks),
        "values missed": scaled("end", 1000, name=chosen_budget.BEYOND),
    }


def size_mutants(mode):
    falling = pl.when(pl.col("curve") == "Laplace").then(pl.col("exact") / pl.col("n"))
    steeper = pl.when(pl.col("curve") != "Laplace").then(pl.col("exact") / pl.col("n"))
    return {
        "Laplace noise that falls with n": lambda frame: frame.with_columns(
            falling.otherwise(pl.col("exact")).alias("exact")
        ),
        "a curve that falls like n^-3": lambda frame: frame.with_columns(
            steeper.otherwise(pl.col("exact")).alias("exact")
        ),
        "another exact risk at n = 10": scaled("exact", 0.3, n=10),
        "another exact risk": scaled("exact", 3),
        "one that rises at the end": scaled("exact", 9, n=1000),
        "draws at another rate": scaled("mean", 1.3),
    }


def range_mutants(mode):
    root = pl.when(pl.col("curve") == "QExp").then(pl.col("exact") / pl.col("width").sqrt())
    return {
        "noise for a range that is not the whole": scaled("exact", 0.99, curve="Laplace"),
        "draws at another rate": scaled("mean", 1.3),
        "order 90": scaled("exact", 40, curve="QExp"),
        "twice the risk": scaled("exact", 2, curve=["QExp", quartiles.INTEGERS]),
        "a curve of another slope": lambda frame: frame.with_columns(
            root.otherwise(pl.col("exact")).alias("exact")
        ),
        "no floor": scaled("exact", 0.8, curve=quartiles.INTEGERS),
        "a floor for whole numbers": scaled("exact", 20, curve=quartiles.INTEGERS, width=10),
    }


def budget_mutants(mode):
    return {
        "noise that is a little less": scaled("exact", 0.999, curve="Laplace"),
        "noise that is far less": scaled("exact", 0.3, curve="Laplace"),
        "draws at another rate": scaled("mean", 1.3),
        "twice the risk": scaled("exact", 2, curve="QExp"),
        "half the risk": scaled("exact", 0.4, curve="QExp", epsilon=0.01),
    }


def mutants(number, mode):
    if number in "456":
        return median_mutants(number)
    by_number = {"7": chosen_mutants, "8": size_mutants, "9": range_mutants, "10": budget_mutants}
    return by_number[number](mode)


@pytest.mark.parametrize(("number", "mode"), CASES)
def test_every_statement_fails_on_some_numbers_that_are_wrong(frames, number, mode):
    frame = frames[number, mode]
    statements = MODULES[number].FIGURE.check(frame, mode)
    noticed = {name: broken(number, mode, mutant(frame)) for name, mutant in mutants(number, mode).items()}
    never = set(range(len(statements))) - set().union(*noticed.values())
    assert [statements[place].words for place in sorted(never)] == []


def test_the_corrected_median_with_published_weights_is_noticed(monkeypatch):
    monkeypatch.setattr(uniform.Budget, "rate", lambda self, mode: self.epsilon)
    for number in "45":
        frame = MODULES[number].FIGURE.numbers("corrected", QUICK, {})
        assert broken(number, "corrected", frame)


def test_draws_at_another_rate_than_the_law_are_noticed(monkeypatch):
    right = medians.by_density

    def mutant(values, epsilon, bounds, size, rng):
        found, wrong = (
            right(values, epsilon, bounds, size, rng),
            right(values, 2 * epsilon, bounds, size, rng),
        )
        return medians.Draws(found.law, found.step, wrong.draws, found.center)

    monkeypatch.setattr(medians, "by_density", mutant)
    frame = MODULES["4"].FIGURE.numbers("published", QUICK, {})
    words = [one.words for one in MODULES["4"].FIGURE.check(frame, "published") if not one.holds]
    assert any("by simulation" in one for one in words)
    assert any("Kolmogorov-Smirnov" in one for one in words)


def test_exact_risks_of_other_weights_than_the_draws_are_noticed(monkeypatch):
    def mutant(risk, rows, truth, epsilon, bounds):
        law = cells(rows, 0.25, epsilon / 2, bounds)
        return Expected(law.squared(truth), law.fourth(truth) - law.squared(truth) ** 2)

    monkeypatch.setattr(quartiles, "density_risk", mutant)
    frame = MODULES["10"].FIGURE.numbers("published", QUICK, {})
    words = [one.words for one in MODULES["10"].FIGURE.check(frame, "published") if not one.holds]
    assert any("simulated numbers" in one for one in words)
    assert any("the reference is" in one for one in words)


def test_mechanisms_of_a_reader_get_curves_of_their_own():
    def guess(rows, size, epsilon, bounds, rng):
        return rng.uniform(*bounds, (len(rows), size))

    own = {
        "a guess": Own(function=guess, probs=(0.25,), batched=True),
        "a coarse grid": sf.Quantiles(probs=[0.25], budget=sf.PureDP(1), method="single", step=20, verify=0),
    }
    few = Effort(share=0.01)
    frame = quartiles.risks(
        "corrected", few, own, width=200, sizes=[10, 100], epsilons=[0.2], sets=20, repeats=20
    )
    assert frame["curve"].unique(maintain_order=True).to_list() == ["QExp", "Laplace", *own]
    assert quartiles.at(frame, "a guess", n=10)["exact"] is None
    assert quartiles.at(frame, "a guess", n=10)["mean"] > quartiles.at(frame, "QExp", n=100)["mean"]
    for module in (quartile_risk_by_size, quartile_risk_by_range, quartile_risk_by_budget):
        told = str(module.chart(frame, "corrected").to_dict())
        assert all(name in told for name in own)


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(InvalidParameter, match="other names than"):
        quartiles.risks(
            "published", QUICK, {"QExp": None}, width=2, sizes=[10], epsilons=[1], sets=2, repeats=2
        )


def test_a_law_on_points_has_the_moments_and_bins_of_its_points():
    values = np.random.default_rng(8).integers(0, 200, 101).astype(float)
    drawn = medians.by_query(values, 0.5, (0, 200), 50, seed=1, step=1)
    chances, _ = chosen_budget.point_laws(values[None], 0.25)
    points = np.arange(201)
    assert drawn.center == sample_quantile(values[None], 0.5)[0]
    assert drawn.squared(90.0) == pytest.approx(float(chances[0] @ (points - 90.0) ** 2), rel=1e-9)
    bins = medians.histogram_rows(drawn, (79.5, 119.5), 10)[:10]
    wanted = [chances[0][80 + 4 * place : 84 + 4 * place].sum() for place in range(10)]
    assert [row["exact"] for row in bins] == pytest.approx(wanted, rel=1e-9)
    far = chances[0][np.abs(points - drawn.center) > 20].sum()
    assert chosen_budget.beyond(drawn, 20) == pytest.approx(far, rel=1e-9)
    assert set(drawn.draws) <= set(points.tolist())


def test_an_average_is_compared_with_the_errors_of_both():
    near = same_average("x", 1.0, 0.1, sets=100, printed=1.45, digit=0.01, others=400)
    assert near.holds  # 4 errors are 0.447, and half a digit more
    assert not same_average("x", 1.0, 0.1, sets=100, printed=1.46, digit=0.01, others=400).holds
    assert same_average("x", 1.0, 0.1, sets=100, printed=1.56, digit=0.01, others=100).holds
