"""sfumato: statistics about people, published without exposing any of them.

The names below are all there is to import; each is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato import (
        accuracy,
        anonymity,
        audit,
        charts,
        federated,
        lab,
        laws,
        local,
        mechanisms,
        plan,
        privacy,
        public_data,
        quantile_methods,
    )
    from sfumato.data.conditions import Between
    from sfumato.data.counts import Counts
    from sfumato.data.dataset import Dataset
    from sfumato.data.expressions import col, when
    from sfumato.data.field import Field
    from sfumato.errors import (
        BudgetExceeded,
        EngineFault,
        InvalidParameter,
        LedgerDamaged,
        LedgerUnavailable,
        MissingBounds,
        MissingExtra,
        NotSupported,
        RequestConflict,
        SchemaMismatch,
        SfumatoError,
    )
    from sfumato.front import (
        choose,
        count,
        deciles,
        find_bounds,
        first_passing,
        histogram,
        mean,
        median,
        most_common,
        proportion,
        quantile,
        quantiles,
        read_release,
        sum,
        variance,
    )
    from sfumato.grid import Edges, Grid
    from sfumato.grouped import GroupedRelease
    from sfumato.groups import Groups
    from sfumato.ledger import MemoryLedger, SqlLedger
    from sfumato.privacy import ZCDP, ApproxDP, PureDP
    from sfumato.publication import Publication
    from sfumato.publishing import publish
    from sfumato.quantile_methods import Quantiles
    from sfumato.question import Question
    from sfumato.release import Release
    from sfumato.session import Session
    from sfumato.statistics import (
        Choose,
        Count,
        ExponentialMean,
        FirstPassing,
        Histogram,
        InverseMean,
        InverseProportion,
        Mean,
        MostCommon,
        Proportion,
        Sum,
        Variance,
    )

__version__ = "0.2.0"

_HOMES = {
    "front": [
        "choose",
        "count",
        "deciles",
        "find_bounds",
        "first_passing",
        "histogram",
        "mean",
        "median",
        "most_common",
        "proportion",
        "quantile",
        "quantiles",
        "read_release",
        "sum",
        "variance",
    ],
    "quantile_methods": ["Quantiles"],
    "statistics": [
        "Choose",
        "Count",
        "ExponentialMean",
        "FirstPassing",
        "Histogram",
        "InverseMean",
        "InverseProportion",
        "Mean",
        "MostCommon",
        "Proportion",
        "Sum",
        "Variance",
    ],
    "session": ["Session"],
    "question": ["Question"],
    "grouped": ["GroupedRelease"],
    "groups": ["Groups"],
    "publishing": ["publish"],
    "publication": ["Publication"],
    "release": ["Release"],
    "ledger": ["MemoryLedger", "SqlLedger"],
    "privacy": ["ApproxDP", "PureDP", "ZCDP"],
    "grid": ["Edges", "Grid"],
    "data.conditions": ["Between"],
    "data.counts": ["Counts"],
    "data.dataset": ["Dataset"],
    "data.expressions": ["col", "when"],
    "data.field": ["Field"],
    "errors": [
        "BudgetExceeded",
        "EngineFault",
        "InvalidParameter",
        "LedgerDamaged",
        "LedgerUnavailable",
        "MissingBounds",
        "MissingExtra",
        "NotSupported",
        "RequestConflict",
        "SchemaMismatch",
        "SfumatoError",
    ],
}
_FOLDERS = ["accuracy", "anonymity", "audit", "charts", "federated", "lab", "laws", "local", "mechanisms"]
_FOLDERS += ["plan", "privacy", "public_data", "quantile_methods"]
_HOME = {name: f"sfumato.{home}" for home, names in _HOMES.items() for name in names}

__all__ = [
    "ApproxDP",
    "Between",
    "BudgetExceeded",
    "Choose",
    "Count",
    "Counts",
    "Dataset",
    "Edges",
    "EngineFault",
    "ExponentialMean",
    "Field",
    "FirstPassing",
    "Grid",
    "GroupedRelease",
    "Groups",
    "Histogram",
    "InvalidParameter",
    "InverseMean",
    "InverseProportion",
    "LedgerDamaged",
    "LedgerUnavailable",
    "Mean",
    "MemoryLedger",
    "MissingBounds",
    "MissingExtra",
    "MostCommon",
    "NotSupported",
    "Proportion",
    "Publication",
    "PureDP",
    "Quantiles",
    "Question",
    "Release",
    "RequestConflict",
    "SchemaMismatch",
    "Session",
    "SfumatoError",
    "SqlLedger",
    "Sum",
    "Variance",
    "ZCDP",
    "accuracy",
    "anonymity",
    "audit",
    "charts",
    "choose",
    "col",
    "count",
    "deciles",
    "federated",
    "find_bounds",
    "first_passing",
    "histogram",
    "lab",
    "laws",
    "local",
    "mean",
    "mechanisms",
    "median",
    "most_common",
    "plan",
    "privacy",
    "proportion",
    "public_data",
    "publish",
    "quantile",
    "quantile_methods",
    "quantiles",
    "read_release",
    "sum",
    "variance",
    "when",
]


def __getattr__(name: str) -> Any:
    # Loading on first use keeps `import sfumato` as light as the smallest of its parts.
    if name in _FOLDERS:
        return import_module(f"sfumato.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
