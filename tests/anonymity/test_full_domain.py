"""The search for the best levels, against all levels by definition, and mutants of its pruning."""

from fractions import Fraction
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.anonymity.lattices import GOALS, HIERARCHIES, LIMITS, OTHER, QUASI, Definition, random_table

from sfumato.anonymity import full_domain as searching
from sfumato.anonymity.full_domain import METRICS, full_domain
from sfumato.anonymity.goals import Checker, DistinctDiversity, EntropyDiversity, KAnonymity
from sfumato.anonymity.hierarchies import Prefix, Ranges
from sfumato.anonymity.lattice import Lattice
from sfumato.anonymity.rows import rows_of
from sfumato.anonymity.utility import utility
from sfumato.errors import InvalidParameter


def found_levels(table, hierarchies, goals, limit, metric):  # type: ignore[no-untyped-def]
    rows = rows_of(table, QUASI, ["ill"])
    try:
        return full_domain(rows, hierarchies, goals, suppression=limit, metric=metric).levels
    except InvalidParameter as error:
        if "must be within reach" not in str(error):
            raise
        return None


def differs(seeds, goals=tuple(GOALS), metrics=METRICS, limits=LIMITS) -> bool:  # type: ignore[no-untyped-def]
    """Whether the search once does not find what the definition finds."""
    for seed in seeds:
        table = random_table(seed)
        hierarchies = HIERARCHIES if seed % 3 else OTHER
        definition = Definition(table, hierarchies)
        for name, limit, metric in product(goals, limits, metrics):
            best = definition.best(GOALS[name], limit, metric)
            if found_levels(table, hierarchies, GOALS[name], limit, metric) != best:
                return True
    return False


@pytest.mark.parametrize("name", GOALS)
def test_the_best_levels_are_those_of_all_levels_looked_at(name: str) -> None:
    assert not differs(range(8), [name])


@given(
    st.integers(1000, 10**9),
    st.sampled_from(sorted(GOALS)),
    st.sampled_from(LIMITS),
    st.sampled_from(METRICS),
    st.sampled_from([HIERARCHIES, OTHER]),
)
def test_random_tables_have_the_best_levels(seed, name, limit, metric, hierarchies) -> None:  # type: ignore[no-untyped-def]
    table = random_table(seed)
    best = Definition(table, hierarchies).best(GOALS[name], limit, metric)
    assert found_levels(table, hierarchies, GOALS[name], limit, metric) == best


def test_pruning_by_goals_that_suppressed_rows_can_spoil_is_noticed() -> None:
    with patch.object(Lattice, "closed", True):
        assert differs(range(12), ["entropy", "recursive", "equal closeness"])
        # Where it is valid it changes nothing.
        assert not differs(range(4), ["k2", "distinct"])
        assert not differs(range(4), ["entropy", "recursive"], limits=[Fraction(0)])


def test_looking_at_minimal_levels_alone_is_noticed() -> None:
    class Minimal(searching._Search):
        def __init__(self, lattice, metric) -> None:  # type: ignore[no-untyped-def]
            super().__init__(lattice, metric)
            self.rising = True

    with patch.object(searching, "_Search", Minimal):
        assert differs(range(20), ["k2", "k3"], ["discernibility"])
        assert differs(range(60), ["k2", "k3"], ["loss"])
        assert not differs(range(4), ["k2"], ["height"])


def test_a_bound_that_counts_suppressed_rows_is_noticed() -> None:
    class Wrong(searching._Search):
        def _look(self, node) -> bool:  # type: ignore[no-untyped-def]
            serves = super()._look(node)
            judged = self.lattice.judged(node)
            above = tuple(slice(level, None) for level in node)
            np.maximum(self.bound[above], judged.discernibility, out=self.bound[above])
            return serves

    with patch.object(searching, "_Search", Wrong):
        assert differs(range(8), ["k2", "k3"], ["discernibility"])


def test_one_row_more_than_the_limit_is_noticed() -> None:
    class Generous(Lattice):
        def serves(self, judged) -> bool:  # type: ignore[no-untyped-def]
            return judged.suppressed <= self.most + 1 and judged.suppressed < self.rows.n

    with patch.object(searching, "Lattice", Generous):
        assert differs(range(8), ["k2"])


@given(st.integers(0, 10**9), st.sampled_from(sorted(GOALS)), st.sampled_from(LIMITS[:-1]))
def test_every_class_meets_the_goals_and_the_order_of_rows_does_not_matter(
    seed: int, name: str, limit: Fraction
) -> None:
    table = random_table(seed, most=40)
    rows = rows_of(table, QUASI, ["ill"])
    try:
        found = full_domain(rows, HIERARCHIES, GOALS[name], suppression=limit)
    except InvalidParameter:
        return
    kept = found.classes[found.classes >= 0]
    assert np.unique(kept).tolist() == list(range(found.count))
    assert found.suppressed <= limit * rows.n
    assert Checker(rows, GOALS[name]).met(found.classes, found.count).all()
    assert len(set(zip(*found.labels, strict=True))) == found.count
    order = np.random.default_rng(seed).permutation(rows.n)
    mixed = {name: [column[i] for i in order] for name, column in table.items()}
    again = full_domain(rows_of(mixed, QUASI, ["ill"]), HIERARCHIES, GOALS[name], suppression=limit)
    assert (again.levels, again.labels) == (found.levels, found.labels)
    assert again.classes.tolist() == found.classes[order].tolist()


def larger() -> dict[str, np.ndarray]:
    r = np.random.default_rng(7)
    n = 3000
    return {
        "age": r.integers(18, 90, n),
        "sex": r.integers(0, 2, n),
        "zip": 75000 + r.geometric(0.05, n),
        "hours": np.clip(r.normal(40, 12, n).astype(int), 0, 99),
        "ill": r.integers(0, 6, n),
    }


WIDE = {"age": Ranges(width=5, levels=3), "zip": Prefix(width=5), "hours": Ranges(width=10, levels=2)}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("goals", [[KAnonymity(5)], [KAnonymity(5), EntropyDiversity("ill", 2.5)]])
def test_on_a_larger_table_the_search_finds_the_best_of_all_levels_and_skips_many(goals, metric) -> None:  # type: ignore[no-untyped-def]
    rows = rows_of(larger(), ["age", "sex", "zip", "hours"], ["ill"])
    lattice = Lattice(rows, WIDE, goals, Fraction(3, 100))
    every = [lattice.judged(node) for node in product(*(range(h + 1) for h in lattice.heights))]
    serving = [one for one in every if one.suppressed <= 90]
    value = {
        "loss": lambda one: one.loss,
        "discernibility": lambda one: one.discernibility,
        "height": lambda one: sum(one.node),
    }[metric]
    looked = []

    class Counting(Lattice):
        def judged(self, node):  # type: ignore[no-untyped-def]
            looked.append(node)
            return super().judged(node)

    with patch.object(searching, "Lattice", Counting):
        found = full_domain(rows, WIDE, goals, suppression=0.03, metric=metric)
    best = next(one for one in every if one.node == found.levels)
    assert value(best) == pytest.approx(min(map(value, serving)), rel=1e-12)
    assert found.suppressed == best.suppressed
    assert len(set(looked)) == len(looked) < 0.6 * len(every)


def test_what_levels_lose_is_what_their_classes_lose_however_counts_were_added_up() -> None:
    rows = rows_of(larger(), ["age", "sex", "zip", "hours"], ["ill"])
    lattice = Lattice(rows, WIDE, [KAnonymity(4), DistinctDiversity("ill", 3)], 0)
    r = np.random.default_rng(3)
    for _ in range(60):
        node = tuple(int(r.integers(0, height + 1)) for height in lattice.heights)
        judged, partition = lattice.judged(node), lattice.partition(node)
        lost = utility(rows, partition)
        assert judged.suppressed == partition.suppressed
        assert judged.loss == pytest.approx(lost.gcp, rel=1e-12)
        assert judged.discernibility == lost.discernibility


def test_settings_out_of_reach_are_refused_without_a_word_of_the_data() -> None:
    rows = rows_of({"age": [1, 2, 3]}, ["age"])
    with pytest.raises(InvalidParameter, match=r"within reach .* suppression=0.25 no levels meet them"):
        full_domain(rows, {}, [KAnonymity(4)], suppression=0.25)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"suppression": 1.5}, r"suppression must be in \[0, 1\], got suppression=1.5"),
        ({"suppression": -1}, r"suppression must be in \[0, 1\]"),
        ({"metric": "beauty"}, "metric must be one of 'loss', 'discernibility', 'height'"),
    ],
)
def test_options_are_checked(options: dict, words: str) -> None:
    rows = rows_of({"age": [1, 2, 3]}, ["age"])
    with pytest.raises(InvalidParameter, match=words):
        full_domain(rows, {}, [KAnonymity(2)], **options)


def test_hierarchies_of_other_columns_and_too_many_levels_are_refused() -> None:
    names = ["a", "b", "c", "d"]
    rows = rows_of({name: [1, 2, 3] for name in names}, names)
    with pytest.raises(InvalidParameter, match="quasi-identifiers, got 'z'"):
        full_domain(rows, {"z": Ranges(width=1)}, [KAnonymity(2)])
    with pytest.raises(InvalidParameter, match="at most 200000 combinations of levels, got 234256"):
        full_domain(rows, {name: Ranges(width=1, levels=20) for name in names}, [KAnonymity(2)])
