"""What `import sfumato` costs beside `import numpy`, in fresh interpreters that take turns.

Goal: at most twice the import of NumPy, and no other package loaded.
"""

import statistics
import subprocess
import sys
import time

from timing import finish, quick, show, verdict

STATEMENTS = (
    "pass",
    "import numpy",
    "import sfumato",
    "import sfumato; sfumato.mean",
    "import opendp.prelude",
    "import diffprivlib",
)


def seconds(statement: str) -> float | None:
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", statement], capture_output=True, check=False)
    return time.perf_counter() - start if done.returncode == 0 else None


def main() -> None:
    short = quick(__doc__)
    repeats = 3 if short else 15
    times: dict[str, list[float]] = {statement: [] for statement in STATEMENTS}
    for turn in range(repeats + 1):
        for statement in STATEMENTS:
            if (took := seconds(statement)) is not None and turn:
                times[statement].append(took)
    middle = {statement: statistics.median(taken) for statement, taken in times.items() if taken}
    bare = middle["pass"]
    numpy = middle["import numpy"] - bare
    rows = []
    for statement in STATEMENTS:
        if statement not in middle:
            rows.append((statement, "not installed", "", ""))
            continue
        beyond = middle[statement] - bare
        goal = verdict(beyond <= 2 * numpy, short=short) if statement == "import sfumato" else ""
        rows.append((statement, f"{beyond * 1e3:.1f}", f"{beyond / numpy:.2f}", goal))
    show("import time beyond a bare interpreter", ("statement", "ms", "x numpy", "goal 2.00"), rows)
    finish()


if __name__ == "__main__":
    main()
