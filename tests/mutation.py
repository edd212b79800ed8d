"""Mutation testing: small changes to the code that decides privacy, and how many of them the tests notice.

    python tests/mutation.py                # a random sample of mutants, fixed by a seed
    python tests/mutation.py --mutants 0    # all of them, for hours
    python tests/mutation.py --quick        # a few mutants of the exact coins, to see that it runs

mutmut makes the mutants and runs, for each, the tests that reach the changed function. It works on a copy of
the repository in build/mutation, and leaves the results there: `mutmut browse` in that folder shows the
survivors.
"""

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / "build" / "mutation"
FOLDERS = ("laws", "privacy", "mechanisms")
# Names of these tests hold escapes, which mutmut cannot hand on to pytest.
UNNAMEABLE = ("a_damaged_record_is_refused", "names_are_short_printable_texts", "the_scan_sees_each_way")
# Some mutants change nothing that can be seen, such as one more bit of precision; they count as survivors.
GOAL, QUICK_GOAL = 0.90, 0.60
SEED = 1
MEMORY = 6 << 30
# What mutmut writes for a mutant that no test noticed, and for one that no test reaches.
SURVIVED, NO_TESTS = 0, 33

CONFIG = """
[tool.mutmut]
source_paths = ["src/"]
only_mutate = {mutated}
also_copy = ["docs", "benchmarks", "examples", "README.md", "CHANGELOG.md", "constraints.txt"]
pytest_add_cli_args = ["-p", "no:cacheprovider", "-p", "tests.mutation_plugin", "-k", "{kept}"]
pytest_add_cli_args_test_selection = {tests}
# A mutant whose tests take six times as long as the code itself, and a minute, counts as noticed.
timeout_multiplier = 3
timeout_constant = 10
"""


def main() -> int:
    options = arguments()
    mutated = [f"src/sfumato/{folder}/*" for folder in FOLDERS]
    tests = [f"tests/{folder}" for folder in FOLDERS]
    if options.quick:
        mutated, tests = ["src/sfumato/laws/coins.py"], ["tests/laws/test_coins.py"]
    prepare(mutated, tests)
    # Without a name that matches it makes the mutants, times the tests and stops.
    mutmut("none-of-them", check=False)
    names = sorted(exit_codes())
    random.Random(SEED).shuffle(names)
    chosen = names[: options.mutants] if options.mutants else names
    print(f"{len(names):,} mutants, of which {len(chosen):,} are tried", flush=True)
    mutmut(*chosen, jobs=options.jobs)
    return report(chosen, QUICK_GOAL if options.quick else GOAL)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How many small changes to the code do the tests notice?")
    parser.add_argument("--mutants", type=int, default=None, help="how many to try; 0 for all of them")
    parser.add_argument("--quick", action="store_true", help="a few mutants of one file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    if options.mutants is None:
        options.mutants = 30 if options.quick else 1000
    return options


def prepare(mutated: list[str], tests: list[str]) -> None:
    """A copy of what is under version control, or would be, with mutmut's settings."""
    shutil.rmtree(COPY, ignore_errors=True)
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (COPY / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, COPY / name)
    kept = f"not ({' or '.join(UNNAMEABLE)})"
    with (COPY / "pyproject.toml").open("a") as settings:
        settings.write(CONFIG.format(mutated=json.dumps(mutated), tests=json.dumps(tests), kept=kept))


def mutmut(*names: str, jobs: int = 1, check: bool = True) -> None:
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(jobs), *names]
    # A mutant may ask for all the memory there is; its tests then fail, as they should.
    limit = partial(resource.setrlimit, resource.RLIMIT_AS, (MEMORY, MEMORY))
    # Its spinner is of no use in a file.
    done = subprocess.run(command, cwd=COPY, capture_output=True, text=True, check=False, preexec_fn=limit)
    if check and done.returncode:
        raise SystemExit(f"mutmut failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")


def exit_codes() -> dict[str, int | None]:
    """Every mutant by name, with the exit status of its tests, or None if they have not run."""
    found: dict[str, int | None] = {}
    for record in (COPY / "mutants").rglob("*.meta"):
        found |= json.loads(record.read_text())["exit_code_by_key"]
    return found


def report(chosen: list[str], goal: float) -> int:
    codes = exit_codes()
    survivors = [name for name in chosen if codes[name] in (SURVIVED, NO_TESTS)]
    tried = [name for name in chosen if codes[name] is not None]
    for folder in FOLDERS:
        ours = [name for name in tried if name.startswith(f"sfumato.{folder}.")]
        if ours:
            killed = len(ours) - len(set(ours) & set(survivors))
            print(f"{folder:12} {killed:5} of {len(ours):5} noticed  {killed / len(ours):.1%}")
    rate = 1 - len(survivors) / max(len(tried), 1)
    print(
        f"{'all':12} {len(tried) - len(survivors):5} of {len(tried):5} noticed  {rate:.1%}, goal {goal:.0%}"
    )
    (COPY / "survivors.txt").write_text("\n".join(survivors))
    print(f"survivors: {(COPY / 'survivors.txt').relative_to(ROOT)}")
    return 0 if tried and rate >= goal else 1


if __name__ == "__main__":
    sys.exit(main())
