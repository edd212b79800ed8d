"""Errata about private means: neighbours, Laplace and Gaussian noise, and the reading notes."""

import itertools
import math
from fractions import Fraction

import numpy as np

from sfumato.accuracy import gaussian_to_laplace, mean_risk
from sfumato.audit import compare
from sfumato.lab.erratum import Erratum, Finding, found
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, Shifted
from sfumato.mechanisms import ExponentialMechanism, LaplaceMechanism
from sfumato.privacy import gaussian_delta, laplace_scale

# One unit of the data is so many steps of the lattice, on which noise is as good as continuous.
LATTICE = 10**6


def relations() -> Finding:
    """E19: the same noise on a histogram under the two relations."""
    mechanism = LaplaceMechanism(sensitivity=2, scale=Fraction(1))
    empty, left, right = (mechanism.law(np.array(counts)) for counts in ((0, 0), (1, 0), (0, 1)))
    return found(
        "Laplace noise of scale {scale} on the two cells of a histogram costs ε = {added:g} if a record is "
        "added or removed, and ε = {replaced:g} if one is replaced.",
        scale=1,
        added=compare(empty, left).epsilon().upper,
        replaced=compare(left, right).epsilon().upper,
    )


def _classical(epsilon: float, delta: float) -> float:
    """The standard deviation of the classical calibration, for a sensitivity of 1."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def _delta(deviation: float, epsilon: float) -> float:
    return gaussian_delta(epsilon, Fraction(round((deviation * LATTICE) ** 2)), LATTICE)


def gaussian() -> Finding:
    """E20: Gaussian noise has no pure epsilon, and its calibration ends where epsilon is large."""
    delta, small, large = 1e-5, 0.8, 10
    noise = DiscreteGaussian(Fraction(round((_classical(small, delta) * LATTICE) ** 2)))
    return found(
        "Calibrated for ε = {small:g} and δ = {delta:g}, the noise has no finite pure loss ({pure}), and "
        "the δ at this ε is {kept:.1e}. The same formula at ε = {large} gives δ = {broken:.2e}.",
        small=small,
        delta=delta,
        pure=compare(Shifted(noise, 0), Shifted(noise, LATTICE)).epsilon().upper,
        kept=_delta(_classical(small, delta), small),
        large=large,
        broken=_delta(_classical(large, delta), large),
    )


def larger_epsilon() -> Finding:
    """E21: the scale of the noise at two budgets."""
    small, large = Fraction(1, 10), Fraction(8, 10)
    return found(
        "For a sensitivity of {unit} the scale is {wide:g} at ε = {small:g} and {narrow:g} at ε = {large:g}.",
        unit=1,
        wide=float(laplace_scale(1, small)),
        small=float(small),
        narrow=float(laplace_scale(1, large)),
        large=float(large),
    )


# Figures 1 and 3: a thousand uniform values up to a thousand, and what is drawn from them.
ROWS, WIDTH, EPSILON, DELTA, CONSTANT = 1000, 1000, 0.8, 1e-5, 5
UNIFORM = WIDTH**2 / 12


def _risks() -> tuple[float, float]:
    laplace = mean_risk("laplace", ROWS, UNIFORM, WIDTH, EPSILON)
    return laplace, mean_risk("gaussian", ROWS, UNIFORM, WIDTH, EPSILON, DELTA, constant=CONSTANT)


def peaks() -> Finding:
    """E22: the spread and the peak of two histograms of answers."""
    draws, bin_width = 2000, 0.5
    laplace, gauss = (math.sqrt(risk) for risk in _risks())
    peak = draws * bin_width / math.sqrt(2 * math.pi)
    return found(
        "With {rows} uniform values up to {width} and ε = {epsilon:g}, answers have the standard deviation "
        "{laplace:.2f} with Laplace and {gaussian:.2f} with Gaussian noise. Of {draws} answers the highest "
        "bin of width {bin:g} has about {laplace_peak:.0f} and {gaussian_peak:.0f}.",
        rows=ROWS,
        width=WIDTH,
        epsilon=EPSILON,
        laplace=laplace,
        gaussian=gauss,
        draws=draws,
        bin=bin_width,
        laplace_peak=peak / laplace,
        gaussian_peak=peak / gauss,
    )


def squares() -> Finding:
    """E29: the second moment of noise around 3."""
    center, scale = 3, 2
    law = Shifted(DiscreteLaplace(Fraction(scale)), center)
    reach = np.arange(center - 100 * scale, center + 100 * scale + 1)
    square = float(np.exp(law.logpmf(reach)) @ (reach * reach))
    laplace, gauss = _risks()
    return found(
        "For Laplace noise of scale {scale} around {center} the mean square is {square:.3f}. The squared "
        "mean and the variance add up to {right:.3f}; the sum as written is {written:.3f}. The risks that "
        "follow are right: {laplace:.2f} and {gaussian:.2f} in figures one and three.",
        scale=scale,
        center=center,
        square=square,
        right=law.mean**2 + law.variance,
        written=square + law.variance,
        laplace=laplace,
        gaussian=gauss,
    )


def better_noise() -> Finding:
    """E30: where Gaussian noise is the smaller one."""
    many = 100
    kinds = ("gaussian", "analytic gaussian")
    classical, analytic = (gaussian_to_laplace(kind, EPSILON, DELTA) for kind in kinds)
    ratios = (gaussian_to_laplace("analytic gaussian", EPSILON, DELTA, answers=k) for k in itertools.count(1))
    return found(
        "The condition on c² holds if and only if δ < {limit:.4f}. At ε = {epsilon:g} and δ = {delta:g} the "
        "Gaussian standard deviation is {classical:.2f} times that of Laplace noise by the classical rule, "
        "and {analytic:.2f} times by the exact one. From {crossing} means under one budget on it is the "
        "smaller one, and for {many} it is {ratio:.2f} times that of Laplace noise.",
        limit=1.25 / math.e,
        epsilon=EPSILON,
        delta=DELTA,
        classical=classical,
        analytic=analytic,
        crossing=next(k for k, ratio in enumerate(ratios, start=1) if ratio < 1),
        many=many,
        ratio=gaussian_to_laplace("analytic gaussian", EPSILON, DELTA, answers=many),
    )


def inverse_normal() -> Finding:
    """E42: the delta that is left without the root of two."""
    epsilon, delta = 0.5, 1e-5
    sigma = _classical(epsilon, delta)
    narrow = sigma / math.sqrt(2)
    noise = DiscreteGaussian(Fraction(round((narrow * LATTICE) ** 2)))
    return found(
        "For ε = {epsilon:g} and δ = {delta:g} the standard deviation {sigma:.4f} becomes {narrow:.4f}, and "
        "δ is {broken:.3e} in place of {kept:.1e}: the promise is broken.",
        epsilon=epsilon,
        delta=delta,
        sigma=sigma,
        narrow=narrow,
        broken=compare(Shifted(noise, 0), Shifted(noise, LATTICE)).delta(epsilon).upper,
        kept=_delta(sigma, epsilon),
    )


def notes() -> Finding:
    """E43: four slips of the reading notes."""
    rows, candidates, share = 100, 5, 0.9
    mechanism = ExponentialMechanism(sensitivity=Fraction(1), epsilon=Fraction(2), variant="exponential")
    distances = np.arange(candidates)
    best, worst = (math.exp(float(mechanism.law(list(sign * distances)).logpmf(0))) for sign in (-1, 1))
    scale, median = 1.0, 100.0
    # The printed test asks whether x is below the median, before x is known; x is near it, far above 1/2.
    right = median - scale * math.log(2 * (1 - share))
    other = median + scale * math.log(2 * share)
    return found(
        "For a mean of {rows} values in the unit interval the maximum over all pairs is {range:g}, over "
        "neighbours {sensitivity:g}. The weights of {candidates} candidates add up to {total:.3f}, so that "
        "they are no probabilities. With minus the distance as score the best candidate has the chance "
        "{best:.3f}, with plus the distance {worst:.3f}. At u = {share:g}, around {median:g}, the branch "
        "for large u gives {right:.2f}, the other {other:.2f}.",
        rows=rows,
        range=1,
        sensitivity=1 / rows,
        candidates=candidates,
        total=float(np.exp(-distances).sum()),
        best=best,
        worst=worst,
        share=share,
        median=median,
        right=right,
        other=other,
    )


ERRATA = (
    Erratum(
        id="E19",
        source="A24",
        statement="Data sets are neighbours if they differ by the addition or replacement of a record.",
        verdict="misleading",
        finding=relations,
        corrected="Addition or removal is meant. Replacement is another relation, with other constants.",
        code="sfumato.audit.compare",
    ),
    Erratum(
        id="E20",
        source="A24",
        statement="Gaussian noise N(0, α) with α ≥ (cΔ/ε)² is ε-DP.",
        verdict="false",
        finding=gaussian,
        corrected="It is (ε, δ)-DP with c² > 2 ln(1.25/δ), for ε < 1 only. α is a variance.",
        code="sfumato.privacy.gaussian_sigma_squared",
    ),
    Erratum(
        id="E21",
        source="A24",
        statement="A larger ε gives a larger scale α of the Laplace noise.",
        verdict="false",
        finding=larger_epsilon,
        corrected="α = Δ/ε falls: a larger ε means less noise and less privacy.",
        code="sfumato.privacy.laplace_scale",
    ),
    Erratum(
        id="E22",
        source="A24",
        statement="Figure 3: the peak of the Gaussian mechanism is finer and higher than that of the "
        "Laplace mechanism.",
        verdict="false",
        finding=peaks,
        corrected="For equal data it is wider and lower.",
        code="sfumato.accuracy.mean_risk",
    ),
    Erratum(
        id="E29",
        source="A24",
        statement="The quadratic risks are derived by E[Z²] = E[Z²] + Var(Z).",
        verdict="false",
        finding=squares,
        corrected="E[Z²] = (E Z)² + Var(Z). The risks themselves are right: Var/n + 2D²/ε² and Var/n + "
        "c²D²/ε².",
        code="sfumato.accuracy.mean_risk",
    ),
    Erratum(
        id="E30",
        source="A24",
        statement="Laplace noise is better than Gaussian noise, because c² > 2.",
        verdict="misleading",
        finding=better_noise,
        corrected="True for one mean and every usual δ, but the two promises differ. The exact calibration "
        "narrows the gap, and with several means the order is reversed.",
        code="sfumato.accuracy.gaussian_to_laplace",
    ),
    Erratum(
        id="E42",
        source="N",
        statement="The normal law has F(x) = (1 + erf((x - μ)/ρ))/2, with erf the integral of e^(-t²), and "
        "is drawn by x = μ + ρ erfinv(2u - 1).",
        verdict="false",
        finding=inverse_normal,
        corrected="erf has the factor 2/√π, its argument is (x - μ)/(ρ√2), and x = μ + ρ√2 erfinv(2u - 1).",
        code="sfumato.audit.compare",
    ),
    Erratum(
        id="E43",
        source="N",
        statement="The sensitivity is the maximum over all pairs of data sets; the exponential mechanism "
        "has P(r) = e^(εu/2Δ) with the distance as u; the inverse of the Laplace law branches on x.",
        verdict="false",
        finding=notes,
        corrected="Neighbours only; proportional to that weight, with minus the distance; the branch is on "
        "u < 1/2.",
        code="sfumato.mechanisms.ExponentialMechanism",
    ),
)
