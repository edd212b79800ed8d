"""The durable ledger: caps hold exactly, requests are charged once, and what was charged stays."""

import os
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest
import sqlalchemy
from tests.ledger.items import NEIGHBOURS, Crumb, count, database, noisy, opened, tamper

import sfumato as sf
from sfumato.ledger import Ledger, failpoints
from sfumato.ledger.chain import Act, canonical
from sfumato.ledger.schema import entries, facts, metadata, replies
from sfumato.privacy import Amount, ComposedEvent, GaussianEvent, LaplaceEvent


@pytest.fixture
def ledger(ledger_url, tmp_path):
    return sf.SqlLedger(ledger_url, anchor=tmp_path / "anchor")


def reopened(ledger):
    return sf.SqlLedger(ledger.store.url.render_as_string(hide_password=False), anchor=ledger.anchor.path)


# --- caps -----------------------------------------------------------------------------------------


def test_three_tenths_fit_and_not_a_unit_more(ledger):
    account = opened(ledger, sf.PureDP(0.3))
    for _ in range(3):
        assert account.charge(count(0.1)).price == Amount(epsilon=0.1)
    assert account.remaining == Amount()
    with pytest.raises(sf.BudgetExceeded, match="of the data set 'people'"):
        account.charge(Crumb(Fraction(1, 10**40)))
    assert (account.spent, ledger.head.sequence) == (Amount(epsilon=0.3), 4)


def test_fractions_that_no_decimal_can_write_fit_exactly(ledger):
    account = opened(ledger, sf.ZCDP(Fraction(1, 3)))
    for _ in range(7):
        account.charge(noisy(Fraction(1, 21)))
    assert account.remaining == Amount()
    assert ledger.verify().sound


def test_a_spend_below_the_units_of_the_columns_still_counts(ledger):
    account = opened(ledger, sf.PureDP(Fraction(1, 10**20)))
    account.charge(Crumb(Fraction(1, 10**20)))
    with pytest.raises(sf.BudgetExceeded):
        account.charge(Crumb(Fraction(1, 10**30)))


def the_cap_of_the_analyst_holds(ledger):
    opened(ledger, sf.PureDP(1))
    ledger.allow("people", "ada", sf.PureDP(0.2))
    ada, bob = (ledger.account("people", analyst=name) for name in ("ada", "bob"))
    ada.charge(count(0.2))
    refused = False
    try:
        ada.charge(count(0.1))
    except sf.BudgetExceeded as error:
        refused = "of the analyst 'ada'" in str(error)
    assert refused
    bob.charge(count(0.5))
    assert (ada.remaining, bob.remaining) == (Amount(), Amount(epsilon=0.3))
    assert (ada.analyst_spent, bob.analyst_spent) == (Amount(epsilon=0.2), Amount(epsilon=0.5))
    assert (ada.analyst_cap, bob.analyst_cap) == (sf.PureDP(0.2), None)


def the_cap_of_the_data_set_holds_for_all_analysts(ledger):
    opened(ledger, sf.PureDP(1))
    for name in ("ada", "bob"):
        ledger.allow("people", name, sf.PureDP(0.8))
    ledger.account("people", analyst="ada").charge(count(0.8))
    refused = False
    try:
        ledger.account("people", analyst="bob").charge(count(0.3))
    except sf.BudgetExceeded:
        refused = True
    assert refused
    ledger.account("people", analyst="bob").charge(count(0.2))
    assert ledger.account("people").remaining == Amount()


def test_the_cap_of_the_analyst_holds(ledger):
    the_cap_of_the_analyst_holds(ledger)


def test_the_cap_of_the_data_set_holds_for_all_analysts(ledger):
    the_cap_of_the_data_set_holds_for_all_analysts(ledger)


def test_a_cap_is_not_set_below_what_was_spent_or_in_another_kind(ledger):
    account = opened(ledger)
    account.charge(count(0.5))
    with pytest.raises(sf.InvalidParameter, match="at least what 'analyst' has spent"):
        ledger.allow("people", "analyst", sf.PureDP(0.4))
    with pytest.raises(sf.InvalidParameter, match="in epsilon, got one in rho"):
        ledger.allow("people", "analyst", sf.ZCDP(1))
    with pytest.raises(sf.InvalidParameter, match="in epsilon, got one in epsilon and delta"):
        ledger.renew("people", sf.ApproxDP(1, 1e-6), reason="a new year")
    assert ledger.head.sequence == 2


def test_a_stated_epsilon_and_delta_is_checked_and_a_batch_is_one_charge(ledger):
    account = opened(ledger, sf.ApproxDP(1, 1e-6))

    class Batch:
        name, column, neighbours = "batch", "age", NEIGHBOURS
        event = ComposedEvent([LaplaceEvent(1, 10), GaussianEvent(1, 400, coordinates=1)])
        cost = sf.ApproxDP(0.5, 1e-7)

    entry = account.charge(Batch(), request="batch", digest="d")
    assert entry.price == Amount(epsilon=0.5, delta=1e-7)
    assert account.charge(Batch(), request="batch", digest="d") == entry
    Batch.cost = sf.ApproxDP(0.01, 1e-7)
    with pytest.raises(sf.InvalidParameter, match="must cover the event"):
        account.charge(Batch())
    assert account.remaining == Amount(epsilon=0.5, delta=9e-7)
    assert ledger.verify(prices=True).sound


def test_costs_under_another_relation_or_without_a_pure_price_are_refused(ledger):
    account = opened(ledger)
    with pytest.raises(sf.InvalidParameter, match="neighbours must be that of the ledger"):
        account.charge(sf.Mean(column="x", bounds=(0, 1), budget=sf.PureDP(0.1), neighbours="substitution"))
    with pytest.raises(sf.NotSupported, match="no finite pure epsilon"):
        account.charge(noisy(0.1))
    assert ledger.head.sequence == 1


def test_a_cap_beyond_the_units_of_the_schema_is_refused(ledger):
    with pytest.raises(sf.InvalidParameter, match="at most 9000"):
        opened(ledger, sf.PureDP(9001))
    opened(ledger, sf.PureDP(9000))
    with pytest.raises(sf.InvalidParameter, match="at most 9000"):
        ledger.renew("people", sf.PureDP(1), reason="more")


def test_the_schema_repeats_the_caps(ledger_url, ledger):
    opened(ledger).charge(count(1))
    columns = ", ".join(
        column.name for column in entries.c if column.name not in ("sequence", "dataset_spent_units")
    )
    copy = (
        f"INSERT INTO ledger_entries (sequence, dataset_spent_units, {columns}) "
        f"SELECT 9, dataset_cap_units + 1, {columns} FROM ledger_entries WHERE sequence = 1"
    )
    with pytest.raises(sqlalchemy.exc.IntegrityError), database(ledger_url) as connection:
        connection.execute(sqlalchemy.text(copy))


# --- requests -------------------------------------------------------------------------------------


def a_request_is_charged_once_and_for_one_digest(ledger):
    account = opened(ledger)
    first = account.charge(count(0.25), request="monday", digest="1f")
    assert account.charge(count(0.25), request="monday", digest="1f") == first
    refused = 0
    for digest in ("2e", None):
        try:
            account.charge(count(0.25), request="monday", digest=digest)
        except sf.RequestConflict as error:
            refused += "monday" in str(error)
        try:
            account.answered("monday", digest)
        except sf.RequestConflict:
            refused += 1
    assert refused == 4
    assert account.spent == Amount(epsilon=0.25)


def test_a_request_is_charged_once_and_for_one_digest(ledger):
    a_request_is_charged_once_and_for_one_digest(ledger)


def test_a_request_belongs_to_its_analyst_and_data_set(ledger):
    account, other = opened(ledger), opened(ledger, name="firms")
    account.charge(count(), request="monday", digest="1f")
    account.keep("monday", b"42")
    for stranger in (other, ledger.account("people", analyst="eve")):
        with pytest.raises(sf.RequestConflict):
            stranger.charge(count(), request="monday", digest="1f")
        with pytest.raises(sf.RequestConflict):
            stranger.answered("monday", "1f")
        with pytest.raises(sf.RequestConflict):
            stranger.keep("monday", b"43")
    assert account.answered("monday", "1f") == b"42"


def test_the_first_reply_is_the_one_that_stays(ledger):
    account = opened(ledger)
    account.charge(count(), request="monday", digest="1f")
    assert account.answered("monday", "1f") is None
    assert account.keep("monday", b"\x00\xff first") == b"\x00\xff first"
    assert account.keep("monday", b"second") == b"\x00\xff first"
    assert reopened(ledger).account("people").answered("monday", "1f") == b"\x00\xff first"
    assert [record.kind for record in ledger.entries()] == ["open", "spend", "reply"]
    assert account.answered("tuesday", "1f") is None


def test_a_reply_of_any_length_is_kept(ledger):
    account, reply = opened(ledger), bytes(10**7)
    account.charge(count(), request="monday", digest="1f")
    assert account.keep("monday", reply) == account.answered("monday", "1f") == reply


def test_a_charged_request_has_one_secret_until_its_reply_is_kept(ledger, ledger_url):
    account = opened(ledger)
    with pytest.raises(sf.InvalidParameter, match="must be charged before it is drawn"):
        account.secret("monday")
    for request in ("monday", "tuesday"):
        account.charge(count(), request=request, digest="1f")
    secret = account.secret("monday")
    assert len(secret) == 32
    assert account.secret("monday") == secret != account.secret("tuesday")
    account.keep("monday", b"42")
    assert account.secret("monday") is None
    assert ledger.verify().sound
    with ledger.store.reading() as connection:
        left = connection.execute(sqlalchemy.text("SELECT request FROM ledger_secrets")).all()
    assert left == [("tuesday",)]


def test_a_request_that_was_charged_for_another_event_is_refused(ledger):
    account = opened(ledger)
    account.charge(count(), request="monday", digest="1f")
    with pytest.raises(sf.RequestConflict, match="other facts"):
        account.charge(
            sf.Count(budget=sf.PureDP(0.2), neighbours="add-remove"), request="monday", digest="1f"
        )


def test_a_reply_needs_a_charge(ledger):
    account = opened(ledger)
    with pytest.raises(sf.InvalidParameter, match="must be charged before its reply"):
        account.keep("monday", b"42")
    with pytest.raises(sf.InvalidParameter, match="reply must be bytes"):
        account.keep("monday", "42")
    with pytest.raises(sf.InvalidParameter, match="request must be given with a digest"):
        account.charge(count(), digest="1f")
    assert ledger.head.sequence == 1


def test_a_changed_reply_is_never_given(ledger_url, ledger):
    account = opened(ledger)
    account.charge(count(), request="monday", digest="1f")
    account.keep("monday", b"42")
    tamper(ledger_url, "UPDATE ledger_replies SET reply = :reply", reply=b"43")
    with pytest.raises(sf.LedgerDamaged, match="the reply to 'monday' was changed"):
        account.answered("monday", "1f")
    assert "the reply to request 'monday' is not the one in the entries" in ledger.verify().problems
    tamper(ledger_url, "UPDATE ledger_replies SET reply = :reply, sha256 = 'another'", reply=b"42")
    with pytest.raises(sf.LedgerDamaged, match="was changed"):
        account.answered("monday", "1f")
    assert "the reply to request 'monday' is not the one in the entries" in ledger.verify().problems
    tamper(ledger_url, "DELETE FROM ledger_replies")
    with pytest.raises(sf.LedgerDamaged, match="was changed"):
        account.answered("monday", "1f")
    assert "the reply to request 'monday' is missing" in ledger.verify().problems


# --- the curator ----------------------------------------------------------------------------------


def test_opening_again_finds_the_same_account_and_no_other_terms(ledger):
    opened(ledger).charge(count(0.5))
    assert opened(ledger).spent == Amount(epsilon=0.5)
    with pytest.raises(sf.InvalidParameter, match="cap must be that of the ledger"):
        opened(ledger, sf.PureDP(2))
    with pytest.raises(sf.InvalidParameter, match="neighbours must be that of the ledger"):
        ledger.open("people", cap=sf.PureDP(1), neighbours="substitution")
    ledger.renew("people", sf.PureDP(1), reason="a new year")
    for cap in (1, 2):
        assert opened(ledger, sf.PureDP(cap)).cap == sf.PureDP(2)
    assert [record.kind for record in ledger.entries()] == ["open", "spend", "renew"]


def the_unit_is_a_term_of_the_account(ledger):
    terms = {"cap": sf.PureDP(1), "neighbours": NEIGHBOURS}
    account = ledger.open("visits", **terms, unit="person")
    assert (account.unit, opened(ledger).unit) == ("person", "row")
    assert ledger.account("visits", analyst="ada").unit == "person"
    assert [record.facts["unit"] for record in ledger.entries()] == ["person", "row"]
    refused = 0
    for name, unit in (("visits", "row"), ("visits", "household"), ("people", "person")):
        try:
            ledger.open(name, **terms, unit=unit)
        except sf.InvalidParameter as error:
            refused += "unit must be that of the ledger" in str(error)
    assert refused == 3
    assert ledger.open("visits", **terms, unit="person").unit == "person"
    assert ledger.head.sequence == 2


def test_the_unit_is_a_term_of_the_account(ledger):
    the_unit_is_a_term_of_the_account(ledger)


@pytest.mark.parametrize("unit", ["", "two\nlines", None, 7, "x" * 201])
def test_a_unit_is_short_printable_text(ledger, unit):
    with pytest.raises(sf.InvalidParameter, match="unit must be printable text"):
        ledger.open("people", cap=sf.PureDP(1), neighbours=NEIGHBOURS, unit=unit)
    with pytest.raises(sf.InvalidParameter, match="unit must be printable text"):
        sf.MemoryLedger(sf.PureDP(1), neighbours=NEIGHBOURS, unit=unit)
    assert sf.MemoryLedger(sf.PureDP(1), neighbours=NEIGHBOURS, unit="person").unit == "person"
    assert sf.MemoryLedger(sf.PureDP(1), neighbours=NEIGHBOURS).unit == "row"


def test_a_data_set_that_was_opened_without_a_unit_is_refused_in_words(ledger):
    payload = canonical({"cap": {"epsilon": "1"}, "neighbours": NEIGHBOURS})
    ledger.append(Act("open", "people", payload))
    assert ledger.verify().sound
    for act in (lambda: ledger.account("people"), lambda: opened(ledger)):
        with pytest.raises(sf.LedgerDamaged, match="does not say what was agreed for 'people'"):
            act()


def test_a_renewal_is_an_entry_with_its_reason(ledger):
    account = opened(ledger)
    account.charge(count(1))
    ledger.renew("people", sf.PureDP(0.5), reason="consent for another wave")
    account.charge(count(0.5))
    assert (account.cap, account.remaining) == (sf.PureDP(1.5), Amount())
    assert ledger.entries("people")[2].facts == {
        "added": {"epsilon": "1/2"},
        "reason": "consent for another wave",
    }


def test_nothing_is_spent_on_a_retired_data_set_and_nothing_renews_it(ledger):
    account, other = opened(ledger), opened(ledger, name="firms")
    account.charge(count(), request="monday", digest="1f")
    ledger.retire("people", reason="deleted on request")
    for act in (
        lambda: account.charge(count()),
        lambda: ledger.renew("people", sf.PureDP(1), reason="more"),
        lambda: ledger.allow("people", "ada", sf.PureDP(1)),
        lambda: ledger.retire("people", reason="again"),
    ):
        with pytest.raises(sf.BudgetExceeded, match="retired"):
            act()
    assert account.remaining == Amount()
    # What was paid for before may still be answered, once.
    assert account.keep("monday", b"42") == b"42"
    assert account.charge(count(), request="monday", digest="1f").number == 3
    other.charge(count())
    assert ledger.verify().sound


def test_a_data_set_must_be_opened_by_its_curator(ledger):
    with pytest.raises(sf.InvalidParameter, match="opened by its curator first"):
        ledger.account("people")
    with pytest.raises(sf.InvalidParameter, match="opened by its curator first"):
        ledger.renew("people", sf.PureDP(1), reason="more")


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201, 7, "\ud800"])
def test_names_are_short_printable_texts(ledger, name):
    with pytest.raises(sf.InvalidParameter, match="printable text"):
        opened(ledger, name=name)
    opened(ledger)
    with pytest.raises(sf.InvalidParameter, match="printable text"):
        ledger.account("people", analyst=name)
    with pytest.raises(sf.InvalidParameter, match="printable text"):
        ledger.retire("people", reason=name)
    with pytest.raises(sf.InvalidParameter, match="printable text"):
        ledger.account("people").charge(count(), request=name)


def test_the_same_content_under_another_name_is_found(ledger):
    people, copy = opened(ledger), opened(ledger, name="people-2")
    people.charge(count(), fingerprint="a1")
    copy.charge(count(), fingerprint="a1")
    copy.charge(count(), fingerprint="b2")
    assert ledger.names_like("a1") == ("people", "people-2")
    assert ledger.names_like("a1", besides="people") == ("people-2",)
    assert ledger.names_like("c3") == ()
    assert ledger.datasets() == ("people", "people-2")


def test_no_entry_and_no_export_tells_whether_contents_are_equal(ledger, tmp_path):
    account, known = opened(ledger), "a1b2" * 16
    account.charge(count(), fingerprint=known, request="monday", digest="d")
    assert account.content("monday") == known
    assert account.content("tuesday") is None
    ledger.export(tmp_path / "export.jsonl", replies=True)
    ledger.backup(tmp_path / "backup.jsonl")
    for told in (
        str(ledger.entries()),
        *((tmp_path / f"{name}.jsonl").read_text() for name in ("export", "backup")),
    ):
        assert known not in told


def test_every_ledger_has_its_own_secret_key_and_identity(ledger, tmp_path):
    other = sf.SqlLedger(tmp_path / "other.db")
    assert len(ledger.key) == len(other.key) == 32
    assert ledger.key != other.key
    assert ledger.identity != other.identity
    assert reopened(ledger).key == ledger.key


# --- what lasts -----------------------------------------------------------------------------------


def test_what_was_charged_is_there_after_opening_again(ledger):
    account = opened(ledger)
    entry = account.charge(count(0.25), request="monday", digest="1f")
    again = reopened(ledger)
    assert again.head == ledger.head == (2, entry.hash)
    assert again.account("people").entry("monday") == entry
    assert again.anchored_before
    assert not ledger.anchored_before


def a_failure_after_the_commit_stays_charged(ledger, monkeypatch):
    account = opened(ledger)

    def fails(*_, **__):
        raise sf.LedgerUnavailable("the anchor cannot be written now")

    with monkeypatch.context() as patch:
        patch.setattr(type(ledger.anchor), "write", fails)
        with pytest.raises(sf.LedgerUnavailable) as error:
            account.charge(count(0.25), request="monday", digest="1f")
        told = "entry 2 (spend) is in the ledger all the same, and asking again with the same request id"
        assert told in str(error.value)
        with pytest.raises(sf.LedgerUnavailable, match=r"entry 3 \(spend\) is in the ledger all the same$"):
            account.charge(count(0.25))
        with pytest.raises(sf.LedgerUnavailable, match="for request 'monday' stays charged"):
            account.keep("monday", b"42")
    assert account.spent == Amount(epsilon=0.5)
    # The retry costs nothing and brings the anchor up.
    account.charge(count(0.25), request="monday", digest="1f")
    assert account.keep("monday", b"another draw") == b"42"
    assert account.spent == Amount(epsilon=0.5)
    assert ledger.verify().sound


def test_a_failure_after_the_commit_stays_charged(ledger, monkeypatch):
    a_failure_after_the_commit_stays_charged(ledger, monkeypatch)


def serve(account, request):
    account.charge(count(0.1), request=request, digest="1f")
    account.keep(request, b"42")


def test_a_failure_before_the_commit_charges_nothing(ledger, monkeypatch):
    account = opened(ledger)
    seen = []
    for point in failpoints.FAIL_POINTS:

        def reached(name, point=point):
            seen.append(name)
            if name == point:
                raise OSError("stop here")

        with monkeypatch.context() as patch:
            patch.setattr(failpoints, "fail_point", reached)
            before = account.spent
            with pytest.raises(OSError, match="stop here"):
                serve(account, point)
        charged = point not in ("before-begin", "before-insert", "before-commit")
        assert account.spent == before + Amount(epsilon=0.1 if charged else 0)
    assert set(seen) == set(failpoints.FAIL_POINTS)
    assert ledger.verify().sound


def entries_cannot_be_changed_or_removed(url, ledger):
    opened(ledger).charge(count(0.5), request="monday", digest="1f")
    ledger.account("people").keep("monday", b"42")
    refused = 0
    statements = [
        'UPDATE ledger_entries SET price = \'{"epsilon":"0"}\' WHERE sequence = 2',
        "DELETE FROM ledger_entries WHERE sequence = 3",
        "UPDATE ledger_replies SET sha256 = ''",
        "DELETE FROM ledger_replies",
        "UPDATE ledger_facts SET identity = 'another'",
        "DELETE FROM ledger_facts",
    ]
    for statement in statements:
        try:
            with database(url) as connection:
                connection.execute(sqlalchemy.text(statement))
        except sqlalchemy.exc.DBAPIError as error:
            refused += "a ledger is only added to" in str(error)
    assert refused == len(statements)
    assert ledger.verify().sound


def test_entries_cannot_be_changed_or_removed(ledger_url, ledger):
    entries_cannot_be_changed_or_removed(ledger_url, ledger)


def test_the_tables_are_those_that_the_queries_name(ledger_url, ledger):
    with database(ledger_url) as connection:
        inspector = sqlalchemy.inspect(connection)
        for table in (entries, replies, facts):
            found = [column["name"] for column in inspector.get_columns(table.name)]
            assert sorted(found) == sorted(table.c.keys())
        assert set(inspector.get_table_names()) == set(metadata.tables)


def test_a_clock_that_goes_back_does_no_harm(ledger, monkeypatch):
    account = opened(ledger)
    account.charge(count())
    with monkeypatch.context() as patch:
        patch.setattr("sfumato.ledger.sql.now", lambda: "1970-01-01T00:00:00.000000+00:00")
        account.charge(count(0.2))
    account.charge(count())
    assert account.spent == Amount(epsilon=0.4)
    assert ledger.verify().sound


def test_threads_and_a_fork_share_a_ledger(ledger):
    account = opened(ledger, sf.PureDP(2))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: account.charge(count()), range(16)))
    child = os.fork()
    if child == 0:
        try:
            account.charge(count(0.2))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    account.charge(count(0.2))
    assert account.remaining == Amount()
    assert ledger.verify().sound


def test_a_session_keeps_a_durable_ledger(ledger):
    account = opened(ledger, sf.PureDP(0.3))
    data = sf.Dataset({"age": [31, 45]}, unit="row", neighbours=NEIGHBOURS, name="people")
    kept: Ledger = account
    with sf.Session(data, budget=sf.PureDP(1), ledger=kept) as session:
        session.answer(sf.Count(column="age", budget=sf.PureDP(0.2)))
        with pytest.raises(sf.BudgetExceeded, match="of the data set 'people'"):
            session.answer(sf.Count(column="age", budget=sf.PureDP(0.2)))
        assert session.spent == account.spent == Amount(epsilon=0.2)
    facts = ledger.entries()[1].facts
    assert (facts["statistic"], facts["column"], facts["event"]["type"]) == ("count", "age", "laplace")
