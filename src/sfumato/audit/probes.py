"""Probes of a callable: hostile data, and noise that comes twice."""

import inspect
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sfumato.audit.outcomes import described, numbers_of
from sfumato.audit.result import AttackResult
from sfumato.audit.statistical import checked_delta, clopper_pearson
from sfumato.checks import Number, exact, float_up, pair, positive, whole
from sfumato.grid import Floats
from sfumato.release import Release

# A number that no message shows by chance.
_CANARY = 60_013.25
_SEEDS = ("seed", "random_state", "random_seed", "rng", "rng_seed", "prng")
_ALWAYS_WRONG = ("NaN", "an infinite answer", "an answer out of bounds", "a record in a message")
# Without a claim, what is found must be more than any mechanism in use would admit.
_LARGE_EPSILON = 3.0
# How rarely a right mechanism is accused; and as a share for each of the comparisons.
_LEVEL, _EACH = 1e-6, 1e-10
_FEWEST_ANSWERS, _MOST_CALLS = 16, 50_000
# How often processes are forked in pairs, and answers between two such rounds.
_ROUNDS, _STEPS = 4, 7


def edge_cases(
    mechanism: Callable[[Any], Any],
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    size: int = 10,
    bounds: tuple[Number, Number] | None = None,
    calls: int = 5,
) -> AttackResult:
    """Feeds ties, NaN, infinities, zeros of both signs, subnormal, huge and few numbers, and compares.

    Each hostile column has a neighbour, one record away and of as many rows, and an ordinary column of as
    many rows is known. A success is an answer that is NaN, infinite or (if `bounds` are given) out of bounds;
    None or an error that tells neighbours apart; and a message that shows a record.

    Whether None or an error tells is a matter of its frequency: where a few calls differ, more are made, on
    the neighbours and on the columns between an ordinary one and a hostile one, record by record.

    Guarantee:
        Answers and messages that are reported happened. None and errors are reported if their frequencies on
        two neighbours, by bounds of Clopper and Pearson, exceed the epsilon claimed at `delta`; against a
        mechanism that keeps it, in one of a million audits. Without a claim epsilon is 3. Columns are float64
        arrays, so that their types and numbers of rows, which may be public, never differ in a comparison.

    Args:
        mechanism: called as `mechanism(data)` with a column of numbers.
        epsilon, delta: what is claimed.
        size: how many records a column has.
        bounds: where answers must lie, if the mechanism promises it.
        calls: how often each column is tried.

    Raises:
        InvalidParameter: a parameter out of range.

    References:
        [Ilvento20] for weights that underflow.

    >>> import sfumato as sf
    >>> edge_cases(lambda data: sf.mean(data, bounds=(0, 10), epsilon=1)).verdict
    'nothing found'
    >>> def careless(data):
    ...     return np.mean(data) + sf.count([], epsilon=1).value
    >>> "NaN" in edge_cases(careless).evidence
    True
    """
    rows = whole("size", size, least=3, most=10**6)
    tries = whole("calls", calls, least=1, most=10**4)
    claim = _LARGE_EPSILON if epsilon is None else float_up(positive("epsilon", epsilon))
    allowed = checked_delta(delta)
    limits = None
    if bounds is not None:
        low, high = (float(exact("bounds", each)) for each in pair("bounds", bounds))
        limits = low, high

    def seen_on(data: Floats, calls: int) -> Counter[str]:
        return _behaviour(mechanism, data, limits, calls)

    found: dict[str, str] = {}
    noted: set[str] = set()
    for name, left, right in _hostile(rows):
        ordinary = np.linspace(1.0, 2.0, len(left))
        seen = [seen_on(data, tries) for data in (left, right, ordinary)]
        for words in sorted(seen[0] | seen[1]):
            if words in _ALWAYS_WRONG:
                found.setdefault(f"{words} on {name}", words)
                continue
            noted.add("None" if words == "None" else "errors")
            if len({each[words] for each in seen}) == 1:
                continue
            if any(
                _tells(words, seen_on, one, other, claim, allowed)
                for one, other in ((left, right), *_between(ordinary, left))
                if not np.array_equal(one, other, equal_nan=True)
            ):
                found.setdefault(f"{words} on {name}, which depends on the data", words)
    said = "; ".join(found) if found else f"{sum(1 for _ in _hostile(rows))} pairs of columns"
    if not found and noted:
        said += f"; {' and '.join(sorted(noted))} seen, no more on one neighbour than is allowed"
    usual = seen_on(np.linspace(1.0, 2.0, rows), 1)
    if any(words.startswith("an error") for words in usual):
        said += "; ordinary columns are refused too"
    return AttackResult(
        attack="hostile data", succeeded=bool(found), evidence=said, figures={"found": float(len(found))}
    )


def _tells(
    words: str,
    seen_on: Callable[[Floats, int], Counter[str]],
    one: Floats,
    other: Floats,
    epsilon: float,
    delta: float,
) -> bool:
    """Whether the frequency of a behaviour on two neighbours proves more than epsilon at delta."""
    few = 8
    if abs(seen_on(one, few)[words] - seen_on(other, few)[words]) < few / 4:
        return False  # so near to each other that more calls would hardly prove anything
    # What is sure on one side and never seen on the other proves epsilon with the fewer calls.
    for factor in (40, 200):
        calls = min(math.ceil(factor * math.exp(min(epsilon, 5.0))), 20_000)
        counts = [seen_on(data, calls)[words] for data in (one, other)]
        promising = False
        for first, second in (counts, counts[::-1]):
            for hits, others in ((first, second), (calls - first, calls - second)):
                lower = clopper_pearson(hits, calls, _EACH)[0] - delta
                if lower > 0 and math.log(lower / clopper_pearson(others, calls, _EACH)[1]) > epsilon:
                    return True
                promising |= hits - delta * calls > math.exp(min(epsilon, 700.0)) * others
        if not promising:
            break
    return False


def _between(ordinary: Floats, hostile: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Neighbouring columns on the way from one to the other, at most ten steps."""
    for end in range(min(len(ordinary), 10)):
        # From the end, so that the first step leads to the last hostile record.
        start = len(ordinary) - end
        yield (
            np.concatenate([ordinary[:start], hostile[start:]]),
            np.concatenate([ordinary[: start - 1], hostile[start - 1 :]]),
        )


def seed_reuse(
    mechanism: Callable[..., Any],
    left: Any,
    right: Any = None,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    draws: int = 64,
    fork: bool = True,
) -> AttackResult:
    """Looks for noise that comes twice: in every call, for the same seed, or in two processes after a fork.

    Where the same noise is added to two data sets, the difference of the answers is exact. A parameter named
    like a seed is given the same number on both data sets. A child process that copies the state of a
    generator draws the same answers as the next child.

    Guarantee:
        Each of the three succeeds wrongly in one of a million audits, if calls are independent. One answer
        to all calls counts only if each data set has its own, with so many calls that the epsilon claimed at
        `delta` (3 without a claim) does not admit it. Answers that come twice, for a seed or after a fork,
        count only if they are so varied that chance does not repeat them. Where answers vary too little to
        tell, and where a mechanism refuses to answer after a fork, the evidence says so.

    Args:
        mechanism: called as `mechanism(data)`, and with its seed, if it has such a parameter.
        left, right: two data sets; without `right` only seeds and forks are tried.
        epsilon, delta: what is claimed.
        draws: how many answers are compared; more, where that many cannot tell.
        fork: whether child processes are tried, where the system has them.

    Raises:
        InvalidParameter: a parameter out of range.

    >>> from fractions import Fraction
    >>> from sfumato.laws import DiscreteLaplace, SeededBits
    >>> def seeded(value):
    ...     return value + DiscreteLaplace(Fraction(10)).sample(SeededBits(42))
    >>> seed_reuse(seeded, 0, 1).verdict
    'succeeded'
    """
    count = whole("draws", draws, least=_FEWEST_ANSWERS, most=10**6)
    claim = _LARGE_EPSILON if epsilon is None else float_up(positive("epsilon", epsilon))
    allowed = checked_delta(delta)
    other = left if right is None else right
    doubts: list[str] = []
    said = "" if right is None else _one_answer_each(mechanism, (left, right), count, claim, allowed, doubts)
    seed = _seed_parameter(mechanism)
    if seed is not None and not said:

        def seeded(size: int) -> list[tuple[str, str]]:
            given = [{seed: k} for k in range(size)]
            return [(_name(mechanism, left, **each), _name(mechanism, left, **each)) for each in given]

        if _comes_twice(seeded, count, 1, f"for the same {seed}", doubts):
            exposed = _difference(mechanism(left, **{seed: 1}), mechanism(other, **{seed: 1}))
            said = f"the same {seed} gives the same noise{exposed}"
    if fork and hasattr(os, "fork") and not said:

        def forked(size: int) -> list[tuple[str, str]]:
            for _ in range(_STEPS):  # so that each round begins elsewhere in a store of random numbers
                _name(mechanism, left)
            children = [_in_child(mechanism, left, size) for _ in range(2)]
            return list(zip(*children, strict=False))

        if _comes_twice(forked, count, _ROUNDS - 1, "after a fork", doubts):
            said = "two processes drew the same noise after a fork"
    nothing = f"{count} calls, and as many in two child processes, show no noise twice"
    evidence = said or "; ".join([nothing, *doubts])
    return AttackResult(attack="seed reuse", succeeded=bool(said), evidence=evidence)


def _one_answer_each(
    mechanism: Callable[[Any], Any],
    pair: tuple[Any, Any],
    count: int,
    epsilon: float,
    delta: float,
    doubts: list[str],
) -> str:
    """Says so if all calls give one answer, which the data decide, and no chance explains that."""
    # Two answers of probability p each on their own side need p <= e^epsilon (1 - p) + delta.
    unlikely = math.log1p(math.exp(-epsilon)) - math.log1p(delta * math.exp(-epsilon))
    needed = math.inf if unlikely <= 0 else max(count, math.ceil(-math.log(_LEVEL) / (2 * unlikely)))
    alone: tuple[str, str] | None = None
    calls = 0
    # Where too many would be needed, a few tell whether there is a doubt at all.
    while calls < (needed if needed <= _MOST_CALLS else count):
        seen = _name(mechanism, pair[0]), _name(mechanism, pair[1])
        alone, calls = alone or seen, calls + 1
        if seen != alone or seen[0] == seen[1] or any(each.startswith("raises") for each in seen):
            return ""
    if calls < needed:
        doubts.append("one answer on each side, which an epsilon so large admits")
        return ""
    return f"{calls} calls gave one answer{_difference(*map(mechanism, pair))}"


def _comes_twice(
    drawn: Callable[[int], list[tuple[str, str]]], count: int, rounds: int, where: str, doubts: list[str]
) -> bool:
    """Whether pairs of answers agree, from the first on, that chance would let differ; but for errors."""
    enough = math.log(_LEVEL / (2 * _ROUNDS))
    doubt = ""
    for size in [count] * rounds + [16 * count]:
        if size > count and not doubt:
            break  # some answers differ; more of them cost time and tell no more
        pairs = [pair for pair in drawn(size) if not any(each.startswith("raises") for each in pair)]
        if len(pairs) < _FEWEST_ANSWERS:
            doubt = f"too few answers {where} to tell"
            continue
        # A store of random numbers may run out, so that later answers differ again.
        agree = next((k for k, (one, other) in enumerate(pairs) if one != other), len(pairs))
        # Two independent answers agree with at most the probability of the likeliest one.
        often = Counter(first for first, _ in pairs).most_common(1)[0][1]
        likeliest = clopper_pearson(often, len(pairs), math.exp(enough))[1]
        if agree >= _FEWEST_ANSWERS and agree * math.log(likeliest) < enough:
            return True
        too_few = f"answers vary too little to tell whether they come twice {where}"
        doubt = too_few if agree == len(pairs) else ""
    doubts.extend([doubt] if doubt else [])
    return False


def _hostile(rows: int) -> Iterator[tuple[str, Floats, Floats]]:
    """Columns with a neighbour each: a name, the column, and the same with one record replaced."""
    ordinary = np.linspace(1.0, 2.0, rows)
    ordinary[0] = _CANARY
    for name, record in (
        ("NaN", np.nan),
        ("inf", np.inf),
        ("-inf", -np.inf),
        ("-0.0", -0.0),
        ("a subnormal number", 5e-324),
        ("a huge number", 1.7e308),
        ("a huge negative number", -1.7e308),
    ):
        yield f"a column with {name}", _with(ordinary, record), ordinary
        yield f"a column of {name} alone", np.full(rows, record), _with(np.full(rows, record), 1.0)
    for name, value in (("ones", 1.0), ("zeros", 0.0), ("one number", _CANARY)):
        ties = np.full(rows, value)
        yield f"a column of {name}", ties, _with(ties, 3.0)
    few = np.repeat([1.0, 2.0], [rows // 2, rows - rows // 2])
    yield "a column of two numbers", few, _with(few, 2.0)
    yield "a single record", np.array([_CANARY]), np.array([np.nan])
    yield "two records", np.array([1.0, 1.0]), np.array([1.0, np.nan])
    yield "no records", np.empty(0), np.empty(0)


def _with(column: Floats, record: float) -> Floats:
    changed = column.copy()
    changed[-1] = record
    return changed


def _behaviour(
    mechanism: Callable[[Any], Any], data: Floats, limits: tuple[float, float] | None, calls: int
) -> Counter[str]:
    """What an observer sees besides ordinary answers, and in how many calls."""
    seen: Counter[str] = Counter()
    for _ in range(calls):
        try:
            answer = mechanism(data.copy())
            shown = answer.value if isinstance(answer, Release) else answer
        except Exception as error:  # whatever it is, an observer sees it
            text = f"{type(error).__name__}: {error}"
            seen["a record in a message" if _shows(text) else f"an error ({text[:200]})"] += 1
            continue
        numbers = numbers_of(shown)
        if shown is None:
            seen["None"] += 1
        elif numbers is not None:
            seen["NaN"] += bool(np.isnan(numbers).any())
            infinite = bool(np.isinf(numbers).any())
            seen["an infinite answer"] += infinite
            if limits is not None and not infinite:
                outside = bool(((numbers < limits[0]) | (numbers > limits[1])).any())
                seen["an answer out of bounds"] += outside
    return +seen


def _shows(text: str) -> bool:
    return any(shape in text for shape in ("60013", "60,013", "6.0013"))


def _name(mechanism: Callable[..., Any], data: Any, **given: Any) -> str:
    """An answer as a text that tells it from other answers."""
    try:
        answer = mechanism(data, **given)
    except Exception as error:  # an error is an answer too
        return f"raises {type(error).__name__}"
    return described(answer).text


def _difference(one: Any, other: Any) -> str:
    first, second = numbers_of(one), numbers_of(other)
    if first is None or second is None or first.shape != second.shape or not (first != second).any():
        return ""
    return f", so that data differ by exactly {np.abs(second - first).max():g}"


def _seed_parameter(mechanism: Callable[..., Any]) -> str | None:
    try:
        parameters = inspect.signature(mechanism).parameters
    except (TypeError, ValueError):  # some built-in callables have no signature
        return None
    return next((name for name in _SEEDS if name in parameters), None)


def _in_child(mechanism: Callable[[Any], Any], data: Any, count: int) -> list[str]:
    """Answers of a child process, or none if it fails."""
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            with os.fdopen(writer, "w") as stream:
                json.dump([_name(mechanism, data) for _ in range(count)], stream)
        finally:
            os._exit(0)  # no clean-up of the parent's affairs in the child
    os.close(writer)
    with os.fdopen(reader) as stream:
        written = stream.read()
    os.waitpid(child, 0)
    answers: list[str] = json.loads(written) if written else []
    return answers
