"""Statistics of one column: each a query with its public parameters, its law and its accuracy."""

from typing import Any

from sfumato.statistics.choose import Choose
from sfumato.statistics.count import Count
from sfumato.statistics.exponential_mean import ExponentialMean
from sfumato.statistics.first_passing import FirstPassing
from sfumato.statistics.histogram import Histogram
from sfumato.statistics.inverse_mean import InverseMean
from sfumato.statistics.inverse_proportion import InverseProportion
from sfumato.statistics.mean import Mean
from sfumato.statistics.most_common import MostCommon
from sfumato.statistics.proportion import Proportion
from sfumato.statistics.statistic import Statistic
from sfumato.statistics.sum import Sum
from sfumato.statistics.variance import Variance

__all__ = [
    "STATISTICS",
    "AnyStatistic",
    "Choose",
    "Count",
    "ExponentialMean",
    "FirstPassing",
    "Histogram",
    "InverseMean",
    "InverseProportion",
    "Mean",
    "MostCommon",
    "Proportion",
    "Statistic",
    "Sum",
    "Variance",
]

DrawnWhole = InverseMean | InverseProportion | ExponentialMean
AnyStatistic = Count | Sum | Mean | Variance | Proportion | Histogram | MostCommon | FirstPassing | DrawnWhole

STATISTICS: dict[str, Any] = {
    kind.name: kind for kind in (Count, Sum, Mean, Variance, Proportion, Histogram, MostCommon, FirstPassing)
}
STATISTICS |= {kind.name: kind for kind in (InverseMean, InverseProportion, ExponentialMean)}
