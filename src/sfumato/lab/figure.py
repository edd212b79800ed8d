"""What a figure is: numbers, a picture, a caption, and statements about the numbers that can fail."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from sfumato.checks import boolean, exact, keep, shown, whole
from sfumato.errors import InvalidParameter

Mode = Literal["published", "corrected"]
MODES: tuple[Mode, ...] = get_args(Mode)
# Figures add small numbers of their own.
MOST_SEED = 2**53
# Where draws are few, standard errors are not known well enough to judge by four of them.
FEWEST = 20


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much a figure may compute: the share of the draws that it would take at leisure.

    Guarantee:
        The same effort gives the same numbers, in any number of processes.

    Args:
        share: of the draws and data sets of a full figure, at most 1.
        seed: of data and draws.
        jobs: processes.
        cache: whether results of experiments are kept on disk.

    Raises:
        InvalidParameter: a share, seed or number of jobs that is out of range.

    >>> Effort(share=0.1).draws(2000), Effort(share=0.1).draws(60)
    (200, 20)
    """

    share: float = 1.0
    seed: int = 2024
    jobs: int = 1
    cache: bool = False

    def __post_init__(self) -> None:
        if not 0 < exact("share", self.share) <= 1:
            raise InvalidParameter(f"share must be in (0, 1], got share={shown(self.share)}")
        keep(self, seed=whole("seed", self.seed, least=0, most=MOST_SEED))
        keep(self, jobs=whole("jobs", self.jobs, least=1, most=256))
        boolean("cache", self.cache)

    def draws(self, full: int, *, least: int = FEWEST) -> int:
        """So many draws, or sets of data, in place of `full`."""
        return min(full, max(round(self.share * full), least))


FULL, QUICK = Effort(), Effort(share=0.1)


@dataclass(frozen=True)
class Statement:
    """A sentence about the numbers of a figure, with those numbers in it, and whether it holds.

    Guarantee:
        `holds` was computed from the numbers that the sentence names.

    >>> Statement("the risk at ε = 1 is 0.0052, in print 0.0052", True).holds
    True
    """

    words: str
    holds: bool


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of a source: what computes its numbers, what draws them, and what must be seen in them.

    Guarantee:
        `numbers` returns the same frame for the same mode, effort and mechanisms, but for measured times.
        `check` reads nothing but that frame.

    Args:
        number: what it is called by: "1" to "24" for [A24], else a letter and a digit.
        name: a few words with hyphens, the name of its files.
        source: a key of `sfumato.lab.errata.SOURCES`, or "sfumato".
        title: one line for readers.
        captions: for each mode what a reader should see, in one to four sentences.
        errata: ids of the errata that are about it.
        numbers: (mode, effort, own mechanisms by name) to a Polars frame.
        chart: (frame, mode) to a picture.
        check: (frame, mode) to the statements that must hold.
        compares: whether mechanisms of a reader's own can be added.
        alone: whether it measures times, and so must not be computed beside others.

    >>> from sfumato.lab.figures import find
    >>> find("3").errata
    ('E20', 'E22', 'E29', 'E30')
    """

    number: str
    name: str
    source: str
    title: str
    captions: Mapping[Mode, str]
    numbers: Callable[[Mode, Effort, Mapping[str, Any]], Any]
    chart: Callable[[Any, Mode], Any]
    check: Callable[[Any, Mode], tuple[Statement, ...]]
    errata: tuple[str, ...] = ()
    compares: bool = False
    alone: bool = False

    @property
    def facts(self) -> dict[str, str]:
        """What it is called and where it comes from, for JSON."""
        return {"number": self.number, "name": self.name, "source": self.source, "title": self.title}
