"""Threads that share a data set or the caches of laws: everyone gets the answer to their own question.

Switching threads after every microsecond, and starting them at a barrier, makes a race of two likely.
"""

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from threading import Barrier

import numpy as np
import pytest
from tests.engines import ENGINES, HEAVY, LIGHT

import sfumato as sf
from sfumato.laws import SeededBits

THREADS = 4
ROWS = 64
# Noise that is nought but for a chance of e^-100000.
EXACT = sf.PureDP(10**5)
CAP = sf.PureDP(10**9)
# How many rounds each takes: those of SQL are slower.
TRIALS = {"numpy": 150, "polars": 50, "pyarrow": 50, "polars lazy": 25, "duckdb": 4} | dict.fromkeys(HEAVY, 2)
EVERY = [
    pytest.param(name, marks=[pytest.mark.spark] if name in HEAVY else [])
    for name in ("numpy", "polars", "pyarrow", *LIGHT, *HEAVY)
]


@pytest.fixture(autouse=True)
def quick_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(*tasks):
    """What all tasks give, each in a thread of its own, begun together."""
    barrier = Barrier(len(tasks))

    def run(task):
        barrier.wait()
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(run, tasks))


def table(engine):
    return ENGINES[engine](
        {
            "x": ("integer", list(range(ROWS))),
            "id": ("integer", [place % 2 for place in range(ROWS)]),
            "g": ("text", ["ab"[place % 4 // 2] for place in range(ROWS)]),
        }
    )


def dataset(engine, **options):
    schema = {"x": sf.Field(bounds=(0, ROWS)), "g": sf.Field(categories=("a", "b"))}
    return sf.Dataset(
        table(engine), **{"unit": "row", "neighbours": "add-remove", "schema": schema, **options}
    )


@pytest.mark.parametrize("engine", EVERY)
def test_every_thread_gets_the_answer_to_its_own_filter(engine):
    filters = list(warnings.filters)
    count = sf.Count(column="x", budget=EXACT)
    for trial in range(TRIALS[engine]):
        with sf.Session(dataset(engine), budget=CAP) as session:

            def asked(place, session=session, trial=trial):
                least = (7 * trial + 13 * place) % ROWS
                return ROWS - least - session.answer(count, where=sf.col("x") >= least).value

            assert at_once(*(lambda place=place: asked(place) for place in range(THREADS))) == [0] * THREADS
    assert warnings.filters == filters


@pytest.mark.parametrize("engine", EVERY)
@pytest.mark.parametrize("by", [(), ("g",)])
def test_rows_and_groups_of_units_are_chosen_once_for_all_threads(engine, by):
    options = {"unit": "id", "rows_per_unit": 4, "groups_per_unit": 1}
    query = sf.Sum(column="x", budget=EXACT)
    for _ in range(max(TRIALS[engine] // 5, 2)):
        with sf.Session(dataset(engine, **options), budget=CAP) as session:

            def asked(session=session):
                if not by:
                    return round(session.answer(query).value)
                parts = session.answer_by(query, by).releases.values()
                return tuple(round(part.value) for part in parts)

            assert len(set(at_once(*[asked] * THREADS))) == 1


def clear_caches():
    for name, module in list(sys.modules.items()):
        if name.startswith("sfumato"):
            for function in vars(module).values():
                if hasattr(function, "cache_clear"):
                    function.cache_clear()


VALUES = np.arange(200) % 37


def _mean(place):
    budget = sf.ZCDP(Fraction(1 + place, 10))
    return sf.Mean(column="x", bounds=(0, 40), noise="gaussian", budget=budget)


LAWS = {
    "gaussian": _mean,
    "laplace": lambda place: sf.Sum(column="x", bounds=(0, 40 + place), budget=sf.PureDP(1)),
    "histogram": lambda place: sf.Histogram(column="x", bins=4 + place, bounds=(0, 40), budget=sf.PureDP(1)),
    "median": lambda place: sf.Quantiles(
        column="x", probs=(0.5,), bounds=(0, 40 + place), budget=sf.PureDP(1)
    ),
    "quartiles": lambda place: sf.Quantiles(
        column="x", probs=(0.25, 0.75), bounds=(0, 40 + place), budget=sf.PureDP(10)
    ),
}


@pytest.mark.parametrize("law", LAWS)
def test_caches_of_laws_and_of_accuracy_give_every_thread_its_own(law):
    def asked(place):
        data = sf.Dataset({"x": VALUES}, unit="row", neighbours="add-remove")
        query = LAWS[law](place)
        with sf.Session(data, budget=query.budget, bits=SeededBits(place)) as session:
            return session.preview(query, rows=200).error, session.answer(query).outcome

    alone = [repr(asked(place)) for place in range(THREADS)]
    for _ in range(2):
        clear_caches()
        together = at_once(*(lambda place=place: repr(asked(place)) for place in range(THREADS)))
        assert together == alone


def test_keys_that_the_data_hold_are_counted_alike_in_all_threads():
    count = sf.Count(column="x", budget=sf.ApproxDP(10**4, Fraction(1, 10)))
    for trial in range(20):
        with sf.Session(dataset("numpy"), budget=sf.ApproxDP(10**6, Fraction(1, 2))) as session:

            def asked(place, session=session, trial=trial):
                least = 4 * ((trial + place) % 8)
                answered = session.answer_by(
                    count, ["g"], groups=sf.Groups(keys="private"), where=sf.col("x") >= least
                )
                rest = (ROWS - least) // 2
                return [(key, rest - round(part.value)) for key, part in answered.releases.items()]

            found = at_once(*(lambda place=place: asked(place) for place in range(THREADS)))
            assert found == [[(("a",), 0), (("b",), 0)]] * THREADS
