"""The front door: exactly these names, each documented with a doctest, and a light import."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato

ROOT = Path(__file__).parents[1]
PROOFS = {"laplace", "geometric", "gaussian", "sums", "mean", "variance", "histogram", "composition"}
FOLDERS = {"accuracy", "audit", "laws", "mechanisms", "privacy"}
ERRORS = {
    "BudgetExceeded",
    "InvalidParameter",
    "MissingBounds",
    "MissingExtra",
    "NotSupported",
    "SchemaMismatch",
    "SfumatoError",
}
NAMES = {
    *ERRORS,
    *FOLDERS,
    *{"count", "histogram", "mean", "proportion", "sum", "variance", "read_release"},
    *{"Count", "Histogram", "Mean", "Proportion", "Sum", "Variance"},
    *{"ApproxDP", "PureDP", "ZCDP"},
    *{"Counts", "Dataset", "Edges", "Field", "Grid"},
    *{"MemoryLedger", "Release", "Session"},
}
DOCUMENTED = sorted(NAMES - FOLDERS - ERRORS)


def run(code, *options):
    """What a fresh interpreter prints."""
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT / "src")},
    ).stdout


def test_the_public_names_are_exactly_these():
    assert set(sfumato.__all__) == NAMES
    assert len(sfumato.__all__) == len(NAMES)
    assert set(dir(sfumato)) == {*NAMES, "__version__"}
    assert all(getattr(sfumato, name) is not None for name in NAMES)


def test_the_version_is_that_of_the_package():
    stated = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert sfumato.__version__ == stated.group(1)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"^module 'sfumato' has no attribute 'median_of_secrets'$"):
        sfumato.median_of_secrets  # noqa: B018  reason: reading it is the test
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from sfumato import nothing")


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_public_name_says_what_it_is_for_and_shows_it(name):
    thing = getattr(sfumato, name)
    text = inspect.getdoc(thing)
    assert text
    assert len(text.splitlines()[0]) > 20
    assert ">>> " in text
    assert thing.__module__.startswith("sfumato.")


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_every_error_is_a_deliberate_one(name):
    error = getattr(sfumato, name)
    assert issubclass(error, sfumato.SfumatoError)
    assert inspect.getdoc(error)
    builtin = {"InvalidParameter": ValueError, "SchemaMismatch": TypeError, "MissingExtra": ImportError}
    assert issubclass(error, builtin.get(name, Exception))
    assert issubclass(sfumato.MissingBounds, sfumato.InvalidParameter)


def claims():
    for name in DOCUMENTED:
        text = inspect.getdoc(getattr(sfumato, name))
        if "Guarantee:" in text:
            yield name, re.findall(r"docs/proofs/([\w-]+)\.md", text), re.findall(r"`sfumato\.(\w+)`", text)


def test_every_statistic_claims_a_guarantee_with_a_proof():
    named = {name: proofs for name, proofs, _ in claims()}
    for name in ("Count", "Histogram", "Mean", "Proportion", "Sum", "Variance", "Session", "MemoryLedger"):
        assert named[name], name
        assert set(named[name]) <= PROOFS
    functions = {name: others for name, _, others in claims() if name.islower()}
    for name in ("count", "histogram", "mean", "proportion", "sum", "variance"):
        assert name.capitalize() in functions[name]


@pytest.mark.parametrize(
    ("name", "proof"), [(name, proof) for name, proofs, _ in claims() for proof in proofs]
)
def test_every_named_proof_is_a_page(name, proof):
    page = ROOT / "docs" / "proofs" / f"{proof}.md"
    assert page.is_file(), f"{name} names {page.relative_to(ROOT)}, which does not exist"
    assert len(page.read_text()) > 200


def test_the_import_loads_no_third_party_but_numpy():
    # What the interpreter loads by itself, through site packages, is no part of the import.
    code = """
import sys
before = set(sys.modules)
import sfumato
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(loaded - set(sys.stdlib_module_names)))
print(*sorted(name for name in sys.modules if name.startswith("numpy.random")))
"""
    loaded, random = run(code).split("\n")[:2]
    assert set(loaded.split()) <= {"sfumato", "numpy"}
    assert random == ""


@pytest.mark.parametrize("data", ["[1.0, 2.0, 3.0]", "__import__('numpy').arange(9.0)"])
def test_a_release_from_arrays_loads_no_frames_and_no_generator(data):
    code = f"""
import sys
import sfumato as sf
sf.mean({data}, bounds=(0, 10), epsilon=1).to_json()
heavy = ("narwhals", "pandas", "polars", "pyarrow", "numpy.random", "random")
print(*(name for name in heavy if name in sys.modules))
"""
    assert run(code).strip() == ""


def test_the_import_warns_of_nothing():
    assert run("import sfumato; print(sfumato.__version__)", "-W", "error").strip() == sfumato.__version__
    assert run("from sfumato import *; print(PureDP(1))", "-W", "error").strip() == "PureDP(epsilon=1.0)"


def test_every_folder_is_loaded_on_first_use():
    before = "import sfumato, sys; print('sfumato.laws' in sys.modules)"
    assert run(f"{before}; sfumato.laws; print('sfumato.laws' in sys.modules)").split() == ["False", "True"]
