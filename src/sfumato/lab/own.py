"""Mechanisms of a reader's own: a function that draws, or one that returns a law."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from sfumato.checks import shown
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.grid import Floats
from sfumato.lab.trials import Expected, Randomness, Risk, losses, ranks_between, sample_quantiles

# Beyond this, probabilities do not add up to one because of a mistake and not of rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Points:
    """A law as a list: the answers that can be given and how likely each is.

    Guarantee:
        Checked to be probabilities that add up to one within 1e-9, and then made to.

    Args:
        values: the answers; one number each, or one row of coordinates each.
        probabilities: as many, not negative.

    Raises:
        InvalidParameter: no probabilities of these values.

    >>> Points([0, 1], [0.25, 0.75]).probabilities.tolist()
    [0.25, 0.75]
    """

    values: Any
    probabilities: Any

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)
        chances = np.asarray(self.probabilities, dtype=np.float64)
        if values.ndim == 1:
            values = values[:, None]
        if chances.ndim != 1 or values.ndim != 2 or len(values) != len(chances) or not len(chances):
            raise InvalidParameter("probabilities must be one for each of the values, and at least one")
        if not (np.isfinite(values).all() and (chances >= 0).all()) or abs(chances.sum() - 1) > _ROUNDING:
            raise InvalidParameter("probabilities must be not negative and add up to 1, of finite values")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "probabilities", chances / chances.sum())

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Independent answers: (count, coordinates)."""
        return np.asarray(self.values[rng.choice(len(self.values), size=count, p=self.probabilities)])


@dataclass(frozen=True, kw_only=True)
class Own:
    """A mechanism of your own, to stand beside those of sfumato in an experiment or a figure.

    Guarantee:
        The function is called with the values of one data set and the settings that it names, and with
        nothing else of the experiment. What it returns is taken as it is: no privacy is checked. To check it,
        see `sfumato.audit`.

    Args:
        function: function(values, **settings) returns one draw, a number or an array, or `Points`, its law,
            whose risks are then exact. If it names `rng`, it gets a NumPy generator with the experiment's
            seed, and if it names `bounds`, the public ones of the data. If `batched`, it is function(rows,
            size, **settings) and returns `size` draws for every row of a two-dimensional array: (rows, size)
            or (rows, size, coordinates).
        probs: the orders of the quantiles that it answers; or
        statistic: statistic(values), what it estimates, such as np.mean.
        settings: fixed settings of the function, such as {"bounds": (0, 1)}.
        batched: whether the function takes many data sets at once.

    Raises:
        InvalidParameter: no function, or neither or both of `probs` and `statistic`.

    >>> def noisy_median(values, epsilon, rng):
    ...     return np.median(values) + rng.laplace() / epsilon
    >>> noisy = Own(function=noisy_median, probs=[0.5])
    >>> noisy.at({"epsilon": 1}).settings
    {'epsilon': 1}
    """

    function: Callable[..., Any]
    probs: Sequence[Any] | None = None
    statistic: Callable[..., Any] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    batched: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidParameter(f"function must be a function, got function={shown(self.function)}")
        if (self.probs is None) == (self.statistic is None):
            given = "neither" if self.probs is None else "both"
            raise InvalidParameter(f"probs or statistic must be given, one of the two, got {given}")
        if self.probs is not None:
            object.__setattr__(self, "probs", tuple(self.probs))
        object.__setattr__(self, "settings", dict(self.settings))

    def at(self, settings: Mapping[str, Any]) -> "Own":
        """The same with those of the settings that the function names."""
        known = {name: value for name, value in settings.items() if name in self._named or self._takes_any}
        return replace(self, settings={**self.settings, **known})

    @property
    def _named(self) -> set[str]:
        try:
            return set(inspect.signature(self.function).parameters)
        except (TypeError, ValueError):  # some functions in C have no signature
            return set()

    @property
    def _takes_any(self) -> bool:
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (TypeError, ValueError):
            return True
        return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)

    def call(self, rng: np.random.Generator, *given: Any) -> Any:
        """What the function returns for these data."""
        extra = {"rng": rng} if "rng" in self._named else {}
        return self.function(*given, **self.settings, **extra)

    def trial(self, rows: Floats, bounds: tuple[float, float]) -> "OwnTrial":
        """This mechanism on the data sets that are the rows; it gets the bounds if it names them."""
        known = {"bounds": bounds} if "bounds" in self._named and "bounds" not in self.settings else {}
        return OwnTrial(replace(self, settings={**self.settings, **known}), rows)


@dataclass(frozen=True, eq=False)
class OwnTrial:
    """A mechanism of a reader's own, on data sets."""

    own: Own
    rows: Floats
    _laws: list[Points] = field(default_factory=list)

    def truth(self) -> Floats:
        """What the mechanism says that it estimates."""
        if self.own.probs is not None:
            return sample_quantiles(self.rows, self.own.probs)
        statistic = self.own.statistic
        assert statistic is not None
        return np.array([np.atleast_1d(np.asarray(statistic(row), dtype=np.float64)) for row in self.rows])

    def draw(self, repeats: int, random: Randomness) -> Floats:
        """Answers: (sets, repeats, coordinates)."""
        if self.own.batched:
            drawn = np.asarray(self.own.call(random.rng, self.rows, repeats), dtype=np.float64)
            shape = (len(self.rows), repeats)
            if drawn.shape[:2] != shape or drawn.ndim > 3:
                raise InvalidParameter(
                    f"function must return an array of shape {shape} or {(*shape, 'coordinates')}, got "
                    f"{drawn.shape}"
                )
            return drawn[:, :, None] if drawn.ndim == 2 else drawn
        return np.stack([self._on(row, repeats, random.rng) for row in self.rows])

    def _on(self, row: Floats, repeats: int, rng: np.random.Generator) -> Floats:
        first = self.own.call(rng, row)
        if isinstance(first, Points):
            self._laws.append(first)
            return first.draw(repeats, rng)
        others = [self.own.call(rng, row) for _ in range(repeats - 1)]
        return np.array([np.atleast_1d(np.asarray(one, dtype=np.float64)) for one in (first, *others)])

    def ranks_off(self, answers: Floats) -> Floats:
        """How many ranks answers are from p n."""
        if self.own.probs is None:
            raise NotSupported("the risk 'rank' needs probs, the orders of the quantiles that are answered")
        targets = np.array([float(order) for order in self.own.probs]) * self.rows.shape[1]
        pairs = zip(np.sort(self.rows, axis=1), answers, strict=True)
        return np.stack([ranks_between(row, found, targets) for row, found in pairs])

    def covered(self, repeats: int, confidence: float, truth: Floats, random: Randomness) -> Floats:
        """A function returns answers and no intervals."""
        raise NotSupported("the risk 'coverage' is for queries of sfumato: a function returns no intervals")

    def seconds(self, repeats: int, random: Randomness) -> Floats:
        """How long a call takes, and a draw from the law that it returns."""
        found = np.empty((len(self.rows), repeats))
        for place, row in enumerate(self.rows):
            given = (row[None], 1) if self.own.batched else (row,)
            for repeat in range(-1, repeats):  # the first is a rehearsal
                start = perf_counter()
                answer = self.own.call(random.rng, *given)
                if isinstance(answer, Points):
                    answer.draw(1, random.rng)
                if repeat >= 0:
                    found[place, repeat] = perf_counter() - start
        return found

    def exact(self, risk: Risk) -> Expected | None:
        """What the laws say of the loss, if the function returned laws when it was drawn from."""
        if len(self._laws) != len(self.rows):
            return None
        truth, found = self.truth(), []
        for place, law in enumerate(self._laws):
            if risk == "rank":
                one = OwnTrial(self.own, self.rows[place : place + 1])
                each = one.ranks_off(law.values[None])[0].mean(axis=1)
            else:
                each = losses(risk, law.values[None], truth[place : place + 1])[0]
            found.append((each, law.probabilities))
        return Expected.listed(found)
