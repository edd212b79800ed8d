"""Releases read back from what was stored."""

import json
from collections.abc import Mapping
from typing import Any

from sfumato.checks import shown
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.quantile_methods import read_query
from sfumato.release import FORMAT, Release


def read_release(stored: str | Mapping[str, Any]) -> Release:
    """The release that `to_json` or `to_dict` wrote, with working intervals.

    Guarantee:
        Equal to the release that was written; reading costs nothing and looks at no data.

    Raises:
        InvalidParameter: the record is not one that this version wrote.

    >>> import sfumato as sf
    >>> release = sf.count([1, 2], neighbours="add-remove", epsilon=1)
    >>> sf.read_release(release.to_json()) == release
    True
    """
    try:
        record = json.loads(stored) if isinstance(stored, str) else stored
        if type(record["format"]) is not int or record["format"] != FORMAT:
            raise InvalidParameter(f"format must be {FORMAT}, got format={shown(record['format'])}")
        query = read_query(record["statistic"], record["parameters"])
        outcome = tuple(int(part) for part in record["outcome"])
        # Only what `to_dict` wrote is read: text that writes back the same, and a table that can be drawn.
        if not isinstance(query.column, str) or record["outcome"] != [str(part) for part in outcome]:
            raise ValueError
        # The relation was known when the release was drawn; a choice would take another for none.
        if record["parameters"]["neighbours"] is None or not query.possible(outcome):
            raise ValueError
        release = Release(query, outcome, private=record["private"] is True)
        # A choice that the record leaves open would be made anew.
        if release.query != query:
            raise ValueError
        if len(release.table()) - 1 != len(query.labels()):
            raise ValueError
        release.to_dict()  # whatever a reader may ask for can be computed
    except InvalidParameter:
        raise
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        NotSupported,
    ):
        raise InvalidParameter("stored must be a release that to_json or to_dict wrote") from None
    return release
