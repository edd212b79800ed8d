"""Statistical audits: they refute what is broken, and what is right only as rarely as they say."""

import math
import sys
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from tests.mechanisms.test_above_threshold import halved_query_noise, log_law
from tests.quantile_methods.cases import ORDERS, Line, fine_query, law_of
from tests.quantile_methods.mutants import QUANTILE_MUTANTS, RECURSIVE

import sfumato as sf
from sfumato.audit import Estimate, epsilon_lower_bound, statistical
from sfumato.audit.statistical import clopper_pearson
from sfumato.errors import InvalidParameter
from sfumato.laws import Choice, DiscreteGaussian, DiscreteLaplace, SeededBits
from sfumato.mechanisms import ExponentialMechanism
from sfumato.mechanisms.above_threshold import AboveThreshold
from sfumato.quantile_methods import Single

MEDIAN, QUARTILES = ORDERS[0], ORDERS[4]
REPEATS = 1000


def choices(logs):
    """A law by its log probabilities, for draws of many."""
    return Choice(np.exp(np.asarray(logs)))


def listed(law):
    return choices([law.logpmf(outcome) for outcome in law.outcomes()])


def drawn_from(left, right, seed):
    """A mechanism that draws from two laws, many at a time."""
    bits = SeededBits(seed)
    return lambda side, size: (left, right)[side].sample(bits, size)


def on_line(method, orders, widths, left, right):
    """The laws of quantiles on two columns: so many records at each place of a short line."""
    line = Line.of(widths)
    query = fine_query(line, method, orders, "substitution")
    return [listed(law_of(query, line.data(counts))) for counts in (left, right)]


class Shifted:
    """A law one further to the right."""

    def __init__(self, law):
        self.law = law

    def sample(self, bits, size):
        return self.law.sample(bits, size) + 1


def laplace(scale):
    noise = DiscreteLaplace(Fraction(scale))
    return noise, Shifted(noise)


def crossing(law):
    return [choices(law(values, 0)) for values in ((0, 0), (1, -1))]


def loss(left, right, points):
    indices = np.arange(points)
    return float(np.abs(left.logpmf(indices) - right.logpmf(indices)).max())


# --- what is right is not refuted -----------------------------------------------------------------


def rarely_wrong(count, share):
    """The largest number of failures that chance allows, but for one time in a million."""
    from scipy.stats import binom

    return int(binom.ppf(1 - 1e-6, count, share))


def failures(left, right, claim, seed, *, draws, repeats=REPEATS, **given):
    """How many of 1,000 audits state a bound above the truth."""
    bits = SeededBits(seed)
    one, other = (each.sample(bits, draws * repeats).reshape(repeats, draws) for each in (left, right))
    return sum(epsilon_lower_bound(*pair, **given) > claim for pair in zip(one, other, strict=True))


def test_a_thousand_audits_of_a_tight_count_fail_no_more_often_than_stated():
    # Its true epsilon is 1, on every outcome.
    assert failures(*laplace(1), 1.0, seed=1, draws=400) <= rarely_wrong(REPEATS, 0.05)


def test_audits_at_half_confidence_do_fail():
    # So the test above can fail: a bound that is wrong half of the time would be noticed.
    wrong = failures(*laplace(1), 1.0, seed=2, draws=400, repeats=300, confidence=0.5)
    assert rarely_wrong(300, 0.05) < wrong <= rarely_wrong(300, 0.5)


def test_a_thousand_audits_that_bound_on_the_draws_they_chose_by_would_fail(monkeypatch):
    # The mutant that the split of the draws is for: the same draws choose and bound.
    module = sys.modules[Estimate.__module__]
    search = module._search

    def on_test_draws(learn, choose, look_at, claim, delta):
        return search(TEST, TEST, look_at, claim, delta)

    monkeypatch.setattr(module, "_search", on_test_draws)
    bits, wrong = SeededBits(3), 0
    law = Choice(np.ones(400))
    for _ in range(200):
        one, other = (law.sample(bits, 1000) for _ in range(2))
        tables = module.tables(one, other)
        TEST = tuple(each.part(500, 1000) for each in tables)
        wrong += epsilon_lower_bound(one, other) > 0
    assert wrong > rarely_wrong(200, 0.05)


def test_a_thousand_audits_of_tight_permute_and_flip_fail_no_more_often_than_stated():
    mechanism = ExponentialMechanism(epsilon=1, sensitivity=1)
    scores = (0, 0, 0), (1, -1, -1)
    laws = [mechanism.law(each) for each in scores]
    points = [choices([law.logpmf(k) for k in range(3)]) for law in laws]
    true = loss(*points, 3)
    assert 0.3 < true <= 1 + 1e-9
    assert failures(*points, true, seed=4, draws=400) <= rarely_wrong(REPEATS, 0.05)


def test_a_thousand_audits_of_above_threshold_fail_no_more_often_than_stated():
    laws = crossing(log_law(AboveThreshold.general(1, 1)))
    true = loss(*laws, 3)
    assert 0.4 < true <= 1 + 1e-9
    assert failures(*laws, true, seed=5, draws=400) <= rarely_wrong(REPEATS, 0.05)


def test_a_thousand_audits_of_a_median_fail_no_more_often_than_stated():
    laws = on_line(Single(), MEDIAN, (0, 3, 40, 0), (1, 3, 1), (2, 3, 0))
    true = loss(*laws, laws[0].points)
    assert 0.5 < true <= 1 + 1e-9
    assert failures(*laws, true, seed=6, draws=400) <= rarely_wrong(REPEATS, 0.05)


def test_a_thousand_audits_at_a_delta_fail_no_more_often_than_stated():
    # The epsilon of a rounded Gaussian at delta 1/10, from its probabilities.
    noise = DiscreteGaussian(Fraction(4))
    grid = np.arange(-60, 61)
    p, q = np.exp(noise.logpmf(grid)), np.exp(noise.logpmf(grid - 1))
    delta = 0.1
    true = max(
        math.log((p[:end].sum() - delta) / q[:end].sum()) for end in range(1, 121) if p[:end].sum() > delta
    )
    assert 0.1 < true < 0.5
    wrong = failures(noise, Shifted(noise), true, seed=7, draws=400, delta=delta)
    assert wrong <= rarely_wrong(REPEATS, 0.05)


# --- what is broken is refuted, and in the same run what is right is not ---------------------------


def broken_and_right():
    """Pairs of laws that claim epsilon 1, with the loss that the broken ones reach at least."""
    published = QUANTILE_MUTANTS["weights of the published algorithm"].defect
    recursive = QUANTILE_MUTANTS["constants of add-remove under substitution, recursive"].defect
    median = Single(), MEDIAN, (0, 3, 40, 0), (1, 3, 1), (2, 3, 0)
    quartiles = RECURSIVE, QUARTILES, (1, 6, 1, 1, 1), (4, 2, 2, 0), (3, 2, 3, 0)
    with published():
        broken_median = on_line(*median)
    with recursive():
        broken_quartiles = on_line(*quartiles)
    noise = DiscreteLaplace(Fraction(1))
    cut = np.exp(noise.logpmf(np.arange(-3, 4)))
    truncated = Choice(np.append(cut, 0.0)), Choice(np.append(0.0, cut))
    return {
        "median with the published weight": (broken_median, on_line(*median), 1.4),
        "quartiles with the constants of the other relation": (broken_quartiles, on_line(*quartiles), 1.3),
        "a threshold with half of the noise": (
            crossing(halved_query_noise(True)),
            crossing(log_law(AboveThreshold.general(1, 1))),
            1.4,
        ),
        "Laplace noise cut off": (truncated, laplace(1), 7.0),
        "Laplace noise of half the scale": (laplace(Fraction(1, 2)), laplace(1), 1.9),
    }


LAWS = broken_and_right()


@pytest.mark.parametrize("name", LAWS)
def test_a_million_draws_refute_the_broken_one_and_not_the_right_one(name):
    broken, right, least = LAWS[name]
    found = statistical(drawn_from(*broken, 1), 0, 1, epsilon=1, samples=500_000, batched=True)
    assert found.refuted
    assert found.verdict == "refuted"
    assert found.epsilon > least
    assert found.delta > 0
    held = statistical(drawn_from(*right, 2), 0, 1, epsilon=1, samples=500_000, batched=True)
    assert not held.refuted
    assert held.verdict == "not refuted"
    assert held.epsilon <= 1
    assert held.delta == 0


def naive(kind):
    rng = np.random.default_rng(1)
    return lambda value, size: value + getattr(rng, kind)(size=size)


@pytest.mark.parametrize("kind", ["laplace", "normal"])
def test_float_noise_is_refuted_by_its_low_order_bits(kind):
    # Laplace noise of scale 1 has epsilon 1 in real numbers, and none in floats.
    found = statistical(naive(kind), 0.0, 1.0, epsilon=5, delta=0.01, samples=50_000, batched=True)
    assert found.refuted
    assert "low-order bits" in found.event
    assert found.epsilon > 6


def test_noise_that_keeps_a_residue_is_refuted():
    noise = DiscreteLaplace(Fraction(10**6))
    bits = SeededBits(8)
    found = statistical(
        lambda count, size: count + 2 * noise.sample(bits, size), 0, 1, epsilon=1, samples=5000, batched=True
    )
    assert found.refuted
    assert "modulo 2" in found.event or "modulo 16" in found.event


# --- outcomes of every kind -------------------------------------------------------------------------


def coin(share, heads, tails, seed):
    """A mechanism with two outcomes, an exception raised, the first likelier on data 1."""
    bits = SeededBits(seed)

    def mechanism(data):
        outcome = heads if bits.below(100) < (share if data else 100 - share) else tails
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return mechanism


KINDS = [None, "yes", math.nan, math.inf, 1.5, (1, 2), (1, None), np.array([1.0, 2.0]), {"a": 1}]
KINDS += [ValueError("secret"), True, b"bytes", (), ("yes", 1), 10**400]


@pytest.mark.parametrize("heads", KINDS, ids=repr)
@pytest.mark.parametrize("tails", [0, "no"], ids=repr)
def test_outcomes_of_any_kind_are_told_apart(heads, tails):
    found = statistical(coin(80, heads, tails, 9), 0, 1, epsilon=1, samples=2000)
    assert 1.1 < found.epsilon <= math.log(4)
    assert found.refuted
    fair = statistical(coin(50, heads, tails, 10), 0, 1, epsilon=1, samples=2000)
    assert fair.epsilon < 0.1


class Sullen:
    """An object that fails when it is made a number, and when it is shown."""

    def __float__(self):
        raise RuntimeError

    def __repr__(self):
        raise RuntimeError


LEAKS = {
    "an integer beyond 2^53": lambda data: 2**60 + data,
    "an integer beyond all floats": lambda data: 10**400 + data,
    "the sign of one": lambda data: (-1) ** data * 10**400,
    "a list with one": lambda data: [3, 2**60 + data],
    "a fraction": lambda data: Fraction(10**30 + data, 3**50),
    "a decimal": lambda data: Decimal(1) + Decimal("1e-25") * data,
    "a decimal beyond all floats": lambda data: Decimal("1e3000") * (1 + data),
    "a long float": lambda data: np.longdouble(1) + np.longdouble(2) ** -60 * data,
    "long floats": lambda data: np.ones(2, np.longdouble) + np.longdouble(2) ** -60 * data,
    "an imaginary part": lambda data: complex(0, data),
    "an imaginary part of NumPy": lambda data: np.complex64(data * 1j),
    "imaginary parts": lambda data: np.array([1, data * 1j]),
    "a length": lambda data: [0.0] * (2 + data),
    "how many are None": lambda data: [None] * (2 + data),
    "how many are NaN": lambda data: np.full(2 + data, np.nan),
    "None or NaN": lambda data: [1.0, None if data else math.nan],
    "a shape": lambda data: np.zeros((2, 3) if data else (3, 2)),
    "a nested shape": lambda data: [[1, 2], [3]] if data else [[1], [2, 3]],
    "a dict": lambda data: {"a": data},
    "a key": lambda data: {"ab"[data]: 1.5},
    "a number beside a text": lambda data: ("a", 10.0 * data),
    "a text beside a number": lambda data: ("ab"[data], 1.0),
    "a set": lambda data: {data},
    "a type": lambda data: (3, 3.0)[data],
    "a signed zero": lambda data: (0.0, -0.0)[data],
    "an object that fails": lambda data: Sullen() if data else 3.0,
}


@pytest.mark.parametrize("name", LEAKS)
def test_what_data_decide_is_seen_in_outcomes_of_every_form(name):
    assert statistical(LEAKS[name], 0, 1, epsilon=1, samples=60).refuted
    assert not statistical(lambda _: LEAKS[name](1), 0, 1, epsilon=1, samples=60).refuted


@pytest.mark.parametrize(
    "kind", [np.uint64, np.int64, np.longdouble, np.complex128, "zeros"], ids=lambda kind: str(kind)
)
def test_what_data_decide_is_seen_in_whole_arrays(kind):
    def answers(data, size):
        if kind == "zeros":
            return np.full(size, (0.0, -0.0)[data])
        if kind is np.complex128:
            return np.full(size, complex(0, data))
        return np.full(size, 2**62, dtype=kind) + kind(data)

    assert statistical(answers, 0, 1, epsilon=1, samples=60, batched=True).refuted
    assert not statistical(
        lambda _, size: answers(1, size), 0, 1, epsilon=1, samples=60, batched=True
    ).refuted


def test_numbers_in_dicts_and_beside_texts_are_compared_as_numbers():
    noise, bits = DiscreteLaplace(Fraction(1)), SeededBits(16)
    for form in (lambda number: {"a": number}, lambda number: ("a", number), lambda number: 2**70 + number):
        found = statistical(lambda data: form(data + noise.sample(bits)), 0, 1, epsilon=0.2, samples=2000)  # noqa: B023  # reason: called at once
        assert 0.4 < found.epsilon <= 1


def test_objects_that_fail_when_looked_at_are_outcomes_of_their_type():
    found = statistical(lambda data: [Sullen(), object()], 0, 1, epsilon=1, samples=20)
    assert not found.refuted


@pytest.mark.parametrize("width", [3, 100])
def test_the_largest_floats_are_compared_without_overflow(width):
    # A warning would be an error here.
    found = statistical(lambda data: np.full(width, 1e308) * (1 + 0.5 * data), 0, 1, epsilon=1, samples=60)
    assert found.refuted


def test_releases_are_outcomes():
    def released(data):
        return sf.count(data, epsilon=4, neighbours="add-remove")

    left, right = [1.0] * 3, [1.0] * 4
    assert 1 < statistical(released, left, right, samples=500).epsilon < 4
    assert statistical(released, left, right, samples=8).verdict == "no claim"


ROWS = {
    "one coordinate": lambda noise, data: noise + np.r_[0, 0, data],
    "the sum": lambda noise, data: noise + data,
    "the order": lambda noise, data: np.sort(noise, axis=1)[:, :: 1 if data else -1],
    "equal numbers": lambda noise, data: np.column_stack([noise[:, :2], noise[:, data]]),
    "what is missing": lambda noise, data: np.where(np.arange(3) == 2 * data, np.nan, noise),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_numbers_are_told_apart(name):
    noise, bits = DiscreteLaplace(Fraction(1)), SeededBits(11)

    def mechanism(data, size):
        return ROWS[name](noise.sample(bits, 3 * size).reshape(size, 3).astype(float), data)

    found = statistical(mechanism, 0, 1, epsilon=0.5, samples=20_000, batched=True)
    assert found.refuted
    # One shifted number costs 1, three cost 3, of which the sum alone shows less; the rest has no epsilon.
    if name == "one coordinate":
        assert 0.9 < found.epsilon <= 1
    elif name == "the sum":
        assert 2 < found.epsilon <= 3
    else:
        assert found.epsilon > 1


def test_many_small_differences_are_added_up():
    # Twenty numbers of epsilon 1/10 each: none shows more, the sum of their log ratios does.
    noise, bits = DiscreteLaplace(Fraction(10)), SeededBits(12)

    def mechanism(data, size):
        return noise.sample(bits, 20 * size).reshape(size, 20) + data * np.resize([1, -1], 20)

    found = statistical(mechanism, 0, 1, epsilon=0.2, samples=40_000, batched=True)
    assert 0.2 < found.epsilon <= 2
    assert "log ratios" in found.event


def test_a_transcript_shows_where_it_ends():
    mechanism = AboveThreshold.general(8, 1)
    bits = SeededBits(13)

    def transcript(values):
        return (False,) * int(mechanism.law(np.array(values), 0).sample(bits)) + (True,)

    assert statistical(transcript, (-1, 1, 1), (1, -1, 1), epsilon=1, samples=1000).refuted


# --- the numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "failure"), [(12, 0.05), (40, 0.01)])
def test_bounds_of_a_probability_fail_exactly_as_rarely_as_stated(size, failure):
    from scipy.stats import binom

    bounds = [clopper_pearson(hits, size, failure) for hits in range(size + 1)]
    for share in np.linspace(0.001, 0.999, 97):
        chances = binom.pmf(np.arange(size + 1), size, share)
        assert sum(chance for chance, (low, _) in zip(chances, bounds, strict=True) if low > share) <= failure
        assert sum(chance for chance, (_, up) in zip(chances, bounds, strict=True) if up < share) <= failure


def test_the_bound_on_delta_is_near_the_truth():
    # Noise that is lost one time in ten shows the data: delta is 0.1 less what epsilon covers.
    bits, noise = SeededBits(14), DiscreteLaplace(Fraction(1))

    def leaky(data, size):
        return np.where(bits.below_each(10, size) == 0, 1000 + data, data + noise.sample(bits, size))

    found = statistical(leaky, 0, 1, epsilon=1, delta=0.05, samples=100_000, batched=True)
    assert 0.095 < found.delta <= 0.1
    assert found.refuted
    allowed = statistical(leaky, 0, 1, epsilon=1, delta=0.1, samples=100_000, batched=True)
    assert allowed.delta <= 0.1
    assert not allowed.refuted


def test_progress_is_told_and_draws_are_counted():
    calls, told = Counter(), []

    def mechanism(data):
        calls[data] += 1
        return data

    found = statistical(mechanism, 0, 1, samples=2500, progress=lambda *each: told.append(each))
    assert told == [(50 * part, 5000) for part in range(1, 101)]
    assert calls == {0: 2500, 1: 2500}
    assert found.draws == 1250
    assert found.hits == (1250, 0)


def test_the_estimate_says_what_was_seen():
    found = statistical(drawn_from(*laplace(1), 15), 0, 1, epsilon=1, samples=50_000, batched=True)
    assert str(found).startswith("not refuted: epsilon is at least 0.9")
    assert "and 1 was claimed (confidence 0.95; the number" in str(found)
    assert isinstance(found, Estimate)


WRONG = [
    {"samples": 7},
    {"samples": 1.5},
    {"confidence": 1},
    {"confidence": 0},
    {"delta": 1},
    {"delta": -0.1},
]
WRONG += [{"epsilon": -1}, {"epsilon": math.nan}, {"epsilon": "1"}, {"batched": 1}]


@pytest.mark.parametrize("given", WRONG, ids=repr)
def test_parameters_out_of_range_are_refused(given):
    with pytest.raises(InvalidParameter, match=next(iter(given))):
        statistical(lambda data: data, 0, 1, **given)


def test_a_batch_of_another_size_is_refused():
    with pytest.raises(InvalidParameter, match="outcomes"):
        statistical(lambda data, size: np.zeros(size + 1), 0, 1, samples=10, batched=True)


def test_real_statistics_are_not_refuted_through_the_front_door():
    left, right = [5.0, 1.0, 9.0], [5.0, 1.0, 0.0]
    for answer in (
        lambda data: sf.mean(data, bounds=(0, 10), epsilon=1),
        lambda data: sf.quantiles(data, [0.25, 0.75], bounds=(0, 10), step=1, epsilon=1),
        lambda data: sf.variance(data, bounds=(0, 10), epsilon=1),
    ):
        assert not statistical(answer, left, right, epsilon=1, samples=200).refuted


def test_every_split_of_the_draws_gives_a_bound():
    for size in range(8, 40):
        one, other = np.zeros(size), np.ones(size)
        assert 0 <= epsilon_lower_bound(one, other) < math.inf
