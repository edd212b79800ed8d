"""Ledgers with a mistake planted in each, and the check that notices it."""

import fcntl
import json
from fractions import Fraction

import pytest
from tests.ledger import test_anchor, test_chain, test_sql
from tests.ledger.items import count, opened, tamper

import sfumato as sf
from sfumato.ledger import account, anchor, chain, replay
from sfumato.ledger import sql as sql_module
from sfumato.ledger.chain import Head
from sfumato.privacy import Amount

_charged, _numbers_of, _expected = chain._charged, chain.numbers_of, replay.Replay._expected


def one_cap_skipped(whose):
    def charged(total, act, name):
        return total.plus(act.price) if name == whose else _charged(total, act, name)

    return lambda patch: patch.setattr(chain, "_charged", charged)


def refund_on_error(patch):
    """The anchor is written before the commit, so that its failure undoes the charge."""

    def append(ledger, act, once=None):
        with ledger.store.writing() as connection:
            found = None if once is None else once(connection, act)
            record = found or ledger._insert(connection, act)
            ledger.anchor.write(Head(record.sequence, record.hash))
        return record, found is None

    patch.setattr(sql_module.SqlLedger, "append", append)


def hash_without_previous(patch):
    def digest(values):
        return _digest((*values[:-1], ""))

    _digest = chain._digest
    assert chain._HASHED[-1] == "previous"
    patch.setattr(chain, "_digest", digest)


def totals_not_checked(patch):
    def expected(self, record):
        found = _expected(self, record)
        names = [name for name in found._fields if name.startswith(("dataset_", "analyst_"))]
        return found._replace(**{name: getattr(record, name) for name in (*names, "hash")})

    patch.setattr(replay.Replay, "_expected", expected)


def anchor_not_compared(patch):
    patch.setattr(sql_module.SqlLedger, "_check_anchor", lambda *_: None)


def unit_not_compared(patch):
    def same_terms(kept, standing, act):
        _same_terms({**kept, "unit": json.loads(act.payload)["unit"]}, standing, act)

    _same_terms = sql_module.require_same_terms
    patch.setattr(sql_module, "require_same_terms", same_terms)


def waits_for_ever(patch):
    patch.setattr(anchor.Anchor, "_lock", lambda _, file, lock: fcntl.flock(file, lock))


def digest_ignored(patch):
    patch.setattr(account.Account, "_match", lambda *_: None)


def price_in_floats(patch):
    def floats(value, fields):
        return tuple(Fraction(float(number)) for number in _numbers_of(value, fields))

    patch.setattr(account, "numbers_of", floats)


def total_in_floats(patch):
    def plus(self, price):
        summed = tuple(Fraction(float(a) + float(b)) for a, b in zip(self.spent, price, strict=True))
        return chain.Total(self.fields, summed, self.cap)

    patch.setattr(chain.Total, "plus", plus)


def three_tenths_fit_exactly(ledger):
    spender = opened(ledger, sf.PureDP(0.3))
    for _ in range(3):
        try:
            spender.charge(count(0.1))
        except sf.BudgetExceeded as error:
            raise AssertionError("three tenths fit") from error
    assert spender.remaining == Amount()


# The mistake, the check that holds without it, and what the check needs.
MUTANTS = {
    "the cap of the analyst skipped": (
        one_cap_skipped("analyst"),
        lambda ledger, *_: test_sql.the_cap_of_the_analyst_holds(ledger),
    ),
    "the cap of the data set skipped": (
        one_cap_skipped("data set"),
        lambda ledger, *_: test_sql.the_cap_of_the_data_set_holds_for_all_analysts(ledger),
    ),
    "refund on error": (
        refund_on_error,
        lambda ledger, folder, patch: test_sql.a_failure_after_the_commit_stays_charged(ledger, patch),
    ),
    "hash without previous": (
        hash_without_previous,
        lambda *_: test_chain.the_hash_commits_to_the_entry_before(),
    ),
    "totals not checked": (totals_not_checked, lambda *_: test_chain.totals_are_worked_out_again()),
    "anchor not compared": (
        anchor_not_compared,
        lambda ledger, folder, _: test_anchor.an_older_copy_is_refused(folder),
    ),
    "unit not compared": (
        unit_not_compared,
        lambda ledger, *_: test_sql.the_unit_is_a_term_of_the_account(ledger),
    ),
    "waiting for the anchor without an end": (
        waits_for_ever,
        lambda ledger, folder, _: test_anchor.a_lock_that_another_holds_is_not_waited_for_for_ever(folder),
    ),
    "digest ignored": (
        digest_ignored,
        lambda ledger, *_: test_sql.a_request_is_charged_once_and_for_one_digest(ledger),
    ),
    "price in floats": (price_in_floats, lambda ledger, *_: three_tenths_fit_exactly(ledger)),
    "totals in floats": (total_in_floats, lambda ledger, *_: three_tenths_fit_exactly(ledger)),
}


@pytest.fixture
def ledger(tmp_path):
    return sf.SqlLedger(tmp_path / "mutant.db", anchor=tmp_path / "mutant.anchor")


@pytest.mark.parametrize("name", MUTANTS)
def test_the_check_holds_without_the_mistake(name, ledger, tmp_path, monkeypatch):
    MUTANTS[name][1](ledger, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_mistake_is_noticed(name, ledger, tmp_path, monkeypatch):
    mutate, check = MUTANTS[name]
    mutate(monkeypatch)
    # The constraints of the schema notice a cap that the code skips, before the check does.
    with pytest.raises((AssertionError, sf.LedgerDamaged)):
        check(ledger, tmp_path, monkeypatch)


def test_absent_triggers_are_noticed(ledger, tmp_path):
    tamper(tmp_path / "mutant.db", "SELECT 1")
    with pytest.raises(AssertionError):
        test_sql.entries_cannot_be_changed_or_removed(tmp_path / "mutant.db", ledger)


def test_an_anchor_that_goes_back_is_noticed(tmp_path, monkeypatch):
    plain = anchor.Anchor._last
    monkeypatch.setattr(anchor.Anchor, "_last", lambda self, file: (None, plain(self, file)[1]))
    with pytest.raises(sf.LedgerDamaged):
        test_anchor.test_a_head_never_goes_back(anchor.Anchor(tmp_path / "anchor"))
