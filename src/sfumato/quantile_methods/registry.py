"""Every kind of query by its name, for what was stored."""

from collections.abc import Mapping
from typing import Any

from sfumato.checks import one_of
from sfumato.quantile_methods.query import Quantiles
from sfumato.query import decode
from sfumato.statistics import STATISTICS, AnyStatistic, Choose

AnyQuery = AnyStatistic | Quantiles

QUERIES: dict[str, Any] = {**STATISTICS, Quantiles.name: Quantiles, Choose.name: Choose}


def read_query(name: str, parameters: Mapping[str, Any]) -> Any:
    """The query that was stored as its name and its public parameters.

    Guarantee:
        Equal to the query that was written; anything else is refused.

    >>> read_query("quantiles", {"budget": {"budget": {"type": "zcdp"}}})
    Traceback (most recent call last):
    ...
    sfumato.errors.InvalidParameter: ...
    """
    kind = QUERIES[one_of("statistic", name, tuple(QUERIES))]
    return kind(**{key: decode(value) for key, value in parameters.items()})
