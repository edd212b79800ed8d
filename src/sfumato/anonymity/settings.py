"""What an anonymisation is asked to do: the roles of columns, goals and a method, checked together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sfumato.anonymity.goals import (
    Closeness,
    DistinctDiversity,
    EntropyDiversity,
    Goal,
    KAnonymity,
    RecursiveDiversity,
)
from sfumato.anonymity.rows import column_names
from sfumato.checks import compact, exact, one_of, shown
from sfumato.checks import keep as set_fields
from sfumato.errors import InvalidParameter

METHODS = ("mondrian", "mondrian-relaxed", "full-domain", "datafly")
SUPPRESSED = ("remove", "star")
ORDERS = ("sorted", "kept")
ROLES = ("quasi", "sensitive", "keep", "drop")
METRICS = ("loss", "discernibility", "height")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What an anonymisation is asked to do: roles of columns, goals and method.

    Guarantee:
        Holds public facts alone: names, goals and hierarchies, no value of the table beyond those that a
        hierarchy names. No differential privacy is claimed.

    Args:
        quasi, goals, sensitive, keep, drop, method, hierarchies, suppression, suppressed, order, metric: as
            for `anonymize`, with `k` among the goals.

    Raises:
        InvalidParameter: a setting breaks a rule, or two settings do not go together.

    >>> Settings(quasi=("age",), goals=(KAnonymity(5),)).k
    5
    """

    quasi: tuple[str, ...]
    goals: tuple[Goal, ...]
    sensitive: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    method: str = "mondrian"
    hierarchies: Mapping[str, Any] = field(default_factory=dict)
    suppression: Fraction = Fraction(0)
    suppressed: str = "remove"
    order: str = "sorted"
    metric: str = "loss"

    def __post_init__(self) -> None:
        roles = {role: column_names(role, getattr(self, role)) for role in ROLES}
        if not roles["quasi"]:
            raise InvalidParameter("quasi must name at least one column, got quasi=()")
        goals = listed_goals(None, self.goals)
        if not goals:
            raise InvalidParameter("goals must have at least one goal, or k be given, got neither")
        about = tuple(name for goal in goals for name in goal.columns)
        roles["sensitive"] = tuple(dict.fromkeys((*roles["sensitive"], *about)))
        _apart(roles)
        one_of("method", self.method, METHODS)
        one_of("suppressed", self.suppressed, SUPPRESSED)
        one_of("order", self.order, ORDERS)
        one_of("metric", self.metric, METRICS)
        share = exact("suppression", self.suppression)
        if not 0 <= share <= 1:
            raise InvalidParameter(
                f"suppression must be in [0, 1], the share of rows that may be suppressed, "
                f"got suppression={shown(self.suppression)}"
            )
        given: object = self.hierarchies
        if not isinstance(given, Mapping):
            raise InvalidParameter(
                f"hierarchies must be a mapping from columns to hierarchies, got hierarchies={shown(given)}"
            )
        hierarchies = dict(given)
        for name, one in hierarchies.items():
            if name not in roles["quasi"]:
                raise InvalidParameter(
                    f"hierarchies must be of quasi-identifiers ({', '.join(roles['quasi'])}), got {name!r}"
                )
            if not callable(getattr(one, "levels_of", None)):
                raise InvalidParameter(
                    f"hierarchies must be such as Ranges(width=5, levels=2), got {shown(one)} for {name!r}"
                )
        set_fields(self, **roles, goals=goals, suppression=share, hierarchies=hierarchies)
        self._check_method()

    def _check_method(self) -> None:
        from sfumato.anonymity.hierarchies import Tree

        if self.method.startswith("mondrian"):
            others = [name for name, one in self.hierarchies.items() if not isinstance(one, Tree)]
            if others:
                raise InvalidParameter(
                    f"hierarchies must be trees for method={self.method!r}, which finds ranges itself, got "
                    f"another one for {others[0]!r}; 'full-domain' and 'datafly' take all kinds"
                )
            if self.suppression:
                raise InvalidParameter(
                    f"suppression must be 0 for method={self.method!r}, which suppresses no row, got "
                    f"suppression={compact(self.suppression)}"
                )

    @property
    def role_of(self) -> dict[str, str]:
        """The role of every column that has one."""
        return {name: role for role in ROLES for name in getattr(self, role)}

    @property
    def k(self) -> int:
        """The least number of rows that a class must have: 1 unless a goal asks for more."""
        return max((goal.k for goal in self.goals if isinstance(goal, KAnonymity)), default=1)


def listed_goals(k: object, goals: object) -> tuple[Goal, ...]:
    """The goals with k among them; `k` is 0, True or 2.5 in no table."""
    if isinstance(goals, str | Mapping) or not isinstance(goals, Sequence):
        raise InvalidParameter(
            f"goals must be a list of goals, such as [KAnonymity(5)], got goals={shown(goals)}"
        )
    for goal in goals:
        if not callable(getattr(goal, "bind", None)):
            raise InvalidParameter(
                f"goals must be goals, such as KAnonymity(5), got {shown(goal)} among them"
            )
    own = () if k is None else (KAnonymity(k),)  # type: ignore[arg-type]  # reason: checked by the goal
    return (*own, *goals)


def goal_words(goal: Goal) -> str:
    """A goal for people.

    >>> goal_words(KAnonymity(5))
    'at least 5 rows in each class'
    """
    match goal:
        case KAnonymity():
            return f"at least {goal.k:,} row{'s' * (goal.k > 1)} in each class"
        case DistinctDiversity():
            return f"at least {goal.l:,} different values of {goal.column} in each class"
        case EntropyDiversity():
            return f"entropy of {goal.column} in each class at least that of {compact(goal.l)} equal values"
        case RecursiveDiversity():
            times, first = compact(goal.c), "" if goal.l == 1 else f" but the {goal.l - 1:,} most frequent"
            return f"the most frequent {goal.column} of each class below {times} times all{first}"
        case Closeness():
            return f"{goal.column} in each class within {compact(goal.t)} of the whole table (t-closeness)"
    return str(goal)


def _apart(roles: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse a column of two roles, and one named twice."""
    seen: dict[str, str] = {}
    for role, names in roles.items():
        for name in names:
            if name in seen:
                both = role if seen[name] == role else f"{seen[name]} and {role}"
                raise InvalidParameter(f"a column must have one role, got {name!r} twice in {both}")
            seen[name] = role
