"""The audit of a release that hides secrets: all pairs of a model of finite laws, over all outcomes."""

from fractions import Fraction

import numpy as np

from sfumato.audit.choices import worst_listed
from sfumato.audit.exact import WorstCase
from sfumato.errors import NotSupported
from sfumato.grid import Floats
from sfumato.mechanisms import WassersteinMechanism
from sfumato.privacy import ApproxDP, PureDP
from sfumato.privacy.pufferfish import Finite, Pufferfish

# Beyond the last value by this many scales Gaussian noise is below 1e-80; Laplace noise has a constant ratio.
_FAR = 20


def flu_in_a_household() -> Pufferfish:
    """Three people: the law of how many of them are ill, given whether one of them is, in two scenarios."""
    contagious = {
        "ill": Finite({1: Fraction(1, 10), 2: Fraction(3, 10), 3: Fraction(6, 10)}),
        "well": Finite({0: Fraction(8, 10), 1: Fraction(1, 10), 2: Fraction(1, 10)}),
    }
    mild = {
        "ill": Finite({1: Fraction(6, 10), 2: Fraction(3, 10), 3: Fraction(1, 10)}),
        "well": Finite({0: Fraction(7, 10), 1: Fraction(2, 10), 2: Fraction(1, 10)}),
    }
    return Pufferfish(scenarios={"contagious": contagious, "mild": mild}, pairs=[("ill", "well")])


def worst_secrets(mechanism: WassersteinMechanism) -> WorstCase:
    """The largest loss over all pairs and scenarios, from the law that a release draws from."""
    proved = mechanism.certificate
    laws = [law for one in mechanism.model.comparisons for law in (one.left, one.right)]
    if not all(isinstance(law, Finite) for law in laws):
        raise NotSupported("only finite laws can be listed: mixtures are audited by their certificate")
    reach = int(_FAR * proved.scale / proved.granularity) + 2
    places = [int(value / proved.granularity) for law in laws for value in law.values]
    outcomes = np.arange(min(places) - reach, max(places) + reach + 1)

    def logs(law: Finite) -> Floats:
        each = [np.log(float(weight)) + mechanism.law(value).logpmf(outcomes) for value, weight in law]
        return np.asarray(np.logaddexp.reduce(each))

    pairs = [(one.left, one.right) for one in mechanism.model.comparisons]
    cost = ApproxDP(proved.epsilon, proved.delta) if proved.delta else PureDP(proved.epsilon)
    return worst_listed("WassersteinMechanism", logs, pairs, cost)
