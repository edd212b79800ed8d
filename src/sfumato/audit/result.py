"""What an attack says when it is done."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class AttackResult:
    """What one attack found: whether it succeeded, in words, and with its figures.

    Guarantee:
        `succeeded` is True only if the evidence passes the level that the attack states. False says that
        this attack found nothing, and no more.

    >>> print(AttackResult(attack="low-order bits", succeeded=False, evidence="400 draws, none telling"))
    low-order bits: nothing found (400 draws, none telling)
    """

    attack: str
    succeeded: bool
    evidence: str
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """Either "succeeded" or "nothing found"."""
        return "succeeded" if self.succeeded else "nothing found"

    def __str__(self) -> str:
        return f"{self.attack}: {self.verdict} ({self.evidence})"
