"""The chain: every entry follows from those before it, and a check notices whatever does not."""

import json
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.items import NEIGHBOURS, count, opened, tamper

import sfumato as sf
from sfumato.ledger import chain
from sfumato.ledger.chain import (
    FIELDS,
    Act,
    Head,
    Record,
    Standing,
    Total,
    canonical,
    enter,
    genesis,
    hash_of,
    read_numbers,
    units,
    write_numbers,
)
from sfumato.ledger.copies import verify_export
from sfumato.ledger.replay import MOST_PROBLEMS, Replay
from sfumato.privacy import Amount, PureEvent

START = genesis("a ledger", b"k" * 32)
TEXTS = [name for name in Record._fields if not name.endswith("units") and name not in ("sequence", "hash")]


def payload(price):
    event = PureEvent(price, "exponential").to_dict()
    return canonical({"statistic": "choose", "column": "x", "event": event})


def acts(spends=4):
    """A small history of everything but a loss."""
    yield Act("open", "people", canonical({"cap": {"epsilon": "1"}, "neighbours": NEIGHBOURS}))
    yield Act("allow", "people", canonical({"cap": {"epsilon": "1/2"}}), "ada")
    for number in range(spends):
        price = Fraction(1, 10)
        yield Act("spend", "people", payload(price), "ada", f"r{number}", "d", (price,))
    yield Act("reply", "people", canonical({"bytes": 0, "sha256": "0" * 64}), "ada", "r1")
    yield Act("renew", "people", canonical({"added": {"epsilon": "1/4"}, "reason": "more"}))
    yield Act("retire", "people", canonical({"reason": "done"}))


def written(history, start=START):
    """The entries of a history, as a ledger writes them."""
    records, head, standing, people = [], Head(0, start), None, {}
    for act in history:
        record, standing, total = enter(act, standing, people.get(act.analyst), before=head, time="now")
        people[act.analyst] = total
        records.append(record)
        head = Head(record.sequence, record.hash)
    return records


def sealed(records, start=START):
    """The same entries with hashes that fit: what somebody writes who knows how."""
    previous = start
    for record in records:
        new = record._replace(previous=previous)
        new = new._replace(hash=hash_of(new._asdict()))
        previous = new.hash
        yield new


def problems(records, start=START, **options):
    replay = Replay(start, **options)
    replay.read(records)
    return replay.problems


def test_a_history_follows_from_itself():
    replay = Replay(START)
    replay.read(written(acts()))
    assert replay.problems == []
    assert replay.report().sound
    (balance,) = replay.balances
    assert (balance.spent, balance.cap) == (Amount(epsilon=0.4), sf.PureDP(1.25))
    assert balance.retired
    assert balance.remaining == Amount(epsilon=0.85)


def test_the_hash_is_that_of_the_canonical_json_of_all_other_fields():
    for record in written(acts()):
        fields = {name: value for name, value in record._asdict().items() if name != "hash"}
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        assert record.hash == sha256(text.encode()).hexdigest()
    assert set(chain._HASHED) == set(Record._fields) - {"hash"}


values = st.none() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.floats(0, 1) | st.booleans()


@given(st.tuples(*[values] * len(chain._HASHED)))
def test_the_text_that_is_hashed_is_the_canonical_json_whatever_a_field_holds(fields):
    assert chain._json(fields) == canonical(dict(zip(chain._HASHED, fields, strict=True)))


def test_the_chain_starts_from_the_identity_and_the_key():
    assert len({START, genesis("another", b"k" * 32), genesis("a ledger", b"l" * 32)}) == 3
    assert problems(written(acts()), start=genesis("another", b"k" * 32))


@pytest.mark.parametrize("name", Record._fields)
def test_a_change_of_any_field_of_any_entry_is_noticed(name):
    records = written(acts())
    for place, record in enumerate(records):
        value = getattr(record, name)
        changed = record._replace(**{name: value + 1 if isinstance(value, int) else f"{value}0"})
        assert problems([*records[:place], changed, *records[place + 1 :]]), (name, place)


def totals_are_worked_out_again():
    """Even with hashes that fit, a total, a cap or a unit that does not follow is noticed."""
    names = [name for name in Record._fields if name.startswith(("dataset_", "analyst_"))]
    records = written(acts())
    for name in names:
        for place, record in enumerate(records):
            value = getattr(record, name)
            if value is None:
                continue
            new = value + 1 if isinstance(value, int) else '{"epsilon":"1/100"}'
            changed = [*records[:place], record._replace(**{name: new}), *records[place + 1 :]]
            found = problems(sealed(changed))
            assert any(name in words for words in found), (name, place)


def test_totals_are_worked_out_again():
    totals_are_worked_out_again()


def entries_cannot_be_left_out_added_or_moved():
    records = written(acts())
    for place in range(len(records) - 1):
        assert problems(records[:place] + records[place + 1 :])
        assert problems([*records[: place + 1], *records[place:]])
        swapped = [*records[:place], records[place + 1], records[place], *records[place + 2 :]]
        assert problems(swapped)


def the_hash_commits_to_the_entry_before():
    """Two histories that differ in their first entry alone have no hash in common."""
    one, two = list(acts()), list(acts())
    two[0] = two[0]._replace(payload=canonical({"cap": {"epsilon": "1"}, "neighbours": "substitution"}))
    left, right = written(one), written(two)
    assert not {record.hash for record in left} & {record.hash for record in right}
    assert left[3]._replace(previous="", hash="") == right[3]._replace(previous="", hash="")


def test_the_hash_commits_to_the_entry_before():
    the_hash_commits_to_the_entry_before()


def test_entries_cannot_be_left_out_added_or_moved():
    entries_cannot_be_left_out_added_or_moved()


def test_a_price_below_that_of_its_event_is_noticed_even_if_all_hashes_fit():
    cheap = [act._replace(payload=payload(Fraction(1, 5))) if act.request == "r2" else act for act in acts()]
    assert problems(written(cheap))[0] == "entry 5 breaks a rule: its price is below that of its event"


def test_an_epsilon_and_delta_price_is_proved_again_when_asked():
    def history(epsilon):
        yield Act(
            "open",
            "people",
            canonical({"cap": {"epsilon": "1", "delta": "1/1000000"}, "neighbours": NEIGHBOURS}),
        )
        price = (Fraction(epsilon), Fraction(1, 10**7))
        yield Act("spend", "people", payload(Fraction(1, 2)), "ada", price=price)

    assert problems(written(history("1/2")), prices=True) == []
    assert problems(written(history("1/10"))) == []
    assert "must cover the event" in problems(written(history("1/10")), prices=True)[0]


def test_a_spend_past_a_cap_is_noticed_even_if_all_hashes_fit(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Total, "fits", lambda self: True)
        records = written(acts(spends=6))
    assert "entry 8 breaks a rule: a charge of epsilon 0.1 does not fit" in problems(records)[0]


def test_a_request_that_is_charged_twice_or_answered_without_a_charge_is_noticed():
    history = list(acts())
    twice = [*history[:4], history[3], *history[4:]]
    assert problems(written(twice))[0] == "entry 5 breaks a rule: its request was charged before"
    stranger = [*history[:2], history[6]]
    assert "no first reply to a charged request" in problems(written(stranger))[0]
    again = [*history[:7], history[6]]
    assert "no first reply to a charged request" in problems(written(again))[0]


def test_records_that_are_nonsense_are_problems_and_not_crashes():
    first, *_ = written(acts())
    for name in TEXTS:
        nonsense = {"", "{", "[]", "null", '{"epsilon":"1/0"}', None, 7} - {getattr(first, name)}
        for value in nonsense:
            assert problems([first._replace(**{name: value})])
            again = problems(sealed([first._replace(**{name: value})]))
            assert again or name not in ("kind", "payload", "price", "state", "dataset_spent", "dataset_cap")
    assert len(problems([first] * 1000)) == MOST_PROBLEMS


def test_a_negative_price_is_never_entered():
    history = list(acts())
    standing = Standing(Total(("epsilon",), (Fraction(1),), (Fraction(2),)))
    bad = history[2]._replace(price=(Fraction(-1, 10),))
    with pytest.raises(sf.InvalidParameter, match="must not be negative"):
        enter(bad, standing, None, before=Head(0, START), time="now")


@given(st.sampled_from(list(FIELDS.values())), st.fractions(0, 9000), st.fractions(0, 1))
def test_exact_text_is_canonical_and_reads_back(fields, first, second):
    numbers = (first, second)[: len(fields)]
    text = write_numbers(fields, numbers)
    assert text == canonical(dict(zip(fields, map(str, numbers), strict=True)))
    assert read_numbers(text) == (fields, numbers)


@given(st.fractions(0, 9000), st.fractions(0, 9000), st.sampled_from(["epsilon", "rho", "delta"]))
def test_units_keep_the_order_of_exact_numbers_and_fit_their_column(left, right, name):
    if name == "delta":
        left, right = left / 9000, right / 9000
    assert (left <= right) <= (units(name, left) <= units(name, right))
    assert 0 <= units(name, left) < 2**63


def test_verify_of_a_ledger_names_what_is_wrong(ledger_url, tmp_path):
    ledger = sf.SqlLedger(ledger_url, anchor=tmp_path / "anchor")
    account = opened(ledger)
    for _ in range(3):
        account.charge(count())
    sound = ledger.verify()
    assert sound.sound
    assert (sound.entries, sound.head) == (4, ledger.head)
    assert str(sound) == f"sound: 4 entries, head 4 {ledger.head.hash}"
    assert replace(sound, problems=("entry 2 is missing",)).sound is False
    tamper(ledger_url, "UPDATE ledger_entries SET price = :price WHERE sequence = 3", price='{"epsilon":"0"}')
    report = ledger.verify()
    assert "entry 3 was changed: its hash does not fit" in report.problems
    assert str(report).startswith("damaged (")


def test_a_ledger_rewritten_by_somebody_who_knows_how_differs_from_its_anchor(ledger_url, tmp_path):
    ledger = sf.SqlLedger(ledger_url, anchor=tmp_path / "anchor")
    account = opened(ledger)
    for _ in range(3):
        account.charge(count())
    records = [
        record._replace(time="1999") if record.sequence == 2 else record for record in ledger.entries()
    ]
    for new in sealed(records, start=ledger.start):
        if new.sequence == 2:
            tamper(ledger_url, "UPDATE ledger_entries SET time = '1999' WHERE sequence = 2")
        statement = "UPDATE ledger_entries SET previous = :previous, hash = :hash WHERE sequence = :sequence"
        tamper(ledger_url, statement, previous=new.previous, hash=new.hash, sequence=new.sequence)
    assert ledger.verify().problems == (
        "entry 2 is not the one that was anchored",
        "entry 3 is not the one that was anchored",
        "entry 4 is not the one that was anchored",
    )
    with pytest.raises(sf.LedgerDamaged, match="was changed: entry 4 is not the one anchored"):
        account.charge(count())
    with pytest.raises(sf.LedgerDamaged, match="was changed: entry 4 is not the one anchored"):
        sf.SqlLedger(ledger_url, anchor=tmp_path / "anchor")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda lines: [lines[0].replace('"key":"', '"key":"zz'), *lines[1:]],
        lambda lines: [lines[0], "[" * 100_000, *lines[1:]],
        lambda lines: [lines[0], '{"a":' * 5000 + "1" + "}" * 5000],
        lambda lines: [*lines, '{"request":"r","reply":"*"}'],
        lambda lines: [lines[0], lines[1].replace('"analyst":null', '"analyst":"x"')],
        lambda lines: ["null"],
        lambda lines: [],
    ],
)
def test_a_hostile_copy_is_refused_or_reported_in_words(tmp_path, spoil):
    ledger = sf.SqlLedger(tmp_path / "ledger.db", anchor=tmp_path / "anchor")
    ledger.open("people", cap=sf.PureDP(1), neighbours="add-remove")
    ledger.allow("people", "vera", sf.PureDP(1))
    ledger.backup(tmp_path / "copy")
    lines = (tmp_path / "copy").read_text().splitlines()
    (tmp_path / "spoilt").write_text("\n".join(spoil(lines)))
    sound = False
    with suppress(sf.SfumatoError):
        sound = verify_export(tmp_path / "spoilt").sound
    assert not sound
