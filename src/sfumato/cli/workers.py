"""Many audits at once, in processes of their own, and what each found."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from sfumato.audit import Target, WorstCase
from sfumato.processes import results

HOLDS, BROKEN, OPEN, FAILED = "holds", "VIOLATED", "undecided", "NOT AUDITED"


@dataclass(frozen=True)
class Finding:
    """What the audit of a target found, or why it found nothing."""

    target: Target
    worst: WorstCase | None
    error: str = ""

    @property
    def verdict(self) -> str:
        """One word, or two."""
        return FAILED if self.worst is None else self.worst.loss.verdict

    @property
    def exact(self) -> bool:
        """Whether the loss is known, and not only bounded from both sides."""
        return self.worst is not None and self.worst.loss.upper is None


def audited(targets: Sequence[Target], jobs: int, done: Callable[[], None]) -> list[Finding]:
    """The findings in the order of the targets; `done` is called after each."""
    found = {}
    with closing(results(_audit, [*enumerate(targets)], jobs)) as coming:
        for place, finding in coming:
            found[place] = finding
            done()
    return [found[place] for place in range(len(targets))]


def _audit(target: Target) -> Finding:
    try:
        return Finding(target, target.audit())
    except Exception as error:  # one audit that fails must not hide what the others find
        return Finding(target, None, f"{type(error).__name__}: {error}")
