"""Anonymity of tables: classes of rows that look alike, and what that does and does not protect."""

from sfumato.anonymity.anonymizing import Anonymized, anonymize
from sfumato.anonymity.goals import (
    Closeness,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    RecursiveDiversity,
)
from sfumato.anonymity.hierarchies import Cuts, Dates, Listed, Prefix, Ranges, Tree
from sfumato.anonymity.hierarchy_file import read_hierarchies
from sfumato.anonymity.measures import Measures, SensitiveMeasures, measure
from sfumato.anonymity.plan_file import AnonymityPlan, parse_anonymity, read_anonymity
from sfumato.anonymity.risk import Risk
from sfumato.anonymity.settings import Settings
from sfumato.anonymity.utility import Utility

__all__ = [
    "AnonymityPlan",
    "Anonymized",
    "Closeness",
    "Cuts",
    "Dates",
    "DistinctDiversity",
    "EntropyDiversity",
    "KAnonymity",
    "Listed",
    "Measures",
    "Prefix",
    "Ranges",
    "RecursiveDiversity",
    "Risk",
    "SensitiveMeasures",
    "Settings",
    "Tree",
    "Utility",
    "anonymize",
    "measure",
    "parse_anonymity",
    "read_anonymity",
    "read_hierarchies",
]
