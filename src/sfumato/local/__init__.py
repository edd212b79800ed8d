"""Local differential privacy: randomised response, where respondents protect themselves.

Designs: `binary`, `encodings`, `permanent` and `ranges`, all of them the `Channel` of `design`; `cost` has
their odds and epsilons, `records` their JSON. The respondent: `respondent`. The analyst: `planning` before
the survey, then `tally` and `estimate`, which leads to `shares` and `range_estimate`.
"""

from sfumato.local.binary import ForcedResponse, TwoSamples, UnrelatedQuestion, Warner
from sfumato.local.cost import LocalDP, questionnaire_cost
from sfumato.local.encodings import DirectEncoding, UnaryEncoding, encoding
from sfumato.local.estimate import TwoSampleEstimate, estimate, estimate_from_dict
from sfumato.local.permanent import PermanentUnary
from sfumato.local.planning import respondents_needed, standard_error
from sfumato.local.range_estimate import RangeEstimate
from sfumato.local.ranges import OneBitMean, Ranges
from sfumato.local.records import design_from_dict
from sfumato.local.respondent import Memory, Respondent
from sfumato.local.shares import ShareEstimate
from sfumato.local.table import Figure
from sfumato.local.tally import Tally, simulate

__all__ = [
    "DirectEncoding",
    "Figure",
    "ForcedResponse",
    "LocalDP",
    "Memory",
    "OneBitMean",
    "PermanentUnary",
    "RangeEstimate",
    "Ranges",
    "Respondent",
    "ShareEstimate",
    "Tally",
    "TwoSampleEstimate",
    "TwoSamples",
    "UnaryEncoding",
    "UnrelatedQuestion",
    "Warner",
    "design_from_dict",
    "encoding",
    "estimate",
    "estimate_from_dict",
    "questionnaire_cost",
    "respondents_needed",
    "simulate",
    "standard_error",
]
