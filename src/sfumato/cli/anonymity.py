"""`sfumato anonymity`: how anonymous a table is."""

from typing import Any

import typer

import sfumato
from sfumato.cli.anonymity_options import names_of, pair
from sfumato.cli.anonymize import Quasi, Sensitive, Table, Types
from sfumato.cli.options import Json, each_line, new_group
from sfumato.cli.output import output, print_json, stages

SCHEMA = 1

app = new_group("anonymity", "Measure how anonymous a table is; nothing is changed.")


@app.callback()
def about() -> None:
    """Measure how anonymous a table is; nothing is changed."""


@app.command(
    epilog=each_line(
        "Examples:",
        "  sfumato anonymity measure people.csv --quasi age,sex,postcode",
        "  sfumato anonymity measure out/anonymized.csv --quasi age,sex --sensitive illness",
        "",
        "Columns that are neither quasi nor sensitive may be known to others too: how many",
        "rows they single out is shown.",
        "",
        "The numbers are about the table and are not private: they are for those who",
        "hold it, and no part of a release.",
    )
)
def measure(
    table: Table,
    quasi: Quasi = None,
    sensitive: Sensitive = None,
    types: Types = None,
    as_json: Json = False,
) -> None:
    """Measure k, l, t and the risk of being found in a table."""
    from sfumato.anonymity.measures import measure as measured
    from sfumato.anonymity.table_files import read_table

    if quasi is None:
        raise typer.BadParameter("give --quasi, the columns that others may know of a person")
    roles: dict[str, Any] = {
        "quasi": names_of("--quasi", quasi),
        "sensitive": names_of("--sensitive", sensitive),
    }
    with stages("reading the table") as tell:
        stored = read_table(table)
        typed = stored.typed(
            [*roles["quasi"], *roles["sensitive"]], dict(pair("--type", text) for text in types or ())
        )
        tell("measuring")
        found = measured(typed, **roles)
    if as_json:
        print_json({"schema": SCHEMA, "version": sfumato.__version__, "table": str(table), **found.to_dict()})
        return
    output().print(str(found), soft_wrap=True)
