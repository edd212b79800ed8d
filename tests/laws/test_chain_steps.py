"""The states of a chain, and what flows between those of one order and of the next."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.laws import wide as wides
from sfumato.laws.chain_steps import Blocks, Passage
from sfumato.laws.wide import Rate, wide

mpmath.mp.prec = 300

EDGES = [-(2**40), -900, -130, -70, *range(-40, 43), 50, 51, 90, 700, 2**40]


@pytest.mark.parametrize("largest", [1, 3000])
@pytest.mark.parametrize("shift", [None, 0, 1, 9, 300])
@pytest.mark.parametrize("c", [Fraction(1, 4), Fraction(50)])
@pytest.mark.parametrize("form", ["columns", "long columns", "no columns"])
def test_what_flows_into_a_state_is_what_it_is_drawn_from(largest, shift, c, form, monkeypatch):
    if form != "columns":
        monkeypatch.setattr(wides, "_ROW_BITS", 10**9)
        monkeypatch.setattr(wides, "_MOST_ROWS", {"long columns": 10**6, "no columns": -(10**6)}[form])
    rng = np.random.default_rng(3)
    for parts in [(0, 0), (0, Fraction(1, 3)), (Fraction(1, 3), 0), (Fraction(1, 3),) * 2, (0.75, 0.5)]:
        blocks = Blocks(Rate(c), np.array(EDGES))
        parts = tuple(map(Fraction, parts))
        passage = Passage(blocks, blocks, parts, shift)
        # Some states have no weight, a stretch at each end among them.
        present = (
            (rng.random(len(blocks)) < 0.7) & (np.arange(len(blocks)) > 5) & (np.arange(len(blocks)) < 90)
        )
        mass = wide(rng.random(len(blocks)) * present, rng.integers(0, largest, len(blocks)))
        kernels = [blocks.kernels(part) for part in parts]
        flow = passage.push(mass, *kernels)
        for state, (mantissa, exponent) in enumerate(zip(*flow, strict=True)):
            first, last = passage.sources(state)
            wanted = mpmath.mpf(0)
            if first < last:
                for m, e in zip(*passage.pull(state, mass, *kernels)[1], strict=True):
                    wanted += mpmath.mpf(float(m)) * mpmath.mpf(2) ** int(e) if m else 0
            stated = mpmath.mpf(float(mantissa)) * mpmath.mpf(2) ** int(exponent) if mantissa else 0
            assert abs(stated - wanted) <= wanted * 1e-13
            assert (stated == 0) == (wanted == 0)
