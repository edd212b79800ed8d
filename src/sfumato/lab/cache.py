"""Results of experiments on disk, found again by the content of all that they depend on."""

import hashlib
import inspect
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import InvalidParameter

# Of the files; a change makes all older ones unknown.
FORMAT = 1


class Unknown(Exception):
    """The content of something cannot be told."""


def content_of(told: object) -> str | None:
    """A digest of what is told and of the code that computes with it, or None if that cannot be known."""
    try:
        described = json.dumps([FORMAT, _code(), _described(told)], sort_keys=True)
    except Unknown:
        return None
    return hashlib.sha256(described.encode()).hexdigest()


@lru_cache(maxsize=1)
def _code() -> str:
    """A digest of this package and of the version of NumPy: what another code computed is not taken."""
    digest = hashlib.sha256(version("numpy").encode())
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _described(told: object) -> Any:
    """Anything that settings are made of, as JSON that differs where it does."""
    if told is None or isinstance(told, bool | int | float | str):
        return [type(told).__name__, repr(told)]
    if isinstance(told, bytes):
        return ["bytes", told.hex()]
    if isinstance(told, np.ndarray):
        return [
            "array",
            str(told.dtype),
            list(told.shape),
            hashlib.sha256(told.tobytes()).hexdigest(),
        ]
    if isinstance(told, Mapping):
        return ["mapping", [[_described(key), _described(value)] for key, value in told.items()]]
    if isinstance(told, list | tuple):
        return [type(told).__name__, [_described(one) for one in told]]
    if is_dataclass(told) and not isinstance(told, type):
        own = [[one.name, _described(getattr(told, one.name))] for one in fields(told)]
        return [type(told).__qualname__, own]
    if inspect.isfunction(told):
        return _function(told)
    if type(told).__module__ == "fractions":
        return ["fraction", str(told)]
    name = getattr(told, "__qualname__", None)
    if name is not None and (getattr(told, "__module__", None) or "").split(".")[0] == "numpy":
        return ["numpy", name]
    raise Unknown


def _function(told: Callable[..., Any]) -> Any:
    """A function by its text and by what it holds; what it finds elsewhere by name is not looked at."""
    try:
        text = inspect.getsource(told)
    except (OSError, TypeError) as error:
        raise Unknown from error
    code: Any = told.__code__
    held = [_described(cell.cell_contents) for cell in told.__closure__ or ()]
    # Names of the module that the text uses may mean anything; modules themselves are taken as they are.
    used = {name: told.__globals__[name] for name in code.co_names if name in told.__globals__}
    others = [
        [name, _described(value)] for name, value in sorted(used.items()) if not inspect.ismodule(value)
    ]
    return ["function", text, held, _described(told.__defaults__), _described(told.__kwdefaults__), others]


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
        return cls(Path(wanted))

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
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
                json.dump(rows, file)
            os.replace(file.name, path)
        except OSError:
            return

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key[2:]}.json"


def usual_folder() -> Path:
    """Where results are kept unless another folder is named."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sfumato" / "lab"
