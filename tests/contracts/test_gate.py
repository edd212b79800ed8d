"""Charge, then look; never refund; and randomness that nobody can repeat."""

import pytest
from tests.contracts import gate


@pytest.mark.parametrize(
    "check",
    [
        gate.assert_charged_before_the_data_are_read,
        gate.assert_refused_queries_read_nothing,
        gate.assert_every_cap_is_charged,
        gate.assert_errors_are_not_refunded,
        gate.assert_releases_differ,
        gate.assert_seeding_other_generators_changes_nothing,
    ],
    ids=lambda check: check.__name__,
)
def test_the_gate_keeps_its_contract(check):
    check()
