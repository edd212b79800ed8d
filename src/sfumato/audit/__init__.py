"""Audit: the privacy loss of the laws that are sampled, and attacks on what was released."""

from sfumato.audit.attacks import attack
from sfumato.audit.compare import Comparison, compare
from sfumato.audit.divergence import Between
from sfumato.audit.exact import Loss, WorstCase, exact, worst_case
from sfumato.audit.groups import worst_by_groups
from sfumato.audit.low_order import impossible_outputs, low_bits
from sfumato.audit.probes import edge_cases, seed_reuse
from sfumato.audit.result import AttackResult
from sfumato.audit.search import search, worst_found
from sfumato.audit.shipped import shipped
from sfumato.audit.statistical import Estimate, epsilon_lower_bound, statistical
from sfumato.audit.target import Target
from sfumato.audit.timing import timing

__all__ = [
    "AttackResult",
    "Between",
    "Comparison",
    "Estimate",
    "Loss",
    "Target",
    "WorstCase",
    "attack",
    "compare",
    "edge_cases",
    "epsilon_lower_bound",
    "exact",
    "impossible_outputs",
    "low_bits",
    "search",
    "seed_reuse",
    "shipped",
    "statistical",
    "timing",
    "worst_by_groups",
    "worst_case",
    "worst_found",
]
