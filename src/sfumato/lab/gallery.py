"""Figures drawn and saved, one by one or all on a page with what is published beside what is right."""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import sfumato
from sfumato.charts.files import content
from sfumato.checks import one_of, shown, whole
from sfumato.errors import InvalidParameter, MissingExtra
from sfumato.lab import figures, gallery_page
from sfumato.lab.errata import ERRATA
from sfumato.lab.figure import FULL, MODES, QUICK, Effort, Figure, Mode, Statement
from sfumato.lab.gallery_page import INDEX, STATEMENTS, Plate
from sfumato.lab.runs import subjects_of
from sfumato.processes import results
from sfumato.safe_text import csv_bytes
from sfumato.whole_files import read_file, write_file

SCHEMA = 1
EFFORTS = {"full": FULL, "quick": QUICK}
MOST_JOBS = 256


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A figure that was computed: its table, its chart, and which statements about it hold.

    Guarantee:
        `save` leaves whole files or none: the picture as SVG and PNG, the table as CSV, and as JSON the
        caption and the statements.

    Args:
        figure: what was drawn.
        mode: as "published" or "corrected".
        table: its numbers, a Polars frame.
        chart: an Altair chart of them.
        statements: what must be seen in the numbers, and whether it is.

    >>> from sfumato.lab.gallery import draw
    >>> drawn = draw("22", effort="quick")
    >>> drawn.stem.startswith("22-"), drawn.holds
    (True, True)
    """

    figure: Figure
    mode: Mode
    table: Any
    chart: Any
    statements: tuple[Statement, ...]

    @property
    def holds(self) -> bool:
        """Whether every statement holds."""
        return all(statement.holds for statement in self.statements)

    @property
    def stem(self) -> str:
        """The name of its files, without an ending."""
        return f"{self.figure.number}-{self.figure.name}-{self.mode}"

    def __str__(self) -> str:
        """Title, caption and statements as text."""
        head = f"Figure {self.figure.number}, {self.mode}: {self.figure.title}"
        lines = (f"  {'holds' if each.holds else 'FAILS'}: {each.words}" for each in self.statements)
        return "\n".join([head, self.figure.captions[self.mode], *lines])

    def record(self) -> dict[str, Any]:
        """Caption and statements, for JSON."""
        return {
            "mode": self.mode,
            "caption": self.figure.captions[self.mode],
            "holds": self.holds,
            "statements": _told(self.statements),
        }

    def files(self) -> dict[str, bytes]:
        """Its picture as SVG and PNG and its table as CSV, by their names."""
        pictures = {f"{self.stem}{ending}": content(self.chart, ending) for ending in (".svg", ".png")}
        return {**pictures, f"{self.stem}.csv": csv_bytes(self.table)}

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write its files to a folder, which is made if need be; their paths."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        record = {"schema": SCHEMA, "version": sfumato.__version__, **self.figure.facts, **self.record()}
        return _written(target, {**self.files(), f"{self.stem}.json": _as_json(record)})


@dataclass(frozen=True, kw_only=True)
class Gallery:
    """A page of figures that was written, and what stands on it."""

    path: Path
    figures: tuple[Figure, ...]
    plates: tuple[Plate, ...]

    @property
    def failing(self) -> tuple[tuple[Plate, Statement], ...]:
        """The statements that do not hold, with where they stand."""
        return tuple((plate, each) for plate in self.plates for each in plate.statements if not each.holds)

    @property
    def missing(self) -> tuple[Plate, ...]:
        """What could not be drawn."""
        return tuple(plate for plate in self.plates if plate.error)


def draw(
    which: str | int | Figure,
    *,
    mode: Mode = "corrected",
    effort: Effort | str = FULL,
    own: Mapping[str, Any] | None = None,
) -> Drawn:
    """Computes a figure, draws it, and checks what must be seen in it.

    Guarantee:
        The same table for the same mode, effort and mechanisms, but for measured times.

    Args:
        which: its number, such as 11 or "R1", its name, or a `Figure`.
        mode: "published" for what the source computes, "corrected" for what is right.
        effort: "full", "quick" for a tenth of the draws, or an `Effort` with a seed of your own.
        own: mechanisms of your own by name, for the figures that compare.

    Raises:
        InvalidParameter: there is no such figure, mode or effort, or the figure does not compare.
        MissingExtra: Altair is not installed.

    >>> draw("22", mode="published", effort="quick").table.height > 100
    True
    """
    figure = which if isinstance(which, Figure) else figures.find(str(which))
    one_of("mode", mode, MODES)
    if own is not None and not isinstance(own, Mapping):
        raise InvalidParameter(f"own must be a mapping of names to mechanisms, got own={shown(own)}")
    if own:
        subjects_of(own)
    if own and not figure.compares:
        raise InvalidParameter(f"own goes with figures that compare, and figure {figure.number} does not")
    table = figure.numbers(mode, _effort(effort), dict(own or {}))
    return Drawn(
        figure=figure,
        mode=mode,
        table=table,
        chart=figure.chart(table, mode),
        statements=tuple(figure.check(table, mode)),
    )


def write(
    folder: str | os.PathLike[str],
    *,
    which: Sequence[str | int | Figure] | None = None,
    modes: Sequence[Mode] = MODES,
    effort: Effort | str = FULL,
    jobs: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
) -> Path:
    """Draws figures in both modes and writes them to a folder, with one page that shows all.

    Guarantee:
        The page stands on its own: it runs no script and asks the network for nothing. Every file is whole
        or not there; the page and statements.json come last. A figure that cannot be computed is named on the
        page, and stops no other.

    Args:
        folder: where to; it is made if need be.
        which: the figures, as for `draw`; all of them if not given, and then all errata too.
        modes: "published", "corrected", or both.
        effort: as for `draw`.
        jobs: so many processes; figures that measure times are computed before all others, alone.
        progress: is told what was done, how much that makes, and of how much.

    Raises:
        InvalidParameter: a figure, mode or effort that there is not; an index.html of something else.
        MissingExtra: the extra charts is not installed.

    >>> import tempfile
    >>> write(tempfile.mkdtemp(), which=[23], modes=["corrected"], effort="quick").name
    'index.html'
    """
    return gallery(folder, which=which, modes=modes, effort=effort, jobs=jobs, progress=progress).path


def gallery(
    folder: str | os.PathLike[str],
    *,
    which: Sequence[str | int | Figure] | None = None,
    modes: Sequence[Mode] = MODES,
    effort: Effort | str = FULL,
    jobs: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
) -> Gallery:
    """The same as `write`, with what was found."""
    given = tuple(figures.FIGURES) if which is None else which
    chosen = tuple(each if isinstance(each, Figure) else figures.find(str(each)) for each in given)
    for mode in modes:
        one_of("mode", mode, MODES)
    whole("jobs", jobs, least=1, most=MOST_JOBS)
    extent = replace(_effort(effort), jobs=1)
    gallery_page.known(chosen)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    _own_page(target / INDEX)
    pairs = [(figure, mode) for figure in chosen for mode in modes]
    alone = [_task(figure, mode, extent) for figure, mode in pairs if figure.alone]
    # A whole gallery has all errata, another those of its figures.
    named = {name for figure in chosen for name in figure.errata}
    errata = [erratum for erratum in ERRATA if which is None or erratum.id in named]
    shared: list[Callable[[], Any]] = [partial(_finding, erratum.id) for erratum in errata]
    shared += [_task(figure, mode, extent) for figure, mode in pairs if not figure.alone]
    plates: dict[tuple[str, Mode], Plate] = {}
    findings: dict[str, str] = {}
    # Times are measured while no other process is at work.
    for tasks, processes in ((alone, 1), (shared, jobs)):
        with closing(results(_called, [*enumerate(tasks)], processes)) as coming:
            for _, result in coming:
                if isinstance(result, Plate):
                    _written(target, result.files)
                    # Written is written: of the bytes only the names are needed again.
                    plate = replace(result, files=dict.fromkeys(result.files, b""))
                    plates[plate.number, plate.mode] = plate
                    words = f"figure {plate.number}, {plate.mode}"
                else:
                    findings |= result
                    words = f"erratum {next(iter(result))}"
                if progress is not None:
                    progress(words, len(plates) + len(findings), len(alone) + len(shared))
    hung = tuple(plates[figure.number, mode] for figure, mode in pairs)
    found = Gallery(path=target / INDEX, figures=chosen, plates=hung)
    page = gallery_page.html(chosen, hung, findings, extent)
    _written(target, {STATEMENTS: _as_json(_record(found, extent)), INDEX: page.encode()})
    return found


def _effort(effort: Effort | str) -> Effort:
    if isinstance(effort, Effort):
        return effort
    return EFFORTS[one_of("effort", effort, tuple(EFFORTS))]


def _task(figure: Figure, mode: Mode, effort: Effort) -> Callable[[], Any]:
    # Functions inside a figure may be of a kind that is not sent to other processes: there its number does.
    known = figures.FIGURES.get(figure.number) is figure
    return partial(_plate, figure.number if known else figure, mode, effort)


def _own_page(index: Path) -> None:
    if os.path.lexists(index) and gallery_page.GENERATOR.encode() not in read_file(index):
        raise InvalidParameter(f"folder must not hold the page of something else, got {shown(str(index))}")


def _called(task: Callable[[], Any]) -> Any:
    return task()


def _finding(name: str) -> dict[str, str]:
    return {each.id: each.finding().text for each in ERRATA if each.id == name}


def _plate(which: str | Figure, mode: Mode, effort: Effort) -> Plate:
    start = time.perf_counter()
    figure = which if isinstance(which, Figure) else figures.find(which)
    try:
        drawn = draw(figure, mode=mode, effort=effort)
        plate = gallery_page.plate(drawn, drawn.files())
    except MissingExtra:
        raise
    except Exception as error:  # one figure that fails must not hide the others
        plate = Plate(number=figure.number, mode=mode, error=f"{type(error).__name__}: {error}")
    return replace(plate, seconds=time.perf_counter() - start)


def _written(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    for name, data in files.items():
        write_file(folder / name, data)
    return [folder / name for name in files]


def _as_json(record: Any) -> bytes:
    return f"{json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)}\n".encode()


def _told(statements: Sequence[Statement]) -> list[dict[str, Any]]:
    return [{"words": each.words, "holds": each.holds} for each in statements]


def _record(found: Gallery, effort: Effort) -> dict[str, Any]:
    """All statements, for JSON; without times, so that two runs can be compared."""
    return {
        "schema": SCHEMA,
        "version": sfumato.__version__,
        "effort": {"share": effort.share, "seed": effort.seed},
        "holds": not found.failing and not found.missing,
        "figures": [
            {
                **figure.facts,
                "modes": {
                    plate.mode: {
                        "statements": _told(plate.statements),
                        "error": plate.error or None,
                    }
                    for plate in found.plates
                    if plate.number == figure.number
                },
            }
            for figure in found.figures
        ],
    }
