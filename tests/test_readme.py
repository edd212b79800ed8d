"""The README is run: every block of Python prints what stands below it."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    "README.md",
    "docs/guide.md",
    "docs/accuracy.md",
    "docs/charts.md",
    "docs/reports.md",
    "docs/before.md",
    "docs/intervals.md",
    "docs/plans.md",
    "docs/expressions.md",
    "docs/groups.md",
    "docs/quantiles.md",
    "docs/local.md",
    "docs/choosing.md",
    "docs/choosing-epsilon.md",
    "docs/streams.md",
    "docs/means.md",
    "docs/bounded-noise.md",
    "docs/audit.md",
    "docs/proofs/parts.md",
    "docs/errata.md",
    "docs/files.md",
    "docs/columns.md",
    "docs/engines.md",
    "docs/spark.md",
    "docs/ledger.md",
    "docs/lab-data.md",
    "docs/compare.md",
    "docs/lab.md",
    "docs/anonymity.md",
    "docs/cli.md",
    "docs/public-data.md",
    "docs/pufferfish.md",
    "docs/federated.md",
]
BLOCKS = re.compile(r"^```python\n(.*?)^```\n(?:\s*^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d*)?")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)?(?:#([^)\s]+))?\)")


def comparable(line: str) -> str:
    """A line with its spaces squeezed and the random numbers of intervals masked."""
    # NumPy pads the numbers of an array, which puts spaces inside its brackets.
    squeezed = re.sub(r"(?<=\[) | (?=\])", "", " ".join(line.split()))
    shows_interval = re.search(r"\[[^\]]*\]$", squeezed) and not squeezed.startswith("note:")
    return NUMBER.sub("#", squeezed) if shows_interval else squeezed


def run(page: str) -> list[tuple[str, str]]:
    """What every block printed and what the page shows, block by block, in one namespace."""
    namespace: dict[str, object] = {"__name__": "readme"}
    pairs = []
    for source, shown in BLOCKS.findall((ROOT / page).read_text("utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, page, "exec"), namespace)
        pairs.append((printed.getvalue(), shown))
    return pairs


@pytest.mark.parametrize("page", PAGES)
def test_every_block_prints_what_the_page_shows(page):
    pairs = run(page)
    assert pairs
    for printed, shown in pairs:
        assert [comparable(line) for line in printed.splitlines()] == [
            comparable(line) for line in shown.splitlines()
        ]


def test_the_comparison_masks_random_numbers_and_nothing_else():
    assert comparable("  mean  43.9  [43.6, 44.2]") == comparable(" mean 1,043.92   [1, -2.5]")
    assert comparable("[1.5 20.25]") == comparable("[ 1.25  3. ]")
    assert comparable("  cost: PureDP(epsilon=0.5)") != comparable("  cost: PureDP(epsilon=0.6)")
    assert comparable("note: clamped to [18, 70]") != comparable("note: clamped to [18, 71]")


def anchors(page: Path) -> set[str]:
    """The anchors that a reader can link to: headings in lower case, spaces as hyphens."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "page",
    [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_every_link_leads_somewhere(page):
    for target, anchor in LINK.findall(page.read_text("utf-8")):
        linked = (page.parent / target).resolve() if target else page
        assert linked.exists(), target
        if anchor:
            assert anchor in anchors(linked), anchor


def test_the_map_names_all_files_of_the_data_and_none_that_is_not_there():
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = set(re.findall(r"`(\w+/[\w/]+\.py)`", text))
    code = ROOT / "src" / "sfumato"
    assert {name for name in named if not (code / name).is_file()} == {"sfumato/folder/file.py"}
    files = {f"data/{path.name}" for path in (code / "data").glob("[!_]*.py")}
    assert files - named == set()


def test_every_proof_that_a_docstring_names_is_there():
    sources = (ROOT / "src" / "sfumato").rglob("*.py")
    named = {
        name for path in sources for name in re.findall(r"docs/proofs/([\w-]+)\.md", path.read_text("utf-8"))
    }
    assert named
    assert {name for name in named if not (ROOT / "docs" / "proofs" / f"{name}.md").is_file()} == set()
