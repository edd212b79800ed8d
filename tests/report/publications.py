"""Publications of fictional salaries, for the tests of reports."""

from dataclasses import replace
from functools import cache

import numpy as np

import sfumato as sf
from sfumato.data.conditions import read_conditions
from sfumato.privacy import Amount
from sfumato.publication import Publication
from sfumato.question import Question
from sfumato.result import Result

TEAMS = ("administration", "customer service", "engineering", "finance", "logistics", "production", "sales")
EMPTY = "space travel"
DECILES = tuple(i / 10 for i in range(1, 10))
# A tree has intervals of its own, which need no simulation.
TREE = sf.quantile_methods.Tree(leaves=1024)
RECEIPT = {
    "format": 1,
    "software": {"sfumato": "0.1.0", "python": "3.11.7", "numpy": "2.3.1"},
    "analyst": "ann",
    "release_sha256": "ab12" * 16,
    "ledger": {"id": "5b1f", "sequence": 1234, "hash": "77aa" * 16},
}
HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</style></title><b>",
    "{{ 7*7 }}{% raw %}",
    "שלום עולם",
    "a\u202eb\nc",
    "👩‍👩‍👧 & Söhne",
    "x" * 200,
]
PURE = sf.PureDP


def questions(columns=("salary", "team", "age", "part_time")):
    salary, team, age, part_time = columns
    return [
        Question(query=sf.Count(column=salary, budget=PURE(0.1)), name="people"),
        Question(query=sf.Mean(column=salary, budget=PURE(0.2)), by=[team], name="mean pay"),
        Question(
            query=sf.Quantiles(column=salary, budget=PURE(0.1), probs=DECILES, step=10, method=TREE),
            name="deciles",
        ),
        Question(
            query=sf.Quantiles(column=salary, budget=PURE(0.3), probs=DECILES, step=10, method=TREE),
            by=[team],
            name="deciles by team",
        ),
        Question(query=sf.Histogram(column=age, bins=7, bounds=(18, 67), budget=PURE(0.1)), name="ages"),
        Question(query=sf.Histogram(column=team, budget=PURE(0.05)), name="teams"),
        Question(
            query=sf.Proportion(column=part_time, budget=PURE(0.1)),
            where={age: sf.Between(30, 40)},
            name="part",
        ),
        Question(query=sf.MostCommon(column=team, budget=PURE(0.05)), name="largest"),
    ]


def _words(where):
    return tuple((condition.column, condition.words) for condition in read_conditions(where))


def publication(answers, asked, **facts):
    known = {
        "title": "Pay & people",
        "about": "What fictional people earn.",
        "dataset": "pay",
        "unit": "row",
        "rows_per_unit": None,
        "neighbours": "add-remove",
        "rows": None,
        "budget": PURE(1),
        "price": Amount(epsilon=1),
        "composition": "the sum of all costs",
        "request": "plan-12ab",
        "edition": "1",
        "plan_digest": "9f2c" * 16,
        "version": "0.1.0",
        "results": tuple(
            Result.of(question.title, answer, _words(question.where))
            for question, answer in zip(asked, answers, strict=True)
        ),
    }
    return Publication(**{**known, **facts})


def people(rows=3000, columns=("salary", "team", "age", "part_time"), teams=(*TEAMS, EMPTY)):
    rng = np.random.default_rng(7)
    salary, team, age, part_time = columns
    drawn = rng.choice(len(teams) - 1, rows)  # nobody is in the last team
    frame = {
        salary: rng.lognormal(10.5, 0.4, rows).round().astype(int),
        team: [teams[i] for i in drawn],
        age: rng.integers(18, 67, rows),
        part_time: rng.random(rows) < 0.3,
    }
    schema = {
        salary: sf.Field(bounds=(0, 150_000)),
        team: sf.Field(categories=teams),
        age: sf.Field(bounds=(18, 67)),
    }
    return sf.Dataset(frame, unit="row", neighbours="add-remove", schema=schema, name="pay")


def asked_of(data, asked, bits=None, **facts):
    with sf.Session(data, budget=PURE(10), bits=bits) as session:
        return publication(session.answer_all(asked), asked, **facts)


@cache
def salaries():
    """One publication of eight results, drawn once."""
    return asked_of(people(), questions())


@cache
def page():
    from sfumato.report import html

    return html(salaries(), RECEIPT)


@cache
def hostile_page():
    """A report in which every word from outside is hostile."""
    from sfumato.report import html

    columns = (HOSTILE[0], HOSTILE[1], HOSTILE[4], HOSTILE[7])
    asked = [replace(one, name=HOSTILE[0] + one.name) for one in questions(columns)[1:7]]
    said = {name: HOSTILE[i] for i, name in enumerate(("title", "about", "dataset", "composition"))}
    said |= {"request": HOSTILE[1], "plan_digest": HOSTILE[2], "version": HOSTILE[0]}
    made = asked_of(people(400, columns, tuple(HOSTILE)), asked, **said)
    receipt = {
        "software": {HOSTILE[0]: HOSTILE[1]},
        "ledger": {HOSTILE[2]: HOSTILE[0]},
        "analyst": HOSTILE[1],
    }
    return html(made, {**receipt, "release_sha256": HOSTILE[1]})
