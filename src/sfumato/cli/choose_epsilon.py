"""`sfumato choose-epsilon`: from a wanted error to a budget, and what budgets would buy a plan."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

import sfumato
from sfumato.checks import readable
from sfumato.cli.options import Json, each_line, number
from sfumato.cli.output import in_symbols, output, print_json, stages, table
from sfumato.cli.outputs import refusing
from sfumato.cli.status import DONE, Refused

EXAMPLES = each_line(
    "Examples:",
    "  sfumato choose-epsilon mean --error 250 --rows 20000 --bounds 0 250000",
    "  sfumato choose-epsilon count --error 10 --neighbours add-remove",
    "  sfumato choose-epsilon median --rank-error 100 --rows 20000 --bounds 0 250000",
    "  sfumato choose-epsilon deciles --error 200 --rows 20000 --bounds 0 250000 \\",
    "      --scenario lognormal:mu=10.5,sigma=0.4",
    "  sfumato choose-epsilon plan.toml --rows 50000",
    "",
    "A scenario is a public guess of what the data look like: uniform:low=,high=",
    "normal:mean=,sd= lognormal:mu=,sigma= exponential:mean= poisson:mean=.",
)
STATISTICS = (
    *("count", "sum", "mean", "variance", "proportion", "histogram"),
    *("median", "quartiles", "deciles", "quantiles"),
)
PROBS = {
    "median": (Fraction(1, 2),),
    "quartiles": tuple(Fraction(i, 4) for i in range(1, 4)),
    "deciles": tuple(Fraction(i, 10) for i in range(1, 10)),
}
SCHEMA = 1
# What a plan is tried with, as parts of its own budget.
FACTORS = tuple(Fraction(2) ** power for power in range(-2, 3))


def choose_epsilon(
    what: Annotated[
        str,
        typer.Argument(
            metavar="STATISTIC|PLAN", help=f"{', '.join(STATISTICS)}; or a plan file.", show_default=False
        ),
    ],
    error: Annotated[
        str | None, typer.Option(metavar="E", help="The largest error wanted, in units of the data.")
    ] = None,
    rank_error: Annotated[
        str | None, typer.Option(metavar="R", help="The same in ranks, for quantiles.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="How many rows there are, or a public guess.")
    ] = None,
    bounds: Annotated[
        tuple[str, str] | None, typer.Option(metavar="LOW HIGH", help="What values can be, publicly.")
    ] = None,
    confidence: Annotated[float, typer.Option(metavar="C", help="How surely the error is kept.")] = 0.95,
    neighbours: Annotated[
        str, typer.Option(metavar="RELATION", help="substitution or add-remove.")
    ] = "substitution",
    delta: Annotated[
        str | None, typer.Option(metavar="D", help="Look for an epsilon that goes with this delta.")
    ] = None,
    rho: Annotated[bool, typer.Option("--rho", help="Look for a rho and not for an epsilon.")] = False,
    probs: Annotated[
        str | None, typer.Option(metavar="P,P,...", help="The orders of quantiles, such as 0.1,0.9.")
    ] = None,
    step: Annotated[
        str | None, typer.Option(metavar="S", help="The distance of possible answers of quantiles.")
    ] = None,
    bins: Annotated[int | None, typer.Option(metavar="K", min=1, help="The bins of a histogram.")] = None,
    scenario: Annotated[
        str | None,
        typer.Option(metavar="LAW:NAME=NUMBER,...", help="What the data are like, by a public guess."),
    ] = None,
    chart: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the errors: .svg, .png or .html.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find the smallest budget for a wanted error; nothing is read or spent.

    For a plan file, show how accurate each of its queries would be with a quarter,
    half, all, twice and four times its budget.
    """
    if what in STATISTICS:
        asked = {"error": error, "rank_error": rank_error}
        query = _query(what, neighbours, delta, rho, bounds, probs, step, bins)
        _one(query, asked, rows, confidence, scenario, chart, as_json)
    elif what.endswith(".toml") or Path(what).exists():
        given = {"--error": error, "--rank-error": rank_error, "--bounds": bounds, "--probs": probs}
        for option, value in {**given, "--chart": chart, "--scenario": scenario, "--delta": delta}.items():
            if value is not None:
                raise typer.BadParameter(f"{option} goes with a statistic; a plan has its own")
        _plan(Path(what), rows, confidence, as_json)
    else:
        raise Refused(f"{what!r} is no statistic and no plan file; statistics are {', '.join(STATISTICS)}")
    raise typer.Exit(DONE)


def _one(
    query: Any,
    asked: dict[str, str | None],
    rows: int | None,
    confidence: float,
    scenario: str | None,
    chart: Path | None,
    as_json: bool,
) -> None:
    from sfumato.accuracy import epsilon_for, plot
    from sfumato.accuracy.budget_search import with_budget
    from sfumato.accuracy.inverse import parameter, resized
    from sfumato.charts import save

    if all(value is None for value in asked.values()):
        raise typer.BadParameter("give the error that is wanted: --error, or --rank-error for quantiles")
    wanted: dict[str, Any] = {
        name: None if value is None else number(f"--{name.replace('_', '-')}", value)
        for name, value in asked.items()
    }
    guess = None if scenario is None else _scenario(scenario)
    of_query: dict[str, Any] = {"confidence": confidence, "scenario": guess}
    about: dict[str, Any] = {"n": rows, **of_query}
    if hasattr(query, "probs") and guess is None and wanted["error"] is not None:
        raise Refused(
            "how far quantiles are off in value depends on the data: give a public guess with --scenario, "
            "such as --scenario lognormal:mu=10.5,sigma=0.4, or ask for a --rank-error"
        )
    # Simulations show bars of their own.
    found = epsilon_for(query, **wanted, **about)
    size = parameter(found.budget)[1]
    budgets = [resized(found.budget)(size * factor) for factor in FACTORS]
    lines = [(budget, with_budget(found.query, budget).accuracy(rows, **of_query)) for budget in budgets]
    if chart is not None:
        with refusing(), stages("drawing"):
            save(plot(found.query, **about), chart)
    if as_json:
        print_json(
            {
                "schema": SCHEMA,
                "version": sfumato.__version__,
                "statistic": query.name,
                "neighbours": query.neighbours,
                "rows": rows,
                "confidence": confidence,
                "budget": found.budget.to_dict(),
                "certified": found.certified,
                "wanted": {found.figure: found.target},
                "accuracy": _record(found.accuracy),
                "others": [{"budget": budget.to_dict(), **_record(each)} for budget, each in lines],
                "chart": None if chart is None else str(chart),
            }
        )
        return
    console = output()
    console.print(str(found), soft_wrap=True)
    console.print(f"  {query.neighbours}: {_relation(query.neighbours)}\n", soft_wrap=True)
    made = table("budget", "accuracy")
    for budget, accuracy in lines:
        mark = "  <- wanted" if budget == found.budget else ""
        made.add_row(in_symbols(budget, console), f"{_figures(accuracy)}{mark}")
    console.print(made)
    if chart is not None:
        console.print(f"\nThe chart is {chart}")


def _plan(path: Path, rows: int | None, confidence: float, as_json: bool) -> None:
    from sfumato.cli.plan import budgets_of_plan

    budgets_of_plan(path, rows=rows, confidence=confidence, factors=FACTORS, as_json=as_json)


def _query(
    what: str,
    neighbours: str,
    delta: str | None,
    rho: bool,
    bounds: tuple[str, str] | None,
    probs: str | None,
    step: str | None,
    bins: int | None,
) -> Any:
    """The query that is asked about; its budget says of which kind the one that is found will be."""
    from sfumato.privacy import ZCDP, ApproxDP, PureDP
    from sfumato.privacy.neighbours import MEANINGS

    if neighbours not in MEANINGS:
        raise Refused(f"--neighbours must be one of {', '.join(MEANINGS)}, got {neighbours!r}")
    if rho and delta is not None:
        raise typer.BadParameter("--rho and --delta are of different kinds of budget")
    budget = ZCDP(1) if rho else PureDP(1) if delta is None else ApproxDP(1, number("--delta", delta))
    quantiles = what in PROBS or what == "quantiles"
    own = {"--probs": probs if not quantiles else None, "--step": step if not quantiles else None}
    for option, value in {**own, "--bins": bins if what != "histogram" else None}.items():
        if value is not None:
            raise typer.BadParameter(f"{option} does not go with {what}")
    facts: dict[str, Any] = {"budget": budget, "neighbours": neighbours}
    if neighbours == "substitution" and what not in ("count", "histogram"):
        # A number takes the place of a missing value, so that the number of values is known.
        facts["nulls"] = "lower" if what != "proportion" else "drop"
    if bounds is not None:
        facts["bounds"] = tuple(number("--bounds", each) for each in bounds)
    if quantiles:
        if what == "quantiles" and probs is None:
            raise typer.BadParameter("quantiles need --probs, such as --probs 0.1,0.5,0.9")
        facts["probs"] = (
            PROBS[what] if probs is None else tuple(number("--probs", each) for each in probs.split(","))
        )
        if step is not None:
            facts["step"] = number("--step", step)
    if what == "histogram":
        facts["bins"] = bins
    kinds = {
        "count": sfumato.Count,
        "sum": sfumato.Sum,
        "mean": sfumato.Mean,
        "variance": sfumato.Variance,
        "proportion": sfumato.Proportion,
        "histogram": sfumato.Histogram,
    }
    kind: Any = kinds.get(what, sfumato.Quantiles)
    return kind(**facts)


def _scenario(text: str) -> Any:
    from sfumato.accuracy import Scenario

    law, _, rest = text.partition(":")
    parameters = {}
    for part in filter(None, rest.split(",")):
        name, sign, value = part.partition("=")
        if not sign:
            raise Refused(f"--scenario must be LAW:NAME=NUMBER,NAME=NUMBER, got {text!r}")
        parameters[name.strip()] = number(f"--scenario {law} {name}", value.strip())
    return Scenario.named(law, **parameters)


def _figures(accuracy: Any) -> str:
    parts = [] if accuracy.ranks is None else [f"{readable(accuracy.rank_error)} ranks"]
    if accuracy.errors is not None:
        parts.append(f"±{readable(accuracy.error)}")
    return f"within {' and '.join(parts)}"


def _record(accuracy: Any) -> dict[str, Any]:
    return {"error": accuracy.error, "rank_error": accuracy.rank_error, "how": accuracy.how}


def _relation(neighbours: str) -> str:
    from sfumato.privacy.neighbours import MEANINGS

    return MEANINGS[neighbours]
