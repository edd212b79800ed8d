"""Named places where a crash matters; tests replace `fail_point` to stop a process there."""

from collections.abc import Callable

# In the order in which a request passes them.
FAIL_POINTS = (
    "before-begin",
    "before-insert",
    "before-commit",
    "after-commit",
    "before-anchor",
    "after-anchor",
    "before-reply",
    "after-reply",
)


def _nothing(name: str) -> None:
    pass


# Nothing outside the process can change this: no setting and no variable is read.
fail_point: Callable[[str], None] = _nothing
