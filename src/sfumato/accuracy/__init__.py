"""Accuracy: theorems as functions of public numbers."""

from sfumato.accuracy.ratio import share_interval
from sfumato.accuracy.sampling import mean_bounds, proportion_bounds, variance_bounds

__all__ = ["mean_bounds", "proportion_bounds", "share_interval", "variance_bounds"]
