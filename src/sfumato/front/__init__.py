"""The front door: one-line private statistics, each a query answered in a session of its own."""

from sfumato.front.quantiles import deciles, find_bounds, median, quantile, quantiles
from sfumato.front.records import read_release
from sfumato.front.statistics import count, histogram, mean, proportion, sum, variance

__all__ = [
    "count",
    "deciles",
    "find_bounds",
    "histogram",
    "mean",
    "median",
    "proportion",
    "quantile",
    "quantiles",
    "read_release",
    "sum",
    "variance",
]
