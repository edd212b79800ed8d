"""Results of experiments on disk, found again by the content of all that they depend on."""

import dis
import hashlib
import inspect
import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.whole_files import write_file

# Of the files; a change makes all older ones unknown.
FORMAT = 2
# What functions use of these is known by a version, or by the digest of this package.
_KNOWN = {"numpy", "sfumato", *sys.stdlib_module_names}


class Unknown(Exception):
    """The content of something cannot be told."""


def content_of(told: object) -> str | None:
    """A digest of what is told and of the code that computes with it, or None if that cannot be known."""
    try:
        described = json.dumps([FORMAT, _code(), _described(told, ())], sort_keys=True)
    except (Unknown, RecursionError):
        return None
    return hashlib.sha256(described.encode()).hexdigest()


@lru_cache(maxsize=1)
def _code() -> str:
    """A digest of this package and of what it computes with: what other code computed is not taken."""
    versions = platform.python_version(), version("numpy"), version("scipy")
    digest = hashlib.sha256(repr(versions).encode())
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _described(told: object, around: tuple[FunctionType, ...]) -> Any:
    """Anything that settings are made of, as JSON that differs where it does."""
    if told is None or told is Ellipsis or isinstance(told, bool | int | float | complex | str):
        return [type(told).__name__, repr(told)]
    if isinstance(told, bytes):
        return ["bytes", told.hex()]
    # The bytes of objects are addresses, and those of a masked array have no mask.
    if type(told) is np.ndarray and not told.dtype.hasobject:
        return [
            "array",
            str(told.dtype),
            list(told.shape),
            hashlib.sha256(told.tobytes()).hexdigest(),
        ]
    if type(told) is dict:
        return ["mapping", [[_described(key, around), _described(one, around)] for key, one in told.items()]]
    if type(told) in (list, tuple):
        return [type(told).__name__, [_described(one, around) for one in told]]  # type: ignore[attr-defined]
    if type(told) in (set, frozenset):  # whose order differs between processes
        return ["set", sorted(json.dumps(_described(one, around)) for one in told)]  # type: ignore[attr-defined]
    if isinstance(told, FunctionType):
        return ["around", around.index(told)] if told in around else _function(told, (*around, told))
    if type(told) is partial:
        return ["partial", *(_described(one, around) for one in (told.func, told.args, told.keywords))]
    if type(told).__module__ == "fractions":
        return ["fraction", str(told)]
    if is_dataclass(told) and not isinstance(told, type) and _home(type(told)) == "sfumato":
        own = [[one.name, _described(getattr(told, one.name), around)] for one in fields(told)]
        return [type(told).__module__, type(told).__qualname__, own]
    name = getattr(told, "__qualname__", None)
    # A method has something else that it belongs to.
    if name is not None and _home(told) in ("numpy", "sfumato") and not inspect.ismethod(told):
        return ["known", getattr(told, "__module__", ""), name]
    raise Unknown


def _home(told: object) -> str:
    return (getattr(told, "__module__", None) or "").split(".")[0]


def _function(told: FunctionType, around: tuple[FunctionType, ...]) -> Any:
    """A function by its code, by what it holds, and by what it finds by name, other functions too."""
    try:
        held = [_described(cell.cell_contents, around) for cell in told.__closure__ or ()]
    except ValueError as error:  # a name that has no value yet
        raise Unknown from error
    own = [_described(one, around) for one in (told.__defaults__, told.__kwdefaults__, vars(told))]
    if _home(told) == "sfumato":  # the digest of this package tells the rest
        return ["function", told.__module__, told.__qualname__, held, own]
    names: set[str] = set()
    for code in _codes(told.__code__):
        names |= set(code.co_names)
        imported = [step.argval for step in dis.get_instructions(code) if step.opname == "IMPORT_NAME"]
        if any(str(name).split(".")[0] not in _KNOWN for name in imported):
            raise Unknown
    known = told.__globals__
    found = [[name, _global(known[name], around)] for name in sorted(names & set(known))]
    return ["function", _of_code(told.__code__, around), held, own, found]


def _global(told: object, around: tuple[FunctionType, ...]) -> Any:
    if not inspect.ismodule(told):
        return _described(told, around)
    if told.__name__.split(".")[0] not in _KNOWN:
        raise Unknown  # any function of it may have changed
    return ["module", told.__name__]


def _of_code(code: CodeType, around: tuple[FunctionType, ...]) -> Any:
    """What code does, wherever it stands: no names of files, no numbers of lines."""
    told = [code.co_code, code.co_exceptiontable, code.co_names, code.co_varnames, code.co_freevars]
    counts = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
    held = [
        _of_code(one, around) if isinstance(one, CodeType) else _described(one, around)
        for one in code.co_consts
    ]
    return ["code", _described([*told, *counts], around), held]


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of the functions and comprehensions in it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


@dataclass(frozen=True)
class Cache:
    """A folder of results by the digest of what they depend on."""

    folder: Path

    @classmethod
    def at(cls, wanted: bool | str | os.PathLike[str]) -> "Cache | None":
        """The cache that was asked for: a folder, the usual one, or none."""
        if wanted is False or wanted is None:
            return None
        if wanted is True:
            return cls(usual_folder())
        if not isinstance(wanted, str | os.PathLike):
            raise InvalidParameter(f"cache must be True, False or a folder, got {type(wanted).__name__}")
        path = os.fsdecode(wanted)
        if not path or "\0" in path:
            raise InvalidParameter(f"cache must be True, False or a folder, got cache={path!r}")
        return cls(Path(path))

    def read(self, key: str | None) -> Any:
        """What is kept under a key, or None; a damaged file counts as none."""
        if key is None:
            return None
        try:
            return json.loads(self._path(key).read_text("utf-8"))
        except (OSError, ValueError):
            return None

    def write(self, key: str | None, rows: Any) -> None:
        """Keep results, whole or not at all; a folder that cannot be written to keeps nothing."""
        if key is None:
            return
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, json.dumps(rows).encode())
        except OSError:
            return

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key[2:]}.json"


def usual_folder() -> Path:
    """Where results are kept unless another folder is named."""
    base = os.environ.get("XDG_CACHE_HOME") or ""
    # One that is not absolute counts as none, as its specification says.
    if not os.path.isabs(base):
        try:
            base = str(Path.home() / ".cache")
        except RuntimeError:
            raise InvalidParameter("cache must be a folder where there is no home, got cache=True") from None
    return Path(base) / "sfumato" / "lab"
