"""Five blood pressures of one person: how much noise hides one of them, when all of them tell on it.

    python examples/pufferfish/measurements.py

Fictional. The person's own level is shared by all five measurements, so that they are correlated by 0.8. The
query is their mean. The secret is the first measurement: 120 or 150. Two scenarios differ in the level.
"""

from sfumato.mechanisms import WassersteinMechanism
from sfumato.privacy.pufferfish import JointMixture, Pufferfish, certify, leakage, misspecified

DAYS = 5
MEAN = [1 / DAYS] * DAYS
SECRETS = {"120": 120, "150": 150}


def person(correlation: float, weights: list[float], levels: list[int]) -> JointMixture:
    """Measurements around one of several levels, each with a deviation of 10, correlated as stated."""
    one = [[100 * (1 if i == j else correlation) for j in range(DAYS)] for i in range(DAYS)]
    return JointMixture(weights, [[level] * DAYS for level in levels], [one] * len(levels))


def model(**worlds: JointMixture) -> Pufferfish:
    """What the mean tells about the first measurement, in each of several worlds."""
    laws = {
        name: {secret: world.given(0, value).of(MEAN) for secret, value in SECRETS.items()}
        for name, world in worlds.items()
    }
    return Pufferfish(scenarios=laws, pairs=[("120", "150")])


def main() -> None:
    """Print the noise with and without the correlation, verify the certificate, and release once."""
    alone = model(independent=person(0.0, [1], [125]))
    group = model(one_group=person(0.8, [1], [125]))
    related = model(one_group=person(0.8, [1], [125]), two_groups=person(0.8, [0.8, 0.2], [120, 145]))
    for name, pair in (("as if independent", alone), ("correlated by 0.8", group)):
        low, high = (law for _, law in pair.scenarios[0].laws)
        print(f"{name}: the secret moves the mean by {float(high.means[0] - low.means[0]):.1f}")
        print(f"  {certify(pair, epsilon=1, method='wasserstein')}")
    lost = certify(alone, epsilon=1, method="wasserstein").scale
    move = group.scenarios[0].laws[1][1].means[0] - group.scenarios[0].laws[0][1].means[0]
    print(f"Noise for independent records loses {float(move / lost):.1f} here.")
    span = SECRETS["150"] - SECRETS["120"]
    print(f"With the person as the unit, and values in a range of {span}, the mean needs scale {span}.")
    print("correlated, and from one group or from two")
    for method, delta in (("laplace-certified", 0), ("gaussian-exact", 1e-6), ("coupling", 1e-3)):
        print(f"  {certify(related, epsilon=1, delta=delta, method=method)}")

    certificate = certify(related, epsilon=1, method="laplace-certified")
    certificate.verify(related)
    near = misspecified(certificate, tau=0.05)
    print(f"\nIf the model is off by a factor of e^0.05 at most, epsilon is {float(near.epsilon):.4f}.")
    for one in leakage(related, certificate):
        print(
            f"On average ({one.scenario}): {one.information:.3f} nats of {0.693:.3f}. That is no guarantee."
        )

    mechanism = WassersteinMechanism(model=related, certificate=certificate)
    release = mechanism.release((131 + 127 + 135 + 129 + 133) / 5)
    low, high = release.interval(0.9)
    print(f"\nreleased: {float(release.value):.1f}, 90 % interval [{low:.1f}, {high:.1f}]")
    try:
        mechanism.release(131.0)
    except Exception as error:
        print(f"again: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
