"""The fuzzer: neighbouring tables from a hostile grammar, and whether an observer can tell them apart.

    python tests/fuzz/campaign.py --cases 10000 --jobs 2
    python tests/fuzz/campaign.py --case 4711

A case follows from its number. Each failing case is made smaller and shown; then the exit status is 1.
"""

import argparse
import atexit
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.fuzz.cases import LAZY, MEMORY, ROUTES, SPARK, Case
from tests.fuzz.comparison import Difference, Tally, differences
from tests.fuzz.grammar import draw_case
from tests.fuzz.shrinking import shrunk
from tests.fuzz.tables import Void

PART = 50  # cases that a process takes at a time
SHOWN = 10  # failing cases that are made smaller and shown


def judged(case: Case, tally: Tally | None = None) -> list[Difference]:
    """What is wrong with a case, in a folder that is made for it; nothing where an engine cannot hold it."""
    tally = Tally() if tally is None else tally
    tally.cases += 1
    with tempfile.TemporaryDirectory(prefix="fuzz-", ignore_cleanup_errors=True) as folder:
        try:
            return differences(case, Path(folder), tally)
        except Void:
            tally.void += 1
            return []


def searched(
    seeds: Sequence[int], engines: Sequence[str], routes: Sequence[str] = ()
) -> tuple[Tally, dict[int, str]]:
    """Judge the cases of some seeds: how much was compared, and the first difference of those that fail."""
    tally, failed = Tally(), {}
    for seed in seeds:
        found = judged(draw_case(seed, engines, routes), tally)
        if found:
            failed[seed] = str(found[0])
    return tally, failed


def explained(case: Case) -> str:
    """The smallest case with the same first difference, and all its differences; empty if it passes."""
    found = judged(case)
    if not found:
        return ""
    check = found[0].check
    small = shrunk(case, lambda smaller: any(each.check == check for each in judged(smaller)))
    return "\n".join([str(small), *(f"  * {str(each)[:2000]}" for each in judged(small))])


def _end_quietly() -> None:
    """End this process at once when it is done: DuckDB would list what it has not freed by then."""
    atexit.register(os._exit, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--case", type=int, help="show one case, made smaller, in place of a campaign")
    parser.add_argument("--engines", nargs="+", choices=MEMORY + LAZY + SPARK, default=MEMORY + LAZY)
    parser.add_argument("--routes", nargs="+", choices=ROUTES, default=())
    chosen = parser.parse_args()
    if chosen.case is not None:
        words = explained(draw_case(chosen.case, chosen.engines, chosen.routes))
        print(
            words or f"{draw_case(chosen.case, chosen.engines, chosen.routes)}\n  nothing tells the two apart"
        )
        sys.exit(bool(words))
    start = time.monotonic()
    tally, failed = Tally(), dict[int, str]()
    last = chosen.first + chosen.cases
    parts = [range(at, min(at + PART, last)) for at in range(chosen.first, last, PART)]
    with ProcessPoolExecutor(chosen.jobs, mp_context=get_context("spawn"), initializer=_end_quietly) as pool:
        count = len(parts)
        for part, wrong in pool.map(searched, parts, [chosen.engines] * count, [chosen.routes] * count):
            tally += part
            failed |= wrong
            if sys.stderr.isatty():
                print(f"\r{tally.cases} of {chosen.cases} cases", end="", file=sys.stderr)
    for seed in list(failed)[:SHOWN]:
        print(explained(draw_case(seed, chosen.engines, chosen.routes)) or f"case {seed}: {failed[seed]}")
    for seed in list(failed)[SHOWN:]:
        print(f"case {seed}: {failed[seed][:200]}")
    print(
        f"{tally.cases} cases in {time.monotonic() - start:.0f} s: "
        f"{tally.answers} answered, {tally.refused} refused, "
        f"{tally.void} void; {tally.losses} losses and {tally.references} laws compared; {len(failed)} failed"
    )
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
