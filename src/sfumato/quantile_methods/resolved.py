"""What a query of quantiles came to wherever it left a choice: stored with what was drawn."""

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

from sfumato.checks import boolean, checked_text, keep, shown
from sfumato.errors import InvalidParameter
from sfumato.quantile_methods.framed import Framed
from sfumato.quantile_methods.method import Facts, Method, Points
from sfumato.quantile_methods.methods import METHODS, read_method
from sfumato.quantile_methods.verified import Verified
from sfumato.statistics.mean_spread import share_of

# No reason is longer.
MOST_SAID = 200


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """The choices that "auto" and a default grid stood for when an outcome was drawn.

    A later version may choose otherwise. Integers that were drawn mean what they meant under these choices.

    Args:
        method: what answers the orders.
        said: what is said of the choice.
        points: how fine the grid is.
        frame: the part of the budget for two outer orders; 0 for none, "auto" before their number is known.
        outer: how fine the grid of these is; None without them, or for what their part can search.
        verify: the part of the budget that verifies; 0 for none.
        count: the part of the budget that counted the values first; 0 for none.
        pure: whether an approximate budget is divided among the rows of a person by its epsilon.
    """

    name: ClassVar[str] = "resolved"

    method: Any
    said: str
    points: Points
    frame: Fraction | Literal["auto"]
    outer: Points | None = None
    verify: Fraction
    count: Fraction = Fraction(0)
    pure: bool = False

    def __post_init__(self) -> None:
        method = read_method(self.method)
        if method == "auto":
            raise InvalidParameter("method of what was resolved must be named, got method='auto'")
        keep(self, method=method, points=_read(Points, self.points))
        if not checked_text("said", self.said, MOST_SAID).isprintable():
            raise InvalidParameter(f"said must be printable, got said={shown(self.said)}")
        if self.outer is not None:
            keep(self, outer=_read(Points, self.outer))
        shares = ("verify", "count") if self.frame == "auto" else ("frame", "verify", "count")
        keep(self, **{name: share_of(name, getattr(self, name)) for name in shares})
        boolean("pure", self.pure)

    def completed(self, facts: Facts) -> "Resolved":
        """The same with what follows from these facts: the outer orders, and open options of the method."""
        whole, done = self.whole, self
        if isinstance(whole, Verified):
            facts, whole = whole.own(facts), whole.method
        if isinstance(whole, Framed):
            done = replace(self, frame=whole.part(facts), outer=whole.outer(facts).made)
            facts = whole.own(facts)
        rules = self.method.rule_options(facts)
        return replace(
            done, method=replace(self.method, **{name: rules[name] for name in _open(self.method)})
        )

    @property
    def whole(self) -> Method:
        """The method with its outer orders, and verified unless it tells its own interval."""
        method: Any = self.method
        if self.frame:
            method = Framed(method=method, share=self.frame, points=self.outer)
        told = hasattr(method, "interval")
        return Verified(method=method, share=self.verify) if self.verify and not told else method


def read_resolved(given: Any) -> Resolved | None:
    """What was resolved, from itself or as it is stored; None for nothing yet."""
    found: Resolved | None = None if given is None else _read(Resolved, given)
    return found


def longest_method() -> Any:
    """The method with the longest record, without options of its own."""
    return max((with_longest(kind()) for kind in METHODS.values()), key=lambda method: len(repr(method)))


def with_longest(method: Any) -> Any:
    """A method with the longest value of each option that is left open."""
    return replace(method, **{name: method.by_rule[name] for name in _open(method)})


def may_become(asked: Any, method: Any) -> bool:
    """Whether a method is the one that was requested, with values for all options that were left open."""
    if _open(method):
        return False
    if asked == "auto":
        return bool(method.needs_bounds)
    if type(asked) is not type(method):
        return False
    return bool(replace(asked, **{name: getattr(method, name) for name in _open(asked)}) == method)


def _open(method: Any) -> list[str]:
    return [name for name in method.by_rule if getattr(method, name) in (None, "auto")]


def _read(kind: Any, given: Any) -> Any:
    """A value from itself, or from its name and all of its parameters as they are stored."""
    if isinstance(given, kind):
        return given
    pairs = given[1:] if isinstance(given, tuple) and given[:1] == (kind.name,) else (None,)
    paired = all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs)
    if paired and [name for name, _ in pairs] == [field.name for field in fields(kind)]:
        return kind(**dict(pairs))
    raise InvalidParameter(f"{kind.name} must be as it was written, got {shown(given)}")
