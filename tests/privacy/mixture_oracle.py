"""Losses of mixtures with noise by mpmath: other formulas and another arithmetic than the package's."""

from fractions import Fraction
from itertools import pairwise

from mpmath import mp, mpf

from sfumato.privacy.pufferfish import Mixture, Pufferfish

CASES = {
    "shift": (Mixture.normal(0, 1), Mixture.normal(2, 1)),
    "wider": (Mixture.normal(0, 1), Mixture.normal(1, 2)),
    "mixtures": (
        Mixture([0.6, 0.4], [0, 5], [1, 0.5]),
        Mixture([0.5, 0.2, 0.3], [0.5, 3, 6], [1.2, 0.5, 0.7]),
    ),
    "shifted mixture": (Mixture([0.3, 0.7], [0, 10], [1, 3]), Mixture([0.3, 0.7], [1, 11], [1, 3])),
}


def model(left, right):
    return Pufferfish(scenarios={"usual": {"first": left, "second": right}}, pairs=[("first", "second")])


def real(number):
    number = Fraction(number)
    return mpf(number.numerator) / number.denominator


def parts(law):
    return [tuple(map(real, part)) for part in zip(law.weights, law.means, law.deviations, strict=True)]


def laplace_density(law, scale, x):
    """The density of a mixture with Laplace noise, by the complementary error function."""
    b, total = real(scale), mpf(0)
    for w, m, s in parts(law):
        z, k = x - m, s / b
        ahead = mp.exp(k * k / 2 - z / b) * mp.erfc((k - z / s) / mp.sqrt(2))
        behind = mp.exp(k * k / 2 + z / b) * mp.erfc((k + z / s) / mp.sqrt(2))
        total += w * (ahead + behind) / (4 * b)
    return total


def moment(law, t):
    return sum(w * mp.exp(t * m + t * t * s * s / 2) for w, m, s in parts(law))


def laplace_loss(left, right, scale, *, digits=20):
    """The supremum of the absolute log ratio: a grid, a search around its best point, and both limits."""
    with mp.workdps(digits):
        b = real(scale)
        ends = [
            m + side * (6 * s + 6 * b) for law in (left, right) for _, m, s in parts(law) for side in (-1, 1)
        ]

        def loss(x):
            return abs(mp.log(laplace_density(left, scale, x) / laplace_density(right, scale, x)))

        points = mp.linspace(min(ends), max(ends), 160)
        best = max(range(160), key=lambda k: loss(points[k]))
        low, high = points[max(best - 1, 0)], points[min(best + 1, 159)]
        for _ in range(45):  # ternary search
            a, c = low + (high - low) / 3, high - (high - low) / 3
            low, high = (a, high) if loss(a) < loss(c) else (low, c)
        limits = [abs(mp.log(moment(left, t) / moment(right, t))) for t in (1 / b, -1 / b)]
        return float(max(loss(low), loss(points[best]), *limits))


def gaussian_delta(left, right, sigma, epsilon, *, digits=20):
    """The hockey-stick divergence with continuous Gaussian noise, by the sets where one density is larger."""
    with mp.workdps(digits):
        blurred = [
            [(w, m, mp.sqrt(s * s + real(sigma) ** 2)) for w, m, s in parts(law)] for law in (left, right)
        ]
        factor = mp.exp(real(epsilon))
        return float(max(_one_way(*blurred, factor), _one_way(*blurred[::-1], factor)))


def _one_way(p, q, factor):
    def gap(x):
        density = [sum(w * mp.npdf(x, m, s) for w, m, s in law) for law in (p, q)]
        return density[0] - factor * density[1]

    def mass(law, low, high):
        return sum(w * (mp.ncdf((high - m) / s) - mp.ncdf((low - m) / s)) for w, m, s in law)

    reach = max(abs(m) + 12 * s for _, m, s in (*p, *q))
    points = mp.linspace(-reach, reach, 200)
    above = [gap(x) > 0 for x in points]
    edges, inside = [-mp.inf], [above[0]]
    for k in range(199):
        if above[k] != above[k + 1]:
            low, high = points[k], points[k + 1]
            for _ in range(45):
                middle = (low + high) / 2
                low, high = (middle, high) if (gap(middle) > 0) == above[k] else (low, middle)
            edges.append(low)
            inside.append(above[k + 1])
    edges.append(mp.inf)
    spans = [span for span, use in zip(pairwise(edges), inside, strict=True) if use]
    return sum(mass(p, *span) - factor * mass(q, *span) for span in spans)


def lattice_chances(law, granularity, low, high):
    """The probabilities of the lattice steps from `low` to `high`, by distribution functions."""
    g, found = real(granularity), {}
    for k in range(low, high + 1):
        found[k] = sum(
            w * (mp.ncdf(((k + mpf(1) / 2) * g - m) / s) - mp.ncdf(((k - mpf(1) / 2) * g - m) / s))
            for w, m, s in parts(law)
        )
    return found


def lattice_release(law, granularity, noise, low, high, outcomes):
    """The probability of each outcome: all steps, convolved with a noise that is given as a function."""
    chances = lattice_chances(law, granularity, low, high)
    return [sum(chance * noise(j - k) for k, chance in chances.items()) for j in outcomes]
