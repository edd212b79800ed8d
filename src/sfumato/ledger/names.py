"""Names that look alike, by the skeletons of Unicode Technical Standard 39.

Budgets attach to names, so that two names that people take for one would be two budgets for the same people.
"""

from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from unicodedata import normalize

# What is not shown: Default_Ignorable_Code_Point of Unicode 17.0.0.
_IGNORED = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F)),
    *((0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A)),
    (0xE0000, 0xE0FFF),
)


def look_alike(name: str, others: Iterable[str]) -> str | None:
    """The first of the other names that people may take for this one; None if there is none."""
    own = _skeletons(name)
    for other in others:
        if other != name and any(map(str.__eq__, own, _skeletons(other))):
            return other
    return None


@lru_cache(maxsize=2**14)
def _skeletons(name: str) -> tuple[str, str]:
    """Two texts; names that look alike have the same first or the same second one.

    The first ignores case before it compares shapes, as for "PEOPLE" and "people". The second compares shapes
    as they are written, as for a capital I and a small l.
    """
    return _shape(_folded(name)), _shape(name)


def _shape(text: str) -> str:
    """The skeleton of UTS 39, then without case and with single blanks."""
    for _ in range(2):  # a few prototypes have parts with prototypes of their own
        text = normalize("NFD", text).translate(_prototypes())
    return " ".join(_folded(text).split())


def _folded(text: str) -> str:
    return normalize("NFKC", normalize("NFKC", text).casefold())


@lru_cache(maxsize=1)
def _prototypes() -> dict[int, str | None]:
    """What each character is replaced by; None for those that are not shown."""
    table: dict[int, str | None] = {}
    for line in files(__package__).joinpath("confusables.txt").read_text("ascii").splitlines():
        if not line.startswith("#"):
            prototype, _, alike = line.partition(";")
            text = "".join(chr(int(code, 16)) for code in prototype.split())
            table.update((int(code, 16), text) for code in alike.split())
    return table | {code: None for first, last in _IGNORED for code in range(first, last + 1)}
