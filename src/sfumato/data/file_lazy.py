"""Files left to an engine: checked before anything is charged, then a lazy table of the needed columns."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from sfumato.data.field import Field
from sfumato.data.file_bytes import Header, csv_header, csv_rows
from sfumato.data.file_cells import fits
from sfumato.data.file_faults import FileFault, no_such_column, not_as_declared
from sfumato.data.file_listing import Keys, Listing, Piece
from sfumato.data.file_parquet import damage, file_types, is_wide, kind_as_declared
from sfumato.data.file_scans import EngineName, Lines, Scanner, Wanted, guarded, place, scanner
from sfumato.data.file_types import FileKind, declared_kind, stored_kind

# Each partition of CSV or Arrow files is a scan of its own; Parquet has no such limit.
MOST_SCANS = 1_000


def require_same(listing: Listing, names: Sequence[tuple[str, ...]]) -> None:
    """Refuse files that have not all the same columns, in whatever order, and a column that is a key too."""
    first = set(names[0])
    for piece, found in zip(listing.pieces, names, strict=True):
        if set(found) != first:
            words = "has other columns than the first file there; all must have the same"
            raise FileFault(piece.source.shown, "mixed files", words)
    twice = first & set(listing.keys)
    if twice:
        words = "has a column of a name that its folders say as well, as in name=value"
        raise FileFault(listing.pieces[0].source.shown, "duplicate column", words)


def _require_columns(listing: Listing, fields: Mapping[str, Field], names: Sequence[str]) -> None:
    known = (*filter(None, names), *listing.keys)
    for name in fields:
        if name not in known:
            raise no_such_column(listing.shown, name, known)


def _require_apart(listing: Listing, names: Sequence[str]) -> None:
    """Refuse names that DuckDB and Spark take for one, and so rename, or read one column for another."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.casefold(), name)
        if other != name:
            words = f"has columns whose names differ in case alone, {other!r} and {name!r}"
            raise FileFault(listing.shown, "duplicate column", f"{words}: rename one, or use engine='polars'")


def _key_kinds(listing: Listing, fields: Mapping[str, Field]) -> dict[str, FileKind]:
    """The kinds of the needed keys of partitions; their values are text, in the names of folders."""
    found: dict[str, FileKind] = {}
    for index, name in enumerate(listing.keys):
        if name in fields:
            found[name] = declared_kind(fields[name]) or "text"
            if not all(fits(piece.keys[index][1], found[name]) for piece in listing.pieces):
                raise not_as_declared(listing.shown, name, found[name])
    return found


def lazy_stored(listing: Listing, fields: Mapping[str, Field], engine: EngineName) -> Any:
    """The needed columns of Parquet or Arrow files, of which only the schemas are read."""
    types = [file_types(piece.source) for piece in listing.pieces]
    require_same(listing, [tuple(each) for each in types])
    _require_columns(listing, fields, tuple(types[0]))
    if engine != "polars":
        _require_apart(listing, (*types[0], *listing.keys))
    keys = _key_kinds(listing, fields)
    plain = listing.holds == "parquet" and bool(keys) and listing.keys_are_plain
    forms: dict[tuple[Any, ...], list[Piece]] = defaultdict(list)
    for piece, stored in zip(listing.pieces, types, strict=True):
        wanted = tuple(
            Wanted(name, name, keys[name], "cell")
            if name in keys
            else _stored(piece, name, stored[name], types[0][name], field)
            for name, field in fields.items()
        )
        layout = tuple(str(stored[name]) for name in fields if name not in keys)
        forms[wanted, layout, () if plain or not keys else piece.keys].append(piece)
    _require_few(listing, len(forms))
    fault = damage(replace(listing.pieces[0].source, shown=listing.shown))

    def opened() -> Any:
        scans = scanner(engine)
        frames = []
        for (wanted, _, said), pieces in forms.items():
            stored = [each for each in wanted if each.name not in keys]
            # Of a table whose needed columns are all keys, some column tells how many rows there are.
            scanned = scans.stored(pieces, stored or _any(pieces[0]), listing.folder if plain else None)
            frames.append(scans.read(scanned, wanted, {name: value for name, value in said if name in keys}))
        return scans.together(frames)

    return guarded(fault, opened)


def _any(piece: Piece) -> list[Wanted]:
    name, dtype = next(iter(file_types(piece.source).items()))
    kind = stored_kind(dtype) or "text"
    return [Wanted(name, name, kind, "keep" if kind in ("date", "datetime") else "cast", dtype)]


def _stored(piece: Piece, name: str, stored: Any, first: Any, field: Field) -> Wanted:
    import polars as pl

    kind = kind_as_declared(piece.source.shown, name, stored, field)
    if declared_kind(field) is None and stored_kind(stored) != stored_kind(first):
        words = f"stores another type in column {name!r} than the first file there"
        raise FileFault(piece.source.shown, "mixed files", words)
    if stored == pl.Null:
        return Wanted(name, name, kind, "null")
    if kind in ("date", "datetime"):
        return Wanted(name, name, kind, "zoned" if getattr(stored, "time_zone", None) else "keep", stored)
    how: Literal["keep", "cast"] = "keep" if kind == "integer" and is_wide(stored) else "cast"
    return Wanted(name, name, kind, how, stored, listed=field.categories is not None)


def _require_few(listing: Listing, count: int) -> None:
    if count > MOST_SCANS:
        words = f"has more than {MOST_SCANS:,} partitions; save it as Parquet, for which that is no matter"
        raise FileFault(listing.shown, "mixed files", words)


def lazy_lines(listing: Listing, fields: Mapping[str, Field], engine: EngineName) -> Any:
    """The needed columns of CSV files: lines are checked as bytes, and cells by a pass of the engine."""
    headers = [csv_header(piece.source) for piece in listing.pieces]
    require_same(listing, [header.names for header in headers])
    _require_columns(listing, fields, headers[0].names)
    keys = _key_kinds(listing, fields)
    scans = scanner(engine)
    # What files must share to be scanned together.
    forms: dict[tuple[Header, bool, Keys], dict[Piece, int]] = defaultdict(dict)
    for piece, header in zip(listing.pieces, headers, strict=True):
        rows = csv_rows(piece.source, header)
        if rows:
            forms[replace(header, size=0), piece.source.gzipped, piece.keys][piece] = rows
    _require_few(listing, len(forms))
    wanted = [
        Wanted(name, _key_place(name) if name in keys else name, declared_kind(field) or "text", "cell")
        for name, field in fields.items()
    ]
    fault = FileFault(listing.shown, "parse")
    if not forms:
        return guarded(fault, lambda: scans.empty(wanted))
    texts = guarded(
        fault,
        lambda: scans.together(
            [_text(scans, wanted, keys, header, pieces) for (header, *_), pieces in forms.items()]
        ),
    )
    listing.require_unchanged()
    found, *wrong = guarded(fault, lambda: scans.wrong(texts, _renamed(wanted)))
    if found != sum(sum(pieces.values()) for pieces in forms.values()):
        # What the engine took for rows are not the lines of the files.
        listing.require_unchanged()
        raise fault
    for each, count in zip(wanted, wrong, strict=True):
        if count:
            raise not_as_declared(listing.shown, each.name, each.kind)
    return guarded(fault, lambda: scans.read(texts, _renamed(wanted), {}))


def _key_place(name: str) -> str:
    return f"key {name}"


def _renamed(wanted: Sequence[Wanted]) -> list[Wanted]:
    return [replace(each, place=f"text {index}") for index, each in enumerate(wanted)]


def _text(
    scans: Scanner,
    wanted: Sequence[Wanted],
    keys: Mapping[str, FileKind],
    header: Header,
    rows: Mapping[Piece, int],
) -> Any:
    """The needed columns of some files as text, under names of their own."""
    first = next(iter(rows))
    at = {name: index for index, name in enumerate(header.names)}
    texts = [
        Wanted(f"text {index}", each.place if each.name in keys else place(at[each.name]), "text", "keep")
        for index, each in enumerate(wanted)
    ]
    needed = [at[each.name] for each in wanted if each.name not in keys]
    # Of a table whose needed columns are all keys, some column tells how many rows there are.
    form = Lines(tuple(rows), sum(rows.values()), header, first.source.gzipped, tuple(needed or [0]))
    said = {_key_place(name): value for name, value in first.keys if name in keys}
    return scans.read(scans.lines(form), texts, said)
