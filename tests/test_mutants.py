"""T6: every named way to break privacy is noticed by a check of this suite, which otherwise passes."""

from functools import cache

import pytest
from tests.mutants import MUTANTS

NAMES = [
    "Laplace scale x 0.99",
    "Laplace scale x 0.99 in the sampler",
    "Laplace scale x 0.5 in the sampler",
    "sigma x 0.99",
    "sigma x 0.99 in the sampler",
    "sigma x 0.98 on several counts",
    "sensitivity off by one",
    "sensitivity off by one, replayed",
    "sensitivity hi - lo instead of the larger size",
    "a value may become a null unnoticed",
    "add-remove charged for substitution",
    "histogram at full epsilon per cell",
    "moments at full epsilon each",
    "spread of a mean at full epsilon",
    "spread of a mean not counted in the cost",
    "clamp missing",
    "clamp missing, replayed",
    "NaN passes",
    "null rule ignored",
    "null rule ignored, replayed",
    "null adds a value under drop",
    "clamped at the private number of rows",
    "mean divided by the private number of rows",
    "no noise on empty cells",
    "no noise on empty cells, replayed",
    "zero counted twice",
    "zero counted twice by the Gaussian",
    "tie to the wrong side",
    "low part and coin share bits",
    "seed fixed",
    "noise from numpy.random",
    "Laplace charged as another law",
    "Gaussian charged as another law",
    "Laplace charged for Gaussian noise",
    "charge after look",
    "cap of the ledger skipped",
    "cap of the session skipped",
    "refund on error",
]


def test_the_mutants_are_those_that_are_written_here():
    assert list(MUTANTS) == NAMES


@cache
def passes(check):
    """Whether a check passes on the product as it is; some serve several mutants."""
    check()
    return True


@pytest.mark.parametrize("name", NAMES)
def test_the_mutant_is_noticed(name):
    mutant = MUTANTS[name]
    with mutant.defect(), pytest.raises(mutant.shows_as):
        mutant.check()
    assert passes(mutant.check), "the check must notice the defect, and nothing else"
