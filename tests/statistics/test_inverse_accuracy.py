"""What means and proportions drawn from weights answer, and how often their intervals hold: exactly."""

import bisect
import json
import math
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy.stats import binom
from tests.statistics.drawn_whole import (
    BOUNDS,
    HIGH,
    KINDS,
    LOW,
    PUBLIC,
    RECALIBRATED,
    chances_of,
    every_kind,
    law_of,
    query,
    truth_of,
)

import sfumato as sf
from sfumato.audit import worst_case
from sfumato.data.counts import Sums
from sfumato.errors import InvalidParameter
from sfumato.laws import SeededBits
from sfumato.privacy import Amount
from sfumato.quantile_methods import read_query
from sfumato.query import parameters, raw
from sfumato.statistics import inverse_mean

# --- answers ------------------------------------------------------------------------------------

DATA = {
    "one row": [3.3],
    "two rows": [-9.0, 99.0],
    "constant": [3.0] * 12,
    "all at the lower bound": [LOW] * 12,
    "all at the upper bound": [HIGH] * 12,
    "half at each end": [LOW, HIGH] * 6,
    "one away": [LOW, *[HIGH] * 11],
    "near the upper bound": [LOW, *[HIGH - 0.01] * 11],
    "spread": np.linspace(-4, 12, 20).tolist(),
    "with nulls": [math.nan, 1.0, 5.0, math.inf, -math.inf],
}


@every_kind
@pytest.mark.parametrize("data", DATA)
def test_intervals_and_errors_hold_as_often_as_they_promise(kind, data):
    values = DATA[data]
    for epsilon in (0.05, 1, 4, 30, 1000):
        asked = query(kind, rows=len(values), budget=sf.PureDP(epsilon))
        truth, (answers, chances) = truth_of(asked, values), chances_of(asked, values)
        for confidence in (0.3, 0.5, 0.95, 0.999):
            error = asked.error(len(values), confidence) + 1e-12
            assert chances[np.abs(answers - truth) <= error].sum() >= confidence - 1e-9
            first, last = covering(asked, truth, confidence)
            assert chances[first : last + 1].sum() >= confidence - 1e-9


def covering(asked: Any, truth: float, confidence: float) -> tuple[int, int]:
    """The first and the last outcome whose interval holds the truth; both ends of intervals increase."""

    def end(side: int) -> Any:
        return lambda k: asked.interval((k,), confidence)[side]

    # NumPy's truth has its own rounding, far below a step of the lattice.
    first = bisect.bisect_left(range(asked.last + 1), truth - 1e-12, key=end(1))
    return first, bisect.bisect_right(range(asked.last + 1), truth + 1e-12, key=end(0)) - 1


def asked_low(asked: Any) -> float:
    return 0.0 if isinstance(asked, sf.InverseProportion) else LOW


def asked_high(asked: Any) -> float:
    return 1.0 if isinstance(asked, sf.InverseProportion) else HIGH


def test_capped_levels_are_private_and_their_error_still_holds():
    with patch.object(inverse_mean, "MOST_LEVELS", 3):
        asked = sf.InverseMean(budget=sf.PureDP(0.97), bounds=BOUNDS, points=60, **PUBLIC)
        assert worst_case(asked, size=4, cells=3).loss.holds
        for values in ([3.0] * 30, [LOW, HIGH] * 15):
            sized = query((sf.InverseMean, {"bounds": BOUNDS}), rows=30, budget=sf.PureDP(4.03))
            assert len(sized.table(30)) == 4
            answers, chances = chances_of(sized, values)
            for confidence in (0.3, 0.5, 0.8, 0.95):
                error = sized.error(30, confidence) + 1e-12
                held = chances[np.abs(answers - truth_of(sized, values)) <= error].sum()
                assert held >= confidence - 1e-9


def test_the_error_is_not_wasteful():
    size, wide = 400, HIGH - LOW
    ends = [LOW, HIGH] * (size // 2)
    for make in (sf.InverseMean, sf.ExponentialMean):
        asked = query((make, {"bounds": BOUNDS}), rows=size)
        answers, chances = chances_of(asked, ends)
        reached = chances[np.abs(answers - truth_of(asked, ends)) <= asked.error(size, 0.95) * 0.85].sum()
        assert reached < 0.95
        # Twice the error of Laplace noise on the sum, in the worst case: 2 log(20) / (n epsilon).
        assert asked.error(size, 0.95) <= 2.1 * math.log(20) / size * wide
    share = query(KINDS["inverse proportion"], rows=size)
    answers, chances = chances_of(share, [1.0, 9.0] * (size // 2))
    assert chances[np.abs(answers - 0.5) < share.error(size, 0.95) - 1e-9].sum() < 0.95


@every_kind
def test_an_enormous_budget_gives_the_answer_and_a_tiny_one_gives_any(kind):
    values = np.linspace(-7, 17, 200) ** 3 / 300
    values[::9] = np.nan
    asked = query(kind, rows=200, budget=sf.PureDP(10**6))
    cell = asked_high(asked) - asked_low(asked)
    radius = {"radius": 0, **kind[1]}["radius"]
    away = radius / 200 if isinstance(asked, sf.InverseProportion) else radius or 0
    found = asked.value(raw(law_of(asked, values).sample(SeededBits(3))))
    smooth = 0.02 if kind[1].get("radius", 0) is None else 0
    assert abs(found - truth_of(asked, values)) <= away + cell / asked.last + smooth + 1e-6
    tiny = query(kind, rows=200, budget=sf.PureDP(1e-12))
    drawn = [tiny.value(raw(law_of(tiny, values).sample(SeededBits(seed)))) for seed in range(40)]
    assert max(drawn) - min(drawn) > 0.6 * cell
    assert tiny.error(200, 0.95) == pytest.approx(cell, rel=0.06)


@every_kind
def test_draws_are_those_of_the_law(kind):
    values = DATA["spread"]
    asked = query(kind, rows=len(values), budget=sf.PureDP(2))
    draws = law_of(asked, values).sample(SeededBits(8), 20_000)
    answers, chances = chances_of(asked, values)
    # The distance of distribution functions, at the level of one false alarm in 10^9.
    seen = np.cumsum(np.bincount(draws, minlength=len(answers))) / len(draws)
    assert np.abs(seen - np.cumsum(chances)).max() <= math.sqrt(math.log(2e9) / 2 / len(draws))
    wrong = query(kind, rows=len(values), budget=sf.PureDP(1))
    assert np.abs(seen - np.cumsum(chances_of(wrong, values)[1])).max() > 0.03


@every_kind
def test_a_release_is_stored_and_read_back(kind):
    make, own = kind
    data = sf.Dataset({"x": np.linspace(-3, 11, 60)}, unit="row", neighbours="substitution")
    with sf.Session(data, budget=sf.PureDP(1)) as session:
        release = session.answer(make(column="x", budget=sf.PureDP(1), nulls="upper", **own))
        assert session.spent == Amount.of(sf.PureDP(1))
    assert sf.read_release(release.to_json()) == release
    stored = json.loads(json.dumps(parameters(release.query)))
    assert read_query(release.query.name, stored) == release.query
    assert hash(read_query(release.query.name, stored)) == hash(release.query)
    assert "points" in release.method or "counts" in release.method
    low, high = release.interval(0.95)
    wide_low, wide_high = release.population_interval(0.95)
    assert wide_low <= low <= release.value <= high <= wide_high
    assert not release.query.possible((-1,))
    assert not release.query.possible((release.query.last + 1,))
    assert not release.query.possible((0, 0))


@pytest.mark.parametrize("chance", [0.0, 0.003, 0.1, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("epsilon", [0.2, 1, 1e6])
def test_the_population_share_is_covered_exactly(chance, epsilon):
    rows = 25
    for kind in (KINDS["inverse proportion, smooth"], RECALIBRATED["inverse proportion, recalibrated"]):
        asked = query(kind, rows=rows, budget=sf.PureDP(epsilon))
        found = np.arange(rows + 1)
        ends = [asked.population_interval((int(k),), 0.9) for k in found]
        covered = np.array([low <= chance <= high for low, high in ends])
        laws = [np.exp(asked.law(Sums(rows, int(matches))).logpmf(found)) for matches in found]
        coverage = binom.pmf(found, rows, chance) @ [law[covered].sum() for law in laws]
        assert coverage >= 0.9


@every_kind
def test_the_error_shrinks_with_epsilon_with_rows_and_with_doubt(kind):
    for budget in (sf.PureDP, lambda e: sf.ZCDP(e**2 / 2)):
        if "recalibrated" in kind[1] and budget is not sf.PureDP:
            continue
        errors = [query(kind, rows=10**6, budget=budget(e)).error(10**6, 0.95) for e in (0.01, 1, 50)]
        assert errors == sorted(errors, reverse=True)
        asked = query(kind, rows=10**6, budget=budget(1))
        assert asked.error(10**6, 0.5) <= asked.error(10**6, 0.999)
        sizes = [asked.error(rows, 0.95) for rows in (0, 1, 100, 10**4, 10**6)]
        assert sizes == sorted(sizes, reverse=True)
        assert max(sizes) <= (asked_high(asked) - asked_low(asked)) * (1 + 1e-12)
    with pytest.raises(InvalidParameter, match=r"^confidence must be"):
        query(kind, rows=5).error(5, 1)


@every_kind
def test_equal_public_facts_leave_equal_traces_whatever_the_values(kind):
    make, own = kind
    traces = []
    for values in ([1.0, 2.0, 3.0], [math.nan] * 3, [math.inf, -math.inf, 5e-324], [1e308, -1e308, -0.0]):
        data = sf.Dataset({"x": np.array(values)}, unit="row", neighbours="substitution")
        release = sf.Session(data, budget=sf.PureDP(1)).answer(
            make(column="x", budget=sf.PureDP(1), nulls="upper", **own)
        )
        traces.append((release.event, release.cost, release.method, release.query, len(release.outcome)))
        assert math.isfinite(release.value)
    assert all(trace == traces[0] for trace in traces)


def test_a_billion_rows_cost_no_more_than_a_few():
    rows = 10**9
    share = sf.InverseProportion(budget=sf.PureDP(0.5), rows=rows, recalibrated=True, **PUBLIC)
    drawn = share.law(Sums(rows, rows // 3)).sample(SeededBits(4))
    assert abs(drawn - rows // 3) < 200
    mean = sf.ExponentialMean(budget=sf.PureDP(0.5), bounds=(0, 1), rows=rows, **PUBLIC)
    total = mean.lattice.low * rows + mean.lattice.width * (rows // 4)
    assert mean.value((mean.law(Sums(rows, total)).sample(SeededBits(5)),)) == pytest.approx(0.25, abs=1e-6)


def test_noise_that_hides_the_answer_is_noted():
    for kind in KINDS.values():
        hidden = query(kind, rows=200, budget=sf.PureDP(1e-4))
        assert "dominated by noise" in " ".join(hidden.notes((0,)))
        clear = query(kind, rows=10**5, budget=sf.PureDP(10))
        assert "dominated by noise" not in " ".join(clear.notes((clear.last // 2,)))
