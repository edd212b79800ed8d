"""Flu in a household: the number of ill people tells more about one of them than their own one.

    python examples/pufferfish/flu.py

Fictional. Four people live together. Somebody brings the flu home or nobody does, and then it spreads to each
of the others with some probability. The query is how many are ill; the secret is whether the first person is.
"""

from fractions import Fraction
from itertools import product
from math import comb

from sfumato.audit.secrets import worst_secrets
from sfumato.mechanisms import LaplaceMechanism, WassersteinMechanism
from sfumato.privacy.pufferfish import Finite, Pufferfish, certify

PEOPLE = 4


def household(brought: Fraction, spread: Fraction) -> dict[str, Finite]:
    """The law of the number of ill people given whether the first one is, in exact fractions.

    Everybody brings the flu home with one probability; if anybody does, all others catch it with another.
    """
    counts: dict[bool, dict[int, Fraction]] = {True: {}, False: {}}
    for bringing in product((True, False), repeat=PEOPLE):
        chance = Fraction(1)
        for brings in bringing:
            chance *= brought if brings else 1 - brought
        well = PEOPLE - sum(bringing)
        rate = spread if any(bringing) else Fraction(0)
        for caught in range(well + 1):
            ill = sum(bringing) + caught
            some = chance * comb(well, caught) * rate**caught * (1 - rate) ** (well - caught)
            # Given how many catch it, each of those who did not bring it is equally likely to.
            first = Fraction(1) if bringing[0] else Fraction(caught, well)
            for is_ill, share in ((True, first), (False, 1 - first)):
                counts[is_ill][ill] = counts[is_ill].get(ill, Fraction(0)) + some * share
    laws = {}
    for is_ill, name in ((True, "ill"), (False, "well")):
        total = sum(counts[is_ill].values())
        laws[name] = Finite({count: p / total for count, p in counts[is_ill].items() if p})
    return laws


def model() -> Pufferfish:
    """Three beliefs about how contagious the flu is; the release protects under each of them."""
    tenth = Fraction(1, 10)
    worlds = {f"spreads to {k} in 10": household(tenth, k * tenth) for k in (1, 5, 9)}
    return Pufferfish(scenarios=worlds, pairs=[("ill", "well")])


def main() -> None:
    """Print what each method needs, the trap of a differentially private count, and one release."""
    pair = model()
    for scenario in pair.scenarios:
        for secret, law in scenario.laws:
            shown = ", ".join(f"{int(v)}: {float(p):.3f}" for v, p in law)
            print(f"{scenario.name:18} first is {secret:5} {shown}")

    print("\nnoise for epsilon 1")
    for method, delta in (("wasserstein", 0), ("laplace-certified", 0), ("gaussian-exact", 1e-6)):
        print(f"  {certify(pair, epsilon=1, delta=delta, method=method)}")

    plain = LaplaceMechanism.calibrated(epsilon=Fraction(1), sensitivity=1)
    same = WassersteinMechanism.calibrated(pair, epsilon=PEOPLE, method="wasserstein")
    lost = worst_secrets(same).loss.amount
    print(
        f"\nA count that is differentially private with epsilon 1 has noise of scale {float(plain.scale):g}."
    )
    print(f"That much ({float(same.certificate.scale):g}) loses {lost:.2f} about the first person here.")
    print(f"With the household of {PEOPLE} as the unit it has noise of scale {PEOPLE}, whatever the beliefs.")

    mechanism = WassersteinMechanism.calibrated(pair, epsilon=1, method="laplace-certified")
    print(f"\nreleased: {mechanism.release(3)}")
    print(f"event: {type(mechanism.event).__name__}; no ledger takes it")


if __name__ == "__main__":
    main()
