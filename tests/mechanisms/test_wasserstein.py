"""One release with certified noise: what is drawn, that it is private, and that there is no second one."""

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.privacy.mixture_oracle import CASES, model

import sfumato as sf
from sfumato.audit.secrets import flu_in_a_household, worst_secrets
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, SeededBits
from sfumato.ledger import MemoryLedger
from sfumato.mechanisms import WassersteinMechanism
from sfumato.mechanisms.wasserstein import nearest_step
from sfumato.privacy import OneShotEvent, PureDP
from sfumato.privacy.pufferfish import Finite, Mixture, Pufferfish, VectorMixture, certify
from sfumato.statistics import Count

FLU = flu_in_a_household()
WIDER = model(*CASES["wider"])


def made(pair=FLU, method="laplace-certified", **options):
    return WassersteinMechanism.calibrated(pair, epsilon=1, method=method, **options)


# --- what is drawn --------------------------------------------------------------------------------


def test_the_law_is_discrete_noise_around_the_nearest_step():
    mechanism = made(WIDER)
    step, scale = mechanism.certificate.granularity, mechanism.certificate.scale
    assert mechanism.noise == DiscreteLaplace(scale / step)
    assert mechanism.law(1.25).center == round(1.25 / float(step))
    gaussian = made(WIDER, "gaussian-exact", delta=1e-4)
    assert gaussian.noise == DiscreteGaussian(
        (gaussian.certificate.scale / gaussian.certificate.granularity) ** 2
    )


def test_values_are_rounded_exactly_and_halves_go_up():
    step = Fraction(1, 10)
    for value, steps in (
        (0.15, 2),
        (Decimal("0.15"), 2),
        (0.1499, 1),
        (-0.15, -1),
        (3, 30),
        (np.float32(0.5), 5),
    ):
        assert nearest_step(value, step) == steps
    for value in (float("nan"), float("inf"), "12.5", None, True, [1]):
        with pytest.raises(InvalidParameter, match=r"^value must be a finite number$"):
            nearest_step(value, step)


def test_a_release_is_a_multiple_of_the_step_and_says_what_it_is():
    release = made().release(2, SeededBits(1))
    assert release.value.denominator == 1
    assert not release.private
    assert "one-shot" in str(release)
    assert "do not publish" in str(release)
    low, high = release.interval(0.95)
    assert low < release.value < high
    assert made().release(2).private
    vectors = {"a": VectorMixture([1], [[0, 0]], [np.eye(2).tolist()])}
    vectors["b"] = VectorMixture([1], [[1, 1]], [np.eye(2).tolist()])
    pair = Pufferfish(scenarios={"usual": vectors}, pairs=[("a", "b")])
    several = made(pair, "coupling", delta=1e-6)
    with pytest.raises(InvalidParameter, match=r"^value must be 2 numbers$"):
        several.law([1, 2, 3])
    with pytest.raises(InvalidParameter, match=r"^value must be 2 numbers$"):
        several.law(1)
    assert len(several.release([0.5, 0.25], SeededBits(2)).value) == 2


def test_intervals_hold_as_often_as_they_say():
    mechanism, bits, inside = made(WIDER), SeededBits(3), 0
    for _ in range(400):
        object.__setattr__(mechanism, "_released", {})  # a test may draw again
        low, high = mechanism.release(0.7, bits).interval(0.9)
        inside += low <= 0.7 <= high
    assert inside / 400 > 0.9 - 4 * (0.09 / 400) ** 0.5


# --- it is private --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "delta"), [("wasserstein", 0), ("laplace-certified", 0), ("gaussian-exact", 1e-3)]
)
def test_no_pair_loses_more_than_is_certified(method, delta):
    worst = worst_secrets(made(method=method, delta=delta))
    assert worst.loss.holds, worst
    assert worst.pairs == 2
    if method != "wasserstein":  # which pays for the largest move, however unlikely
        assert worst.loss.tightness > 0.999


def test_noise_for_the_easier_scenario_alone_is_a_violation():
    mild = Pufferfish(scenarios={"mild": dict(FLU.scenarios[1].laws)}, pairs=FLU.pairs)
    broken = made(mild)
    object.__setattr__(broken, "model", FLU)
    assert worst_secrets(broken).loss.verdict == "VIOLATED"


def test_half_the_noise_is_a_violation():
    broken = made()
    object.__setattr__(broken, "certificate", replace(broken.certificate, scale=broken.certificate.scale / 2))
    assert worst_secrets(broken).loss.verdict == "VIOLATED"
    with pytest.raises(NotSupported, match="only finite laws can be listed"):
        worst_secrets(made(WIDER))


def test_the_log_ratio_of_draws_is_below_epsilon():
    # 10^6 draws under either secret, of the released law itself, in bins of a quarter of the scale.
    generator, mechanism, size = np.random.default_rng(11), made(WIDER), 500_000
    step = float(mechanism.certificate.granularity)
    counts = []
    edges = np.linspace(-12, 16, 29)
    for law, seed in ((CASES["wider"][0], 1), (CASES["wider"][1], 2)):
        values = generator.normal(float(law.means[0]), float(law.deviations[0]), size)
        steps = np.floor(values / step + 0.5) + mechanism.noise.sample(SeededBits(seed), size)
        counts.append(np.histogram(steps * step, edges)[0])
    seen = (counts[0] > 100) & (counts[1] > 100)
    ratio = np.log(counts[0][seen] / counts[1][seen])
    error = np.sqrt(1 / counts[0][seen] + 1 / counts[1][seen])
    assert np.all(np.abs(ratio) <= float(mechanism.certificate.epsilon) + 4 * error)
    assert np.abs(ratio).max() > 0.6  # and half the noise would show
    assert seen.sum() > 15


# --- and only once ----------------------------------------------------------------------------------


def test_a_second_release_is_refused_in_words():
    mechanism = made()
    mechanism.release(2)
    for value in (2, 3, "not even a number"):
        with pytest.raises(NotSupported, match="has released once: Pufferfish costs do not add up"):
            mechanism.release(value)
    assert made().release(2)  # an explicit new mechanism may


def test_a_value_that_is_refused_has_used_the_mechanism_up():
    mechanism = made()
    with pytest.raises(InvalidParameter, match="value must be a finite number"):
        mechanism.release("two")
    with pytest.raises(NotSupported, match="has released once"):
        mechanism.release(2)


def test_of_many_threads_one_gets_the_release():
    mechanism = made()

    def attempt(_):
        try:
            return mechanism.release(2)
        except NotSupported:
            return None

    with ThreadPoolExecutor(8) as pool:
        assert sum(release is not None for release in pool.map(attempt, range(64))) == 1


def test_a_copy_of_a_used_mechanism_is_used():
    mechanism = made()
    mechanism.release(2)
    with pytest.raises(NotSupported, match="has released once"):
        pickle.loads(pickle.dumps(mechanism)).release(2)


def test_a_mechanism_is_made_of_a_certificate_that_holds():
    found = certify(FLU, epsilon=1, method="laplace-certified")
    with pytest.raises(InvalidParameter, match="is proved"):
        WassersteinMechanism(model=FLU, certificate=replace(found, scale=found.scale * Fraction(95, 100)))
    with pytest.raises(InvalidParameter, match="does not cover exactly"):
        WassersteinMechanism(model=FLU, certificate=replace(found, bounds=found.bounds[:1]))
    assert WassersteinMechanism(model=FLU, certificate=found).event == OneShotEvent(
        found.epsilon, 0, "pufferfish"
    )


class OneShotCount(Count):
    """A query that wrongly brings a one-shot event to a session."""

    @property
    def event(self):
        return made().event


def test_a_ledger_refuses_the_mechanism_itself():
    with pytest.raises(NotSupported, match="is one-shot"):
        sf.MemoryLedger(PureDP(5), neighbours="add-remove").charge(made())


def test_sessions_and_ledgers_refuse_its_event(tmp_path):
    data = sf.Dataset({"values": np.array([0.0, 1.0, 1.0])}, neighbours="add-remove", unit="row")
    session = sf.Session(data, budget=PureDP(5))
    query = OneShotCount(budget=PureDP(1), neighbours="add-remove")
    with pytest.raises(NotSupported, match="is one-shot"):
        session.answer(query)
    assert session.spent == sf.privacy.Amount()
    ledger = MemoryLedger(PureDP(5), neighbours="add-remove")
    for act in (ledger.require, ledger.charge):
        with pytest.raises(NotSupported, match="is one-shot"):
            act(query)
    assert ledger.spent == sf.privacy.Amount()
    with sf.SqlLedger(tmp_path / "ledger.db", anchor=tmp_path / "anchor") as kept:
        account = kept.open("clinic", cap=PureDP(5), neighbours="add-remove")
        with pytest.raises(NotSupported, match="is one-shot"):
            account.charge(query)
        assert account.spent == sf.privacy.Amount()


def test_mixtures_and_finite_laws_are_all_released():
    pair = model(Mixture.normal(0, 1), Mixture.normal(1, 1))
    for method, delta in (
        ("wasserstein", 0),
        ("laplace-certified", 0),
        ("gaussian-exact", 1e-3),
        ("coupling", 1e-3),
    ):
        release = made(pair, method, delta=delta).release(0.3)
        assert (release.value / release.certificate.granularity).denominator == 1
    coarse = Pufferfish(
        scenarios={"usual": {"a": Finite({0: 1}), "b": Finite({Fraction(1, 2): 1})}}, pairs=[("a", "b")]
    )
    assert made(coarse, "wasserstein").certificate.granularity == Fraction(1, 2)


@pytest.mark.parametrize("name", ["flu", "measurements"])
def test_the_examples_run_and_release_once(name):
    root = Path(__file__).resolve().parents[2]
    finished = subprocess.run(
        [sys.executable, str(root / "examples" / "pufferfish" / f"{name}.py")],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    shown = {
        "flu": [
            "Laplace noise of scale 4.0",
            "loses 3.62 about the first person",
            "has noise of scale 4,",
            "no ledger takes it",
        ],
        "measurements": [
            "by 6.0\n",
            "by 25.2\n",
            "loses 4.2 here",
            "scale 30.\n",
            "again: NotSupported: this mechanism has released once",
        ],
    }
    assert all(part in finished.stdout for part in shown[name])
    assert finished.stdout.count("released: ") == 1
