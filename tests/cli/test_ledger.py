"""`sfumato ledger` on a real ledger in SQLite."""

import json
import sqlite3

import pytest
from tests.cli.people import PLAN, files_of
from tests.cli.running import called

import sfumato as sf
from sfumato.laws import SeededBits
from sfumato.ledger.sql import RECENT

OPEN = ("ledger", "open", "people", "--neighbours", "add-remove", "--epsilon")


@pytest.fixture
def opened(home):
    assert called(*OPEN, "0.3")[0] == 0
    return home


def damage(connection, old, new, sequence):
    """Change an entry behind the back of the ledger."""
    chosen = "select name from sqlite_master where type = 'trigger'"
    for (trigger,) in connection.execute(chosen).fetchall():
        connection.execute(f'drop trigger "{trigger}"')
    connection.execute(
        f"update ledger_entries set payload = replace(payload, {old}, {new}) where sequence = {sequence}"
    )


def shown(*more):
    return json.loads(called("ledger", "show", *more, "--json")[1])


def test_looking_at_a_ledger_that_is_not_there_makes_none(home):
    for name in ("show", "verify"):
        status, printed, complained = called("ledger", name)
        assert (status, printed) == (4, "")
        assert "there is no ledger at sqlite:///ledger.db" in complained
    assert not (home / "ledger.db").exists()


@pytest.mark.parametrize(
    "url", ["sqlite+pysqlite:///nothere.db", "sqlite:///nothere.db?timeout=5", "./nothere.db", "empty.db"]
)
@pytest.mark.parametrize("name", ["show", "verify"])
def test_looking_makes_no_ledger_however_it_is_addressed(home, url, name):
    (home / "empty.db").write_bytes(b"")
    before = files_of(home)
    status, printed, complained = called("ledger", name, "--ledger", url)
    assert (status, printed) == (4, "")
    assert "there is no ledger" in complained
    assert files_of(home) == before


def test_an_address_that_is_none_is_told(home):
    status, printed, complained = called("ledger", "show", "--ledger", "oracle://nowhere/x")
    assert (status, printed) == (2, "")
    assert "postgresql://" in complained


def test_a_data_set_shows_its_own_budget_and_analysts_with_caps_theirs(opened):
    """Also where the analyst whom nobody named has a cap."""
    assert called("ledger", "allow", "people", "analyst", "--epsilon", "0.1")[0] == 0
    assert called("ledger", "allow", "people", "alice", "--epsilon", "0.2")[0] == 0
    count = sf.Count(budget=sf.PureDP(0.05), neighbours="add-remove")
    sf.SqlLedger("ledger.db").account("people", analyst="alice").charge(count)
    (found,) = shown()["datasets"]
    told = [found[key]["epsilon"] for key in ("cap", "spent", "remaining")]
    assert told == ["3/10", "1/20", "1/4"]
    assert [
        (each["analyst"], *(each[key].get("epsilon", "0") for key in ("cap", "spent", "remaining")))
        for each in found["analysts"]
    ] == [("alice", "1/5", "1/20", "3/20"), ("analyst", "1/10", "0", "1/10")]
    lines = [line.split() for line in called("ledger", "show")[1].splitlines()]
    assert ["people", "row", "add-remove", "ε", "0.3", "ε", "0.05", "ε", "0.25"] in lines
    assert ["alice", "people", "ε", "0.2", "ε", "0.05", "ε", "0.15"] in lines
    assert ["analyst", "people", "ε", "0.1", "nothing", "ε", "0.1"] in lines


def test_the_acts_of_a_curator_are_entries_and_amounts_stay_exact(opened):
    assert called("ledger", "renew", "people", "--epsilon", "0.1", "--reason", "a year later")[0] == 0
    status, printed, _ = called("ledger", "allow", "people", "alice", "--epsilon", "0.25")
    terms, left = "people, by row, add-remove: cap ε 0.4", "spent nothing, left ε 0.25"
    assert (status, printed) == (0, f"{terms}, of which alice may spend ε 0.25; {left}\n")
    account = shown()["datasets"][0]
    assert (account["cap"]["epsilon"], account["remaining"]["epsilon"]) == ("2/5", "2/5")
    document = shown("people")
    assert [entry["kind"] for entry in document["entries"]] == ["open", "renew", "allow"]
    assert document["entries"][1]["facts"]["reason"] == "a year later"
    assert document["head"]["sequence"] == 3
    printed = called("ledger", "show", "people")[1]
    for told in ("data set", "ε 0.4", "a year later", "alice", "Head: entry 3"):
        assert told in printed


def test_the_unit_is_told_where_it_is_opened_and_shown(opened):
    told = called("ledger", "open", "visits", *OPEN[3:], "1", "--unit", "person")
    assert told[:2] == (0, "visits, by person, add-remove: cap ε 1; spent nothing, left ε 1\n")
    assert [account["unit"] for account in shown()["datasets"]] == ["row", "person"]
    assert "person" in called("ledger", "show")[1]


def test_a_retired_data_set_stays_closed(opened):
    assert called("ledger", "retire", "people", "--reason", "the consent ended")[0] == 0
    status, _, complained = called("ledger", "renew", "people", "--epsilon", "1", "--reason", "no")
    assert status == 3
    assert "retired" in complained
    assert shown()["datasets"][0]["remaining"]["epsilon"] == "0"


@pytest.mark.parametrize(
    ("options", "kind"), [(("--epsilon", "1", "--delta", "1e-6"), "approx"), (("--rho", "0.1"), "zcdp")]
)
def test_every_kind_of_budget_has_its_options(home, options, kind):
    assert called("ledger", "open", "x", "--neighbours", "substitution", *options)[0] == 0
    assert kind in shown()["datasets"][0]["cap"]["type"]


@pytest.mark.parametrize(
    "wrong",
    [
        ("ledger", "open", "x", "--neighbours", "add-remove"),
        ("ledger", "open", "x", "--epsilon", "1"),
        ("ledger", "open", "x", "--neighbours", "add-remove", "--epsilon", "1", "--rho", "1"),
        ("ledger", "open", "x", "--neighbours", "add-remove", "--delta", "1e-6"),
        ("ledger", "open", "x", "--neighbours", "near", "--epsilon", "1"),
        ("ledger", "open", "x", "--neighbours", "add-remove", "--epsilon", "much"),
        ("ledger", "open", "x", "--neighbours", "add-remove", "--epsilon", "-1"),
        ("ledger", "open", "x", "--neighbours", "add-remove", "--epsilon", "1e999999999"),
        ("ledger", "open", "people", "--neighbours", "substitution", "--epsilon", "0.3"),
        (*OPEN, "0.3", "--unit", "person"),
        ("ledger", "open", "x", "--neighbours", "add-remove", "--epsilon", "1", "--unit", ""),
        ("ledger", "show", "nobody"),
        ("ledger", "renew", "people", "--epsilon", "1"),
        ("ledger", "renew", "nobody", "--epsilon", "1", "--reason", "x"),
        ("ledger", "export", "plan.toml"),
        ("ledger", "backup", "no/such/folder/copy"),
        ("ledger",),
        ("ledger", "forget"),
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_a_mistake_exits_with_2_and_enters_nothing(opened, wrong):
    before = shown()
    status, _, complained = called(*wrong)
    assert status == 2, complained
    assert "Traceback" not in complained
    assert shown() == before


def test_a_copy_brings_a_ledger_back_and_an_older_one_costs_all_that_was_left(opened):
    assert called("ledger", "backup", "copy")[0] == 0
    head = shown()["head"]
    status, printed, _ = called("ledger", "restore", "copy", "--ledger", "new.db", "--json")
    assert status == 0, printed
    assert shown("--ledger", "new.db")["head"] == head
    assert (
        called("ledger", "renew", "people", "--epsilon", "1", "--reason", "x", "--ledger", "new.db")[0] == 0
    )
    (opened / "ledger.db").unlink()
    status, _, complained = called("ledger", "restore", "copy", "--ledger", "third.db")
    assert status == 4
    assert "what was spent since is unknown" in complained
    assert called("ledger", "restore", "copy", "--ledger", "third.db", "--accept-loss")[0] == 0
    assert shown("--ledger", "third.db")["datasets"][0]["remaining"]["epsilon"] == "0"


def test_restore_asks_for_what_backup_wrote_and_for_no_database(opened):
    words = " ".join(called("ledger", "restore", "--help")[1].split())
    assert "ledger restore copy.jsonl --ledger ledger.db" in words
    assert called("ledger", "backup", "copy.jsonl")[0] == 0
    assert [json.loads(line) for line in (opened / "copy.jsonl").read_text("ascii").splitlines()]
    assert called("ledger", "restore", "ledger.db", "--ledger", "new.db")[0] == 4


def test_an_export_is_for_everybody_and_is_not_replaced_unasked(opened):
    assert called("ledger", "export", "all.json")[0] == 0
    text = (opened / "all.json").read_text()
    assert "people" in text
    assert called("ledger", "export", "all.json")[0] == 2
    assert called("ledger", "export", "all.json", "--force", "--json")[0] == 0
    assert (opened / "all.json").read_text() == text


@pytest.mark.parametrize("command", ["backup", "export"])
def test_an_old_copy_stays_until_the_new_one_is_whole(opened, command):
    assert called("ledger", command, "copy")[0] == 0
    before = (opened / "copy").read_bytes()
    books = sf.SqlLedger("ledger.db")
    for _ in range(RECENT + 2):  # the last entries are checked when a ledger is opened, and older ones later
        books.renew("people", sf.PureDP(1), reason="aaaa")
    books.close()
    with sqlite3.connect(opened / "ledger.db") as connection:
        damage(connection, "'aaaa'", "'cccc'", 2)
    status, printed, _ = called("ledger", command, "copy", "--force")
    assert (status, printed) == (4, "")
    assert (opened / "copy").read_bytes() == before
    assert not [name for name in files_of(opened) if "copy" in name and name != "copy"]


@pytest.mark.parametrize("command", ["backup", "export"])
def test_a_copy_replaces_files_alone(opened, command):
    (opened / "folder").mkdir()
    (opened / "pipe").symlink_to("/dev/null")
    for target in ("folder", "pipe"):
        status, _, complained = called("ledger", command, target, "--force")
        assert status == 2
        assert "is no file that could be replaced" in complained
    assert (opened / "pipe").is_symlink()


def test_verify_finds_a_changed_entry_and_exits_with_1(opened):
    assert called("ledger", "renew", "people", "--epsilon", "1", "--reason", "x")[0] == 0
    status, printed, _ = called("ledger", "verify")
    assert (status, printed.startswith("The ledger holds: 2 entries.")) == (0, True)
    with sqlite3.connect(opened / "ledger.db") as connection:
        damage(connection, "'x'", "'y'", 2)
    status, printed, complained = called("ledger", "verify")
    assert (status, printed) == (1, "")
    assert "entry 2" in complained
    status, printed, complained = called("ledger", "verify", "--json")
    document = json.loads(printed)
    assert (status, complained, document["holds"]) == (1, "", False)
    assert document["problems"]
    # Other commands do not go on with it.
    assert called("ledger", "show")[0] == 4


def test_a_ledger_put_back_from_an_old_copy_is_noticed(opened):
    old = (opened / "ledger.db").read_bytes()
    assert called("ledger", "renew", "people", "--epsilon", "1", "--reason", "x")[0] == 0
    for leftover in opened.glob("ledger.db-*"):
        leftover.unlink()
    (opened / "ledger.db").write_bytes(old)
    assert called("ledger", "verify")[0] == 1
    assert called("ledger", "show")[0] == 4


# --- a ledger that is missing -----------------------------------------------------------------------


def test_a_deleted_ledger_is_not_begun_again_by_a_release(home, without_charts):
    assert called("release", "plan.toml", "-o", "out")[0] == 0
    for file in home.glob("ledger.db*"):
        file.unlink()
    before = everything(home)
    # More than once: a refusal that left a new ledger behind would be followed by a charge from zero.
    for command in (
        *[("release", "plan.toml", "-o", "again")] * 2,
        ("ledger", "show"),
        ("ledger", "verify"),
        ("ledger", "export", "e.jsonl"),
        ("ledger", "backup", "b.jsonl"),
        ("ledger", "open", "other", "--neighbours", "add-remove", "--epsilon", "1"),
        ("ledger", "allow", "people", "ada", "--epsilon", "1"),
        ("ledger", "admit", "people", "ada"),
        ("ledger", "renew", "people", "--reason", "more", "--epsilon", "1"),
        ("ledger", "retire", "people", "--reason", "it ended"),
        ("release", "plan.toml", "-o", "third"),
    ):
        status, printed, complained = called(*command)
        assert (status, printed) == (4, ""), command
        assert "is missing, and its anchor" in complained
        assert "sfumato ledger restore" in complained
        assert "sfumato ledger begin-anew" in complained
        assert everything(home) == before, command
    status, printed, complained = called("ledger", "begin-anew", "--json")
    assert (status, complained) == (0, "")
    assert json.loads(printed)["lost"] == 3
    assert called("release", "plan.toml", "-o", "again")[0] == 0
    assert called("ledger", "begin-anew")[0] == 2


def everything(home):
    """All files and folders, the anchors too."""
    return files_of(home.parent), sorted(home.parent.rglob("*"))


REFUSED = [
    (("release", "plan.toml", "-o", "taken"), 2),
    (("release", "plan.toml", "-o", "out", "--analyst", "a\nb"), 2),
    (("release", "plan.toml", "-o", "out", "--request", "x" * 300), 2),
    (("release", "missing.toml", "-o", "out"), 2),
    (("release", "large.toml", "-o", "out"), 2),
    (("ledger", "open", "people", "--neighbours", "add-remove"), 2),
    (("ledger", "open", "people", "--neighbours", "other", "--epsilon", "1"), 2),
    (("ledger", "open", "people", "--neighbours", "add-remove", "--epsilon", "10000"), 2),
    (("ledger", "open", "a\tb", "--neighbours", "add-remove", "--epsilon", "1"), 2),
    ((*OPEN, "1", "--analyst", "ada", "--analyst", "Ada"), 2),
    (("ledger", "admit", "people", "ada"), 4),
    (("ledger", "begin-anew"), 2),
    (("ledger", "restore", "missing.jsonl"), 4),
    (("ledger", "restore", "plan.toml"), 4),
]


@pytest.mark.parametrize(("command", "expected"), REFUSED)
def test_a_refused_command_makes_nothing(home, command, expected):
    (home / "taken").mkdir()
    (home / "taken" / "release.json").write_text("{}")
    (home / "large.toml").write_text(PLAN.replace("cap = { epsilon = 2 }", "cap = { epsilon = 10_000 }"))
    before = everything(home)
    status, printed, _ = called(*command)
    assert (status, printed) == (expected, "")
    assert everything(home) == before


def test_a_refused_session_makes_nothing(home):
    data = sf.Dataset({"age": [1]}, unit="row", neighbours="add-remove", name="people")
    before = everything(home)
    for more in ({"budget": sf.PureDP(1), "bits": SeededBits(1)}, {"budget": sf.PureDP(10_000)}):
        with pytest.raises(sf.InvalidParameter):
            sf.Session(data, ledger=f"sqlite:///{home}/ledger.db", **more)
    assert everything(home) == before


# --- names and lists --------------------------------------------------------------------------------


def test_a_name_that_looks_like_another_is_refused_and_the_other_is_named(opened):
    for name in ("People", "people ", "pe\u043eple"):
        status, _, complained = called("ledger", "open", name, *OPEN[3:], "0.3")
        assert status == 2
        assert "dataset must not look like 'people'" in complained
    assert [one["dataset"] for one in shown()["datasets"]] == ["people"]


def test_a_release_under_a_name_that_looks_like_another_charges_nothing(home, without_charts):
    assert called("release", "plan.toml", "-o", "out")[0] == 0
    spent = shown()
    (home / "plan.toml").write_text(PLAN.replace('name = "people"\nunit', 'name = "PEOPLE"\nunit'))
    status, _, complained = called("release", "plan.toml", "-o", "second")
    assert status == 2
    assert "must not look like 'people'" in complained
    assert shown() == spent


def test_only_listed_analysts_are_charged_and_more_can_be_admitted(home, without_charts):
    listed = PLAN.replace("cap = {", 'analyst = "ada"\nanalysts = ["ada"]\ncap = {')
    (home / "plan.toml").write_text(listed)
    assert called("release", "plan.toml", "-o", "out")[0] == 0
    assert shown()["datasets"][0]["listed"] == ["ada"]
    status, _, complained = called("release", "plan.toml", "-o", "bob", "--analyst", "bob")
    assert status == 2
    assert "analyst must be listed for the data set 'people'; got analyst='bob'" in complained
    status, printed, _ = called("ledger", "admit", "people", "bob", "cy")
    assert status == 0
    assert "Only listed analysts may spend on people: ada, bob, cy" in printed
    assert "Only listed analysts may spend on people: ada, bob, cy" in called("ledger", "show")[1]
    assert called("release", "plan.toml", "-o", "bob", "--analyst", "bob")[0] == 0
    assert called("ledger", "verify")[0] == 0
    status, _, complained = called("ledger", "admit", "people", "Ada")
    assert status == 2
    assert "analyst must not look like 'ada'" in complained


def test_a_plan_lists_its_own_analyst(home):
    (home / "plan.toml").write_text(PLAN.replace("cap = {", 'analysts = ["bob"]\ncap = {'))
    status, _, complained = called("plan", "check", "plan.toml")
    assert status == 2
    assert "must list the analyst of this plan, 'analyst'" in complained


def test_a_data_set_is_opened_for_listed_analysts(home):
    status, _, _ = called(*OPEN, "1", "--analyst", "ada", "--analyst", "bob")
    assert status == 0
    assert shown()["datasets"][0]["listed"] == ["ada", "bob"]


def test_an_older_copy_with_its_anchor_is_noticed_by_a_receipt(home, without_charts):
    assert called("release", "plan.toml", "-o", "first")[0] == 0
    kept = files_of(home.parent)
    assert called("release", "plan.toml", "-o", "second", "--again")[0] == 0
    assert (
        called("ledger", "verify", "--receipt", "first/receipt.json", "--receipt", "second/receipt.json")[0]
        == 0
    )
    for name, content in kept.items():
        (home.parent / name).write_bytes(content)
    assert called("ledger", "verify", "--receipt", "first/receipt.json")[0] == 0
    status, _, complained = called("ledger", "verify", "--receipt", "second/receipt.json")
    assert status == 1
    assert "is not the one that was published" in complained
    assert called("ledger", "verify", "--receipt", "plan.toml")[0] == 2
    assert called("ledger", "verify", "--receipt", "missing.json")[0] == 2
