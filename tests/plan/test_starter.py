"""A starter is TOML made of names and types, and the check names what is missing."""

import json
import tomllib
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.plans import EVERY, GOOD, asking, one_of_each

from sfumato.errors import InvalidParameter
from sfumato.plan import PlanError, check, json_schema, parse, starter
from sfumato.plan.model import Plan, Table
from sfumato.plan.starter import _key, _quoted

ROOT = Path(__file__).parents[2]


def people(tmp_path, name="people.csv"):
    frame = pl.DataFrame({"id": [987654321], "net pay": [12345.678], "team": ["CANARY"], "left": [True]})
    file = tmp_path / name
    if name.endswith("csv"):
        frame.write_csv(file)
    else:
        frame.write_parquet(file)
    return file


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_no_value_goes_into_a_starter(tmp_path, name):
    text = starter(people(tmp_path, name))
    for canary in ("987654321", "12345", "CANARY", "678"):
        assert canary not in text
    tree = tomllib.loads(text)
    assert {key: column["type"] for key, column in tree["columns"].items()} == {
        "id": "integer",
        "net pay": "real",
        "team": "text",
        "left": "boolean",
    }
    assert text.startswith("#:schema plan.schema.json\n")
    assert ("a guess from the first rows" in text) == name.endswith("csv")


def test_the_types_of_a_parquet_file_are_no_guesses_whatever_its_name(tmp_path):
    file = people(tmp_path, "people.parquet").rename(tmp_path / "people.data")
    assert "a guess from the first rows" not in starter(file)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("mine.toml", "people.csv"),
        ("plans/mine.toml", "../people.csv"),
        ("plans/deeper/mine.toml", "../../people.csv"),
    ],
)
def test_a_starter_names_its_data_from_where_it_will_stand(tmp_path, target, path, monkeypatch):
    file = people(tmp_path)
    text = starter(file, beside=tmp_path / target)
    assert tomllib.loads(text)["data"]["path"] == path
    assert "run: sfumato plan check mine.toml\n" in text
    monkeypatch.chdir(tmp_path)
    assert starter("people.csv", beside=target) == text


def test_a_name_of_a_plan_cannot_break_out_of_its_comment(tmp_path):
    text = starter(people(tmp_path), beside=tmp_path / "a\nversion = 7\n.toml")
    assert tomllib.loads(text)["version"] == 1


def test_the_check_of_a_starter_names_what_is_missing_until_nothing_is(tmp_path):
    text = starter(people(tmp_path))
    target = tmp_path / "plan.toml"
    with pytest.raises(PlanError) as told:
        parse(text, path=target)
    assert {problem.field for problem in told.value.problems} == {"data.neighbours", "budget"}
    text = text.replace('# neighbours = "add-remove"', 'neighbours = "add-remove"')
    text = text.replace("# epsilon = 1.0", "epsilon = 1.0")
    with pytest.raises(PlanError) as told:
        check(parse(text, path=target))
    assert [problem.field for problem in told.value.problems] == ['columns."net pay".bounds']
    line = told.value.problems[0].line
    assert text.splitlines()[line - 1] == '[columns."net pay"]'
    before, after = text.split('[columns."net pay"]')
    check(parse(before + '[columns."net pay"]' + after.replace("# bounds", "bounds", 1), path=target))


def test_every_commented_line_of_a_starter_can_be_switched_on(tmp_path):
    text = starter(people(tmp_path))
    keyed = [
        line for line in text.splitlines() if line.startswith("# ") and " = " in line and "`" not in line
    ]
    assert len(keyed) > 15
    for line in keyed:
        tomllib.loads(line[2:])


NAMES = st.text(min_size=1, max_size=12)


@settings(max_examples=100)
@given(NAMES)
def test_any_name_is_quoted_so_that_toml_reads_it_back(name):
    assert tomllib.loads(f"{_key(name)} = {_quoted(name)}") == {name: name}
    assert len(_quoted(name).splitlines()) == 1


def test_names_that_look_like_toml_stay_names(tmp_path):
    file = tmp_path / "odd.csv"
    names = ["]", '"', "a.b", "#", "x\\y", "= 1", "[[queries]]", "é", "1st"]
    pl.DataFrame({name: [1] for name in names}).write_csv(file)
    tree = tomllib.loads(starter(file))
    assert list(tree["columns"]) == names


def test_a_mutant_that_does_not_quote_is_noticed():
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads('"a\nb" = 1')
    assert tomllib.loads(f"{_key(chr(10))} = 1") == {"\n": 1}


def test_the_schema_is_the_published_one():
    stored = json.loads((ROOT / "docs" / "plan.schema.json").read_text("utf-8"))
    assert stored == json_schema()


def test_every_key_of_the_schema_is_described():
    schema = json_schema()
    parts = {"plan": schema, **schema["$defs"]}
    assert len(parts) >= 7
    for name, part in parts.items():
        assert part["additionalProperties"] is False, name
        assert part["description"]
        for key, described in part["properties"].items():
            assert len(described["description"]) > 8, (name, key)


def accepts(schema, value, root):
    """The few words of JSON Schema that the schema of plans uses."""
    if "$ref" in schema:
        return accepts(root["$defs"][schema["$ref"].split("/")[-1]], value, root)
    if "anyOf" in schema:
        return any(accepts(each, value, root) for each in schema["anyOf"])
    if "const" in schema:
        return value == schema["const"] and type(value) is type(schema["const"])
    if "enum" in schema:
        return value in schema["enum"]
    kinds = schema.get("type", [])
    tests = {
        "object": lambda: isinstance(value, dict),
        "array": lambda: isinstance(value, list),
        "string": lambda: isinstance(value, str),
        "boolean": lambda: isinstance(value, bool),
        "integer": lambda: isinstance(value, int) and not isinstance(value, bool),
        "number": lambda: isinstance(value, int | float) and not isinstance(value, bool),
        "null": lambda: value is None,
    }
    if kinds and not any(tests[kind]() for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return False
    if isinstance(value, dict):
        known = schema.get("properties", {})
        more = schema.get("additionalProperties", True)
        if not set(schema.get("required", [])) <= set(value):
            return False
        return all(
            accepts(known[key], item, root)
            if key in known
            else bool(more) and (more is True or accepts(more, item, root))
            for key, item in value.items()
        )
    if isinstance(value, list):
        enough = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 10**9)
        return enough and all(accepts(schema.get("items", {}), item, root) for item in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (
            schema.get("minimum", value) <= value <= schema.get("maximum", value)
            and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
            and ("exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"])
        )
    return True


def test_plans_meet_the_schema_and_wrong_ones_do_not():
    schema = json_schema()
    assert accepts(schema, tomllib.loads(GOOD), schema)
    for name in EVERY:
        assert accepts(schema, tomllib.loads(asking(one_of_each(name)).text), schema), name
    for old, new in (
        ("group_by", "by"),
        ('"mean"\ncolumn', '"meen"\ncolumn'),
        ("epsilon = 1.0", "epsilon = 0"),
        ("version = 1", "version = 2"),
        ("bins = 10", 'bins = "ten"'),
        ("[0, 60]", "[60]"),
    ):
        assert not accepts(schema, tomllib.loads(GOOD.replace(old, new)), schema), new


def test_all_tables_are_strict_and_frozen():
    for table in (Plan, *Table.__subclasses__()):
        settings_of = table.model_config
        assert settings_of["strict"]
        assert settings_of["frozen"]
        assert settings_of["extra"] == "forbid"


def test_a_file_without_a_header_puts_no_value_into_a_plan(tmp_path):
    (tmp_path / "people.csv").write_text("P1,north,3.5\nP2,south,4\n")
    with pytest.raises(InvalidParameter, match="must name its columns") as caught:
        starter(tmp_path / "people.csv")
    assert "P1" not in str(caught.value)
