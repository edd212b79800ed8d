"""What is promised, what was done, and what it costs: numbers in, numbers out; no data and no noise."""

from sfumato.privacy.accountants import (
    Accountant,
    PureAccountant,
    SummedAccountant,
    ZCDPAccountant,
    accountant_for,
)
from sfumato.privacy.bounded_noise import bounded_noise_bound, bounded_noise_delta
from sfumato.privacy.calibration import gaussian_sigma_squared, laplace_scale
from sfumato.privacy.changes import for_changes, per_change
from sfumato.privacy.composition import Composition, compose
from sfumato.privacy.conversions import pure_to_zcdp, zcdp_delta, zcdp_epsilon, zcdp_rho, zcdp_to_approx
from sfumato.privacy.definitions import ZCDP, Amount, ApproxDP, Budget, PureDP, budget_from_dict
from sfumato.privacy.events import (
    ApproxEvent,
    BoundedNoiseEvent,
    ComposedEvent,
    ConcentratedEvent,
    Event,
    FreeEvent,
    GaussianEvent,
    GaussianVectorEvent,
    LaplaceEvent,
    OneShotEvent,
    PureEvent,
    RangeEvent,
    event_from_dict,
)
from sfumato.privacy.gaussian import gaussian_delta, gaussian_vector_delta
from sfumato.privacy.neighbours import Neighbours, check_neighbours
from sfumato.privacy.pld import pld_delta, pld_epsilon

__all__ = [
    "ZCDP",
    "Accountant",
    "Amount",
    "ApproxDP",
    "ApproxEvent",
    "BoundedNoiseEvent",
    "Budget",
    "ComposedEvent",
    "ConcentratedEvent",
    "Composition",
    "Event",
    "FreeEvent",
    "GaussianEvent",
    "GaussianVectorEvent",
    "LaplaceEvent",
    "Neighbours",
    "OneShotEvent",
    "PureAccountant",
    "PureDP",
    "PureEvent",
    "RangeEvent",
    "SummedAccountant",
    "ZCDPAccountant",
    "accountant_for",
    "bounded_noise_bound",
    "bounded_noise_delta",
    "budget_from_dict",
    "check_neighbours",
    "compose",
    "event_from_dict",
    "for_changes",
    "gaussian_delta",
    "gaussian_sigma_squared",
    "gaussian_vector_delta",
    "laplace_scale",
    "per_change",
    "pld_delta",
    "pld_epsilon",
    "pure_to_zcdp",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
    "zcdp_to_approx",
]
