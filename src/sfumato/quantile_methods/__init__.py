"""Private quantiles: one query, several methods that share one protocol."""

from sfumato.quantile_methods.equi_depth import EquiDepth
from sfumato.quantile_methods.histogram import FromHistogram
from sfumato.quantile_methods.independent import Independent
from sfumato.quantile_methods.interpolated import Interpolated
from sfumato.quantile_methods.inverse_sensitivity import InverseSensitivity
from sfumato.quantile_methods.joint import Joint
from sfumato.quantile_methods.methods import METHODS
from sfumato.quantile_methods.query import Quantiles
from sfumato.quantile_methods.recursive import Recursive
from sfumato.quantile_methods.registry import QUERIES, AnyQuery, read_query
from sfumato.quantile_methods.single import Single
from sfumato.quantile_methods.tree import Tree
from sfumato.quantile_methods.unbounded import Unbounded

__all__ = [
    "METHODS",
    "QUERIES",
    "AnyQuery",
    "EquiDepth",
    "FromHistogram",
    "Independent",
    "Interpolated",
    "InverseSensitivity",
    "Joint",
    "Quantiles",
    "Recursive",
    "Single",
    "Tree",
    "Unbounded",
    "read_query",
]
