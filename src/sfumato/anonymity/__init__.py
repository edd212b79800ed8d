"""Anonymity of tables: classes of rows that look alike, and what that does and does not protect.

    result = anonymize(table, quasi=["age", "sex"], k=5, sensitive=["illness"], drop=["name"])
    result.table                      # of the kind of `table`, with every class of at least five rows
    result.report("report.html")      # what was lost, what is at risk, what is not protected
    measure(table, quasi=["age", "sex"], sensitive=["illness"])

This is not differential privacy. docs/anonymity.md has goals, hierarchies and algorithms.
"""

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
from sfumato.anonymity.linkage import Linkage
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
    "Linkage",
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
