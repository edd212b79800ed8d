"""The chain of entries: what an entry is, its canonical bytes and hash, and the arithmetic of totals.

Writing and checking share one rule: `enter` says what the next entry must be, given the one before it and the
totals so far. The ledger stores what it says, and a check compares what is stored with what it says.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from json.encoder import encode_basestring_ascii
from operator import add, itemgetter, le
from typing import Any, NamedTuple

from sfumato.checks import decimal, shown
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.privacy import ZCDP, Amount, ApproxDP, Budget, PureDP
from sfumato.privacy.records import read_fraction, short_text

FORMAT = 1
KINDS = ("open", "admit", "allow", "renew", "retire", "spend", "reply", "loss")
# What the numbers of a cap are called, and how many units make up one of each.
FIELDS: dict[type, tuple[str, ...]] = {
    PureDP: ("epsilon",),
    ZCDP: ("rho",),
    ApproxDP: ("epsilon", "delta"),
}
UNITS = {"epsilon": 10**15, "rho": 10**15, "delta": 10**18}
# Units of a cap fit 64 bits.
LARGEST_CAP = 9000

Numbers = tuple[Fraction, ...]
# The fields that may be longer than a name.
_LONG = {"payload", "price", "dataset_spent", "dataset_cap", "analyst_spent", "analyst_cap"}
# The fields that an entry may be without.
OPTIONAL = {
    *("analyst", "request", "digest", "price", "analyst_spent", "analyst_cap"),
    *("dataset_spent_delta_units", "dataset_cap_delta_units", "analyst_spent_units", "analyst_cap_units"),
    *("analyst_spent_delta_units", "analyst_cap_delta_units"),
}


class Head(NamedTuple):
    """The last entry of a ledger: its number and its hash, which commits to all entries before it."""

    sequence: int
    hash: str


class Record(NamedTuple):
    """One entry as it is stored; everything but `hash` is hashed."""

    sequence: int
    kind: str
    dataset: str
    analyst: str | None
    request: str | None
    digest: str | None
    payload: str
    price: str | None
    state: str
    dataset_spent: str
    dataset_cap: str
    analyst_spent: str | None
    analyst_cap: str | None
    dataset_spent_units: int
    dataset_cap_units: int
    dataset_spent_delta_units: int | None
    dataset_cap_delta_units: int | None
    analyst_spent_units: int | None
    analyst_cap_units: int | None
    analyst_spent_delta_units: int | None
    analyst_cap_delta_units: int | None
    time: str
    previous: str
    hash: str

    @property
    def facts(self) -> dict[str, Any]:
        """What the entry says, read from its payload."""
        facts: dict[str, Any] = json.loads(self.payload)
        return facts


class Act(NamedTuple):
    """What is to be entered, before its place in the chain and the totals after it are known."""

    kind: str
    dataset: str
    payload: str
    analyst: str | None = None
    request: str | None = None
    digest: str | None = None
    price: Numbers | None = None


class Total(NamedTuple):
    """What was spent of a cap, exactly; an analyst without a cap has None, for that of the data set."""

    fields: tuple[str, ...]
    spent: Numbers
    cap: Numbers | None

    @property
    def left(self) -> Numbers:
        """The cap less what was spent."""
        if self.cap is None:
            raise InvalidParameter("the cap must be in such an entry, got none")
        return tuple(cap - spent for cap, spent in zip(self.cap, self.spent, strict=True))

    def fits(self) -> bool:
        """Whether the cap holds."""
        return self.cap is None or all(map(le, self.spent, self.cap))

    def plus(self, price: Numbers) -> "Total":
        """After a charge."""
        return Total(self.fields, tuple(map(add, self.spent, price)), self.cap)


class Standing(NamedTuple):
    """What is known of a data set after an entry."""

    total: Total
    retired: bool = False
    # Who may be charged; None for everybody.
    analysts: frozenset[str] | None = None

    @property
    def state(self) -> str:
        """What an entry says of it."""
        if self.retired:
            return "retired"
        return "open" if self.analysts is None else "listed"


def canonical(value: object) -> str:
    """JSON text that is the same for the same value: sorted keys, no spaces, ASCII."""
    return _ENCODER.encode(value)


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def now() -> str:
    """The time for people to read; nothing is decided by it, so a clock may be wrong."""
    try:
        return datetime.now(UTC).isoformat(timespec="microseconds")
    except (ValueError, OverflowError, OSError):
        return "unknown"  # a clock outside the years 1 to 9999


def genesis(identity: str, key: bytes) -> str:
    """What stands for the entry before the first: the hash of the ledger's header."""
    return sha256(canonical(header(identity, key)).encode()).hexdigest()


def header(identity: str, key: bytes) -> dict[str, object]:
    """What the chain starts from; the key itself stays with the ledger."""
    return {"format": FORMAT, "ledger": identity, "key_sha256": sha256(key).hexdigest()}


def hash_of(record: Mapping[str, object]) -> str:
    """SHA-256 of the canonical JSON of an entry without its hash; no hash at all of what is no JSON."""
    try:
        return _digest(tuple(record[name] for name in _HASHED))
    except (TypeError, ValueError):
        return ""


_HASHED = Record._fields[:-1]
_SORTED = sorted(_HASHED)
_IN_ORDER = itemgetter(*map(_HASHED.index, _SORTED))
_WRITERS: dict[type, Callable[[Any], str]] = {
    str: encode_basestring_ascii,
    int: str,
    type(None): lambda _: "null",
}
_JSON = "{" + ",".join(f'"{name}":%s' for name in _SORTED) + "}"


def _digest(values: tuple[object, ...]) -> str:
    return sha256(_json(values).encode("ascii")).hexdigest()


def _json(values: tuple[object, ...]) -> str:
    """What `canonical` writes of an entry, at half the time: verifying a ledger does little else."""
    return _JSON % tuple(
        [_WRITERS.get(type(value), canonical)(value) for value in _IN_ORDER(values)],
    )


def fields_of(budget: Budget) -> tuple[str, ...]:
    """The names of the numbers of a budget."""
    return FIELDS[type(budget)]


def numbers_of(value: Budget | Amount, fields: tuple[str, ...]) -> Numbers:
    """The numbers of a budget or an amount, by name."""
    return tuple(getattr(value, name) for name in fields)


def write_numbers(fields: tuple[str, ...], numbers: Numbers) -> str:
    """Exact canonical text such as {"epsilon":"1/10"}."""
    # The same as by `canonical`, at a tenth of the time.
    if len(fields) == 1:
        return f'{{"{fields[0]}":"{numbers[0]}"}}'
    return f'{{"delta":"{numbers[1]}","epsilon":"{numbers[0]}"}}'


@lru_cache(maxsize=2**16)
def read_numbers(text: str) -> tuple[tuple[str, ...], Numbers]:
    """Reads back what `write_numbers` wrote; InvalidParameter for anything else."""
    try:
        return listed_numbers(json.loads(text))
    except (ValueError, RecursionError):
        raise InvalidParameter(f"amount must be exact numbers in JSON, got {shown(text)}") from None


def listed_numbers(record: object) -> tuple[tuple[str, ...], Numbers]:
    """The numbers of a record such as {"epsilon": "1/10"}."""
    for fields in FIELDS.values():
        if isinstance(record, dict) and set(record) == set(fields):
            return fields, tuple(read_fraction(record, name) for name in fields)
    raise InvalidParameter(f"amount must have the fields of a budget, got {shown(record)}")


def listed(budget: Budget) -> dict[str, str]:
    """The numbers of a budget as a record."""
    return {name: str(getattr(budget, name)) for name in fields_of(budget)}


def budget_of(fields: tuple[str, ...], numbers: Numbers) -> Budget:
    """The budget with these numbers."""
    if fields == ("epsilon",):
        return PureDP(*numbers)
    return ZCDP(*numbers) if fields == ("rho",) else ApproxDP(*numbers)


def amount_of(fields: tuple[str, ...], numbers: Numbers) -> Amount:
    """The amount with these numbers."""
    return Amount(**dict(zip(fields, numbers, strict=True)))


def units(name: str, number: Fraction) -> int:
    """Whole units, rounded down: an order of exact numbers is an order of units."""
    return number.numerator * UNITS[name] // number.denominator


def check_cap(cap: Budget) -> Budget:
    """`cap` if its units fit the columns of the schema."""
    largest = max(numbers_of(cap, fields_of(cap)))
    if largest > LARGEST_CAP:
        raise InvalidParameter(f"cap must be at most {LARGEST_CAP} in a ledger, got {decimal(largest)}")
    return cap


def enter(
    act: Act, standing: Standing | None, analyst: Total | None, *, before: Head, time: str
) -> tuple[Record, Standing, Total | None]:
    """The entry of an act with all its totals, and the totals after it; an error if it breaks a rule."""
    after, person = _apply(act, standing, analyst)
    fields, spent, cap = after.total
    if cap is None:
        raise InvalidParameter("the cap must be in such an entry, got none")
    own_spent, own_cap = (None, None) if person is None else (person.spent, person.cap)
    values = (
        before.sequence + 1,
        act.kind,
        act.dataset,
        act.analyst,
        act.request,
        act.digest,
        act.payload,
        None if act.price is None else write_numbers(fields, act.price),
        after.state,
        write_numbers(fields, spent),
        write_numbers(fields, cap),
        None if own_spent is None else write_numbers(fields, own_spent),
        None if own_cap is None else write_numbers(fields, own_cap),
        *_units(fields, spent, cap),
        *_units(fields, own_spent, own_cap),
        time,
        before.hash,
    )
    return Record._make((*values, _digest(values))), after, person


def _units(fields: tuple[str, ...], spent: Numbers | None, cap: Numbers | None) -> list[int | None]:
    """Units of what was spent and of the cap, then those of their deltas."""
    both = (spent, cap)
    main = [None if numbers is None else units(fields[0], numbers[0]) for numbers in both]
    if len(fields) == 1:
        return [*main, None, None]
    return main + [None if numbers is None else units(fields[1], numbers[1]) for numbers in both]


def _apply(act: Act, standing: Standing | None, analyst: Total | None) -> tuple[Standing, Total | None]:
    if act.kind == "open":
        if standing is not None:
            raise InvalidParameter(f"data set {act.dataset!r} must be opened once, and is in the ledger")
        facts = json.loads(act.payload)
        fields, cap = listed_numbers(facts["cap"])
        total = Total(fields, (Fraction(0),) * len(fields), cap)
        return Standing(total, analysts=listed_analysts([facts])), None
    if standing is None:
        raise InvalidParameter(f"data set {act.dataset!r} must be opened by its curator first")
    total = standing.total
    if act.analyst is not None and analyst is None:
        analyst = Total(total.fields, (Fraction(0),) * len(total.fields), None)
    if act.kind == "reply":
        return standing, analyst
    if standing.retired:
        raise BudgetExceeded(f"the data set {act.dataset!r} is retired: nothing more can be spent on it")
    if act.kind == "retire":
        return standing._replace(retired=True), analyst
    if act.kind == "renew":
        return standing._replace(total=_renewed(total, act)), analyst
    if act.kind == "admit":
        more = listed_analysts([json.loads(act.payload)]) or frozenset()
        return standing._replace(analysts=(standing.analysts or frozenset()) | more), analyst
    if act.kind == "allow":
        if analyst is None:
            raise InvalidParameter("the analyst must be in such an entry, got none")
        return standing, _allowed(analyst, total, act)
    if act.price is None:
        raise InvalidParameter("the price must be in such an entry, got none")
    if act.kind == "loss":
        return _lost(act, standing, analyst)
    if analyst is None:
        raise InvalidParameter("the analyst must be in such an entry, got none")
    if standing.analysts is not None and act.analyst not in standing.analysts:
        raise InvalidParameter(
            f"analyst must be listed for the data set {act.dataset!r}; got analyst={act.analyst!r}. Its "
            "curator can admit more"
        )
    return standing._replace(total=_charged(total, act, "data set")), _charged(analyst, act, "analyst")


def _charged(total: Total, act: Act, whose: str) -> Total:
    if act.price is None:
        raise InvalidParameter("the price must be in such an entry, got none")
    if any(number.numerator < 0 for number in act.price):
        raise InvalidParameter("price must not be negative, got one that is")
    after = total.plus(act.price)
    if not after.fits():
        price, left = amount_of(total.fields, act.price), amount_of(total.fields, total.left)
        name = act.dataset if whose == "data set" else act.analyst
        raise BudgetExceeded(
            f"a charge of {price.words} does not fit: {left.words} is left of the {whose} {name!r}"
        )
    return after


def _renewed(total: Total, act: Act) -> Total:
    if total.cap is None:
        raise InvalidParameter("the cap must be in such an entry, got none")
    fields, added = listed_numbers(json.loads(act.payload)["added"])
    _same_kind(fields, total)
    cap = tuple(map(add, total.cap, added))
    check_cap(budget_of(fields, cap))
    return Total(fields, total.spent, cap)


def _allowed(analyst: Total, total: Total, act: Act) -> Total:
    fields, cap = listed_numbers(json.loads(act.payload)["cap"])
    _same_kind(fields, total)
    after = Total(fields, analyst.spent, cap)
    if not after.fits():
        spent = amount_of(fields, analyst.spent)
        raise InvalidParameter(f"cap must be at least what {act.analyst!r} has spent, {spent!r}")
    return after


def _same_kind(fields: tuple[str, ...], total: Total) -> None:
    if fields != total.fields:
        has, got = " and ".join(total.fields), " and ".join(fields)
        raise InvalidParameter(f"cap must be of the kind of the data set's, in {has}, got one in {got}")


def _lost(act: Act, standing: Standing, analyst: Total | None) -> tuple[Standing, Total | None]:
    # What was spent after the backup is unknown, so all that was left counts as spent.
    one = standing.total if act.analyst is None else analyst
    if one is None:
        raise InvalidParameter("the analyst must be in such an entry, got none")
    if one.cap is None or act.price != one.left:
        raise InvalidParameter("price of a loss must be all that is left, got another one")
    gone = Total(one.fields, one.cap, one.cap)
    return (standing._replace(total=gone), None) if act.analyst is None else (standing, gone)


def check_types(record: Record) -> None:
    """Raise unless the fields of an entry, however it came here, have the types that they can have."""
    for name, value in record._asdict().items():
        if value is None and name in OPTIONAL:
            continue
        if name == "sequence" or name.endswith("_units"):
            if type(value) is not int or not 0 <= value < 2**63 - 1:
                raise InvalidParameter(f"{name} must be a whole number of 63 bits, got {shown(value)}")
        elif name not in _LONG:
            short_text(name, value)
        elif not isinstance(value, str) or not value.isascii() or "\0" in value:
            raise InvalidParameter(f"{name} must be ASCII text, got {shown(value)}")


def check_record(record: Record) -> None:
    """Raise unless an entry has the types and the numbers that one can have."""
    check_types(record)
    kind, cap = read_numbers(record.dataset_cap)
    for text in (
        *(record.dataset_spent, record.dataset_cap, record.price),
        *(record.analyst_spent, record.analyst_cap),
    ):
        fields, numbers = (kind, cap) if text is None else read_numbers(text)
        if fields != kind or max(numbers) > LARGEST_CAP:
            raise InvalidParameter(f"all numbers must be of one kind, and at most {LARGEST_CAP}, got others")
    if not Total(kind, read_numbers(record.dataset_spent)[1], cap).fits():
        raise InvalidParameter("what was spent must be within the cap, got more")


def listed_analysts(terms: Iterable[Mapping[str, Any]]) -> frozenset[str] | None:
    """The analysts that the facts of entries list; None if none of them has a list."""
    lists = [facts["analysts"] for facts in terms if "analysts" in facts]
    if not all(isinstance(names, list) for names in lists):
        raise InvalidParameter("analysts must be a list of names, got something else")
    return frozenset(short_text("analyst", name) for names in lists for name in names) if lists else None


def standing_of(record: Record, analysts: frozenset[str] | None) -> Standing:
    """The data set after this entry of it, with the analysts that are listed for it."""
    fields, cap = read_numbers(record.dataset_cap)
    total = Total(fields, read_numbers(record.dataset_spent)[1], cap)
    return Standing(total, retired=record.state == "retired", analysts=analysts)


def total_of(record: Record) -> Total:
    """The analyst after this entry of theirs."""
    if record.analyst_spent is None:
        raise InvalidParameter("what the analyst spent must be in such an entry, got none")
    fields, spent = read_numbers(record.analyst_spent)
    return Total(fields, spent, None if record.analyst_cap is None else read_numbers(record.analyst_cap)[1])
