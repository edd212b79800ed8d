"""What verification costs and how wide its intervals will be, from public facts, before anything is read."""

import math
from collections.abc import Iterable
from fractions import Fraction

from sfumato.checks import compact
from sfumato.quantile_methods.equi_depth import EquiDepth
from sfumato.quantile_methods.method import Facts
from sfumato.quantile_methods.noise_sums import CountNoise
from sfumato.quantile_methods.thresholds import Spot, astray, missed
from sfumato.quantile_methods.verified import Verified

PARTS = {
    Fraction(1, 2): "half",
    Fraction(2, 5): "two fifths",
    Fraction(1, 3): "a third",
    Fraction(1, 4): "a quarter",
}
# So many standard deviations away, a threshold is always verified.
ALWAYS = 16


def part_words(share: Fraction, whole: str) -> str:
    """Which part of a budget verifies.

    >>> part_words(Fraction(1, 3), "the budget"), part_words(Fraction(1, 5), "the budget")
    ('a third of the budget verifies the intervals', '20 % of the budget verifies the intervals')
    """
    return f"{PARTS.get(share, f'{compact(100 * share)} %')} of {whole} verifies the intervals"


def usual_ranks(method: Verified | EquiDepth, facts: Facts, confidence: float) -> list[float]:
    """About how many ranks apart the ends of each interval are, on average, where neighbours differ alike."""
    if isinstance(method, EquiDepth):
        nodes = method.nodes(facts)
        # Both ends are edges, half a leaf further out on average.
        leaf = facts.known_size / nodes.leaves
        return [2 * nodes.error(float(order), confidence) + leaf for order in facts.orders]
    size, noise, failure = facts.known_size, method.noise(facts), (1 - confidence) / 2
    places = [position.order for position in method.positions(facts)]
    off = method.off(facts)
    found = []
    for order in facts.orders:
        known = None if facts.size_is_public else order
        spots = [(place - order, Spot.of(i, len(places), known)) for i, place in enumerate(places)]
        below = [(float(-away * size), spot) for away, spot in spots if away < 0]
        above = [(float(away * size), spot) for away, spot in reversed(spots) if away > 0]
        ends = (below, order), (above, 1 - order)
        found.append(sum(_reach(side, float(room * size), noise, failure, off) for side, room in ends))
    return found


def _reach(
    side: Iterable[tuple[float, Spot]], room: float, noise: CountNoise, failure: float, off: float
) -> float:
    """How many ranks away an interval ends on one side, on average; the farthest threshold comes first.

    It ends at the last threshold that is verified with all before it, or at the bound. The noise of
    neighbours is nearly the same, so that all are verified about as often as the least sure one.
    """
    reached, end, chance = 0.0, room, 1.0
    for away, spot in side:
        verified = min(chance, _verified(away, spot, noise, failure, off))
        reached += end * (chance - verified)
        end, chance = away, verified
    return reached + end * chance


def _verified(away: float, spot: Spot, noise: CountNoise, failure: float, off: float) -> float:
    """How often counts verify a threshold that was aimed so many ranks away."""
    spread = astray(spot.spread(noise), away)
    if away - spot.rough_tail(noise, failure) > ALWAYS * math.hypot(spread, off):
        return 1.0
    return 1 - missed(away - spot.tail(noise, failure), spread, off)
