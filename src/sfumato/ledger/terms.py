"""What is agreed when a data set is opened, and the names that it is agreed under."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, select

from sfumato.checks import shown
from sfumato.errors import InvalidParameter
from sfumato.ledger.chain import (
    Act,
    Standing,
    Total,
    budget_of,
    canonical,
    check_cap,
    listed,
    listed_analysts,
    listed_numbers,
)
from sfumato.ledger.memory import check_budget
from sfumato.ledger.schema import entries
from sfumato.privacy import Budget, Neighbours, check_neighbours
from sfumato.privacy.records import short_text


def opening(
    dataset: str,
    *,
    cap: Budget,
    neighbours: Neighbours,
    unit: str = "row",
    analysts: Iterable[str] | None = None,
) -> Act:
    """What `SqlLedger.open` enters, after all checks that need no ledger."""
    names = None if analysts is None else analyst_names(analysts)
    _require_unlike("analyst", names or (), ())
    facts = {
        "cap": listed(check_cap(check_budget("cap", cap))),
        "neighbours": check_neighbours(neighbours),
        "unit": short_text("unit", unit),
        **({} if names is None else {"analysts": names}),
    }
    return Act("open", short_text("dataset", dataset), canonical(facts))


def check_terms(facts: Mapping[str, Any]) -> None:
    """Raise unless these can be the terms of a data set."""
    budget_of(*listed_numbers(facts.get("cap")))
    check_neighbours(facts.get("neighbours"))
    short_text("unit", facts.get("unit"))
    listed_analysts([facts])


def require_same_terms(kept: Mapping[str, Any], standing: Standing | None, act: Act) -> None:
    """Refuse to open a data set again on other terms than those that are kept; its cap may have grown."""
    given = json.loads(act.payload)
    for name in ("neighbours", "unit"):
        if kept[name] != given[name]:
            raise InvalidParameter(
                f"{name} must be that of the ledger, {kept[name]!r}, got {name}={given[name]!r}"
            )
    assert standing is not None
    assert standing.total.cap is not None
    kept_cap = budget_of(standing.total.fields, standing.total.cap)
    cap = budget_of(*listed_numbers(given["cap"]))
    if cap != kept_cap:
        raise InvalidParameter(
            f"cap must be that of the ledger, {kept_cap!r}, or be renewed, got cap={cap!r}"
        )
    if "analysts" in given and frozenset(given["analysts"]) != standing.analysts:
        listed_now = "everybody" if standing.analysts is None else sorted(standing.analysts)
        raise InvalidParameter(
            f"analysts must be those of the ledger, {listed_now}, or be admitted, got {given['analysts']}"
        )


def analyst_names(analysts: Iterable[str]) -> list[str]:
    """The names of a list, in order."""
    if isinstance(analysts, str) or not isinstance(analysts, Iterable):
        raise InvalidParameter(f"analysts must be a list of names, got analysts={shown(analysts)}")
    return sorted({short_text("analyst", name) for name in analysts})


def _require_unlike(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    from sfumato.ledger.names import look_alike  # its tables are read for new names only

    others = list(known)
    for name in names:
        found = None if name in others else look_alike(name, others)
        if found is not None:
            raise InvalidParameter(
                f"{kind} must not look like {found!r}, which is another name; got {kind}={name!a}. Use the "
                "name that is there, or one that nobody takes for it"
            )
        others.append(name)


def check_names(connection: Connection, act: Act, standing: Standing | None, person: Total | None) -> None:
    """Refuse a new name that looks like one in the ledger: both would have budgets of their own."""
    if act.kind == "open" and standing is None:
        opened = select(entries.c.dataset).where(entries.c.kind == "open").order_by(entries.c.sequence)
        _require_unlike("dataset", [act.dataset], connection.scalars(opened))
    new = [act.analyst] if act.analyst is not None and person is None else []
    if act.kind in ("open", "admit"):
        new += json.loads(act.payload).get("analysts", [])
    if new:
        chosen = select(entries.c.analyst).where(entries.c.dataset == act.dataset).distinct()
        known = {name for name in connection.scalars(chosen) if name is not None}
        if standing is not None and standing.analysts is not None:
            known |= standing.analysts
        _require_unlike("analyst", new, sorted(known))
