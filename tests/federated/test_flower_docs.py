"""What docs/federated.md says of Flower runs, and prints what the page shows."""

import contextlib
import io
import re
from pathlib import Path

import pytest

pytest.importorskip("flwr")
pytest.importorskip("dp_accounting")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "federated.md"
BLOCKS = re.compile(r"^```py\n(.*?)^```\n(?:\s*^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def test_every_block_about_flower_prints_what_the_page_shows():
    namespace, found = {"__name__": "page"}, BLOCKS.findall(PAGE.read_text("utf-8"))
    assert len(found) == 3
    for source, shown in found:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, PAGE.name, "exec"), namespace)
        assert printed.getvalue() == shown


def test_the_examples_in_docstrings_run(capsys):
    import doctest

    from sfumato.federated import flower, flower_accountant, flower_mods

    for module in (flower, flower_mods, flower_accountant):
        assert doctest.testmod(module).failed == 0
