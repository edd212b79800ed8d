"""Units inside engines: a keyed choice of rows and groups, the same in every pass, that nobody else sways."""

import hashlib
import math
from collections import Counter, defaultdict

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2
from tests.data.test_contributions import chi_square
from tests.engines import HEAVY, LAZY, LIGHT
from tests.laws.fit import FALSE_ALARM

from sfumato.data import lazy_contributions
from sfumato.data.dataset import Dataset
from sfumato.data.lazy_contributions import bounded, bounded_groups, bounded_listed, secret_key
from sfumato.data.siphash import siphash
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import SeededBits, SystemBits

# Spark takes a warning about the version of pandas for its own business.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

KINDS = {"id": "integer", "team": "text", "x": "real", "note": "text"}


def table_of(rows, kinds=KINDS):
    return {name: (kind, [row[i] for row in rows]) for i, (name, kind) in enumerate(kinds.items())}


def frame_of(make, rows, kinds=KINDS):
    return nw.from_native(make(table_of(rows, kinds))).lazy()


def rows_of(frame):
    """What a frame holds, as a multiset; zeros, nulls and NaN are told apart."""
    table = frame.collect("pyarrow").to_native().to_pylist()
    return Counter(tuple(map(repr, row.values())) for row in table)


def random_rows(rng, size):
    """Rows of few people, some of them equal in all columns."""
    names = [None, "", "n", "a", "v1:a"]
    return [
        (
            None if rng.random() < 0.05 else int(rng.integers(0, 6)),
            f"t{rng.integers(0, 5)}",
            [0.0, -0.0, 1.5, None][rng.integers(0, 4)],
            names[rng.integers(0, 5)],
        )
        for _ in range(size)
    ]


def rows_only(frame, most, _groups, key):
    return bounded(frame, "id", most, key)


def rows_and_groups(frame, most, groups, key):
    return bounded_groups(bounded(frame, "id", most, key), "id", ["team"], groups, key)


def differ_in_one_person(make, rows, person, most, groups, key, bound, rng):
    """Whether tables with and without a person, in any order, differ in its bounded rows and groups alone."""
    more = rows_of(bound(frame_of(make, rows), most, groups, key))
    others = [row for row in rows if row[0] != person]
    shuffled = [others[i] for i in rng.permutation(len(others))]
    rest = rows_of(bound(frame_of(make, shuffled), most, groups, key))
    own = more - rest
    return (
        not rest - more
        and all(row[0] == repr(person) for row in own)
        and own.total() <= most
        and len({row[1] for row in own}) <= groups
    )


def cases(name, tables=12):
    rng = np.random.default_rng(7)
    for number in range(2 if name in HEAVY else tables):
        yield rng, random_rows(rng, 40), number % 6, secret_key(SeededBits(number))


@pytest.mark.parametrize("name", LAZY)
def test_tables_that_differ_in_one_person_differ_in_its_bounded_rows_and_groups_alone(name):
    for rng, rows, person, key in cases(name):
        assert differ_in_one_person(LAZY[name], rows, person, 3, 2, key, rows_and_groups, rng)
        if name in LIGHT:
            assert differ_in_one_person(LAZY[name], rows, person, 4, 5, key, rows_only, rng)


def by_row_number(frame, most, _groups, _key):
    """A mutant: the first rows of each person, as the table has them."""
    return nw.from_native(frame.to_native().filter(pl.int_range(pl.len()).over("id") < most).drop_nulls("id"))


def among_all(frame, most, _groups, key):
    """A mutant: the rows of the smallest hashes of the table, and not of each person."""
    digest = pl.struct(pl.all()).hash(key[0])
    return nw.from_native(frame.to_native().drop_nulls("id").sort(digest).head(5 * most))


def one_more(frame, most, groups, key):
    """A mutant: a row too many."""
    return rows_and_groups(frame, most + 1, groups, key)


def groups_not_bounded(frame, most, _groups, key):
    """A mutant: rows only."""
    return rows_only(frame, most, 99, key)


@pytest.mark.parametrize("mutant", [by_row_number, among_all, one_more, groups_not_bounded])
def test_the_replay_catches_a_choice_by_order_by_others_and_one_too_large(mutant):
    found = [
        differ_in_one_person(LAZY["polars lazy"], rows, person, 3, 2, key, mutant, rng)
        for rng, rows, person, key in cases("polars lazy")
    ]
    assert not all(found)


def zeros_as_one(rows):
    """Both zeros as one: some engines write a negative zero without its sign when they sort."""
    found = Counter()
    for row, count in rows.items():
        found[tuple("0.0" if value == "-0.0" else value for value in row)] += count
    return found


@pytest.mark.parametrize("name", LAZY)
def test_every_unit_keeps_as_many_rows_and_groups_as_it_may_and_whole_groups(name):
    rows, key = random_rows(np.random.default_rng(3), 60), secret_key(SeededBits(1))
    given = zeros_as_one(rows_of(frame_of(LAZY[name], rows)))
    have = Counter(row[0] for row in rows if row[0] is not None)
    kept = zeros_as_one(rows_of(bounded(frame_of(LAZY[name], rows), "id", 4, key)))
    assert kept <= given
    counts = Counter(int(row[0]) for row in kept.elements())
    assert counts == {unit: min(count, 4) for unit, count in have.items()}
    kept = zeros_as_one(rows_of(bounded_groups(frame_of(LAZY[name], rows), "id", ["team"], 2, key)))
    teams = defaultdict(set)
    for row in kept:
        teams[row[0]].add(row[1])
    of = defaultdict(set)
    for row in given:
        of[row[0]].add(row[1])
    assert {unit: len(names) for unit, names in teams.items()} == {
        unit: min(len(names), 2) for unit, names in of.items() if unit != "None"
    }
    # All rows of a group that is kept are there.
    assert kept == Counter({row: count for row, count in given.items() if row[1] in teams[row[0]]})


def told(values):
    return "".join("n" if value is None else f"v{len(str(value).encode())}:{value}" for value in values)


def by_definition(rows, most, key):
    """The choice as the proof states it, in plain Python: SHA-256 under the key, each copy of a row apart."""
    names = sorted(KINDS)
    uses = "".join(f"{len(name)}:{name}" for name in ("rows", *names))
    secret = hashlib.blake2b(uses.encode(), key=key, digest_size=32).hexdigest()
    copies, ranked = Counter(), defaultdict(list)
    for row in rows:
        if row[0] is None:
            continue
        content = told(row[list(KINDS).index(name)] for name in names)
        inner = hashlib.sha256(f"{secret}r{content}".encode()).hexdigest()
        again = hashlib.sha256(f"{secret}c{inner}{copies[row]};".encode()).hexdigest()
        ranked[row[0]].append((again if copies[row] else inner, row))
        copies[row] += 1
    return Counter(tuple(map(repr, row)) for of in ranked.values() for _, row in sorted(of)[:most])


@pytest.mark.parametrize("name", [name for name in LAZY if name != "polars lazy"])
def test_the_choice_of_sql_engines_is_that_of_the_definition(name):
    # Without both zeros, which Python's tuples do not tell apart.
    rows = [(*row[:2], row[2] or None, row[3]) for row in random_rows(np.random.default_rng(5), 80)]
    key = secret_key(SeededBits(9))
    assert rows_of(bounded(frame_of(LAZY[name], rows), "id", 3, key)) == by_definition(rows, 3, key)


# Teams and notes that would be one text without their lengths, or with nulls written as text.
TEXTS = [("bv:c", "a"), ("c", "av:b"), ("", None), (None, ""), ("n", None), (None, "n"), ("é", "v1:x")]
TRICKY = [(team, number, note) for team, note in TEXTS for number in (0.0, -0.0, None, 1e300, 0.1)]


def ties(make, runs):
    """How many different choices the same rows lead to in several orders."""
    rows = [(unit, *row) for unit in range(8) for row in TRICKY]
    rng, key = np.random.default_rng(2), secret_key(SeededBits(4))
    found = set()
    for _ in range(runs):
        frame = frame_of(make, [rows[i] for i in rng.permutation(len(rows))])
        found.add(frozenset(rows_of(bounded(frame, "id", 9, key)).items()))
    return len(found)


@pytest.mark.parametrize("name", LAZY)
def test_rows_that_look_alike_are_told_apart_whatever_their_order(name):
    assert ties(LAZY[name], 2 if name in HEAVY else 5) == 1


def test_texts_without_their_lengths_would_tie(monkeypatch):
    monkeypatch.setattr(lazy_contributions._DuckDB, "length", lambda _, text: "''")
    assert ties(LAZY["duckdb"], 5) > 1


def by_content(frame, _key):
    """A mutant: an unkeyed hash, which always takes the same rows."""
    return bounded(frame, "id", 1, bytes(32))


def chosen_of_many_keys(bound):
    rows = [(1, "a", float(i), None) for i in range(6)]
    frame = frame_of(LAZY["polars lazy"], rows)
    found = Counter(
        bound(frame, secret_key(SeededBits(seed))).collect()["x"].to_list()[0] for seed in range(300)
    )
    return [found[float(i)] for i in range(6)]


def test_over_many_keys_every_row_is_chosen_equally_often():
    assert chi_square(chosen_of_many_keys(lambda frame, key: bounded(frame, "id", 1, key))) > FALSE_ALARM
    assert chi_square(chosen_of_many_keys(by_content)) < FALSE_ALARM


@pytest.mark.parametrize("name", LIGHT)
def test_choices_of_many_units_fit_the_uniform_law_and_copies_count(name):
    units, key = 12_000, secret_key(SeededBits(21))
    kinds = {"id": "integer", "x": "integer"}
    rows = [(unit, x) for unit in range(units) for x in range(3)]
    found = rows_of(bounded(frame_of(LAZY[name], rows, kinds), "id", 2, key))
    left_out = Counter(x for unit, x in rows if (repr(unit), repr(x)) not in found)
    listed = [left_out[x] for x in range(3)]
    assert sum(listed) == units
    assert chi_square(listed) > FALSE_ALARM
    assert chi_square([listed[0] + units // 20, listed[1], listed[2] - units // 20]) < FALSE_ALARM
    # Of three equal rows and another one, the other is chosen once in four, and not every second time.
    rows = [(unit, x) for unit in range(units) for x in (0, 0, 0, 1)]
    found = rows_of(bounded(frame_of(LAZY[name], rows, kinds), "id", 1, key))
    ones = sum(count for row, count in found.items() if row[1] == "1")
    assert chi2.sf((ones - units / 4) ** 2 / (units * 3 / 16), 1) > FALSE_ALARM
    assert chi2.sf((units / 2 - units / 4) ** 2 / (units * 3 / 16), 1) < FALSE_ALARM


@pytest.mark.parametrize("name", LIGHT)
def test_groups_of_many_units_fit_the_uniform_law_whatever_their_sizes(name):
    units, key = 8_000, secret_key(SeededBits(22))
    rows = [(unit, team) for unit in range(units) for team in (0, 0, 0, 1, 2)]
    frame = frame_of(LAZY[name], rows, {"id": "integer", "team": "integer"})
    found = Counter(row[1] for row in rows_of(bounded_groups(frame, "id", ["team"], 1, key)))
    assert sum(found.values()) == units
    assert chi_square([found[team] for team in "012"]) > FALSE_ALARM
    # One choice for all, which a hash without the unit would be.
    assert chi_square([units, 0, 0]) < FALSE_ALARM


IDS = {
    "real": ([1.0, 1.0, -0.0, 0.0, 0.5, math.nan, math.inf, -math.inf, 2.0**53, -7.0, None], 3),
    "text": (["a", "a", "A", "", "", None, "é", "e\u0301"], 5),
    "integer": ([2**53, 2**53 + 1, 2**53, -(2**63), 2**63 - 1, None], 4),
}


@pytest.mark.parametrize("name", LAZY)
@pytest.mark.parametrize(("kind", "case"), IDS.items(), ids=IDS)
def test_ids_tell_units_apart_as_they_do_in_memory(name, kind, case):
    ids, units = case
    rows = [(unit, i) for i, unit in enumerate(ids)]
    frame = frame_of(LAZY[name], rows, {"id": kind, "x": "integer"})
    key = secret_key(SeededBits(1))
    assert rows_of(bounded(frame, "id", 1, key)).total() == units
    assert rows_of(bounded_groups(frame, "id", ["x"], 1, key)).total() == units


@pytest.mark.parametrize("name", LAZY)
def test_a_table_without_rows_or_ids_gives_none(name):
    key = secret_key(SystemBits())
    for rows in ([], [(None, "a", 1.0, "b")]):
        frame = frame_of(LAZY[name], rows)
        assert not rows_of(bounded(frame, "id", 1, key))
        assert not rows_of(bounded_groups(frame, "id", ["team"], 1, key))


def test_categories_and_columns_of_lists_do_not_sway_the_choice():
    team = pl.Series(["a", "b", "c"] * 20)
    table = pl.DataFrame({"id": [1] * 60, "team": team.cast(pl.Categorical), "x": range(60)})
    key = secret_key(SeededBits(1))
    other = table.with_columns(nested=pl.col("x").implode().over("id"))
    first, second = (bounded(nw.from_native(each.lazy()), "id", 5, key) for each in (table, other))
    assert second.collect_schema().names() == ["id", "team", "x"]
    assert rows_of(first) == rows_of(second)


TYPED = {
    "d": "cast('2024-10-27' as date)",
    "local": "cast('2024-10-27 02:30:00' as {local})",
    "instant": "cast('2024-10-27 02:30:00' as {instant})",
    "price": "cast(1.25 as decimal(10, 2))",
    "single": "cast(0.1 as float)",
    "small": "cast(1 as smallint)",
    "none": "cast(null as {text})",
}
# Lists and bytes are told by no text here.
DROPPED = {"list": "", "bytes": "cast('a' as {bytes})"}


def typed(name, rows):
    """Rows of ids with columns of every type, made by the engine's own casts."""
    native = LAZY[name](table_of(rows))
    sql = {**TYPED, **DROPPED}
    if name == "duckdb":
        words = {"local": "timestamp", "instant": "timestamptz", "text": "varchar", "bytes": "blob"}
        sql["list"] = "[x]"
    else:
        words = {"local": "timestamp_ntz", "instant": "timestamp", "text": "string", "bytes": "binary"}
        sql["list"] = "array(x)"
    listed = [f"{value.format(**words)} as {column}" for column, value in sql.items()]
    return native.project("*, " + ", ".join(listed)) if name == "duckdb" else native.selectExpr("*", *listed)


@pytest.mark.parametrize("name", [name for name in LAZY if name != "polars lazy"])
def test_columns_of_every_plain_type_are_content_and_others_are_dropped(name):
    rows = random_rows(np.random.default_rng(3), 30)
    found = bounded(nw.from_native(typed(name, rows)).lazy(), "id", 2, secret_key(SeededBits(1)))
    assert found.collect_schema().names() == [*KINDS, *TYPED]
    have = Counter(row[0] for row in rows if row[0] is not None)
    counts = found.group_by("id").agg(nw.len().alias("rows")).collect("pyarrow").to_native().to_pylist()
    assert {row["id"]: row["rows"] for row in counts} == {unit: min(n, 2) for unit, n in have.items()}


@pytest.mark.spark
def test_two_instants_of_the_hour_that_is_repeated_in_autumn_are_two_texts():
    session = LAZY["spark"](table_of([])).sparkSession
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        instants = session.range(2).selectExpr("timestamp_seconds(1729989000 + id * 3600) as t")
        dtype = nw.from_native(instants).lazy().collect_schema()["t"]
        text = lazy_contributions._Spark().text("t", dtype)
        assert instants.selectExpr("cast(t as string) as s").distinct().count() == 1
        assert instants.selectExpr(f"{text} as s").distinct().count() == 2
    finally:
        session.conf.set("spark.sql.session.timeZone", before)


def test_an_engine_without_a_keyed_choice_is_refused_by_name():
    class Other:
        implementation = nw.Implementation.DASK

    with pytest.raises(
        NotSupported, match=r"^rows per unit are bounded by Polars, DuckDB and Spark, and not by dask"
    ):
        lazy_contributions._chosen(Other(), [], {}, "id", [], 1, bytes(32), groups=False)


def test_the_same_columns_in_another_order_are_the_same_groups():
    rows = random_rows(np.random.default_rng(3), 60)
    frame, key = frame_of(LAZY["polars lazy"], rows), secret_key(SeededBits(1))
    one, two = (bounded_groups(frame, "id", by, 2, key) for by in (["team", "note"], ["note", "team"]))
    assert rows_of(one) == rows_of(two)


LISTED = [("a", True), ("b", False), ("é", True)]


def listed_groups(name, rows, other):
    """What remains of rows (id, team, flag), and the group of each by the definition."""
    frame = frame_of(LAZY[name], rows, {"id": "integer", "team": "text", "flag": "boolean"})
    values = [nw.col("team"), nw.col("flag")]
    found = bounded_listed(frame, "id", values, LISTED, 1, secret_key(SeededBits(6)), other=other)
    assert found.collect_schema().names() == ["id", "team", "flag"]
    group = {tuple(map(repr, key)): place for place, key in enumerate(LISTED)}
    return Counter({(row, group.get(row[1:])): count for row, count in rows_of(found).items()})


@pytest.mark.parametrize("name", LAZY)
def test_all_rows_of_no_listed_key_are_one_group_or_none(name):
    rng = np.random.default_rng(8)
    teams, flags = ["a", "b", "é", "c", None], [True, False, None]
    rows = [(int(i), teams[t], flags[f]) for i, t, f in rng.integers(0, [12, 5, 3], (150, 3))]
    for other in (True, False):
        kept = listed_groups(name, rows, other)
        groups = defaultdict(set)
        for (row, group), _ in kept.items():
            groups[row[0]].add(group)
        assert all(len(of) == 1 for of in groups.values())
        assert set(groups) == {repr(row[0]) for row in rows if other or row[1:] in LISTED}
        assert any(None in of for of in groups.values()) == other
        # Whole groups, and the same of everyone else without the first person.
        place = {key: at for at, key in enumerate(LISTED)}
        wanted = Counter(tuple(map(repr, row)) for row in rows if place.get(row[1:]) in groups[repr(row[0])])
        assert Counter({row: count for (row, _), count in kept.items()}) == wanted
        rest = listed_groups(name, [row for row in rows if row[0] != 0], other)
        assert rest == Counter({each: count for each, count in kept.items() if each[0][0] != "0"})


REFUSED = {
    "no ids": lambda frame: bounded(frame, "planet", 1, bytes(32)),
    "short key": lambda frame: bounded(frame, "id", 1, bytes(31)),
    "no groups": lambda frame: bounded_groups(frame, "id", [], 1, bytes(32)),
    "no such group": lambda frame: bounded_groups(frame, "id", ["planet"], 1, bytes(32)),
    "a name inside": lambda frame: bounded(frame.rename({"x": "SFUMATO_RANK"}), "id", 1, bytes(32)),
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_public_mistakes_are_refused(refused):
    with pytest.raises(InvalidParameter, match=r"^(ids|key|by|columns) must "):
        refused(frame_of(LAZY["polars lazy"], [(1, "a", 1.0, "b")]))


def test_keys_are_fresh_and_seeded_ones_are_not():
    assert secret_key(SystemBits()) != secret_key(SystemBits())
    assert secret_key(SeededBits(1)) == secret_key(SeededBits(1))


def plain_siphash(key, message):
    """SipHash-2-4 of bytes, as it is published, one message at a time."""
    full = 2**64 - 1
    k = [int.from_bytes(key[i : i + 8], "little") for i in (0, 8)]
    v = [0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573]
    v = [start ^ k[i % 2] for i, start in enumerate(v)]

    def turned(word, places):
        return (word << places | word >> (64 - places)) & full

    def mix():
        v[0] = v[0] + v[1] & full
        v[2] = v[2] + v[3] & full
        v[1], v[3] = turned(v[1], 13) ^ v[0], turned(v[3], 16) ^ v[2]
        v[0] = turned(v[0], 32)
        v[2] = v[2] + v[1] & full
        v[0] = v[0] + v[3] & full
        v[1], v[3] = turned(v[1], 17) ^ v[2], turned(v[3], 21) ^ v[0]
        v[2] = turned(v[2], 32)

    padded = message + bytes(-(len(message) + 1) % 8) + bytes([len(message) % 256])
    for start in range(0, len(padded), 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        v[3] ^= word
        mix()
        mix()
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(4):
        mix()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def test_siphash_is_the_published_one_in_every_row():
    # The example of the publication.
    assert plain_siphash(bytes(range(16)), bytes(range(15))) == 0xA129CA6149BE45E5
    words = SeededBits(1).words(3 * 20_000).reshape(3, -1)
    key = bytes(range(100, 116))
    found = siphash(key, list(words))
    for row in (0, 1, 2**14 - 1, 2**14, 19_999):
        message = b"".join(int(word).to_bytes(8, "little") for word in words[:, row])
        assert int(found[row]) == plain_siphash(key, message)


def test_a_column_of_nulls_alone_has_no_ids_and_so_no_rows_count():
    table = pl.DataFrame({"id": pl.Series([None] * 3), "x": [1, 2, 3]})
    for frame in (table, table.lazy()):
        data = Dataset(frame, unit="id", rows_per_unit=1, neighbours="add-remove")
        (part,) = data.parts("x", bits=SeededBits(1))
        assert part.rows == 0
