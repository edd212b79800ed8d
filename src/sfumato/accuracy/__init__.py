"""Accuracy: theorems as functions of public numbers."""

from sfumato.accuracy.crossing import above_threshold_radius
from sfumato.accuracy.inverse_sensitivity import (
    bernoulli_inverse_level,
    bernoulli_inverse_loss,
    is_unbiased,
    recalibrated_fall,
    unbiased_lower_bound,
    worst_lower_bound,
)
from sfumato.accuracy.mean_limits import (
    MeanLimit,
    exponential_mean_limit,
    kolmogorov_distance,
    limit_distance_bound,
    truncated_laplace_level,
    wasserstein_distance,
)
from sfumato.accuracy.ratio import share_interval
from sfumato.accuracy.sampling import mean_bounds, proportion_bounds, variance_bounds
from sfumato.accuracy.selection import (
    exponential_choice_loss,
    exponential_mean_choice_loss,
    flip_choice_loss,
    flip_mean_choice_loss,
    published_choice_loss,
    published_mean_choice_loss,
)

__all__ = [
    "MeanLimit",
    "above_threshold_radius",
    "bernoulli_inverse_level",
    "bernoulli_inverse_loss",
    "exponential_choice_loss",
    "exponential_mean_choice_loss",
    "exponential_mean_limit",
    "flip_choice_loss",
    "flip_mean_choice_loss",
    "is_unbiased",
    "kolmogorov_distance",
    "limit_distance_bound",
    "mean_bounds",
    "proportion_bounds",
    "published_choice_loss",
    "published_mean_choice_loss",
    "recalibrated_fall",
    "share_interval",
    "truncated_laplace_level",
    "unbiased_lower_bound",
    "variance_bounds",
    "wasserstein_distance",
    "worst_lower_bound",
]
