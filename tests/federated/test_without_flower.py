"""Where Flower is not installed the plain functions work, and the wrappers say what to install."""

import subprocess
import sys

import pytest

# An entry of None makes every import of the package fail, installed or not.
HIDDEN = "import sys; sys.modules['flwr'] = None; import sfumato as sf; from sfumato.federated import *\n"
PLAN = (
    "facts = {'expected_clients': 2, 'neighbours': 'add-remove', 'shapes': ((2,),)}\n"
    "plan = Aggregator(bound=1, noise_multiplier=1, **facts)\n"
    "run = Run(plan, sf.ApproxDP(12, 1e-5))\n"
)
USES = {
    "strategy": "from sfumato.federated.flower import CentralDP; CentralDP(None, run)",
    "mod": "from sfumato.federated.flower_mods import local_dp_mod; "
    "local_dp_mod(sf.ZCDP(1), 1)(None, None, None)",
    "accountant": "from sfumato.federated.flower_accountant import SfumatoAccountant; "
    "SfumatoAccountant.get_privacy_spent(None)",
}


def outcome(code: str) -> str:
    found = subprocess.run(
        [sys.executable, "-c", HIDDEN + PLAN + code], capture_output=True, text=True, timeout=120
    )
    return found.stdout + found.stderr


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_the_wrappers_name_the_extra(use):
    assert "MissingExtra: " in (told := outcome(use))
    assert 'pip install "sfumato[flower]"' in told


def test_the_plain_functions_need_no_flower():
    assert outcome("print(run.rounds_left)").strip() == "5"
