"""The figures, one file each: a file in this folder that defines FIGURE is one of them."""

import pkgutil
from importlib import import_module

from sfumato.checks import shown
from sfumato.errors import InvalidParameter
from sfumato.lab.figure import Figure

__all__ = ["FIGURES", "find"]


def _place(figure: Figure) -> tuple[str, int]:
    letters = figure.number.rstrip("0123456789")
    return letters, int(figure.number[len(letters) :])


def _found() -> dict[str, Figure]:
    modules = (import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    ordered: list[Figure] = sorted((module.FIGURE for module in modules), key=_place)
    return {figure.number: figure for figure in ordered}


# By number: those of the report of 2024 first, then by the letter of their source.
FIGURES: dict[str, Figure] = _found()


def find(which: str | int) -> Figure:
    """The figure of this number or name."""
    for figure in FIGURES.values():
        if str(which) in (figure.number, figure.name):
            return figure
    raise InvalidParameter(
        f"figure must be one of {', '.join(FIGURES)}, or its name, got figure={shown(which)}"
    )
