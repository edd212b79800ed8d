"""Whether `auto` takes the best method for quantiles: mean rank errors over a grid of public facts.

Cells are a neighbour relation, an epsilon, a number of rows n, a number of orders m (i / (m + 1)), data, and
whether the intervals are verified. The rank error of an answer o of order q is the distance of q n to
[#{x < o}, #{x <= o}], on the data as they are and not on the grid of points; it is averaged over the orders
of a draw, and then over the draws. The largest error of a draw, averaged over the draws, stands beside it.
All methods of a cell see the same data sets. A joint draw at a large budget errs nearly alike each time
that it answers one data set, and otherwise on another, so that there are many data sets and few draws of
each; standard errors are those of the means of the data sets, and of their differences between two methods.
The choice of
`auto` is measured first; others are drawn from until they are surely worse, by four standard errors.

Goal: the mean error of the method that `auto` takes is at most 1.1 times that of the best method, ours or a
peer's, plus two standard errors of that difference. Under add-remove all our methods get n as a hint. Without
one `auto` would spend a twentieth of its budget on n, so its error is judged with 5 % added. Peers are
calibrated for add-remove and measured there.

Results are kept in a file of JSON lines, one for each cell and mechanism, with the words that describe it:
a run goes on where an earlier one stopped, and measures again only what was changed since.
"""

import argparse
import itertools
import json
import math
import random
import statistics
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from timing import finish, show, verdict

from sfumato.data.admission import admit
from sfumato.data.field import Field
from sfumato.errors import SfumatoError
from sfumato.laws import default_bits
from sfumato.privacy import Neighbours, PureDP
from sfumato.quantile_methods import Quantiles
from sfumato.quantile_methods.auto import MOST_JOINT, best_by_name
from sfumato.query import raw

Floats = np.ndarray
Draw = Callable[[], Floats]

RELATIONS: tuple[Neighbours, ...] = ("substitution", "add-remove")
EPSILONS = (0.1, 1.0, 5.0)
SIZES = (300, 10**3, 10**4, 10**5, 10**6)
COUNTS = (1, 3, 9, 49, 99, 199, 499)
SEVERAL = ("joint", "interpolated", "recursive", "tree", "equi_depth")
ONE = ("single", "inverse_sensitivity", "joint", "recursive", "tree")
# Without a hint `auto` spends a twentieth of its budget on the number of values: so its error grows.
COUNTED = 20 / 19
SHARE, ERRORS = 0.1, 2
# The time limit may stop a method before it has drawn this often; the table says where.
LEAST_DRAWS = 200
# So many data sets may leave no doubt that a mechanism is worse than the choice.
LEAST_JUDGED = 4


def _heaped(rng: np.random.Generator, n: int) -> Floats:
    """Wages of which 60 % are rounded to a multiple of 5."""
    wages = rng.lognormal(3, 0.5, n)
    return np.where(rng.random(n) < 0.6, 5 * np.round(wages / 5), wages)


DATA: dict[str, tuple[tuple[float, float], Callable[[np.random.Generator, int], Floats]]] = {
    "uniform": ((0, 1), lambda rng, n: rng.random(n)),
    "lognormal": ((0, 1000), lambda rng, n: rng.lognormal(0, 1, n)),
    "heaped": ((0, 200), _heaped),
    "integers": ((0, 100), lambda rng, n: rng.poisson(20, n)),
    "vague": ((0, 1e6), lambda rng, n: rng.lognormal(0, 1, n)),
}
FAMILIES = ("uniform", "lognormal", "heaped")


@dataclass(frozen=True)
class Cell:
    """Public facts and data."""

    relation: Neighbours
    epsilon: float
    n: int
    m: int
    data: str
    verify: Literal[0, "auto"] = 0

    def query(self, method: Any) -> Quantiles:
        """The query with the facts of this cell."""
        hint = self.n if self.relation == "add-remove" else None
        made = Quantiles(
            budget=PureDP(self.epsilon),
            probs=orders(self.m),
            bounds=DATA[self.data][0],
            method=method,
            n_hint=hint,
            verify=self.verify,
        )
        return made.bind(admit(values_of(self.data, self.n, 0)), Field(), self.relation)


@dataclass(frozen=True)
class Found:
    """What was measured for a mechanism in a cell: mean errors on each data set, and the largest errors."""

    cell: Cell
    method: str
    words: str
    means: tuple[float, ...]
    largest: float
    draws: int

    @property
    def mean(self) -> float:
        """The mean error."""
        return statistics.fmean(self.means)

    @property
    def spread(self) -> float:
        """Its standard error."""
        return standard_error(self.means)

    def __str__(self) -> str:
        digits = 1 if self.mean < 99.95 else 0
        cut = f" ({self.draws} draws)" if self.draws < LEAST_DRAWS else ""
        return f"{self.mean:,.{digits}f} ± {self.spread:.{digits}f}{cut}"


def standard_error(values: Sequence[float]) -> float:
    """The standard error of a mean."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.inf


def beyond(left: Found, right: Found, factor: float) -> tuple[float, float]:
    """By how much the error of `left` is above `factor` times that of `right`, and its standard error.

    Both saw the same data sets, or one of them saw fewer.
    """
    pairs = list(zip(left.means, right.means, strict=False))
    differences = [a - factor * b for a, b in pairs]
    return statistics.fmean(differences), standard_error(differences)


def orders(m: int) -> list[Fraction]:
    """Evenly spread orders."""
    return [Fraction(i, m + 1) for i in range(1, m + 1)]


@lru_cache(maxsize=64)
def values_of(data: str, n: int, number: int) -> Floats:
    """One of the data sets of a family."""
    return DATA[data][1](np.random.default_rng([zlib.crc32(data.encode()), n, number]), n)


@dataclass(frozen=True, eq=False)
class Truth:
    """The ranks of one data set."""

    ordered: Floats
    targets: Floats

    @staticmethod
    def of(cell: Cell, values: Floats) -> "Truth":
        ordered = np.sort(values.astype(np.float64))
        return Truth(ordered, np.array([float(q) for q in orders(cell.m)]) * cell.n)

    def errors(self, answers: Floats) -> Floats:
        """The distance of each answer from its target, in ranks."""
        below, upto = (np.searchsorted(self.ordered, answers, side=side) for side in ("left", "right"))
        return np.maximum(np.maximum(below - self.targets, self.targets - upto), 0)


# --- what answers ----------------------------------------------------------------------------------


def contenders(cell: Cell) -> Iterator[tuple[str, str, Callable[[Floats], Draw]]]:
    """The name of every mechanism of a cell, its words, and how it is made to draw from data."""
    for method in ONE if cell.m == 1 else SEVERAL:
        if method == "joint" and cell.m > MOST_JOINT:
            continue  # a draw takes minutes
        query = cell.query(best_by_name(method))
        try:
            query.check(admit(values_of(cell.data, cell.n, 0)))
        except SfumatoError:
            continue
        yield method, query.chosen.words(query.facts), lambda values, query=query: _ours(query, values)
    # Peers do not verify.
    if cell.relation == "add-remove" and not cell.verify:
        yield from peers(cell)


def choice_of(cell: Cell) -> str:
    """The name of the method that `auto` takes."""
    resolved = cell.query("auto").resolved_by().resolved
    assert resolved is not None
    return str(resolved.method.name)


def _ours(query: Quantiles, values: Floats) -> Draw:
    law, bits = query.law(query.look(admit(values))), default_bits()
    return lambda: np.atleast_1d(query.value(raw(law.sample(bits))))


def peers(cell: Cell) -> Iterator[tuple[str, str, Callable[[Floats], Draw]]]:
    """The trees of OpenDP and Google, where they are installed."""
    warnings.simplefilter("ignore")
    for bins in (256, 4096):
        made = _opendp(cell, bins)
        if made is not None:
            yield f"opendp {bins}", f"tree of {bins} leaves", made
    made = _google(cell)
    if made is not None:
        yield "google", "QuantileTree of height 4, branching 16", made


def _opendp(cell: Cell, bins: int) -> Callable[[Floats], Draw] | None:
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    edges = np.linspace(*DATA[cell.data][0], bins + 1).tolist()
    branching = dp.t.choose_branching_factor(size_guess=cell.n)
    counted = (
        space
        >> dp.t.then_find_bin(edges[1:-1])
        >> dp.t.then_count_by_categories(categories=list(range(bins)), null_category=False)
        >> dp.t.then_b_ary_tree(leaf_count=bins, branching_factor=branching)
    )
    scale = dp.binary_search(
        lambda s: (counted >> dp.m.then_laplace(s)).map(1) <= cell.epsilon, bounds=(1e-3, 1e6)
    )
    measure = (
        counted
        >> dp.m.then_laplace(scale)
        >> dp.t.make_consistent_b_ary_tree(branching)
        >> dp.t.make_quantiles_from_counts(edges, [float(q) for q in orders(cell.m)])
    )

    def prepared(values: Floats) -> Draw:
        listed = values.astype(np.float64).tolist()
        return lambda: np.sort(measure(listed))

    return prepared


def _google(cell: Cell) -> Callable[[Floats], Draw] | None:
    try:
        from pydp.algorithms.quantile_tree import QuantileTree
    except ImportError:
        return None
    lower, upper = (float(bound) for bound in DATA[cell.data][0])

    def prepared(values: Floats) -> Draw:
        listed, asked = values.astype(np.float64).tolist(), [float(q) for q in orders(cell.m)]

        def draw() -> Floats:
            tree = QuantileTree(lower, upper, 4, 16)
            for value in listed:
                tree.add_entry(value)
            return np.sort(tree.compute_quantiles(cell.epsilon, 0.0, 1, 1, asked, "laplace"))

        return draw

    return prepared


# --- measuring ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """How much is drawn: data sets, draws from all of them, and seconds for a mechanism in a cell."""

    sets: int
    draws: int
    limit: float


def measure(
    cell: Cell, name: str, words: str, prepare: Callable[[Floats], Draw], plan: Plan, chosen: Found | None
) -> Found:
    """Draws from each data set in turn; from few if they take too long or surely lose to the choice."""
    means: list[float] = []
    largest: list[float] = []
    end = time.process_time() + plan.limit
    for number in range(plan.sets):
        values = values_of(cell.data, cell.n, number)
        truth, draw = Truth.of(cell, values), prepare(values)
        errors = np.array([truth.errors(draw()) for _ in range(plan.draws // plan.sets)])
        means.append(float(errors.mean()))
        largest += errors.max(axis=1).tolist()
        found = Found(cell, name, words, tuple(means), statistics.fmean(largest), len(largest))
        if number + 1 >= LEAST_JUDGED and (time.process_time() > end or _surely_worse(found, chosen)):
            break
    return found


def _surely_worse(found: Found, chosen: Found | None) -> bool:
    """Whether some data sets leave no doubt that a mechanism is worse than the choice."""
    if chosen is None:
        return False
    more, spread = beyond(found, chosen, 1)
    return more > 4 * spread


def read(path: Path) -> dict[tuple[Cell, str, str], Found]:
    """What has been measured; a later line replaces an earlier one."""
    kept: dict[tuple[Cell, str, str], Found] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            stored: dict[str, Any] = json.loads(line)
            found = Found(**(stored | {"cell": Cell(**stored["cell"]), "means": tuple(stored["means"])}))
            kept[found.cell, found.method, found.words] = found
    return kept


def fill(cells: Sequence[Cell], path: Path, plan: Plan, until: float, *, ours: bool) -> None:
    """Measure what is missing, of our methods only or of all, until the time is over."""
    known = read(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as kept:
        for cell in cells:
            choice, chosen = choice_of(cell), None
            # The choice comes first.
            for name, words, prepare in sorted(contenders(cell), key=lambda each: each[0] != choice):
                if ours and name not in SEVERAL + ONE:
                    continue
                if time.monotonic() > until:
                    return
                found = known.get((cell, name, words))
                if found is None:
                    found = measure(cell, name, words, prepare, plan, chosen)
                    kept.write(json.dumps(asdict(found)) + "\n")
                    kept.flush()
                if name == choice:
                    chosen = found


# --- the table ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """The choice of `auto` in a cell beside the best mechanism."""

    cell: Cell
    auto: Found
    best: Found

    @property
    def over(self) -> float:
        """By what factor the error of the choice is above the best one."""
        return self.auto.mean / self.best.mean if self.best.mean else 1.0

    @property
    def holds(self) -> bool:
        """Whether it is within a tenth and two standard errors of the best one."""
        if self.auto.method == self.best.method:
            return True
        more, spread = beyond(self.auto, self.best, 1 + SHARE)
        return more <= ERRORS * spread


def judge(cell: Cell, known: dict[tuple[Cell, str, str], Found], *, ours: bool) -> Judged | None:
    """The choice beside the best of our methods, or of all mechanisms; None where something is missing."""
    found = []
    for name, words, _ in contenders(cell):
        one = known.get((cell, name, words))
        if one is None and name in SEVERAL + ONE:
            return None
        if one is not None and (name in SEVERAL + ONE or not ours):
            found.append(one)
    auto = next((one for one in found if one.method == choice_of(cell)), None)
    if auto is None:
        return None
    best = min(found, key=lambda one: one.mean)
    if cell.relation == "add-remove" and cell.m > 1 and not ours:
        auto = replace(auto, means=tuple(mean * COUNTED for mean in auto.means))
    return Judged(cell, auto, best)


def report(cells: Sequence[Cell], path: Path, *, short: bool, every: bool) -> None:
    """The cells over the line, for our methods and with the peers, or all of them."""
    known = read(path)
    for ours in (True, False):
        judged = [found for cell in cells if (found := judge(cell, known, ours=ours)) is not None]
        over = [found for found in judged if verdict(found.holds, short=short) == "MISSED"]
        whom = "our methods" if ours else "our methods and the peers"
        mean = statistics.fmean(found.over for found in judged) if judged else math.nan
        cut = sum(min(found.auto.draws, found.best.draws) < LEAST_DRAWS for found in judged)
        print(f"{cut} of the cells below have fewer than {LEAST_DRAWS} draws of the choice or the best")
        print(
            f"{whom}: {len(judged)} of {len(cells)} cells, mean factor {mean:.3f}, {len(over)} over the line"
        )
        rows = [
            (
                found.cell.relation,
                str(found.cell.verify),
                f"{found.cell.epsilon:g}",
                f"{found.cell.n:,}",
                str(found.cell.m),
                found.cell.data,
                f"{found.auto.method} {found.auto}",
                f"{found.best.method} {found.best}",
                f"{found.over:.2f}",
                f"{found.auto.largest:,.0f} / {found.best.largest:,.0f}",
            )
            for found in (judged if every else over)
        ]
        header = ("relation", "verify", "eps", "n", "m", "data", "auto", "best", "x", "largest")
        show(f"beside {whom}", header, rows)


def markdown(cells: Sequence[Cell], path: Path) -> Iterator[str]:
    """A table for each `verify`: a row for each data and number of rows, a column for each m."""
    known = read(path)
    judged = {cell: found for cell in cells if (found := judge(cell, known, ours=False)) is not None}
    counts = sorted({cell.m for cell in cells})
    for verify in dict.fromkeys(cell.verify for cell in cells):
        yield f"\n`verify={verify!r}`\n"
        yield "| relation | eps | data | n | " + " | ".join(f"m = {m}" for m in counts) + " |"
        yield "| --- " * (4 + len(counts)) + "|"
        rows = dict.fromkeys(replace(cell, m=0) for cell in cells if cell.verify == verify)
        for row in sorted(rows, key=lambda each: (each.relation, each.epsilon, each.data, each.n)):
            facts = f"| {row.relation} | {row.epsilon:g} | {row.data} | {row.n:,} | "
            yield facts + " | ".join(_entry(judged.get(replace(row, m=m))) for m in counts) + " |"


def _entry(found: Judged | None) -> str:
    """The first letter of the choice, its mean and largest error, and the best where it is a tenth better."""
    if found is None:
        return ""
    auto, best = found.auto, found.best
    words = f"{auto.method[0]} {_short(auto.mean)} / {_short(auto.largest)}"
    words = words if found.holds else f"**{words}**"
    return f"{words} ({best.method} {_short(best.mean)})" if found.over > 1 + SHARE else words


def _short(error: float) -> str:
    return f"{error:.2f}" if error < 0.995 else f"{error:.1f}" if error < 99.95 else f"{error:,.0f}"


def verification(given: str) -> Literal[0, "auto"]:
    """A value of `verify`."""
    if given not in ("0", "auto"):
        raise argparse.ArgumentTypeError(f"must be 0 or auto; got {given}")
    return "auto" if given == "auto" else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two small cells, for a smoke test")
    parser.add_argument("--cache", type=Path, default=Path("build/quantile_grid.jsonl"))
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="how long to measure; 0 for a report only"
    )
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for a mechanism in a cell")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--sets", type=int, default=20, help="data sets that the draws are from")
    parser.add_argument("--relations", nargs="+", choices=RELATIONS, default=RELATIONS)
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--counts", nargs="+", type=int, default=COUNTS)
    parser.add_argument("--data", nargs="+", choices=tuple(DATA), default=FAMILIES)
    parser.add_argument("--verify", nargs="+", type=verification, default=(0, "auto"), help="0, auto or both")
    parser.add_argument("--ours", action="store_true", help="measure no peers")
    parser.add_argument(
        "--every", action="store_true", help="show all cells and not those over the line only"
    )
    parser.add_argument(
        "--markdown", action="store_true", help="print the table of benchmarks/RESULTS.md too"
    )
    asked = parser.parse_args()
    if asked.quick:
        asked.epsilons, asked.sizes, asked.counts, asked.draws = (1.0,), (300,), (1, 9), 10
        asked.cache = asked.cache.with_suffix(".quick.jsonl")
    cells = [
        Cell(*facts)
        for facts in itertools.product(
            asked.relations, asked.epsilons, asked.sizes, asked.counts, asked.data, asked.verify
        )
    ]
    mixed = random.Random(1).sample(cells, len(cells))
    plan = Plan(min(asked.sets, asked.draws), asked.draws, asked.limit)
    fill(mixed, asked.cache, plan, time.monotonic() + 60 * asked.minutes, ours=asked.ours)
    report(cells, asked.cache, short=asked.quick, every=asked.every)
    if asked.markdown:
        print("\n".join(markdown(cells, asked.cache)))
    finish()


if __name__ == "__main__":
    main()
