"""What is asked of a data set: a statistic, of which rows, by which groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.checks import checked_text, shown
from sfumato.data.conditions import read_conditions
from sfumato.data.expressions import Expression
from sfumato.errors import InvalidParameter
from sfumato.groups import Groups
from sfumato.query import Query


@dataclass(frozen=True, kw_only=True)
class Question:
    """A statistic of a part of the rows, or of each group of them.

    Guarantee:
        Public parameters only; nothing here reads data.

    Args:
        query: the statistic, with what it may cost. Asked by groups, all groups together cost this once.
        where: the rows that count, as public conditions on other columns: a category, several, or `Between`;
            or an expression such as `(sf.col("age") >= 18) & (sf.col("team") == "red")`.
        by: the columns whose declared categories make the groups; a group without rows is answered too.
        groups: which groups are answered, where it is not all of these: `Groups(...)`.
        name: what the result is called.

    >>> from sfumato.privacy import PureDP
    >>> from sfumato.statistics import Mean
    >>> Question(query=Mean(column="salary", budget=PureDP(1)), by=["team"]).by
    ('team',)
    """

    query: Query
    where: Mapping[str, Any] | Expression = field(default_factory=dict)
    by: Sequence[str] = ()
    groups: Groups | None = None
    name: str = ""

    @property
    def title(self) -> str:
        """The name given, or what is asked in words."""
        return self.name or f"{self.query.name} of {self.query.column}"

    def __post_init__(self) -> None:
        if not hasattr(type(self.query), "bind"):
            raise InvalidParameter(f"query must be a statistic such as Mean(...), got {shown(self.query)}")
        if not isinstance(self.where, Mapping | Expression):
            raise InvalidParameter(f"where must map columns to conditions, got where={shown(self.where)}")
        if isinstance(self.by, str) or not all(isinstance(name, str) for name in self.by):
            raise InvalidParameter(f"by must be a list of column names, got by={shown(self.by)}")
        for column in self.by:
            checked_text("by", column)
        if isinstance(self.where, Mapping):
            object.__setattr__(self, "where", dict(self.where))
            read_conditions(self.where)
        checked_text("name", self.name)
        object.__setattr__(self, "by", tuple(self.by))
        if len(set(self.by)) < len(self.by):
            raise InvalidParameter(f"by must be distinct column names, got by={shown(self.by)}")
        if self.groups is not None:
            object.__setattr__(self, "groups", Groups.read(self.groups))
            if not self.by:
                raise InvalidParameter("by must name at least one column where groups are given, got none")
