"""What the pages show of the command line is what it prints."""

import re
import shlex
import sys

import pytest
from tests.cli.running import EXAMPLE, ROOT, called

BLOCK = re.compile(r"^```console\n\$ sfumato (.*?)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d[\d.,]*")
BLOCKS = [
    (page, command, shown)
    for page in ("README.md", "docs/cli.md")
    for command, shown in BLOCK.findall((ROOT / page).read_text("utf-8"))
]


def comparable(text, *, random):
    """Lines without what differs from run to run: seconds, and where draws decide, numbers and the event."""
    lines = [re.sub(r", \d+ s:", ", # s:", " ".join(line.split())) for line in text.strip().splitlines()]
    if not random:
        return lines
    return NUMBER.sub(
        "#", re.sub(r"by one event: .*? \(", "by one event: # (", " ".join(" ".join(lines).split()))
    )


@pytest.mark.parametrize(("page", "command", "shown"), BLOCKS, ids=lambda value: value[:40])
def test_a_page_shows_what_is_printed(page, command, shown, monkeypatch):
    monkeypatch.chdir(EXAMPLE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("COLUMNS", "80")
    arguments = shlex.split(command)
    random = "noisy" in command
    status, printed, complained = called(*arguments, *([] if random else ["--jobs", "1"]))
    assert status == ("VIOLATED" in shown)
    assert complained == ""
    assert comparable(printed, random=random) == comparable(shown, random=random)


def test_both_pages_show_something():
    assert {page for page, _, _ in BLOCKS} == {"README.md", "docs/cli.md"}


def test_every_exit_status_is_documented():
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    for status in (0, 1, 2, 130, 141):
        assert f"| {status} |" in page
