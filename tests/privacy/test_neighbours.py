"""The neighbour relation is one of two words; nothing is guessed."""

from typing import get_args

import pytest

from sfumato.errors import InvalidParameter
from sfumato.privacy.neighbours import MEANINGS, Neighbours, check_neighbours


@pytest.mark.parametrize("name", get_args(Neighbours))
def test_both_relations_are_accepted_and_explained(name):
    assert check_neighbours(name) == name
    public = {"substitution": "public", "add-remove": "private"}[name]
    assert f"the number of rows is {public}" in MEANINGS[name]


@pytest.mark.parametrize(
    "name", ["Substitution", "add_remove", "addremove", "", None, 1, True, ["substitution"]]
)
def test_other_spellings_are_refused_with_the_list(name):
    with pytest.raises(InvalidParameter, match="neighbours must be one of 'substitution', 'add-remove'"):
        check_neighbours(name)
