"""Which columns the weights match, and how a row becomes a short vector: all of it public."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from sfumato.checks import Number, boolean, exact, keep, one_of, positive, shown
from sfumato.data.column import Category, checked_categories
from sfumato.data.dataset import Dataset
from sfumato.errors import InvalidParameter
from sfumato.grid import Floats, exact_bounds
from sfumato.public_data.feature_map import (
    MAX_COORDINATES,
    Coordinate,
    FeatureMap,
    Norm,
    Scaled,
    read_columns,
)

NullValue = Literal["center", "indicator"]

Bounds = tuple[Any, Any] | None

# A private table may lie further out than the public one: room for half as much again as most public rows.
_HELD, _ROOM = 0.95, 1.5


@dataclass(frozen=True, kw_only=True)
class Features:
    r"""The columns that weights match, and how one row becomes a vector of bounded length.

    The weighted public records have about the same means of these features as the private ones. A number is
    mapped to [-1, 1] by public bounds, or is standardised by the public table. A category is one coordinate,
    0 or 1. The vector is divided by a public radius, and a longer one is shortened to length 1.

    Guarantee:
        A row's vector depends on that row and on public facts alone, and is never longer than its bound, on
        any data; its length is that of integers, with all rounding. Proof: docs/proofs/public-data.md.

    Args:
        numbers: names of columns of numbers, or a mapping from them to public bounds; None standardises by
            the mean and the spread of the public table.
        categories: for each column of categories its public list. Other values are in none of them.
        squares: also the squares of the numbers, for other variances.
        interactions: also the products of two numbers, for other correlations.
        nulls: "center" takes a null number for the middle of its bounds or the public mean, and a null
            category for none; "indicator" adds a coordinate that is 1 where the value is null.
        radius: the length, before scaling, that becomes 1. A public choice; None takes one and a half times
            what 95 % of the public rows have, or the longest if that is 0.
        limit: how many public standard deviations a standardised number may be from the public mean; others
            are moved to there.

    Raises:
        InvalidParameter: no columns, or a parameter out of range.

    >>> features = Features(numbers={"age": (0, 120)}, categories={"sex": ("f", "m")}, squares=True)
    >>> features.columns
    ('age', 'sex')
    """

    numbers: Mapping[str, Bounds] | Sequence[str] = ()
    categories: Mapping[str, Sequence[Category]] = field(default_factory=dict)
    squares: bool = False
    interactions: bool = False
    nulls: NullValue = "center"
    radius: Number | None = None
    limit: Number = 6

    def __post_init__(self) -> None:
        keep(self, numbers=MappingProxyType(_numbers(self.numbers)))
        keep(self, categories=MappingProxyType(_categories(self.categories)))
        both = set(self.numbers) & set(self.categories)
        if both:
            raise InvalidParameter(f"features must take a column once, got {min(both)!r} twice")
        if not self.columns:
            raise InvalidParameter("features must name at least one column, got none")
        boolean("squares", self.squares)
        boolean("interactions", self.interactions)
        one_of("nulls", self.nulls, ("center", "indicator"))
        if self.radius is not None:
            keep(self, radius=_moderate("radius", self.radius))
        keep(self, limit=_moderate("limit", self.limit))
        if len(self.coordinates) > MAX_COORDINATES:
            raise InvalidParameter(
                f"features must have at most {MAX_COORDINATES} coordinates, got {len(self.coordinates)}"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only mappings do not pickle.
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        given |= {name: dict(given[name]) for name in ("numbers", "categories")}
        return partial(Features, **given), ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, numbers first."""
        return (*self.numbers, *self.categories)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """What each place of the vector holds, in order."""
        names = tuple(self.numbers)
        found = [Coordinate("number", (name,)) for name in names]
        if self.squares:
            found += [Coordinate("product", (name, name)) for name in names]
        if self.interactions:
            pairs = ((a, b) for place, a in enumerate(names) for b in names[place + 1 :])
            found += [Coordinate("product", pair) for pair in pairs]
        for name, listed in self.categories.items():
            found += [Coordinate("category", (name,), code) for code in range(len(listed))]
        if self.nulls == "indicator":
            found += [Coordinate("null", (name,)) for name in self.columns]
        return tuple(found)

    def check(self, data: Dataset) -> None:
        """Refuse a table that lacks a column, or has one of another kind; no value is read."""
        for name in self.numbers:
            data.column(name).require("integer", "real", "boolean", hint="; as a feature it must be a number")
        for name, listed in self.categories.items():
            data.column(name).require_categories(listed)

    def fitted(self, public: Dataset, *, norm: Norm, steps: int) -> FeatureMap:
        """The map with all public numbers in it: centers, spreads and the radius, from the public table.

        Args:
            public: the public table; it has at least two rows.
            norm: which length is bounded, "l2" or "l1".
            steps: that bound, in steps of the integer lattice.
        """
        self.check(public)
        values, codes = read_columns(public, tuple(self.numbers), self.categories)
        given: Mapping[str, Bounds] = self.numbers  # type: ignore[assignment]  # read when this was made
        scaled = {name: self._scale(name, bounds, values[name]) for name, bounds in given.items()}
        units = {name: scaled[name].of(values[name]) for name in self.numbers}
        products = {
            (a, b): _spread(f"{a} times {b}", units[a] * units[b])
            for a, b in (each.columns for each in self.coordinates if each.kind == "product")
        }
        fresh = FeatureMap(
            coordinates=self.coordinates,
            numbers=tuple(scaled.items()),
            categories=tuple(self.categories.items()),
            products=tuple(products.items()),
            radius=1.0,
            norm=norm,
            steps=steps,
        )
        radius = self.radius
        if radius is None:
            sizes = fresh.sizes(values, codes)
            # Where nearly all rows are zero, as with rare categories alone, the longest one tells.
            radius = Fraction(_ROOM * float(np.quantile(sizes, _HELD) or sizes.max()))
        if radius == 0:
            raise InvalidParameter("features must differ from zero in the public table, got zeros alone")
        return fresh.within(float(radius))

    def _scale(self, name: str, bounds: Bounds, values: Floats) -> Scaled:
        if bounds is not None:
            low, high = (float(end) for end in exact_bounds(*bounds))
            return Scaled((low + high) / 2, (high - low) / 2, 1.0)
        center, spread = _spread(name, values[np.isfinite(values)])
        return Scaled(center, spread, float(self.limit))


def _spread(name: str, values: Floats) -> tuple[float, float]:
    center = float(np.mean(values)) if values.size else 0.0
    spread = float(np.std(values)) if values.size else 0.0
    if not (math.isfinite(center) and math.isfinite(spread)) or spread <= 1e-12 * (1 + abs(center)):
        raise InvalidParameter(
            f"features must vary in the public table, but {name!r} does not; give bounds or leave it out"
        )
    return center, spread


def _numbers(given: object) -> dict[str, Bounds]:
    if isinstance(given, str) or not isinstance(given, Mapping | Sequence):
        raise InvalidParameter(f"numbers must be names, or names with bounds, got numbers={shown(given)}")
    listed = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given)
    if len(listed) != len(given) or not all(isinstance(name, str) for name in listed):
        raise InvalidParameter(f"numbers must be different names of columns, got numbers={shown(given)}")
    for bounds in listed.values():
        if bounds is not None:
            if not isinstance(bounds, tuple | list) or len(bounds) != 2:
                raise InvalidParameter(f"numbers must map to (lower, upper) or None, got {shown(bounds)}")
            exact_bounds(*bounds)
    return {name: None if bounds is None else tuple(bounds) for name, bounds in listed.items()}


def _categories(given: object) -> dict[str, tuple[Category, ...]]:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InvalidParameter(f"categories must map columns to lists, got categories={shown(given)}")
    return {name: checked_categories(f"categories of {name!r}", listed) for name, listed in given.items()}


def _moderate(name: str, value: object) -> Fraction:
    number = positive(name, exact(name, value))
    if not Fraction(1, 10**6) <= number <= 10**6:
        raise InvalidParameter(f"{name} must be in [1e-6, 1e6], got {name}={shown(value)}")
    return number
