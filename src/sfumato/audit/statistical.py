"""Statistical audits: what draws alone prove about a mechanism, whoever wrote it."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.features import Cells, Feature, features
from sfumato.audit.outcomes import Outcomes, joined, tables
from sfumato.checks import Number, between, boolean, exact, float_down, float_up, positive, shown, whole
from sfumato.errors import InvalidParameter
from sfumato.grid import Floats
from sfumato.laws.bits import Integers

Features = Callable[[Outcomes, Outcomes], Iterable[Feature]]
Progress = Callable[[int, int], Any]

FEWEST = 8
MOST = 10**9
# A vectorised mechanism is asked for so many draws at a time; another reports after each of so many parts.
_BATCH, _PARTS = 100_000, 100
# Events are chosen by a bound of this many standard errors, so that no event is chosen for its luck.
_CAUTION = 3.0


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What draws on two neighbouring data sets prove: lower bounds on epsilon, and on delta at the claim.

    `epsilon` is a lower bound on the epsilon of the mechanism at `claimed_delta`. `delta` is a lower bound on
    its delta at `claimed_epsilon`, and None if no epsilon was claimed. `event` says what was looked at, and
    `hits` how many of `draws` tested outcomes on each data set were in it, the likelier first.

    Guarantee:
        All bounds hold together with probability `confidence` at least, if the draws are independent. So
        "refuted" is wrong that rarely; "not refuted" proves nothing.

    >>> print(Estimate(epsilon=1.97, delta=0.2, claimed_epsilon=1.0, claimed_delta=0.0, confidence=0.95,
    ...                event="the number is at most 3", hits=(700, 90), draws=1000))
    refuted: epsilon is at least 1.97, and 1 was claimed (confidence 0.95; the number is at most 3: 700 and
    90 of 1,000 draws)
    """

    epsilon: float
    delta: float | None
    claimed_epsilon: float | None
    claimed_delta: float
    confidence: float
    event: str
    hits: tuple[int, int]
    draws: int

    @property
    def refuted(self) -> bool:
        """Whether a bound exceeds what was claimed."""
        if self.claimed_epsilon is None or self.delta is None:
            return False
        return self.epsilon > self.claimed_epsilon or self.delta > self.claimed_delta

    @property
    def verdict(self) -> str:
        """One of "refuted", "not refuted", and "no claim"."""
        if self.claimed_epsilon is None:
            return "no claim"
        return "refuted" if self.refuted else "not refuted"

    def __str__(self) -> str:
        bound = f"epsilon is at least {self.epsilon:.3g}"
        if self.claimed_delta:
            bound += f" at delta {self.claimed_delta:g}"
        if self.claimed_epsilon is not None:
            bound += f", and {self.claimed_epsilon:g} was claimed"
        if self.delta is not None and self.epsilon <= (self.claimed_epsilon or 0) and self.refuted:
            bound += f"; delta is at least {self.delta:.3g} there"
        seen = f"{self.event}: {self.hits[0]:,} and {self.hits[1]:,} of {self.draws:,} draws"
        return f"{self.verdict}: {bound} (confidence {self.confidence:g}; {seen})"


def statistical(
    mechanism: Callable[..., Any],
    left: Any,
    right: Any,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    samples: int = 100_000,
    confidence: Number = 0.95,
    batched: bool = False,
    progress: Progress | None = None,
) -> Estimate:
    """Draws from a mechanism on two neighbouring data sets, and bounds its epsilon and delta from below.

    Any callable will do, of this package or of another. An outcome is a number of any length, rows, dicts and
    nests of numbers and texts, None, a release, or an exception, which counts by its type. A quarter of the
    draws teaches which outcomes are likelier on one side, by many features of them; a quarter chooses one
    event; the other half bounds the two probabilities of that event by the method of Clopper and Pearson.

    Guarantee:
        The bounds exceed the true values with probability at most 1 - `confidence`, if the draws are
        independent, whatever the mechanism is. Events rarer than about one in `samples` are not seen, so that
        "not refuted" is no proof; for that see `exact`.

    Args:
        mechanism: called as `mechanism(data)`, or as `mechanism(data, size)` if `batched`.
        left, right: two data sets that the mechanism must not tell apart.
        epsilon, delta: what is claimed; without epsilon there is no verdict, and bounds are at `delta`.
        samples: how many draws on each data set.
        confidence: how surely the bounds hold.
        batched: whether the mechanism returns `size` independent outcomes at once.
        progress: called now and then with the number of draws done and to do.

    Raises:
        InvalidParameter: a parameter out of range, or a batch of another size.

    References:
        [ClopperPearson34]; [DWWZK18] for choosing the event on draws of its own.

    >>> from fractions import Fraction
    >>> from sfumato.laws import DiscreteLaplace, SeededBits
    >>> noise, bits = DiscreteLaplace(Fraction(1)), SeededBits(1)
    >>> def noisy(count, size):
    ...     return count + noise.sample(bits, size)
    >>> statistical(noisy, 20, 21, epsilon=1, samples=20_000, batched=True).verdict
    'not refuted'
    >>> statistical(noisy, 20, 21, epsilon=0.8, samples=20_000, batched=True).verdict
    'refuted'
    """
    claim = None if epsilon is None else float_up(_not_negative("epsilon", epsilon))
    size = whole("samples", samples, least=FEWEST, most=MOST)
    allowed = checked_delta(delta)
    between("confidence", confidence, 0, 1)  # before the draws, which take long
    one, other = draw(mechanism, left, right, size, batched=batched, progress=progress)
    return estimate(one, other, claim=claim, delta=allowed, confidence=confidence)


def epsilon_lower_bound(left: Any, right: Any, *, confidence: Number = 0.95, delta: Number = 0) -> float:
    """An epsilon that the mechanism surely exceeds, from draws on two neighbouring data sets alone.

    Half of the draws choose one event, the other half bound its probabilities by the method of Clopper and
    Pearson. It is blind to events rarer than about one in the number of draws, so a small bound proves
    nothing; a bound above the claim refutes it.

    Guarantee:
        Above the true epsilon at `delta` with probability at most 1 - `confidence`, if the draws are
        independent.

    Args:
        left, right: equally many outcomes on each data set, at least 8: numbers, rows of numbers, texts,
            dicts, None, releases or exceptions, mixed as they come.
        confidence: how surely the bound holds.
        delta: the delta at which epsilon is bounded.

    Raises:
        InvalidParameter: too few outcomes, or not equally many.

    References:
        [ClopperPearson34].

    >>> from fractions import Fraction
    >>> from sfumato.laws import DiscreteLaplace, SeededBits
    >>> noise = DiscreteLaplace(Fraction(1)).sample(SeededBits(1), 40_000)
    >>> 0.9 < epsilon_lower_bound(noise[:20_000], noise[20_000:] + 1) <= 1
    True
    """
    return estimate(left, right, delta=checked_delta(delta), confidence=confidence).epsilon


def estimate(
    left: Any,
    right: Any,
    *,
    claim: float | None = None,
    delta: float = 0.0,
    confidence: Number = 0.95,
    look_at: Features = features,
) -> Estimate:
    """The bounds from two samples of outcomes, over the events that some features give."""
    one, other = tables(left, right)
    if len(one) != len(other) or len(one) < FEWEST:
        raise InvalidParameter(f"left and right must be equally many outcomes, at least {FEWEST}")
    stated = between("confidence", confidence, 0, 1)
    quarter, half = len(one) // 4, len(one) // 2
    learn, choose, test = (
        (one.part(*ends), other.part(*ends)) for ends in ((0, quarter), (quarter, half), (half, len(one)))
    )
    best_epsilon, best_delta = _search(learn, choose, look_at, claim, delta)
    # Two bounds for each event, one or two events.
    failure = float_down((1 - stated) / (2 if claim is None else 4))
    hits = best_epsilon.hits(test)
    bound = _log_ratio(hits, len(test[0]), failure, delta)
    return Estimate(
        epsilon=bound,
        delta=None if claim is None else _excess(best_delta.hits(test), len(test[0]), failure, claim),
        claimed_epsilon=claim,
        claimed_delta=delta,
        confidence=float(stated),
        event=str(best_epsilon),
        hits=hits,
        draws=len(test[0]),
    )


def draw(
    mechanism: Callable[..., Any],
    left: Any,
    right: Any,
    samples: int,
    *,
    batched: bool = False,
    progress: Progress | None = None,
) -> tuple[Any, Any]:
    """Outcomes on both data sets, block by block in turns, so that a drift of the machine hits both."""
    block = _BATCH if boolean("batched", batched) else -(-samples // _PARTS)
    found: tuple[list[Any], list[Any]] = ([], [])
    for start in range(0, samples, block):
        size = min(block, samples - start)
        for data, kept in zip((left, right), found, strict=True):
            if not batched:
                kept.extend(_called(mechanism, data) for _ in range(size))
                continue
            batch = mechanism(data, size)
            if len(batch) != size:
                raise InvalidParameter(f"mechanism must return {size} outcomes, got {len(batch)}")
            kept.append(batch)
        if progress is not None:
            progress(2 * (start + size), 2 * samples)
    return (_joined(found[0]), _joined(found[1])) if batched else found


def clopper_pearson(hits: int, size: int, failure: float) -> tuple[float, float]:
    """A lower and an upper bound of a probability, each wrong with probability `failure` at most."""
    from scipy.special import betaincinv  # here, because `import sfumato` loads NumPy alone

    lower = float(betaincinv(hits, size - hits + 1, failure)) if hits else 0.0
    upper = float(betaincinv(hits + 1, size - hits, 1 - failure)) if hits < size else 1.0
    return lower, upper


def _not_negative(name: str, value: Number) -> Any:
    amount = exact(name, value)
    return amount if amount == 0 else positive(name, value)


def checked_delta(value: Number) -> float:
    """A delta that is claimed, as a float: 0 or a share."""
    share = exact("delta", value)
    if not 0 <= share < 1:
        raise InvalidParameter(f"delta must be in [0, 1), got delta={shown(value)}")
    return float_up(share)


def _called(mechanism: Callable[..., Any], data: Any) -> Any:
    try:
        return mechanism(data)
    except Exception as error:  # whatever it is, an observer sees it
        # The traceback would keep every frame of the call alive.
        return error.with_traceback(None)


def _joined(batches: list[Any]) -> Any:
    if all(isinstance(batch, np.ndarray) for batch in batches):
        return np.concatenate(batches)
    return [outcome for batch in batches for outcome in batch]


def _log_ratio(hits: tuple[int, int], size: int, failure: float, delta: float) -> float:
    lower, upper = clopper_pearson(hits[0], size, failure)[0], clopper_pearson(hits[1], size, failure)[1]
    return max(math.log((lower - delta) / upper), 0.0) if lower > delta else 0.0


def _excess(hits: tuple[int, int], size: int, failure: float, epsilon: float) -> float:
    lower, upper = clopper_pearson(hits[0], size, failure)[0], clopper_pearson(hits[1], size, failure)[1]
    return max(lower - math.exp(min(epsilon, 700.0)) * upper, 0.0)


@dataclass(frozen=True, eq=False)
class _Event:
    """A set of cells of one feature, and on which side it is likelier."""

    feature: Feature
    cells: Cells
    chosen: NDArray[np.bool_]
    likelier: int
    words: str

    def hits(self, pair: tuple[Outcomes, Outcomes]) -> tuple[int, int]:
        """How many outcomes of each side are in it, the likelier side first."""
        counts = [
            int(np.count_nonzero(self.chosen[self.cells.of(self.feature.of(each), each.kinds)]))
            for each in pair
        ]
        return counts[self.likelier], counts[1 - self.likelier]

    def __str__(self) -> str:
        return f"{self.feature.name} {self.words}"


def _search(
    learn: tuple[Outcomes, Outcomes],
    choose: tuple[Outcomes, Outcomes],
    look_at: Features,
    claim: float | None,
    delta: float,
) -> tuple[_Event, _Event]:
    """The events whose bounds on epsilon, and on delta, promise most."""
    best: list[tuple[float, _Event]] = []
    factor = math.exp(min(claim or 0.0, 700.0))
    # All parts at once, because most of this is overhead.
    both = joined([*learn, *choose])
    parts = np.repeat(np.arange(4), [len(each) for each in (*learn, *choose)])
    learnt = 2 * len(learn[0])
    for feature in look_at(*learn):
        values = feature.of(both)
        cells = Cells.fit(values[:learnt], both.kinds[:learnt])
        places = parts * cells.count + cells.of(values, both.kinds)
        counts = np.bincount(places, minlength=4 * cells.count).reshape(4, -1)
        seen = np.flatnonzero(counts.sum(axis=0))
        # Four orders for each side; all their beginnings at once.
        orders = np.concatenate([_orders(counts[side], counts[1 - side], seen) for side in (0, 1)])
        picked = np.concatenate([counts[2][orders[:4]], counts[3][orders[4:]]])
        others = np.concatenate([counts[3][orders[:4]], counts[2][orders[4:]]])
        low = _wilson(picked.cumsum(axis=1), len(choose[0]), -_CAUTION)
        high = _wilson(others.cumsum(axis=1), len(choose[0]), _CAUTION)
        for i, score in enumerate((np.log(np.maximum(low - delta, 1e-300) / high), low - factor * high)):
            row, end = divmod(int(score.argmax()), len(seen))
            if len(best) <= i or score[row, end] > best[i][0]:
                members = orders[row, : end + 1]
                chosen = np.zeros(cells.count, dtype=np.bool_)
                chosen[members] = True
                event = _Event(feature, cells, chosen, row // 4, cells.words(members, row % 4))
                best[i : i + 1] = [(float(score[row, end]), event)]
    return best[0][1], best[1][1]


def _orders(first: Integers, second: Integers, seen: Integers) -> Integers:
    """Four orders of the cells whose beginnings are the events looked at.

    Up and down the feature, and by the log ratio that was learnt, less none and one of its standard errors:
    the set of outcomes above a level of the true ratio is the best event.
    """
    one, other = first[seen] + 0.5, second[seen] + 0.5
    ratio, error = np.log(one / other), np.sqrt(1 / one + 1 / other)
    by_ratio = (seen[np.argsort(caution * error - ratio, kind="stable")] for caution in (0, 1))
    return np.stack([seen, seen[::-1], *by_ratio])


def _wilson(hits: Integers, size: int, deviations: float) -> Floats:
    """Wilson's approximate bound, so many standard errors below or above; used to choose, never to state."""
    square = deviations**2
    share = hits / size
    inner = np.sqrt(share * (1 - share) / size + square / (4 * size * size))
    return np.asarray((share + square / (2 * size) + deviations * inner) / (1 + square / size))
