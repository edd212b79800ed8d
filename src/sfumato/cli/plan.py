"""`sfumato plan`: a plan begun, checked, previewed, and its schema for editors."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

import sfumato
from sfumato.checks import compact, readable
from sfumato.cli.options import Force, Json, PlanFile, each_line, new_group
from sfumato.cli.output import grid_of, in_symbols, output, print_json, stages, table
from sfumato.cli.outputs import write_new
from sfumato.release import printable

SCHEMA = 1
Rows = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=0, help="A public guess of the number of rows; it replaces that of the plan."
    ),
]

app = new_group("plan", "Begin, check and preview a plan: what is asked, of which data, at which price.")


@app.command(
    epilog=each_line(
        "Example: sfumato plan new people.csv",
        "",
        "Bounds, categories and the budget are for you to fill in, from public",
        "knowledge: read from the data, they would give the data away.",
    )
)
def new(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="The data: CSV, Parquet or Arrow, or a folder.",
            show_default=False,
        ),
    ],
    target: Annotated[
        Path, typer.Option("-o", "--output", metavar="PLAN", help="Where to write the plan.")
    ] = Path("plan.toml"),
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a commented plan to complete, from the header and the types alone."""
    from sfumato import plan

    write_new(target, plan.starter(file, beside=target).encode(), force=force)
    if as_json:
        print_json({"schema": SCHEMA, "version": sfumato.__version__, "plan": str(target)})
        return
    console = output()
    console.print(f"{target} is begun, from the header of {file}. Complete it, then:", soft_wrap=True)
    console.print(f"  sfumato plan check {target}", soft_wrap=True)


@app.command(epilog=each_line("Example: sfumato plan check plan.toml"))
def check(plan_file: PlanFile, as_json: Json = False) -> None:
    """Find everything that is wrong with a plan; reads the header of the data, and no value."""
    from sfumato import plan
    from sfumato.data.tables import table_exists

    asked = plan.read(plan_file)
    plan.check(asked)
    queries = len(asked.queries)
    if as_json:
        facts = {"plan": str(plan_file), "digest": asked.digest, "queries": queries, "usable": True}
        print_json({"schema": SCHEMA, "version": sfumato.__version__, **facts})
        return
    console = output()
    words = "1 query" if queries == 1 else f"{queries} queries"
    there = "" if table_exists(asked.data_path) else f" {asked.data.path} is not there yet."
    console.print(f"{plan_file} can be used: {words}.{there} Next:", soft_wrap=True)
    console.print(f"  sfumato plan preview {plan_file}", soft_wrap=True)


@app.command(epilog=each_line("Example: sfumato plan preview plan.toml --rows 50000"))
def preview(
    plan_file: PlanFile,
    rows: Rows = None,
    confidence: Annotated[
        float, typer.Option(metavar="C", help="The confidence with which each stated error holds.")
    ] = 0.95,
    as_json: Json = False,
) -> None:
    """Show what each query costs and how accurate it will be; nothing is read or spent."""
    from sfumato import plan

    with stages("looking ahead"):
        found = plan.preview(plan.read(plan_file), rows, confidence=confidence)
    if as_json:
        print_json({"schema": SCHEMA, "version": sfumato.__version__, **found.to_dict()})
        return
    console = output()
    console.print(Text(printable(found.title), style="bold underline"))
    made = table("result", "cost", "accuracy")
    for query in found.queries:
        guessed = "" if query.rows is None else f"; {query.rows:,} rows{' by a guess' * query.guess}"
        each = f", {query.in_each}" if query.by else ""
        accuracy = Text(f"{query.accuracy}{each}{guessed}")
        made.add_row(Text(printable(query.name)), in_symbols(query.cost, console), accuracy)
    console.print(made)
    for query in found.queries:
        if query.divided:
            console.print(Text(f"{printable(query.name)}: {query.divided}"), soft_wrap=True)
    price, budget = in_symbols(found.price, console), in_symbols(found.budget, console)
    console.print(f"\nAll together cost {price} of {budget}, by {found.composition}.", soft_wrap=True)
    if found.factor > 1:
        console.print(f"Paid for together, shares are {compact(found.factor)} times as large as one by one.")
    console.print("Nothing was read or spent. Next:")
    console.print(f"  sfumato release {plan_file} -o out", soft_wrap=True)


@app.command(epilog=each_line("Example: sfumato plan schema > plan.schema.json"))
def schema(
    as_json: Annotated[bool, typer.Option("--json", help="It is JSON in any case.")] = False,
) -> None:
    """Print the JSON Schema of plans, for editors."""
    from sfumato import plan

    print_json(plan.json_schema())


def budgets_of_plan(
    path: Path, *, rows: int | None, confidence: float, factors: Sequence[Fraction], as_json: bool
) -> None:
    """Show how accurate each query of a plan would be with parts and multiples of its budget."""
    from sfumato import plan
    from sfumato.accuracy.inverse import parameter, resized

    asked = plan.read(path)
    whole = asked.budget.value
    budgets = [resized(whole)(parameter(whole)[1] * factor) for factor in factors]
    with stages("looking ahead") as tell:
        found = []
        for place, budget in enumerate(budgets):
            tell("looking ahead", place, len(budgets))
            found.append(_preview(asked, rows, confidence, budget))
    if as_json:
        listed = [
            {"budget": budget.to_dict(), **({"error": each} if isinstance(each, str) else each.to_dict())}
            for budget, each in zip(budgets, found, strict=True)
        ]
        print_json({"schema": SCHEMA, "version": sfumato.__version__, "plan": str(path), "budgets": listed})
        return
    console = output()
    console.print(
        Text(f"{printable(asked.title)}: error at {100 * confidence:.6g} % confidence", style="bold")
    )
    head = ["result", *(in_symbols(budget, console) for budget in budgets)]
    lines = [
        [printable(query.title), *(_figure(each, place) for each in found)]
        for place, query in enumerate(asked.queries)
    ]
    console.print(grid_of(head, lines))
    for budget, each in zip(budgets, found, strict=True):
        if isinstance(each, str):
            console.print(f"{in_symbols(budget, console)}: {each}", soft_wrap=True)
    console.print("\nThe plan has the budget in the middle. Nothing was read or spent.")


def _preview(asked: Any, rows: int | None, confidence: float, budget: Any) -> Any:
    """The preview under another budget, or why there is none, as where a wanted accuracy costs more."""
    from sfumato import plan

    try:
        return plan.preview(asked, rows, confidence=confidence, budget=budget)
    except plan.PlanError as error:
        if budget == asked.budget.value:
            raise
        return str(error)


def _figure(found: Any, place: int) -> str:
    if isinstance(found, str):
        return "-"
    query = found.queries[place]
    if query.rank_error is not None:
        return f"{readable(query.rank_error)} ranks"
    return "?" if query.error is None else f"±{readable(float(f'{query.error:.4g}'))}"
