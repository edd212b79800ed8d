"""Which files a path names: one, all below a folder, or those of a pattern; with the keys of partitions."""

import glob
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from sfumato.data.file_bytes import Format, Source, look, regular
from sfumato.data.file_faults import FileFault, fault_of, shown_path

Path = str | os.PathLike[str]
Keys = tuple[tuple[str, str | None], ...]

# How a folder of a partition says that its rows have no value.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_KEY = re.compile(r"([^=/]+)=([^/]*)")
# Names of partitions that all engines read alike; of others the values are told to them.
_PLAIN = re.compile(r"\w+=(?:[\w .,@~-]|%[0-9A-Fa-f]{2})+")
_PASSED_OVER = (".", "_")


@dataclass(frozen=True)
class Piece:
    """One file of a table: where it is below the table's folder, and the keys that its folders say."""

    name: str
    source: Source
    keys: Keys = ()


@dataclass(frozen=True)
class Listing:
    """The files of a table in the order of their names, all of one format."""

    path: str
    shown: str
    folder: str
    pieces: tuple[Piece, ...]
    alone: bool

    @property
    def holds(self) -> Format:
        """The format of all files."""
        return self.pieces[0].source.holds

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the columns that folders say, as in year=2026/part.parquet."""
        return tuple(name for name, _ in self.pieces[0].keys)

    @property
    def keys_are_plain(self) -> bool:
        """Whether all engines read the same keys from the names of folders, and none from above the table."""
        folders = {os.path.dirname(piece.name) for piece in self.pieces}
        parts = {part for folder in folders for part in folder.split(os.sep)}
        return "=" not in self.folder and all(map(_PLAIN.fullmatch, parts))

    @property
    def stamp(self) -> tuple[object, ...]:
        """What the system knows of the files, which differs after a change."""
        if self.alone:
            return self.pieces[0].source.stamp
        return tuple((piece.name, *piece.source.stamp) for piece in self.pieces)

    def require_unchanged(self) -> None:
        """Refuse a table whose files are not those that were listed."""
        if found_files(self.path).stamp != self.stamp:
            raise FileFault(self.shown, "changed")


def listed(path: Path) -> Listing:
    """The files of a path, each looked at; refused if they are not of one format."""
    found = found_files(path)
    pieces = []
    for piece in found.pieces:
        source = look(piece.source.path, piece.source.shown)
        pieces.append(Piece(piece.name, source, piece.keys))
        if source.holds != pieces[0].source.holds:
            raise FileFault(pieces[-1].source.shown, "mixed files")
    return Listing(found.path, found.shown, found.folder, tuple(pieces), found.alone)


def found_files(path: Path) -> Listing:
    """The files of a path, none of which is opened."""
    shown = shown_path(path)
    whole = os.path.abspath(os.fspath(path))
    if os.path.isdir(whole):
        folder, found = whole, sorted(_below(whole, shown))
    elif os.path.lexists(whole) or not glob.has_magic(whole):
        source = regular(path)
        piece = Piece(os.path.basename(whole), source)
        return Listing(whole, shown, os.path.dirname(whole), (piece,), alone=True)
    else:
        folder, found = _matches(whole, shown)
    pieces = tuple(_piece(folder, name, shown) for name in found)
    _require_sound(pieces, shown)
    return Listing(whole, shown, folder, pieces, alone=False)


def _below(folder: str, shown: str) -> Iterator[str]:
    """The names of all files below a folder, relative to it, but for hidden ones."""
    faults: list[OSError] = []
    for place, folders, files in os.walk(folder, onerror=faults.append):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        if any(os.path.islink(os.path.join(place, name)) for name in folders):
            words = "holds a link to a folder; name that folder itself, so that no file is read twice"
            raise FileFault(shown, "special", words)
        for name in files:
            if not _is_hidden(name):
                yield os.path.relpath(os.path.join(place, name), folder)
    if faults:
        raise fault_of(shown, faults[0])


def _is_hidden(name: str) -> bool:
    return name.startswith(_PASSED_OVER) and not _KEY.fullmatch(name)


def _matches(pattern: str, shown: str) -> tuple[str, list[str]]:
    """The folder that a pattern starts from, and the files below it that it matches."""
    folder, rest = pattern, ""
    while not os.path.isdir(folder):
        # What is there by its own name is no pattern, whatever letters it has.
        folder, last = os.path.split(folder)
        rest = os.path.join(last, rest) if rest else last
    found: set[str] = set()
    for name in glob.glob(rest, root_dir=folder, recursive=True):
        whole = os.path.join(folder, name)
        if os.path.isdir(whole):
            found |= {os.path.normpath(os.path.join(name, below)) for below in _below(whole, shown)}
        elif not _is_hidden(os.path.basename(name)):
            found.add(os.path.normpath(name))
    return folder, sorted(found)


def _piece(folder: str, name: str, shown: str) -> Piece:
    folders = os.path.dirname(name).split(os.sep) if os.path.dirname(name) else []
    matched = [_KEY.fullmatch(part) for part in folders]
    keys = tuple(
        (unquote(found[1]), None if found[2] == NO_VALUE else unquote(found[2])) for found in matched if found
    )
    # The folders of partitions are named after values, which are not shown.
    hidden = [f"{found[1]}=..." if found else part for part, found in zip(folders, matched, strict=True)]
    told = shown_path(os.path.join(shown, *hidden, os.path.basename(name)))
    if keys and len(keys) < len(folders):
        words = "is in folders of which only some are named as key=value"
        raise FileFault(told, "mixed files", words)
    return Piece(name, regular(os.path.join(folder, name), told), keys)


def _require_sound(pieces: tuple[Piece, ...], shown: str) -> None:
    if not pieces:
        raise FileFault(shown, "no files")
    first = [name for name, _ in pieces[0].keys]
    seen: set[tuple[int, ...]] = set()
    for piece in pieces:
        source = piece.source
        if [name for name, _ in piece.keys] != first:
            raise FileFault(source.shown, "mixed files", "is in folders of other keys than the first file")
        if source.stamp[:2] in seen:
            words = "is the same file as another one there, by a link; its rows would count twice"
            raise FileFault(source.shown, "special", words)
        seen.add(source.stamp[:2])
    if len(set(first)) < len(first):
        raise FileFault(shown, "duplicate column", "has folders that say one key twice")
