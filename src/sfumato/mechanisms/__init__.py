"""Mechanisms: frozen public parameters, the event that they cost, and the law that they draw from."""

from sfumato.laws.selection import Peeled, Selection
from sfumato.mechanisms.above_threshold import AboveThreshold
from sfumato.mechanisms.additive import Additive, Noise, Sensitivity, additive
from sfumato.mechanisms.bounded_noise import BoundedAnswers, BoundedComparison, BoundedNoiseMechanism
from sfumato.mechanisms.exponential import ExponentialMechanism, TopMechanism
from sfumato.mechanisms.gaussian import GaussianMechanism
from sfumato.mechanisms.geometric import ClampedGeometric
from sfumato.mechanisms.laplace import LaplaceMechanism
from sfumato.mechanisms.partition_selection import PartitionSelection
from sfumato.mechanisms.sparse import Sparse, SparseMechanism
from sfumato.mechanisms.transcripts import Transcripts
from sfumato.mechanisms.wasserstein import OneShotRelease, WassersteinMechanism
from sfumato.mechanisms.zero_sum import ZeroSumMechanism

# Every mechanism that disturbs a number: the contract tests read it, so that none misses the exact audit.
MECHANISMS: tuple[type[LaplaceMechanism] | type[GaussianMechanism] | type[ClampedGeometric], ...] = (
    LaplaceMechanism,
    GaussianMechanism,
    ClampedGeometric,
)

__all__ = [
    "MECHANISMS",
    "AboveThreshold",
    "Additive",
    "BoundedAnswers",
    "BoundedComparison",
    "BoundedNoiseMechanism",
    "ClampedGeometric",
    "ExponentialMechanism",
    "GaussianMechanism",
    "LaplaceMechanism",
    "Noise",
    "OneShotRelease",
    "PartitionSelection",
    "Peeled",
    "Selection",
    "Sensitivity",
    "Sparse",
    "SparseMechanism",
    "TopMechanism",
    "Transcripts",
    "WassersteinMechanism",
    "ZeroSumMechanism",
    "additive",
]
