"""Mechanisms: frozen public parameters, the event that they cost, and the law that they draw from."""

from sfumato.mechanisms.additive import Additive, Noise, Sensitivity, additive
from sfumato.mechanisms.gaussian import GaussianMechanism
from sfumato.mechanisms.geometric import ClampedGeometric
from sfumato.mechanisms.laplace import LaplaceMechanism

__all__ = [
    "Additive",
    "ClampedGeometric",
    "GaussianMechanism",
    "LaplaceMechanism",
    "Noise",
    "Sensitivity",
    "additive",
]
