"""Accuracy: theorems as functions of public numbers."""

from sfumato.accuracy.convergence import (
    central_normaliser,
    characteristic_at,
    characteristic_bound,
    characteristic_distance,
    convergence_rate,
    independent_gap_tail,
    published_even_normaliser,
    published_independent_gap_limit,
)
from sfumato.accuracy.crossing import (
    above_threshold_alpha,
    above_threshold_radius,
    published_above_threshold_alpha,
    published_translated_alpha,
)
from sfumato.accuracy.curves import curves
from sfumato.accuracy.histogram_method import (
    histogram_mean_error,
    histogram_quantile_failure,
    published_histogram_closed_mean_error,
    published_histogram_failure,
    published_histogram_mean_error,
    published_histogram_rank_mean_error,
)
from sfumato.accuracy.inverse import Found, epsilon_for
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
from sfumato.accuracy.mean_risk import gaussian_to_laplace, mean_risk, naive_median_loss
from sfumato.accuracy.noisy_sampling import noisy_proportion_bounds, noisy_share_bounds
from sfumato.accuracy.normal_noise import normal_laplace_tail, spread_interval
from sfumato.accuracy.order_statistics import (
    exact_quantile_concentration,
    min_count,
    published_min_count,
    published_quantile_concentration,
    quantile_concentration,
)
from sfumato.accuracy.piecewise import expected_absolute_error, mean_squared_error
from sfumato.accuracy.plot import plot
from sfumato.accuracy.proportion_losses import (
    bernoulli_inverse_equivalent,
    clamped_geometric_equivalent,
    clamped_geometric_loss,
    published_bernoulli_inverse_curve,
    published_bernoulli_inverse_equivalent,
    published_unbiased_lower_bound,
)
from sfumato.accuracy.quantile_smooth import (
    inverse_sensitivity_population_tail,
    inverse_sensitivity_quantile_tail,
)
from sfumato.accuracy.quantile_tail import (
    epsilon_for_rank,
    epsilon_for_value,
    gap_ratio,
    grid_rank_tail,
    published_epsilon_for_value,
    published_quantile_rank_radius,
    quantile_rank_radius,
    quantile_rank_tail,
    quantile_rank_tail_exact,
)
from sfumato.accuracy.ratio import share_interval
from sfumato.accuracy.sampling import mean_bounds, proportion_bounds, variance_bounds
from sfumato.accuracy.scenario import Scenario
from sfumato.accuracy.selection import (
    exponential_choice_loss,
    exponential_mean_choice_loss,
    flip_choice_loss,
    flip_mean_choice_loss,
    published_choice_loss,
    published_mean_choice_loss,
)
from sfumato.accuracy.split import Split, split
from sfumato.accuracy.statement import Accuracy
from sfumato.accuracy.tempering import TemperedLimit, tempered_limit

__all__ = [
    "Accuracy",
    "Found",
    "MeanLimit",
    "Scenario",
    "Split",
    "TemperedLimit",
    "above_threshold_alpha",
    "above_threshold_radius",
    "bernoulli_inverse_equivalent",
    "bernoulli_inverse_level",
    "bernoulli_inverse_loss",
    "central_normaliser",
    "characteristic_at",
    "characteristic_bound",
    "characteristic_distance",
    "clamped_geometric_equivalent",
    "clamped_geometric_loss",
    "convergence_rate",
    "curves",
    "epsilon_for",
    "epsilon_for_rank",
    "epsilon_for_value",
    "exact_quantile_concentration",
    "expected_absolute_error",
    "exponential_choice_loss",
    "exponential_mean_choice_loss",
    "exponential_mean_limit",
    "flip_choice_loss",
    "flip_mean_choice_loss",
    "gap_ratio",
    "gaussian_to_laplace",
    "grid_rank_tail",
    "histogram_mean_error",
    "histogram_quantile_failure",
    "independent_gap_tail",
    "inverse_sensitivity_population_tail",
    "inverse_sensitivity_quantile_tail",
    "is_unbiased",
    "kolmogorov_distance",
    "limit_distance_bound",
    "mean_bounds",
    "mean_risk",
    "mean_squared_error",
    "min_count",
    "naive_median_loss",
    "noisy_proportion_bounds",
    "noisy_share_bounds",
    "normal_laplace_tail",
    "plot",
    "proportion_bounds",
    "published_above_threshold_alpha",
    "published_bernoulli_inverse_curve",
    "published_bernoulli_inverse_equivalent",
    "published_choice_loss",
    "published_epsilon_for_value",
    "published_even_normaliser",
    "published_histogram_closed_mean_error",
    "published_histogram_failure",
    "published_histogram_mean_error",
    "published_histogram_rank_mean_error",
    "published_independent_gap_limit",
    "published_mean_choice_loss",
    "published_min_count",
    "published_quantile_concentration",
    "published_quantile_rank_radius",
    "published_translated_alpha",
    "published_unbiased_lower_bound",
    "quantile_concentration",
    "quantile_rank_radius",
    "quantile_rank_tail",
    "quantile_rank_tail_exact",
    "recalibrated_fall",
    "share_interval",
    "split",
    "spread_interval",
    "tempered_limit",
    "truncated_laplace_level",
    "unbiased_lower_bound",
    "variance_bounds",
    "wasserstein_distance",
    "worst_lower_bound",
]
