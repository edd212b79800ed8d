"""Passes over a lazy table: what is asked in one round is answered by one scan."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.data.count_requests import Refinement
from sfumato.data.engines import aggregate, guarded
from sfumato.data.key_sets import KeySet, Told, listed_key
from sfumato.data.lazy_table import LazyTable, Staged
from sfumato.data.portion import GroupKeys
from sfumato.data.requests import Answer, Request
from sfumato.data.rounds import Unanswered

if TYPE_CHECKING:
    import narwhals as nw

T = TypeVar("T")

# Plans of more than this overflow the stack of an engine's planner, or take longer than another scan.
MOST_REQUESTS = 48


class Passes:
    """The requests to one table, and their answers; private, and made only after a charge.

    Outside of `settled` a request is answered at once, by a pass of its own.
    """

    def __init__(self, table: LazyTable, frame_of: "Callable[[GroupKeys], nw.LazyFrame[Any]]") -> None:
        self._table, self._frame_of = table, frame_of
        self._known: dict[Request, Any] = {}
        self._wanted: dict[Request, None] = {}
        self._gathering = False
        self.count = 0

    def ask(self, request: Request) -> Any:
        """The answer to a request: one result for each group."""
        if request not in self._known:
            self._wanted[request] = None
            if self._gathering:
                raise Unanswered
            self._pass()
        return self._known[request]

    def settled(self, makers: Sequence[Callable[[], T]]) -> list[T]:
        """What every maker gives. Each is begun anew after the pass that answers what it asked, so that it
        must not draw: all that the makers ask for in one round is answered by one pass.
        """
        found: dict[int, T] = {}
        while True:
            self._gathering = True
            try:
                for place, make in enumerate(makers):
                    if place not in found:
                        try:
                            found[place] = make()
                        except Unanswered:
                            continue
            finally:
                self._gathering = False
            if not self._wanted:
                return [found[place] for place in range(len(makers))]
            self._pass()

    def _pass(self) -> None:
        # Where people are kept to some groups, rows differ by the groups of a question.
        frames: dict[int, tuple[nw.LazyFrame[Any], dict[Hashable, list[Request]]]] = {}
        for request in self._wanted:
            frame = self._frame_of(request.portion.groups)
            buckets = frames.setdefault(id(frame), (frame, {}))[1]
            buckets.setdefault(request.together, []).append(request)
        self._wanted = {}
        for frame, buckets in frames.values():
            for some in _batches(list(buckets.values())):
                self._known |= guarded(frame, partial(_answered, self._table, frame, some))
                self.count += 1


def _batches(buckets: Sequence[Sequence[Request]]) -> Iterator[Sequence[Sequence[Request]]]:
    """As many requests as engines take in one plan; more than that take a pass more."""
    batch: list[Sequence[Request]] = []
    for bucket in buckets:
        if batch and sum(map(len, (*batch, bucket))) > MOST_REQUESTS:
            yield batch
            batch = []
        batch.append(bucket)
    yield batch


def _answered(
    source: LazyTable, frame: "nw.LazyFrame[Any]", buckets: Sequence[Sequence[Request]]
) -> dict[Request, Any]:
    """Every request with its answer, by one scan."""
    every = [request for bucket in buckets for request in bucket]
    columns, portions = [request.column for request in every], [request.portion for request in every]
    table = Staged(source, columns, portions, alone=len(buckets) == 1)
    used = {*columns, *(name for portion in portions for name in portion.columns)}
    scan = _Scan(table, table.frame(source.read(frame, used)))
    read = [(bucket, *scan.add(f"sfumato_{number}", bucket)) for number, bucket in enumerate(buckets)]
    answers: dict[Request, Any] = {}
    for (bucket, by, names), found in zip(read, scan.run(), strict=True):
        answer = Answer(found, bucket[0].portion.groups, by)
        answers |= {request: request.read(answer, names[request]) for request in bucket}
    return answers


class _Scan:
    """The columns and group-bys of one pass."""

    def __init__(self, table: Staged, frame: "nw.LazyFrame[Any]") -> None:
        self._table, self._frame = table, frame
        self._staged: list[tuple[Request, str]] = []
        self._columns: dict[str, nw.Expr] = {}
        self._needed: list[nw.Expr | None] = []
        self._sets: list[KeySet] = []
        # The columns that are keys, by what they hold, and the other way round.
        self._keys: dict[Hashable, str] = {}
        self._told: dict[str, Told] = {}

    def add(self, name: str, bucket: Sequence[Request]) -> tuple[list[str], dict[Request, dict[str, str]]]:
        """One group-by for requests with the same keys: the names of its groups, and of what each reads."""
        table, first = self._table, bucket[0]
        if isinstance(first, Refinement):
            first = first.joined(bucket)  # type: ignore[arg-type]
        self._staged.append((first, name))
        self._needed.append(first.needed(table, name))
        by = [
            self._key(listed_key(column, first.portion.groups.values(place)), f"{name}_by_{place}", key)
            for place, (column, key) in enumerate(
                zip(first.portion.groups.by, table.keys(first.portion.groups), strict=True)
            )
        ]
        own = {
            label: self._key(told, f"{name}_key_{label}", key)
            for label, (told, key) in first.keys(table, name).items()
        }
        names: dict[Request, dict[str, str]] = {}
        sums: dict[Hashable, str] = {}
        for place, request in enumerate(bucket):
            called = f"{name}_{place}" if place else name
            if place and not isinstance(request, Refinement):
                self._staged.append((request, called))
            names[request] = dict(own)
            for label, value in request.sums(table, called).items():
                same = request.same(label)
                if same not in sums:
                    sums[same] = f"{called}_sum_{label}"
                    self._columns[sums[same]] = value
                names[request][label] = sums[same]
        # What is counted may be a key of the groups too.
        self._sets.append(KeySet(tuple(dict.fromkeys((*by, *own.values()))), tuple(sums.values())))
        return by, names

    def _key(self, told: Told, name: str, key: "nw.Expr") -> str:
        if told not in self._keys:
            self._keys[told] = name
            self._columns[name] = key
            self._told[name] = told
        return self._keys[told]

    def _prepared(self) -> "nw.LazyFrame[Any]":
        """The frame with all columns on the way: those of one stage together, so that plans stay shallow."""
        frame, table = self._frame, self._table
        every = [request.stages(table, name) for request, name in self._staged]
        for stage in range(max(map(len, every), default=0)):
            columns = [column for stages in every if stage < len(stages) for column in stages[stage]]
            frame = frame.with_columns(*columns)
        for request, name in self._staged:
            frame = request.join(frame, table, name)
        return frame

    def run(self) -> "list[nw.DataFrame[Any]]":
        """The small tables, in the order in which the group-bys were added."""
        frame = self._prepared()
        if all(rows is not None for rows in self._needed):
            needed = self._needed[0]
            for rows in self._needed[1:]:
                needed = needed | rows  # type: ignore[operator]
            frame = frame.filter(needed)  # type: ignore[arg-type]
        # Beside the rows first: where all of them are constants, to select them would leave one row.
        frame = frame.with_columns(*(key.alias(name) for name, key in self._columns.items()))
        return aggregate(frame.select(*self._columns), self._sets, self._told)
