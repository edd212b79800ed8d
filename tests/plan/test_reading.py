"""Plans are read exactly, lines are found exactly, and no file can do harm."""

import tomllib
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.plan.plans import GOOD, changed, head

from sfumato.errors import InvalidParameter
from sfumato.plan import PlanError, parse, read
from sfumato.plan.positions import positions
from sfumato.plan.problems import field_words
from sfumato.plan.values import read_categories
from sfumato.privacy import ZCDP, ApproxDP, PureDP


def places(tree, above=()):
    """Every place of a tree of tables and lists."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    found = set()
    for key, value in items:
        found |= {(*above, key)} | places(value, (*above, key))
    return found


KEYS = st.one_of(
    st.text("abcXYZ019_-", min_size=1, max_size=4),
    st.sampled_from(["a.b", "x y", "#", "[t]", "é", 'q"q', "back\\slash", "", "'", "=", "tab\tkey"]),
)
SCALARS = st.sampled_from(
    [
        "1",
        "-0.5",
        "1e3",
        "nan",
        "true",
        '"text # not a comment"',
        "'lit [x]'",
        '"\\"]"',
        "2026-01-01",
        "0xff",
        '"""two\nlines ] = """',
        "'''raw\n'' = \n'''",
        '"""ends with quotes"""""',
        '"""\\"""" """',
        "12:30:00",
    ]
)


def quoted(key):
    plain = key and all(letter.isascii() and (letter.isalnum() or letter in "_-") for letter in key)
    return key if plain else '"' + key.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t") + '"'


SPACES = st.sampled_from(["", " ", "\t"])
BREAKS = st.sampled_from(["", " ", "\n", " # comment ] , }\n", "\n\n"])


@st.composite
def values(draw, depth=2):
    kind = draw(st.sampled_from(["scalar", "list", "table"] if depth else ["scalar"]))
    if kind == "list":
        items = draw(st.lists(values(depth=depth - 1), max_size=3))
        gaps = draw(st.lists(BREAKS, min_size=len(items) + 1, max_size=len(items) + 1))
        return "[" + ",".join(gap + item for gap, item in zip(gaps, items, strict=False)) + gaps[-1] + "]"
    if kind == "table":
        names = draw(st.lists(KEYS, max_size=3, unique=True))
        pairs = [f"{quoted(name)} {draw(SPACES)}= {draw(values(depth=depth - 1))}" for name in names]
        return "{ " + ", ".join(pairs) + " }"
    return draw(SCALARS)


@st.composite
def documents(draw):
    """TOML texts; those that repeat a key are no TOML, and are left out by the test."""
    lines = []
    for _ in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(["pair", "dotted", "table", "tables", "comment"]))
        first, second = quoted(draw(KEYS)), quoted(draw(KEYS))
        if kind == "table":
            lines.append(f"{draw(SPACES)}[{first} . {second}]" if draw(st.booleans()) else f"[{first}]")
        elif kind == "tables":
            lines.append(f"[[ {first} ]]")
        elif kind == "comment":
            lines.append("# [a] = 1")
        else:
            name = f"{first}.{second}" if kind == "dotted" else first
            lines.append(f"{draw(SPACES)}{name} = {draw(values())}")
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines)


@given(documents())
@example("[a]\nb.c = 1\n[a.d]\n[[e]]\nf = [1, {g = 2}]\n[e.h]\n[[e]]\n[[e.i]]\n[[e.i]]\nj = 3")
def test_every_key_has_its_line_and_no_line_is_invented(text):
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    found = positions(text)
    assert set(found) == places(tree)
    lines = text.replace("\r\n", "\n").split("\n")
    for place, line in found.items():
        assert 1 <= line <= len(lines)
        if isinstance(place[-1], str) and place[-1].isalnum() and place[-1].isascii():
            assert place[-1] in lines[line - 1]


def test_lines_follow_the_file_for_the_whole_example():
    lines = GOOD.splitlines()
    for place, line in positions(GOOD).items():
        if isinstance(place[-1], str):
            assert place[-1] in lines[line - 1]
    assert positions(GOOD)["queries", 1, "where", "salary", "between", 1] == 51


def test_a_plan_says_what_stands_in_it():
    plan = parse(GOOD, path="/folder/people.toml")
    assert (plan.version, plan.title, plan.about) == (1, "Salaries", "What is paid.")
    assert plan.data.rows == 50_000
    assert plan.budget.value == PureDP(1)
    assert plan.cap == PureDP(3)
    assert plan.ledger.analyst == "statistics office"
    assert plan.columns["salary"].bounds == (0, 250_000)
    assert plan.queries[1].by == ("department",)
    assert plan.queries[1].probs == (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))
    assert plan.data_path == Path("/folder/salaries.csv")
    assert plan.ledger_url == "sqlite:////folder/ledger.db"
    assert plan.needed == ("salary", "department", "region")
    assert plan.text == GOOD
    assert len(plan.digest) == 64


def test_the_defaults_of_a_ledger_are_beside_the_plan():
    plan = parse(head() + '[[queries]]\nstatistic = "count"', path="/folder/plan.toml")
    assert plan.ledger_url == "sqlite:////folder/ledger.db"
    assert plan.cap == plan.budget.value
    assert plan.needed == ("salary",)
    other = parse(changed(("sqlite:///ledger.db", "postgresql://curator@host/ledger")))
    assert other.ledger_url == "postgresql://curator@host/ledger"


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("epsilon = 0.1", PureDP(Fraction(1, 10))),
        ("epsilon = 1_0", PureDP(10)),
        (
            "epsilon = 0.1000000000000000055511151231257827",
            PureDP(Decimal("0.1000000000000000055511151231257827")),
        ),
        ("epsilon = 1e-3\ndelta = 1e-9", ApproxDP(Fraction(1, 1000), Fraction(1, 10**9))),
        ("rho = 0.3", ZCDP(Fraction(3, 10))),
    ],
)
def test_numbers_are_read_exactly_as_written(written, read_as):
    plan = parse(head(budget=written) + '[[queries]]\nstatistic = "count"')
    assert plan.budget.value == read_as


def test_a_plan_cannot_be_changed():
    plan = parse(GOOD)
    with pytest.raises(ValueError, match="frozen"):
        plan.title = "another"


def test_an_error_is_one_of_invalid_parameters():
    assert issubclass(PlanError, InvalidParameter)


def test_what_cannot_be_read_is_told(tmp_path):
    with pytest.raises(PlanError, match=r"none\.toml: there is no such file$"):
        read(tmp_path / "none.toml")
    with pytest.raises(PlanError, match="this is a folder, not a file"):
        read(tmp_path)
    file = tmp_path / "plan.toml"
    file.write_bytes(b"version = 1\ntitle = '\xff\xfe'\n")
    with pytest.raises(PlanError, match=r"^plan\.toml, line 2: a plan must be saved as UTF-8 text$"):
        read(file)
    file.write_bytes(GOOD.encode("utf-16"))
    with pytest.raises(PlanError, match=r"^plan\.toml, line 1: a plan must be saved as UTF-8"):
        read(file)
    file.write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(PlanError, match=r"at most 1,048,576 bytes"):
        read(file)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_files_of_other_systems_are_the_same_plan(tmp_path, ends, mark):
    file = tmp_path / "plan.toml"
    file.write_bytes(mark + GOOD.replace("\n", ends).encode())
    assert repr(read(file)) == repr(parse(GOOD))
    assert read(file).lines == parse(GOOD).lines


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("version = 1\nversion = 1", "plan.toml, line 2: this key is given twice"),
        ("[data]\n[data]", "plan.toml, line 2: this table is given twice"),
        ("a = {b = 1, b = 2}", "plan.toml, line 1: a key is given twice"),
        ("a = {b = 1}\n[a]", "plan.toml, line 2: this"),
        ("version = 1\ntitle = Salaries", "plan.toml, line 2: no value that TOML knows: text needs quotes"),
        ("version 1", "plan.toml, line 1: a key needs = and a value"),
        (
            'version = 1\ntitle = "open\nx = 1',
            "plan.toml, line 2: there is a control character, or text is not closed",
        ),
        ("a = [1, 2\nb = 3", "plan.toml, line 2: a list is not closed"),
        ("a = 1 2", "plan.toml, line 1: there is something after the value"),
        ('a = "\x00"', "plan.toml, line 1: there is a control character"),
        ('a = "C:\\data"', "plan.toml, line 1: a backslash in text must be doubled"),
        ("a = 01", "plan.toml, line 1: "),
        ("a = 2026-13-45", "plan.toml, line 1: "),
        ("= 1", "plan.toml, line 1: a line starts with a key"),
        ("a = '''never closed\n\n", "plan.toml, line 3: text of several lines is not closed"),
        (f"a = {'9' * 5000}", "plan.toml: a number or a date is out of range"),
    ],
)
def test_text_that_is_no_toml_is_told_with_its_line(text, told):
    with pytest.raises(PlanError) as error:
        parse(text)
    assert str(error.value).startswith(told)
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 100_000 + "]" * 100_000,
        "a = " + "[" * 50 + "]" * 50,
        "a = " + "{b = " * 3000 + "1" + "}" * 3000,
        ".".join("a" * 100_000) + " = 1",
        "[" + ".".join("a" * 100_000) + "]",
        "[a]\n" + "\n".join(f"{'.'.join('b' * 15)}{i} = 1" for i in range(5000)),
        "\n".join(f"[a{i}]" for i in range(100_000)),
        "[[queries]]\n" * 50_000,
        "\n".join(f"[columns.a{i}]" for i in range(20_000)),
        "a = [" + "1," * 50_000 + "]",
        "a = '" + "x" * 1_000_000 + "'",
        "a = '''" + "''" * 400_000 + "x'''",
        "\u202e = 1",
        '"\\u0000" = 1',
        "version = 1\n" + '"' + "k" * 10_000 + '" = 1',
    ],
    ids=range(15),
)
def test_hostile_texts_are_refused_soon_and_in_words(text):
    with pytest.raises(PlanError) as error:
        parse(text)
    assert len(str(error.value)) < 20_000
    assert all(line.isprintable() for line in str(error.value).splitlines())


@given(st.text(max_size=60))
def test_any_text_is_a_plan_or_a_plan_error(text):
    with pytest.raises(PlanError):
        parse(text)


@given(
    st.sampled_from(sorted(positions(GOOD), key=str)),
    st.sampled_from(["nan", "'x'", "[]", "{}", "true", "-3"]),
)
def test_any_value_in_any_place_is_a_plan_or_a_plan_error(place, value):
    """Every line with a single key gets another value."""
    line = positions(GOOD)[place]
    lines = GOOD.splitlines()
    if "=" in lines[line - 1]:
        lines[line - 1] = f"{lines[line - 1].split('=')[0]}= {value}"
    problems = ()
    try:
        parse("\n".join(lines))
    except PlanError as error:
        problems = error.problems
    assert not problems or any(problem.line == line for problem in problems)


def test_fields_count_from_one_and_quote_what_is_no_word():
    assert field_words(("queries", 0, "where", "a b")) == 'queries.1.where."a b"'
    assert field_words(("columns", "a\x1bb")) == 'columns."a\\u001bb"'
    assert len(field_words(("columns", "k" * 10_000))) < 100


class Compared(str):
    """Text that counts how often it is compared."""

    times = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Compared.times += 1
        return str.__eq__(self, other)


def test_a_category_there_twice_is_found_without_comparing_all_pairs():
    listed = [Compared(f"category {i}") for i in range(2000)]
    assert read_categories(listed) == tuple(listed)
    with pytest.raises(ValueError, match="'category 1999' is there twice"):
        read_categories([*listed, Compared("category 1999")])
    assert 0 < Compared.times < 10 * len(listed)
