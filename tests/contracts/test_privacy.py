"""T1: the loss of what is sampled, for all small neighbours, is at most the charge, and attains it.

Pure losses are exact; approximate and zCDP ones are lower bounds near the truth (audit/divergence.py).

`pytest tests/contracts -s` prints how tight every charge is.
"""

import pytest
from tests.contracts.privacy import (
    EVERYTHING,
    MAIN,
    QUESTIONS,
    all_pairs,
    assert_private,
    cases,
    must_be_tight,
)

import sfumato.mechanisms
from sfumato.audit import worst_case
from sfumato.audit.shipped_mechanisms import CELLS, numeric_mechanisms
from sfumato.mechanisms import MECHANISMS
from sfumato.privacy import ZCDP, ApproxDP, PureDP
from sfumato.statistics import STATISTICS


def name(value):
    return value if isinstance(value, str) else repr(value)


# Pure budgets always; the others take long.
SORTED = [
    one if isinstance(one[2], PureDP) else pytest.param(*one, marks=pytest.mark.slow) for one in EVERYTHING
]


@pytest.mark.parametrize(("question", "relation", "budget"), SORTED, ids=name)
def test_no_neighbours_lose_more_than_was_charged(question, relation, budget):
    for case in cases(question, relation, budget):
        worst = assert_private(case)
        row = f"{question:24} {relation:12} {worst.pairs:6,} pairs  {worst.loss.tightness:.4f}  {case}"
        print(row)
        if must_be_tight(case, worst):
            assert worst.loss.tightness >= 0.999, row


def test_the_contract_covers_every_statistic_and_a_hundred_thousand_pairs():
    assert {kind for kind, _ in QUESTIONS.values()} == set(STATISTICS.values())
    assert {type(budget) for budget in MAIN} == {PureDP, ApproxDP, ZCDP}
    assert all_pairs() >= 100_000


def test_the_contract_covers_every_mechanism():
    assert {type(mechanism) for mechanism in numeric_mechanisms()} == set(MECHANISMS)
    public = {value for value in vars(sfumato.mechanisms).values() if hasattr(value, "law")}
    # Scans and choices have other inputs than numbers, and audits of their own beside their tests.
    others = {"AboveThreshold", "SparseMechanism", "ExponentialMechanism", "TopMechanism"}
    others |= {"BoundedNoiseMechanism", "PartitionSelection", "WassersteinMechanism", "ZeroSumMechanism"}
    assert public == {*MECHANISMS, *(getattr(sfumato.mechanisms, name) for name in others)}


@pytest.mark.parametrize("mechanism", numeric_mechanisms(), ids=repr)
def test_no_mechanism_costs_more_than_its_event_says_and_each_attains_it(mechanism):
    worst = worst_case(mechanism, cells=CELLS)
    print(worst)
    assert worst.loss.holds, f"{worst}: {worst.left} and {worst.right}"
    # Gaussian noise of a small scale is narrower than its parameter says, and costs a little less.
    assert worst.loss.tightness >= 0.95
