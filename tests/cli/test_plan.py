"""`sfumato plan` and `sfumato choose-epsilon`."""

import json
import os
import tomllib

import pytest
from tests.cli.people import CANARIES, replaced
from tests.cli.running import called

MEAN = ("choose-epsilon", "mean", "--error", "250", "--rows", "20000", "--bounds", "0", "250000")


# --- plans ----------------------------------------------------------------------------------------


def test_a_plan_is_begun_from_the_header_and_never_replaced_unasked(home):
    status, printed, complained = called("plan", "new", "people.csv", "-o", "new.toml")
    assert (status, complained) == (0, "")
    assert "sfumato plan check new.toml" in printed
    text = (home / "new.toml").read_text("utf-8")
    begun = tomllib.loads(text)
    assert set(begun["columns"]) == {"id", "age", "income", "team", "note"}
    assert not any(canary in text for canary in CANARIES)
    (home / "new.toml").write_text("mine")
    status, printed, complained = called("plan", "new", "people.csv", "-o", "new.toml")
    assert (status, printed) == (2, "")
    assert "new.toml exists already" in complained
    assert (home / "new.toml").read_text() == "mine"
    status, printed, _ = called("plan", "new", "people.csv", "-o", "new.toml", "--force", "--json")
    assert (status, json.loads(printed)["plan"]) == (0, "new.toml")
    assert (home / "new.toml").read_text("utf-8") == text


def test_a_plan_in_another_folder_finds_its_data(home):
    (home / "plans").mkdir()
    assert called("plan", "new", "people.csv", "-o", "plans/mine.toml")[0] == 0
    text = (home / "plans" / "mine.toml").read_text("utf-8")
    assert tomllib.loads(text)["data"]["path"] == "../people.csv"
    assert "sfumato plan check mine.toml" in text


def test_a_begun_plan_says_what_is_missing_with_its_lines(home):
    assert called("plan", "new", "people.csv", "-o", "new.toml")[0] == 0
    status, printed, complained = called("plan", "check", "new.toml")
    assert (status, printed) == (2, "")
    assert "new.toml, line " in complained
    assert "budget" in complained


def test_check_and_preview_read_no_value_and_spend_nothing(home, monkeypatch):
    from sfumato.data import files

    monkeypatch.setattr(files, "read", lambda *_, **__: pytest.fail("the data were read"))
    status, printed, complained = called("plan", "check", "plan.toml")
    assert (status, complained) == (0, "")
    assert "4 queries" in printed
    assert json.loads(called("plan", "check", "plan.toml", "--json")[1])["usable"]
    status, printed, complained = called("plan", "preview", "plan.toml", "--rows", "400")
    assert (status, complained) == (0, "")
    for told in ("mean income by team", "ε 0.4", "in each of 3 groups", "All together cost ε 1 of ε 1"):
        assert told in " ".join(printed.split())
    document = json.loads(called("plan", "preview", "plan.toml", "--rows", "400", "--json")[1])
    assert [query["name"] for query in document["queries"]][:2] == ["people", "mean income by team"]
    assert not (home / "ledger.db").exists()


def test_a_preview_says_what_verifies_intervals_and_how_wide_they_will_be(home):
    asked = '\n[[queries]]\nname = "halves"\nstatistic = "median"\ncolumn = "income"\n'
    text = (home / "plan.toml").read_text("utf-8")
    (home / "verified.toml").write_text(text.replace("share = 0.4", "share = 0.2") + asked, "utf-8")
    status, printed, complained = called("plan", "preview", "verified.toml", "--rows", "400")
    assert (status, complained) == (0, "")
    told = " ".join(printed.split())
    divided = "two fifths of the rest verifies the intervals, unless values are few"
    assert f"halves: {divided}" in told
    assert "ranks wide" in told
    document = json.loads(called("plan", "preview", "verified.toml", "--rows", "400", "--json")[1])
    assert document["queries"][-1]["divided"] == divided


def test_a_missing_data_file_is_told_by_check_and_no_mistake_yet(home):
    (home / "people.csv").unlink()
    status, printed, _ = called("plan", "check", "plan.toml")
    assert status == 0
    assert "people.csv is not there yet" in printed


def test_the_schema_is_json_schema():
    status, printed, complained = called("plan", "schema")
    assert (status, complained) == (0, "")
    assert json.loads(printed)["required"][0] == "version"
    assert called("plan", "schema", "--json")[1] == printed


@pytest.mark.parametrize("command", [("plan", "check"), ("plan", "preview"), ("release", "-o", "out")])
def test_a_plan_that_cannot_be_used_is_told_with_its_place(home, command):
    (home / "text.toml").write_text("no plan at all")
    (home / "binary.toml").write_bytes(bytes(range(256)))
    (home / "folder.toml").mkdir()
    (home / "empty.toml").write_text("")
    for name in ("missing.toml", "text.toml", "binary.toml", "folder.toml", "empty.toml", "people.csv"):
        status, printed, complained = called(*command, name)
        assert (status, printed) == (2, ""), name
        assert name in complained
        assert not any(canary in complained for canary in CANARIES)
    replaced(home / "plan.toml", 'column = "income"', 'column = "incmoe"')
    status, _, complained = called(*command, "plan.toml")
    assert status == 2
    assert "did you mean income?" in complained
    assert not (home / "out").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind root")
def test_files_without_permission_are_told(home):
    for name in ("plan.toml", "people.csv"):
        (home / name).chmod(0)
        status, printed, complained = called("release", "plan.toml", "-o", "out")
        assert (status, printed) == (2, "")
        assert name in complained
        (home / name).chmod(0o600)


# --- budgets --------------------------------------------------------------------------------------


def test_the_smallest_epsilon_for_an_error_is_found_with_its_certificate():
    status, printed, complained = called(*MEAN)
    assert (status, complained) == (0, "")
    assert "mean of values: epsilon = 0.15" in printed
    assert "which does not reach it" in printed
    assert "ε 0.15" in printed
    assert "<- wanted" in printed
    document = json.loads(called(*MEAN, "--json")[1])
    assert (document["budget"]["epsilon"], document["certified"]) == ("3/20", True)
    assert [each["budget"]["epsilon"] for each in document["others"]][2] == "3/20"


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("count", "--error", "10", "--neighbours", "add-remove"), "pure"),
        (("sum", "--error", "1000", "--bounds", "0", "10", "--delta", "1e-6"), "approx"),
        (("variance", "--error", "50", "--rows", "1000", "--bounds", "0", "100", "--rho"), "zcdp"),
        (("proportion", "--error", "0.01", "--rows", "5000"), "pure"),
        (("histogram", "--error", "20", "--bins", "10", "--bounds", "0", "1"), "pure"),
        (("median", "--rank-error", "100", "--rows", "5000", "--bounds", "0", "1e5"), "pure"),
        (
            (
                "quantiles",
                "--probs",
                "0.1,0.9",
                "--rank-error",
                "200",
                "--rows",
                "5000",
                "--bounds",
                "0",
                "9",
            ),
            "pure",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_every_statistic_has_a_budget_for_an_error(arguments, kind):
    status, printed, complained = called("choose-epsilon", *arguments, "--json")
    assert (status, complained) == (0, "")
    assert kind in json.loads(printed)["budget"]["type"]


def test_a_scenario_tells_errors_in_value():
    status, printed, _ = called(
        *("choose-epsilon", "median", "--error", "9000", "--rows", "60", "--bounds", "0", "100000"),
        *("--step", "1000", "--scenario", "lognormal:mu=10.5,sigma=0.4"),
    )
    assert status == 0
    assert "lognormal with mu 10.5 and sigma 0.4" in printed
    assert "ranks and ±" in printed


def test_a_chart_is_drawn(home):
    status, printed, _ = called(*MEAN, "--chart", "errors.svg")
    assert (status, printed.splitlines()[-1]) == (0, "The chart is errors.svg")
    assert "<svg" in (home / "errors.svg").read_text("utf-8")


def test_a_plan_is_tried_with_several_budgets(home):
    status, printed, complained = called("choose-epsilon", "plan.toml", "--rows", "400")
    assert (status, complained) == (0, "")
    lines = [line.split() for line in printed.splitlines()]
    assert ["result", "ε", "0.25", "ε", "0.5", "ε", "1", "ε", "2", "ε", "4"] in lines
    assert ["people", "±120", "±60", "±30", "±15", "±7"] in lines
    document = json.loads(called("choose-epsilon", "plan.toml", "--rows", "400", "--json")[1])
    assert len(document["budgets"]) == 5


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("mean",), "give the error"),
        (("average", "--error", "1"), "is no statistic and no plan file"),
        (("missing.toml",), "missing.toml"),
        (("mean", "--error", "1", "--rows", "10"), "bounds must be given"),
        (("mean", "--error", "few", "--rows", "10", "--bounds", "0", "1"), "--error must be a number"),
        (("mean", "--error", "1", "--bounds", "9", "1"), "lower must be below upper"),
        (("mean", "--error", "1", "--bounds", "0", "1", "--bins", "3"), "--bins does not go with mean"),
        (
            ("mean", "--error", "1", "--bounds", "0", "1", "--neighbours", "near"),
            "--neighbours must be one of",
        ),
        (("mean", "--error", "1", "--bounds", "0", "1", "--rho", "--delta", "0.1"), "different kinds"),
        (("quantiles", "--error", "1", "--bounds", "0", "1"), "quantiles need --probs"),
        (
            ("median", "--error", "1", "--rows", "9", "--bounds", "0", "1"),
            "give a public guess with --scenario",
        ),
        (
            ("median", "--error", "1", "--rows", "9", "--bounds", "0", "1", "--scenario", "normal:mean"),
            "--scenario must be LAW:NAME=NUMBER",
        ),
        (
            ("median", "--error", "1", "--rows", "9", "--bounds", "0", "1", "--scenario", "strange:mean=1"),
            "must be one of",
        ),
        ((*MEAN[1:], "--chart", "picture.doc"), "must end in"),
        ((*MEAN[1:], "--chart", "no/such/folder.svg"), "no such file"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_question_is_told_in_few_words(home, arguments, told):
    status, printed, complained = called("choose-epsilon", *arguments)
    assert (status, printed) == (2, "")
    assert told in " ".join(complained.split())
