"""What an accuracy says, what a sample of errors tells, and the progress bar."""

import io
import math
import sys

import numpy as np
import pytest

import sfumato as sf
from sfumato.accuracy import Accuracy, progress
from sfumato.accuracy.simulation import few_beyond, tails

DECILES = tuple(f"{i / 10:g}" for i in range(1, 10))


def quantiles(**changes):
    facts = {
        "statistic": "quantiles",
        "column": "salary",
        "rows": 50_000,
        "confidence": 0.95,
        "labels": DECILES,
        "ranks": (447.0,) * 9,
        "how": "bound",
        "any_data": 447.0,
    }
    return Accuracy(**{**facts, **changes})


def test_it_says_whether_a_figure_is_exact_a_bound_or_simulated_and_how_well():
    mean = {"statistic": "mean", "column": "age", "rows": 1000, "confidence": 0.99, "labels": ("mean",)}
    assert str(Accuracy(**mean, errors=(0.29957,), how="exact")) == (
        "mean of age, 1,000 values, 99 %: within 0.2996 (exact)"
    )
    assert "(a bound on any data)" in str(Accuracy(**mean, errors=(0.3,), how="bound"))
    simulated = Accuracy(**mean, errors=(0.25,), how="simulated", monte_carlo=0.0123, scenario="uniform")
    assert "within 0.25 ± 0.012 (simulated for uniform, ± one standard error)" in str(simulated)


def test_quantiles_say_that_a_bound_is_for_all_together_and_a_simulation_for_each():
    assert str(quantiles()) == (
        "deciles of salary, 50,000 values, 95 %: within 447 ranks (a bound on any data, for all together)"
    )
    found = quantiles(
        ranks=(34.0, *[30.0] * 8),
        errors=(1234.5,) * 9,
        how="simulated",
        monte_carlo=20.0,
        monte_carlo_ranks=1.5,
        scenario="lognormal with mu 10.4 and sigma 0.5",
        notes=("a note",),
    )
    assert str(found) == (
        "deciles of salary, 50,000 values, 95 % each: within 34 ± 1.5 ranks and 1,234 ± 20 in value "
        "(simulated for lognormal with mu 10.4 and sigma 0.5, ± one standard error; on any data 447 ranks "
        "for all together)\n  note: a note"
    )
    assert (found.rank_error, found.error) == (34.0, 1234.5)
    assert quantiles().error is None


def test_where_no_bound_holds_it_says_so():
    assert "within any number of ranks" in str(
        quantiles(ranks=(math.inf,), any_data=math.inf, labels=("0.5",))
    )


@pytest.mark.parametrize(
    ("orders", "name"),
    [
        ((0.5,), "median"),
        ((0.25, 0.5, 0.75), "quartiles"),
        ([i / 100 for i in range(1, 100)], "percentiles"),
        ((0.1, 0.5, 0.75), "quantiles"),
    ],
)
def test_usual_quantiles_go_by_their_names(orders, name):
    query = sf.Quantiles(budget=sf.PureDP(1), probs=orders, bounds=(0, 1), neighbours="add-remove")
    assert str(query.accuracy(1000)).startswith(f"{name} of values")


def test_names_cannot_steer_a_terminal_or_a_page():
    found = quantiles(column="a\x1b[31m<b>", notes=("<i>",))
    assert "\x1b" not in str(found)
    page = found._repr_html_()
    assert "<b>a" not in page.replace("<b>deciles of ", "")
    assert "&lt;i&gt;" in page
    assert page.count("<tr>") == 10


def test_the_figure_of_a_sample_is_kept_by_the_share_of_draws_asked_for():
    errors = np.random.default_rng(1).permutation(np.arange(1.0, 1001.0))[:, None]
    for confidence in (0.001, 0.5, 0.95, 0.999):
        assert tails(errors, confidence)[0] == [round(1000 * confidence)]
    assert tails(errors, 1 - 1e-9)[0] == [1000]
    assert (tails(np.zeros((100, 3)), 0.95)[1] == 0).all()


@pytest.mark.parametrize("sets", [1, 20])
def test_the_standard_error_of_a_figure_is_how_much_it_varies(sets):
    rng = np.random.default_rng(2)
    # Draws on the same data share a scale, if there are several sets.
    figures, stated = [], []
    for _ in range(400):
        scales = np.exp(0.3 * rng.standard_normal(sets)) if sets > 1 else np.ones(1)
        errors = rng.exponential(np.repeat(scales, 1000 // sets))[:, None]
        figure, error = tails(errors, 0.9, sets)
        figures.append(float(figure[0]))
        stated.append(float(error[0]))
    assert np.mean(stated) == pytest.approx(np.std(figures), rel=0.15)
    if sets > 1:
        # What forgets that draws share their data states too little.
        naive = [float(tails(rng.exponential(np.ones(1000))[:, None], 0.9)[1][0]) for _ in range(100)]
        assert np.mean(naive) < 0.8 * np.std(figures)


def test_few_draws_for_a_high_confidence_are_noted():
    assert few_beyond(1000, 0.95) == ()
    assert "1,000 draws are few for a confidence of 0.999" in few_beyond(1000, 0.999)[0]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_shown_on_a_terminal_alone_and_only_after_a_while(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(progress.steps(5, "quick")) == [0, 1, 2, 3, 4]
    assert sys.stderr.getvalue() == ""
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "OFTEN", -1.0)
    # What looks like markup is shown, and cannot fail.
    assert list(progress.steps(5, "slow [/bold]")) == [0, 1, 2, 3, 4]
    assert "slow [/bold]" in sys.stderr.getvalue()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert list(progress.steps(5, "slow work")) == [0, 1, 2, 3, 4]
    assert sys.stderr.getvalue() == ""


def test_progress_needs_no_other_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "OFTEN", -1.0)
    assert list(progress.steps(4, "slow work")) == [0, 1, 2, 3]
    assert "slow work:  50 %" in sys.stderr.getvalue()
