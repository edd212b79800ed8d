"""The laboratory: experiments of your own; published figures and statements beside what computations say."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.lab import datasets as datasets
    from sfumato.lab.datasets import Source as Source
    from sfumato.lab.figure import Effort as Effort
    from sfumato.lab.figure import Figure as Figure
    from sfumato.lab.figure import Statement as Statement
    from sfumato.lab.gallery import Drawn as Drawn
    from sfumato.lab.gallery import draw as draw
    from sfumato.lab.own import Own as Own
    from sfumato.lab.own import Points as Points
    from sfumato.lab.pictures import picture as picture
    from sfumato.lab.runs import run as run

_HOME = {
    "Drawn": "gallery",
    "Effort": "figure",
    "Figure": "figure",
    "Own": "own",
    "Points": "own",
    "Source": "datasets",
    "Statement": "figure",
    "draw": "gallery",
    "picture": "pictures",
    "run": "runs",
}
__all__ = [
    "Drawn",
    "Effort",
    "Figure",
    "Own",
    "Points",
    "Source",
    "Statement",
    "datasets",
    "draw",
    "picture",
    "run",
]


def __getattr__(name: str) -> Any:
    # Loading on first use: errata need no experiments, and experiments no figures.
    if name == "datasets":
        return import_module("sfumato.lab.datasets")
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato.lab' has no attribute {name!r}")
    value = getattr(import_module(f"sfumato.lab.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
