"""Tasks in processes: errors come back in words, and nobody is left behind."""

import subprocess
import sys

import pytest

from sfumato import processes

SCRIPT = """
import time
from sfumato.processes import results

def task(number):
    print("started", flush=True)
    time.sleep(120)

if __name__ == "__main__":
    list(results(task, [(0, 0), (1, 1)], 2))
"""


class Particular(Exception):
    """Cannot be made again from its words alone."""

    def __init__(self, one, two):
        super().__init__(one)


def fails(task):
    error = Particular(task, 2)
    error.add_note("in the middle")
    raise error


def test_an_error_that_cannot_be_sent_is_told_in_words():
    with pytest.raises(RuntimeError, match="Particular: 1") as caught:
        processes._result(fails, 1)
    assert caught.value.__notes__ == ["in the middle"]
    with pytest.raises(ZeroDivisionError):
        processes._result(lambda task: 1 / task, 0)


def test_workers_end_when_whoever_started_them_is_killed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    started = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(2):
            assert started.stdout.readline() == b"started\n"
    finally:
        started.kill()
    # The workers write to the same pipe, which ends with the last of them.
    started.communicate(timeout=60)
