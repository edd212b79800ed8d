"""Private statistics of 20,000 fictional employees, under one budget: `make demo`.

    python examples/salaries/demo.py

The steps are those of a data steward: declare what is public, open a session with a budget, look at the
accuracy before paying, ask, and publish. The employees are fictional, so the last column can show what a
real release never shows: the exact value.
"""

import csv
import itertools
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import sfumato as sf
from sfumato.accuracy import Scenario, epsilon_for

SOURCE = Path(__file__).with_name("salaries.csv")
DEPARTMENTS = (
    "administration",
    "customer service",
    "engineering",
    "finance",
    "logistics",
    "production",
    "research",
    "sales",
)
BANDS = (0, 20_000, 30_000, 40_000, 50_000, 60_000, 80_000, 250_000)
DECILES = tuple(Fraction(i, 10) for i in range(1, 10))

# Public facts, known without the data: what a salary, a commute and a department can be.
SCHEMA = {
    "salary": sf.Field(bounds=(0, 250_000)),
    "commute_minutes": sf.Field(bounds=(0, 180), nulls="drop"),
    "department": sf.Field(categories=DEPARTMENTS),
}

# A public guess of how pay is spread, as from national statistics. It serves the preview and nothing else.
PAY = Scenario.named("lognormal", mu=10.7, sigma=0.4)

QUERIES = {
    "employees": sf.Count(column="salary", budget=sf.PureDP(0.05)),
    "mean salary": sf.Mean(column="salary", budget=sf.PureDP(0.1)),
    "salary variance": sf.Variance(column="salary", budget=sf.PureDP(0.1)),
    "share of part-timers": sf.Proportion(column="part_time", budget=sf.PureDP(0.05)),
    "salary deciles": sf.Quantiles(
        column="salary",
        probs=DECILES,
        budget=sf.PureDP(0.35),
        step=100,
        # A tree of counts has intervals that hold on any data, and knows the whole distribution.
        method=sf.quantile_methods.Tree(leaves=4096),
    ),
    "salary bands": sf.Histogram(column="salary", edges=BANDS, budget=sf.PureDP(0.1)),
    "departments": sf.Histogram(column="department", budget=sf.PureDP(0.1)),
    "mean commute": sf.Mean(column="commute_minutes", budget=sf.PureDP(0.05)),
    "median commute": sf.Quantiles(
        column="commute_minutes",
        probs=(0.5,),
        scalar=True,
        budget=sf.PureDP(0.1),
        step=0.1,
        # One quantile cannot tell how spread the data are: a part of its budget gives it an interval.
        interval_share="auto",
    ),
}


def read_columns(path: Path = SOURCE) -> dict[str, np.ndarray]:
    """The columns of the file, each with the type that was declared for it."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        "salary": np.array([int(row["salary"]) for row in rows], dtype=np.int64),
        "part_time": np.array([row["part_time"] == "true" for row in rows], dtype=bool),
        "department": np.array([row["department"] for row in rows], dtype=np.str_),
        # An empty field is a missing value.
        "commute_minutes": np.array([float(row["commute_minutes"] or "nan") for row in rows]),
    }


def exact_value(name: str, columns: dict[str, np.ndarray]) -> float | np.ndarray:
    """What a release never shows: the value of the data, clamped to the public bounds as the release is."""
    salary = np.clip(columns["salary"], *SCHEMA["salary"].bounds)
    commute = np.clip(columns["commute_minutes"], *SCHEMA["commute_minutes"].bounds)
    exact = {
        "employees": lambda: len(salary),
        "mean salary": salary.mean,
        "salary variance": salary.var,
        "share of part-timers": columns["part_time"].mean,
        "salary deciles": lambda: np.quantile(salary, [float(q) for q in DECILES], method="inverted_cdf"),
        "salary bands": lambda: np.histogram(salary, bins=BANDS)[0],
        "departments": lambda: np.array([(columns["department"] == name).sum() for name in DEPARTMENTS]),
        "mean commute": lambda: np.nanmean(commute),
        "median commute": lambda: np.nanquantile(commute, 0.5, method="inverted_cdf"),
    }
    return exact[name]()


def shown(name: str, number: float) -> str:
    """A number in the unit of its statistic."""
    if name == "salary variance":
        return f"{number / 1e6:,.0f} million"
    if name == "share of part-timers":
        return f"{number:.2%}"
    return f"{number:,.1f}" if name.endswith("commute") else f"{number:,.0f}"


def interval(name: str, low: float, high: float) -> str:
    return f"{shown(name, low).removesuffix(' million')} to {shown(name, high)}"


def inside(low: float, value: float, high: float) -> str:
    return "yes" if low <= value <= high else "no"


def table(title: str, *headings: str) -> Table:
    made = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for position, heading in enumerate(headings):
        style = "dim" if heading in ("exact", "inside") else ""
        made.add_column(heading, justify="right" if position else "left", style=style, no_wrap=True)
    return made


def previews(session: sf.Session) -> Table:
    made = table("Before paying, with the data unread", "statistic", "cost", "error, at 95 % confidence")
    for name, query in QUERIES.items():
        preview = session.preview(query, rows=20_000)
        error = f"± {shown(name, preview.error)}"
        if isinstance(query, sf.Histogram):
            error += ", each count"
        if isinstance(query, sf.Quantiles):
            error = f"± {preview.error:,.0f} ranks on any data"
        if name == "salary deciles":
            likely = session.preview(query, rows=20_000, scenario=PAY).accuracy.error
            error += f"; ± {shown(name, likely)} if pay is like the guess"
        made.add_row(name, f"{float(preview.cost.epsilon):g}", error)
    return made


def price_of_accuracy() -> str:
    """The other way round: what a wanted error would cost."""
    query = replace(QUERIES["mean salary"], bounds=SCHEMA["salary"].bounds, neighbours="add-remove")
    found = epsilon_for(query, error=200, n=20_000)
    cost = f"{float(found.epsilon):g}"
    return f"The other way round: a mean salary within ± 200 would cost an epsilon of {cost}.\n"


def numbers(releases: dict[str, sf.Release], columns: dict[str, np.ndarray]) -> Table:
    made = table("Numbers", "statistic", "released", "95 % interval", "cost", "exact", "inside")
    for name, release in releases.items():
        if len(release.query.labels()) > 1:
            continue
        exact, (low, high) = exact_value(name, columns), release.interval(0.95)
        made.add_row(
            name,
            shown(name, release.value),
            interval(name, low, high),
            f"{float(release.cost.epsilon):g}",
            shown(name, exact),
            inside(low, exact, high),
        )
        if name == "salary variance":
            # Whatever is computed from a release costs nothing more.
            value, low, high, exact = (math.sqrt(number) for number in (release.value, low, high, exact))
            root = "salary standard deviation"
            made.add_row(
                root,
                shown(root, value),
                interval(root, low, high),
                "0",
                shown(root, exact),
                inside(low, exact, high),
            )
    return made


def deciles(release: sf.Release, columns: dict[str, np.ndarray]) -> Table:
    title = f"Salary deciles in steps of 100, cost {float(release.cost.epsilon):g} for all nine together"
    made = table(title, "order", "released", "95 % interval", "exact", "inside")
    lows, highs = release.interval(0.95)
    exacts = exact_value("salary deciles", columns)
    labels = [f"{label} (median)" if label == "0.5" else label for label in release.query.labels()]
    for label, value, low, high, exact in zip(labels, release.value, lows, highs, exacts, strict=True):
        span = interval("salary deciles", low, high)
        made.add_row(label, f"{value:,.0f}", span, f"{exact:,.0f}", inside(low, exact, high))
    return made


def counts(name: str, release: sf.Release, columns: dict[str, np.ndarray]) -> Table:
    title = f"Histogram of {name}, cost {float(release.cost.epsilon):g} for all counts together"
    made = table(title, name, "released", "95 % interval", "exact", "inside")
    labels = release.query.labels()
    if name == "salary bands":
        labels = [f"{low:,} to {high:,}" for low, high in itertools.pairwise(BANDS)]
    lows, highs = release.interval(0.95)
    rows = zip(labels, release.value, lows, highs, exact_value(name, columns), strict=True)
    for label, value, low, high, exact in rows:
        made.add_row(label, f"{value:,}", interval(name, low, high), f"{exact:,}", inside(low, exact, high))
    return made


def main() -> None:
    console = Console(width=100, highlight=False)
    columns = read_columns()
    data = sf.Dataset(columns, unit="row", neighbours="add-remove", schema=SCHEMA, name="salaries")

    console.print(
        "Statistics of fictional employees, one row each. The answers hide whether any one of them is in the "
        "file (add-remove), and all answers together may cost an epsilon of 1.\n"
    )

    with sf.Session(data, budget=sf.PureDP(1)) as session:
        console.print(previews(session))
        console.print(price_of_accuracy())
        releases = {name: session.answer(query) for name, query in QUERIES.items()}
        console.print(numbers(releases, columns))
        console.print(deciles(releases["salary deciles"], columns))
        # The tree behind the deciles knows the whole distribution; reading it costs nothing more.
        (share,), exact = releases["salary deciles"].cdf([30_000]), (columns["salary"] <= 30_000).mean()
        console.print(f"From the same release: {share:.1%} earn 30,000 or less (exact: {exact:.1%}).\n")
        for name in ("salary bands", "departments"):
            console.print(counts(name, releases[name], columns))

        # Budgets are exact fractions, so this is 1 and not 0.9999999999999999.
        console.print(f"Spent: epsilon {session.spent.epsilon} of 1, exactly.")
        try:
            session.answer(sf.Count(column="salary", budget=sf.PureDP(0.01)))
        except sf.BudgetExceeded as refusal:
            console.print(f"One more question is refused: {refusal}.")

    console.print(
        "\nOf the 21 intervals of 95 % that stand for themselves, one or so may miss its value; those of "
        "the deciles hold all nine at once. The two columns on the right can be shown because nobody in this "
        "file exists; a real release ends at the cost."
    )
    console.print("\nAudit of the mean salary: its exact privacy loss, over every small pair of neighbours,")
    console.print(f"  {sf.audit.worst_case(releases['mean salary'].query, size=3, cells=4)}")


if __name__ == "__main__":
    main()
