"""A9: nothing but laws/bits.py (and the lab) can make randomness."""

import ast
from pathlib import Path

import pytest

import sfumato.laws

PACKAGE = Path(sfumato.laws.__file__).parent.parent
FORBIDDEN_MODULES = ("random", "numpy.random")
FORBIDDEN_NAMES = {"default_rng", "RandomState", "SeedSequence", "urandom", "Philox", "PCG64"}


def mentions(source: str) -> list[str]:
    """Every way in which a source file reaches for a generator."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.startswith(FORBIDDEN_MODULES)]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module.startswith(FORBIDDEN_MODULES):
                found.append(module)
            found += [f"{module}.{a.name}" for a in node.names if a.name in FORBIDDEN_NAMES | {"random"}]
        elif isinstance(node, ast.Attribute) and node.attr in FORBIDDEN_NAMES | {"random"}:
            found.append(node.attr)
        elif isinstance(node, ast.Name) and node.id in FORBIDDEN_NAMES | {"random"}:
            found.append(node.id)
    return found


def test_no_module_but_bits_and_the_lab_mentions_a_generator():
    guilty = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if place == Path("laws/bits.py") or place.parts[0] == "lab":
            continue
        found = mentions(path.read_text(encoding="utf-8"))
        if found:
            guilty[str(place)] = found
    # Random names of files, which nobody can plant a link at; no number is drawn from these.
    assert guilty == {"whole_files.py": ["urandom"]}


@pytest.mark.parametrize(
    "source",
    [
        "import random",
        "import numpy.random as r",
        "from random import gauss",
        "from numpy import random",
        "from numpy.random import default_rng",
        "import numpy as np\nnp.random.normal()",
        "rng = default_rng(1)",
        "import os\nos.urandom(4)",
    ],
)
def test_the_scan_sees_each_way_to_a_generator(source):
    assert mentions(source)


def test_the_scan_sees_the_generator_of_bits():
    assert mentions((PACKAGE / "laws/bits.py").read_text(encoding="utf-8"))


def test_the_scan_accepts_sources_without_a_generator():
    assert mentions("import numpy as np\nx = np.exp(1)\nrandomised = 3") == []
