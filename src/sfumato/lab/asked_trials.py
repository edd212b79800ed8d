"""Queries of sfumato on many data sets: the laws that a release would be drawn from, drawn many times."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

from sfumato.asked import ask
from sfumato.checks import shown
from sfumato.data.admission import admit
from sfumato.data.column import Column
from sfumato.data.dataset import Dataset
from sfumato.data.field import Field
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.grid import Floats
from sfumato.lab.listed import Listed, listed
from sfumato.lab.quantile_rows import QuantileRows, as_seen
from sfumato.lab.source import Source
from sfumato.lab.trials import Expected, Randomness, Risk, ranks_between, sample_quantiles
from sfumato.laws import Shifted
from sfumato.privacy import ZCDP, Neighbours, PureDP
from sfumato.query import raw
from sfumato.question import Question

_MEANS = {"mean", "exponential_mean", "inverse_mean"}
_SHARES = {"proportion", "inverse_proportion"}
_BUDGETS = ("epsilon", "rho")
# Answers become numbers so many at a time.
_AT_ONCE = 2**16


def _of_ones(query: Any) -> bool:
    """Whether a share of values is asked for that are true, and meet no other condition."""
    others = (getattr(query, name, None) for name in ("equals", "between"))
    return query.name in _SHARES and all(other is None for other in others)


@dataclass(frozen=True)
class AskedSubject:
    """A query whose fields are settings; `epsilon` and `rho` set its budget."""

    query: Any

    def takes(self, name: str) -> bool:
        """Whether it can be a setting of the query."""
        return name in _BUDGETS or name in {one.name for one in fields(self.query)}

    def require_settings(self) -> None:
        """A query is complete by itself."""

    def at(self, settings: Mapping[str, Any]) -> "AskedSubject":
        """The query with these settings."""
        known = {one.name for one in fields(self.query)}
        budgets = [name for name in (*_BUDGETS, "budget") if name in settings]
        if len(budgets) > 1:
            raise InvalidParameter(f"sweep must name one budget, got {' and '.join(budgets)}")
        changed: dict[str, Any] = {}
        for name, value in settings.items():
            if name == "epsilon":
                changed["budget"] = PureDP(value)
            elif name == "rho":
                changed["budget"] = ZCDP(value)
            elif name in known:
                changed[name] = value
            else:
                raise InvalidParameter(
                    f"sweep must name n, data, epsilon, rho or a field of {type(self.query).__name__} "
                    f"({', '.join(sorted(known))}), got {shown(name)}"
                )
        return AskedSubject(replace(self.query, **changed))

    def trial(self, rows: Floats, bounds: tuple[float, float] | None) -> "AskedTrial":
        """The query on the data sets that are the rows; the bounds count if it has none of its own."""
        values: Any = rows
        if _of_ones(self.query) and np.isin(rows, (0, 1)).all():
            values = rows.astype(bool)
        relation: Neighbours = self.query.neighbours or "substitution"
        schema = {self.query.column: Field(bounds=bounds)}
        data = Dataset({self.query.column: values[0]}, unit="row", neighbours=relation, schema=schema)
        # All data sets have the same public facts.
        return AskedTrial(ask(data, Question(query=self.query)).any, values)


@dataclass(frozen=True, eq=False)
class AskedTrial:
    """A query with its public facts filled in, on data sets."""

    query: Any
    rows: Any

    def _columns(self) -> Iterator[Column]:
        return (admit(row, self.query.column) for row in self.rows)

    def truth(self) -> Floats:
        """The statistic of each data set, whatever the bounds."""
        name = self.query.name
        if self._fast is not None:
            return self._asked(self._fast.truth)
        if name == "quantiles":
            return sample_quantiles(self.rows, self.query.probs)
        if name in _MEANS | {"sum", "variance"}:
            of_rows: dict[str, Any] = {"sum": np.sum, "variance": np.var}
            return np.asarray(of_rows.get(name, np.mean)(self.rows, axis=1, dtype=np.float64))[:, None]
        views = [self.query.look(column) for column in self._columns()]
        if name == "histogram":
            return np.array(views, dtype=np.float64)
        if name in ("count", *_SHARES):
            parts = [view.first / (view.size if name in _SHARES else 1) for view in views]
            return np.array(parts, dtype=np.float64)[:, None]
        raise NotSupported(f"risks are known for numbers and quantiles, not for {name}")

    def population(self, source: Source) -> Floats | None:
        """The same of what the data are drawn from."""
        sets = len(self.rows)
        if self.query.name == "quantiles":
            return np.array([[source.quantile(order) for order in self.query.probs]] * sets)
        known = self.query.name in _MEANS or _of_ones(self.query)
        return np.full((sets, 1), source.mean) if known else None

    @cached_property
    def _fast(self) -> QuantileRows | None:
        return QuantileRows.of(self.query, self.rows) if self.query.name == "quantiles" else None

    @cached_property
    def _laws(self) -> list[Any]:
        return [self.query.law(self.query.look(column)) for column in self._columns()]

    @cached_property
    def _can_be_listed(self) -> bool:
        # Public facts decide it for the most part: one law tells without making those of all data sets.
        first = AskedTrial(self.query, self.rows[:1])
        return listed(first._laws[0], self.query.value) is not None

    @cached_property
    def _lists(self) -> list[Listed | None]:
        return [listed(law, self.query.value) for law in self._laws]

    def draw(self, repeats: int, random: Randomness) -> Floats:
        """Answers: (sets, repeats, coordinates)."""
        if self._fast is not None:
            return self._asked(self._fast.sample(random.bits, repeats))
        return np.stack([self._answers(law, repeats, random) for law in self._laws])

    def _asked(self, by_order: Floats) -> Floats:
        """Answers in the order in which they were asked for; laws have the distinct orders, increasing."""
        places = [self.query.orders.index(order) for order in self.query.asked]
        return by_order[..., places]

    def _answers(self, law: Any, repeats: int, random: Randomness) -> Floats:
        parts = []
        for start in range(0, repeats, _AT_ONCE):
            drawn = self._outcomes(law, min(_AT_ONCE, repeats - start), random)
            values = [np.atleast_1d(np.asarray(self.query.value(one), dtype=np.float64)) for one in drawn]
            parts.append(np.array(values))
        return np.concatenate(parts)

    def _outcomes(self, law: Any, repeats: int, random: Randomness) -> list[tuple[int, ...]]:
        if isinstance(law, Shifted) and isinstance(law.center, int):
            return [(int(one),) for one in law.sample(random.bits, repeats)]
        return [raw(law.sample(random.bits)) for _ in range(repeats)]

    def ranks_off(self, answers: Floats) -> Floats:
        """How many ranks answers are from p n, among the values as the grid takes them."""
        if self.query.name != "quantiles":
            raise NotSupported(f"the risk 'rank' is for quantiles, not for {self.query.name}")
        targets = np.array([float(order) for order in self.query.asked]) * self.rows.shape[1]
        gridless = self.query.sized or self.query.bounds is None
        rows = self.rows if gridless else as_seen(self.rows, self.query.facts.grid)
        pairs = zip(np.sort(rows, axis=1), answers, strict=True)
        return np.stack([ranks_between(row, given, targets) for row, given in pairs])

    def covered(self, repeats: int, confidence: float, truth: Floats, random: Randomness) -> Floats:
        """The share of the intervals of a draw that hold the truth."""
        found = np.empty((len(self.rows), repeats))
        for place, law in enumerate(self._laws):
            for repeat, outcome in enumerate(self._outcomes(law, repeats, random)):
                low, high = self.query.interval(outcome, confidence)
                inside = (np.atleast_1d(low) <= truth[place]) & (truth[place] <= np.atleast_1d(high))
                found[place, repeat] = float(inside.mean())
        return found

    def seconds(self, repeats: int, random: Randomness) -> Floats:
        """How long it takes to look at a data set, make the law, and draw from it once."""
        found = np.empty((len(self.rows), repeats))
        for place, column in enumerate(self._columns()):
            for repeat in range(-1, repeats):  # the first is a rehearsal
                start = perf_counter()
                self.query.value(raw(self.query.law(self.query.look(column)).sample(random.bits)))
                if repeat >= 0:
                    found[place, repeat] = perf_counter() - start
        return found

    def exact(self, risk: Risk, truth: Floats) -> Expected | None:
        """What the law says of the loss: of one quantile, of plain noise, or of a law that is short."""
        if self._fast is not None and len(self.query.asked) == 1:
            center = truth[:, 0]
            mean = self._fast.exact(risk, center)
            if mean is not None:
                return Expected(mean, self._fast.exact_variance(risk, center))
        if not self._can_be_listed:
            return None
        laws = [known for known in self._lists if known is not None]
        if len(laws) < len(self.rows):
            return None
        return Expected.listed(risk, laws, truth, self._ranks_off_on)

    def _ranks_off_on(self, place: int, answers: Floats) -> Floats:
        found = AskedTrial(self.query, self.rows[place : place + 1]).ranks_off(answers[None])
        return np.asarray(found[0])
