"""How many ranks private quantiles miss by, method by method, beside the figures that the design promised.

Everything is at epsilon 1 under substitution unless a table says otherwise. The rank error of an answer o of
order q is the distance of q n to [#{x < o}, #{x <= o}], so that ties are one answer, on the data between the
bounds as they are, not on the grid; it is averaged over the m orders i / (m + 1), then over the runs. The
figures of the design (REGIME below) are |#{x < o} - q n| for data without ties, which is the same or a little
more. A cell that would take longer than 20 seconds gets fewer runs, or none.

Verdicts:
    A. `auto` is within 15 % of the best method of its cell (plus 4 standard errors and half a rank).
    B. no method is above its figure of the design by more than a quarter (plus 4 standard errors). The design
       kept no standard errors; its own cells of one law differ by up to 15 %.
    C. drawn errors of one order agree with the exact mean of their law (4 standard errors).
    Robust: constant data are answered within 4 points of the grid; half of the data outside the bounds, or
       30 % nulls, cost no accuracy (15 %, 4 standard errors and half a rank); the median of 10^7 rows is
       within 1e-5 of the width of the bounds.
"""

import argparse
import math
import statistics
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from rich.progress import track
from timing import finish, show, verdict

import sfumato as sf
from sfumato.data.admission import admit
from sfumato.data.field import Field
from sfumato.errors import SfumatoError
from sfumato.grid import Grid
from sfumato.laws import default_bits
from sfumato.privacy import PureDP
from sfumato.quantile_methods import METHODS, Quantiles
from sfumato.quantile_methods.independent import NodesLaw
from sfumato.query import raw

Floats = np.ndarray
LIMIT = 20.0  # seconds of the processor for a cell


@dataclass(frozen=True)
class Family:
    """Data of one kind, and the public bounds that go with them."""

    bounds: tuple[float, float]
    draw: Callable[[np.random.Generator, int], Floats]


FAMILIES = {
    "uniform": Family((0, 1), lambda rng, n: rng.random(n)),
    "normal": Family((-10, 10), lambda rng, n: rng.normal(0, 1, n)),
    "lognormal": Family((0, 1000), lambda rng, n: rng.lognormal(0, 1, n)),
    "ties": Family((0, 100), lambda rng, n: rng.poisson(20, n)),
}
ROBUST = {
    "constant": Family((0, 1), lambda _, n: np.full(n, 0.3)),
    "outside": Family((180, 220), lambda rng, n: rng.normal(200, 30, n)),
    "edge": Family((0, 200), lambda rng, n: rng.normal(200, 30, n)),
    "inside": Family((0, 400), lambda rng, n: rng.normal(200, 30, n)),
    "nulls": Family((-10, 10), lambda rng, n: np.where(np.arange(n) % 10 < 3, np.nan, rng.normal(0, 1, n))),
}
ALL_FAMILIES = FAMILIES | ROBUST

# The design's figures at epsilon 1: data, n, m, then independent, inverse sensitivity, joint, recursive, and
# the histogram with published and with better noise.
REGIME = """
uniform 1e3 1 2.6 2.6 2.4 2.5 5.9 4.0
uniform 1e3 3 5.9 6.1 3.4 4.6 17.4 10.1
uniform 1e3 9 17.8 18.3 5.1 11.3 73.0 33.6
uniform 1e3 99 25.9 27.0 16.1 17.8 458 365
uniform 1e4 1 2.1 1.9 1.8 1.8 5.8 5.9
uniform 1e4 3 5.9 6.4 3.7 4.6 16.7 10.3
uniform 1e4 9 18.1 18.1 5.6 11.4 69.3 29.9
uniform 1e4 99 92.0 91.2 19.4 25.4 1459 547
uniform 1e5 1 1.8 1.8 1.9 1.9 8.0 30.0
uniform 1e5 3 5.8 6.8 3.7 4.8 17.3 49.3
uniform 1e5 9 17.7 19.2 6.3 11.5 66.9 58.0
uniform 1e5 99 212 195 15.6 27.2 1451 321
normal 1e3 1 1.6 1.8 1.6 1.6 17.9 17.5
normal 1e3 3 5.9 5.8 3.0 4.5 21.8 18.4
normal 1e3 9 20.7 20.3 5.8 11.3 54.6 33.0
normal 1e3 99 176 176 64.4 23.3 491 377
normal 1e4 1 1.5 1.8 1.5 1.6 36.6 64.3
normal 1e4 3 6.2 6.2 3.2 4.6 26.5 37.2
normal 1e4 9 18.1 18.0 5.6 11.9 48.3 41.2
normal 1e4 99 146 145 19.4 26.2 1018 316
normal 1e5 1 2.4 1.8 1.8 1.9 26.0 110
normal 1e5 3 6.9 6.8 3.6 4.2 27.5 328
normal 1e5 9 19.4 18.4 5.7 11.8 48.7 287
normal 1e5 99 214 199 18.9 25.1 913 404
lognormal 1e3 1 1.6 1.9 1.7 1.6 500 500
lognormal 1e3 3 6.3 6.3 3.5 4.5 500 500
lognormal 1e3 9 25.9 27.1 6.2 11.7 474 489
lognormal 1e3 99 490 486 413 25.2 321 357
lognormal 1e4 1 1.9 2.0 2.1 2.1 1843 3747
lognormal 1e4 3 5.7 5.9 2.9 4.3 1508 2668
lognormal 1e4 9 17.6 18.1 6.0 11.7 1198 1806
lognormal 1e4 99 207 206 19.9 26.7 1098 1736
lognormal 1e5 1 1.9 2.3 2.1 2.2 1360 33359
lognormal 1e5 3 5.9 5.8 2.8 4.4 1907 27758
lognormal 1e5 9 17.1 17.7 5.4 11.4 1493 17451
lognormal 1e5 99 194 191 21.5 25.5 1528 16818
ties 1e3 1 0.0 0.0 0.0 0.0 0.0 0.0
ties 1e3 3 0.6 0.4 0.2 0.3 2.0 0.8
ties 1e3 9 8.3 8.7 0.3 2.2 26.1 9.4
ties 1e3 99 180 179 79.9 9.9 461 204
ties 1e4 1 0.0 0.0 0.0 0.0 0.0 0.0
ties 1e4 3 0.0 0.0 0.0 0.0 0.0 0.0
ties 1e4 9 0.3 0.4 0.0 0.1 8.5 0.7
ties 1e4 99 63.8 66.8 0.4 1.6 703 31.9
ties 1e5 1 0.0 0.0 0.0 0.0 0.0 0.0
ties 1e5 3 0.0 0.0 0.0 0.0 0.0 0.0
ties 1e5 9 0.0 0.0 0.0 0.0 1.7 0.0
ties 1e5 99 9.8 13.9 0.1 0.0 296 13.0
"""
COLUMNS = {"single": 0, "independent": 0, "inverse_sensitivity": 1, "joint": 2, "recursive": 3}


def promised(method: str, data: str, n: int, m: int) -> float | None:
    """The design's figure for a cell, or None.

    Our histogram has the better noise (scales 2, 2 and one-sided) and as many steps as the published one:
    1.5 n / log n, or the points of the data. The column with better noise had at most 1000 steps, which is as
    many for a thousand rows and for ties; elsewhere only the other column has comparable steps.
    """
    figures = _REGIME.get((data, n, m))
    if figures is None or (method not in COLUMNS and method != "histogram"):
        return None
    if method == "histogram":
        return figures[5] if n <= 1000 or data == "ties" else figures[4]
    return figures[COLUMNS[method]]


def _read(lines: Iterable[str]) -> Iterator[tuple[tuple[str, int, int], list[float]]]:
    for line in lines:
        data, n, m, *figures = line.split()
        yield (data, int(float(n)), int(m)), [float(figure) for figure in figures]


_REGIME = dict(_read(REGIME.strip().splitlines()))


# --- one cell ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """A cell to measure: `draws` answers from each of `sets` data sets."""

    data: str
    n: int
    m: int
    method: str
    epsilon: float = 1.0
    sets: int = 8
    draws: int = 25


@dataclass(frozen=True)
class Cell:
    """The mean rank error, its standard errors on these data sets and over all, and the furthest answer."""

    mean: float
    spread: float
    total: float
    runs: int
    chosen: str
    exact: float | None = None
    furthest: float = 0.0

    def __str__(self) -> str:
        return f"{_figure(self.mean)} ± {_figure(self.total)}"


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def orders(m: int) -> list[Fraction]:
    return [Fraction(i, m + 1) for i in range(1, m + 1)]


class Truth:
    """The ranks of one data set on the points that can be answered."""

    def __init__(self, values: Floats, grid: Grid, m: int) -> None:
        kept = values[~np.isnan(values)].astype(np.float64)
        self.grid = grid
        self.ordered = np.sort(np.clip(kept, float(grid.lower), float(grid.upper)))
        self.targets = np.array([float(q) for q in orders(m)]) * len(kept)
        self.wanted = self.ordered[np.minimum(self.targets.astype(np.int64), len(kept) - 1)]

    def error(self, answers: Floats) -> float:
        """The mean distance in ranks."""
        below, upto = (np.searchsorted(self.ordered, answers, side=side) for side in ("left", "right"))
        return float(np.maximum(np.maximum(below - self.targets, self.targets - upto), 0).mean())

    def furthest(self, answers: Floats) -> float:
        """The largest distance in points of the grid."""
        return float(np.abs(self.grid.index(answers) - self.grid.index(self.wanted)).max())


def measure(task: Task) -> Cell | None:
    """Draws from the law of a cell, made once for each data set; None if not applicable or too slow."""
    family, bits = ALL_FAMILIES[task.data], default_bits()
    bounded = task.method == "auto" or METHODS[task.method].needs_bounds
    errors: list[float] = []
    exact: list[float] = []
    means: list[float] = []
    furthest, chosen = 0.0, task.method
    for number in range(task.sets):
        start = time.process_time()
        rng = np.random.default_rng([zlib.crc32(task.data.encode()), task.n, number])
        values = family.draw(rng, task.n)
        column = admit(values)
        query = Quantiles(
            budget=PureDP(task.epsilon),
            probs=orders(task.m),
            bounds=family.bounds if bounded else None,
            method=task.method,
            verify=0,
        )
        points = Quantiles(budget=PureDP(1), probs=(0.5,), bounds=family.bounds, method="single")
        truth = Truth(values, points.bind(column, Field(), "substitution").facts.grid, task.m)
        try:
            bound = query.bind(column, Field(), "substitution")
            bound.check(column)
        except SfumatoError:
            return None
        chosen = bound.chosen.name
        law = bound.law(bound.look(column))
        before = len(errors)
        for _ in range(task.draws):
            answers = np.atleast_1d(bound.value(raw(law.sample(bits))))
            errors.append(truth.error(answers))
            furthest = max(furthest, truth.furthest(answers))
            if time.process_time() - start > LIMIT / task.sets:
                break
        means.append(statistics.fmean(errors[before:]))
        if task.m == 1 and isinstance(law, NodesLaw) and chosen in ("single", "independent"):
            exact.append(_exact(law))
        if time.process_time() - start > LIMIT:
            return None
    known = statistics.fmean(exact) if exact else None
    spread = _standard_error(errors)
    # Draws from one data set share its gaps, so that data sets count, not draws.
    total = max(spread, _standard_error(means)) if len(means) > 1 else spread
    return Cell(statistics.fmean(errors), spread, total, len(errors), chosen, known, furthest)


def _standard_error(found: list[float]) -> float:
    return statistics.stdev(found) / math.sqrt(len(found)) if len(found) > 1 else math.inf


def _exact(law: NodesLaw) -> float:
    (node,) = law.nodes
    return node.law.expected(lambda levels: levels / node.parts)


def measured(tasks: list[Task], jobs: int, words: str) -> dict[Task, Cell | None]:
    """All cells, in this process or in several."""
    if jobs == 1:
        return {task: measure(task) for task in track(tasks, words, transient=True)}
    with ProcessPoolExecutor(jobs) as pool:
        found = track(pool.map(measure, tasks), words, total=len(tasks), transient=True)
        return dict(zip(tasks, found, strict=True))


def near(cell: Cell, best: Cell, *, same: bool, share: float = 0.15, ranks: float = 0.5) -> bool:
    """Whether an error is at most another one, but for a share, some ranks and 4 standard errors."""
    spreads = (cell.spread, best.spread) if same else (cell.total, best.total)
    slack = 4 * math.hypot(*spreads)
    return cell.mean <= (1 + share) * best.mean + ranks + slack


# --- the tables ----------------------------------------------------------------------------------


def regime(data: list[str], sizes: tuple[int, ...], counts: tuple[int, ...], plan: dict, jobs: int) -> None:
    """The mean rank error of every method, and verdicts A, B and C."""
    short = plan["short"]
    names = ["auto", *METHODS]
    sets, draws = plan["sets"], plan["draws"]
    missed: list[tuple[str, ...]] = []
    judged = {"A": 0, "B": 0, "C": 0}
    fewer: list[str] = []
    for family in data:
        places = [(n, m) for n in sizes for m in counts]
        tasks = [Task(family, n, m, name, 1.0, sets, draws) for n, m in places for name in names]
        cells = measured(tasks, jobs, family)
        for n, m in places:
            here = {name: cells[Task(family, n, m, name, 1.0, sets, draws)] for name in names}
            fewer += [
                f"{name} on {family}, n = {n:,}, m = {m}: {'no' if cell is None else cell.runs} runs"
                for name, cell in here.items()
                if (cell is None and not (name == "single" and m > 1)) or (cell and cell.runs < sets * draws)
            ]
            for letter, name, said, limit, holds in judge(family, n, m, here):
                judged[letter] += 1
                if verdict(holds, short=short) == "MISSED":
                    missed.append((letter, family, f"{n:,}", str(m), name, said, limit))
        for n in sizes:
            rows = [
                (name, *(_shown(cells[Task(family, n, m, name, 1.0, sets, draws)], name) for m in counts))
                for name in names
            ]
            title = f"{family} in {ALL_FAMILIES[family].bounds}, {n:,} rows, epsilon 1: mean rank error"
            show(title, ("method", *(f"m = {m}" for m in counts)), rows)
    said = ", ".join(f"{letter} in {count} cells" for letter, count in judged.items())
    if missed:
        show(
            f"MISSED verdicts, of {said}",
            ("verdict", "data", "n", "m", "method", "rank error", "at most"),
            missed,
        )
    else:
        print(f"verdicts {'not judged' if short else 'hold'}: {said}")
    for line in fewer:
        print(f"time limit: {line}")


def _shown(cell: Cell | None, name: str) -> str:
    if cell is None:
        return ""
    return f"{cell.chosen} {cell}" if name == "auto" else str(cell)


def judge(
    family: str, n: int, m: int, here: dict[str, Cell | None]
) -> Iterator[tuple[str, str, str, str, bool]]:
    """Every verdict of a place: its letter, the method, what was found, the limit, whether it holds."""
    others = {name: cell for name, cell in here.items() if cell and name != "auto"}
    auto = here["auto"]
    if auto and others:
        best = min(others, key=lambda name: others[name].mean)
        limit = f"{others[best]} of {best}, + 15 %"
        yield "A", f"auto, {auto.chosen}", str(auto), limit, near(auto, others[best], same=True)
    for name, cell in others.items():
        figure = promised(name, family, n, m)
        if figure is not None:
            # The design's figures are rounded to a tenth of a rank.
            most = 1.25 * (figure + 0.05)
            yield "B", name, str(cell), f"{figure} + 25 %", cell.mean <= most + 4 * cell.total
        if cell.exact is not None:
            limit = f"{cell.exact:.3f} exactly"
            # Where nearly all draws are right, a few of them say nothing of the rest.
            yield "C", name, str(cell), limit, abs(cell.mean - cell.exact) <= 4 * cell.spread + 0.05


def robust(n: int, large: int, plan: dict, jobs: int) -> None:
    """Constant data, data outside the bounds, nulls, and the distance in value for many rows."""
    short, sets, draws = plan["short"], plan["sets"], plan["draws"]
    kept = n * 7 // 10
    pairs = [("outside", n, "inside", n), ("nulls", n, "normal", kept)]
    data = [("constant", n), ("outside", n), ("edge", n), ("inside", n), ("nulls", n), ("normal", kept)]
    tasks = [Task(name, size, m, "auto", 1.0, sets, draws) for m in (1, 9) for name, size in data]
    cells = measured(tasks, jobs, "robustness")
    rows = []
    for m in (1, 9):
        cell = cells[Task("constant", n, m, "auto", 1.0, sets, draws)]
        far = f"at most {cell.furthest:.0f} points off"
        rows.append(("all values equal", str(m), str(cell), far, verdict(cell.furthest <= 4, short=short)))
        cell = cells[Task("edge", n, m, "auto", 1.0, sets, draws)]
        plain = cells[Task("inside", n, m, "auto", 1.0, sets, draws)]
        # Next to many equal values is a stretch of points without any, which draws as its width does.
        rows.append(("the upper bound at the median", str(m), str(cell), f"{plain} without", ""))
        for name, size, other, as_many in pairs:
            cell = cells[Task(name, size, m, "auto", 1.0, sets, draws)]
            plain = cells[Task(other, as_many, m, "auto", 1.0, sets, draws)]
            words = "half outside the bounds" if name == "outside" else "30 % nulls"
            rows.append(
                (
                    words,
                    str(m),
                    str(cell),
                    f"{plain} without",
                    verdict(near(cell, plain, same=False), short=short),
                )
            )
    show(
        f"`auto` on {n:,} awkward values, epsilon 1",
        ("data", "m", "rank error", "beside", "verdict"),
        rows,
    )
    rows = []
    for name, family in FAMILIES.items():
        values = family.draw(np.random.default_rng(5), large)
        width = family.bounds[1] - family.bounds[0]
        truth = float(np.median(values))
        far = max(
            abs(sf.median(values, bounds=family.bounds, epsilon=1, verify=0).value - truth) / width
            for _ in range(5)
        )
        rows.append((name, f"{far:.1e}", verdict(far <= 1e-5, short=short)))
    title = f"median of {large:,} rows, epsilon 1: the furthest of 5 answers, over the width of the bounds"
    show(title, ("data", "distance", "goal 1e-5"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few small cells, for a smoke test")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes measure cells")
    parser.add_argument("--part", choices=("regime", "robust"), help="one part only")
    parser.add_argument("--data", choices=tuple(FAMILIES), nargs="+", default=list(FAMILIES))
    asked = parser.parse_args()
    short = asked.quick
    plan = {"short": short, "sets": 1 if short else 8, "draws": 5 if short else 25}
    if asked.part in (None, "regime"):
        sizes = (10**3,) if short else (10**3, 10**4, 10**5)
        regime(asked.data, sizes, (1, 9) if short else (1, 3, 9, 99), plan, asked.jobs)
    if asked.part in (None, "robust"):
        robust(10**3 if short else 10**4, 10**5 if short else 10**7, plan, asked.jobs)
    finish()


if __name__ == "__main__":
    main()
