"""Mechanisms of a reader's own: a function that draws, or one that returns a law."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

from sfumato.checks import boolean, inside, shown
from sfumato.errors import InvalidParameter, MissingBounds, NotSupported
from sfumato.grid import Floats
from sfumato.lab.returned import finite, told_kind
from sfumato.lab.source import Source
from sfumato.lab.trials import Expected, Randomness, Risk, ranks_between, sample_quantiles

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
        values, chances = finite(self.values), finite(self.probabilities)
        if values is None or chances is None:
            raise InvalidParameter("values and probabilities must be finite numbers, got some that are not")
        if values.ndim == 1:
            values = values[:, None]
        if chances.ndim != 1 or values.ndim != 2 or len(values) != len(chances) or not values.size:
            raise InvalidParameter(
                "probabilities must be one for each of the values, and at least one, got "
                f"{told_kind(self.values)} and {told_kind(self.probabilities)}"
            )
        if not (chances >= 0).all() or abs(chances.sum() - 1) > _ROUNDING:
            raise InvalidParameter(
                "probabilities must be not negative and add up to 1, got a smallest one of "
                f"{chances.min():g} and a sum of {chances.sum():g}"
            )
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
            or (rows, size, coordinates). It may change the array that it is given, which is a copy.
        probs: the orders of the quantiles that it answers; or
        statistic: statistic(values), what it estimates, such as np.mean.
        settings: fixed settings of the function, such as {"bounds": (0, 1)}.
        batched: whether the function takes many data sets at once.

    Raises:
        InvalidParameter: no function, neither or both of `probs` and `statistic`, orders outside of (0, 1),
            or settings that the function does not take.

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
        if self.statistic is not None and not callable(self.statistic):
            raise InvalidParameter(f"statistic must be a function, got statistic={shown(self.statistic)}")
        if self.probs is not None:
            given_orders: Any = self.probs
            if not isinstance(given_orders, list | tuple | np.ndarray) or not len(given_orders):
                raise InvalidParameter(
                    f"probs must be a list of at least one order, got probs={shown(self.probs)}"
                )
            object.__setattr__(self, "probs", tuple(float(inside("probs", order)) for order in self.probs))
        boolean("batched", self.batched)
        if not isinstance(self.settings, Mapping):
            raise InvalidParameter(
                f"settings must be a mapping of names to values, got settings={shown(self.settings)}"
            )
        object.__setattr__(self, "settings", dict(self.settings))
        signature = self._signature
        for name in self.settings:
            if signature is not None and not self._reached_by(name):
                raise InvalidParameter(f"settings must be parameters of the function, got {shown(name)}")

    def at(self, settings: Mapping[str, Any]) -> "Own":
        """The same with those of the settings that the function names."""
        known = {name: value for name, value in settings.items() if self._reached_by(name)}
        return replace(self, settings={**self.settings, **known})

    def takes(self, name: str) -> bool:
        """Whether an experiment may vary a setting of this name."""
        return self._reached_by(name)

    def _reached_by(self, name: str) -> bool:
        return name != "rng" and (name in self._named or self._takes_any)

    def require_settings(self) -> None:
        """Refuse a function that cannot be called with the settings that it has."""
        signature = self._signature
        if signature is None:
            return
        extra = {name for name in ("rng", "bounds") if name in self._named}
        given: dict[str, Any] = {**dict.fromkeys(sorted(extra)), **self.settings}
        try:
            signature.bind(*(None,) * self._data, **given)
        except TypeError as error:
            data = "the rows, their number of draws" if self.batched else "the values"
            names = ", ".join(["", *given])
            raise InvalidParameter(
                f"function must take {data}{names} and need nothing else: {error}"
            ) from None

    @property
    def _data(self) -> int:
        return 2 if self.batched else 1

    @property
    def _signature(self) -> inspect.Signature | None:
        try:
            return inspect.signature(self.function)
        except (TypeError, ValueError):  # some functions in C have no signature
            return None

    @cached_property
    def _named(self) -> frozenset[str]:
        """Parameters that can be given by name; the data are given by place."""
        signature = self._signature
        parameters = list(signature.parameters.values()) if signature else []
        by_place = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        by_name = {
            one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        }
        return frozenset(by_name - {one.name for one in by_place[: self._data]})

    @cached_property
    def _takes_any(self) -> bool:
        signature = self._signature
        parameters = signature.parameters.values() if signature else ()
        return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)

    def call(self, rng: np.random.Generator, *given: Any) -> Any:
        """What the function returns for these data."""
        extra = {"rng": rng} if "rng" in self._named else {}
        return self.function(*given, **self.settings, **extra)

    def trial(self, rows: Floats, bounds: tuple[float, float] | None) -> "OwnTrial":
        """This mechanism on the data sets that are the rows; it gets the bounds if it names them."""
        self.require_settings()
        known = {"bounds": bounds} if "bounds" in self._named and "bounds" not in self.settings else {}
        if known and bounds is None:
            raise MissingBounds(
                "bounds must be given, by settings or as data=datasets.fixed(values, bounds=...), because an "
                "array has no public ones"
            )
        return OwnTrial(replace(self, settings={**self.settings, **known}), rows)


class Guest(Own):
    """A mechanism in a figure, which need not have a use for all settings that the figure varies."""

    def takes(self, name: str) -> bool:
        """Whatever the figure varies; the function gets what it names."""
        return True


def with_own(subjects: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The mechanisms of a figure and a reader's own, none of which hides another."""
    for name in own:
        if name in subjects:
            raise InvalidParameter(
                f"own must have other names than the figure's mechanisms, got {shown(name)}"
            )
    return {**subjects, **own}


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
        return _answers("statistic", [statistic(row.copy()) for row in self.rows])

    def population(self, source: Source) -> Floats | None:
        """The quantiles of what the data are drawn from; what else is estimated, a function alone knows."""
        if self.own.probs is None:
            return None
        return np.array([[source.quantile(order) for order in self.own.probs]] * len(self.rows))

    def draw(self, repeats: int, random: Randomness) -> Floats:
        """Answers: (sets, repeats, coordinates)."""
        if self.own.batched:
            given = self.own.call(random.rng, self.rows.copy(), repeats)
            drawn, shape = finite(given), (len(self.rows), repeats)
            if drawn is None or drawn.shape[:2] != shape or drawn.ndim > 3:
                raise InvalidParameter(
                    f"function must return finite numbers of shape {shape} or {(*shape, 'coordinates')}, got "
                    f"{told_kind(given)}"
                )
            return drawn[:, :, None] if drawn.ndim == 2 else drawn
        found = [self._on(row, repeats, random.rng) for row in self.rows]
        _require_same("function", [one.shape[1] for one in found])
        return np.stack(found)

    def _on(self, row: Floats, repeats: int, rng: np.random.Generator) -> Floats:
        first = self.own.call(rng, row.copy())
        if isinstance(first, Points):
            self._laws.append(first)
            return first.draw(repeats, rng)
        others = (self.own.call(rng, row.copy()) for _ in range(repeats - 1))
        return _answers("function", [first, *others])

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
            for repeat in range(-1, repeats):  # the first is a rehearsal
                given = (row[None].copy(), 1) if self.own.batched else (row.copy(),)
                start = perf_counter()
                answer = self.own.call(random.rng, *given)
                if isinstance(answer, Points):
                    answer.draw(1, random.rng)
                if repeat >= 0:
                    found[place, repeat] = perf_counter() - start
        return found

    def exact(self, risk: Risk, truth: Floats) -> Expected | None:
        """What the laws say of the loss, if the function returned laws when it was drawn from."""
        if len(self._laws) != len(self.rows):
            return None
        laws = [(law.values, law.probabilities) for law in self._laws]
        return Expected.listed(risk, laws, truth, self._ranks_off_on)

    def _ranks_off_on(self, place: int, answers: Floats) -> Floats:
        found = OwnTrial(self.own, self.rows[place : place + 1]).ranks_off(answers[None])
        return np.asarray(found[0])


def _answers(name: str, given: list[Any]) -> Floats:
    """What a function returned on several calls, each a number or a list of as many: (calls, coordinates)."""
    found = finite(given)
    if found is None or not 1 <= found.ndim <= 2 or not found.size:
        # One by one, to tell which it is.
        each = [finite(one) for one in given]
        for one, known in zip(given, each, strict=True):
            if known is None or known.ndim > 1 or not known.size:
                raise InvalidParameter(
                    f"{name} must return a finite number, or a list of them, got {told_kind(one)}"
                )
        _require_same(name, [known.size for known in each if known is not None])
        found = np.stack([np.atleast_1d(known) for known in each if known is not None])
    return found[:, None] if found.ndim == 1 else found


def _require_same(name: str, counts: list[int]) -> None:
    if len(set(counts)) > 1:
        raise InvalidParameter(
            f"{name} must return as many numbers on every call, got {min(counts)} and {max(counts)}"
        )
