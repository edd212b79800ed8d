"""The page of an anonymised table: its attack is right, its plan and program run, and readers can read it."""

import contextlib
import gzip
import html
import io
import re
import tomllib
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.browsing import CONTRAST, OUTSIDE, OVERFLOW, UNNAMED, Visit, browser, needs_chromium
from tests.cli.running import called

from sfumato.anonymity import Closeness, DistinctDiversity, EntropyDiversity, RecursiveDiversity, anonymize
from sfumato.anonymity.hierarchies import Prefix, Ranges
from sfumato.charts.classes import bins, class_sizes
from sfumato.errors import InvalidParameter
from sfumato.report.anonymity_attack import TEXTBOOK, TEXTBOOK_ROLES, homogeneity
from sfumato.report.anonymity_page import anonymity_html
from sfumato.report.anonymity_plan import FILL, private_release

__all__ = ["browser"]  # a fixture
HOSTILE = ['<script>alert("x")</script>', "</style><b>", "{{ 7 * 7 }}", "a\u202eb", "wide " * 40]


def people(size=300, seed=5):
    drawn = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "name": [f"p{i}" for i in range(size)],
            "age": drawn.integers(18, 90, size),
            "sex": drawn.choice(["f", "m"], size),
            "code": drawn.choice(["10115", "10117", "20095"], size),
            "ill": drawn.choice(["flu", "gout", "cold"], size, p=[0.7, 0.2, 0.1]),
            "cost": drawn.normal(900, 200, size).round(2),
            "born": pl.Series(drawn.integers(0, 9_000, size)).cast(pl.Date),
        }
    )


ROLES = {"quasi": ["age", "sex", "code"], "sensitive": ["ill"], "keep": ["cost", "born"], "drop": ["name"]}


@pytest.fixture(scope="module")
def page():
    return anonymity_html(anonymize(people(), k=4, **ROLES), title="A <ward>", path="ward.csv")


def words(page):
    return " ".join(html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL)).split())


# The attack


def test_the_attack_counts_what_a_reader_can_count():
    result = anonymize(people(), k=4, **ROLES)
    found = homogeneity(result.table, result.settings.quasi, "ill")
    by_class = {}
    for *key, ill in result.table.select(*ROLES["quasi"], "ill").iter_rows():
        by_class.setdefault(tuple(key), []).append(ill)
    alone = {key: ills for key, ills in by_class.items() if len(set(ills)) == 1}
    assert alone
    assert {one.labels: (one.value, one.rows) for one in found.exposed} == {
        key: (ills[0], len(ills)) for key, ills in alone.items()
    }
    assert found.rows_exposed == sum(map(len, alone.values()))
    assert [one.rows for one in found.exposed] == sorted((one.rows for one in found.exposed), reverse=True)
    most = sum(max(ills.count(ill) for ill in set(ills)) for ills in by_class.values())
    assert found.guessed == Fraction(most, 300)
    assert found.blind == Fraction(result.table["ill"].value_counts()["count"].max(), 300)


def test_the_textbook_table_has_one_class_that_gives_everybody_away():
    found = homogeneity(TEXTBOOK, *TEXTBOOK_ROLES)
    assert (found.classes, found.rows, found.rows_exposed) == (3, 12, 4)
    assert found.exposed[0].labels == ("[31, 45]", "20***")
    assert found.surest == found.exposed[0]


def test_without_such_a_class_the_surest_one_is_told():
    result = anonymize(people(), k=10, goals=[DistinctDiversity("ill", 3)], **ROLES)
    found = homogeneity(result.table, result.settings.quasi, "ill")
    assert found.exposed == ()
    assert 1 / 3 < found.surest.share < 1
    text = words(anonymity_html(result))
    assert "no class has a single value of ill" in text
    assert "Twelve fictional people" in text


def test_of_many_classes_some_are_listed_and_all_are_counted():
    table = {"age": [str(i // 3) for i in range(60)], "ill": [str(i // 6) for i in range(60)]}
    found = homogeneity(table, ("age",), "ill", most=4)
    assert [one.rows for one in found.exposed] == [3] * 4
    assert [one.labels for one in found.exposed] == [("0",), ("1",), ("10",), ("11",)]
    assert (found.classes_exposed, found.rows_exposed, found.classes) == (20, 60, 20)
    assert found.surest == found.exposed[0]


def test_the_surest_class_is_the_largest_of_the_surest():
    table = {"age": list("aaabbbbbbcc"), "ill": list("xxyxxxxyyuv")}
    found = homogeneity(table, ("age",), "ill")
    assert (found.surest.labels, found.surest.share, found.surest.rows) == (("b",), Fraction(2, 3), 6)
    assert found.exposed == ()


def test_every_column_that_is_given_away_is_told():
    size = 40
    table = {
        "a b": [i // 10 for i in range(size)],
        "ill": ["flu"] * size,
        "pay": [i // 20 for i in range(size)],
    }
    table["own"] = list(range(size))
    result = anonymize(table, quasi=["a b"], sensitive=["pay", "ill", "own"], k=10)
    text = words(anonymity_html(result))
    assert "this table gives the pay of 40 of its 40 rows away" in text
    assert "The same attack on other columns: ill is given away in 40 of 40 rows." in text
    assert "--diversity pay=2 on the command line" in text
    renamed = {("my pay" if name == "pay" else name): values for name, values in table.items()}
    again = anonymize(renamed, quasi=["a b"], sensitive=["my pay"], drop=["ill", "own"], k=10)
    assert "--diversity 'my pay=2' on the command line" in words(anonymity_html(again))


def test_relaxed_classes_can_overlap_and_the_attack_says_so():
    told = "this is about a person who fits no other one"
    for method in ("mondrian", "mondrian-relaxed"):
        text = words(anonymity_html(anonymize(people(), k=4, method=method, **ROLES)))
        assert "worked on this table" in text
        assert (told in text) == (method == "mondrian-relaxed")


# What the page says


def test_colours_are_told_by_what_was_asked_for_and_not_by_what_was_reached():
    result = anonymize({"age": [1] * 3 + [2] * 9 + [3] * 9}, quasi=["age"], k=5)
    assert result.after.k == 9
    text = words(anonymity_html(result))
    assert "with at least 9 rows, itself included" in text
    assert "Rows in classes of fewer than 5 are drawn in orange" in text


def test_losses_of_suppressed_rows_are_explained():
    table = {"age": [30] * 20 + [90]}
    asked = {"quasi": ["age"], "k": 4, "method": "full-domain", "suppression": 0.1}
    text = words(anonymity_html(anonymize(table, hierarchies={"age": Ranges(width=1, levels=1)}, **asked)))
    assert "as those of the 1 suppressed row" in text
    assert "and 21 for each suppressed row; smaller is better" in text
    assert "suppressed row" not in words(anonymity_html(anonymize(table, quasi=["age"], k=4)))


def test_the_page_has_goals_sizes_risks_losses_attack_and_plan(page):
    text = words(page)
    for part in (
        "This is not differential privacy.",
        "At least 4 rows in each class",
        "rows alone in their class",
        "average loss of a cell",
        "Mondrian: the table is cut",
        "A homogeneity attack, worked on this table",
        "Background knowledge.",
        "Composition.",
        "Minimality.",
        "The same table with differential privacy",
        "Kept as they were cost, born",
    ):
        assert part in text, part
    assert "<script" not in page
    assert page.count("<svg") == 2
    assert "A &lt;ward&gt;" in page


def test_all_goals_and_levels_are_told():
    goals = [
        DistinctDiversity("ill", 2),
        EntropyDiversity("ill", 1.2),
        RecursiveDiversity("ill", 8, 2),
        Closeness("ill", 0.5),
        Closeness("cost", 0.9),
    ]
    roles = {**ROLES, "sensitive": [], "keep": ["born"]}
    hierarchies = {"age": Ranges(width=20, levels=1), "code": Prefix(width=5)}
    result = anonymize(
        people(), k=4, goals=goals, method="full-domain", hierarchies=hierarchies, suppression=0.1, **roles
    )
    text = words(anonymity_html(result))
    assert "Entropy of ill in each class at least that of 1.2 equal values" in text
    assert "The most frequent ill of each class below 8 times all but the 1 most frequent" in text
    assert "Ill in each class within 0.5 of the whole table (t-closeness)" in text
    assert (" from the rows that are left" in text) == bool(result.partition.suppressed)
    assert "level 1 of 2" in text
    assert "optimal full-domain search" in text
    assert "of at most 10 %" in text


def test_the_ratio_of_the_most_frequent_value_is_told():
    table = {"age": [1] * 6 + [2] * 2, "ill": list("aaabbcdd")}
    goals = [RecursiveDiversity("ill", 2, 1), RecursiveDiversity("ill", 2, 2)]
    goals += [RecursiveDiversity("ill", 5, 4), RecursiveDiversity("ill", 5, 3)]
    text = words(anonymity_html(anonymize(table, quasi=["age"], goals=goals)))
    # Of all eight rows three have the first value, two, two and one the others.
    assert "below 2 times all 1 times 0.375 times" in text
    assert "but the 1 most frequent no others 0.6 times" in text
    assert "but the 2 most frequent no others 1 times" in text
    assert "but the 3 most frequent no others 3 times" in text


@pytest.mark.parametrize(("distance", "reached"), [("ordered", "0.333"), ("equal", "0.5"), ("auto", "0.333")])
def test_the_distance_that_was_asked_for_is_told(distance, reached):
    table = {"age": [1] * 4 + [2] * 4, "pay": [1, 2, 1, 2, 3, 4, 3, 4]}
    result = anonymize(table, quasi=["age"], goals=[Closeness("pay", 0.6, distance=distance)])
    assert f"within 0.6 of the whole table (t-closeness) {reached} {reached} " in words(
        anonymity_html(result)
    )


def test_shares_round_to_all_or_nothing_only_where_they_are():
    chart = class_sizes({"before": {1: 1, 9_999: 1}, "after": {10_000: 1}}).to_dict()
    texts = [[row["text"] for row in panel["data"]["values"]] for panel in chart["vconcat"]]
    assert (texts[0][0], texts[0][-2], texts[1][-1]) == ("<1 %", ">99 %", "100 %")
    table = {"age": [1] * 10_000, "ill": ["x"] * 9_999 + ["y"]}
    mixed = anonymize(table, quasi=["age"], k=2, sensitive=["ill"])
    assert ">99.9 %" in words(anonymity_html(mixed))


def test_stars_are_told():
    table = {"age": [30] * 20 + [90 + i for i in range(5)]}
    asked = {"quasi": ["age"], "k": 4, "method": "full-domain", "suppression": 0.2, "suppressed": "star"}
    result = anonymize(table, hierarchies={"age": Ranges(width=1, levels=1)}, **asked)
    assert "5 rows (20 %) of at most 20 %, shown as stars" in words(anonymity_html(result))


def test_a_table_without_sensitive_columns_gets_the_textbook_attack():
    text = words(
        anonymity_html(anonymize(people(), quasi=["age"], drop=people().columns[2:], keep=["name"], k=4))
    )
    assert "No sensitive column was named" in text
    assert "Twelve fictional people" in text


def test_hostile_names_and_values_stay_text():
    size = 20
    table = {
        HOSTILE[0]: [HOSTILE[1 + i % 2] for i in range(size)],
        HOSTILE[2]: [HOSTILE[4]] * size,
        'quo"te\n': [HOSTILE[3]] * size,
    }
    result = anonymize(table, quasi=[HOSTILE[0], HOSTILE[2]], sensitive=['quo"te\n'], k=5)
    page = anonymity_html(result, title=HOSTILE[0], path=HOSTILE[0])
    assert "<script" not in page
    assert page.count("</style>") == 1
    assert "{{ 7 * 7 }}" in page
    assert "\u202e" not in page


def test_names_that_turn_text_around_turn_nothing_around():
    names = ["a\u202eb", "c\u2066d"]
    table = {names[0]: [1] * 6, names[1]: ["x"] * 6}
    page = anonymity_html(anonymize(table, quasi=names[:1], sensitive=names[1:], k=3))
    assert "worked on this table" in page
    assert not {"\u202e", "\u2066"} & set(page)
    toml = html.unescape(re.search(r"<pre><code>(# The same table.*?)</code></pre>", page, re.DOTALL)[1])
    assert list(tomllib.loads(toml)["columns"]) == names


# The plan and the program


def completed(toml):
    """The plan with what a data steward would fill in, by public knowledge."""
    filled = toml.replace(f'neighbours = "{FILL}"', 'neighbours = "add-remove"')
    filled = filled.replace(f'epsilon = "{FILL}"', "epsilon = 2")
    places = {
        "age": (f'["{FILL}: the lowest", "{FILL}: the highest"]', "[0, 120]"),
        "cost": (f'["{FILL}: the lowest", "{FILL}: the highest"]', "[0, 5000]"),
        "born": (f'["{FILL}: the lowest", "{FILL}: the highest"]', "[1970-01-01, 1995-12-31]"),
        "sex": (f'["{FILL}: every possible value"]', '["f", "m"]'),
        "code": (f'["{FILL}: every possible value"]', '["10115", "10117", "20095"]'),
        "ill": (f'["{FILL}: every possible value"]', '["flu", "gout", "cold", "none"]'),
    }
    parts = re.split(r"(?=^\[)", filled, flags=re.MULTILINE)
    for name, (left, right) in places.items():
        parts = [
            part.replace(left, right) if part.startswith(f"[columns.{name}]") else part for part in parts
        ]
    return "".join(parts)


@pytest.mark.parametrize(
    ("quasi", "sensitive"),
    [
        (["age", "sex", "code"], ["ill"]),
        (["age"], ["cost"]),
        (["sex", "born"], ["cost", "ill"]),
        (["code"], []),
    ],
)
def test_the_plan_is_refused_as_it_is_and_can_be_used_once_completed(tmp_path, monkeypatch, quasi, sensitive):
    monkeypatch.chdir(tmp_path)
    table = people()
    table.write_csv("ward.csv")
    others = [name for name in table.columns if name not in (*quasi, *sensitive)]
    result = anonymize(table, quasi=quasi, sensitive=sensitive, drop=others, k=4)
    page = anonymity_html(result, title="Ward", path="ward.csv")
    toml = html.unescape(re.search(r"<pre><code>(# The same table.*?)</code></pre>", page, re.DOTALL)[1])
    Path("plan.toml").write_text(toml, "utf-8")
    status, _, complained = called("plan", "check", "plan.toml")
    assert status == 2
    assert FILL in complained
    Path("plan.toml").write_text(completed(toml), "utf-8")
    status, printed, complained = called("plan", "check", "plan.toml")
    assert (status, complained) == (0, "")
    assert "can be used" in printed


@pytest.mark.parametrize("ending", [".csv", "; .csv", ".tsv.gz", ".parquet", ".arrow"])
def test_the_program_runs_once_completed(tmp_path, monkeypatch, ending):
    monkeypatch.chdir(tmp_path)
    # Codes with zeros in front, which a reader that guesses takes for numbers.
    table = people().with_columns(sex=pl.col("sex").replace({"f": "01", "m": "02"}))
    if ending.endswith(("csv", "gz")):
        marks = {".csv": ",", "; .csv": ";", ".tsv.gz": "\t"}
        # A missing number, as programs of statistics write it.
        table = table.with_columns(
            cost=pl.when(pl.col("age") > 20).then("cost").cast(pl.String).fill_null("NA")
        )
        text = table.write_csv(separator=marks[ending])
        Path(f"ward{ending}").write_bytes(gzip.compress(text.encode()) if "gz" in ending else text.encode())
    else:
        getattr(table, {".parquet": "write_parquet", ".arrow": "write_ipc"}[ending])(f"ward{ending}")
    kinds = [("age", "integer"), ("sex", "text"), ("cost", "real"), ("ill", "text")]
    program = private_release(kinds, ["age", "sex"], ["ill", "cost"], path=f"ward{ending}", title="W").python
    assert "= ..." in program
    for name, value in {
        "NEIGHBOURS": '"add-remove"',
        "BUDGET": "sf.PureDP(5)",
        "AGE": "(0, 120)",
        "SEX": '("01", "02")',
        "COST": "(0, 5000)",
        "ILL": '("flu", "gout", "cold")',
    }.items():
        program = program.replace(f"\n{name} = ...", f"\n{name} = {value}")
    assert "= ..." not in program
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "program", "exec"), {})
    text = printed.getvalue()
    for told in ("count", "histogram of ill", "histogram of age", "quantiles of cost by sex"):
        assert told in text, told
    # At this budget the noise is far below the number of rows of a sex.
    found = re.search(r"histogram of sex\n.*\n\s+01\s+([\d,]+)", text)
    assert abs(int(found[1]) - (table["sex"] == "01").sum()) < 30


def test_nothing_of_the_table_is_in_the_plan(page):
    asked = private_release([("age", "integer"), ("ill", "text")], ["age"], ["ill"], path="a.csv", title="A")
    # It is made of names and kinds alone, so that no value can be in it.
    assert "flu" not in asked.toml + asked.python
    assert "10115" not in html.unescape(page).partition("# The same table")[2]


def test_names_of_any_letters_make_a_plan_and_a_program():
    kinds = [('quo"te\n', "integer"), ("7 é", "text"), ("class", "text"), ("budget", "real"), ("a b", "date")]
    made = private_release(kinds, [name for name, _ in kinds], [], path='x"y.csv', title="\u2028")
    assert list(tomllib.loads(made.toml)["columns"]) == [name for name, _ in kinds]
    compile(made.python, "program", "exec")
    # The budget of the program and the bounds of the column are two things.
    assert "\nBUDGET = ...  # sf.PureDP" in made.python
    assert "\nBUDGET_ = ...  # (lowest, highest)" in made.python


# Charts


def test_bars_of_a_panel_add_up_and_k_is_an_edge():
    chart = class_sizes({"before": {1: 7, 3: 4, 7: 1}, "after": {5: 2, 16: 1}}, k=4).to_dict()
    for panel, classes in zip(chart["vconcat"], (12, 3), strict=True):
        data = panel["data"]["values"]
        assert sum(row["share"] for row in data) == pytest.approx(1)
        assert sum(row["classes"] for row in data) == classes
        assert [row["size"] for row in data] == ["1", "2–3", "4", "5–9", "10–19"]
        assert len({row["colour"] for row in data[:2]}) == 1
        assert data[1]["colour"] != data[2]["colour"]
    assert bins(1) == [1, 2]
    assert bins(3, 7) == [1, 2, 5, 7, 10]
    with pytest.raises(InvalidParameter, match="tables must have a class"):
        class_sizes({"none": {}})
    with pytest.raises(InvalidParameter, match="k must be in"):
        class_sizes({"one": {1: 1}}, k=0)


# As readers see it


@needs_chromium
@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (1280, "dark")])
def test_the_page_fits_asks_for_nothing_and_can_be_read(browser, page, tmp_path, width, scheme):
    path = tmp_path / "page.html"
    path.write_text(page, "utf-8")
    with Visit(browser, path.as_uri(), width, scheme) as visit:
        assert visit.page.evaluate(OVERFLOW) <= 0
        assert visit.page.evaluate(OUTSIDE) == []
        assert visit.page.evaluate(UNNAMED) == 0
        assert visit.requests == [path.as_uri()]
        assert visit.complaints == []
        visit.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        found = visit.page.evaluate(CONTRAST)
        assert any(name.startswith("text ") for _, name in found)
        assert [one for one in found if one[0] < 4.5] == []
