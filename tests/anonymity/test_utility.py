"""What a partition loses, against definitions that go through the rows one by one."""

import json
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from tests.anonymity.random_tables import QUASI, SENSITIVE, random_table

from sfumato.anonymity.partition import Partition
from sfumato.anonymity.rows import rows_of
from sfumato.anonymity.utility import utility
from sfumato.errors import InvalidParameter


def random_partition(seed, n, columns, levels=False):
    """Classes of any rows with any losses; some rows are suppressed."""
    rng = np.random.default_rng(seed)
    raw = rng.integers(-1 if seed % 3 else 0, int(rng.integers(1, 8)), n)
    held = np.unique(raw[raw >= 0])
    classes = np.where(raw < 0, -1, np.searchsorted(held, raw)).astype(np.int32)
    losses = tuple(rng.integers(0, 9, len(held)) / 8 for _ in range(columns))
    labels = tuple(tuple(map(str, range(len(held)))) for _ in range(columns))
    heights = tuple(rng.integers(0, 5, columns).tolist()) if levels else None
    chosen = None if heights is None else tuple(int(rng.integers(0, height + 1)) for height in heights)
    return Partition(classes=classes, labels=labels, losses=losses, levels=chosen, heights=heights)


def by_definition(table, partition):
    """Each metric from the rows, one by one."""
    classes = partition.classes.tolist()
    n = len(classes)
    sizes = Counter(c for c in classes if c >= 0)
    lost = classes.count(-1)
    cells = [[Fraction(1) if c < 0 else Fraction(loss[c]) for c in classes] for loss in partition.losses]
    found = {
        "discernibility": sum(sizes[c] if c >= 0 else n for c in classes),
        "suppressed": lost,
        "classes": len(sizes),
        "average_class_size": Fraction(n - lost, len(sizes) * min(sizes.values())) if sizes else None,
        "losses": [sum(column) / n for column in cells],
        "gcp": sum(sum(column) for column in cells) / (n * len(cells)),
    }
    for name in SENSITIVE:
        modes = {}
        for c in sizes:
            counts = Counter(table[name][i] for i in range(n) if classes[i] == c)
            modes[c] = counts.most_common(1)[0][0]
        found[name] = Fraction(sum(c < 0 or table[name][i] != modes[c] for i, c in enumerate(classes)), n)
    if partition.levels is not None:
        shares = [
            Fraction(a, b) if b else 0 for a, b in zip(partition.levels, partition.heights, strict=True)
        ]
        found["precision"] = 1 - Fraction(sum(1 if c < 0 else sum(shares) / len(shares) for c in classes)) / n
    return found


def cases():
    """Tables with partitions of their rows."""
    for seed in range(120):
        table = random_table(seed)
        yield table, random_partition(seed, len(table["age"]), 2, levels=seed % 2 == 0)


def near(found, expected):
    """Equal to the rounding of float64."""
    return (found is None) == (expected is None) and (found is None or abs(found - expected) < 1e-12)


def test_metrics_are_their_definitions():
    for table, partition in cases():
        found = utility(rows_of(table, QUASI, SENSITIVE), partition)
        expected = by_definition(table, partition)
        for name in ("discernibility", "suppressed", "classes"):
            assert getattr(found, name) == expected[name]
        assert near(found.average_class_size, expected["average_class_size"])
        assert [name for name, _ in found.losses] == list(QUASI)
        assert all(near(a, b) for (_, a), b in zip(found.losses, expected["losses"], strict=True))
        assert near(found.gcp, expected["gcp"])
        assert near(found.weighted_loss, expected["gcp"])
        assert all(near(share, expected[name]) for name, share in found.classification)
        assert near(found.precision, expected.get("precision"))
        assert found.height == (None if partition.levels is None else sum(partition.levels))


def _off_mode_with_ties(table, partition):
    """As if all values that are as frequent as the most frequent one were the mode."""
    wrong = partition.suppressed
    for c in range(partition.count):
        counts = Counter(table["pay"][i] for i in np.flatnonzero(partition.classes == c))
        wrong += sum(count for count in counts.values() if count != max(counts.values()))
    return wrong / partition.n


MUTANTS = {
    "discernibility without suppressed rows": (
        "discernibility",
        lambda table, partition: int((partition.sizes**2).sum()),
    ),
    "average size of all rows": (
        "average_class_size",
        lambda table, p: p.n / (p.count * int(p.sizes.min())) if p.count else None,
    ),
    "loss of kept rows alone": (
        "gcp",
        lambda table, p: float(np.mean([p.sizes @ loss / max(p.sizes.sum(), 1) for loss in p.losses])),
    ),
    "loss by class": ("gcp", lambda table, p: float(np.mean(p.losses)) if p.count else 1.0),
    "ties are all modes": ("pay", _off_mode_with_ties),
}


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_wrong_metric_is_noticed(mutant):
    name, wrong = mutant
    noticed = 0
    for table, partition in cases():
        noticed += not near(wrong(table, partition), by_definition(table, partition)[name])
    assert noticed > 10


def test_a_table_that_is_all_suppressed_is_all_lost():
    rows = rows_of({"x": [1, 2, 3], "s": [1, 1, 1]}, ["x"], ["s"])
    nothing = Partition(
        classes=np.full(3, -1, dtype=np.int32), labels=((),), losses=(np.zeros(0),), levels=(0,), heights=(2,)
    )
    found = utility(rows, nothing, k=2)
    assert (found.discernibility, found.gcp, found.precision, found.average_class_size) == (9, 1.0, 0.0, None)
    assert found.classification == (("s", 1.0),)
    assert str(found).startswith("0 of 3 rows kept in 0 classes")


def test_the_k_asked_for_and_weights_enter_where_they_should():
    rows = rows_of({"x": [1, 1, 2, 2], "y": [1, 1, 1, 1]}, ["x", "y"])
    halves = Partition(
        classes=np.array([0, 0, 1, 1], dtype=np.int32),
        labels=(("1", "2"), ("1", "1")),
        losses=(np.array([0.0, 0.0]), np.array([1.0, 1.0])),
    )
    assert utility(rows, halves).average_class_size == 1
    assert utility(rows, halves, k=1).average_class_size == 2
    assert utility(rows, halves, weights={"x": 3}).weighted_loss == 0.25
    assert utility(rows, halves, weights={"x": 3}).gcp == 0.5
    for broken in ({"k": 0}, {"weights": {"z": 1}}, {"weights": {"x": 0}}, {"weights": {"x": -1}}):
        with pytest.raises(InvalidParameter):
            utility(rows, halves, **broken)
    with pytest.raises(InvalidParameter, match="of the 2 rows given"):
        utility(rows_of({"x": [1, 1], "y": [1, 2]}, ["x", "y"]), halves)


def test_discernibility_of_many_rows_is_exact():
    n = 3 * 10**6 + 1
    rows = rows_of({"x": np.zeros(n, dtype=np.int64)}, ["x"])
    one = Partition(classes=np.zeros(n, dtype=np.int32), labels=(("*",),), losses=(np.ones(1),))
    assert utility(rows, one).discernibility == n**2


def test_what_is_printed_and_stored_are_the_numbers():
    table = {"x": [1, 1, 2, 2], "a<b": [1, 1, 1, 1], "s": [1, 2, 1, 1]}
    rows = rows_of(table, ["x", "a<b"], ["s"])
    partition = random_partition(1, 4, 2, levels=True)
    found = utility(rows, partition)
    stored = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert stored["gcp"] == found.gcp
    assert stored["losses"] == dict(found.losses)
    assert "a&lt;b" in found._repr_html_()
    assert f"{found.precision:.6g}" in str(found)
