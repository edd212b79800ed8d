"""`sfumato audit`: of everything that is shipped, and of a mechanism of the user."""

import os
import time

import sfumato
from sfumato.audit import AttackResult, Target, attack, shipped, statistical
from sfumato.checks import between
from sfumato.cli.audit_report import (
    SCHEMA,
    claim_of,
    print_estimate,
    print_findings,
    record_of_estimate,
    record_of_findings,
)
from sfumato.cli.inputs import callable_from, data_from, tried
from sfumato.cli.output import output, print_json, progress
from sfumato.cli.status import HELD, UNUSABLE, VIOLATED, Refused
from sfumato.cli.workers import BROKEN, FAILED, audited
from sfumato.privacy import ApproxDP, PureDP

# Calls on each data set that an attack may make; it calls one by one.
MOST_ATTACKS = 4000


def list_shipped(*, only: str | None, quick: bool, as_json: bool) -> int:
    """Print the names of what would be audited."""
    targets = _chosen(only, quick)
    if as_json:
        print_json(
            {
                "schema": SCHEMA,
                "version": sfumato.__version__,
                "targets": [*map(claim_of, targets)],
            }
        )
        return HELD
    console = output()
    for target in targets:
        console.print(f"{target.group}: {target.name}: {target.claimed}", soft_wrap=True)
    return HELD


def audit_shipped(*, only: str | None, each: bool, quick: bool, jobs: int | None, as_json: bool) -> int:
    """Audit what is shipped, print what was found, and say it as an exit status."""
    targets = _chosen(only, quick)
    start = time.monotonic()
    with progress() as bar:
        task = bar.add_task("audit", total=len(targets))
        findings = audited(targets, jobs or os.cpu_count() or 1, lambda: bar.advance(task))
    if as_json:
        print_json(record_of_findings(findings, quick=quick))
    else:
        print_findings(findings, each=each, seconds=time.monotonic() - start)
    verdicts = {finding.verdict for finding in findings}
    return VIOLATED if BROKEN in verdicts else UNUSABLE if FAILED in verdicts else HELD


def audit_callable(
    mechanism: str,
    left: str,
    right: str,
    *,
    epsilon: float,
    delta: float,
    samples: int,
    confidence: float,
    batched: bool,
    attacks: bool,
    as_json: bool,
) -> int:
    """Audit a mechanism of the user by its draws, print what was found, and say it as an exit status."""
    function = callable_from(mechanism)
    data = data_from("--left", left), data_from("--right", right)
    between("confidence", confidence, 0, 1)  # before the draws, which take long
    claim = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    for option, given in zip(("--left", "--right"), data, strict=True):
        tried(mechanism, function, option, given, batched=batched)
    results: list[AttackResult] = []
    with progress() as bar:
        task = bar.add_task("audit", total=None)
        estimate = statistical(
            function,
            *data,
            epsilon=epsilon,
            delta=delta,
            samples=samples,
            confidence=confidence,
            batched=batched,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
        if attacks:
            one = (lambda given: function(given, 1)[0]) if batched else function
            results = attack(one, *data, epsilon=epsilon, delta=delta, samples=min(samples, MOST_ATTACKS))
    if as_json:
        print_json(record_of_estimate(mechanism, claim, samples, estimate, results))
    else:
        print_estimate(mechanism, claim, samples, estimate, results)
    return VIOLATED if estimate.refuted or any(result.succeeded for result in results) else HELD


def _chosen(only: str | None, quick: bool) -> list[Target]:
    wanted = (only or "").casefold()
    chosen = [each for each in shipped(quick=quick) if wanted in f"{each.group}: {each.name}".casefold()]
    if not chosen:
        raise Refused(f"nothing that is shipped has {only!r} in its name; sfumato audit --list has all names")
    return chosen
