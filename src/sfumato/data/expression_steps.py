"""Steps: an expression of checked kinds, in operations on numbers and flags that every engine takes alike."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sfumato.errors import SchemaMismatch

_FINITE = 1023
_UNBOUNDED = 10**9
FLAGS: tuple[str, ...] = (
    "flag",
    "truth",
    "less",
    "at_most",
    "equal",
    "same",
    "in",
    "text_in",
    "text_null",
    "is_null",
)
FLAGS += ("is_unknown", "and", "or", "not", "fill_flag", "when_flag")


@dataclass(frozen=True, eq=False)
class Step:
    """A number or a flag of every row; text and dates are gone.

    Numbers: column, literal, add, subtract, multiply, divide, negative, abs, floor, sqrt, clip, fill, when;
    whole, the floor of what is far below 2**53.
    Flags: flag, truth, less, at_most, equal, same, in, text_in, text_null, is_null, is_unknown, and, or, not,
    fill_flag, when_flag.
    """

    operation: str
    inputs: tuple["Step", ...] = ()
    value: Any = None


@dataclass(frozen=True)
class Bound:
    """An expression that fits the kinds of its columns: its own kind and its steps."""

    kind: str
    step: Step
    kinds: Mapping[str, str]

    @property
    def is_flag(self) -> bool:
        """Whether it is true or false of every row."""
        return self.kind == "boolean"

    def require(self, *wanted: str, what: str) -> None:
        """Refuse an expression of another kind."""
        if self.kind not in wanted:
            raise SchemaMismatch(f"{what} must be {' or '.join(wanted)}, but it is {self.kind}")

    @cached_property
    def texts(self) -> dict[str, tuple[str, ...]]:
        """Every text that a column is compared with, by column."""
        found: dict[str, dict[str, None]] = {}
        for step in in_order([self.step]):
            if step.operation == "text_in":
                name, listed = step.value
                found.setdefault(name, {}).update(dict.fromkeys(listed))
            elif step.operation == "text_null":
                found.setdefault(step.value, {})
        return {name: tuple(listed) for name, listed in found.items()}

    @cached_property
    def read(self) -> tuple[str, ...]:
        """The columns that are read as numbers or flags."""
        used = {step.value for step in in_order([self.step]) if step.operation in ("column", "flag")}
        return tuple(sorted(used))

    def nullable(self, columns: Collection[str]) -> bool:
        """Whether it can be null where these columns can."""
        return _can_be_null(self.step, self.kinds, columns)


# How often an engine is given each part of a step: to ask whether it is null or zero is to write it again.
_COPIES = {"divide": (2, 2), "sqrt": (2,), "floor": (3,), "clip": (6,), "fill": (4, 1)}
_COPIES |= {
    "less": (2, 2),
    "at_most": (2, 2),
    "equal": (2, 2),
    "in": (2,),
    "is_null": (2,),
    "fill_flag": (2, 1),
}


def uses(step: Step) -> list[tuple[int, Step]]:
    """The parts of a step, and how often each is written."""
    copies = _COPIES.get(step.operation, (1,) * len(step.inputs))
    return list(zip(copies, step.inputs, strict=True))


def size(step: Step) -> int:
    """How many operations an engine is given, with every part written out as often as it is used."""
    known: dict[int, int] = {}

    def of(each: Step) -> int:
        if id(each) not in known:
            known[id(each)] = 1 + sum(times * of(part) for times, part in uses(each))
        return known[id(each)]

    return of(step)


def in_order(steps: list[Step]) -> list[Step]:
    """All steps below some, each once and after its parts."""
    found: dict[int, Step] = {}

    def visit(step: Step) -> None:
        if id(step) not in found:
            for part in step.inputs:
                visit(part)
            found[id(step)] = step

    for step in steps:
        visit(step)
    return list(found.values())


def _can_be_null(step: Step, kinds: Mapping[str, str], columns: Collection[str]) -> bool:
    operation, inputs = step.operation, step.inputs
    if operation in ("column", "flag", "text_in"):
        return (step.value[0] if operation == "text_in" else step.value) in columns
    if operation in ("literal", "truth", "is_null", "is_unknown", "text_null"):
        return False
    if operation in ("fill", "fill_flag"):
        return _can_be_null(inputs[1], kinds, columns)
    if operation in ("when", "when_flag"):
        inputs = inputs[1:]
    if operation in ("divide", "sqrt") or (
        # The difference of two infinities is null, and so is none times one.
        operation in ("add", "subtract", "multiply") and _bits(step, kinds) > _FINITE
    ):
        return True
    return any(_can_be_null(each, kinds, columns) for each in inputs)


def _bits(step: Step, kinds: Mapping[str, str]) -> int:
    """A power of two that no row passes; integers of any engine are below 2**128."""
    operation, inputs = step.operation, step.inputs
    if operation == "column":
        return 128 if kinds[step.value] in ("integer", "date", "datetime") else _UNBOUNDED
    if operation in ("literal", "clip"):
        ends = step.value if operation == "clip" else (step.value,)
        return max(int(abs(end)).bit_length() for end in ends)
    within = [_bits(each, kinds) for each in (inputs[1:] if operation == "when" else inputs)]
    if operation == "divide":
        return _UNBOUNDED
    if operation in ("add", "subtract"):
        return max(within) + 1
    return sum(within) if operation == "multiply" else max(within) + (operation in ("floor", "whole"))
