"""Rules about the files of the repository, as opposed to what the code does."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src" / "sfumato").rglob("*.py"))
SKIPPED_FOLDERS = {".git", "__pycache__", "build", "dist"}

KEY = r"[A-Z][A-Za-z]*[0-9]{2}[a-z]?"
CITATION = re.compile(rf"(?<![\w\])])\[({KEY}(?:[,;]\s*{KEY})*)\](?!\()")
MACHINE_PATH = re.compile(r"(?<![\w.~*}-])/(?:work|root|home)\b")
REGISTRY_HOST = re.compile(
    r"pypi\.org|python[h]osted|npm[j]s|deb\.debian|index[-]url|find[-]links", re.IGNORECASE
)


def repository_files() -> list[Path]:
    """What git tracks or would track; every file of the tree where there is no git, as in an archive."""
    listing = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split("\0")
        paths = [ROOT / name for name in names if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [path for path in ROOT.rglob("*") if not is_skipped(path.relative_to(ROOT))]
    return sorted(path for path in paths if path.is_file())


def is_skipped(path: Path) -> bool:
    return any(
        part in SKIPPED_FOLDERS or part.startswith(".venv") or part.endswith("_cache") for part in path.parts
    )


def texts() -> list[tuple[str, str]]:
    """Name and text of every text file."""
    found = []
    for path in repository_files():
        try:
            found.append((path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue  # an image or another binary file
    return found


def bib_keys() -> list[str]:
    return re.findall(
        r"^@\w+\{([^,\s]+),", (ROOT / "docs" / "references.bib").read_text("utf-8"), re.MULTILINE
    )


def citations(text: str) -> set[str]:
    return {key for group in CITATION.findall(text) for key in re.split(r"[,;]\s*", group)}


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text("utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_every_citation_resolves_in_the_bibliography():
    cited = {
        (key, name)
        for name, text in texts()
        if name.startswith(("src/", "docs/")) or name in {"README.md", "SECURITY.md"}
        for key in citations(text)
    }
    unknown = {(key, name) for key, name in cited if key not in bib_keys()}
    assert not unknown


def test_citations_are_told_from_code_and_links():
    assert citations("see [CKS20], [BS16, BW18]; [Haney22]") == {"CKS20", "BS16", "BW18", "Haney22"}
    assert citations("list[Int64] and [CKS20](page.md) and weights[0][B12]") == set()


def test_bibliography_keys_are_unique():
    assert len(bib_keys()) == len(set(bib_keys())) > 0


@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY_HOST], ids=["machine path", "registry host"])
def test_no_file_names_a_machine_or_a_registry(pattern):
    found = [
        f"{name}:{number}"
        for name, text in texts()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]
    assert not found


def test_the_path_pattern_can_fail():
    assert MACHINE_PATH.search("cd " + "/".join(["", "home", "someone"]))
    assert not MACHINE_PATH.search("square/root, or example.org/home")


@pytest.mark.parametrize("name", sorted(path.name for path in ROOT.glob("constraints*.txt")))
def test_constraints_are_plain_pins(name):
    for line in (ROOT / name).read_text("utf-8").splitlines():
        assert re.fullmatch(r"#[^:/@]*|[a-z0-9-]+==[0-9][0-9a-z.]*", line), line


@pytest.mark.parametrize(
    ("name", "extras"),
    [
        (
            "constraints.txt",
            {"fast", "accounting", "frames", "charts", "lab", "postgres", "duckdb", "spark"}
            | {"test", "check", "mutation"},
        ),
        ("constraints-bench.txt", {"charts", "fast", "frames", "duckdb", "spark", "bench"}),
        ("constraints-flower.txt", {"fast", "accounting", "charts", "flower", "test-flower"}),
        ("constraints-oracles.txt", {"frames", "test-oracles"}),
    ],
)
def test_every_requirement_has_a_pin_inside_its_range(name, extras):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    for extra in extras:
        wanted += project["project"]["optional-dependencies"][extra]
    pinned = pins(name)
    for requirement in map(Requirement, wanted):
        if requirement.name != "sfumato":
            assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), requirement


def randomness_used(source: str, *, outside: str = "") -> set[str]:
    """The sources of randomness that a module names, apart from those in the class called `outside`."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not (isinstance(node, ast.ClassDef) and node.name == outside)]
    used = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            used |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            used |= {f"{node.module}", *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = {"np": "numpy"}.get(node.value.id, node.value.id)
            used.add(f"{owner}.{node.attr}")
    sources = {"random", "numpy.random", "secrets", "os.urandom", "os.getrandom", "uuid.uuid4"}
    return used & sources


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_only_bits_makes_randomness(path):
    place = path.relative_to(ROOT / "src" / "sfumato").as_posix()
    source = path.read_text("utf-8")
    if place == "laws/bits.py":
        # Private bits come from the kernel; a seeded generator may appear in SeededBits and nowhere else.
        assert randomness_used(source, outside="SeededBits") <= {"os.urandom", "os.getrandom"}
    elif place == "whole_files.py":
        # For names that nobody can foresee; no answer depends on them.
        assert randomness_used(source) == {"os.urandom"}
    elif not place.startswith("lab/"):
        assert not randomness_used(source)


def test_the_randomness_scan_can_fail():
    assert randomness_used("import numpy as np\nnp.random.default_rng()") == {"numpy.random"}
    assert randomness_used("from os import urandom") == {"os.urandom"}
    assert randomness_used("from numpy import random") == {"numpy.random"}
    seeded = "class {}:\n    def draw(self):\n        from numpy.random import Philox"
    assert randomness_used(seeded.format("SystemBits"), outside="SeededBits") == {"numpy.random"}
    assert randomness_used(seeded.format("SeededBits"), outside="SeededBits") == set()


def test_the_package_ships_its_types():
    assert (ROOT / "src" / "sfumato" / "py.typed").is_file()


def test_the_example_plan_is_that_of_the_demo():
    example = ROOT / "examples" / "salaries" / "plan.toml"
    assert example.read_bytes() == (ROOT / "src" / "sfumato" / "cli" / "demo.toml").read_bytes()
