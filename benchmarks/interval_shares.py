"""How much of a budget should tell the spread, so that intervals for the population are narrow.

The mean width of `population_interval(0.95)` of a mean, for several interval shares, over five populations,
two numbers of rows and two budgets; and how often it holds the population's mean. Widths are in parts of the
narrowest share of their row. The last row is the geometric mean over all others.

Verdicts:
    Best: the share that "auto" stands for is within 3 % of the best on average, under each relation.
    Covers: with that share no cell holds less often than 93 % (less 4 standard errors).
    Price: the noise of the mean is at most 1 / (1 - share) times that without a share.

Then the same for the interval of medians and deciles about the data, where a share makes the noise of the
answers 1 / (1 - share) times as large and tells how spread the data are. "auto" follows from public facts.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from interval_widths import FAMILIES, measure
from timing import finish, quick, show, verdict

from sfumato.data.admission import admit
from sfumato.laws import SeededBits
from sfumato.privacy import Neighbours, PureDP
from sfumato.query import raw
from sfumato.statistics import Mean
from sfumato.statistics.mean_spread import AUTO

SHARES = tuple(Fraction(share, 100) for share in (0, 5, 10, 20, 30, 50))
RELATIONS: dict[str, tuple[Neighbours, str]] = {
    "substitution, public size": ("substitution", "lower"),
    "add-remove": ("add-remove", "drop"),
}


@dataclass(frozen=True)
class Population:
    """Data of one kind, with public bounds; `mean` is that of the clamped population."""

    bounds: tuple[float, float]
    draw: Callable[[np.random.Generator, int], np.ndarray]
    mean: float


def _clamped_lognormal(most: float) -> float:
    """E min(X, most) for log X standard normal."""
    log = math.log(most)
    return math.exp(0.5) * math.erfc((1 - log) / math.sqrt(2)) / 2 + most * math.erfc(log / math.sqrt(2)) / 2


POPULATIONS = {
    "uniform": Population((0, 1), lambda rng, n: rng.random(n), 0.5),
    "normal": Population((-10, 10), lambda rng, n: rng.normal(0, 1, n), 0.0),
    "lognormal": Population((0, 50), lambda rng, n: rng.lognormal(0, 1, n), _clamped_lognormal(50)),
    "poisson": Population((0, 100), lambda rng, n: rng.poisson(20, n) * 1.0, 20.0),
    "constant": Population((0, 1), lambda _, n: np.full(n, 0.3), 0.3),
}


def widths(query: Mean, columns: list, truth: float, bits: SeededBits) -> tuple[float, float]:
    """The mean width of the interval for the population, and how often it holds the truth."""
    found = [
        query.population_interval(raw(query.law(query.look(each)).sample(bits)), 0.95) for each in columns
    ]
    held = sum(low <= truth <= high for low, high in found) / len(found)
    return float(np.mean([high - low for low, high in found])), held


def table(relation: str, runs: int, short: bool) -> None:
    neighbours, nulls = RELATIONS[relation]
    rows, parts, covers = [], [], []
    for name, population in POPULATIONS.items():
        for n in (1000, 100_000):
            rng, bits = np.random.default_rng(1), SeededBits(2)
            columns = [admit(population.draw(rng, n)) for _ in range(runs)]
            for epsilon in (0.1, 1):
                chosen = {"neighbours": neighbours, "nulls": nulls, "bounds": population.bounds}
                chosen["rows"] = n if neighbours == "substitution" else None
                queries = [Mean(budget=PureDP(epsilon), interval_share=share, **chosen) for share in SHARES]
                found = [widths(query, columns, population.mean, bits) for query in queries]
                least = min(width for width, _ in found)
                parts.append([width / least for width, _ in found])
                covers.append(found[SHARES.index(AUTO)][1])
                cells = (f"{width / least:.2f} ({held:.2f})" for width, held in found)
                rows.append((f"{name}, n = {n:,}, epsilon {epsilon}", *cells))
    average = np.exp(np.log(np.array(parts)).mean(axis=0))
    rows.append(("average", *(f"{part:.3f}" for part in average)))
    scales = [query.mechanism.scale * query.lattice.step for query in queries]
    noises = [float(scale / scales[0]) for scale in scales]
    rows.append(("noise of the mean", *(f"x {noise:.3f}" for noise in noises)))
    show(f"{relation}: width (coverage), {runs} runs", ("", *(f"{float(s):g}" for s in SHARES)), rows)
    best = average[SHARES.index(AUTO)] / average.min()
    least = 0.93 - 4 * math.sqrt(0.93 * 0.07 / runs)
    fair = all(noise <= 1 / (1 - share) * (1 + 1e-6) for noise, share in zip(noises, SHARES, strict=True))
    print(f"Best: auto, {float(AUTO):g}, is {best:.3f} of the best: {verdict(best <= 1.03, short=short)}")
    print(f"Covers: at least {min(covers):.3f}: {verdict(min(covers) >= least, short=short)}")
    print(f"Price: {verdict(fair, short=short)}")


def quantiles(name: str, runs: int, short: bool) -> None:
    """Widths of intervals by share; the average is over all rows but those of one value, whose best is 0."""
    shares: tuple[object, ...] = (0.05, 0.1, 0.2, 0.3, 0.5, "auto")
    rows, parts = [], []
    sizes, epsilons = ((1000,), (1.0,)) if short else ((1000, 100_000), (0.1, 1.0))
    for kind, n, epsilon in itertools.product(FAMILIES, sizes, epsilons):
        cells = [measure((name, kind, n, epsilon, runs, share, "lower"))["data"] for share in shares]
        width = np.array([float(cell.width.mean()) for cell in cells])
        covered = (float(cell.covered.mean()) for cell in cells)
        relative = width / width.min()
        shown = (f"{part:.2f} ({held:.2f})" for part, held in zip(relative, covered, strict=True))
        rows.append((f"{kind}, n = {n:,}, epsilon {epsilon}", *shown))
        if kind != "constant":
            parts.append(relative)
    average = np.exp(np.log(np.array(parts)).mean(axis=0))
    rows.append(("average", *(f"{part:.3f}" for part in average)))
    show(f"{name}: width (coverage), {runs} runs", ("", *(str(share) for share in shares)), rows)
    best = average[-1] / average.min()
    print(f"Best: auto is {best:.3f} of the best fixed share: {verdict(best <= 1.1, short=short)}")


def main() -> None:
    short = quick(__doc__)
    for relation in RELATIONS:
        table(relation, 5 if short else 60, short)
    for name in ("median",) if short else ("median", "deciles"):
        quantiles(name, 2 if short else 60, short)
    finish()


if __name__ == "__main__":
    main()
