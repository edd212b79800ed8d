"""Quantiles of many data sets at once: the product's own laws row by row, exact risks, and exact draws."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2
from tests.laws.fit import FALSE_ALARM

import sfumato as sf
from sfumato.data.admission import admit
from sfumato.grid import Grid
from sfumato.lab import quantile_rows
from sfumato.lab.quantile_rows import QuantileRows, Weighing, _values
from sfumato.laws import SeededBits

RELATIONS = ("substitution", "add-remove")


def asked(probs=(0.5,), *, epsilon=1, bounds=(0, 1), neighbours="substitution", **options):
    named = {"method": "single"} if len(probs) == 1 else {}
    given = {"bounds": bounds, "neighbours": neighbours, "verify": 0, **named, **options}
    return sf.Quantiles(probs=probs, budget=sf.PureDP(epsilon), **given)


def law_of(query, row):
    """The law of the product on one data set, with the number of rows that a session would fill in."""
    if query.rows_are_public:
        query = replace(query, rows=len(row))
    return query.law(query.look(admit(row, query.column)))


def hostile(n, seed):
    """Data sets with ties, heaps, values at and beyond the bounds 0 and 1, and infinities."""
    rng = np.random.default_rng(seed)
    uniform = rng.random((2, n))
    return np.vstack(
        [
            uniform,
            np.round(uniform, 1),
            np.full(n, 0.3),
            np.zeros(n),
            np.ones(n),
            np.full(n, -np.inf),
            rng.choice([-np.inf, -2.0, 0.0, 0.25, 1.0, 1.5, np.inf], size=(2, n)),
            np.where(rng.random((2, n)) < 0.6, 0.7, rng.normal(0.5, 2, (2, n))),
            np.nextafter(rng.integers(0, 9, (2, n)) / 8, rng.choice([-9.0, 9.0], size=(2, n))),
            rng.integers(0, 65, (2, n)) / 64,
            1e-300 * uniform,
            1e300 * (uniform - 0.5),
        ]
    )


def merged(begins, lengths, levels):
    """The begins and levels of runs in order, without empty ones and with neighbours of a level as one.

    None if they do not follow one another from point 0 on.
    """
    kept = lengths > 0
    order = np.argsort(begins[kept])
    begins, lengths, levels = begins[kept][order], lengths[kept][order], levels[kept][order]
    if begins[0] != 0 or (begins[1:] != (begins + lengths)[:-1]).any():
        return None
    new = np.append(True, np.diff(levels) != 0)
    return begins[new].tolist(), levels[new].tolist(), int(lengths.sum())


def runs_of(found, order, place):
    """The runs of one row of the laws, merged."""
    block = slice(place, place + 1)
    laws = found.laws(order, block)
    every = np.arange(laws.lengths.shape[1])[None]
    return merged(found.begins(order, block, every)[0], laws.lengths[0], laws.levels[0])


def differing(query, rows):
    """How many laws, over rows and orders, are not run by run those of the product."""
    found = QuantileRows.of(query, rows)
    assert found is not None
    wrong = 0
    for order, (place, row) in product(range(len(query.orders)), enumerate(rows)):
        law = law_of(query, row).nodes[order].law
        lengths, levels, _ = law.runs
        expected = merged(law.ends - lengths, lengths, levels)
        assert expected is not None
        same = runs_of(found, order, place) == expected
        wrong += not (same and found.orders[order].grades is law._grades)
    return wrong


QUERIES = {
    "median": {},
    "on steps": {"step": 0.125},
    "on one step": {"step": 1},
    "strong": {"epsilon": 400},
    "weak": {"epsilon": Fraction(1, 1000)},
    "low": {"probs": (0.01,)},
    "high": {"probs": (0.999,), "epsilon": 5},
    "third": {"probs": (Fraction(1, 3),), "epsilon": 40},
    "several": {"probs": (0.9, 0.1, 0.5, 0.1), "method": "independent", "epsilon": 90},
    "for several rows": {"changes": 4, "epsilon": 200, "nulls": "drop"},
    "other bounds": {"bounds": (-0.1, 0.7)},
    "zcdp": {"budget": sf.ZCDP(2)},
}


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("name", QUERIES)
def test_the_laws_are_run_by_run_those_of_the_product(name, neighbours):
    options = dict(QUERIES[name])
    budget = options.pop("budget", None)
    query = asked(neighbours=neighbours, **options)
    query = query if budget is None else replace(query, budget=budget)
    for n in (1, 2, 3, 7, 100, 1000):
        assert differing(query, hostile(n, seed=n)) == 0


def test_integers_short_floats_and_rows_that_are_no_copies_are_read_as_the_product_reads_them():
    whole = np.random.default_rng(4).integers(-5, 130, (3, 40))
    for rows in (whole, whole.astype(np.uint8), whole.astype(np.float32) / 7, whole[:, ::3], whole.T):
        assert differing(asked(bounds=(0, 120)), rows) == 0
        assert differing(asked(bounds=(0, 120), step=1), rows) == 0
    assert differing(asked(bounds=(0, 120)), np.array([[2**63 - 1, -(2**63), 7]])) == 0


class OtherTarget(Weighing):
    """The single point is the edge before the target and not the one after it."""

    @classmethod
    def of(cls, node):
        right = Weighing.of(node)
        return Weighing(right.target, right.under - 1, right.grades)


class OtherLevels(Weighing):
    """Gaps count with the rank of their right edge."""

    def levels(self, first, behind):
        return super().levels(first + 1, behind + 1)


@pytest.mark.parametrize("mutant", [OtherTarget, OtherLevels])
def test_a_mutant_of_the_weights_is_told_from_the_product(mutant, monkeypatch):
    query, rows = asked((Fraction(1, 3),)), hostile(100, seed=1)[:2]
    assert differing(query, rows) == 0
    monkeypatch.setattr(quantile_rows, "Weighing", mutant)
    assert differing(query, rows) > 0


def test_a_mutant_that_rounds_to_the_nearest_cell_is_told_from_the_product(monkeypatch):
    monkeypatch.setattr(
        quantile_rows, "_cells", lambda values, grid: np.clip(np.rint(values / float(grid.step)), 0, 8)
    )
    assert differing(asked(step=0.125), hostile(20, seed=1)[:4]) > 0


OTHERS = {
    "an order among several by another method": asked((0.2, 0.4), method="recursive"),
    "the method that suits several": asked((0.1, 0.5, 0.9)),
    "permute and flip": asked(method=sf.quantile_methods.Single(flip=True), step=0.125),
    "inverse sensitivity": asked(method="inverse_sensitivity"),
    "with outer orders": asked((0.25, 0.75), method="independent", interval_share=0.1),
    "counts first": asked((0.1, 0.9), neighbours="add-remove"),
    "another number of rows": asked(rows=7),
    "no bounds": asked(bounds=None, method="unbounded"),
    "no quantile": sf.Mean(budget=sf.PureDP(1), bounds=(0, 1), neighbours="substitution"),
    "no query": np.median,
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_queries_are_left_to_the_product(name):
    assert QuantileRows.of(OTHERS[name], np.random.default_rng(1).random((3, 20))) is None


def test_rows_with_nulls_or_of_other_kinds_are_left_to_the_product():
    rows = np.random.default_rng(1).random((3, 20))
    holed = rows.copy()
    holed[2, 4] = np.nan
    masked = np.ma.MaskedArray(rows, mask=rows > 0.9)
    for given in (holed, masked, rows > 0.5, rows[0], rows[:, :0], rows[:0], rows.astype(str), [[1.0, 2.0]]):
        assert QuantileRows.of(asked(), given) is None
    infinite = np.array([[np.inf, -np.inf, 0.5]])
    assert QuantileRows.of(asked(), infinite) is not None
    assert QuantileRows.of(asked(rows=20), rows) is not None


def brute(query, row, risk, power=1):
    """The expected power of the loss on one data set, point by point with exact probabilities."""
    law = law_of(query, row).nodes[0].law
    grid, (order,), n = replace(query, rows=len(row)).facts.grid, query.orders, len(row)
    truth = Fraction(sorted(row.tolist())[max(-(-order * n // 1), 1) - 1])
    clamped, total = np.clip(row, float(grid.lower), float(grid.upper)), Fraction(0)
    # A value within rounding below a point is taken for it, as the product does.
    clamped = np.maximum(clamped, [float(grid.value(int(cell))) for cell in grid.index(row)])
    for point in range(grid.cells):
        away = abs(grid.value(point) - truth)
        if risk == "squared":
            away = away**2
        if risk == "rank":
            value = float(grid.value(point))
            below, upto = int((clamped < value).sum()), int((clamped <= value).sum())
            away = max(below - order * n, order * n - upto, Fraction(0))
        total += law.probability(point) * away**power
    return float(total)


EXACT = {
    "median": {},
    "fine": {"step": Fraction(1, 100)},
    "low": {"probs": (0.1,), "epsilon": 3},
    "strong": {"epsilon": 400, "probs": (Fraction(1, 3),), "step": Fraction(1, 30)},
    "weak": {"epsilon": Fraction(1, 100)},
    "shifted": {"bounds": (-0.5, 0.75), "step": Fraction(1, 16)},
}


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("name", EXACT)
def test_exact_risks_are_those_of_an_enumeration(name, neighbours):
    query = asked(neighbours=neighbours, **{"step": 0.125} | EXACT[name])
    for n in (1, 4, 9, 40):
        rows = hostile(n, seed=n)
        rows = np.clip(rows[np.isfinite(rows).all(axis=1)], -3, 3)
        assert len(rows) >= 10
        found = QuantileRows.of(query, rows)
        for risk in ("squared", "absolute", "sup", "rank"):
            expected = [brute(query, row, risk) for row in rows]
            assert found.exact(risk) == pytest.approx(expected, rel=1e-9, abs=1e-12)
            if risk == "rank":
                assert found.exact_variance(risk) is None
                continue
            squares = np.array([brute(query, row, risk, power=2) for row in rows])
            assert found.exact_variance(risk) + np.square(expected) == pytest.approx(
                squares, rel=1e-9, abs=1e-12
            )


def probabilities(found, order, place):
    """The exact probability of every point of the grid, from the runs that are drawn."""
    block = slice(place, place + 1)
    laws = found.laws(order, block)
    begins = found.begins(order, block, np.arange(laws.lengths.shape[1])[None])[0].tolist()
    chances, law, start = [Fraction(0)] * found.grid.cells, laws.law(0), 0
    for begin, length in zip(begins, laws.lengths[0].tolist(), strict=True):
        for point in range(length):
            chances[begin + point] += law.probability(start + point)
        start += length
    return chances


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("probs", [(0.5,), (Fraction(1, 3), 0.9)])
def test_every_point_has_exactly_the_probability_that_the_product_gives_it(probs, neighbours):
    query = asked(probs, method="independent", epsilon=9, step=0.0625, neighbours=neighbours)
    for n in (1, 2, 5, 6):
        rows = hostile(n, seed=n)
        found = QuantileRows.of(query, rows)
        for order, (place, row) in product(range(len(probs)), enumerate(rows)):
            law = law_of(query, row).nodes[order].law
            assert probabilities(found, order, place) == [law.probability(i) for i in range(17)]


def test_exact_ranks_count_the_records_outside_of_the_window():
    query, rows = asked(epsilon=200, step=Fraction(1, 50)), np.sort(hostile(40, seed=2)[:3])
    found = QuantileRows.of(query, rows)
    assert found.first > 0
    assert found.behind < 41
    (weighing,) = found.orders

    class Flat(Weighing):
        def levels(self, first, behind):
            return weighing.levels(first, behind)

    # With the same levels and weights that hardly fall, what lies outside of the window decides.
    flat = Flat(weighing.target, weighing.under, replace(weighing.grades, c=Fraction(1, 10**4)))
    heavy = replace(found, orders=(flat,))
    expected = []
    for place, row in enumerate(rows):
        points = [float(found.grid.value(point)) for point in range(51)]
        off = [max((row < point).sum() - 20, 20 - (row <= point).sum(), 0) for point in points]
        expected.append(np.dot([float(chance) for chance in probabilities(heavy, 0, place)], off))
    assert heavy.exact("rank") == pytest.approx(expected, rel=1e-9)
    # A sum over the window alone is far off.
    laws = heavy.laws(0, slice(None))
    inside = laws.shares[:, 1:-2] @ np.abs(np.arange(heavy.first, heavy.behind) - 20)
    assert (inside < np.array(expected) * 0.8).all()


def test_errors_may_be_counted_from_another_center():
    rows = np.random.default_rng(3).random((4, 30))
    found = QuantileRows.of(asked(step=0.125), rows)
    center = np.array([0.0, 0.3, 1.0, -7.5])
    points = np.arange(9) / 8
    for place in range(4):
        chances = np.array([float(chance) for chance in probabilities(found, 0, place)])
        away = np.abs(points - center[place])
        assert found.exact("absolute", center)[place] == pytest.approx(chances @ away, rel=1e-12)
        assert found.exact("squared", center)[place] == pytest.approx(chances @ away**2, rel=1e-12)


def test_risks_without_a_closed_form_are_not_given():
    rows = np.random.default_rng(3).random((4, 30))
    assert QuantileRows.of(asked(), rows).exact("coverage") is None
    assert QuantileRows.of(asked(), rows).exact("time") is None
    infinite = QuantileRows.of(asked(), np.full((2, 3), np.inf))
    assert infinite.exact("absolute") is None
    assert infinite.exact("rank") is not None
    assert QuantileRows.of(asked((0.2, 0.8), method="independent"), rows).exact("squared") is None


def fits_pairs(counts, chances):
    expected = np.append(chances[chances * counts.sum() >= 20], 0) * counts.sum()
    observed = np.append(counts[chances * counts.sum() >= 20], 0)
    expected[-1], observed[-1] = counts.sum() - expected.sum(), counts.sum() - observed.sum()
    kept = expected > 1e-9
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    return chi2.sf(statistic, kept.sum() - 1) >= FALSE_ALARM


def joint_chances(query, row, cells):
    """The probabilities of all sorted pairs of points, from the product's law."""
    law, found = law_of(query, row), np.zeros((cells, cells))
    chances = [[float(node.law.probability(point)) for point in range(cells)] for node in law.nodes]
    for first, second in product(range(cells), repeat=2):
        found[min(first, second), max(first, second)] += chances[0][first] * chances[1][second]
    return found.ravel()


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_draws_of_two_quantiles_fit_the_joint_law_of_the_sorted_answers(neighbours, monkeypatch):
    # Blocks of one row, so that draws of different blocks are put together.
    monkeypatch.setattr(quantile_rows, "BLOCK", 1)
    query = asked((0.3, 0.6), method="independent", step=0.125, epsilon=2, neighbours=neighbours)
    rows = hostile(12, seed=6)
    rows = rows[np.isfinite(rows).all(axis=1)][:4]
    values = QuantileRows.of(query, rows).sample(SeededBits(21), 30_000)
    assert values.shape == (4, 30_000, 2)
    assert (np.diff(values, axis=2) >= 0).all()
    points = np.rint(values * 8).astype(np.int64)
    assert (points / 8 == values).all()
    for place, row in enumerate(rows):
        counts = np.bincount(9 * points[place, :, 0] + points[place, :, 1], minlength=81)
        assert fits_pairs(counts, joint_chances(query, row, 9))
        # A law a little stronger or weaker is told apart, and one whose answers are not sorted.
        unlike = [replace(query, budget=sf.PureDP(epsilon)) for epsilon in (1.6, 2.5)]
        if len(np.unique(row)) > 3:
            assert not any(fits_pairs(counts, joint_chances(other, row, 9)) for other in unlike)
            assert not fits_pairs(counts, joint_chances(query, row, 9).reshape(9, 9).T.ravel())


def test_means_of_draws_are_within_their_standard_errors_of_exact_risks():
    rows = np.random.default_rng(8).random((50, 200))
    found = QuantileRows.of(asked((0.25,)), rows)
    off = np.abs(found.sample(SeededBits(9), 400)[:, :, 0] - found.truth)
    for risk, losses in (("squared", off**2), ("absolute", off)):
        apart = losses.mean(axis=1) - found.exact(risk)
        error = losses.std(axis=1, ddof=1) / 20
        assert abs(apart.mean()) < 6.2 * np.sqrt((error**2).mean() / 50)


@pytest.mark.parametrize(
    ("lower", "upper", "cells"),
    [
        (0, 1, 2**32),
        (0.1, 0.7, 2**32),
        (-3, 8, 77),
        ("1e-9", "3e-9", 2**20),
        (0, Fraction(1, 2**300), 999),
        (0, "1e100", 1000),
    ],
)
def test_values_are_the_floats_that_the_product_releases(lower, upper, cells):
    grid = Grid(Fraction(lower), Fraction(upper), cells=cells)
    points = np.unique(np.random.default_rng(2).integers(0, cells, 500))
    assert _values(grid, points[None]).tolist() == [[float(grid.value(int(point))) for point in points]]


def test_the_same_bits_give_the_same_draws():
    rows = np.random.default_rng(8).random((50, 200))
    found = QuantileRows.of(asked((0.25, 0.5), method="independent"), rows)
    assert np.array_equal(found.sample(SeededBits(9), 3), found.sample(SeededBits(9), 3))
