"""What an engine does with files: scans that are lazy tables, of which nothing is collected but counts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from sfumato.data.file_bytes import Header
from sfumato.data.file_faults import FileFault
from sfumato.data.file_listing import Piece
from sfumato.data.file_types import EXACT_DIGITS, FileKind
from sfumato.data.warning_filters import all_warnings
from sfumato.errors import SfumatoError

T = TypeVar("T")
EngineName = Literal["polars", "duckdb", "spark"]


@dataclass(frozen=True)
class Wanted:
    """A column of a table: its name, where a scan has it, its kind, and how it is to be read.

    Cells are text and read by the grammar of CSV; stored values are cast, or kept if they are wide integers
    or dates, in a time zone or not, or all null. Of stored values the type in Polars is known, and whether
    they are text of declared categories.
    """

    name: str
    place: str
    kind: FileKind
    how: Literal["cell", "cast", "keep", "zoned", "null"]
    stored: Any = None
    listed: bool = False

    @property
    def is_text(self) -> bool:
        """Whether text is stored, which need not be UTF-8."""
        return self.kind == "text" and self.how == "cast"

    @property
    def is_millis(self) -> bool:
        """Whether 64 bits may not hold the microseconds of what is stored."""
        return self.kind == "datetime" and getattr(self.stored, "time_unit", "") == "ms"

    @property
    def scale(self) -> int | None:
        """How many digits of a stored decimal are a fraction, if it may have more than 64 bits."""
        digits = getattr(self.stored, "precision", None)
        long = self.kind == "real" and digits is not None and digits > EXACT_DIGITS
        return int(self.stored.scale) if long else None


@dataclass(frozen=True)
class Lines:
    """Checked CSV files with one header: how many rows they have, and the places of the needed columns."""

    pieces: tuple[Piece, ...]
    rows: int
    header: Header
    gzipped: bool
    needed: tuple[int, ...]


class Scanner(Protocol):
    """What an engine can do with files."""

    def lines(self, form: Lines) -> Any:
        """The needed columns of CSV files as text, called place(0), place(1) and so on."""

    def stored(self, pieces: Sequence[Piece], wanted: Sequence[Wanted], folder: str | None) -> Any:
        """Columns of Parquet or Arrow files of one form, by their names; with a folder, its keys as text."""

    def read(self, frame: Any, wanted: Sequence[Wanted], said: Mapping[str, str | None]) -> Any:
        """The wanted columns, under their names; some are the same in all rows."""

    def wrong(self, frame: Any, wanted: Sequence[Wanted]) -> list[int]:
        """How many rows there are, and for each wanted column how many cells are not of its kind."""

    def together(self, frames: Sequence[Any]) -> Any:
        """The rows of several frames."""

    def empty(self, wanted: Sequence[Wanted]) -> Any:
        """A table of these columns without rows."""


def place(index: int) -> str:
    """What a column of a CSV file is called by its place: a name in a header may hold anything."""
    return f"c{index}"


def guarded(fault: FileFault, work: Callable[[], T]) -> T:
    """What some work of an engine gives; whatever it raises becomes the fault."""
    try:
        # Engines warn of versions and types; a warning may quote what it met.
        with all_warnings("ignore"):
            return work()
    except (SfumatoError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException:  # a panic of Polars is no Exception
        pass
    # Outside of the handler: an error that is chained shows the one before.
    raise fault


def scanner(engine: EngineName) -> Scanner:
    """The scanner of an engine; MissingExtra if it is not installed."""
    if engine == "duckdb":
        from sfumato.data.file_duckdb import DuckdbScanner

        return DuckdbScanner()
    if engine == "spark":
        from sfumato.data.file_spark import SparkScanner

        return SparkScanner()
    from sfumato.data.file_polars import PolarsScanner

    return PolarsScanner()
