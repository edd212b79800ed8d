"""Measures of random tables against their definitions in fractions, and what wrong ones would say."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from tests.anonymity import definitions
from tests.anonymity.random_tables import QUASI, SENSITIVE, random_table

from sfumato.anonymity import (
    Closeness,
    DistinctDiversity,
    EntropyDiversity,
    RecursiveDiversity,
    Risk,
    measure,
)
from sfumato.anonymity.goals import Checker
from sfumato.anonymity.measures import measures_of
from sfumato.anonymity.partition import as_it_is
from sfumato.anonymity.rows import rows_of
from sfumato.errors import InvalidParameter

SEEDS = range(80)


def by_definition(table, quasi, column):
    """Every measure of a sensitive column from fractions; logarithms at the very end."""
    by_class, total = definitions.sensitive_counts(table, quasi, column)
    p = definitions.shares(total)
    ratios = [[q / each for q, each in zip(definitions.shares(c), p, strict=True)] for c in by_class]
    gains = [ratio - 1 for row in ratios for ratio in row]
    beta = max(gains)
    possible = all(
        ratio - 1 <= -math.log(each)
        for row in ratios
        for ratio, each in zip(row, p, strict=True)
        if ratio > 1
    )
    logs = [abs(math.log(ratio)) for row in ratios for ratio in row if ratio]
    least = min(definitions.distinct(c) for c in by_class)
    entropies = [-sum(q * math.log(q) for q in map(float, definitions.shares(c)) if q) for c in by_class]
    return {
        "distinct": least,
        "entropy": math.exp(min(entropies)),
        "recursive": {
            place: max(Fraction(max(c), sum(sorted(c, reverse=True)[place - 1 :])) for c in by_class)
            for place in range(2, least + 1)
        },
        "closeness_ordered": max(definitions.ordered_distance(c, total) for c in by_class),
        "closeness_equal": max(definitions.equal_distance(c, total) for c in by_class),
        "alpha": max(Fraction(max(c), sum(c)) for c in by_class),
        "basic_beta": beta,
        "enhanced_beta": beta if possible else math.inf,
        "delta": max(logs) if all(ratio for row in ratios for ratio in row) else math.inf,
        "delta_present": max(logs),
    }


def near(found, expected):
    """Equal to the rounding of float64."""
    return found == pytest.approx(float(expected), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("nulls", [False, True])
def test_measures_are_their_definitions(nulls):
    for seed in SEEDS:
        table = random_table(seed, nulls=nulls)
        found = measure(table, quasi=QUASI, sensitive=SENSITIVE)
        sizes = [len(rows) for rows in definitions.classes(table, QUASI).values()]
        assert (found.rows, found.classes, found.k) == (sum(sizes), len(sizes), min(sizes))
        assert dict(found.histogram) == {size: sizes.count(size) for size in set(sizes)}
        for name in SENSITIVE:
            column, expected = found.column(name), by_definition(table, QUASI, name)
            assert column.distinct == expected.pop("distinct")
            assert [place for place, _ in column.recursive] == list(expected["recursive"])
            assert all(near(c, expected["recursive"][place]) for place, c in column.recursive)
            expected.pop("recursive")
            # Text has no order; a column of nulls alone neither.
            if name == "tree" or column.closeness_ordered is None:
                assert column.closeness_ordered is None
                expected.pop("closeness_ordered")
            for measured, value in expected.items():
                assert near(getattr(column, measured), value), (seed, name, measured)


WRONG = {
    "closeness over m": lambda found, m: {"closeness_ordered": found["closeness_ordered"] * (m - 1) / m},
    "delta of present values": lambda found, m: {"delta": found["delta_present"]},
    "enhanced as basic": lambda found, m: {"enhanced_beta": found["basic_beta"]},
    "floored entropy": lambda found, m: {"entropy": math.floor(found["entropy"])},
    "gain over the class": lambda found, m: {"basic_beta": found["basic_beta"] / (1 + found["basic_beta"])},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_measure_is_noticed(wrong):
    noticed = 0
    for seed in SEEDS:
        table = random_table(seed)
        column = measure(table, quasi=QUASI, sensitive=SENSITIVE).column("pay")
        for name, value in wrong(by_definition(table, QUASI, "pay"), len(set(table["pay"]))).items():
            noticed += not near(getattr(column, name), value)
    assert noticed > len(SEEDS) / 8


def test_values_of_the_table_in_place_of_the_class_are_noticed():
    tables = [random_table(seed) for seed in SEEDS]
    found = [measure(table, quasi=QUASI, sensitive=["pay"]).column("pay").distinct for table in tables]
    assert found != [len(set(table["pay"])) for table in tables]


def test_a_goal_at_what_was_measured_is_met_and_just_beyond_it_is_not():
    tiny = Fraction(1, 10**6)
    for seed in range(40):
        table = random_table(seed)
        rows = rows_of(table, QUASI, SENSITIVE)
        classes = as_it_is(rows)
        found = measure(table, quasi=QUASI, sensitive=SENSITIVE).column("pay")

        def all_met(goal, rows=rows, classes=classes):
            return bool(Checker(rows, [goal]).met(classes.classes, classes.count).all())

        assert all_met(DistinctDiversity("pay", found.distinct))
        assert not all_met(DistinctDiversity("pay", found.distinct + 1))
        entropy = Fraction(found.entropy)
        assert not all_met(EntropyDiversity("pay", entropy + tiny))
        assert all_met(EntropyDiversity("pay", max(entropy - tiny, Fraction(1))))
        for place, c in found.recursive:
            assert all_met(RecursiveDiversity("pay", Fraction(c) + tiny, place))
            assert not all_met(RecursiveDiversity("pay", Fraction(c) - tiny, place))
        for t, distance in ((found.closeness_ordered, "ordered"), (found.closeness_equal, "equal")):
            assert all_met(Closeness("pay", min(Fraction(t) + tiny, Fraction(1)), distance))
            assert t == 0 or not all_met(Closeness("pay", Fraction(t) - tiny, distance))


def test_the_order_of_rows_and_the_library_do_not_matter():
    rng = np.random.default_rng(3)
    for seed in range(20):
        table = random_table(seed, nulls=True)
        plain = measure(table, quasi=QUASI, sensitive=SENSITIVE)
        order = rng.permutation(plain.rows)
        mixed = pl.DataFrame(table)[order]
        assert measure(mixed, quasi=QUASI, sensitive=SENSITIVE) == plain
        assert measure(mixed.to_pandas(), quasi=QUASI, sensitive=SENSITIVE).k == plain.k


def test_suppressed_rows_count_as_not_there():
    for seed in range(30):
        table = random_table(seed)
        rows = rows_of(table, QUASI, SENSITIVE)
        partition = as_it_is(rows)
        if partition.count < 2:
            continue
        kept = partition.classes != 0
        left = {
            name: [v for v, keep in zip(values, kept, strict=True) if keep] for name, values in table.items()
        }
        expected = replace(measure(left, quasi=QUASI, sensitive=SENSITIVE), linkage=None)
        assert measures_of(rows, partition.classes - 1, partition.count - 1) == expected
    rows = rows_of({"x": [1, 2]}, ["x"])
    none = measures_of(rows, np.array([-1, -1]), 0)
    assert (none.rows, none.classes, none.k, none.risk.highest, none.risk.average) == (0, 0, 0, 0.0, 0.0)


def test_risks_are_averages_over_rows():
    for seed in SEEDS:
        table = random_table(seed)
        risk = measure(table, quasi=QUASI).risk
        sizes = [len(rows) for rows in definitions.classes(table, QUASI).values()]
        each = [Fraction(1, size) for size in sizes for _ in range(size)]
        assert near(risk.highest, max(each))
        assert near(risk.average, sum(each) / len(each))
        assert risk.uniques == sum(size == 1 for size in sizes)
        for k in (1, 2, 3, 10):
            assert near(risk.share_below(k), Fraction(sum(one > Fraction(1, k) for one in each), len(each)))
    # The mean over classes would be another number.
    assert Risk(histogram=((1, 1), (3, 1))).average == 0.5 != np.mean([1, 1 / 3])
    with pytest.raises(InvalidParameter, match="k must be"):
        Risk(histogram=((1, 1),)).share_below(0)


def test_what_is_printed_and_stored_are_the_numbers():
    table = {"x": [1, 1, 2, 2], "pay": [1, 2, 3, 3], "a<b": ["u", "v", "u", "v"]}
    found = measure(table, quasi=["x"], sensitive=["pay", "a<b"])
    stored = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert stored["k"] == 2
    assert stored["sensitive"]["pay"]["delta"] is None
    # Shares 1/2, 1/2, 0 against 1/4, 1/4, 1/2: the running differences are 1/4 and 1/2.
    assert stored["sensitive"]["pay"]["closeness_ordered"] == 0.375
    assert stored["sensitive"]["a<b"]["recursive"] == {"2": 1.0}
    assert str(found).splitlines()[0] == "4 rows in 2 classes, k = 2"
    assert "a&lt;b" in found._repr_html_()
    assert "a<b" not in found._repr_html_()


def test_a_column_that_was_not_measured_is_named_in_the_error():
    found = measure({"x": [1], "s": [2]}, quasi=["x"], sensitive=["s"])
    with pytest.raises(InvalidParameter, match=r"measured \('s'\), got 'x'"):
        found.column("x")
