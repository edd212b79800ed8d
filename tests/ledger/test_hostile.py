"""Ledgers and copies that somebody made up, with hashes that fit: refused in words, never a traceback."""

import json
import os
import random
import shutil
import sqlite3
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest
from tests.ledger.items import count, database, opened

import sfumato as sf
from sfumato.cli.failures import told
from sfumato.ledger import copies
from sfumato.ledger.chain import Record, canonical, genesis, hash_of, header
from sfumato.ledger.replay import Report

DEEP = "[" * 100_000 + "]" * 100_000
HOSTILE = [
    *(None, True, False, 0, 1, -1, 2**62, 2**63, 2**64, -(2**63), 10**300, 1.5, float("1e300")),
    *("", "x", "../../x", "a\0b", "\ud800", "%s%n{0}", "'; DROP TABLE ledger_entries; --", "null", "[]", "1"),
    *("{}", '{"epsilon":"1/0"}', '{"epsilon":"' + "9" * 2500 + '"}', '{"epsilon":"-1"}', '{"rho":"1"}'),
    *('{"epsilon":"1","delta":"1"}', '{"epsilon":1}', '{"epsilon":null}', '{"cap":{}}', '{"cap":[]}'),
    *('{"cap":{"epsilon":"0"},"neighbours":7,"unit":[]}', '{"analysts":7}', '{"analysts":[7]}', DEEP),
    *(
        '{"analysts":{"a":1}}',
        '{"event":{}}',
        '{"event":' + DEEP + "}",
        '{"statistic":1,"column":2,"event":3}',
    ),
    *([], {}, [[]], {"a": {}}),
]


# The first is quick; more of them look further.
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))]


def filled(folder):
    """A ledger of which every kind of entry is in the chain, and a backup of it."""
    ledger = sf.SqlLedger(folder / "ledger.db", anchor=folder / "anchor")
    account = opened(ledger)
    ledger.admit("people", ["analyst"])
    ledger.allow("people", "analyst", sf.PureDP(0.5))
    account.charge(count(), request="monday", digest="1f")
    account.keep("monday", b"a reply")
    ledger.renew("people", sf.PureDP(1), reason="more")
    ledger.backup(folder / "backup")
    ledger.close()
    return [json.loads(line) for line in (folder / "backup").read_text().splitlines()]


def linked(lines):
    """The lines with hashes that fit, as one who made them up can compute them."""
    first = {name: value for name, value in lines[0].items() if name != "key"}
    previous = sha256(canonical(first).encode()).hexdigest()
    for line in lines[1:]:
        if isinstance(line, dict) and "previous" in line and set(line) == set(Record._fields):
            line["previous"] = previous
            line["hash"] = previous = hash_of(line) or "f" * 64
    return lines


def write(path, lines):
    path.write_bytes("".join(json.dumps(line) + "\n" for line in lines).encode())
    return path


def cases(seed, number):
    """Fields of lines, and what is put there."""
    luck = random.Random(seed)
    for _ in range(number):
        yield luck.randrange(8), luck.random(), luck.choice(HOSTILE), luck.random() < 0.8


def refused_in_words(act):
    """Whether an act was refused; a fault of ours is raised."""
    try:
        result = act()
    except sf.SfumatoError as error:
        status, words = told(error)
        assert status in (2, 3, 4)
        assert len(words) < 3000
        return True
    return isinstance(result, Report) and not result.sound


@pytest.mark.parametrize("seed", SEEDS)
def test_a_backup_that_was_made_up_is_refused_or_restored_soundly(tmp_path, seed):
    sound = filled(tmp_path)
    for number, (line, place, value, fits) in enumerate(cases(seed, 60)):
        lines = json.loads(json.dumps(sound))
        names = sorted(lines[line])
        lines[line][names[int(place * len(names))]] = value
        try:
            copy = write(tmp_path / "copy", linked(lines) if fits else lines)
        except (ValueError, RecursionError, TypeError):
            continue  # JSON itself cannot say it
        refused_in_words(lambda copy=copy: sf.ledger.verify_export(copy))
        target = tmp_path / f"restored-{number}.db"

        def restore(copy=copy, target=target):
            return sf.SqlLedger.restore(copy, target, anchor=tmp_path / "other", accept_loss=True)

        if refused_in_words(restore):
            assert not target.exists()
        else:
            with sf.SqlLedger(target, anchor=tmp_path / "other") as ledger:
                assert ledger.verify().sound
        (tmp_path / "other").unlink(missing_ok=True)


TEXTS = [
    b"",
    b"\n",
    b"{}",
    b"[]\n",
    b"\xff\xfe\n",
    b'{"format": 1}\n',
    b'{"format": NaN, "ledger": "' + b"0" * 32 + b'"}\n',
    b'{"format": 1, "ledger": "' + b"0" * 32 + b'", "key_sha256": NaN}\n',
    b'{"format": 1, "ledger": "' + b"0" * 32 + b'", "key": "zz"}\n',
    b'{"format": 1, "ledger": "' + b"0" * 32 + b'", "deep": ' + b"[" * 900 + b"]" * 900 + b"}\n",
    b'{"format": 1, "ledger": "' + b"0" * 32 + b'", "n": ' + b"9" * 5000 + b"}\n",
    b'{"format": 1, "ledger": "' + b"0" * 32 + b'"}\n{"request": [], "reply": {}}\n',
    b'{"format": 1, "ledger": "' + b"0" * 32 + b'"}\n{"request": "\\ud800", "reply": "eA=="}\n',
    DEEP.encode(),
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_file_that_is_no_copy_is_refused(tmp_path, text):
    (tmp_path / "copy").write_bytes(text)
    assert refused_in_words(lambda: sf.SqlLedger.restore(tmp_path / "copy", tmp_path / "ledger.db"))
    assert not (tmp_path / "ledger.db").exists()
    refused_in_words(lambda: sf.ledger.verify_export(tmp_path / "copy"))


def test_a_line_without_an_end_is_not_read_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(copies, "LONGEST_LINE", 2**16)
    with pytest.raises(sf.LedgerDamaged, match="longer than any record"):
        sf.SqlLedger.restore("/dev/zero", tmp_path / "ledger.db")


# --- the file of a ledger ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "identity",
    [
        "../../../../tmp/escaped",
        "/tmp/escaped",
        "..",
        "",
        "A" * 32,
        "0" * 31,
        "0" * 33,
        "0" * 32 + "\n",
        "٣" * 32,
    ],
)
def test_an_identity_is_no_path(tmp_path, monkeypatch, identity):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    lines = filled(tmp_path)
    key = bytes.fromhex(lines[0]["key"])
    path = tmp_path / "ledger.db"
    with database(path) as connection:
        connection.exec_driver_sql("DROP TRIGGER ledger_facts_update")
        connection.exec_driver_sql("DROP TRIGGER ledger_entries_delete")
        connection.exec_driver_sql("UPDATE ledger_facts SET identity = ?", (identity,))
        connection.exec_driver_sql("DELETE FROM ledger_entries")
    before = sorted(tmp_path.rglob("*"))
    for more in ({}, {"anchor": tmp_path / "third"}):
        with pytest.raises(sf.LedgerDamaged, match="does not say which ledger it is"):
            sf.SqlLedger(path, **more)
    lines[0] = {**header(identity, key), "key": key.hex()}
    assert genesis(identity, key)
    write(tmp_path / "copy", linked(lines))
    for act in (
        lambda: sf.SqlLedger.restore(tmp_path / "copy", tmp_path / "new.db", accept_loss=True),
        lambda: sf.ledger.verify_export(tmp_path / "copy"),
    ):
        with pytest.raises(sf.LedgerDamaged, match="is not a copy of a ledger"):
            act()
    (tmp_path / "copy").unlink()
    assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/tmp/escaped.anchor").exists()


@pytest.mark.parametrize("key", [b"", b"x" * 31, b"x" * 65, os.urandom(2**16), "text", None, 7])
def test_a_key_has_its_length(tmp_path, key):
    filled(tmp_path)
    with database(tmp_path / "ledger.db") as connection:
        connection.exec_driver_sql("ALTER TABLE ledger_facts RENAME TO before")
        connection.exec_driver_sql("CREATE TABLE ledger_facts AS SELECT * FROM before")
        connection.exec_driver_sql("UPDATE ledger_facts SET key = ?", (key,))
    with pytest.raises(sf.LedgerDamaged):
        sf.SqlLedger(tmp_path / "ledger.db", anchor=tmp_path / "other")


ACTS = [
    lambda ledger: ledger.verify(prices=True),
    lambda ledger: ledger.account("people").charge(count()),
    lambda ledger: ledger.account("people").charge(count(), request="monday", digest="1f"),
    lambda ledger: ledger.account("people").entry("monday"),
    lambda ledger: ledger.account("people").answered("monday", "1f"),
    lambda ledger: ledger.account("people").remaining,
    lambda ledger: ledger.account("people").analyst_cap,
    lambda ledger: ledger.open("people", cap=sf.PureDP(2), neighbours="add-remove"),
    lambda ledger: opened(ledger, name="others"),
    lambda ledger: ledger.admit("people", ["cy"]),
    lambda ledger: ledger.renew("people", sf.PureDP(1), reason="more"),
    lambda ledger: ledger.export(Path(f"{ledger.anchor.path}.export")),
]


def used(act, path, anchor):
    with sf.SqlLedger(path, anchor=anchor) as ledger:
        return act(ledger)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_ledger_that_was_made_up_is_refused_in_words(tmp_path, seed):
    """Everything but the anchor fits: no operation raises anything but the errors of the package."""
    sound = filled(tmp_path)
    for number, (line, place, value, fits) in enumerate(cases(100 + seed, 40)):
        if not 1 <= line <= 6 or isinstance(value, list | dict):
            continue
        lines = json.loads(json.dumps(sound))
        names = sorted(lines[line])
        lines[line][names[int(place * len(names))]] = value
        made_up = linked(lines) if fits else lines
        path = tmp_path / f"{number}.db"
        shutil.copy(tmp_path / "ledger.db", path)
        with closing(sqlite3.connect(path, isolation_level=None)) as raw:
            raw.execute("ALTER TABLE ledger_entries RENAME TO before")
            raw.execute("CREATE TABLE ledger_entries AS SELECT * FROM before WHERE 0")
            marks = ", ".join("?" * len(Record._fields))
            try:
                for each in made_up[1:7]:
                    values = [each[name] for name in Record._fields]
                    raw.execute(f"INSERT INTO ledger_entries VALUES ({marks})", values)
            except (OverflowError, UnicodeEncodeError):
                continue  # SQLite cannot hold it

        for act in ACTS:
            refused_in_words(partial(used, act, path, tmp_path / f"{number}.anchor"))
