"""Weights on public rows: what they reproduce, what they cost, what is refused and when."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.public_data.shifts import SHIFTS

from sfumato.data.dataset import Dataset
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, SeededBits
from sfumato.privacy import ZCDP, Amount, ApproxDP, PureDP
from sfumato.public_data import Features, Logistic, NotCovered, weights
from sfumato.public_data.cover import gap, reach
from sfumato.public_data.tilting import tilt
from sfumato.public_data.weighting import weighting
from sfumato.session import Session

MEAN = SHIFTS["mean"]
ONE = PureDP(1)
BUDGETS = [PureDP(0.5), ApproxDP(0.5, 1e-6), ZCDP(0.05)]


def tables(seed, rows=2000, public_rows=2000, shift=MEAN):
    generator = np.random.default_rng(seed)
    return shift.private(generator, rows), shift.public(generator, public_rows)


def found(
    seed=1, *, budget=ONE, neighbours="substitution", features=MEAN.features, method="tilting", **sizes
):
    private, public = tables(seed, **sizes)
    return weights(
        private,
        public,
        features=features,
        budget=budget,
        neighbours=neighbours,
        method=method,
        bits=SeededBits(seed),
    )


@pytest.mark.parametrize("neighbours", ["substitution", "add-remove"])
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_weights_reproduce_the_released_means(budget, neighbours):
    got = found(budget=budget, neighbours=neighbours)
    assert got.weights.mean() == pytest.approx(1, abs=1e-12)
    assert got.weights.min() > 0
    assert got.weights @ got._features / len(got.weights) == pytest.approx(got.released, abs=1e-5)
    assert got.cost == budget
    assert got.rows == 2000 if neighbours == "substitution" else 1500 < got.rows < 2500
    assert not got.private
    assert "not private" in str(got)


@pytest.mark.parametrize("method", ["tilting", "logistic"])
def test_weights_bring_means_near_the_private_ones(method):
    private, public = tables(4, rows=40_000, public_rows=3000)
    got = weights(
        private,
        public,
        features=MEAN.features,
        epsilon=8,
        neighbours="substitution",
        method=method,
        bits=SeededBits(4),
    )
    for name in ("x1", "x2"):
        before = abs(public[name].mean() - private[name].mean())
        assert abs(got.mean(name).value - private[name].mean()) < 0.25 * before


def test_the_toy_has_a_tenth_of_the_error_without_weights():
    errors, unweighted = [], []
    for run in range(20):
        private, public = tables(run, rows=4000, public_rows=4000)
        got = weights(
            private,
            public,
            features=MEAN.features,
            epsilon=0.5,
            neighbours="substitution",
            bits=SeededBits(run),
        )
        share = public["x1"] > 1
        errors.append(got.mean(share).value - MEAN.truths()["share"])
        unweighted.append(share.mean() - MEAN.truths()["share"])
    assert np.sqrt(np.mean(np.square(errors))) <= 0.1 * np.sqrt(np.mean(np.square(unweighted)))


def test_equal_populations_get_nearly_equal_weights():
    generator = np.random.default_rng(2)
    private, public = MEAN.public(generator, 30_000), MEAN.public(generator, 1000)
    got = weights(
        private, public, features=MEAN.features, epsilon=5, neighbours="substitution", bits=SeededBits(2)
    )
    assert got.effective_size > 970
    # Beside the means of all public rows, only their own sampling error is taken away.
    assert got.mean("x1").value == pytest.approx(private["x1"].mean(), abs=0.01)


def test_the_order_of_private_rows_changes_nothing():
    private, public = tables(3)
    turned = {name: values[::-1] for name, values in private.items()}
    results = [
        weights(each, public, features=MEAN.features, epsilon=1, neighbours="add-remove", bits=SeededBits(5))
        for each in (private, turned)
    ]
    assert results[0].weights.tolist() == results[1].weights.tolist()


def test_frames_of_every_library_give_the_same():
    private, public = tables(3, rows=200, public_rows=200)
    results = [
        weights(
            make(private),
            make(public),
            features=MEAN.features,
            epsilon=5,
            neighbours="substitution",
            bits=SeededBits(5),
        ).weights.tolist()
        for make in (dict, pd.DataFrame, pl.DataFrame)
    ]
    assert results[0] == results[1] == results[2]


def test_weights_cannot_be_written_and_their_copies_can():
    got = found()
    with pytest.raises(ValueError, match="read-only"):
        got.weights[0] = 3.0
    copy = got.sample_weight()
    copy[0] = 3.0
    assert got.weights[0] != 3.0


def test_scikit_learn_takes_the_weights():
    linear = pytest.importorskip("sklearn.linear_model")
    private, public = tables(6, rows=20_000)
    got = weights(
        private, public, features=MEAN.features, epsilon=2, neighbours="substitution", bits=SeededBits(6)
    )
    # A curve seen through a straight line: its slope depends on where the rows lie.
    line = linear.LinearRegression().fit(
        public["x1"][:, None], public["x1"] ** 2, sample_weight=got.sample_weight()
    )
    own = linear.LinearRegression().fit(private["x1"][:, None], private["x1"] ** 2)
    assert line.coef_[0] == pytest.approx(own.coef_[0], abs=0.2)
    unweighted = linear.LinearRegression().fit(public["x1"][:, None], public["x1"] ** 2)
    assert abs(unweighted.coef_[0] - own.coef_[0]) > 1


@pytest.mark.parametrize("size", [1e-120, 1e60, 1e145])
def test_errors_grow_with_the_values_of_any_size(size):
    got, public = found(), tables(1)[1]
    plain, scaled = got.mean(public["x1"]), got.mean(public["x1"] * size)
    assert np.array(scaled.interval()) / size == pytest.approx(plain.interval(), rel=1e-9)
    assert np.array(scaled.unexplained) / size == pytest.approx(plain.unexplained, rel=1e-9)
    assert scaled.explained == pytest.approx(plain.explained, rel=1e-9)


def test_a_quantile_that_may_lie_beyond_all_public_rows_has_an_open_end():
    got = found(rows=500, public_rows=300)
    assert got.quantile("x1", 0.99).interval()[1] == np.inf
    assert got.quantile("x1", 0.001).interval()[0] == -np.inf
    low, high = got.quantile("x1", 0.5).interval()
    assert -np.inf < low < high < np.inf


def test_a_category_that_is_rare_among_public_rows_can_be_a_feature():
    public = {"job": ["office"] * 20 + ["other"] * 980}
    private = {"job": ["office"] * 1000 + ["other"] * 9000}
    features = Features(categories={"job": ("office",)})
    got = weights(private, public, features=features, epsilon=5, neighbours="add-remove", bits=SeededBits(1))
    assert got.mean(np.array(public["job"]) == "office").value == pytest.approx(0.1, abs=0.01)


def test_every_kind_of_estimate_is_near_its_private_number():
    private, public = tables(7, rows=20_000, public_rows=8000)
    got = weights(
        private, public, features=MEAN.features, epsilon=2, neighbours="substitution", bits=SeededBits(7)
    )
    assert got.mean("x1").value == pytest.approx(private["x1"].mean(), abs=0.02)
    assert got.variance("x1").value == pytest.approx(private["x1"].var(), abs=0.12)
    assert got.covariance("x1", "x2").value == pytest.approx(0.0, abs=0.1)
    low, median, high = got.quantiles("x1", [0.25, 0.5, 0.75])
    for estimate, share in ((low, 0.25), (median, 0.5), (high, 0.75)):
        below, above = estimate.interval()
        assert below < estimate.value < above
        assert below < np.quantile(private["x1"], share) < above
    assert got.quantile("x1", 0.5).value == median.value


def test_the_share_of_the_weight_on_shortened_rows_is_told():
    private, public = tables(1)
    shares = []
    for radius in (1, 4, 50):
        features = Features(numbers=["x1", "x2", "x3"], radius=radius)
        got = weights(
            private, public, features=features, epsilon=50, neighbours="substitution", bits=SeededBits(1)
        )
        shares.append(got.shortened)
    assert shares[0] > 0.9
    assert shares[0] > shares[1] > shares[2] == 0


def test_the_parts_of_the_error_say_where_it_comes_from():
    rich, poor = found(budget=PureDP(50)).mean("x1"), found(budget=PureDP(0.1)).mean("x1")
    assert poor.noise > 100 * rich.noise
    assert rich.sampling > rich.noise
    # What is linear in the features is told by their means alone; a share is not.
    assert max(map(abs, rich.unexplained)) < 0.7
    share = found().mean(tables(1)[1]["x1"] > 1)
    assert share.unexplained[0] < -0.2
    assert share.unexplained[1] > 0.2
    assert share.interval(target="sample") != share.interval(target="population")
    assert share.interval(0.99)[0] < share.interval(0.9)[0]
    assert "interval" in str(share)


@pytest.mark.parametrize("method", ["tilting", "logistic"])
def test_nulls_follow_the_declared_rule(method):
    private, public = tables(8, rows=5000)
    for table in (private, public):
        table["x1"][::5] = np.nan
    for nulls in ("center", "indicator"):
        features = Features(numbers=["x1", "x2"], nulls=nulls)
        got = weights(
            private,
            public,
            features=features,
            epsilon=5,
            neighbours="substitution",
            method=method,
            bits=SeededBits(8),
        )
        assert len(got.labels) == (2 if nulls == "center" else 4) + (method == "logistic")
        share = got.mean(np.isnan(public["x1"])).value
        assert share == pytest.approx(0.2, abs=0.05)


# What is refused after the charge, by released numbers alone.


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_private_rows_beyond_all_public_ones_are_refused_after_the_charge(budget):
    private = {"x": np.full(5000, 9.0)}
    public = {"x": np.linspace(-1, 1, 400)}
    data = Dataset(private, unit="row", neighbours="substitution")
    session = Session(data, budget=budget, bits=SeededBits(1))
    with pytest.raises(NotCovered, match="public rows do not cover the private ones") as caught:
        session.weights(public, features=["x"], budget=budget)
    assert caught.value.released.shape == (1,)
    assert session.spent == Amount.of(budget)


@pytest.mark.parametrize("budget", [PureDP(5), ZCDP(2)], ids=repr)
def test_slopes_that_only_uncovered_rows_explain_are_refused(budget):
    private = {"x": np.full(20_000, 9.0)}
    public = {"x": np.linspace(-1, 1, 400)}

    def asked(table):
        return weights(
            table,
            public,
            features=["x"],
            budget=budget,
            neighbours="substitution",
            method=Logistic(penalty=0.05),
            bits=SeededBits(1),
        )

    with pytest.raises(NotCovered, match="beyond all public rows") as caught:
        asked(private)
    assert caught.value.released.shape == (2,)
    # Rows at the very edge of the public ones are covered.
    assert asked({"x": np.full(20_000, 1.0)}).mean("x").value > 0.1


def test_few_effective_rows_warn_and_far_too_few_are_refused():
    public = {"x": np.linspace(-1, 1, 1000)}
    features = Features(numbers={"x": (-1, 1)}, radius=1)

    def asked(place):
        private = {"x": np.full(100_000, place)}
        return weights(
            private, public, features=features, epsilon=5, neighbours="substitution", bits=SeededBits(2)
        )

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert asked(0.5).effective_size > 50
    with pytest.warns(UserWarning, match="effective rows of 1000"):
        few = asked(0.97)
    assert any("effective rows" in note for note in few.notes)
    with pytest.raises(NotCovered, match=r"at least 11\.0 are needed"):
        asked(0.998)


def test_a_refusal_follows_from_what_was_released():
    private, public = tables(9)
    asked = weighting(
        Dataset(private, unit="row", neighbours="substitution"),
        public,
        features=MEAN.features,
        budget=PureDP(1),
    )
    far = tuple(int(asked.release.map.steps * 2000 * 0.99) for _ in range(3))
    with pytest.raises(NotCovered):
        asked.weights(far, True)  # no data at hand: the outcome alone decides
    assert asked.weights((0, 0, 0), True).effective_size > 1900


def test_a_private_number_of_rows_within_its_noise_is_refused():
    public = tables(1)[1]
    for rows in (0, 3):
        private = {name: values[:rows] for name, values in tables(1)[0].items()}
        with pytest.raises(NotCovered, match="private rows are too few for this budget"):
            weights(
                private,
                public,
                features=MEAN.features,
                epsilon=0.5,
                neighbours="add-remove",
                bits=SeededBits(2),
            )


@pytest.mark.parametrize("noise", [DiscreteLaplace(30), DiscreteGaussian(900)])
def test_covered_means_are_refused_as_rarely_as_said(noise):
    # The worst case: the true mean is a corner of the hull, and any noise may push it out.
    features = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    moves, corner = np.eye(2) / 1000, np.array([1.0, 0.0])
    bits = SeededBits(11)
    noises = np.asarray(noise.sample(bits, 800)).reshape(400, 2)
    refused = 0
    for pushed in noises:
        means = corner + moves @ pushed
        direction = tilt(features, means, 1e-6).slopes
        unit = direction / np.linalg.norm(direction)
        refused += gap(features, means, unit) > reach(noise, moves, unit)
    assert refused <= 3  # 0.4 are expected at most
    assert gap(features, np.array([2.0, 0.0]), np.array([1.0, 0.0])) == 1.0


# Tilting.


@given(
    arrays(np.float64, (12, 2), elements=st.floats(-0.7, 0.7)),
    arrays(np.float64, 2, elements=st.floats(-2, 2)),
)
def test_tilting_settles_or_says_so_on_any_released_means(features, means):
    result = tilt(features, means, 1e-6)
    assert np.isfinite(result.weights).all()
    assert result.weights.mean() == pytest.approx(1, abs=1e-9)
    assert np.isfinite(result.slopes).all()
    reached = result.weights @ features / 12
    if result.converged:
        assert means - reached == pytest.approx(1e-6 * result.slopes, abs=1e-7)
    assert result.slopes.tolist() == tilt(features, means, 1e-6).slopes.tolist()


def test_tilting_finds_the_minimum_that_another_search_finds():
    optimize = pytest.importorskip("scipy.optimize")
    generator = np.random.default_rng(1)
    features = generator.uniform(-0.5, 0.5, (200, 3))
    means = np.array([0.1, -0.2, 0.15])

    def value(slopes):
        return np.log(np.mean(np.exp(features @ slopes))) - slopes @ means + 5e-4 * slopes @ slopes

    other = optimize.minimize(value, np.zeros(3), method="BFGS", options={"gtol": 1e-8}).x
    result = tilt(features, means, 1e-3)
    assert result.converged
    assert result.slopes == pytest.approx(other, abs=1e-4)
