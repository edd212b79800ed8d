"""What an answer costs: exact odds of every design, exactly what is sampled, and records that read back."""

import json
import math
from collections import defaultdict
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from tests.laws import exact as oracle
from tests.local.designs import (
    ASKED,
    BINARY,
    CATEGORICAL,
    CHANNELS,
    COLOURS,
    DESIGNS,
    SHARES,
    branching_coins,
    law_of,
    supports,
    worst_ratio,
)

import sfumato as sf
from sfumato.laws import exp_bounds
from sfumato.local import (
    DirectEncoding,
    ForcedResponse,
    LocalDP,
    OneBitMean,
    PermanentUnary,
    Ranges,
    TwoSamples,
    UnaryEncoding,
    UnrelatedQuestion,
    Warner,
    design_from_dict,
    encoding,
    questionnaire_cost,
)
from sfumato.local import cost as odds_module
from sfumato.local.cost import epsilon_of, falling

UNIT = Fraction(1, 10**12)
every_channel = pytest.mark.parametrize("name", CHANNELS)
every_share = pytest.mark.parametrize("name", SHARES)
every_design = pytest.mark.parametrize("name", DESIGNS)


def assert_rows_are_laws_with_the_stated_odds(design):
    rows = design.matrix()
    assert all(type(chance) is Fraction and chance >= 0 for row in rows for chance in row)
    assert all(sum(row) == 1 for row in rows)
    stated = design.reported.odds if isinstance(design, PermanentUnary) else design.odds
    assert worst_ratio(rows) == stated


@every_channel
def test_the_rows_of_a_channel_are_laws_whose_worst_ratio_is_the_stated_one(name):
    assert_rows_are_laws_with_the_stated_odds(CHANNELS[name])


@every_channel
def test_the_stated_epsilon_is_the_logarithm_rounded_up_to_twelve_decimals(name):
    design = CHANNELS[name]
    # An independent oracle for the logarithm: ball arithmetic.
    logarithm = oracle.arb(design.odds).log()
    assert logarithm < oracle.arb(design.epsilon) + oracle.arb(Fraction(1, 2**200))
    assert logarithm > oracle.arb(design.epsilon - UNIT)


@pytest.mark.parametrize("name", ASKED)
def test_a_design_made_for_an_epsilon_costs_at_most_that_and_hardly_less(name):
    design, asked = DESIGNS[name], Fraction(str(ASKED[name]))
    assert oracle.arb(design.odds).log() <= oracle.arb(asked)
    assert asked - UNIT < design.epsilon <= asked
    assert design.cost.fits(LocalDP(ASKED[name]))


@pytest.mark.parametrize("epsilon", [1e-6, 0.001, 0.1, 1, 5, 20, 100])
def test_odds_hold_from_tiny_to_huge_epsilons(epsilon):
    for design in (
        Warner.of_epsilon(epsilon),
        DirectEncoding.of_epsilon(COLOURS, epsilon=epsilon),
        UnaryEncoding.of_epsilon(COLOURS, epsilon=epsilon),
        UnaryEncoding.of_epsilon(COLOURS, epsilon=epsilon, form="symmetric"),
    ):
        assert design.epsilon == Fraction(str(epsilon))
        assert worst_ratio(design.matrix()) == design.odds


def test_mutant_a_keep_probability_that_is_rounded_up_is_noticed():
    def rounded_up(epsilon):
        precision = 66 + math.ceil(epsilon * 3 / 2)
        return Fraction(exp_bounds(epsilon, precision)[0], 1 << precision)

    assert falling(Fraction(1)) > rounded_up(Fraction(1))
    for home in ("binary", "encodings"):
        with patch(f"sfumato.local.{home}.falling", rounded_up):
            made = Warner.of_epsilon(1) if home == "binary" else DirectEncoding.of_epsilon(COLOURS, epsilon=1)
        assert made.epsilon == 1 + UNIT
        assert not oracle.arb(made.odds).log() <= oracle.arb(Fraction(1))


def test_mutant_an_epsilon_rounded_down_is_told_from_one_rounded_up():
    three = epsilon_of(Fraction(3))
    assert odds_module._at_most(Fraction(3), three)
    assert not odds_module._at_most(Fraction(3), three - UNIT)


def test_mutant_swapped_probabilities_are_noticed_by_the_audit():
    class Swapped(UnaryEncoding):
        @property
        def odds(self):
            p, q = self.support
            return p * q / ((1 - p) * (1 - q))  # q where 1 - q belongs

    mutant = Swapped(categories=COLOURS, one_if_one=0.6, one_if_zero=0.3)
    with pytest.raises(AssertionError):
        assert_rows_are_laws_with_the_stated_odds(mutant)


def drawn_law(design, place):
    """The exact law of an answer, over every path of the coins that the sampler tosses."""
    law = defaultdict(Fraction)

    def draw(bits):
        return design.spoken(design.draw(np.array([place]), bits)[0])

    with (
        patch("sfumato.local.binary.coins", branching_coins),
        patch("sfumato.local.encodings.coins", branching_coins),
        patch("sfumato.local.permanent.coins", branching_coins),
    ):
        for answer, chance in law_of(draw):
            law[answer] += chance
    return law


def expected_law(design, place):
    support = supports(design)
    row = design.matrix()[place]
    if len(design.labels) == 1:
        return {bool(i): chance for i, chance in enumerate(row)}
    if design.exclusive:
        return dict(zip(design.categories, row, strict=True))
    return {tuple(bits): chance for bits, chance in zip(support.tolist(), row, strict=True)}


@every_share
def test_what_is_drawn_is_exactly_the_matrix(name):
    design = SHARES[name]
    for place in range(len(design.matrix())):
        law = drawn_law(design, place)
        assert sum(law.values()) == 1
        assert law == expected_law(design, place)


def test_mutant_keeping_with_p_where_p_minus_q_belongs_is_noticed():
    class Eager(DirectEncoding):
        def draw(self, places, bits):
            honest = branching_coins(self.keep, bits, len(places))
            return np.where(honest, places, bits.below_each(len(self.categories), len(places)))

    mutant = Eager.of_epsilon(COLOURS, epsilon=1)
    assert drawn_law(mutant, 0) != expected_law(mutant, 0)


def test_warner_forced_response_and_the_unrelated_question_have_the_odds_of_the_books():
    assert Warner(keep=0.75).odds == 3
    assert ForcedResponse(truth=0.6, yes=0.25, no=0.15).odds == 5
    # A symmetric forced response is Warner's design with keep = truth + yes.
    forced = ForcedResponse(truth=0.5, yes=0.25, no=0.25)
    assert forced.matrix() == Warner(keep=0.75).matrix()
    unrelated = UnrelatedQuestion(sensitive=0.7, rate=0.3)
    assert unrelated.matrix() == ForcedResponse(truth=0.7, yes=0.09, no=0.21).matrix()


def test_unary_odds_are_those_of_two_bits():
    assert UnaryEncoding(categories=COLOURS, one_if_one=0.75, one_if_zero=0.25).odds == 9
    assert UnaryEncoding(categories=COLOURS, one_if_one=0.5, one_if_zero=0.25).odds == 3


def test_the_worst_rate_of_two_samples_is_at_an_end_of_its_range():
    design = TwoSamples(sensitive=(0.7, 0.2), rate_between=(0.25, 0.5))
    rates = [Fraction(i, 100) for i in range(25, 51)]
    odds = [design.sample(i, rate=rate).odds for i in (0, 1) for rate in rates]
    assert max(odds) == design.odds


def test_a_real_trait_protects_nobody():
    assert UnrelatedQuestion(sensitive=0.5, rate=0.5, trait=True).epsilon == math.inf
    assert TwoSamples(sensitive=(0.7, 0.2), rate_between=(0.25, 0.5), trait=True).epsilon == math.inf


def test_one_report_of_permanent_bits_costs_less_than_all_of_them():
    design = CATEGORICAL["permanent"]
    assert design.odds == 9
    assert design.kept.odds == 9
    assert design.reported.odds == worst_ratio(design.matrix()) < design.odds
    assert design.support == (Fraction(11, 16), Fraction(9, 16))
    # RAPPOR's own mixing for f = 1/2: f/2 (p + q) + (1 - f) q.
    assert design.support[1] == Fraction(1, 4) * Fraction(5, 4) + Fraction(1, 2) * Fraction(1, 2)


def test_without_protection_the_answer_is_the_truth():
    for design in (
        Warner.of_epsilon(math.inf),
        DirectEncoding.of_epsilon(COLOURS, epsilon=math.inf),
        UnaryEncoding.of_epsilon(COLOURS, epsilon=math.inf),
        UnaryEncoding.of_epsilon(COLOURS, epsilon=math.inf, form="symmetric"),
    ):
        assert design.support == (1, 0)
        assert design.epsilon == math.inf
        assert repr(design.cost) == "LocalDP(epsilon=inf)"


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 2, 3])
def test_auto_takes_the_encoding_of_smaller_variance(epsilon):
    for count in range(2, 90):
        names = [str(i) for i in range(count)]
        chosen = encoding(names, epsilon=epsilon)
        variances = {}
        for method in ("direct", "optimised"):
            p, q = map(float, encoding(names, epsilon=epsilon, method=method).support)
            variances[method] = q * (1 - q) / (p - q) ** 2
        best = min(variances, key=variances.get)
        if abs(variances["direct"] - variances["optimised"]) > 1e-9 * variances["direct"]:
            assert isinstance(chosen, DirectEncoding) == (best == "direct"), count


@every_design
def test_a_design_reads_back_from_json_as_it_was(name):
    design = DESIGNS[name]
    record = json.loads(json.dumps(design.to_dict()))
    assert design_from_dict(record) == design
    assert hash(design_from_dict(record)) == hash(design)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"format": True},
        {"type": "walrus"},
        {"type": None},
        {"keep": 0.75},
        {"keep": "0.75"},
        {"keep": "3/0"},
        {"keep": "1/2"},
        {"keep": "5/4"},
        {"keep": None},
        {"keep": ["3/4"]},
        {"other": "1"},
    ],
)
def test_a_changed_record_is_refused(change):
    with pytest.raises(sf.InvalidParameter):
        design_from_dict({**Warner(keep=0.75).to_dict(), **change})


@pytest.mark.parametrize("record", [None, [], "warner", {}, 3])
def test_what_is_no_record_is_refused(record):
    with pytest.raises(sf.InvalidParameter):
        design_from_dict(record)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Warner(keep=0.5), "epsilon 0"),
        (lambda: Warner(keep=1.5), r"keep must be in \[0, 1\]"),
        (lambda: Warner(keep=math.nan), "keep must be finite"),
        (lambda: Warner.of_epsilon(0), "epsilon must be in"),
        (lambda: Warner.of_epsilon(-1), "epsilon must be in"),
        (lambda: Warner.of_epsilon(math.nan), "epsilon must be finite"),
        (lambda: ForcedResponse(truth=0.5, yes=0.3, no=0.3), "add up to 1"),
        (lambda: ForcedResponse(truth=0, yes=0.5, no=0.5), "epsilon 0"),
        (lambda: UnrelatedQuestion(sensitive=0.5, rate=0), "rate must be inside"),
        (lambda: UnrelatedQuestion(sensitive=0, rate=0.5), "epsilon 0"),
        (lambda: UnrelatedQuestion(sensitive=0.5, rate=0.5, trait=1), "trait must be True or False"),
        (lambda: TwoSamples(sensitive=(0.5, 0.5), rate_between=(0.1, 0.2)), "must differ"),
        (lambda: TwoSamples(sensitive=(0.5, 0.6), rate_between=(0.3, 0.2)), "must not decrease"),
        (lambda: DESIGNS["two samples"].sample(0, rate=0.9), "rate must be in"),
        (lambda: DirectEncoding(categories=["a"], keep=0.9), "categories must be 2"),
        (lambda: DirectEncoding(categories=["a", "a"], keep=0.9), "must differ"),
        (lambda: DirectEncoding(categories="ab", keep=0.9), "must be a sequence"),
        (lambda: DirectEncoding(categories=["a", 3], keep=0.9), "printable text"),
        (lambda: DirectEncoding(categories=COLOURS, keep=Fraction(1, 3)), "keep must be above 1/3"),
        (lambda: DirectEncoding.of_epsilon(COLOURS, epsilon=0), "epsilon must be in"),
        (lambda: UnaryEncoding(categories=COLOURS, one_if_one=0.3, one_if_zero=0.3), "must be above"),
        (lambda: UnaryEncoding.of_epsilon(COLOURS, epsilon=1, form="best"), "form must be one of"),
        (lambda: PermanentUnary(categories=COLOURS, permanent=(0.2, 0.3), instant=(1, 0)), "more often"),
        (lambda: encoding(COLOURS, epsilon=1, method="fast"), "method must be one of"),
        (lambda: Ranges.of_epsilon(bounds=(3, 1), epsilon=1, steps=4), "lower must be below upper"),
        (lambda: Ranges.of_epsilon(bounds=(0, 1), epsilon=1), "steps or respondents"),
        (lambda: Ranges.of_epsilon(bounds=(0, 1), epsilon=1, steps=1), "steps must be in"),
        (lambda: Ranges(lower=0, upper=1, encoding=Warner(keep=0.9), dither=True), "encoding must be"),
        (lambda: OneBitMean(lower=0, upper=1, keep=0.4), "keep must be above 1/2"),
        (lambda: LocalDP(-1), "must not be negative"),
    ],
)
def test_a_wrong_parameter_is_refused_with_its_rule(make, words):
    with pytest.raises(sf.InvalidParameter, match=words):
        make()


def test_a_matrix_too_wide_to_write_is_not_written():
    design = UnaryEncoding.of_epsilon([str(i) for i in range(40)], epsilon=1)
    with pytest.raises(sf.NotSupported, match="2\\*\\*40"):
        design.matrix()
    assert design.epsilon == 1


def test_costs_add_over_questions_and_repetitions_exactly():
    assert LocalDP(0.1).repeated(3) == LocalDP(0.3) == LocalDP(0.1) + LocalDP(0.2)
    assert questionnaire_cost([]) == LocalDP(0)
    both = questionnaire_cost([BINARY["Warner of 1"], CATEGORICAL["symmetric"]])
    assert both == LocalDP(1.5)
    assert not both.fits(LocalDP(1.4))
    assert LocalDP(math.inf) + LocalDP(1) == LocalDP(math.inf)
    assert LocalDP(math.inf).repeated(0) == LocalDP(0)
    assert not LocalDP(math.inf).bounded


def test_two_answers_with_fresh_coins_cost_exactly_twice():
    rows = Warner(keep=0.75).matrix()
    pairs = [[row[a] * row[b] for a in (0, 1) for b in (0, 1)] for row in rows]
    assert worst_ratio(pairs) == Warner(keep=0.75).odds ** 2
