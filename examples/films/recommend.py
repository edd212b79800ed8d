"""Which film to recommend, chosen privately by the marks of 800 fictional users: `make films`.

    python examples/films/recommend.py

The catalogue is public, the marks are not. Each user is one row, so that the answers hide whether any one
user, with all marks given, is in the table. Beside scores that work stand the forms that go wrong, each
with a number from the exact law of the mechanism.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from make_ratings import CATALOGUE, PROFILE, ratings
from rich import box
from rich.console import Console
from rich.table import Table

import sfumato as sf

FILMS = tuple(CATALOGUE)
EPSILON = Fraction(1, 4)
# Distances beyond this count as this: what bounds how far one evening can move a score.
FAR = 6
DIAMETER = 16

Marks = Mapping[str, np.ndarray]


def distance(one: str, other: str) -> int:
    """How unlike two films are, from their public features."""
    return sum(abs(a - b) for a, b in zip(CATALOGUE[one], CATALOGUE[other], strict=True))


# --- scores that work ----------------------------------------------------------------------------


def liked(marks: Marks) -> list[int]:
    """How many users gave at least 4: one user adds at most 1, to however many films."""
    return [int((marks[film] >= 4).sum()) for film in FILMS]


def total(marks: Marks) -> list[int]:
    """The sum of the marks, clipped to 0..5: one user adds at most 5 to each."""
    return [int(np.nansum(np.clip(marks[film], 0, 5))) for film in FILMS]


def above_middle(marks: Marks) -> list[Fraction]:
    """The sum of marks less 2.5: one user moves a score by 2.5, some up and some down."""
    return [Fraction(float(np.nansum(np.clip(marks[film], 0, 5) - 2.5))) for film in FILMS]


def nearness(profile: Mapping[str, Any]) -> list[int]:
    """Minus the sum of distances to the films watched, each cut at FAR: one more lowers all scores."""
    return [-sum(min(distance(film, one), FAR) for one in profile["film"]) for film in FILMS]


class Score(NamedTuple):
    """A score with what it promises of one record."""

    name: str
    function: Callable[[Any], list[Any]]
    sensitivity: Fraction
    monotone: bool


USEFUL = (
    Score("users with a mark of 4 or 5", liked, Fraction(1), True),
    Score("sum of marks", total, Fraction(5), True),
    Score("sum of marks less 2.5", above_middle, Fraction(5, 2), False),
)
TASTE = Score("nearness to films watched", nearness, Fraction(FAR), True)


def law(score: Score, scores: list[Any], epsilon: Fraction = EPSILON) -> Any:
    """The exact law of the choice; a real release draws from it and never shows it."""
    kind = {"sensitivity": score.sensitivity, "monotone": score.monotone, "epsilon": epsilon}
    return sf.mechanisms.ExponentialMechanism(**kind).law(scores)


# --- forms that go wrong -------------------------------------------------------------------------


def mean_marks(marks: Marks) -> list[float]:
    """The mean mark of each film, 0 for a film that nobody marked."""
    return [float(np.nanmean(marks[film])) if not np.isnan(marks[film]).all() else 0.0 for film in FILMS]


def least_distance(watched: tuple[str, ...]) -> list[int]:
    """The distance to the nearest film watched: a loss, as smaller is better."""
    return [min(distance(film, one) for one in watched) for film in FILMS]


def largest_loss(score: Score, left: list[Any], right: list[Any], epsilon: Fraction = EPSILON) -> float:
    """The exact privacy loss between two neighbours, which should be at most epsilon."""
    every = np.arange(len(FILMS))
    return float(
        np.abs(law(score, left, epsilon).logpmf(every) - law(score, right, epsilon).logpmf(every)).max()
    )


class Mistake(NamedTuple):
    """What is done, what is thought, and what the exact law says."""

    form: str
    thought: str
    number: str


def mistakes(marks: Marks) -> list[Mistake]:
    losses = least_distance(PROFILE)
    far = [place for place, loss in enumerate(losses) if loss >= 8]
    up = law(Score("", list, Fraction(1), False), losses, Fraction(2))
    down = law(Score("", list, Fraction(1), False), [-loss for loss in losses], Fraction(2))

    # Without the one user who saw it, the mean of "Attic Tapes" falls from 5 to 0.
    without = {film: np.delete(column, 17) for film, column in marks.items()}
    share = Score("", list, Fraction(5, len(marks["Attic Tapes"])), False)
    means = mean_marks(marks)
    honest = law(Score("", list, Fraction(5), False), means)

    one_more = least_distance((*PROFILE, "Red Signal"))
    unit = Score("", list, Fraction(1), True)
    true = law(Score("", list, Fraction(DIAMETER), True), [-loss for loss in losses])
    return [
        Mistake(
            "distance as the score, unsigned",
            "prefers near films",
            f"a film 8 or more away: {up.probability(np.array(far)).sum():.0%}, with the sign turned "
            f"{down.probability(np.array(far)).sum():.1%}",
        ),
        Mistake(
            "mean mark, as if one user moved it by 5/800",
            f"costs {float(EPSILON)}",
            f"costs {largest_loss(share, means, mean_marks(without)):,.0f} for the only one who saw a film",
        ),
        Mistake(
            "mean mark with its true sensitivity, 5",
            "picks the best",
            f"the best one: {honest.probability(int(np.argmax(means))):.1%}, by chance {1 / len(FILMS):.1%}",
        ),
        Mistake(
            "minus the least distance, as if moved by 1",
            f"costs {float(EPSILON)}",
            "costs "
            f"{largest_loss(unit, [-loss for loss in losses], [-loss for loss in one_more]):.2f} "
            "for one more evening",
        ),
        Mistake(
            f"the same with its true sensitivity, {DIAMETER}",
            "picks a film watched",
            f"one of the {losses.count(0)} watched: "
            f"{true.probability(np.flatnonzero(np.array(losses) == 0)).sum():.1%}, "
            f"by chance {losses.count(0) / len(FILMS):.1%}",
        ),
    ]


# --- tables --------------------------------------------------------------------------------------


def table(title: str, *headings: str) -> Table:
    made = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for position, heading in enumerate(headings):
        style = "dim" if heading in ("its score", "best score", "chance of the best") else ""
        made.add_column(heading, justify="right" if position else "left", style=style)
    return made


def previews() -> Table:
    made = table(
        f"Before paying, at an epsilon of {float(EPSILON)}",
        "score",
        "one record moves it by",
        "within, at 95 %",
    )
    for score in (*USEFUL, TASTE):
        query = sf.Choose(
            candidates=FILMS,
            sensitivity=score.sensitivity,
            monotone=score.monotone,
            neighbours="add-remove",
            budget=sf.PureDP(EPSILON),
        )
        moves = f"{float(score.sensitivity):g}, {'one way' if score.monotone else 'both ways'}"
        made.add_row(score.name, moves, f"{query.radius(0.95):.1f} of the best")
    return made


def ask(session: sf.Session, score: Score) -> sf.Release:
    kind = {"sensitivity": score.sensitivity, "monotone": score.monotone, "budget": sf.PureDP(EPSILON)}
    return session.choose(FILMS, score.function, **kind)


def add(made: Table, score: Score, film: str, scores: list[Any]) -> None:
    chance = law(score, scores).probability(int(np.argmax(scores)))
    found = float(scores[FILMS.index(film)])
    made.add_row(score.name, film, f"{found:g}", f"{float(max(scores)):g}", f"{chance:.1%}")


def main() -> None:
    console = Console(width=100, highlight=False)
    marks = ratings()
    users = sf.Dataset(marks, unit="row", neighbours="add-remove", name="ratings")
    profile = sf.Dataset({"film": list(PROFILE)}, unit="row", neighbours="add-remove", name="profile")

    console.print(previews())
    chosen = table("Recommended", "score", "film", "its score", "best score", "chance of the best")
    with sf.Session(users, budget=sf.PureDP(1)) as session:
        for score in USEFUL:
            add(chosen, score, ask(session, score).value, score.function(marks))
        top = session.choose(
            FILMS,
            liked,
            sensitivity=1,
            monotone=True,
            budget=sf.PureDP(EPSILON),
            picks=3,
            method="exponential",
        )
        spent = session.spent
    with sf.Session(profile, budget=sf.PureDP(EPSILON)) as session:
        add(chosen, TASTE, ask(session, TASTE).value, nearness({"film": PROFILE}))
    console.print(chosen)
    console.print(f"The three most liked, best first: {', '.join(top.value)}.")
    console.print(
        f"Spent on the ratings: epsilon {spent.epsilon} of 1. The columns on the right can be shown"
    )
    console.print("because nobody in these tables exists; a real release ends at the film.\n")

    wrong = table("What goes wrong, by the exact law", "form", "thought", "in truth")
    for mistake in mistakes(marks):
        wrong.add_row(*mistake)
    console.print(wrong)


if __name__ == "__main__":
    main()
