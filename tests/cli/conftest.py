"""Where the commands run in tests."""

import pytest
from tests.cli.people import PLAN, no_charts, people


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder with the table and the plan, in which the commands run; anchors stay inside it."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("SFUMATO_LEDGER", raising=False)
    monkeypatch.chdir(folder)
    (folder / "people.csv").write_text(people(), "utf-8")
    (folder / "plan.toml").write_text(PLAN, "utf-8")
    return folder


@pytest.fixture
def without_charts(monkeypatch):
    """As if the extra charts was not installed: nothing is drawn, which takes longest."""
    monkeypatch.setattr("sfumato.report.html", no_charts)
