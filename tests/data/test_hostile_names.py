"""Names that engines read as patterns, paths or names of their own: the answers are those of plain names.

The same questions are asked about the same rows under plain names and under hostile ones. Bits are seeded, so
that the drawn integers must be equal.
"""

import numpy as np
import polars as pl
import pytest
from tests.engines import EAGER, ENGINES, HEAVY, LIGHT

import sfumato as sf
from sfumato.data.file_faults import FileFault
from sfumato.data.tables import open_table
from sfumato.errors import SchemaMismatch
from sfumato.laws import SeededBits

ROLES = ("id", "x", "g", "w", "d", "f")
# The columns of the table, in order; nobody asks about the last ones, which patterns could select.
STORED = ("id", "x", "g", "w")
BYSTANDERS = ("x", "sfumato_outer", "sfumato_where_0", "a", "values")
# Names that Polars, DuckDB or Spark take for a pattern, a path, a function, another name or one of ours.
NAMES = [
    "^x$",
    "^.*$",
    "*",
    "^sfumato_outer$",
    "^(id|x)$",
    "X",
    "A",
    "Sfumato_Outer",
    "a.b",
    "`a`.b",
    "a`b",
    'a"b',
    "sfumato_column_0",
    "sfumato_column_1",
    "sfumato_number_0",
    "sfumato_derived_0",
    "sfumato_unit",
    "SFUMATO_RANK",
    "sfumato_group",
    "sfumato_step_0",
    "sfumato_key0",
    "sfumato_0",
    "value",
    "#1",
    "count(*)",
    "select",
    "'; drop table t; --",
    "{x}",
    "%s",
    "\\",
    "rowid",
    "_metadata",
    "é",
    "é",
    "__index_level_0__",
    "1",
]
# Derived columns have printable names; columns of a table need not.
ODD = ("", " ", "\t", "a\nb", "\u200b", "n" * 1_000)
EVERY = [*EAGER, *LIGHT, *(pytest.param(name, marks=pytest.mark.spark) for name in HEAVY)]

GROUPS = ("red", "blue", "green")
PEOPLE = 40


def table(engine, names):
    """A table whose stored columns and bystanders have these names, in order."""
    draws = np.random.default_rng(5)
    rows = 3 * PEOPLE
    columns = {
        "id": ("integer", (np.arange(rows) % PEOPLE).tolist()),
        "x": ("real", draws.uniform(0, 10, rows).round(3).tolist()),
        "g": ("text", draws.choice([*GROUPS, "other"], rows).tolist()),
        "w": ("real", draws.uniform(0, 10, rows).round(3).tolist()),
    }
    columns |= {f"bystander {i}": ("real", [float(i)] * rows) for i in range(len(names) - len(columns))}
    made = ENGINES[engine](columns)
    if isinstance(made, dict):
        return dict(zip(names, made.values(), strict=True))
    if engine.startswith("pandas"):
        return made.set_axis(list(names), axis=1)
    if engine == "pyarrow":
        return made.rename_columns(list(names))
    if engine == "duckdb":
        # An empty name cannot be written in its language.
        called = [(name or "nameless").replace('"', '""') for name in names]
        return made.project(", ".join(f'#{i + 1} as "{name}"' for i, name in enumerate(called)))
    if engine.startswith("spark"):
        return made.toDF(*names)
    return made.rename(dict(zip(columns, names, strict=True)))


def dataset(engine, names, bystanders, **options):
    """A data set by the names of the roles."""
    if engine == "duckdb":
        names = {role: name or "nameless" for role, name in names.items()}
    made = table(engine, [*(names[role] for role in STORED), *bystanders])
    schema = {
        names["x"]: sf.Field(bounds=(0, 10)),
        names["w"]: sf.Field(bounds=(0, 10)),
        names["g"]: sf.Field(categories=GROUPS),
        names["d"]: sf.Field(bounds=(0, 40)),
    }
    total = sf.col(names["x"]) + 3 * sf.col(names["w"])
    derived = {names["d"]: total, names["f"]: sf.col(names["d"]) < 30}
    bounds = {"unit": names["id"], "rows_per_unit": 2, "groups_per_unit": 1}
    return names, sf.Dataset(
        made, neighbours="add-remove", schema=schema, derived=derived, **{**bounds, **options}
    )


def answers(engine, names, bystanders):
    names, data = dataset(engine, names, bystanders)
    budget = sf.PureDP(1)
    where = (sf.col(names["w"]) > 2) & sf.col(names["f"]) & (sf.col(names["g"]) != "green")
    questions = [
        sf.Question(query=sf.Sum(column=names["x"], budget=budget), where=where),
        sf.Question(
            query=sf.Sum(column=names["d"], budget=budget), by=[names["g"]], where={names["f"]: True}
        ),
        sf.Question(
            query=sf.Quantiles(column=names["x"], probs=(0.5,), budget=budget),
            where={names["w"]: sf.Between(1, 9)},
        ),
        sf.Question(
            query=sf.Count(column=names["id"], budget=sf.ApproxDP(10, 0.1)),
            by=[names["g"], names["f"]],
            groups=sf.Groups(keys="private", other=True),
        ),
        sf.Question(query=sf.Histogram(column=names["g"], budget=budget)),
    ]
    with sf.Session(data, budget=sf.ApproxDP(100, 0.5), bits=SeededBits(9)) as session:
        found = session.answer_all(questions)
    return [
        {key: part.outcome for key, part in each.releases.items()}
        if hasattr(each, "releases")
        else each.outcome
        for each in found
    ]


def cases():
    """Names for all roles: every name is in two of them."""
    for start in range(0, len(NAMES), 3):
        yield dict(zip(ROLES, (NAMES[(start + i) % len(NAMES)] for i in range(len(ROLES))), strict=True))
    # Ids and derived columns have printable names.
    for names in (ODD[:3], ODD[3:]):
        yield {"id": "^id$", **dict(zip(("x", "g", "w"), names, strict=True)), "d": "^d$", "f": "*"}


CASES = list(cases())


def require_plain_answers(engine, some):
    plain = answers(engine, {role: role for role in ROLES}, ("b0", "b1", "b2", "b3", "b4"))
    assert len(plain[1]) == 3
    assert len(plain[3]) > 3
    for names in some:
        assert answers(engine, names, BYSTANDERS) == plain, names


@pytest.mark.parametrize("engine", EVERY)
def test_answers_do_not_depend_on_names(engine):
    # Engines of SQL take a second for each.
    require_plain_answers(engine, CASES if engine in EAGER or engine == "polars lazy" else CASES[::9])


@pytest.mark.slow
def test_answers_of_duckdb_do_not_depend_on_any_of_the_names():
    require_plain_answers("duckdb", CASES)


@pytest.mark.parametrize("engine", EVERY)
def test_a_person_counts_once_whatever_the_id_column_is_called(engine):
    rows = 1_000
    for name in ("^sfumato_outer$", "^.*$", "*", "X", "sfumato_unit", "a.b", "Sfumato_Outer"):
        made = ENGINES[engine](
            {"id": ("integer", [7] * rows), "x": ("real", np.arange(float(rows)).tolist())}
        )
        columns = [name, "x"]
        if isinstance(made, dict):
            made = dict(zip(columns, made.values(), strict=True))
        elif engine.startswith("pandas"):
            made = made.set_axis(columns, axis=1)
        elif engine == "pyarrow":
            made = made.rename_columns(columns)
        elif engine == "duckdb":
            made = made.project(f'id as "{name}", x as "x"')
        else:
            made = made.toDF(*columns) if engine.startswith("spark") else made.rename({"id": name})
        data = sf.Dataset(made, unit=name, rows_per_unit=1, neighbours="add-remove")
        with sf.Session(data, budget=sf.PureDP(10**6), bits=SeededBits(1)) as session:
            assert session.answer(sf.Count(column="x", budget=sf.PureDP(10**5))).value == 1, name


@pytest.mark.parametrize("engine", ["numpy", "polars", *LIGHT])
def test_no_derived_column_takes_the_place_of_a_filter(engine):
    names = {"id": "id", "x": "x", "g": "g", "w": "w", "d": "d", "f": "sfumato_where_0"}
    _, data = dataset(engine, names, (), unit="row", rows_per_unit=None, groups_per_unit=None)
    count = sf.Count(column="x", budget=sf.PureDP(10**5))
    with sf.Session(data, budget=sf.PureDP(10**6), bits=SeededBits(1)) as session:
        nobody = session.answer(count, where=(sf.col("x") < 0) & (sf.col("w") < 0))
        some = session.answer(count, where={"sfumato_where_0": True})
        assert (nobody.value, session.answer(count, where={"sfumato_where_0": True}).value) == (0, some.value)
    assert 0 < some.value < 3 * PEOPLE


def test_a_column_without_a_name_is_not_taken_for_one_called_values():
    data = sf.Dataset(
        {"": ["a", "a", "a"], "values": ["b", "b", "a"]},
        unit="row",
        neighbours="add-remove",
        schema={name: sf.Field(categories=("a", "b")) for name in ("", "values")},
    )
    count = sf.Count(column="values", budget=sf.PureDP(10**5))
    with sf.Session(data, budget=sf.PureDP(10**6), bits=SeededBits(1)) as session:
        found = [
            [part.value for part in session.answer_by(count, [name]).releases.values()]
            for name in ("", "values")
        ]
    assert found == [[3, 0], [1, 2]]


@pytest.mark.parametrize(
    "engine", ["pandas", "pyarrow", "duckdb", pytest.param("spark", marks=pytest.mark.spark)]
)
def test_two_columns_of_one_name_are_refused(engine):
    with pytest.raises(SchemaMismatch, match="distinct column names"):
        sf.Dataset(table(engine, ["a", "b", "c", "a"]), unit="row", neighbours="add-remove")


@pytest.mark.parametrize("engine", [None, "polars", "duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_stored_file_is_read_by_exact_names(engine, tmp_path):
    names = ["x", "^x$", "*", "^.*$", "a.b", 'a"b', "a`b", " "]
    path = tmp_path / "table.parquet"
    pl.DataFrame({name: [float(place)] for place, name in enumerate(names)}).write_parquet(path)
    for place, name in enumerate(names):
        for columns in ([name], names):
            opened = open_table(path, {}, columns=columns, engine=engine)
            data = sf.Dataset(opened, unit="row", neighbours="add-remove")
            query = sf.Sum(column=name, bounds=(0, 100), budget=sf.PureDP(10**5))
            with sf.Session(data, budget=sf.PureDP(10**6), bits=SeededBits(1)) as session:
                assert session.answer(query).value == pytest.approx(place, abs=0.01), name


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_a_stored_file_whose_names_differ_in_case_alone_is_refused(engine, tmp_path):
    # DuckDB would call the second one X_1, which the file has as well.
    path = tmp_path / "table.parquet"
    pl.DataFrame({"x": [1.0], "X": [2.0], "X_1": [3.0]}).write_parquet(path)
    with pytest.raises(FileFault, match="differ in case alone, 'x' and 'X'"):
        open_table(path, {}, columns=["X_1"], engine=engine)
