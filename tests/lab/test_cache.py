"""What results are found by: all that they depend on, and not by what has changed in between."""

import functools
import types

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.lab import Points, cache, datasets, run

MEDIAN = sf.Quantiles(probs=[0.5], budget=sf.PureDP(1), bounds=(0, 1), verify=0)


def made(text, **known):
    """The function f of a module with this text."""
    module = {"np": np, "Points": Points, "__name__": "users_own", **known}
    exec(text, module)
    return module["f"]


def twice_wrapped(by):
    def wrap(function):
        @functools.wraps(function)
        def wrapped(values):
            return by * function(values)

        return wrapped

    return wrap


def plain(values):
    return 1.0


def holding(array):
    return lambda values: array.sum()


HELPER = "def h(v): return {}\ndef g(v): return h(v)\ndef f(v): return g(v)"
MUTUAL = "def g(v): return f(v) + {}\ndef f(v): return g(v)"
PAIRS = {
    "a global": (made("def f(v): return S", S=1), made("def f(v): return S", S=2)),
    "a global in a comprehension": (
        made("def f(v): return sum(S for x in v)", S=1),
        made("def f(v): return sum(S for x in v)", S=2),
    ),
    "a global in a lambda": (
        made("def f(v): return (lambda: S)()", S=1),
        made("def f(v): return (lambda: S)()", S=2),
    ),
    "a helper of a helper": (made(HELPER.format(1)), made(HELPER.format(2))),
    "functions that call each other": (made(MUTUAL.format(1)), made(MUTUAL.format(2))),
    "a default": (made("def f(v, a=1): return a"), made("def f(v, a=2): return a")),
    "a constant": (made("def f(v): return 1"), made("def f(v): return 1.0")),
    "an array that is held": (holding(np.zeros(2)), holding(np.ones(2))),
    "a decorator": (twice_wrapped(1)(plain), twice_wrapped(2)(plain)),
    "a partial": (functools.partial(plain, 1), functools.partial(plain, 2)),
    "functions of NumPy with one name": (np.polyfit, np.polynomial.polynomial.polyfit),
}


@pytest.mark.parametrize("changed", PAIRS)
def test_a_change_is_another_key(changed):
    one, other = map(cache.content_of, PAIRS[changed])
    assert one is not None
    assert other is not None
    assert one != other


@pytest.mark.parametrize(
    "text",
    [
        "def f(v): return f(v)",
        "def f(v): return Points([0], [1])",
        "def f(v):\n import numpy\n return v in {'a', 'b', 'c'}",
    ],
)
def test_the_same_is_the_same_key(text):
    keys = {cache.content_of(made(text)), cache.content_of(made("\n\n" + text))}
    assert len(keys) == 1
    assert None not in keys


class Method:
    def draw(self, values):
        return 1.0


@pytest.mark.parametrize(
    "unknown",
    [
        made("def f(v): return m.x", m=types.ModuleType("users_other")),
        made("def f(v):\n import users_other\n return users_other.x"),
        made("def f(v): return K()", K=Method),
        made("def f(v): return G.normal()", G=np.random.default_rng(1)),
        Method().draw,
        np.array([object()]),
        np.ma.array([1, 2], mask=[0, 1]),
    ],
)
def test_what_may_have_changed_unseen_has_no_key(unknown):
    assert cache.content_of(unknown) is None


@pytest.mark.parametrize("foreign", ["null", "3", "[]", "{}", '[{"risk": "squared"}]', '[{"risk": "rank"}]'])
def test_json_that_is_no_result_is_computed_again(tmp_path, foreign):
    given = {"data": datasets.uniform(), "sweep": {"n": [9]}, "repeats": 2, "cache": tmp_path}
    first = run(MEDIAN, **given)
    (stored,) = tmp_path.rglob("*.json")
    stored.write_text(foreign)
    assert first.equals(run(MEDIAN, **given))


def test_names_of_sources_count_since_draws_depend_on_them(tmp_path):
    one, other = (datasets.fixed([0, 1], bounds=(0, 1), name=name) for name in ("one", "other"))
    for source in (one, other):
        kept = run(MEDIAN, data=source, repeats=3, cache=tmp_path)
        assert kept.equals(run(MEDIAN, data=source, repeats=3))


def test_the_usual_folder_is_absolute(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for odd in ("", "relative/cache"):
        monkeypatch.setenv("XDG_CACHE_HOME", odd)
        assert cache.usual_folder() == tmp_path / ".cache" / "sfumato" / "lab"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache.usual_folder() == tmp_path / "x" / "sfumato" / "lab"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(cache.Path, "home", lambda: (_ for _ in ()).throw(RuntimeError))
    with pytest.raises(InvalidParameter, match="cache must be a folder"):
        cache.usual_folder()
