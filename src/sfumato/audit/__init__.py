"""Audit: the privacy loss of the laws that are sampled, and attacks on what was released."""

from sfumato.audit.attacks import epsilon_lower_bound, impossible_outputs
from sfumato.audit.exact import Loss, WorstCase, exact, worst_case

__all__ = ["Loss", "WorstCase", "epsilon_lower_bound", "exact", "impossible_outputs", "worst_case"]
