"""Names that look alike have one budget: the second is refused, in the transaction that would open it."""

import subprocess
import sys
import threading
from importlib.resources import files
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.items import count, opened

import sfumato as sf
from sfumato.ledger import sql, terms
from sfumato.ledger.names import _prototypes, _skeletons, look_alike

ALIKE = [
    ("people", "People"),
    ("people", "PEOPLE"),
    ("people", "people "),
    ("people", " people"),
    ("two  words", "two words"),
    ("people", "pe\u043eple"),  # Cyrillic o
    ("people", "ре\u043er\u2113е".replace("r", "р")),
    ("MOCKBA", "МОСКВА"),
    ("house", "Нouse"),  # Cyrillic capital en
    ("caf\u00e9", "cafe\u0301"),
    ("CAF\u00c9", "cafe\u0301"),
    ("people", "\uff50eople"),  # full width
    ("people", "peo\u034fple"),  # a joiner that is not shown
    ("people", "people\ufe0f"),
    ("people", "peo\u3164ple"),  # a filler
    ("file", "\ufb01le"),
    ("straße", "STRASSE"),
    ("bill", "bilI"),
    ("bill", "bil1"),
    ("bill", "bi|l"),
    ("pool", "poo1"),
    ("zero", "zer0"),
    ("ZERO", "zer0"),
    ("modern", "modem"),
    ("a-b", "a\u2010b"),
    ("it's", "it\u2019s"),
    ("ss", "ѕѕ"),
    ("cat", "\u03f2at"),  # a lunate sigma
]
UNLIKE = [
    ("people", "peoples"),
    ("people", "pe ople"),
    ("survey 2019", "survey 2020"),
    ("ai", "al"),
    ("fill", "fiil"),
    ("cafe", "café"),
    ("a", "b"),
    ("wave 1", "wave 2"),
    ("東京", "京東"),
    ("people-2", "people_2"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_names_that_people_take_for_one(one, other):
    assert one != other
    assert look_alike(one, ["nobody", other]) == other
    assert look_alike(other, [one, "nobody"]) == one


@pytest.mark.parametrize(("one", "other"), UNLIKE)
def test_names_that_nobody_takes_for_each_other(one, other):
    assert look_alike(one, [other]) is None
    assert look_alike(other, [one]) is None


@given(st.text(min_size=1, max_size=20))
def test_spellings_of_one_text_look_alike(name):
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        other = normalize(form, name)
        assert other == name or look_alike(other, [name]) == name
    assert look_alike(f" {name} ", [name]) == name
    assert look_alike(name, [name]) is None


def test_the_table_is_that_of_unicode():
    text = files("sfumato.ledger").joinpath("confusables.txt").read_text("ascii")
    assert "confusables.txt of Unicode 17.0.0" in text
    table = _prototypes()
    shown = {code: text for code, text in table.items() if text is not None}
    assert len(shown) > 6500
    # UTS 39 looks characters up after they are decomposed.
    whole = {code: text for code, text in shown.items() if normalize("NFD", chr(code)) == chr(code)}
    assert len(whole) > 5000
    assert all(_skeletons(chr(code))[1] == _skeletons(text)[1] for code, text in whole.items())


def test_the_tables_are_read_for_new_names_alone(tmp_path):
    code = (
        "import sys, sfumato as sf; from tests.ledger.items import count\n"
        "with sf.SqlLedger(sys.argv[1], anchor=sys.argv[2]) as ledger:\n"
        "    ledger.account('people').charge(count())\n"
        "print('sfumato.ledger.names' in sys.modules)"
    )
    path, anchor = tmp_path / "ledger.db", tmp_path / "anchor"
    with sf.SqlLedger(path, anchor=anchor) as ledger:
        opened(ledger).charge(count())
    assert subprocess.check_output([sys.executable, "-c", code, path, anchor], text=True).strip() == "False"


# --- in a ledger ------------------------------------------------------------------------------------


@pytest.fixture
def ledger(ledger_url, tmp_path):
    with sf.SqlLedger(ledger_url, anchor=tmp_path / "anchor") as ledger:
        yield ledger


def test_a_second_data_set_with_a_name_that_looks_the_same_is_refused(ledger):
    opened(ledger)
    with pytest.raises(
        sf.InvalidParameter, match=r"dataset must not look like 'people'.*got dataset='pe\\u043eple'"
    ):
        opened(ledger, name="pe\u043eple")
    opened(ledger)
    opened(ledger, name="others")
    assert ledger.datasets() == ("people", "others")
    assert ledger.head.sequence == 2


def test_a_second_analyst_with_a_name_that_looks_the_same_is_refused(ledger):
    opened(ledger, cap=sf.PureDP(10))
    ledger.allow("people", "ada", sf.PureDP(0.25))
    ledger.account("people", analyst="ada").charge(count(0.25))
    for name in ("Ada", "ada ", "аdа"):
        with pytest.raises(sf.InvalidParameter, match="analyst must not look like 'ada'"):
            ledger.account("people", analyst=name).charge(count(0.25))
        with pytest.raises(sf.InvalidParameter, match="analyst must not look like 'ada'"):
            ledger.allow("people", name, sf.PureDP(5))
    # Another data set has analysts of its own.
    opened(ledger, name="others")
    ledger.account("others", analyst="Ada").charge(count(0.25))
    assert ledger.verify().sound


def test_names_that_are_in_a_ledger_stay_valid(ledger, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        patch.setattr(terms, "_require_unlike", lambda *_: None)
        for name in ("people", "People"):
            opened(ledger, name=name)
        for name in ("ada", "Ada"):
            ledger.account("people", analyst=name).charge(count())
    for dataset in ("people", "People"):
        opened(ledger, name=dataset)
        ledger.account(dataset, analyst="ada").charge(count())
    ledger.account("people", analyst="Ada").charge(count())
    ledger.admit("people", ["ada", "Ada"])
    ledger.account("people", analyst="Ada").charge(count())
    assert ledger.verify().sound
    ledger.backup(tmp_path / "backup")
    again = sf.SqlLedger.restore(tmp_path / "backup", tmp_path / "again.db", anchor=tmp_path / "anchor")
    assert again.datasets() == ("people", "People")
    with pytest.raises(sf.InvalidParameter, match="must not look like 'people'"):
        opened(again, name="PEOPLE")


def test_of_names_that_look_alike_one_is_opened_however_many_try_at_once(ledger_url, tmp_path):
    names = ["people", "People", "PEOPLE", "pe\u043eple", "peop1e", "people "]
    starting, outcomes = threading.Barrier(len(names)), []

    def attempt(name):
        with sf.SqlLedger(ledger_url, anchor=tmp_path / "anchor") as ledger:
            starting.wait()
            try:
                opened(ledger, name=name)
                outcomes.append(name)
            except sf.InvalidParameter as error:
                outcomes.append("look like" in str(error))

    threads = [threading.Thread(target=attempt, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count(True) == 5
    with sf.SqlLedger(ledger_url, anchor=tmp_path / "anchor") as ledger:
        assert len(ledger.datasets()) == 1


# --- listed analysts --------------------------------------------------------------------------------


def test_an_analyst_who_is_not_listed_is_not_charged(ledger):
    terms = {"cap": sf.PureDP(1), "neighbours": "add-remove"}
    ledger.open("people", analysts=("ada",), **terms)
    ledger.account("people", analyst="ada").charge(count(), request="monday", digest="1f")
    with pytest.raises(
        sf.InvalidParameter, match="analyst must be listed for the data set 'people'; got analyst='bob'"
    ):
        ledger.account("people", analyst="bob").charge(count())
    ledger.admit("people", ["bob"])
    ledger.account("people", analyst="bob").charge(count())
    ledger.renew("people", sf.PureDP(1), reason="more")
    ledger.allow("people", "cy", sf.PureDP(0.5))
    with pytest.raises(sf.InvalidParameter, match="got analyst='cy'"):
        ledger.account("people", analyst="cy").charge(count())
    assert ledger.account("people", analyst="ada").keep("monday", b"a reply") == b"a reply"
    assert [entry.state for entry in ledger.entries()] == ["listed"] * 7
    assert ledger.verify().sound


def test_a_data_set_gets_a_list_later_and_then_nobody_else_is_charged(ledger, tmp_path):
    account = opened(ledger)
    account.charge(count())
    ledger.admit("people", ["ada"])
    with pytest.raises(sf.InvalidParameter, match="must be listed"):
        account.charge(count())
    ledger.account("people", analyst="ada").charge(count())
    # The list outlives a restore, and a loss.
    ledger.backup(tmp_path / "backup")
    ledger.account("people", analyst="ada").charge(count())
    again = sf.SqlLedger.restore(
        tmp_path / "backup", tmp_path / "again.db", anchor=tmp_path / "anchor", accept_loss=True
    )
    again.renew("people", sf.PureDP(1), reason="the loss")
    with pytest.raises(sf.InvalidParameter, match="must be listed"):
        again.account("people").charge(count())
    again.account("people", analyst="ada").charge(count())
    assert again.verify().sound


def test_a_list_is_a_term_that_is_found_again(ledger):
    terms = {"cap": sf.PureDP(1), "neighbours": "add-remove"}
    ledger.open("people", analysts=["bob", "ada"], **terms)
    ledger.open("people", analysts=("ada", "bob"), **terms)
    ledger.open("people", **terms)
    for other in (["ada"], ["ada", "cy"], []):
        with pytest.raises(
            sf.InvalidParameter, match=r"analysts must be those of the ledger, \['ada', 'bob'\]"
        ):
            ledger.open("people", analysts=other, **terms)
    ledger.admit("people", ["cy"])
    ledger.open("people", analysts=["ada", "bob", "cy"], **terms)
    ledger.open("others", analysts=(), **terms)
    with pytest.raises(sf.InvalidParameter, match="must be listed"):
        ledger.account("others").charge(count())
    for wrong in ("ada", 7, ["ada", 7], ["ada", "Ada"], [""]):
        with pytest.raises(sf.InvalidParameter, match="analyst"):
            ledger.admit("people", wrong)
    assert ledger.head.sequence == 3


def test_a_spend_of_an_analyst_who_was_not_listed_breaks_a_rule(ledger, monkeypatch):
    ledger.open("people", cap=sf.PureDP(1), neighbours="add-remove", analysts=["ada"])
    with monkeypatch.context() as patch:
        plain = sql.standing_of
        patch.setattr(sql, "standing_of", lambda record, _: plain(record, frozenset({"ada", "eve"})))
        ledger.account("people", analyst="eve").charge(count())
    (problem,) = ledger.verify().problems
    assert "analyst must be listed" in problem
