"""The table of methods: what a name means where a method is written as text.

Beside the protocol `Method`, each has `by_rule`, the options that public facts decide where they are left
open, and `rule_options`, their values under given facts.
"""

from dataclasses import fields
from typing import Any

from sfumato.checks import one_of, shown
from sfumato.errors import InvalidParameter
from sfumato.quantile_methods.equi_depth import EquiDepth
from sfumato.quantile_methods.histogram import FromHistogram
from sfumato.quantile_methods.independent import Independent
from sfumato.quantile_methods.interpolated import Interpolated
from sfumato.quantile_methods.inverse_sensitivity import InverseSensitivity
from sfumato.quantile_methods.joint import Joint
from sfumato.quantile_methods.recursive import Recursive
from sfumato.quantile_methods.single import Single
from sfumato.quantile_methods.tree import Tree
from sfumato.quantile_methods.unbounded import Unbounded

METHODS: dict[str, Any] = {
    kind.name: kind
    for kind in (
        Single,
        Independent,
        Joint,
        Interpolated,
        Recursive,
        FromHistogram,
        InverseSensitivity,
        Tree,
        EquiDepth,
        Unbounded,
    )
}


def read_method(given: Any) -> Any:
    """A method, from itself, its name, or its name with its options as they are stored.

    >>> read_method("recursive")
    Recursive(subcells=16777216, emphasis=Fraction(1, 64))
    >>> read_method(("recursive", ("subcells", 4)))
    Recursive(subcells=4, emphasis=Fraction(1, 64))
    """
    if isinstance(given, tuple(METHODS.values())):
        return given
    if isinstance(given, str):
        name = one_of("method", given, ("auto", *METHODS))
        return name if name == "auto" else METHODS[name]()
    if isinstance(given, tuple) and given and isinstance(given[0], str) and given[0] in METHODS:
        kind, options = METHODS[given[0]], given[1:]
        known = {field.name for field in fields(kind)}
        paired = all(isinstance(pair, tuple) and len(pair) == 2 for pair in options)
        if paired and all(isinstance(name, str) and name in known for name, _ in options):
            return kind(**dict(options))
    raise InvalidParameter(
        f"method must be one of {', '.join(('auto', *METHODS))}, got method={shown(given)}"
    )
