"""Plans of anonymisations: what a file says is what is done, and what is wrong is told by file and key."""

from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.anonymity import (
    Closeness,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    RecursiveDiversity,
)
from sfumato.anonymity.hierarchies import Ranges, Tree
from sfumato.anonymity.plan_file import parse_anonymity, read_anonymity
from sfumato.errors import InvalidParameter

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "anonymity" / "anonymity.toml"
WHOLE = """
version = 1
title = "People"
table = "people.csv"
quasi = ["age", "sex"]
sensitive = ["pay"]
keep = ["ward"]
drop = ["name"]
k = 5
method = "full-domain"
metric = "height"
suppression = 0.1
suppressed = "star"
order = "kept"

[types]
sex = "text"

[[goals]]
kind = "distinct-diversity"
column = "ill"
l = 2

[[goals]]
kind = "entropy-diversity"
column = "ill"
l = 1.5

[[goals]]
kind = "recursive-diversity"
column = "ill"
c = 0.1
l = 2

[[goals]]
kind = "closeness"
column = "pay"
t = 0.2
distance = "ordered"

[hierarchies.age]
kind = "ranges"
width = 5

[hierarchies.sex]
kind = "tree"
tree = { any = ["f", "m"] }
"""


def test_everything_that_a_plan_says_is_read_exactly():
    plan = parse_anonymity(WHOLE, path="folder/anonymity.toml")
    settings = plan.settings
    assert settings.quasi == ("age", "sex")
    assert settings.sensitive == ("pay", "ill")
    assert (settings.keep, settings.drop) == (("ward",), ("name",))
    assert settings.goals == (
        KAnonymity(5),
        DistinctDiversity("ill", 2),
        EntropyDiversity("ill", Fraction(3, 2)),
        RecursiveDiversity("ill", Fraction(1, 10), 2),
        Closeness("pay", Fraction(1, 5), "ordered"),
    )
    assert (settings.method, settings.metric, settings.suppressed, settings.order) == (
        "full-domain",
        "height",
        "star",
        "kept",
    )
    assert settings.suppression == Fraction(1, 10)
    assert isinstance(settings.hierarchies["age"], Ranges)
    assert isinstance(settings.hierarchies["sex"], Tree)
    assert plan.table == Path("folder/people.csv")
    assert plan.types == {"sex": "text"}
    assert plan.title == "People"


def test_the_example_can_be_read():
    plan = read_anonymity(EXAMPLE)
    assert plan.table == EXAMPLE.with_name("patients.csv")
    assert plan.table.exists()


SHORT = 'version = 1\nquasi = ["age"]\nk = 5\n'
WRONG = [
    (SHORT.replace("1", "2"), "a.toml: version must be one of 1, got version=2"),
    (SHORT.replace("version = 1\n", ""), "a.toml: version must be one of 1, got version=None"),
    ("version = 1\nk = 5", "a.toml: quasi must be given"),
    ('version = 1\nquasi = ["age"]', "a.toml: goals must have at least one goal, or k be given"),
    (SHORT + "qasi = 1", "a.toml: qasi is no key of an anonymisation; did you mean quasi?"),
    (SHORT + "zzz = 1", "a.toml: zzz is no key of an anonymisation; keys are version"),
    (SHORT.replace("5", "true"), "a.toml: k must be a whole number, got k=True"),
    (SHORT.replace('["age"]', '"age"'), "a.toml: quasi must be a list of column names"),
    (SHORT + "goals = 3", r"a.toml: goals must be tables, such as \[\[goals\]\]"),
    (SHORT + '[[goals]]\nkind = "magic"', "a.toml: goals.1.kind must be one of 'k-anonymity'"),
    (SHORT + '[[goals]]\nkind = "closeness"\ncolumn = "a"', "a.toml: goals.1.t must be given"),
    (SHORT + '[[goals]]\nkind = "closeness"\ncolumn = "a"\nt = 2', r"a.toml: goals.1: t must be in \[0, 1\]"),
    (SHORT + '[[goals]]\nkind = "k-anonymity"\nk = 3\nl = 2', "a.toml: goals.1.l is no key"),
    (SHORT + '[hierarchies.age]\nkind = "ranges"\nwidth = 0', "a.toml, line 6: hierarchies.age.width: "),
    (SHORT + "hierarchies = 3", "a.toml: hierarchies must be tables"),
    (SHORT + "types = 3", "a.toml: types must be a table"),
    (SHORT + "title = 3", "a.toml: title must be text"),
    (SHORT + "table = ''", "a.toml: table must be text"),
    (SHORT + "suppression = 2", r"a.toml: suppression must be in \[0, 1\]"),
    (SHORT + "k = 6", "a.toml: is no TOML: Cannot overwrite a value"),
    ("a = " + "[" * 10_000, "a.toml: is no TOML"),
]


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_what_is_wrong_is_told_by_file_and_key(text, words):
    with pytest.raises(InvalidParameter, match=words):
        parse_anonymity(text, path="a.toml")


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "a.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidParameter, match="must be text in UTF-8"):
        read_anonymity(path)


def test_numbers_are_read_to_the_last_digit():
    text = (
        'version = 1\nquasi = ["age"]\nk = 2\nmethod = "datafly"\nsuppression = 0.1000000000000000000000001'
    )
    assert parse_anonymity(text).settings.suppression == Fraction(1, 10) + Fraction(1, 10**25)
