"""Named ways to break privacy, and for each the check of this suite that must notice.

A mutant replaces one small piece of the product. What it breaks is written as the defect would be written
in the product, by someone who meant well.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.audit.black_box import assert_drawn_noise_has_the_stated_scale, assert_draws_do_not_refute_epsilon
from tests.contracts import gate
from tests.contracts.privacy import Case, assert_private, cases
from tests.contracts.replay import assert_corner_tables_leave_the_same_trace
from tests.laws import test_enumeration as enumeration

from sfumato.data import counts
from sfumato.data.counts import Sums
from sfumato.grid import Lattice
from sfumato.laws import Clamped, DiscreteGaussian, DiscreteLaplace, Joint, Point, SeededBits
from sfumato.laws.candidates import Candidates
from sfumato.mechanisms import GaussianMechanism, LaplaceMechanism, Sensitivity, additive
from sfumato.privacy import ZCDP, ApproxDP, GaussianEvent, LaplaceEvent, PureDP
from sfumato.session import Session
from sfumato.statistics import Count, Histogram, Mean, Sum, Variance, mean_spread

SMALLER = Fraction(99, 100)


@dataclass(frozen=True)
class Mutant:
    """A defect, the check that must notice it, and how it shows."""

    defect: Callable[[], AbstractContextManager[Any]]
    check: Callable[[], Any]
    shows_as: type[BaseException] = AssertionError


def replaced(owner: Any, name: str, new: Any) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: patch.object(owner, name, new)


def audit(question: str, relation: str, budget: Any = PureDP(1)) -> Callable[[], None]:  # noqa: B008
    """The exact audit of the contract, for one statistic."""

    def check() -> None:
        for case in cases(question, relation, budget):
            assert_private(case)

    return check


def audit_of_counts() -> None:
    """The exact audit of Gaussian noise on several counts."""
    query = Histogram(
        budget=ApproxDP(1, 1e-6), neighbours="substitution", noise="gaussian", categories=("a", "b", "c")
    )
    assert_private(Case(query, size=2, cells=3))


def enumerate_laplace(scale: int) -> Callable[[], None]:
    """Every word of a small width through the sampler."""

    def check() -> None:
        for pattern in enumeration.PATTERNS:
            enumeration.test_every_word_gives_the_outcome_of_exact_arithmetic(
                Fraction(scale), pattern, two_sided=True
            )

    return check


def enumerate_gaussian() -> None:
    for pattern in enumeration.PATTERNS:
        enumeration.test_every_word_gives_the_gaussian_outcome_of_exact_arithmetic(Fraction(9), pattern)


def smaller_laplace(part: Fraction) -> Any:
    sample = DiscreteLaplace.sample
    return lambda law, bits, size=None: sample(DiscreteLaplace(law.scale * part), bits, size)


def smaller_gaussian(part: Fraction) -> Any:
    sample = DiscreteGaussian.sample
    return lambda law, bits, size=None: sample(DiscreteGaussian(law.sigma_squared * part**2), bits, size)


def numpy_laplace(law: DiscreteLaplace, bits: Any, size: int | None = None) -> Any:
    drawn = np.rint(np.random.laplace(scale=float(law.scale), size=size))  # noqa: NPY002  # the defect
    return int(drawn) if size is None else drawn.astype(np.int64)


def sum_with_reach(reach: Callable[[Sum], int]) -> Any:
    return property(lambda query: additive(query.budget, Sensitivity.scalar(reach(query)), query.noise))


def unclamped(lattice: Lattice, values: Any, out: Any) -> None:
    np.subtract(values, float(lattice.origin), out=out)
    np.multiply(out, float(1 / lattice.step), out=out)
    # Infinities alone are brought back, so that nothing else fails.
    np.copyto(out, np.sign(out) * 8.0 * lattice.high, where=np.isinf(out))
    np.rint(out, out=out)


def without_ties(source: Candidates, prefixes: Any) -> Any:
    steps = np.searchsorted(source.table, prefixes)
    return steps, np.zeros(len(steps), dtype=bool)


def with_shared_bits(source: Candidates, words: Any) -> Any:
    low = (words & np.uint64((1 << source.shift) - 1)).view(np.int64)
    return low, words & np.uint64((1 << source.coin_width) - 1)


def nulls_stay(chunk: Any, located: Any, place: float) -> int:
    return int(np.count_nonzero(np.isnan(chunk)))


def nulls_always_dropped(query: Count, column: Any) -> Sums:
    return Sums(column.rows - column.nulls(), column.rows - column.nulls())


def nulls_add_the_upper_bound() -> Any:
    of = Sums.of

    def mutated(values: Any, lattice: Lattice, *, nulls: Any = "drop", squares: bool = False) -> Sums:
        kept = of(values, lattice, nulls=nulls, squares=squares)
        filled = of(values, lattice, nulls="upper" if nulls == "drop" else nulls, squares=squares)
        return Sums(kept.size, filled.first, filled.second)

    return mutated


def clamped_at_the_size(query: Count, view: Sums) -> Any:
    return Clamped(query.mechanism.law(view.first), 0, view.size)


def mean_with_the_exact_size(query: Mean, view: Sums) -> Any:
    noisy = query.mechanism.law(view.first)
    return noisy if query.size_is_public else Joint((noisy, Point(view.size)))


def noise_on_occupied_cells(query: Histogram, view: Any) -> Any:
    return Joint(tuple(query.mechanism.law(int(count)) if count else Point(0) for count in view))


def moments_at_full_epsilon(query: Variance) -> Any:
    if not query.size_is_public:
        return (query.mechanism,) * 3
    reach, epsilon = query.lattice.high, query.budget.epsilon
    return tuple(
        LaplaceMechanism.calibrated(epsilon=epsilon, sensitivity=change) for change in (2 * reach, reach**2)
    )


class FixedBits(SeededBits):
    """Seeded bits that pass for private ones."""

    private = True

    def __init__(self) -> None:
        super().__init__(0)


def looked_before_charging() -> Any:
    answer = Session.answer

    def mutated(session: Session, query: Any) -> Any:
        bound, column = session._bind(query)
        bound.look(column)
        return answer(session, query)

    return mutated


def refunding() -> Any:
    answer = Session.answer

    def mutated(session: Session, query: Any) -> Any:
        before = session._own._accountant._spent
        try:
            return answer(session, query)
        except Exception:
            session._own._accountant._spent = before
            raise

    return mutated


def session_that(forgets: Callable[[Session], Any]) -> Any:
    init = Session.__init__

    def mutated(session: Session, *args: Any, **kwargs: Any) -> None:
        init(session, *args, **kwargs)
        forgets(session)

    return mutated


MUTANTS: dict[str, Mutant] = {
    # Noise that is too small.
    "Laplace scale x 0.99": Mutant(
        replaced(LaplaceMechanism, "noise", property(lambda m: DiscreteLaplace(m.scale * SMALLER))),
        audit("sum over zero", "substitution"),
    ),
    "Laplace scale x 0.99 in the sampler": Mutant(
        replaced(DiscreteLaplace, "sample", smaller_laplace(SMALLER)), assert_drawn_noise_has_the_stated_scale
    ),
    "Laplace scale x 0.5 in the sampler": Mutant(
        replaced(DiscreteLaplace, "sample", smaller_laplace(Fraction(1, 2))),
        assert_draws_do_not_refute_epsilon,
    ),
    "sigma x 0.99": Mutant(
        replaced(
            GaussianMechanism, "noise", property(lambda m: DiscreteGaussian(m.sigma_squared * SMALLER**2))
        ),
        audit("mean", "add-remove", ZCDP(0.1)),
    ),
    "sigma x 0.99 in the sampler": Mutant(
        replaced(DiscreteGaussian, "sample", smaller_gaussian(SMALLER)),
        assert_drawn_noise_has_the_stated_scale,
    ),
    "sigma x 0.98 on several counts": Mutant(
        replaced(
            GaussianMechanism,
            "noise",
            property(lambda m: DiscreteGaussian(m.sigma_squared * Fraction(98, 100) ** 2)),
        ),
        audit_of_counts,
    ),
    # A sensitivity that is too small.
    "sensitivity off by one": Mutant(
        replaced(
            Sensitivity,
            "scalar",
            classmethod(lambda cls, most: cls(max(most - 1, 1), max(most - 1, 1) ** 2, 1)),
        ),
        audit("sum over zero", "substitution"),
    ),
    "sensitivity off by one, replayed": Mutant(
        replaced(
            Sensitivity,
            "scalar",
            classmethod(lambda cls, most: cls(max(most - 1, 1), max(most - 1, 1) ** 2, 1)),
        ),
        assert_corner_tables_leave_the_same_trace,
    ),
    "sensitivity hi - lo instead of the larger size": Mutant(
        replaced(Sum, "mechanism", sum_with_reach(lambda query: query.lattice.high - query.lattice.low)),
        audit("sum above zero", "add-remove"),
    ),
    "a value may become a null unnoticed": Mutant(
        replaced(Sum, "mechanism", sum_with_reach(lambda query: query.lattice.high - query.lattice.low)),
        audit("sum above zero", "substitution"),
    ),
    "add-remove charged for substitution": Mutant(
        replaced(
            Sum,
            "mechanism",
            sum_with_reach(lambda query: max(abs(query.lattice.low), abs(query.lattice.high))),
        ),
        audit("sum over zero", "substitution"),
    ),
    "histogram at full epsilon per cell": Mutant(
        replaced(
            Histogram,
            "mechanism",
            property(lambda query: additive(query.budget, Sensitivity.scalar(1), query.noise)),
        ),
        audit("histogram of 3 bins", "substitution"),
    ),
    "moments at full epsilon each": Mutant(
        replaced(Variance, "parts", property(moments_at_full_epsilon)), audit("variance", "substitution")
    ),
    "spread of a mean at full epsilon": Mutant(
        replaced(mean_spread, "divided", lambda share, **_: (Fraction(1), Fraction(1))),
        audit("mean with its spread", "substitution"),
    ),
    "spread of a mean not counted in the cost": Mutant(
        replaced(mean_spread, "divided", lambda share, **_: (Fraction(1), share)),
        audit("mean with its spread", "add-remove"),
    ),
    # Data that pass unchecked.
    "clamp missing": Mutant(replaced(Lattice, "locate", unclamped), audit("mean", "substitution")),
    "clamp missing, replayed": Mutant(
        replaced(Lattice, "locate", unclamped), assert_corner_tables_leave_the_same_trace
    ),
    "NaN passes": Mutant(
        replaced(counts, "settle", nulls_stay), assert_corner_tables_leave_the_same_trace, ValueError
    ),
    "null rule ignored": Mutant(
        replaced(Count, "look", nulls_always_dropped), audit("count", "substitution")
    ),
    "null rule ignored, replayed": Mutant(
        replaced(Count, "look", nulls_always_dropped), assert_corner_tables_leave_the_same_trace
    ),
    "null adds a value under drop": Mutant(
        lambda: patch.object(Sums, "of", nulls_add_the_upper_bound()), audit("variance", "add-remove")
    ),
    # Private numbers in the clear.
    "clamped at the private number of rows": Mutant(
        replaced(Count, "law", clamped_at_the_size), audit("count between", "add-remove")
    ),
    "mean divided by the private number of rows": Mutant(
        replaced(Mean, "law", mean_with_the_exact_size), audit("mean", "add-remove")
    ),
    "no noise on empty cells": Mutant(
        replaced(Histogram, "law", noise_on_occupied_cells), audit("histogram of categories", "add-remove")
    ),
    "no noise on empty cells, replayed": Mutant(
        replaced(Histogram, "law", noise_on_occupied_cells), assert_corner_tables_leave_the_same_trace
    ),
    # Samplers that miss their law.
    "zero counted twice": Mutant(
        lambda: patch(
            "sfumato.laws.laplace.counted_once", lambda sizes, words: np.ones(len(sizes), dtype=bool)
        ),
        enumerate_laplace(1),
    ),
    "zero counted twice by the Gaussian": Mutant(
        lambda: patch(
            "sfumato.laws.gaussian.counted_once", lambda sizes, words: np.ones(len(sizes), dtype=bool)
        ),
        enumerate_gaussian,
    ),
    "tie to the wrong side": Mutant(replaced(Candidates, "find", without_ties), enumerate_laplace(1)),
    "low part and coin share bits": Mutant(
        replaced(Candidates, "split", with_shared_bits), enumerate_laplace(128)
    ),
    # Randomness that someone else knows.
    "seed fixed": Mutant(
        lambda: patch("sfumato.session.default_bits", FixedBits), gate.assert_releases_differ
    ),
    "noise from numpy.random": Mutant(
        replaced(DiscreteLaplace, "sample", numpy_laplace),
        gate.assert_seeding_other_generators_changes_nothing,
    ),
    # Charges that are wrong, late or forgotten.
    "Laplace charged as another law": Mutant(
        replaced(
            LaplaceMechanism,
            "event",
            property(lambda m: LaplaceEvent(sensitivity=m.sensitivity, scale=2 * m.scale)),
        ),
        audit("sum over zero", "substitution"),
    ),
    "Gaussian charged as another law": Mutant(
        replaced(
            GaussianMechanism,
            "event",
            property(
                lambda m: GaussianEvent(
                    sensitivity_squared=m.sensitivity_squared,
                    sigma_squared=2 * m.sigma_squared,
                    coordinates=m.coordinates,
                )
            ),
        ),
        audit("mean", "add-remove", ZCDP(0.1)),
    ),
    "Laplace charged for Gaussian noise": Mutant(
        replaced(LaplaceMechanism, "noise", property(lambda m: DiscreteGaussian(2 * m.scale**2))),
        audit("sum over zero", "substitution"),
    ),
    "charge after look": Mutant(
        lambda: patch.object(Session, "answer", looked_before_charging()),
        gate.assert_charged_before_the_data_are_read,
    ),
    "cap of the ledger skipped": Mutant(
        lambda: patch.object(
            Session, "__init__", session_that(lambda session: setattr(session, "_ledger", None))
        ),
        gate.assert_every_cap_is_charged,
    ),
    "cap of the session skipped": Mutant(
        lambda: patch.object(
            Session,
            "__init__",
            session_that(lambda session: setattr(session._own, "charge", lambda query: None)),
        ),
        gate.assert_every_cap_is_charged,
    ),
    "refund on error": Mutant(
        lambda: patch.object(Session, "answer", refunding()), gate.assert_errors_are_not_refunded
    ),
}
