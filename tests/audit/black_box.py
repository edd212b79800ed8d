"""What can be told from draws alone, through the real statistics."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from sfumato.audit import epsilon_lower_bound
from sfumato.data.admission import admit
from sfumato.laws import SeededBits
from sfumato.privacy import ZCDP, PureDP
from sfumato.statistics import Count, Sum

DRAWS = 100_000
CLAIMED = 1
QUERY = Count(budget=PureDP(CLAIMED), between=(0, 1), neighbours="add-remove", nulls="drop")


def estimated_epsilon() -> float:
    """A lower bound of the epsilon of a count, from draws on two neighbouring data sets."""
    query = replace(QUERY)
    draws = [
        query.law(query.look(admit(np.ones(rows)))).sample(SeededBits(seed), DRAWS)
        for seed, rows in ((11, 20), (12, 21))
    ]
    return epsilon_lower_bound(*draws, confidence=0.95)


def assert_draws_do_not_refute_epsilon() -> None:
    assert estimated_epsilon() <= CLAIMED


def assert_drawn_noise_has_the_stated_scale() -> None:
    """A score test of one parameter: the mean size of Laplace noise, the mean square of Gaussian noise.

    At 10^6 draws an error of 1 % in the scale is eight standard errors or more; seven are allowed, which
    chance reaches once in 10^11. The bits are fixed, so that a red run is red again.
    """
    draws = 1_000_000
    for budget, power in ((PureDP(1), 1), (ZCDP(Fraction(1, 2)), 2)):
        query = Sum(budget=budget, bounds=(0, 1), neighbours="add-remove", nulls="drop")
        law = query.law(query.look(admit(np.zeros(1))))
        drawn = np.abs(np.asarray(law.sample(SeededBits(13), draws)), dtype=np.float64) ** power
        # The charge says which noise it should be.
        if power == 1:
            scale = query.event.sensitivity / float(query.event.pure_epsilon)
        else:
            scale = float(query.event.sensitivity_squared) / (2 * float(query.event.rho))
        error = (drawn.mean() - scale) / (drawn.std() / draws**0.5)
        assert abs(error) < 7, f"{budget!r}: {error:.1f} standard errors"
