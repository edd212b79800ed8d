"""What verification by counts costs on smooth data: how wide its intervals are, and how far its answers err.

For each relation, budget, number of quantiles and distribution, 10,000 and 100,000 values are asked about
with `verify="auto"` and without. *Width* is the mean width of the verified intervals over that of those by
slopes, averaged over the quantiles; a single quantile has slopes by `interval_share="auto"`. *Error* is the
mean rank error of the answers over that without verification. The rank error of an answer o of order q is the
distance of q n to [#{x < o}, #{x <= o}]. *Held* is how often the verified interval of the quantile held that
was held least often. Draws are from many data sets: where a wide gap happens to lie at the quantile of one,
all draws fall into it and seem to have no error.

Goals: a width of at most 3, and an error of at most 1.5.
"""

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from timing import finish, quick, show, verdict

import sfumato as sf
from sfumato.data.admission import admit
from sfumato.data.field import Field
from sfumato.laws import SeededBits
from sfumato.privacy import Budget
from sfumato.query import raw

WIDTH, ERROR = 3.0, 1.5
BUDGETS: dict[str, Budget] = {"epsilon 1": sf.PureDP(1), "rho 1/8": sf.ZCDP(Fraction(1, 8))}
NAMES = {1: "median", 3: "quartiles", 9: "deciles"}
DATA: dict[str, tuple[tuple[float, float], Callable[[np.random.Generator, int], np.ndarray]]] = {
    "uniform": ((0, 1), lambda rng, n: rng.random(n)),
    "normal": ((0, 100), lambda rng, n: np.clip(rng.normal(50, 10, n), 0, 100)),
    "lognormal": ((0, 50), lambda rng, n: np.clip(rng.lognormal(0, 1, n), 0, 50)),
}


# Data sets of a cell, and draws from each.
SETS, RUNS = 40, 10


class Found(NamedTuple):
    """The mean widths of the intervals at 95 %, the mean rank error, and how often each interval held."""

    widths: np.ndarray
    error: float
    held: np.ndarray


def mean(found: Iterable[Found]) -> Found:
    """The mean over data sets."""
    widths, errors, held = zip(*found, strict=True)
    return Found(np.mean(widths, axis=0), float(np.mean(errors)), np.mean(held, axis=0))


def measured(values: np.ndarray, asked: sf.Quantiles, runs: int, seed: int) -> Found:
    """Draws from one data set, with bits of their own."""
    ordered, n = np.sort(values), len(values)
    orders = np.array([float(order) for order in asked.asked])
    truth = ordered[[math.ceil(order * n) - 1 for order in asked.asked]]
    law, bits = asked.law(asked.look(admit(values))), SeededBits(seed)
    widths, errors, held = [], [], []
    for _ in range(runs):
        outcome = raw(law.sample(bits))
        low, high = map(np.atleast_1d, asked.interval(outcome, 0.95))
        found = np.atleast_1d(asked.value(outcome))
        below, upto = (np.searchsorted(ordered, found, side=side) for side in ("left", "right"))
        widths.append(high - low)
        errors.append(np.maximum(np.maximum(below - orders * n, orders * n - upto), 0).mean())
        held.append((low <= truth) & (truth <= high))
    return Found(np.mean(widths, axis=0), float(np.mean(errors)), np.mean(held, axis=0))


def row(relation: Any, budget: Budget, m: int, kind: str, n: int, sets: int) -> tuple[float, float, float]:
    """Width, error and coverage of one cell."""
    bounds, draw = DATA[kind]
    probs = [Fraction(i, m + 1) for i in range(1, m + 1)]
    hint = {"n_hint": n} if relation == "add-remove" else {"nulls": "lower"}

    def found(**options: Any) -> Found:
        made = sf.Quantiles(probs=probs, budget=budget, bounds=bounds, **hint, **options)
        samples = (draw(np.random.default_rng([n, m, number]), n) for number in range(sets))
        return mean(
            measured(each, made.bind(admit(each), Field(), relation), RUNS, seed)
            for seed, each in enumerate(samples)
        )

    plain = found(verify=0)
    slopes = found(verify=0, interval_share="auto") if m == 1 else plain
    verified = found(verify="auto")
    width = float(np.mean(verified.widths / slopes.widths))
    return width, verified.error / plain.error, float(verified.held.min())


def main() -> None:
    short = quick(__doc__)
    sets, sizes, kinds = (1, (10**4,), ("uniform",)) if short else (SETS, (10**4, 10**5), tuple(DATA))
    for relation, (name, budget) in itertools.product(("substitution", "add-remove"), BUDGETS.items()):
        rows = []
        for m, n in itertools.product(NAMES, sizes):
            found = [row(relation, budget, m, kind, n, sets) for kind in kinds]
            for kind, (width, error, held) in zip(kinds, found, strict=True):
                judged = verdict(width <= WIDTH and error <= ERROR, short=short)
                cells = f"{width:.2f}", f"{error:.2f}", f"{held:.3f}"
                rows.append((f"{NAMES[m]}, {kind}, n = {n:,}", *cells, judged))
        columns = ("", "width", "error", "held", f"goals {WIDTH:g} and {ERROR:g}")
        show(f"{relation}, {name}, {sets} data sets, {RUNS} draws of each", columns, rows)
    finish()


if __name__ == "__main__":
    main()
