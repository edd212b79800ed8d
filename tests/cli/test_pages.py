"""What the pages show of the command line is what it prints."""

import re
import shlex
import shutil
import sys

import pytest
from tests.cli.people import no_charts
from tests.cli.running import EXAMPLE, ROOT, called

from sfumato.cli.status import SHORT
from sfumato.lab import salaries

BLOCK = re.compile(r"^```console\n\$ sfumato (.*?)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d[\d.,]*")
PAGES = {page: BLOCK.findall((ROOT / page).read_text("utf-8")) for page in ("README.md", "docs/cli.md")}
# What both pages show is run once.
BLOCKS = list(dict.fromkeys(block for blocks in PAGES.values() for block in blocks))


def comparable(text, *, random):
    """Lines without what differs from run to run: seconds, hashes, and numbers where draws decide them."""
    kept = re.sub(r"\b[0-9a-f]{64}\b", "#", text.strip())
    lines = [re.sub(r", \d+ s:", ", # s:", " ".join(line.split())) for line in kept.splitlines()]
    # A rule is as long as the numbers below it are wide.
    lines = [re.sub("─+", "─", line) for line in lines]
    if not random:
        return lines
    return [NUMBER.sub("#", line) for line in lines]


def flowing(text):
    """Draws decide which event is told, and so how long lines are."""
    return re.sub(r"by one event: .*? \(", "by one event: # (", " ".join(" ".join(text).split()))


def is_shown(shown, printed):
    """Whether the lines are those printed; "..." stands for any number of them."""
    parts, left = [[]], list(printed)
    for line in shown:
        if line == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    if left[: len(parts[0])] != parts[0]:
        return False
    del left[: len(parts[0])]
    for part in parts[1:]:
        starts = [place for place in range(len(left) + 1) if left[place : place + len(part)] == part]
        if not starts:
            return False
        left = left[starts[-1] + len(part) :]
    return not left


@pytest.fixture
def demo(home):
    """The folder of the pages: the table and the plan of the demo, here and where demos write them."""
    for folder in (home / "build" / "demo", home / "demo", home):
        folder.mkdir(exist_ok=True, parents=True)
        salaries.write(folder / "salaries.csv")
        shutil.copy(ROOT / "examples" / "salaries" / "plan.toml", folder / "plan.toml")
    return home


@pytest.mark.parametrize(("command", "shown"), BLOCKS, ids=[command[:40] for command, _ in BLOCKS])
def test_a_page_shows_what_is_printed(command, shown, demo, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("COLUMNS", "80")
    arguments = shlex.split(command)
    if "noisy" in command:
        monkeypatch.chdir(EXAMPLE)
    if arguments[:2] == ["plan", "new"]:
        (demo / "plan.toml").unlink()
    if arguments[0] == "ledger":
        with monkeypatch.context() as patched:
            patched.setattr("sfumato.report.html", no_charts)
            assert called("release", "demo/plan.toml", "-o", "out")[0] == 0
    alone = ["--jobs", "1"] if arguments[0] == "audit" and "noisy" not in command else []
    status, printed, complained = called(*arguments, *alone)
    assert status == ("VIOLATED" in shown)
    assert complained == "" or arguments[0] == "release"
    random = "noisy" in command or arguments[0] == "release"
    expected, got = (comparable(text, random=random) for text in (shown, printed))
    if "noisy" in command:
        assert flowing(got) == flowing(expected)
    else:
        assert is_shown(expected, got), printed


def test_left_out_lines_are_all_that_may_be_missing():
    printed = ["a", "b", "c", "d"]
    assert is_shown(["a", "...", "d"], printed)
    assert is_shown(["...", "c", "d"], printed)
    assert is_shown(printed, printed)
    assert not is_shown(["a", "...", "e"], printed)
    assert not is_shown(["b", "...", "d"], printed)
    assert not is_shown(["a", "...", "c"], printed)
    assert not is_shown(["a", "c", "d"], printed)


def test_both_pages_show_something():
    assert all(PAGES.values())


def test_every_exit_status_is_documented():
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    assert set(SHORT) == {0, 1, 2, 3, 4, 5, 70, 130, 141}
    for status in SHORT:
        assert f"| {status} |" in page
