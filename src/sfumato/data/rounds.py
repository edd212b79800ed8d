"""Rounds of questions to a table in an engine: what is not answered yet comes with the next pass."""

from collections.abc import Callable
from typing import Any


class Unanswered(Exception):
    """What is asked for comes with the next pass; whoever asked begins anew after it."""


def together(*makers: Callable[[], Any]) -> list[Any]:
    """What all makers give, so that what they ask for is asked in one round.

    >>> together(lambda: 1, lambda: 2)
    [1, 2]
    """
    found, waiting = [], False
    for make in makers:
        try:
            found.append(make())
        except Unanswered:
            waiting = True
    if waiting:
        raise Unanswered
    return found
