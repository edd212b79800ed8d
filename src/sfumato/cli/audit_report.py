"""What audits found, as a table for people and as JSON for programs."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

from rich.padding import Padding
from rich.text import Text

import sfumato
from sfumato.audit import AttackResult, Estimate, Target
from sfumato.cli.output import in_symbols, output, table
from sfumato.cli.workers import BROKEN, FAILED, HOLDS, OPEN, Finding
from sfumato.query import Cost

# The form of the JSON documents: raised when a field changes its meaning or goes.
SCHEMA = 1
# Fewer columns of text than this have no room for all columns of the table.
NARROW = 76
UNREFUTED = "not refuted"
ATTACKED = {False: "green", True: "bold red"}
STYLES = {HOLDS: "green", UNREFUTED: "green", BROKEN: "bold red", FAILED: "bold yellow", OPEN: "yellow"}


def print_findings(findings: Sequence[Finding], *, each: bool, seconds: float) -> None:
    """A table of the claims with the worst loss of each, what is wrong, and a line that sums up."""
    console = output()
    # Where there is little room, the columns that say least are left out.
    narrow = console.width < NARROW
    made = table("target", "claimed", "loss", *(() if narrow else ("tight", "pairs")), "verdict")
    for group, members in itertools.groupby(findings, key=lambda finding: finding.target.group):
        if made.row_count:
            made.add_section()
        made.add_row(Text(group, style="bold"))
        for name, parts in _rows(list(members), each):
            loss, tight, pairs, verdict = _numbers(parts)
            claimed = in_symbols(parts[0].target.cost, console)
            middle = () if narrow else (tight, pairs)
            made.add_row(Padding(name, (0, 0, 0, 2)), claimed, loss, *middle, _styled(verdict))
    console.print(made)
    for finding in findings:
        if finding.verdict != HOLDS:
            console.print(f"\n{_reason(finding)}", style=STYLES[finding.verdict])
    audits = "1 audit" if len(findings) == 1 else f"{len(findings):,} audits"
    pairs = f"{sum(finding.worst.pairs for finding in findings if finding.worst):,} pairs of neighbours"
    console.print(f"\n{audits}, {pairs}, {seconds:.0f} s: {_summary(findings)}.")


def print_estimate(
    mechanism: str, claim: Cost, samples: int, estimate: Estimate, attacks: Sequence[AttackResult]
) -> None:
    """A table of one line, what was seen, and what the attacks found."""
    console = output()
    made = table("target", "claimed", "epsilon at least", "draws", "verdict")
    verdict = BROKEN if estimate.refuted else UNREFUTED
    bound = f"{estimate.epsilon:.4g}"
    made.add_row(mechanism, in_symbols(claim, console), bound, f"{2 * samples:,}", _styled(verdict))
    console.print(made)
    seen = f"{estimate.hits[0]:,} and {estimate.hits[1]:,} of {estimate.draws:,} draws"
    console.print(f"\nAt {estimate.confidence:.4g} confidence, by one event: {estimate.event} ({seen}).")
    if estimate.delta and estimate.delta > estimate.claimed_delta:
        console.print(f"At the claimed epsilon, delta is at least {estimate.delta:.3g}.")
    if not estimate.refuted:
        console.print("A bound below the claim is no proof that the claim holds.")
    if attacks:
        made = table("attack", "found", "evidence")
        for result in attacks:
            made.add_row(
                result.attack, Text(result.verdict, style=ATTACKED[result.succeeded]), result.evidence
            )
        console.print()
        console.print(made)


def record_of_findings(findings: Sequence[Finding], *, quick: bool) -> dict[str, Any]:
    """All findings, one by one."""
    return {
        "schema": SCHEMA,
        "version": sfumato.__version__,
        "quick": quick,
        "holds": all(finding.verdict == HOLDS for finding in findings),
        "targets": [_record(finding) for finding in findings],
    }


def record_of_estimate(
    mechanism: str, claim: Cost, samples: int, estimate: Estimate, attacks: Sequence[AttackResult]
) -> dict[str, Any]:
    """What draws proved about a mechanism of the user."""
    return {
        "schema": SCHEMA,
        "version": sfumato.__version__,
        "mechanism": mechanism,
        "claimed": _amounts(claim),
        "at_least": {"epsilon": _finite(estimate.epsilon), "delta": _finite(estimate.delta)},
        "confidence": estimate.confidence,
        "samples": samples,
        "event": estimate.event,
        "hits": list(estimate.hits),
        "draws": estimate.draws,
        "verdict": (BROKEN if estimate.refuted else UNREFUTED).lower(),
        "attacks": [
            {"attack": each.attack, "succeeded": each.succeeded, "evidence": each.evidence}
            for each in attacks
        ],
    }


def claim_of(target: Target) -> dict[str, Any]:
    """What a target is, and what it claims."""
    return {
        "group": target.group,
        "subject": target.subject,
        "name": target.name,
        "claimed": _amounts(target.cost),
    }


def _rows(findings: list[Finding], each: bool) -> list[tuple[str, list[Finding]]]:
    """One row for all audits of a claim, or one for each."""
    if each:
        return [(finding.target.name, [finding]) for finding in findings]
    rows: dict[str, dict[str, list[Finding]]] = {}
    for finding in findings:
        rows.setdefault(finding.target.title, {}).setdefault(finding.target.claimed, []).append(finding)
    return [(title, parts) for title, claims in rows.items() for parts in claims.values()]


def _numbers(parts: list[Finding]) -> tuple[str, str, str, str]:
    """Loss, tightness and verdict of the worst of several findings for a claim, and all their pairs."""
    worst = max(parts, key=_badness)
    if worst.worst is None:
        return "", "", "", worst.verdict
    loss = worst.worst.loss
    amount = f"{loss.amount:.4f}" if loss.amount >= 1e-3 or not loss.amount else f"{loss.amount:.1e}"
    tight = f"{loss.tightness:.4f}" if loss.charged or loss.amount else "-"
    pairs = sum(part.worst.pairs for part in parts if part.worst)
    return amount if worst.exact else f">= {amount}", tight, f"{pairs:,}", worst.verdict


def _badness(finding: Finding) -> tuple[int, float]:
    tightness = finding.worst.loss.tightness if finding.worst else 0.0
    return (HOLDS, OPEN, FAILED, BROKEN).index(finding.verdict), tightness


def _styled(verdict: str) -> Text:
    return Text(verdict, style=STYLES[verdict])


def _reason(finding: Finding) -> str:
    if finding.worst is None:
        return f"{FAILED}: {finding.target.name}: {finding.error}"
    worst, loss = finding.worst, finding.worst.loss
    most = "" if loss.upper is None else f" to {loss.upper:.6g}"
    found = f"a loss of {loss.amount:.6g}{most} where {finding.target.claimed} is claimed"
    return f"{finding.verdict}: {finding.target.name}: {found}, between {worst.left} and {worst.right}"


def _summary(findings: Sequence[Finding]) -> str:
    counts = {word: sum(each.verdict == word for each in findings) for word in (BROKEN, FAILED, OPEN)}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "every claim holds"


def _record(finding: Finding) -> dict[str, Any]:
    record = {**claim_of(finding.target), "verdict": finding.verdict.lower()}
    if finding.worst is None:
        return {**record, "error": finding.error}
    worst = finding.worst
    return {
        **record,
        "loss": _finite(worst.loss.amount),
        "loss_at_most": _finite(worst.loss.amount if worst.loss.upper is None else worst.loss.upper),
        "exact": finding.exact,
        "tightness": _finite(worst.loss.tightness),
        "pairs": worst.pairs,
        "left": str(worst.left),
        "right": str(worst.right),
    }


def _amounts(cost: Cost) -> dict[str, float]:
    names = ("epsilon", "delta", "rho")
    return {name: float(getattr(cost, name)) for name in names if getattr(cost, name, 0)}


def _finite(number: float | None) -> float | None:
    """JSON has no infinity: null stands for it."""
    return number if number is not None and math.isfinite(number) else None
