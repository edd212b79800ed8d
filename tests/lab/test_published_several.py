"""Several quantiles as the script draws them, against enumeration, and the exact risks of their laws."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.data.admission import admit
from sfumato.lab import published_several as published
from sfumato.lab import several_exact as exact
from sfumato.lab.published_quantile import cells
from sfumato.laws import SeededBits
from sfumato.privacy import PureDP
from sfumato.quantile_methods import Quantiles

QUARTILES = [0.25, 0.5, 0.75]
FEW = np.array([0.1, 0.35, 0.4, 0.8])


def tuples(ordered, probs, c, factorial=math.factorial):
    """Every tuple of cells with its weight, from the definition of a joint draw."""
    n, m = len(ordered), len(probs)
    widths = np.diff([0.0, *ordered, 1.0])
    targets = n * np.diff([0.0, *probs, 1.0])
    found = {}
    for cell in itertools.combinations_with_replacement(range(n + 1), m):
        counts = np.diff([0, *cell, n])
        weight = math.exp(-c * np.abs(counts - targets).sum())
        for i in set(cell):
            weight *= widths[i] ** cell.count(i) / factorial(cell.count(i))
        found[cell] = weight
    total = sum(found.values())
    return {cell: weight / total for cell, weight in found.items()}


def squared_by_enumeration(ordered, probs, c, truth, **broken):
    edges, risk = [0.0, *ordered, 1.0], 0.0
    for cell, chance in tuples(ordered, probs, c, **broken).items():
        for place, i in enumerate(cell):
            together, before = cell.count(i), cell.index(i)
            mean = (place - before + 1) / (together + 1)
            variance = mean * (1 - mean) / (together + 2)
            width = edges[i + 1] - edges[i]
            risk += chance * ((edges[i] + width * mean - truth[place]) ** 2 + width**2 * variance)
    return risk


def fits(counted, expected, draws):
    """Whether counts are within the range of a chi-square test at one in a million."""
    from scipy.stats import chi2

    kept = [key for key in expected if expected[key] * draws >= 5]
    rest = 1 - sum(expected[key] for key in kept)
    pairs = [(counted.get(key, 0), expected[key] * draws) for key in kept]
    pairs.append((draws - sum(seen for seen, _ in pairs), rest * draws))
    score = sum((seen - due) ** 2 / due for seen, due in pairs if due > 1e-9)
    return score < chi2.ppf(1 - 1e-6, len(pairs) - 1)


@pytest.mark.parametrize("probs", [[0.5], [0.25, 0.5], QUARTILES, [0.05, 0.1, 0.5, 0.95]])
def test_the_exact_risk_of_a_joint_draw_is_that_of_all_tuples_of_cells(probs):
    truth = np.linspace(0.2, 0.7, len(probs))
    found = exact.joint_squared(FEW[None], probs, 0.3, truth[None])[0]
    assert found == pytest.approx(squared_by_enumeration(FEW, probs, 0.3, truth), rel=1e-12)


def test_the_exact_risk_tells_a_joint_draw_that_forgets_the_order_within_a_cell():
    truth = np.array(QUARTILES)
    wrong = squared_by_enumeration(FEW, QUARTILES, 0.3, truth, factorial=lambda count: 1)
    assert exact.joint_squared(FEW[None], QUARTILES, 0.3, truth[None])[0] != pytest.approx(wrong, rel=1e-3)


def joint_cells(epsilon, draws=20_000):
    drawn = published.joint(FEW[None], draws, np.random.default_rng(7), epsilon=epsilon, probs=QUARTILES)[0]
    assert (np.diff(drawn, axis=1) >= 0).all()
    found = {}
    for cell in map(tuple, np.searchsorted(FEW, drawn).tolist()):
        found[cell] = found.get(cell, 0) + 1
    return found


def test_joint_draws_fit_the_weights_of_all_tuples_of_cells():
    expected = tuples(FEW, QUARTILES, published.joint_rate(2.0, QUARTILES))
    assert published.joint_rate(2.0, QUARTILES) == pytest.approx(2 / 3)
    assert fits(joint_cells(2.0), expected, 20_000)


@pytest.mark.parametrize("epsilon", [1.8, 2.2])
def test_joint_draws_at_another_budget_do_not_fit(epsilon):
    expected = tuples(FEW, QUARTILES, published.joint_rate(2.0, QUARTILES))
    assert not fits(joint_cells(epsilon), expected, 20_000)


def test_a_joint_draw_is_the_law_of_sfumato_if_records_are_added_or_removed():
    row = np.random.default_rng(3).random(100)
    truth = np.quantile(row, QUARTILES)
    query = Quantiles(
        probs=QUARTILES,
        method="joint",
        budget=PureDP(1),
        bounds=(0, 1),
        neighbours="add-remove",
        n_hint=100,
        step=Fraction(1, 2**20),
        verify=0,
    )
    law, bits = query.law(query.look(admit(row))), SeededBits(5)
    drawn = np.array([query.value(law.sample(bits)) for _ in range(1500)])
    losses = ((drawn - truth) ** 2).sum(axis=1)
    error = losses.std() / math.sqrt(len(losses))
    rate = published.joint_rate(1, QUARTILES)
    known = exact.joint_squared(row[None], QUARTILES, rate, truth[None])[0]
    assert abs(losses.mean() - known) <= 4 * error
    substituted = exact.joint_squared(row[None], QUARTILES, 1 / 4, truth[None])[0]
    assert abs(losses.mean() - substituted) > 4 * error


@pytest.mark.parametrize("mechanism", [published.independent, published.recursive])
def test_one_quantile_is_one_draw_of_the_exponential_mechanism(mechanism):
    masses = cells(FEW[None], 0.25, 1.5, (0, 1)).masses[0]
    drawn = mechanism(FEW[None], 20_000, np.random.default_rng(2), epsilon=1.5, probs=[0.25])[0, :, 0]
    seen = dict(enumerate(np.bincount(np.searchsorted(FEW, drawn), minlength=5).tolist()))
    assert fits(seen, dict(enumerate(masses)), 20_000)
    wrong = cells(FEW[None], 0.25, 1.5 / 2, (0, 1)).masses[0]
    assert not fits(seen, dict(enumerate(wrong)), 20_000)


def test_the_rate_of_the_recursion_is_the_budget_over_its_levels_and_a_part_of_one():
    row = np.random.default_rng(1).random((1, 50))
    drawn = published.recursive(row, 4000, np.random.default_rng(2), epsilon=1, probs=QUARTILES)[0, :, 1]
    masses = cells(row, 0.5, 1 / (math.log2(3) + 1), (0, 1)).masses[0]
    seen = dict(enumerate(np.bincount(np.searchsorted(np.sort(row[0]), drawn), minlength=51).tolist()))
    assert fits(seen, dict(enumerate(masses)), 4000)


def test_right_branches_of_the_script_answer_below_their_parent_and_proper_ones_never_do():
    rows, probs = np.random.default_rng(1).random((5, 30)), [k / 8 for k in range(1, 8)]
    for proper in (True, False):
        rng = np.random.default_rng(4)
        drawn = published.recursive(rows, 50, rng, epsilon=0.1, probs=probs, own_interval=proper)
        increasing = (np.diff(drawn, axis=2) >= 0).all(axis=2)
        assert increasing.all() == proper


@pytest.mark.parametrize("count", [1, 2, 7])
def test_draws_without_weights_are_uniform_numbers(count):
    rows, probs = np.random.default_rng(1).random((3, 20)), [k / (count + 1) for k in range(1, count + 1)]
    truth = published.quantiles(rows, probs)
    assert exact.sorted_squared(rows, probs, 0.0, truth) == pytest.approx(exact.flat_squared(truth), rel=1e-9)
    assert exact.independent_largest(rows, probs, 0.0) == pytest.approx([count / (count + 1)] * 3, rel=1e-9)


def test_sorting_independent_draws_lowers_their_exact_risk():
    rows, probs = np.random.default_rng(1).random((3, 20)), QUARTILES
    truth = published.quantiles(rows, probs)
    assert (
        exact.sorted_squared(rows, probs, 0.05, truth) < exact.independent_squared(rows, probs, 0.05, truth)
    ).all()


def test_many_records_are_integrated_as_few_are(monkeypatch):
    rows, probs = np.random.default_rng(1).random((1, 1200)), [k / 10 for k in range(1, 10)]
    truth = published.quantiles(rows, probs)
    coarse = exact.sorted_squared(rows, probs, 1 / 18, truth)
    monkeypatch.setattr(exact, "_MANY_RECORDS", 10_000)
    assert coarse == pytest.approx(exact.sorted_squared(rows, probs, 1 / 18, truth), rel=1e-3)


def test_quartiles_by_recursion_have_the_exact_risk_of_their_draws():
    rows = np.random.default_rng(8).random((4, 40))
    truth = published.quantiles(rows, QUARTILES)
    rate = 1 / (math.log2(3) + 1)
    known = exact.quartiles_recursive_squared(rows, rate, rate, truth)
    for proper in (True, False):
        rng = np.random.default_rng(9)
        drawn = published.recursive(rows, 4000, rng, epsilon=1, probs=QUARTILES, own_interval=proper)
        losses = ((drawn - truth[:, None]) ** 2).sum(axis=2)
        off = np.abs(losses.mean(axis=1) - known) / (losses.std(axis=1) / math.sqrt(4000))
        assert (off <= 4).all() == proper


def test_independent_draws_have_the_exact_risks_of_their_law():
    rows, probs = np.random.default_rng(8).random((4, 40)), [k / 12 for k in range(1, 12)]
    truth = published.quantiles(rows, probs)
    drawn = published.independent(rows, 4000, np.random.default_rng(9), epsilon=1, probs=probs)
    centre = truth[:, None]
    pairs = {
        "squared": (((drawn - centre) ** 2).sum(axis=2), exact.independent_squared(rows, probs, 1, truth)),
        "sorted": (
            ((np.sort(drawn, axis=2) - centre) ** 2).sum(axis=2),
            exact.sorted_squared(rows, probs, 1, truth),
        ),
        "summed": (
            published.squared_as_summed(drawn, centre),
            exact.independent_summed(rows, probs, 1, truth),
        ),
        "largest": (published.largest_estimate(drawn), exact.independent_largest(rows, probs, 1)),
        "sup": (np.abs(drawn - centre).max(axis=2), exact.independent_sup(rows, probs, 1, truth)),
    }
    for losses, known in pairs.values():
        assert (np.abs(losses.mean(axis=1) - known) <= 4 * losses.std(axis=1) / math.sqrt(4000)).all()
    # The risk that is meant is not the one that is summed, and the errors are not the estimates.
    assert (pairs["summed"][0].mean(axis=1) > 10 * pairs["squared"][1]).all()
    assert (pairs["largest"][0].mean(axis=1) > 3 * pairs["sup"][1]).all()
