"""Sentences that judge numbers: they hold to the digit, and no further."""

import pytest

from sfumato.lab.judging import agrees, all_agree, as_printed, compared, equals


@pytest.mark.parametrize(
    ("value", "printed", "holds"),
    [
        (9.2979, "9.298", True),
        (9.2974, "9.298", False),
        (42.9, "43", True),
        (43.6, "43", False),
        (122.3958, "122.40", True),
        (0.0019972, "0.00200", True),
        (0.00201, "0.00200", False),
        (float("nan"), "1", False),
    ],
)
def test_digits_in_print_are_kept_to_half_of_the_last(value, printed, holds):
    assert as_printed("it", value, printed).holds is holds


def test_a_number_in_the_words_has_more_digits_than_the_reference():
    assert (
        as_printed("the risk", 122.395833, "122.40").words == "the risk is 122.3958; the reference is 122.40"
    )


@pytest.mark.parametrize(("mean", "holds"), [(1.39, True), (1.41, False), (0.61, True), (0.59, False)])
def test_four_standard_errors_are_allowed_and_no_more(mean, holds):
    assert agrees("it", mean, 1.0, 0.1).holds is holds
    assert all_agree("all", [1.0, mean], [1.0, 1.0], [0.1, 0.1]).holds is holds


def test_without_an_error_only_the_same_number_agrees():
    assert agrees("it", 0.0, 0.0, 0.0).holds
    assert not agrees("it", 1e-9, 0.0, 0.0).holds
    assert all_agree("all", [0.0], [0.0], [0.0]).holds
    assert not all_agree("all", [1e-9], [0.0], [0.0]).holds


def test_nothing_to_compare_is_no_agreement():
    assert not all_agree("all", [], [], []).holds


def test_equal_means_nine_digits():
    assert equals("it", 1 + 1e-10, 1).holds
    assert not equals("it", 1 + 1e-8, 1).holds


def test_a_relation_is_said_with_its_numbers():
    found = compared("{:g} is above {:g}", 2, 1, lambda left, right: left > right)
    assert (found.words, found.holds) == ("2 is above 1", True)
