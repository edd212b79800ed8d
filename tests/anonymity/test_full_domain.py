"""The search for the best levels, against all levels by definition, and mutants of its pruning."""

from fractions import Fraction
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.anonymity import definitions
from tests.anonymity.lattices import GOALS, HIERARCHIES, LIMITS, OTHER, QUASI, Definition, random_table

from sfumato.anonymity import full_domain as searching
from sfumato.anonymity.full_domain import METRICS, full_domain
from sfumato.anonymity.goals import (
    Checker,
    Closeness,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    RecursiveDiversity,
)
from sfumato.anonymity.hierarchies import Prefix, Ranges
from sfumato.anonymity.lattice import Lattice
from sfumato.anonymity.measures import measures_of
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
    with patch.object(Lattice, "lasting", property(lambda lattice: lattice.checker)):
        assert differs(range(12), ["entropy", "recursive", "equal closeness"])
        assert differs(range(40), ["k and entropy", "all"])
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
        def _barred(self, node) -> bool:  # type: ignore[no-untyped-def]
            barred = super()._barred(node)
            judged = self.lattice.judged(node)
            above = tuple(slice(level, None) for level in node)
            np.maximum(self.bound[above], judged.discernibility, out=self.bound[above])
            return barred

    with patch.object(searching, "_Search", Wrong):
        assert differs(range(8), ["k2", "k3"], ["discernibility"])


def test_one_row_more_than_the_limit_is_noticed() -> None:
    class Generous(Lattice):
        def serves(self, suppressed: int) -> bool:
            return suppressed <= self.most + 1 and suppressed < self.rows.n

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


def test_counts_that_are_held_to_start_from_have_a_limit_with_their_sensitive_values() -> None:
    r = np.random.default_rng(1)
    table = {"a": r.integers(0, 8, 2000), "b": r.integers(0, 4, 2000), "s": r.permutation(2000)}
    hierarchies = {"a": Ranges(width=2, levels=3), "b": Ranges(width=2, levels=2)}
    lattice = Lattice(rows_of(table, ["a", "b"], ["s"]), hierarchies, [DistinctDiversity("s", 2)], 0.1)
    for node in product(*(range(height + 1) for height in lattice.heights)):
        lattice.judged(node)
        assert sum(held.entries for held in lattice._held.values()) <= 2 * lattice._finest.entries


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


def test_two_goals_are_pruned_by_the_one_that_allows_it() -> None:
    # Rows in classes below k never grow in number with the levels, whatever entropy makes of the others.
    rows = rows_of(larger(), ["age", "sex", "zip", "hours"], ["ill"])
    goals = [KAnonymity(5), EntropyDiversity("ill", 2.5)]
    looked: list[tuple[int, ...]] = []

    class Counting(Lattice):
        def judged(self, node):  # type: ignore[no-untyped-def]
            looked.append(node)
            return super().judged(node)

    with patch.object(searching, "Lattice", Counting):
        for metric in METRICS:
            full_domain(rows, WIDE, goals, suppression=0.03, metric=metric)
        pruned = len(looked)
        looked.clear()
        with patch.object(Lattice, "lasting", property(lambda lattice: Checker(lattice.rows, []))):
            for metric in METRICS:
                full_domain(rows, WIDE, goals, suppression=0.03, metric=metric)
    assert 2 * pruned < len(looked)


@pytest.mark.parametrize("name", GOALS)
@pytest.mark.parametrize("limit", LIMITS)
def test_what_is_barred_never_grows_with_the_levels_and_the_bounds_never_fall(name, limit) -> None:  # type: ignore[no-untyped-def]
    for seed in range(3):
        table = random_table(seed)
        lattice = Lattice(rows_of(table, QUASI, ["ill"]), HIERARCHIES, GOALS[name], limit)
        nodes = list(product(*(range(h + 1) for h in lattice.heights)))
        judged = {node: lattice.judged(node) for node in nodes}
        for node, low in judged.items():
            assert low.barred <= low.suppressed
            assert low.pairs <= low.discernibility
            means = sum(column[level] for column, level in zip(lattice.mean_losses, node, strict=True))
            assert means / len(node) <= low.loss + 1e-12
            for j in range(len(node)):
                high = judged.get(tuple(level + (i == j) for i, level in enumerate(node)))
                if high is not None:
                    assert low.pairs <= high.pairs
                    if lattice.most:
                        assert high.barred <= low.barred
                    else:
                        assert low.barred or not high.barred


@st.composite
def any_table(draw):  # type: ignore[no-untyped-def]
    """One to ten columns of few values, with nulls, ties and columns of one value."""
    width, n = draw(st.integers(1, 10)), draw(st.integers(1, 30))
    columns = {}
    for j in range(width):
        values = draw(
            st.sampled_from([[0], [None], [0, 1], [0.5, -1.5, None], ["", "b", None], ["a"], [True, False]])
        )
        columns[f"q{j}"] = draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))
    columns["s"] = draw(st.lists(st.sampled_from([1, 2, None]), min_size=n, max_size=n))
    return columns


MIXED = [
    [KAnonymity(3)],
    [KAnonymity(2), DistinctDiversity("s", 2)],
    [EntropyDiversity("s", 1.8)],
    [RecursiveDiversity("s", c=2, l=2)],
    [KAnonymity(2), Closeness("s", t=0.3)],
]


@settings(max_examples=40)
@given(any_table(), st.sampled_from(MIXED), st.sampled_from(LIMITS), st.sampled_from(METRICS), st.randoms())
def test_columns_of_any_number_have_the_best_levels(table, goals, limit, metric, random) -> None:  # type: ignore[no-untyped-def]
    quasi = [name for name in table if name != "s"]
    rows = rows_of(table, quasi, ["s"])
    checker = Checker(rows, goals)
    best = None
    for node in product((0, 1), repeat=len(quasi)):
        shown = [
            tuple("*" if level else table[name][i] for level, name in zip(node, quasi, strict=True))
            for i in range(rows.n)
        ]
        place = {cells: c for c, cells in enumerate(dict.fromkeys(shown))}
        classes = np.array([place[cells] for cells in shown])
        sizes = np.bincount(classes)
        met = checker.met(classes, len(place))
        gone = int(sizes[~met].sum())
        if gone > limit * rows.n or gone == rows.n:
            continue
        loss = round((sum(node) * (rows.n - gone) + len(quasi) * gone) / (len(quasi) * rows.n), 10)
        value = {
            "loss": loss,
            "discernibility": int((sizes[met] ** 2).sum()) + rows.n * gone,
            "height": sum(node),
        }
        key = (value[metric], loss, gone, node)
        best = key if best is None or key < best else best
    order = list(range(rows.n))
    random.shuffle(order)
    mixed = rows_of({name: [column[i] for i in order] for name, column in table.items()}, quasi, ["s"])
    if best is None:
        with pytest.raises(InvalidParameter, match="within reach"):
            full_domain(rows, {}, goals, suppression=limit, metric=metric)
        return
    found = full_domain(rows, {}, goals, suppression=limit, metric=metric)
    assert found.levels == best[-1]
    assert found.suppressed == best[2]
    assert found.n == rows.n
    assert set(found.classes.tolist()) - {-1} == set(range(found.count))
    assert checker.met(found.classes, found.count).all()
    again = full_domain(mixed, {}, goals, suppression=limit, metric=metric)
    assert (again.levels, again.labels) == (found.levels, found.labels)
    assert again.classes.tolist() == found.classes[order].tolist()


def test_closeness_is_to_the_whole_table_and_not_to_the_rows_that_are_kept() -> None:
    # 60 % of all rows have the value 1, and 75 % of class "a". Class "b", all of that value, is suppressed:
    # of the rows that are left 50 % have it, and "a" is farther from these than t.
    counts = {"a": (3, 1), "b": (4, 0), "c": (5, 7)}
    pairs = [(q, s) for q, (ones, twos) in counts.items() for s in [1] * ones + [2] * twos]
    table = {"q": [q for q, _ in pairs], "s": [s for _, s in pairs]}
    rows = rows_of(table, ["q"], ["s"])
    found = full_domain(rows, {}, [Closeness("s", t=0.2)], suppression=0.2)
    assert found.labels == (("a", "c"),)
    assert definitions.equal_distance(counts["a"], (12, 8)) == Fraction(3, 20)
    assert measures_of(rows, found.classes, found.count).column("s").closeness == 0.25


def test_ties_of_losses_that_no_float_holds_go_to_fewer_suppressed_rows() -> None:
    # A third of the cells is lost either way: by the row that is alone, or by the column that tells it.
    rows = rows_of({"a": [1, 1, 2], "b": [0, 0, 0], "c": [0, 0, 0]}, ["a", "b", "c"])
    assert full_domain(rows, {}, [KAnonymity(2)], suppression=Fraction(1, 3)).levels == (1, 0, 0)
