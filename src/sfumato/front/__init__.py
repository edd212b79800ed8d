"""The front door: one-line private statistics, each a query answered in a session of its own."""

from sfumato.front.choices import choose, most_common
from sfumato.front.passing import first_passing
from sfumato.front.quantiles import deciles, find_bounds, median, quantile, quantiles
from sfumato.front.records import read_release
from sfumato.front.statistics import count, histogram, mean, proportion, sum, variance

__all__ = [
    "choose",
    "count",
    "deciles",
    "find_bounds",
    "first_passing",
    "histogram",
    "mean",
    "median",
    "most_common",
    "proportion",
    "quantile",
    "quantiles",
    "read_release",
    "sum",
    "variance",
]
