"""Real data that installable packages ship: loaded without a network, each column with public bounds."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from sfumato import checks
from sfumato.errors import MissingExtra
from sfumato.lab.populations import Array
from sfumato.lab.source import Bounds, Source, fixed


@dataclass(frozen=True, kw_only=True)
class Adapter:
    """One column of a data set in an installable package, and what was public about it beforehand.

    Guarantee:
        The bounds are stated here and follow from public knowledge; they are not computed from the values.

    Args:
        name: what `real` calls it.
        package: the package to install.
        column: the name of the column in that package.
        words: what one value is.
        unit: the unit of a value.
        rows: how many values there are.
        bounds: public lower and upper bound.
        known: where the bounds come from, in one sentence.
        reference: a key of docs/references.bib for the study.

    >>> REAL["doctor visits"].bounds, REAL["doctor visits"].package
    ((0.0, 100.0), 'statsmodels')
    """

    name: str
    package: str
    column: str
    words: str
    unit: str
    rows: int
    bounds: Bounds
    known: str
    reference: str
    load: Callable[[], Any] = field(repr=False)


def real(name: str) -> Source:
    """Real data by name, with public bounds; `REAL` lists the names.

    Guarantee:
        Read from the installed package, without a network. Drawn without `n`, the rows as they are; with `n`,
        so many rows with replacement.

    Args:
        name: a key of `REAL`.

    Raises:
        InvalidParameter: there is no such name.
        MissingExtra: the package is not installed.

    >>> source = real("doctor visits")
    >>> source.size, source.quantile(0.5), source.bounds
    (20190, 1.0, (0.0, 100.0))
    """
    adapter = REAL[checks.one_of("name", name, list(REAL))]
    return fixed(adapter.load(), adapter.bounds, name=adapter.name, words=adapter.words)


def _module(package: str, name: str) -> Any:
    try:
        with warnings.catch_warnings():
            # What a package says of its own dependencies while it loads is not about the data.
            warnings.simplefilter("ignore")
            return import_module(name)
    except ImportError as error:
        told = f'this data set needs the package {package}: pip install "sfumato[lab]"'
        raise MissingExtra(told) from error


def _statsmodels(table: str, column: str) -> Callable[[], Array]:
    def load() -> Array:
        module = _module("statsmodels", f"statsmodels.datasets.{table}")
        return np.asarray(module.load_pandas().data[column], dtype=np.float64)

    return load


def _diabetes(column: str) -> Callable[[], Array]:
    def load() -> Array:
        found = _module("scikit-learn", "sklearn.datasets").load_diabetes(scaled=False)
        return np.asarray(found.data[:, list(found.feature_names).index(column)], dtype=np.float64)

    return load


_ADAPTERS = (
    Adapter(
        name="doctor visits",
        package="statsmodels",
        column="randhie.mdvis",
        words="outpatient visits to a doctor of one person in one year, RAND health insurance experiment",
        unit="visits a year",
        rows=20_190,
        bounds=(0.0, 100.0),
        known="A count; two visits in every week of a year is a generous limit, rounded.",
        reference="CameronTrivedi05",
        load=_statsmodels("randhie", "mdvis"),
    ),
    Adapter(
        name="affairs",
        package="statsmodels",
        column="fair.affairs",
        words="time spent in extramarital affairs, women who answered a magazine's survey",
        unit="index",
        rows=6366,
        bounds=(0.0, 100.0),
        known="An index that starts at 0 and has no stated end; 100 is a round limit chosen here.",
        reference="Fair78",
        load=_statsmodels("fair", "affairs"),
    ),
    Adapter(
        name="age of wives",
        package="statsmodels",
        column="fair.age",
        words="age of women who answered a magazine's survey, in classes",
        unit="years",
        rows=6366,
        bounds=(17.5, 42.0),
        known="The survey asked for classes, coded from 17.5 (under 20) to 42 (40 or over).",
        reference="Fair78",
        load=_statsmodels("fair", "age"),
    ),
    Adapter(
        name="age of voters",
        package="statsmodels",
        column="anes96.age",
        words="age of people asked before the election of 1996 in the United States",
        unit="years",
        rows=944,
        bounds=(18.0, 110.0),
        known="The voting age is 18, and hardly anyone lives beyond 110.",
        reference="ANES96",
        load=_statsmodels("anes96", "age"),
    ),
    Adapter(
        name="income class",
        package="statsmodels",
        column="anes96.income",
        words="class of household income of people asked before the election of 1996 in the United States",
        unit="class",
        rows=944,
        bounds=(1.0, 24.0),
        known="The questionnaire has the classes 1 to 24.",
        reference="ANES96",
        load=_statsmodels("anes96", "income"),
    ),
    Adapter(
        name="town size",
        package="statsmodels",
        column="anes96.popul",
        words="inhabitants of the place where a person lives who was asked before the election of 1996",
        unit="thousands of inhabitants",
        rows=944,
        bounds=(0.0, 10_000.0),
        known="No city of the United States had ten million inhabitants.",
        reference="ANES96",
        load=_statsmodels("anes96", "popul"),
    ),
    Adapter(
        name="household income",
        package="statsmodels",
        column="engel.income",
        words="yearly income of Belgian working-class households in the nineteenth century",
        unit="francs",
        rows=235,
        bounds=(0.0, 10_000.0),
        known="An income of working-class households; 10,000 francs is a round limit chosen here.",
        reference="KB82",
        load=_statsmodels("engel", "income"),
    ),
    Adapter(
        name="body mass index",
        package="scikit-learn",
        column="diabetes.bmi",
        words="body mass index of patients with diabetes",
        unit="kg/m²",
        rows=442,
        bounds=(10.0, 80.0),
        known="Hardly any adult is below 10 or above 80.",
        reference="EHJT04",
        load=_diabetes("bmi"),
    ),
    Adapter(
        name="blood pressure",
        package="scikit-learn",
        column="diabetes.bp",
        words="average blood pressure of patients with diabetes",
        unit="mmHg",
        rows=442,
        bounds=(40.0, 200.0),
        known="Hardly any patient who is asked into a study is outside of 40 to 200.",
        reference="EHJT04",
        load=_diabetes("bp"),
    ),
)
REAL: dict[str, Adapter] = {adapter.name: adapter for adapter in _ADAPTERS}
