"""The quantiles of the peers behind one interface, each with the neighbour relation of its calibration.

Every peer gets the whole budget of epsilon 1 for all orders, and the same bounds. What can be prepared
without the data, such as OpenDP's measurements, is prepared once and not timed.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Answer = Callable[[np.ndarray], Sequence[float]]
BOUNDS = (0.0, 200.0)


@dataclass(frozen=True)
class Peer:
    """A peer's answer to some orders, and its neighbour relation."""

    name: str
    neighbours: str
    answer: Answer


def peers(orders: Sequence[float]) -> list[Peer]:
    """Every peer that is installed."""
    warnings.simplefilter("ignore")
    return [peer for make in (_opendp, _diffprivlib, _pydp) for peer in make(orders)]


def _opendp(orders: Sequence[float]) -> list[Peer]:
    try:
        import opendp.prelude as dp
    except ImportError:
        return []
    dp.enable_features("contrib")
    # The size is left open: neighbours differ by one record that is added or removed.
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()

    def selected(candidates: list[float]) -> Answer:
        def make(order: float, scale: float, among: list[float]) -> object:
            return space >> dp.m.then_private_quantile(dp.max_divergence(), among, order, scale)

        each = 1.0 / len(orders)
        made = []
        for order in orders:
            # The cost does not depend on the candidates, so that two of them are enough to find the scale.
            scale = dp.binary_search(
                lambda s, q=order: make(q, s, candidates[:2]).map(1) <= each, bounds=(1e-3, 1e6)
            )
            made.append(make(order, scale, candidates))
        assert all(measure.map(1) <= each for measure in made)
        return lambda values: [measure(values) for measure in made]

    def tree(bins: int) -> Answer:
        edges = np.linspace(*BOUNDS, bins + 1).tolist()
        branching = dp.t.choose_branching_factor(size_guess=100_000)
        counted = (
            space
            >> dp.t.then_find_bin(edges[1:-1])
            >> dp.t.then_count_by_categories(categories=list(range(bins)), null_category=False)
            >> dp.t.then_b_ary_tree(leaf_count=bins, branching_factor=branching)
        )
        scale = dp.binary_search(lambda s: (counted >> dp.m.then_laplace(s)).map(1) <= 1.0, bounds=(0.1, 1e3))
        return (
            counted
            >> dp.m.then_laplace(scale)
            >> dp.t.make_consistent_b_ary_tree(branching)
            >> dp.t.make_quantiles_from_counts(edges, list(orders))
        )

    coarse, fine = (np.linspace(*BOUNDS, count).tolist() for count in (201, 20_001))
    bins = 2048 if len(orders) == 1 else 256
    return [
        Peer("opendp, 201 candidates", "add-remove", selected(coarse)),
        Peer("opendp, 20,001 candidates", "add-remove", selected(fine)),
        Peer(f"opendp, tree of {bins:,}", "add-remove", tree(bins)),
    ]


def _diffprivlib(orders: Sequence[float]) -> list[Peer]:
    try:
        from diffprivlib import tools
    except ImportError:
        return []

    # Its weights fall by epsilon / 2 a rank, the constant of substitution, and it takes the size as public.
    def answer(values: np.ndarray) -> Sequence[float]:
        return np.atleast_1d(tools.quantile(values, list(orders), epsilon=1.0, bounds=BOUNDS))

    return [Peer("diffprivlib", "substitution", answer)]


def _pydp(orders: Sequence[float]) -> list[Peer]:
    try:
        from pydp.algorithms.laplacian import Median
        from pydp.algorithms.quantile_tree import QuantileTree
    except ImportError:
        return []

    def median(values: np.ndarray) -> Sequence[float]:
        found = Median(epsilon=1.0, lower_bound=BOUNDS[0], upper_bound=BOUNDS[1], dtype="float")
        return [found.quick_result(values.tolist())]

    def tree(values: np.ndarray) -> Sequence[float]:
        # The height and the branching that Google's library takes by default.
        found = QuantileTree(*BOUNDS, 4, 16)
        for value in values.tolist():
            found.add_entry(value)
        return found.compute_quantiles(1.0, 0.0, 1, 1, list(orders), "laplace")

    made = [Peer("python-dp, QuantileTree", "add-remove", tree)]
    return [Peer("python-dp, Median", "add-remove", median), *made] if len(orders) == 1 else made
