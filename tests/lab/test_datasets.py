"""Every source of data keeps what it states: population, bounds, seeds, and words for what is wrong."""

import math
import pickle
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import InvalidParameter, MissingExtra
from sfumato.lab import datasets
from sfumato.lab.populations import Atoms, Clusters, Normal, Uniform

ROOT = Path(__file__).resolve().parents[2]
ORDERS = (0.05, 0.25, 0.5, 0.75, 0.95)
GENERATORS = [
    datasets.uniform(),
    datasets.uniform(-50, 200),
    datasets.normal(500, 125, bounds=(0, 1000)),
    datasets.beta(),
    datasets.beta(2, 5, low=10, high=20),
    datasets.bernoulli(0.3),
    datasets.integers(0, 199),
    datasets.integers(-3, 2),
    datasets.lognormal(10, 0.5, bounds=(0, 200_000)),
    datasets.poisson(3.5, bounds=(0, 20)),
    datasets.clusters([20, 50, 90], 0.5, bounds=(0, 100)),
    datasets.clusters([0, 1], [1, 0.25], bounds=(-5, 5), shares=[0.75, 0.25]),
    datasets.atoms([7, 0, 1], [0.2, 0.5, 0.3]),
    datasets.fixed([3, 1, 2, 2, 8], bounds=(0, 10)),
]


def named(source):
    return source.name


def misfits(source, *, sets=40, n=2500, seed=11):
    """What of mean, variance and quantiles is more than 4 standard errors from what the source states."""
    values = source.draw(sets, n, seed).ravel()
    found = []
    for what, sample, stated in [
        ("mean", values, source.mean),
        ("variance", (values - source.mean) ** 2, source.variance),
    ]:
        error = np.std(sample) / math.sqrt(sample.size)
        if abs(np.mean(sample) - stated) > 4 * error:
            found.append(what)
    for order in ORDERS:
        place = source.quantile(order)
        error = math.sqrt(order * (1 - order) / values.size)
        # Where values repeat, the share up to the quantile may be larger and the share below it smaller.
        if np.mean(values <= place) < order - 4 * error or np.mean(values < place) > order + 4 * error:
            found.append(f"quantile {order}")
    return found


@pytest.mark.parametrize("source", GENERATORS, ids=named)
def test_draws_agree_with_the_stated_population(source):
    assert misfits(source) == []


@pytest.mark.parametrize(
    ("law", "caught"),
    [
        (Normal(500, 128), {"variance", "quantile 0.05", "quantile 0.95"}),
        (Normal(502, 125), {"mean", "quantile 0.5"}),
        (Uniform(500 - 125 * math.sqrt(3), 500 + 125 * math.sqrt(3)), {"quantile 0.05", "quantile 0.25"}),
    ],
    ids=["too wide", "shifted", "another shape"],
)
def test_a_wrong_sampler_is_caught(law, caught):
    class Told(Normal):
        def sample(self, rng, shape):
            return law.sample(rng, shape)

    source = datasets.normal(500, 125, bounds=(0, 1000))
    assert caught <= set(misfits(replace(source, population=Told(500, 125))))


def test_wrong_shares_are_caught():
    class Swapped(Clusters):
        def sample(self, rng, shape):
            return Clusters(self.centers, self.sds, self.shares[::-1]).sample(rng, shape)

    source = datasets.clusters([0, 10], 1, bounds=(-5, 15), shares=[0.6, 0.4])
    law = source.population
    assert "mean" in misfits(replace(source, population=Swapped(law.centers, law.sds, law.shares)))


@pytest.mark.parametrize(
    ("source", "law"),
    [
        (datasets.uniform(-50, 200), stats.uniform(-50, 250)),
        (datasets.normal(500, 125, bounds=(0, 1000)), stats.norm(500, 125)),
        (datasets.beta(2, 5, low=10, high=20), stats.beta(2, 5, 10, 10)),
        (datasets.bernoulli(0.3), stats.bernoulli(0.3)),
        (datasets.integers(-3, 2), stats.randint(-3, 3)),
        (datasets.lognormal(10, 0.5, bounds=(0, 200_000)), stats.lognorm(0.5, scale=math.exp(10))),
        (datasets.poisson(3.5, bounds=(0, 20)), stats.poisson(3.5)),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_the_stated_population_is_that_of_an_independent_implementation(source, law):
    assert source.mean == pytest.approx(law.mean(), rel=1e-12)
    assert source.variance == pytest.approx(law.var(), rel=1e-12)
    for order in ORDERS:
        assert source.quantile(order) == pytest.approx(law.ppf(order), rel=1e-9)


def test_a_quantile_is_the_smallest_value_that_reaches_the_order():
    dice = datasets.integers(1, 6)
    tens = datasets.atoms(list(range(1, 11)), [0.1] * 10)
    column = datasets.fixed(list(range(1, 101)), bounds=(0, 200))
    for k in range(1, 6):
        assert dice.quantile(k / 6) == k
        assert dice.quantile(k / 6 + 1e-6) == k + 1
    for k in range(1, 10):
        assert tens.quantile(k / 10) == k  # sums of 0.1 in float64 miss some of these
    for k in range(1, 100):
        assert column.quantile(k / 100) == k  # 100 times 0.07 is above 7 in float64


def test_the_quantile_of_clusters_solves_its_equation():
    source = datasets.clusters([0, 1], [1, 0.25], bounds=(-5, 5), shares=[0.75, 0.25])
    for order in ORDERS:
        place = source.quantile(order)
        reached = 0.75 * stats.norm.cdf(place) + 0.25 * stats.norm.cdf(place, 1, 0.25)
        assert reached == pytest.approx(order, abs=1e-10)
    assert datasets.clusters([5], 1, bounds=(0, 9)).quantile(0.5) == 5


@pytest.mark.parametrize("source", GENERATORS, ids=named)
def test_the_seed_decides_the_draws_and_more_sets_continue_them(source):
    first = source.draw(sets=3, n=50, seed=5)
    assert first.shape == (3, 50)
    assert first.dtype == np.float64
    np.testing.assert_array_equal(first, source.draw(sets=3, n=50, seed=5))
    np.testing.assert_array_equal(first, source.draw(sets=7, n=50, seed=5)[:3])
    for other in (source.draw(sets=3, n=50, seed=6), source.draw(sets=3, n=51, seed=5)[:, :50]):
        assert not np.array_equal(first, other)


@pytest.mark.parametrize("source", GENERATORS, ids=named)
def test_sets_are_independent_of_each_other(source):
    rows = source.draw(sets=12, n=4000, seed=2)
    between = np.corrcoef(rows)[np.triu_indices(12, 1)]
    assert np.abs(between).max() < 4.5 / math.sqrt(4000)
    centred = rows.ravel() - rows.mean()
    along = np.mean(centred[1:] * centred[:-1]) / np.mean(centred**2)
    assert abs(along) < 4 / math.sqrt(centred.size)


def test_other_sources_have_other_draws_under_the_same_seed():
    narrow = datasets.uniform(0, 1).draw(n=100, seed=3)
    wide = datasets.uniform(0, 2).draw(n=100, seed=3)
    assert abs(np.corrcoef(narrow[0], wide[0])[0, 1]) < 0.4


def test_the_content_tells_sources_apart_and_survives_a_pickle():
    assert datasets.uniform(0, 200).content == b"Uniform Uniform(low=0.0, high=200.0) within (0.0, 200.0)"
    contents = [source.content for source in GENERATORS]
    assert len(set(contents)) == len(contents)
    for source in GENERATORS:
        copy = pickle.loads(pickle.dumps(source))
        assert copy == source
        assert copy.content == source.content
        np.testing.assert_array_equal(copy.draw(2, 9, 1), source.draw(2, 9, 1))
    one, other = (datasets.fixed([1.0, last], bounds=(0, 3)) for last in (2.0, math.nextafter(2, 3)))
    assert one.content != other.content


def test_values_keep_the_bounds_where_the_law_ends_and_pass_them_where_it_does_not():
    for source in GENERATORS:
        values = source.draw(sets=4, n=5000, seed=8)
        inside = bool(((source.bounds[0] <= values) & (values <= source.bounds[1])).all())
        assert inside or isinstance(source.population, Normal | Clusters), source.name
    beyond = datasets.normal(0, 1, bounds=(-1, 1)).draw(n=1000, seed=0)
    assert beyond.max() > 1
    assert beyond.min() < -1
    assert datasets.integers(0, 3).draw(n=1000, seed=0).max() == 3


def test_public_bounds_can_be_wider_than_the_law():
    assert datasets.uniform(0, 1, bounds=(-1, 2)).bounds == (-1, 2)
    assert datasets.atoms([0, 5], [0.5, 0.5], bounds=np.array([0, 9])).bounds == (0, 9)


def test_fixed_data_come_as_they_are_or_as_rows_with_replacement():
    source = datasets.fixed(np.array([4, 1, 9]), bounds=(0, 10), name="three", words="three numbers")
    assert (source.fixed, source.size, source.name, source.words) == (True, 3, "three", "three numbers")
    assert source.draw(sets=2).tolist() == [[4, 1, 9], [4, 1, 9]]
    again = source.draw(sets=20, n=30, seed=1)
    assert set(again.ravel()) == {1, 4, 9}
    assert source.draw()[0].flags.writeable
    assert datasets.uniform().size is None
    assert not datasets.uniform().fixed


def test_atoms_are_sorted_and_never_leave_their_values():
    source = datasets.atoms([7, 0, 1], [0.2, 0.5, 0.3])
    assert source.population == Atoms((0, 1, 7), (0.5, 0.3, 0.2))
    assert (source.bounds, source.mean) == ((0, 7), pytest.approx(1.7))
    assert set(source.draw(n=1000, seed=0)[0]) == {0, 1, 7}


WRONG = {
    "low must be below high, got low=1, high=1": lambda: datasets.uniform(1, 1),
    "low must be a number, got low='a'": lambda: datasets.uniform("a", 1),
    "high must be in [-1e15, 1e15]": lambda: datasets.uniform(0, 1e16),
    "lower must be below upper, got lower=5, upper=0": lambda: datasets.normal(0, 1, bounds=(5, 0)),
    "sd must be positive, got sd=0": lambda: datasets.normal(0, 0, bounds=(0, 1)),
    "mean must be finite, got mean=nan": lambda: datasets.normal(math.nan, 1, bounds=(0, 1)),
    "bounds must be a pair (lower, upper), got bounds=None": lambda: datasets.poisson(3, bounds=None),
    "a must be positive, got a=-2": lambda: datasets.beta(-2, 1),
    "share must be inside (0, 1), got share=1": lambda: datasets.bernoulli(1),
    "high must be a whole number, got high=2.5": lambda: datasets.integers(0, 2.5),
    "low must be below high, got low=3, high=2": lambda: datasets.integers(3, 2),
    "mu must be in [-300, 300] and sigma at most 10": lambda: datasets.lognormal(0, 11, bounds=(0, 1)),
    "mean must be at most 1e9": lambda: datasets.poisson(1e10, bounds=(0, 1)),
    "centers must be a sequence of numbers, got centers=[]": lambda: datasets.clusters([], 1, bounds=(0, 1)),
    "equally many, got 2 centers, 2 sd, 1 shares": lambda: datasets.clusters([0, 1], 1, (0, 1), shares=[1]),
    "probabilities must sum to 1, got a sum of 0.9": lambda: datasets.atoms([0, 1], [0.5, 0.4]),
    "probabilities must be positive": lambda: datasets.atoms([0, 1], [1, 0]),
    "values must be different, at least two": lambda: datasets.atoms([1, 1], [0.5, 0.5]),
    "got 3 values and 2 probabilities": lambda: datasets.atoms([0, 1, 2], [0.5, 0.5]),
    "n must be given to draw from uniform(0, 1)": lambda: datasets.uniform().draw(),
    "sets must be in [1, 1000000000], got sets=0": lambda: datasets.uniform().draw(sets=0, n=1),
    "n must be in [1, 500000000]": lambda: datasets.uniform().draw(sets=2, n=10**9),
    "seed must be in [0, 18446744073709551615], got seed=-1": lambda: datasets.uniform().draw(n=1, seed=-1),
    "order must be inside (0, 1), got order=1": lambda: datasets.uniform().quantile(1),
    "name must be one of 'doctor visits'": lambda: datasets.real("visits"),
}


@pytest.mark.parametrize("message", WRONG)
def test_a_wrong_parameter_is_named_with_its_rule(message):
    with pytest.raises(InvalidParameter, match=re.escape(message)):
        WRONG[message]()


@pytest.mark.parametrize("values", [[], [1.5, math.nan], [[1.5, 2.5]], ["secret"], [1.5, None]])
def test_unusable_values_are_refused_without_showing_any(values):
    with pytest.raises(InvalidParameter, match=r"^values must be a column") as told:
        datasets.fixed(values, bounds=(0, 1))
    assert "secret" not in str(told.value)
    assert "1.5" not in str(told.value)


@pytest.mark.parametrize("name", datasets.REAL)
def test_real_data_have_their_rows_and_keep_their_public_bounds(name):
    adapter, source = datasets.REAL[name], datasets.real(name)
    values = source.draw()[0]
    assert (values.size, source.size, source.bounds) == (adapter.rows, adapter.rows, adapter.bounds)
    assert adapter.bounds[0] <= values.min() <= values.max() <= adapter.bounds[1]
    assert source.fixed
    assert adapter.reference in (ROOT / "docs" / "references.bib").read_text("utf-8")
    for words in (adapter.words, adapter.unit, adapter.known):
        assert words == words.strip()
        assert words
    assert misfits(source) == []


def test_real_data_are_those_of_the_studies():
    visits = datasets.real("doctor visits").draw()[0]
    assert (int(visits.sum()), int((visits == 0).sum())) == (57752, 6308)
    # The facts below are those that descriptions of the studies state: 2,053 women report an affair.
    assert int((datasets.real("affairs").draw()[0] > 0).sum()) == 2053
    assert set(datasets.real("age of wives").draw()[0]) == {17.5, 22, 27, 32, 37, 42}
    assert set(datasets.real("income class").draw()[0]) == set(range(1, 25))
    assert datasets.real("body mass index").mean == pytest.approx(26.38, abs=0.005)


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [
        ("doctor visits", "statsmodels.datasets.randhie", "statsmodels"),
        ("blood pressure", "sklearn.datasets", "scikit-learn"),
    ],
)
def test_a_missing_package_is_named(monkeypatch, name, module, package):
    monkeypatch.setitem(sys.modules, module, None)
    told = rf'needs the package {package}: pip install "sfumato\[lab\]"'
    with pytest.raises(MissingExtra, match=told):
        datasets.real(name)


def test_the_page_lists_every_source_with_its_bounds():
    page = (ROOT / "docs" / "lab-data.md").read_text("utf-8")
    for adapter in datasets.REAL.values():
        low, high = (f"{end:,g}" for end in adapter.bounds)
        assert f"| `{adapter.name}` |" in page
        assert f"{low} to {high}" in page
        assert adapter.known in page
        assert f"[{adapter.reference}]" in page
    for name in datasets.__all__:
        assert name in page or name == "Adapter"
