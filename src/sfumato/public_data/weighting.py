"""Weights on a public table from a private one: what is asked, what it costs, what is made of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal
from warnings import warn

import numpy as np

from sfumato.checks import Number, keep, positive, shown, whole
from sfumato.data.dataset import Dataset
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.grid import Floats, Ints
from sfumato.laws import Bits, Law, default_bits
from sfumato.ledger import MemoryLedger
from sfumato.privacy import Budget, Event, Neighbours, PureDP
from sfumato.public_data.certified import sigmoid
from sfumato.public_data.cover import check_count, check_hull, check_size, check_slopes
from sfumato.public_data.features import Features
from sfumato.public_data.logistic import MAX_MAP_STEPS, Slopes, default_penalty
from sfumato.public_data.moments import FeatureSums, norm_for
from sfumato.public_data.redrawing import Redrawing
from sfumato.public_data.tilting import tilt
from sfumato.public_data.weighted import Link, Weights, effective_size
from sfumato.query import Cost, Outcome, raw
from sfumato.statistics.statistic import check_budget, resolution

_LEAST_PENALTY, _MOST_PENALTY = Fraction(1, 10**12), Fraction(10**6)


@dataclass(frozen=True, kw_only=True)
class Tilting:
    """Weights that are exponential in the features and reproduce their private means: the default.

    Guarantee:
        The means of the features are released at the cost stated; all else is post-processing.
        Proof: docs/proofs/public-data.md.

    Args:
        penalty: keeps the slopes finite where noise pushes the means out of what weights can give; small.

    References:
        [JE13] for weights on public data, [Hainmueller12] for weights that balance means.

    >>> Tilting().penalty
    Fraction(1, 1000000)
    """

    name: ClassVar[str] = "tilting"
    penalty: Number = Fraction(1, 10**6)

    def __post_init__(self) -> None:
        keep(self, penalty=_penalty(self.penalty))


@dataclass(frozen=True, kw_only=True)
class Logistic:
    """Weights by a logistic regression between private and public rows, with noise on its slopes.

    Guarantee:
        The slopes are released at the cost stated; all else is post-processing. Proof:
        docs/proofs/public-data.md. It needs far more rows or budget than `Tilting` for the same error.

    Args:
        penalty: the strength of the penalty for each private row, chosen without the private data; None for
            the public rule that makes the noise about as large as a typical sampling error.
        rows: a public guess of the number of private rows, where that is private; None for that of the public
            rows. A wrong guess costs accuracy and no privacy.

    References:
        [JE13] for the method, [CMS11] for noise on the minimum of a strongly convex function.

    >>> Logistic(penalty=0.01).penalty
    Fraction(1, 100)
    """

    name: ClassVar[str] = "logistic"
    penalty: Number | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        if self.penalty is not None:
            keep(self, penalty=_penalty(self.penalty))
        if self.rows is not None:
            keep(self, rows=whole("rows", self.rows, least=1, most=2**40))


def _penalty(value: object) -> Fraction:
    number = positive("penalty", value)
    if not _LEAST_PENALTY <= number <= _MOST_PENALTY:
        raise InvalidParameter(f"penalty must be in [1e-12, 1e6], got penalty={shown(value)}")
    return number


Method = Tilting | Logistic | Literal["tilting", "logistic"]
METHODS: dict[str, type[Tilting] | type[Logistic]] = {"tilting": Tilting, "logistic": Logistic}


@dataclass(frozen=True, eq=False)
class Weighting:
    """A question for weights, bound to public facts: charged as it is, then asked of the data."""

    name: ClassVar[str] = "weights"

    release: FeatureSums | Slopes
    method: Tilting | Logistic
    public: Dataset
    vectors: Ints

    @property
    def column(self) -> str:
        """The columns that are read."""
        return self.release.column

    @property
    def neighbours(self) -> Neighbours:
        """What one person can change."""
        return self.release.neighbours

    @property
    def event(self) -> Event:
        """What the release costs."""
        return self.release.event

    @property
    def cost(self) -> Cost:
        """What the release costs, as a budget."""
        return self.release.cost

    def law(self, data: Dataset) -> Law:
        """Read the private table: the law of the integers that are released."""
        # Whatever the caller has NumPy do about underflow and its like, no value of a row may raise.
        with np.errstate(all="ignore"):
            view = self.release.look(data)
        return self.release.law(view)

    def drawn(self, data: Dataset, bits: Bits) -> Weights:
        """Read the private table and draw; comes after the charge."""
        return self.weights(raw(self.law(data).sample(bits)), type(bits).private)

    def weights(self, outcome: Outcome, private: bool) -> Weights:
        """The weights that follow from what was released; post-processing.

        Raises:
            NotCovered: by the released numbers, the public rows do not cover the private ones.
        """
        release = self.release
        made = self._tilted if isinstance(release, FeatureSums) else self._fitted
        return made(release, outcome, private)  # type: ignore[arg-type]

    def _tilted(self, release: FeatureSums, outcome: Outcome, private: bool) -> Weights:
        moments = release.read(outcome)
        check_count(moments.rows, moments.rows_error, moments.means)
        features = self.vectors / release.map.steps
        penalty = float(Fraction(self.method.penalty))  # type: ignore[arg-type]
        tilted = tilt(features, moments.means, penalty)
        noise = release.mechanism.noise
        check_hull(features, moments.means, moments.moves, noise, tilted.slopes)
        inverse = np.linalg.inv(_curvature(features, tilted.weights) + penalty * np.eye(features.shape[1]))
        redrawing = Redrawing(
            features=features,
            weights=tilted.weights,
            means=moments.means,
            moves=moments.moves,
            noise=noise,
            penalty=penalty,
            private_rows=moments.rows,
        )
        link = Link(
            inverse @ moments.moves,
            penalty * (inverse @ tilted.slopes),
            noise,
            True,
            penalty,
            redrawing if redrawing.needed else None,
        )
        notes = (
            () if tilted.converged else ("the search for the weights did not settle: they are approximate",)
        )
        return self._made(features, tilted.weights, moments.rows, moments.means, link, notes, private)

    def _fitted(self, release: Slopes, outcome: Outcome, private: bool) -> Weights:
        objective, slopes = release.objective, release.read(outcome)
        shrunk = release.map.steps / objective.steps
        features = self.vectors / release.map.steps
        exponents = features @ slopes[1:] * shrunk
        powers = np.exp(exponents - exponents.max())
        weights = powers / powers.mean()
        scaled = release.public_vectors / objective.steps
        noise = release.mechanism.noise
        check_slopes(scaled, slopes, objective, float(release.tolerance), float(release.step), noise)
        # By the weights themselves, what the private rows add to the curvature.
        share = sigmoid(scaled @ slopes)
        heights = share * (1 - share) * (weights * release.rows / len(weights) + objective.public_weight)
        curvature = (scaled * heights[:, None]).T @ scaled
        # The penalty is part of the curvature, and keeps it from being singular.
        curvature += (objective.penalty + 1e-9 * np.trace(curvature)) * np.eye(len(slopes))
        drift = np.linalg.solve(curvature, objective.penalty * slopes)[1:] * shrunk
        moves = np.eye(len(slopes) - 1) * (shrunk * float(release.step))
        link = Link(moves, drift, noise, False, 1e-9)
        notes = (
            "the penalty and the noise on the slopes are large beside those of method='tilting'; "
            "the interval is widened by an estimate of what the penalty takes away",
        )
        return self._made(features, weights, float(release.rows), slopes, link, notes, private)

    def _made(
        self,
        features: Floats,
        weights: Floats,
        rows: float,
        released: Floats,
        link: Link,
        notes: tuple[str, ...],
        private: bool,
    ) -> Weights:
        words = check_size(effective_size(weights), len(weights), features.shape[1], released)
        if words is not None:
            warn(words, stacklevel=5)
            notes = (*notes, words)
        if isinstance(self.release, FeatureSums):
            step, about = Fraction(1, self.release.map.steps), "sums of features of length at most 1"
        else:
            step, about = self.release.step, "the slopes"
        labels = self.release.map.labels
        return Weights(
            weights,
            rows,
            released,
            labels if isinstance(self.release, FeatureSums) else ("intercept", *labels),
            float(weights[self.release.map.at_bound(self.vectors)].sum() / len(weights)),
            self.release.budget,
            f"{self.method.name}, with {self.release.mechanism.described(step)} on {about}",
            notes,
            private,
            self.public,
            features,
            link,
        )


def _curvature(features: Floats, weights: Floats) -> Floats:
    shares = weights / len(weights)
    around = features - shares @ features
    found: Floats = (around * shares[:, None]).T @ around
    return found


def weighting(
    data: Dataset,
    public: Any,
    *,
    features: Features | Sequence[str],
    budget: Budget,
    method: Method = "tilting",
) -> Weighting:
    """The question for weights about a private data set; the public table is read, the private one is not."""
    check_budget(budget)
    chosen = _features(features)
    asked = METHODS[method]() if isinstance(method, str) and method in METHODS else method
    if not isinstance(asked, Tilting | Logistic):
        raise InvalidParameter(f"method must be 'tilting' or 'logistic', got method={shown(method)}")
    table = public if isinstance(public, Dataset) else Dataset(public, unit="row", neighbours="substitution")
    for each in (data, table):
        each.columns  # noqa: B018  reason: refused where an engine holds them, since rows are read one by one
    if data.unit != "row":
        raise NotSupported(f"weights need unit='row', got unit={data.unit!r}: its rows are not bounded")
    chosen.check(data)
    size = _rows(table, chosen)
    least = len(chosen.coordinates) + 10
    if size < least:
        raise InvalidParameter(f"public must have at least {least} rows for these features, got {size}")
    rows = _rows(data, chosen) if data.neighbours == "substitution" else None
    if rows == 0:
        raise InvalidParameter("private must have at least one row, got none")
    release: FeatureSums | Slopes
    if isinstance(asked, Tilting):
        steps = resolution(budget, bits=20, range_bits=10)
        fitted = chosen.fitted(table, norm=norm_for(budget), steps=steps)
        release = FeatureSums(map=fitted, budget=budget, neighbours=data.neighbours, rows=rows)
        vectors = fitted.vectors(table)
    else:
        release = _slopes(asked, chosen, table, budget, data.neighbours, rows)
        vectors = release.public_vectors[:, 1:]
    # A budget without a proof, or with noise beyond the sampler, is refused before anything is charged.
    _ = release.event, release.mechanism.noise
    return Weighting(release, asked, table, vectors)


def _slopes(
    method: Logistic,
    features: Features,
    public: Dataset,
    budget: Budget,
    neighbours: Neighbours,
    rows: int | None,
) -> Slopes:
    if rows is not None and method.rows is not None:
        raise InvalidParameter(f"rows must be left out where it is public, got rows={method.rows}")
    fitted = features.fitted(public, norm="l2", steps=MAX_MAP_STEPS)
    guess = rows or method.rows or _rows(public, features)

    def with_penalty(penalty: Fraction) -> Slopes:
        return Slopes(
            map=fitted, public=public, budget=budget, neighbours=neighbours, rows=guess, penalty=penalty
        )

    if method.penalty is not None:
        return with_penalty(Fraction(method.penalty))
    trial = with_penalty(Fraction(1))
    noise = math.sqrt(trial.mechanism.noise.variance) * float(trial.step)
    return with_penalty(default_penalty(trial.public_vectors[:, 1:], trial.objective.steps, noise))


def _rows(data: Dataset, features: Features) -> int:
    return data.column(features.columns[0]).rows


def _features(given: object) -> Features:
    if isinstance(given, Features):
        return given
    if isinstance(given, Sequence) and not isinstance(given, str):
        return Features(numbers=tuple(given))
    raise InvalidParameter(f"features must be Features or names of columns, got features={shown(given)}")


def weights(
    private: Any,
    public: Any,
    *,
    features: Features | Sequence[str],
    neighbours: Neighbours,
    epsilon: Number | None = None,
    budget: Budget | None = None,
    method: Method = "tilting",
    bits: Bits | None = None,
) -> Weights:
    """Weights on public rows, under which these stand for the private ones in any number of questions.

    Guarantee:
        Differential privacy of the private rows at exactly the cost stated, once, for every estimate that is
        made with the weights. The public rows are not protected. `Session.weights` is the same with a ledger.
        Proof: docs/proofs/public-data.md.

    Args:
        private: the private table: pandas, Polars, PyArrow, or a mapping of arrays.
        public: the public table, with the same columns and others.
        features: `Features`, or names of columns of numbers that the public table standardises.
        neighbours: "substitution" (the number of private rows is public) or "add-remove".
        epsilon, budget: what the release may cost: a pure epsilon, or PureDP, ApproxDP or ZCDP.
        method: "tilting" or `Tilting(...)`, "logistic" or `Logistic(...)`.
        bits: where randomness comes from; the operating system unless given.

    Raises:
        InvalidParameter, SchemaMismatch, NotSupported: a public fact is wrong; nothing was read.
        NotCovered: by the released numbers, the public rows do not cover the private ones.

    References:
        [JE13].

    >>> import numpy as np
    >>> people = {"age": np.arange(4000) % 60 + 30.0}
    >>> volunteers = {"age": np.arange(500) % 70 + 20.0}
    >>> found = weights(people, volunteers, features=["age"], epsilon=1, neighbours="substitution")
    >>> 59 < found.mean("age").value < 60, round(float(found.weights.mean()), 9)
    (True, 1.0)
    """
    if (epsilon is None) == (budget is None):
        given = "neither" if budget is None else "both"
        raise InvalidParameter(f"epsilon or budget must be given, one of the two, got {given}")
    whole_budget: Budget = PureDP(epsilon) if epsilon is not None else budget  # type: ignore[assignment]
    if isinstance(private, Dataset):
        raise InvalidParameter("private must be a table, got a Dataset: Session.weights takes one")
    if private is public:
        raise InvalidParameter("public must be another table than private: its rows are not protected")
    data = Dataset(private, unit="row", neighbours=neighbours)
    if not isinstance(bits, Bits | None):
        raise InvalidParameter(f"bits must be a source of bits, got bits={shown(bits)}")
    asked = weighting(data, public, features=features, budget=whole_budget, method=method)
    # The ledger of this one release: it refuses an event that the budget does not pay for.
    MemoryLedger(whole_budget, neighbours=data.neighbours).charge(asked)
    return asked.drawn(data, bits or default_bits())
