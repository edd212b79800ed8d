"""`sfumato audit` of a mechanism of the user: verdicts, data from everywhere, mistakes told in one line."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.running import EXAMPLE, OWN, called, ran

from sfumato.cli.inputs import callable_from, data_from
from sfumato.cli.status import Refused


@pytest.fixture
def here(monkeypatch):
    monkeypatch.chdir(EXAMPLE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "noisy", raising=False)


def own(*options, function="noisy:draws", left="[1, 1, 1]", right="[1, 1]", epsilon="1"):
    return ("audit", function, "--left", left, "--right", right, "--epsilon", epsilon, *options)


def test_a_claim_that_holds_is_not_refuted(here):
    status, printed, complained = called(*own("--batched", "--samples", "20000", "--confidence", "0.999999"))
    assert (status, complained) == (0, "")
    assert "not refuted" in printed
    assert "A bound below the claim is no proof that the claim holds." in printed


def test_too_little_noise_is_a_violation(here):
    status, printed, _ = called(*own("--samples", "8000", function="noisy:careless_count"))
    assert status == 1
    assert "VIOLATED" in printed
    status, printed, _ = called(*own("--batched", "--samples=20000", "--json", epsilon="0.5"))
    document = json.loads(printed)
    assert status == 1
    assert document["verdict"] == "violated"
    assert 0.5 < document["at_least"]["epsilon"] <= 1.2


def test_the_json_of_a_mechanism_keeps_its_form(here):
    printed = called(*own("--batched", "--samples", "2000", "--delta", "0.1", "--json"))[1]
    document = json.loads(printed)
    assert list(document) == [
        *("schema", "version", "mechanism", "claimed", "at_least", "confidence", "samples"),
        *("event", "hits", "draws", "verdict", "attacks"),
    ]
    assert document["claimed"] == {"epsilon": 1, "delta": 0.1}
    assert document["attacks"] == []


def test_attacks_are_told_one_by_one(here):
    record = json.loads(called(*own("--batched", "--samples", "200", "--attacks", "--json"))[1])
    assert len(record["attacks"]) >= 3
    printed = called(*own("--batched", "--samples", "200", "--attacks"))[1]
    assert all(each["attack"] in printed for each in record["attacks"])


def test_the_example_runs_as_its_page_says():
    status, printed, complained = ran(*OWN, "--samples", "2000", "--confidence", "0.999999", here=EXAMPLE)
    assert (status, complained) == (0, "")
    assert "not refuted" in printed
    careless = [*OWN, "--samples", "8000"]
    careless[1] = "noisy:careless_count"
    status, printed, complained = ran(*careless, here=EXAMPLE)
    assert (status, complained) == (1, "")
    assert "VIOLATED" in printed


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"function": "no_such_module_at_all:count"}, "there is no module no_such_module_at_all in"),
        ({"function": "noisy.deeper:count"}, "cannot be imported|there is no module"),
        ({"function": "noisy:nothing"}, "module noisy has no nothing"),
        ({"function": "noisy:count.nothing"}, "module noisy has no count.nothing"),
        ({"function": "noisy:THREE"}, "noisy:THREE is not callable: it is of type list"),
        ({"function": "noisy"}, "the mechanism must be MODULE:FUNCTION"),
        ({"function": "noisy:"}, "the mechanism must be MODULE:FUNCTION"),
        ({"function": ":count"}, "the mechanism must be MODULE:FUNCTION"),
        ({"function": "noisy:count:more"}, "the mechanism must be MODULE:FUNCTION"),
        ({"function": "../noisy:count"}, "the mechanism must be MODULE:FUNCTION"),
        ({"function": "noisy:draws"}, "noisy:draws fails on --left: TypeError: draws.. missing"),
        ({"left": "[1, 1"}, "--left must be JSON, MODULE:NAME, or the path"),
        ({"right": "[" * 100_000}, "--right must be JSON"),
        ({"right": "9" * 10_000}, "--right must be JSON"),
        ({"left": ""}, "--left must be JSON"),
        ({"left": "noisy:FOUR"}, "module noisy has no FOUR"),
        ({"left": "missing.npy"}, "--left: there is no file missing.npy"),
        ({"right": "3"}, "noisy:count fails on --right: TypeError"),
        ({"epsilon": "-1"}, "epsilon must be positive"),
        ({"epsilon": "nan"}, "epsilon must be finite"),
        ({"epsilon": "inf"}, "epsilon must be finite"),
    ],
)
def test_a_mistake_is_told_in_one_line_and_exits_with_2(here, options, told):
    status, printed, complained = called(*own(**{"function": "noisy:count", **options}))
    assert (status, printed) == (2, "")
    assert len(complained.splitlines()) == 1
    assert len(complained) < 2000
    assert re.search(told, complained)


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "--jobs", "0"],
        ["audit", "--jobs", "two"],
        ["audit", "--jobs", "100000"],
        ["audit", "--no-such-option"],
        ["audit", "--left", "[1]"],
        ["audit", "--batched"],
        ["audit", "noisy:count"],
        ["audit", "noisy:count", "--left", "[1]", "--right", "[]"],
        ["audit", "noisy:count", "--epsilon", "much", "--left", "[1]", "--right", "[]"],
        [*OWN, "--quick"],
        [*OWN, "--only", "mean"],
        [*OWN, "--jobs", "2"],
        [*OWN, "more"],
        ["no-such-command"],
        [],
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_with_2_and_prints_nothing_to_standard_output(arguments):
    status, printed, complained = called(*arguments)
    assert status == 2
    assert "Traceback" not in complained
    assert not printed or not arguments


@pytest.mark.parametrize(
    "option", ["--samples=0", "--samples=-3", "--confidence=1", "--confidence=2", "--delta=1"]
)
def test_numbers_out_of_range_exit_with_2(here, option):
    status, printed, complained = called(*own(option, function="noisy:count"))
    assert (status, printed) == (2, "")
    assert option.partition("=")[0].strip("-") in complained


def test_a_module_that_fails_when_imported_is_told_with_its_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "sick_module.py").write_text("x = 1\ny = x / 0\n")
    (tmp_path / "needy_module.py").write_text("import a_module_that_is_not_there\n")
    (tmp_path / "odd_module.py").write_text("def f(:\n")
    for module, told in (
        ("sick_module", r"ZeroDivisionError: division by zero \(sick_module.py, line 2\)"),
        ("needy_module", "cannot be imported: ModuleNotFoundError"),
        ("odd_module", "cannot be imported: SyntaxError"),
    ):
        with pytest.raises(Refused, match=told):
            callable_from(f"{module}:f")


def test_data_come_from_files_modules_and_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    np.save("row.npy", np.arange(3))
    np.save("objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    Path("row.csv").write_text("salary\n1\n\n2.5\n")
    Path("rows.csv").write_text("1,2\n3,\n")
    Path("uneven.csv").write_text("1,2\n3\n")
    Path("text.csv").write_text("1\nmany\n")
    Path("empty.csv").write_text("")
    Path("made_for_data.py").write_text("ROW = (1, 2)\n")
    assert data_from("--left", "row.npy").tolist() == [0, 1, 2]
    assert data_from("--left", "row.csv").tolist() == [1, 2.5]
    assert np.isnan(data_from("--left", "rows.csv")[1, 1])
    assert data_from("--left", "made_for_data:ROW") == (1, 2)
    assert data_from("--left", '{"a": [1, NaN]}')["a"][0] == 1
    assert len(data_from("--left", "empty.csv")) == 0
    for name in ("objects.npy", "uneven.csv", "text.csv", "missing.csv"):
        with pytest.raises(Refused, match=name):
            data_from("--left", name)
