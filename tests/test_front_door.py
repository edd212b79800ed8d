"""The front door: exactly these names, each documented with a doctest, and a light import."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato

ROOT = Path(__file__).parents[1]
PROOFS = {path.stem for path in (ROOT / "docs" / "proofs").glob("*.md")}
FOLDERS = {"accuracy", "anonymity", "audit", "charts", "federated", "lab", "laws", "local", "mechanisms"}
FOLDERS |= {"plan", "privacy", "public_data", "quantile_methods"}
ERRORS = {
    "BudgetExceeded",
    "InvalidParameter",
    "LedgerDamaged",
    "LedgerUnavailable",
    "MissingBounds",
    "MissingExtra",
    "NotSupported",
    "EngineFault",
    "RequestConflict",
    "SchemaMismatch",
    "SfumatoError",
}
NAMES = {
    *ERRORS,
    *FOLDERS,
    *{"count", "histogram", "mean", "proportion", "sum", "variance", "read_release"},
    *{"deciles", "find_bounds", "median", "quantile", "quantiles"},
    *{"Choose", "MostCommon", "choose", "most_common"},
    *{"Count", "Histogram", "Mean", "Proportion", "Quantiles", "Sum", "Variance"},
    *{"FirstPassing", "first_passing"},
    *{"Groups", "col", "when"},
    *{"ExponentialMean", "InverseMean", "InverseProportion"},
    *{"ApproxDP", "PureDP", "ZCDP"},
    *{"Between", "Counts", "Dataset", "Edges", "Field", "Grid"},
    *{"GroupedRelease", "Publication", "Question", "publish"},
    *{"MemoryLedger", "Release", "Session", "SqlLedger"},
}
# Spellings of types and tables of names: their parts are documented, they themselves can not be.
ALIASES = {"mechanisms.Additive", "mechanisms.MECHANISMS", "mechanisms.Noise"}
ALIASES |= {"lab.datasets", "privacy.Budget", "privacy.Event", "privacy.Neighbours"}
ALIASES |= {"quantile_methods.AnyQuery", "quantile_methods.METHODS", "quantile_methods.QUERIES"}


def public_things():
    """Every public name with what it stands for: those of the package, and those of its public folders."""
    found = {name: getattr(sfumato, name) for name in sfumato.__all__ if name not in FOLDERS}
    for folder in FOLDERS:
        module = getattr(sfumato, folder)
        found |= {f"{folder}.{name}": getattr(module, name) for name in module.__all__}
    return {name: thing for name, thing in sorted(found.items()) if name not in ALIASES}


PUBLIC = public_things()
DOCUMENTED = sorted(PUBLIC)


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
def test_every_public_name_promises_in_one_line_states_its_guarantee_and_shows_it(name):
    text = inspect.getdoc(PUBLIC[name])
    assert text
    promise, *rest = text.splitlines()
    assert len(promise) > 20
    assert promise.endswith(".")
    assert not rest or not rest[0].strip(), "the promise is one line"
    assert re.search(r"^Guarantee:\n +\S", text, re.MULTILINE)
    assert ">>> " in text
    assert PUBLIC[name].__module__.startswith("sfumato.")


def test_only_spellings_of_types_and_tables_go_undocumented():
    for alias in ALIASES:
        folder, name = alias.split(".")
        thing = getattr(getattr(sfumato, folder), name)
        assert name in getattr(sfumato, folder).__all__
        assert not inspect.isroutine(thing)
        assert not inspect.isclass(thing)


@pytest.mark.parametrize("folder", sorted(FOLDERS))
def test_every_public_folder_lists_its_names_once(folder):
    module = getattr(sfumato, folder)
    assert module.__all__
    assert len(set(module.__all__)) == len(module.__all__)
    assert inspect.getdoc(module)


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_every_error_is_a_deliberate_one(name):
    error = getattr(sfumato, name)
    assert issubclass(error, sfumato.SfumatoError)
    assert inspect.getdoc(error)
    builtin = {"InvalidParameter": ValueError, "SchemaMismatch": TypeError, "MissingExtra": ImportError}
    assert issubclass(error, builtin.get(name, Exception))
    assert issubclass(sfumato.MissingBounds, sfumato.InvalidParameter)


def proofs_of(name):
    return re.findall(r"docs/proofs/([\w-]+)\.md", inspect.getdoc(PUBLIC[name]))


def test_every_name_that_claims_privacy_names_its_proof():
    statistics = ["Count", "Histogram", "Mean", "Proportion", "Sum", "Variance"]
    mechanisms = [f"mechanisms.{kind.__name__}" for kind in sfumato.mechanisms.MECHANISMS]
    sessions = ["Session", "MemoryLedger", "privacy.Accountant", "privacy.compose", "mechanisms.additive"]
    sessions += ["SqlLedger"]
    samplers = [
        f"laws.{name}" for name in ("Choice", "Clamped", "DiscreteGaussian", "DiscreteLaplace", "Geometric")
    ]
    conversions = [
        name for name in DOCUMENTED if re.match(r"privacy\.(zcdp|pure_to|gaussian|laplace|pld)_", name)
    ]
    assert len(conversions) >= 8
    for name in (*statistics, *mechanisms, *sessions, *samplers, *conversions):
        assert proofs_of(name), name
    for name in statistics:
        assert f"`sfumato.{name}`" in inspect.getdoc(PUBLIC[name.lower()])


@pytest.mark.parametrize(
    ("name", "proof"), [(name, proof) for name in DOCUMENTED for proof in proofs_of(name)]
)
def test_every_named_proof_is_a_page(name, proof):
    assert proof in PROOFS
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
