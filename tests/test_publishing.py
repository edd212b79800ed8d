"""From a plan and a file to a publication: charged once, kept for good, and no trace of the data outside."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato import plan as plans
from sfumato import publishing, session
from sfumato.data import files
from sfumato.privacy import Amount
from sfumato.publication import Publication

PLAN = """
version = 1
title = "Salaries"
about = "Of fictional people."

[data]
path = "people.csv"
name = "people"
unit = "row"
neighbours = "substitution"

[budget]
epsilon = 1

[columns.salary]
type = "integer"
bounds = [0, 100]

[columns.team]
type = "text"
categories = ["red", "blue", "green"]

[[queries]]
name = "mean salary"
statistic = "mean"
column = "salary"

[[queries]]
name = "people by team"
statistic = "count"
column = "salary"
group_by = ["team"]

[[queries]]
name = "quartiles of the reds"
statistic = "quartiles"
column = "salary"
where = { team = "red" }
"""
ROWS = [(i % 100, "red" if i % 3 else "blue") for i in range(3000)]


def written(folder, text=PLAN, rows=ROWS, name="plan.toml"):
    (folder / "people.csv").write_text("salary,team\n" + "".join(f"{a},{b}\n" for a, b in rows))
    (folder / name).write_text(text)
    return plans.read(folder / name)


def spent(folder, dataset="people"):
    ledger = sf.SqlLedger(folder / "ledger.db")
    return ledger.account(dataset).spent if dataset in ledger.datasets() else Amount()


def test_a_plan_is_published_charged_and_kept(tmp_path):
    made = publishing.publish(written(tmp_path))
    assert made.fresh
    publication = made.publication
    assert [result.name for result in publication.results] == [
        "mean salary",
        "people by team",
        "quartiles of the reds",
    ]
    assert publication.rows == 3000
    assert publication.price == Amount(epsilon=1)
    assert spent(tmp_path) == Amount(epsilon=1)
    means, teams, reds = publication.results
    assert means.releases[0][0] == ()
    assert [key for key, _ in teams.releases] == [("red",), ("blue",), ("green",)]
    assert reds.where == (("team", "red"),)
    assert sf.SqlLedger(tmp_path / "ledger.db").verify().sound


def test_the_same_plan_again_returns_the_same_bytes_at_no_cost(tmp_path):
    plan = written(tmp_path)
    first, again = publishing.publish(plan), publishing.publish(plan)
    assert (first.fresh, again.fresh) == (True, False)
    assert first.reply == again.reply
    assert first.receipt == again.receipt
    assert spent(tmp_path) == Amount(epsilon=1)


def test_another_request_is_charged_and_refused_where_it_does_not_fit(tmp_path):
    plan = written(tmp_path)
    publishing.publish(plan)
    with pytest.raises(sf.BudgetExceeded):
        publishing.publish(plan, request="once more")
    assert spent(tmp_path) == Amount(epsilon=1)
    sf.SqlLedger(tmp_path / "ledger.db").renew("people", sf.PureDP(1), reason="a new year")
    assert publishing.publish(plan, request="once more").fresh
    assert spent(tmp_path) == Amount(epsilon=2)


@pytest.mark.parametrize(
    "rows",
    [[*ROWS[1:], (5, "blue")], ROWS[:-7], [("CANARY77", "red")], None],
    ids=["one row is another", "fewer rows", "no longer numbers", "the file is gone"],
)
def test_the_same_edition_returns_the_same_bytes_whatever_the_file_holds_now(tmp_path, rows):
    first = publishing.publish(written(tmp_path))
    assert not first.notices
    plan = written(tmp_path, rows=rows or ROWS)
    if rows is None:
        (tmp_path / "people.csv").unlink()
    again = publishing.publish(plan)
    assert (again.reply, again.receipt) == (first.reply, first.receipt)
    # The curator hears of it, in words that are not published.
    assert any("have changed" in words for words in again.notices)
    assert again.warnings == ()
    assert spent(tmp_path) == Amount(epsilon=1)


def test_a_new_edition_draws_and_pays_again(tmp_path):
    cap = "\n[ledger]\ncap.epsilon = 2\n"
    first = publishing.publish(written(tmp_path, PLAN + cap))
    edition = 'title = "Salaries"\nedition = "2026-11"'
    second = publishing.publish(written(tmp_path, PLAN.replace('title = "Salaries"', edition) + cap))
    assert (first.publication.edition, second.publication.edition) == ("1", "2026-11")
    assert second.receipt["edition"] == "2026-11"
    assert first.publication.request != second.publication.request
    assert first.publication.results != second.publication.results
    assert spent(tmp_path) == Amount(epsilon=2)


def test_nothing_that_is_published_tells_whether_two_files_are_equal(tmp_path):
    """Two curators release the same plan; only noise, times and random names may differ."""
    seen = []
    for place, rows in enumerate((ROWS, ROWS, [*ROWS[1:], (5, "blue")])):
        folder = tmp_path / str(place)
        folder.mkdir()
        made = publishing.publish(written(folder, rows=rows))
        reply, receipt = json.loads(made.reply), dict(made.receipt)
        assert receipt.pop("release_sha256")
        assert receipt.pop("ledger")
        assert made.warnings == publishing.publish(written(folder, rows=rows)).warnings + made.warnings
        for result in reply["results"]:
            for part in result["releases"]:
                for drawn in ("outcome", "value", "interval", "notes"):
                    del part["release"][drawn]
                # What a noisy count of the values decided.
                part["release"]["parameters"].pop("resolved", None)
        seen.append((reply, receipt))
    assert seen[0] == seen[1] == seen[2]


def test_the_same_content_under_another_name_is_told(tmp_path):
    first = publishing.publish(written(tmp_path))
    assert not any("released before" in words for words in first.notices)
    other = written(tmp_path, PLAN.replace('name = "people"', 'name = "folk"'))
    made = publishing.publish(other)
    assert any("'people'" in words for words in made.notices)
    assert not any("'people'" in words for words in made.warnings)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (PLAN.replace("[data]", "[data]\nrows = 2_999"), ROWS),
        (PLAN, [("CANARY77", "red")]),
        (PLAN.replace('column = "salary"', 'column = "salaries"', 1), ROWS),
        (
            PLAN.replace(
                "[columns.salary]", "[columns.wage]\ntype = 'real'\nbounds = [0, 1]\n[columns.salary]"
            ).replace('column = "salary"', 'column = "wage"', 1),
            ROWS,
        ),
    ],
    ids=["another number of rows", "no number", "undeclared column", "missing column"],
)
def test_nothing_is_charged_for_what_cannot_run(tmp_path, text, rows):
    with pytest.raises(sf.SfumatoError) as caught:
        publishing.publish(written(tmp_path, text, rows))
    assert "CANARY" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert spent(tmp_path) == Amount()


def test_a_failure_after_the_charge_stays_charged_and_a_retry_is_free(tmp_path, monkeypatch):
    plan = written(tmp_path)
    monkeypatch.setattr(session, "write_outcome", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        publishing.publish(plan)
    assert any("was charged PureDP(epsilon=1.0)" in note for note in caught.value.__notes__)
    assert spent(tmp_path) == Amount(epsilon=1)
    monkeypatch.undo()
    assert not publishing.publish(plan).fresh
    assert spent(tmp_path) == Amount(epsilon=1)


def test_a_publication_reads_back_what_was_written(tmp_path):
    made = publishing.publish(written(tmp_path))
    assert Publication.read(made.reply) == made.publication
    assert made.publication.to_json().encode() == made.reply


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.update(format=2),
        lambda record: record.update(rows="many"),
        lambda record: record.update(title=3),
        lambda record: record.pop("budget"),
        lambda record: record.update(budget=record["price"]),
        lambda record: record["results"][1]["releases"][0].update(key=[]),
        lambda record: record["results"][0]["releases"].clear(),
        lambda record: record["results"][0]["releases"][0]["release"].update(outcome=["1", "2", "3"]),
        lambda record: record.update(neighbours="both"),
    ],
)
def test_what_was_not_written_is_refused(tmp_path, change):
    record = json.loads(publishing.publish(written(tmp_path)).reply)
    change(record)
    with pytest.raises(sf.InvalidParameter):
        Publication.read(json.dumps(record))


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", "[" * 100_000, "\x00", "NaN"])
def test_no_text_at_all_raises_anything_else(text):
    with pytest.raises(sf.InvalidParameter, match=r"release\.json"):
        Publication.read(text)


def test_every_number_has_a_row(tmp_path):
    rows = publishing.publish(written(tmp_path)).publication.rows_of_numbers()
    assert [row["label"] for row in rows] == ["mean", "count", "count", "count", "0.25", "0.5", "0.75"]
    assert [row["team"] for row in rows] == [None, "red", "blue", "green", None, None, None]
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows)
    assert rows[-1]["where"] == "team: red"


def test_the_receipt_names_the_entry_of_the_ledger(tmp_path):
    made = publishing.publish(written(tmp_path), analyst="vera")
    ledger = sf.SqlLedger(tmp_path / "ledger.db")
    entry = ledger.account("people", analyst="vera").entry(made.publication.request)
    assert made.receipt["ledger"] == {"id": ledger.identity, "sequence": entry.number, "hash": entry.hash}
    assert made.receipt["event"] == entry.event.to_dict()
    assert made.receipt["analyst"] == "vera"
    assert "sfumato" in made.receipt["software"]


def test_a_plan_with_a_delta_is_priced_as_one_batch(tmp_path):
    text = PLAN.replace("epsilon = 1\n", "epsilon = 1\ndelta = 1e-6\n")
    made = publishing.publish(written(tmp_path, text))
    price = made.publication.price
    assert 0 < price.epsilon <= 1
    assert price.delta <= Fraction(1, 10**6)
    assert spent(tmp_path) == price


def test_units_of_several_rows_are_bounded(tmp_path):
    text = (
        PLAN.replace('unit = "row"', 'unit = "person"\nrows_per_unit = 2')
        .replace('neighbours = "substitution"', 'neighbours = "add-remove"')
        .replace("[columns.salary]", "[columns.person]\ntype = 'integer'\n[columns.salary]")
        .replace("epsilon = 1", "epsilon = 1000")
    )
    (tmp_path / "plan.toml").write_text(text)
    lines = "".join(f"{i // 3},{a},{b}\n" for i, (a, b) in enumerate(ROWS))
    (tmp_path / "people.csv").write_text("person,salary,team\n" + lines)
    made = publishing.publish(plans.read(tmp_path / "plan.toml"))
    counts = [release.value for _, release in made.publication.results[1].releases]
    assert sum(counts) == 2000
    assert made.publication.rows is None


def test_a_seeded_release_is_never_published(tmp_path):
    made = publishing.publish(written(tmp_path))
    assert all(release.private for result in made.publication.results for _, release in result.releases)
    seeded = replace(made.publication.results[0].releases[0][1], private=False)
    assert any("NOT PRIVATE" in note for note in seeded.notes)


def test_another_plan_under_the_same_request_is_refused(tmp_path):
    publishing.publish(
        written(tmp_path, PLAN.replace("epsilon = 1", "epsilon = 1\n[ledger]\ncap.epsilon = 9")), request="r"
    )
    others = PLAN.replace("[0, 100]", "[0, 99]"), PLAN + "share = 0.5\n"
    for text in others:
        with pytest.raises(sf.RequestConflict):
            publishing.publish(written(tmp_path, text), request="r")
    assert spent(tmp_path) == Amount(epsilon=1)


def test_a_condition_on_the_column_of_the_groups_is_told(tmp_path):
    text = PLAN.replace('group_by = ["team"]', 'group_by = ["team"]\nwhere = { team = ["red", "blue"] }')
    made = publishing.publish(written(tmp_path, text))
    assert made.publication.results[1].where == (("team", "red or blue"),)


def test_a_group_is_never_taken_for_a_fact_of_the_table(tmp_path):
    text = PLAN.replace("team", "label")
    (tmp_path / "people.csv").write_text("salary,label\n" + "".join(f"{a},{b}\n" for a, b in ROWS))
    (tmp_path / "plan.toml").write_text(text)
    rows = publishing.publish(plans.read(tmp_path / "plan.toml")).publication.rows_of_numbers()
    assert [row["label (group)"] for row in rows] == [None, "red", "blue", "green", None, None, None]
    assert rows[1]["label"] == "count"


def test_what_seeded_bits_drew_is_not_read_as_a_publication(tmp_path):
    record = json.loads(publishing.publish(written(tmp_path)).reply)
    record["results"][0]["releases"][0]["release"]["private"] = False
    with pytest.raises(sf.InvalidParameter):
        Publication.read(json.dumps(record))


def test_an_edited_title_or_comment_is_not_paid_for_again(tmp_path):
    first = publishing.publish(written(tmp_path))
    again = publishing.publish(written(tmp_path, "# a comment\n" + PLAN.replace("Salaries", "Wages")))
    assert again.reply == first.reply
    assert any("edited since" in words for words in again.warnings)
    assert spent(tmp_path) == Amount(epsilon=1)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    plan, read = written(tmp_path), files.read

    def swapped(*arguments, **options):
        found = read(*arguments, **options)
        (tmp_path / "people.csv").write_text("salary,team\n1,red\n")
        return found

    monkeypatch.setattr(files, "read", swapped)
    with pytest.raises(sf.SchemaMismatch, match="changed"):
        publishing.publish(plan)
    assert spent(tmp_path) == Amount()
