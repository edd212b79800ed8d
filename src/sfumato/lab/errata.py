"""Forty-four errata of five documents on private means and quantiles, with the numbers that show them.

`python -m sfumato.lab.errata` computes every number and writes the page docs/errata.md to standard output.
"""

import sys
from collections.abc import Mapping
from time import monotonic

from sfumato.lab import (
    errata_inverse,
    errata_lemmas,
    errata_limits,
    errata_means,
    errata_quantiles,
    errata_several,
    errata_slides,
    errata_thresholds,
)
from sfumato.lab.erratum import VERDICTS, Erratum, Finding, Verdict

__all__ = ["ERRATA", "Erratum", "Finding", "findings", "page"]

_GROUPS = (
    errata_thresholds,
    errata_lemmas,
    errata_slides,
    errata_quantiles,
    errata_several,
    errata_means,
    errata_limits,
    errata_inverse,
)
ERRATA: tuple[Erratum, ...] = tuple(
    sorted((each for group in _GROUPS for each in group.ERRATA), key=lambda each: int(each.id[1:]))
)

SOURCES = {
    "C22": "an internship report on private deciles, 2022",
    "S22": "the slides of its defence",
    "A24": "an internship report on private means and quantiles, 2024, with 24 figures",
    "N": "reading notes",
    "T": "a Chinese translation of a textbook section on AboveThreshold",
}
_MEANINGS: dict[Verdict, str] = {
    "holds": "the statement is right, though its proof or its constant may not be",
    "false": "a computation contradicts it",
    "not proved": "the argument fails, and no counterexample is known",
    "ill-posed": "it does not say anything definite",
    "misleading": "it is true in a sense that is not the one that matters",
}
_INTRODUCTION = """# Errata

sfumato grew out of five documents:

{sources}

What it takes from them is corrected where it is wrong. This page lists what was found, {count} statements,
each with the number that shows it. Some of them hold: they are listed because their proof does not, or
because their constant can be improved.

Every number below is computed: `make errata` runs the code and writes this page again, and a test compares
the two. Nothing is copied from the sources; statements are in our own words. The images of the figures were
not at hand: what is said of E22, E23, E40 and E44 is about the script that is thought to draw them. Where
the form of a lemma is not repeated here (E11, E12, E15), what is checked is the bound that replaces it. "No
violation" in many cases is evidence and not a proof; the [proofs](index.md#proofs) have pages of their own.

To compute one of them yourself:

```python
from sfumato.lab.errata import ERRATA

by_id = {{erratum.id: erratum for erratum in ERRATA}}
print(by_id["{shown_id}"].finding().text)
```

```text
{shown}
```
"""
_SHOWN = "E39"


def findings(*, patience: float = 1.0) -> dict[str, Finding]:
    """What every erratum computes, by its id, with a line of progress on stderr once `patience` is over."""
    start, done = monotonic(), {}
    for erratum in ERRATA:
        if monotonic() - start > patience and sys.stderr.isatty():
            sys.stderr.write(f"\r{erratum.id} of {ERRATA[-1].id} ")
            sys.stderr.flush()
        done[erratum.id] = erratum.finding()
    if monotonic() - start > patience and sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
    return done


def page(computed: Mapping[str, Finding] | None = None) -> str:
    """The page docs/errata.md; the findings are computed unless they are given."""
    results = findings() if computed is None else computed
    sources = "\n".join(f"- [{key}]: {words}" for key, words in SOURCES.items())
    shown = {"shown_id": _SHOWN, "shown": results[_SHOWN].text}
    parts = [_INTRODUCTION.format(sources=sources, count=len(ERRATA), **shown), _contents()]
    parts += [_section(erratum, results[erratum.id]) for erratum in ERRATA]
    return "\n".join(parts)


def _contents() -> str:
    lines = ["## By verdict", "", "| verdict | meaning | number | errata |", "| --- | --- | --- | --- |"]
    for verdict in VERDICTS:
        ids = [each.id for each in ERRATA if each.verdict == verdict]
        links = " ".join(f"[{name}](#{name.lower()})" for name in ids)
        lines.append(f"| {verdict} | {_MEANINGS[verdict]} | {len(ids)} | {links} |")
    return "\n".join([*lines, ""])


def _section(erratum: Erratum, finding: Finding) -> str:
    rows = (
        f"## {erratum.id}",
        f"*Source:* [{erratum.source}]. *Verdict:* **{erratum.verdict}**.",
        f"**Statement.** {erratum.statement}",
        f"**Computed.** {finding.text}",
        f"**Right.** {erratum.corrected}",
        f"**Call.** `{erratum.code}`",
    )
    return "\n\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
