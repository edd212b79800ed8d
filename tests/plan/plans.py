"""A plan that the tests change line by line."""

from sfumato.plan import Plan, parse

# Each line has a number in messages: line 1 is the version.
GOOD = """\
version = 1
title = "Salaries"
about = "What is paid."

[data]
path = "salaries.csv"
name = "salaries-2026"
unit = "row"
neighbours = "substitution"
rows = 50_000

[budget]
epsilon = 1.0

[ledger]
url = "sqlite:///ledger.db"
cap = { epsilon = 3.0 }
analyst = "statistics office"

[columns.salary]
type = "integer"
bounds = [0, 250_000]
step = 1
nulls = "lower"

[columns.hours]
type = "real"
bounds = [0, 60]

[columns.department]
type = "text"
categories = ["care", "schools", "police"]

[columns.region]
type = "text"
categories = ["north", "south"]

[columns.member]
type = "boolean"
nulls = "lower"

[[queries]]
name = "people"
statistic = "count"

[[queries]]
name = "deciles"
statistic = "quantiles"
column = "salary"
probs = [0.1, 0.5, 0.9]
where = { region = "north", salary = { between = [1, 200_000] } }
group_by = ["department"]
share = 0.5
interval_share = "auto"
n_hint = 2_000

[[queries]]
name = "mean"
statistic = "mean"
column = "salary"
accuracy = { error = 500, confidence = 0.95 }

[[queries]]
name = "bands"
statistic = "histogram"
column = "salary"
bins = 10
"""

# A way to ask for every statistic, with options.
EVERY = {
    "count": "",
    "count in a range": 'column = "salary"\nbetween = [1_000, 2_000]',
    "count of categories": 'column = "department"\nequals = ["care", "police"]',
    "sum": 'column = "salary"\nnoise = "auto"',
    "mean": 'column = "salary"\ninterval_share = "auto"',
    "mean of reals": 'column = "hours"\nbounds = [0, 40]\nnulls = "upper"',
    "variance": 'column = "hours"',
    "proportion": 'column = "member"',
    "proportion of a category": 'column = "department"\nequals = "care"',
    "histogram": 'column = "salary"\nbins = 10',
    "histogram of categories": 'column = "department"\nother = true',
    "histogram by edges": 'column = "salary"\nedges = [0, 1.5, 3]',
    "quantiles": 'column = "salary"\nprobs = [0.1, 0.5]',
    "quantile": 'column = "hours"\nprob = 0.3',
    "quantiles that are verified": 'column = "salary"\nprobs = [0.1, 0.5]\nverify = "auto"',
    "quantiles that are not verified": 'column = "salary"\nprobs = [0.1, 0.5]\nverify = 0',
    "median": 'column = "hours"\ninterval_share = 0.2',
    "median that is verified": 'column = "hours"\nverify = 0.25',
    "quartiles": 'column = "salary"\nmethod = "tree"',
    "deciles": 'column = "salary"\nmethod = { name = "recursive", subcells = 4 }',
    "quantiles without bounds": 'column = "hours"\nprobs = [0.5]\nmethod = "unbounded"',
    "most_common": 'column = "department"\npicks = 2',
    "first_passing": 'column = "salary"\nat = [1, 2, 3]\npasses = 100',
    "first_passing by steps": 'column = "salary"\nstep = 1_000\npasses = 100\nfrom_above = true',
    "inverse_mean": 'column = "salary"\npoints = 1_000',
    "exponential_mean": 'column = "salary"\npoints = 1_000',
    "inverse_proportion": 'column = "member"\nradius = 1',
}


def changed(*pairs: tuple[str, str]) -> str:
    """The plan with some text replaced, each piece of which stands in it exactly once."""
    text = GOOD
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def head(*, budget: str = "epsilon = 1", unit: str = "row", neighbours: str = "substitution") -> str:
    """The plan without its queries, for another budget, unit or relation."""
    text = GOOD[: GOOD.index("[[queries]]")]
    text = text[: text.index("[ledger]")] + text[text.index("[columns.salary]") :]
    per_unit = "" if unit == "row" else f'\n[columns.{unit}]\ntype = "integer"\n'
    bounded = f'unit = "{unit}"' + "\nrows_per_unit = 3" * (unit != "row")
    text = text.replace("epsilon = 1.0", budget).replace('unit = "row"', bounded)
    return text.replace('neighbours = "substitution"', f'neighbours = "{neighbours}"') + per_unit


def asking(*queries: str, **facts: str) -> Plan:
    """A plan of some queries, each the lines of its table."""
    tables = (f'\n[[queries]]\nname = "q{i}"\n{lines}\n' for i, lines in enumerate(queries))
    return parse(head(**facts) + "".join(tables))


def one_of_each(name: str) -> str:
    """The lines of a query in EVERY."""
    return f'statistic = "{name.split()[0]}"\n{EVERY[name]}'
