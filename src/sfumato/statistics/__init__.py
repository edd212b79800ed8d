"""Statistics of one column: each a query with its public parameters, its law and its accuracy."""

from typing import Any

from sfumato.statistics.count import Count
from sfumato.statistics.histogram import Histogram
from sfumato.statistics.mean import Mean
from sfumato.statistics.proportion import Proportion
from sfumato.statistics.statistic import Statistic
from sfumato.statistics.sum import Sum
from sfumato.statistics.variance import Variance

__all__ = [
    "STATISTICS",
    "AnyStatistic",
    "Count",
    "Histogram",
    "Mean",
    "Proportion",
    "Statistic",
    "Sum",
    "Variance",
]

AnyStatistic = Count | Sum | Mean | Variance | Proportion | Histogram

STATISTICS: dict[str, Any] = {kind.name: kind for kind in (Count, Sum, Mean, Variance, Proportion, Histogram)}
