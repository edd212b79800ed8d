"""Hypothesis profiles: the same examples at every run, unless a wider search is asked for."""

import os

from hypothesis import HealthCheck, settings

# Deterministic, so that a red run is red again; HYPOTHESIS_PROFILE=search looks further, with new examples.
settings.register_profile("deterministic", derandomize=True, max_examples=60, deadline=None, print_blob=True)
settings.register_profile(
    "search", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "deterministic"))
