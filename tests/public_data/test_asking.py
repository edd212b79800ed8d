"""What is refused before a charge, that the charge comes before the data, and what it is."""

import contextlib
import copy
import pickle
import warnings

import numpy as np
import polars as pl
import pytest
from tests.public_data.test_weights import BUDGETS, MEAN, found, tables

from sfumato.data.dataset import Dataset
from sfumato.errors import BudgetExceeded, InvalidParameter, NotSupported, SchemaMismatch
from sfumato.laws import SeededBits
from sfumato.ledger import MemoryLedger
from sfumato.privacy import Amount, PureDP
from sfumato.public_data import Features, Logistic, NotCovered, Tilting, weights
from sfumato.public_data.weighting import weighting
from sfumato.session import Session

# The session: charge, then look.


def test_a_session_charges_before_it_reads_and_never_beyond_its_budget(monkeypatch):
    private, public = tables(1)
    data = Dataset(private, unit="row", neighbours="substitution")
    ledger = MemoryLedger(PureDP(1), neighbours="substitution")
    session = Session(data, budget=PureDP(1), ledger=ledger)
    reads = []
    original = Dataset.column

    def watched(self, name):
        column = original(self, name)
        if self is data:
            reads.append(ledger.spent.epsilon)
            object.__setattr__(
                column, "chunks", lambda: (_ for _ in ()).throw(AssertionError("read before charge"))
            )
        return column

    with monkeypatch.context() as patch:
        patch.setattr(Dataset, "column", watched)
        with pytest.raises(BudgetExceeded):
            session.weights(public, features=MEAN.features, budget=PureDP(2))
        assert ledger.spent == Amount()
        with pytest.raises(AssertionError, match="read before charge"):
            session.weights(public, features=MEAN.features, budget=PureDP(0.25))
        # The values were asked for once the charge stood.
        assert ledger.spent == Amount(epsilon=0.25)
    again = Session(Dataset(private, unit="row", neighbours="substitution"), budget=PureDP(1), ledger=ledger)
    got = again.weights(public, features=MEAN.features, budget=PureDP(0.5))
    assert got.private
    assert [(entry.statistic, entry.column) for entry in ledger.entries] == [("weights", "x1, x2, x3")] * 2
    assert ledger.spent == Amount(epsilon=0.75)


@pytest.mark.parametrize("method", [Tilting(), Logistic(penalty=0.1)])
@pytest.mark.parametrize("neighbours", ["substitution", "add-remove"])
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_the_event_costs_what_the_budget_allows(method, neighbours, budget):
    private, public = tables(1, rows=300, public_rows=300)
    session = Session(Dataset(private, unit="row", neighbours=neighbours), budget=budget, bits=SeededBits(1))
    # Little budget, few rows: what was drawn may be far off, and is paid for all the same.
    with contextlib.suppress(NotCovered), warnings.catch_warnings(action="ignore"):
        session.weights(public, features=MEAN.features, budget=budget, method=method)
    assert session.spent == Amount.of(budget)
    with pytest.raises(BudgetExceeded):
        session.weights(public, features=MEAN.features, budget=budget, method=method)


@pytest.mark.parametrize("method", [Tilting(), Logistic(penalty=0.1)])
def test_a_private_number_of_rows_decides_nothing_before_the_charge(method, monkeypatch):
    # Whatever the certificate was made for, and however many rows there are, the question is the same one.
    monkeypatch.setattr("sfumato.public_data.logistic.MAX_PRIVATE_ROWS", 100)
    public = tables(1, public_rows=300)[1]
    asked = []
    for rows in (0, 1, 50, 400):
        data = Dataset(tables(2, rows=rows)[0], unit="row", neighbours="add-remove")
        made = weighting(data, public, features=MEAN.features, budget=PureDP(1), method=method)
        asked.append((made.event, made.release.sensitivity, made.release.mechanism))
        assert made.law(data) is not None
    assert asked[1:] == asked[:-1]


def test_features_are_copied_and_pickled():
    features = Features(numbers={"x": (0, 1), "y": None}, categories={"k": ("a",)}, squares=True, radius=2)
    assert pickle.loads(pickle.dumps(features)) == copy.deepcopy(features) == features


# What is refused before anything is charged.


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"features": []}, InvalidParameter, "at least one column"),
        ({"features": "x1"}, InvalidParameter, "features must be Features or names"),
        ({"features": ["nothing"]}, SchemaMismatch, "column 'nothing' is not in the data"),
        ({"features": Features(categories={"x1": ("a",)})}, SchemaMismatch, "categories must be int"),
        ({"method": "magic"}, InvalidParameter, "method must be 'tilting' or 'logistic'"),
        ({"epsilon": None}, InvalidParameter, "epsilon or budget must be given"),
        ({"neighbours": "none"}, InvalidParameter, "neighbours must be one of"),
        (
            {"public": {"x1": np.ones(50), "x2": np.ones(50), "x3": np.ones(50)}},
            InvalidParameter,
            "must vary",
        ),
        (
            {"public": {"x1": [1.0], "x2": [2.0], "x3": [3.0]}},
            InvalidParameter,
            "public must have at least 13 rows",
        ),
        ({"private": {"x1": [], "x2": [], "x3": []}}, InvalidParameter, "private must have at least one row"),
        ({"method": Logistic(rows=5)}, InvalidParameter, "rows must be left out where it is public"),
        ({"public": pl.LazyFrame({"x1": [1.0], "x2": [1.0], "x3": [1.0]})}, NotSupported, "memory|engine"),
    ],
)
def test_wrong_public_facts_are_refused(changes, error, message):
    private, public = tables(1, rows=50, public_rows=50)
    given = {
        "private": private,
        "public": public,
        "features": MEAN.features,
        "epsilon": 1,
        "neighbours": "substitution",
    }
    with pytest.raises(error, match=message):
        weights(**(given | changes))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Features(numbers=["x"], radius=0),
        lambda: Features(numbers=["x"], limit=-1),
        lambda: Features(numbers={"x": (1, 0)}),
        lambda: Features(numbers={"x": 3}),
        lambda: Features(numbers=["x", "x"]),
        lambda: Features(numbers=["x"], categories={"x": ("a",)}),
        lambda: Features(categories={"x": list(map(str, range(600)))}),
        lambda: Features(numbers=["x"], nulls="drop"),
        lambda: Tilting(penalty=0),
        lambda: Logistic(penalty=1e9),
    ],
)
def test_wrong_parameters_are_refused(make):
    with pytest.raises(InvalidParameter):
        make()


def test_values_must_be_a_number_for_each_public_row():
    got = found()
    for wrong in ([1.0, 2.0], np.full(2000, np.nan), np.full(2000, 1e200)):
        with pytest.raises(InvalidParameter, match="values must be"):
            got.mean(wrong)
    with pytest.raises(SchemaMismatch):
        got.mean("missing")
    with pytest.raises(InvalidParameter, match="target must be one of"):
        got.mean("x1").interval(target="both")


def test_units_of_several_rows_are_refused():
    private, public = tables(1, rows=50, public_rows=50)
    private["id"] = np.arange(50)
    data = Dataset(private, unit="id", rows_per_unit=2, neighbours="add-remove")
    with pytest.raises(NotSupported, match="unit='row'"):
        Session(data, budget=PureDP(1)).weights(public, features=MEAN.features, budget=PureDP(1))


@pytest.mark.parametrize("method", ["tilting", "logistic"])
@pytest.mark.parametrize("odd", [1e-200, 1e200, 5e-324, np.inf])
def test_no_value_of_a_row_raises_whatever_numpy_is_told_to_do(method, odd):
    private, public = tables(1)
    first = next(iter(private))
    changed = {**private, first: np.concatenate([[odd], np.asarray(private[first])[1:]])}
    data = Dataset(changed, unit="row", neighbours="substitution")
    features = Features(numbers=list(private), squares=True)
    asked = weighting(data, public, features=features, budget=PureDP(1), method=method)
    with np.errstate(all="raise"):
        asked.law(data)


def test_a_tiny_penalty_gives_weights_or_a_refusal_in_words():
    private, public = tables(1)
    with warnings.catch_warnings(), contextlib.suppress(NotCovered):
        warnings.simplefilter("ignore")
        weights(
            private,
            public,
            features=MEAN.features,
            epsilon=1000,
            neighbours="substitution",
            method=Logistic(penalty=1e-12),
            bits=SeededBits(1),
        )


def test_the_private_table_is_no_public_table_and_a_dataset_goes_to_a_session():
    private, public = tables(1)
    given = {"features": MEAN.features, "epsilon": 1, "neighbours": "substitution"}
    with pytest.raises(InvalidParameter, match="public must be another table than private"):
        weights(private, private, **given)
    data = Dataset(private, unit="row", neighbours="substitution")
    with pytest.raises(InvalidParameter, match=r"Session\.weights takes one"):
        weights(data, public, **given)
