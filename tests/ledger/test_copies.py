"""Copies: an outsider can check an export, and a restored ledger never has more left than was left."""

import json

import pytest
from tests.ledger.items import NEIGHBOURS, count, opened

import sfumato as sf
from sfumato.ledger import Head, verify_export
from sfumato.ledger.chain import Record
from sfumato.privacy import Amount


@pytest.fixture
def ledger(ledger_url, tmp_path):
    """Two data sets, an analyst with a cap, a reply."""
    ledger = sf.SqlLedger(ledger_url, anchor=tmp_path / "anchor")
    account = opened(ledger)
    ledger.open("firms", cap=sf.ApproxDP(1, 1e-6), neighbours=NEIGHBOURS)
    ledger.allow("people", "ada", sf.PureDP(0.5))
    account.charge(count(0.25), request="monday", digest="1f")
    account.keep("monday", b"\x00 forty-two secrets")
    ledger.account("people", analyst="ada").charge(count(0.1))
    return ledger


def restored(tmp_path, **options):
    options = {"anchor": tmp_path / "anchor", **options}
    return sf.SqlLedger.restore(tmp_path / "backup", tmp_path / "restored.db", **options)


# --- exports --------------------------------------------------------------------------------------


def test_an_outsider_checks_an_export_by_the_head_alone(ledger, tmp_path):
    head = ledger.export(tmp_path / "export")
    assert head == ledger.head
    report = verify_export(tmp_path / "export", head=head)
    assert report.sound
    assert report == ledger.verify()
    other = verify_export(tmp_path / "export", head=Head(head.sequence, "0" * 64))
    assert other.problems == (
        f"the file ends with entry {head.sequence} and not with the head that was given",
    )


def test_an_export_holds_no_reply_and_no_key(ledger, tmp_path):
    ledger.export(tmp_path / "export")
    text = (tmp_path / "export").read_text()
    assert ledger.key.hex() not in text
    assert "forty-two" not in text
    assert '"reply"' not in text.replace('"kind":"reply"', "")
    ledger.export(tmp_path / "whole", replies=True)
    assert verify_export(tmp_path / "whole", head=ledger.head).sound
    assert '"reply":"' in (tmp_path / "whole").read_text()


def test_a_change_of_any_character_of_an_export_is_noticed(tmp_path):
    ledger = sf.SqlLedger(tmp_path / "ledger.db", anchor=tmp_path / "anchor")
    opened(ledger).charge(count(0.25), request="monday", digest="1f")
    head = ledger.export(tmp_path / "export", replies=True)
    sound = (tmp_path / "export").read_text()
    for place in range(0, len(sound), 7):
        letter = "1" if sound[place] == "0" else "0"
        (tmp_path / "export").write_text(sound[:place] + letter + sound[place + 1 :])
        try:
            assert not verify_export(tmp_path / "export", head=head).sound, place
        except sf.LedgerDamaged as error:
            assert "is not a copy of a ledger" in str(error)  # noqa: PT017  reason: either outcome is right


def test_lines_that_are_left_out_are_noticed(ledger, tmp_path):
    head = ledger.export(tmp_path / "export", replies=True)
    lines = (tmp_path / "export").read_text().splitlines(keepends=True)
    for place in range(len(lines)):
        (tmp_path / "export").write_text("".join(lines[:place] + lines[place + 1 :]))
        try:
            report = verify_export(tmp_path / "export", head=head)
        except sf.LedgerDamaged:
            assert place == 0
            continue
        # An export need not hold replies, so leaving out the only one leaves an export.
        assert report.sound == (place == len(lines) - 1)


def test_what_is_no_export_is_refused(tmp_path):
    with pytest.raises(sf.LedgerUnavailable, match="cannot be read: no such file"):
        verify_export(tmp_path / "nowhere")
    for text in ("", "a letter", "[]", "{}", '{"format": 2, "ledger": "x"}', '{"format": 1}'):
        (tmp_path / "letter").write_text(text)
        with pytest.raises(sf.LedgerDamaged, match="is not a copy of a ledger"):
            verify_export(tmp_path / "letter")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00" * 100)
    with pytest.raises(sf.LedgerDamaged, match="is not a copy of a ledger"):
        verify_export(tmp_path / "binary")


def test_a_file_that_is_there_is_not_overwritten(ledger, tmp_path):
    (tmp_path / "export").write_text("mine")
    for write in (ledger.export, ledger.backup):
        with pytest.raises(sf.InvalidParameter, match="must be that of a new file"):
            write(tmp_path / "export")
        with pytest.raises(sf.LedgerUnavailable, match="cannot be written"):
            write(tmp_path / "nowhere" / "export")
    assert (tmp_path / "export").read_text() == "mine"
    assert not list(tmp_path.glob("*.partial"))


# --- backups --------------------------------------------------------------------------------------


def test_a_backup_brings_back_every_entry_and_reply(ledger, tmp_path):
    ledger.backup(tmp_path / "backup")
    again = restored(tmp_path)
    assert again.entries() == ledger.entries()
    assert (again.head, again.key, again.identity) == (ledger.head, ledger.key, ledger.identity)
    assert again.account("people").answered("monday", "1f") == b"\x00 forty-two secrets"
    assert again.verify().sound
    again.account("people").charge(count())


def test_of_two_copies_only_one_can_go_on(ledger, tmp_path):
    ledger.backup(tmp_path / "backup")
    again = restored(tmp_path)
    ledger.account("people").charge(count())
    with pytest.raises(sf.LedgerDamaged, match="older than its anchor"):
        again.account("people").charge(count())


@pytest.mark.parametrize("why", ["behind", "no anchor"])
def test_a_backup_that_may_be_behind_is_refused_unless_all_that_is_left_is_given_up(ledger, tmp_path, why):
    ledger.backup(tmp_path / "backup")
    ledger.account("people").charge(count(0.5), request="tuesday", digest="2e")
    if why == "no anchor":
        (tmp_path / "anchor").unlink()
    with pytest.raises(sf.LedgerDamaged, match="accept_loss counts all that is left as spent"):
        restored(tmp_path)
    assert not (tmp_path / "restored.db").exists()
    again = restored(tmp_path, accept_loss=True)
    assert again.verify().sound
    people, ada, firms = (
        again.account("people"),
        again.account("people", analyst="ada"),
        again.account("firms"),
    )
    assert people.remaining == ada.remaining == firms.remaining == Amount()
    for account in (people, firms):
        assert account.spent == Amount.of(account.cap)
    with pytest.raises(sf.BudgetExceeded):
        people.charge(count())
    # The past is in the entry; the curator may renew, which is an entry too.
    losses = [record for record in again.entries() if record.kind == "loss"]
    assert [(loss.dataset, loss.analyst) for loss in losses] == [
        ("people", None),
        ("firms", None),
        ("people", "ada"),
    ]
    anchored = losses[0].facts["anchored"]
    assert anchored is None if why == "no anchor" else anchored["sequence"] == 7
    again.renew("people", sf.PureDP(0.5), reason="restored")
    people.charge(count(0.25))
    with pytest.raises(sf.BudgetExceeded, match="of the analyst 'ada'"):
        ada.charge(count())
    assert sf.SqlLedger(tmp_path / "restored.db", anchor=tmp_path / "anchor").verify().sound


def test_a_retired_data_set_stays_retired_after_a_loss(ledger, tmp_path):
    ledger.retire("people", reason="done")
    ledger.backup(tmp_path / "backup")
    ledger.renew("firms", sf.ApproxDP(1, 1e-7), reason="more")
    again = restored(tmp_path, accept_loss=True)
    assert again.verify().sound
    with pytest.raises(sf.BudgetExceeded, match="retired"):
        again.account("people").charge(count())


def test_a_changed_backup_and_an_export_are_not_restored(ledger, tmp_path):
    ledger.export(tmp_path / "export")
    with pytest.raises(sf.LedgerDamaged, match="only a backup can be restored"):
        sf.SqlLedger.restore(tmp_path / "export", tmp_path / "restored.db", anchor=tmp_path / "anchor")
    ledger.backup(tmp_path / "backup")
    first, *lines = (tmp_path / "backup").read_text().splitlines()
    spends = [json.loads(line) for line in lines]
    spends[3]["price"] = '{"epsilon":"0"}'
    for changed in (
        [first, *map(json.dumps, spends)],
        [first, *lines[:-1]],
        [first.replace(ledger.key.hex(), "00" * 32), *lines],
        [first, *lines, '{"stray": 1}'],
    ):
        (tmp_path / "backup").write_text("\n".join(changed) + "\n")
        with pytest.raises(sf.LedgerDamaged, match="is damaged"):
            restored(tmp_path, accept_loss=True)
    assert not (tmp_path / "restored.db").exists()


def test_nothing_is_restored_over_a_ledger(ledger, ledger_url, tmp_path):
    ledger.backup(tmp_path / "backup")
    with pytest.raises(sf.InvalidParameter, match="must be that of an empty database"):
        sf.SqlLedger.restore(tmp_path / "backup", ledger_url, anchor=tmp_path / "anchor")
    assert ledger.verify().sound


def test_a_backup_of_one_database_is_restored_in_the_other(ledger_url, tmp_path):
    ledger = sf.SqlLedger(tmp_path / "first.db", anchor=tmp_path / "anchor")
    opened(ledger).charge(count(0.25), request="monday", digest="1f")
    ledger.account("people").keep("monday", b"\xff\x00")
    ledger.backup(tmp_path / "backup")
    there = sf.SqlLedger.restore(tmp_path / "backup", ledger_url, anchor=tmp_path / "anchor")
    assert there.head == ledger.head
    assert there.account("people").answered("monday", "1f") == b"\xff\x00"
    there.backup(tmp_path / "back")
    assert (tmp_path / "back").read_text() == (tmp_path / "backup").read_text()


def test_every_line_of_an_export_has_all_that_is_hashed(ledger, tmp_path):
    ledger.export(tmp_path / "export")
    first, *lines = map(json.loads, (tmp_path / "export").read_text().splitlines())
    assert set(first) == {"format", "ledger", "key_sha256"}
    assert [Record(**line) for line in lines] == list(ledger.entries())
