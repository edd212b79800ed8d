"""Several group-bys of a Polars LazyFrame in one scan, by batches, in memory that does not follow the rows.

Plans that share a scan would keep all its rows until the last of them is done. Here the streaming engine
hands over batches of keys and values, which are added up and dropped.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.data.key_sets import ROWS, KeySet, Told, grouped
from sfumato.grid import Ints

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl

# Rows of a batch: its keys and values fit a core's cache.
BATCH = 2**17
# Keys of at most so many values are counted in a table.
MOST_CELLS = 2**21
# So many rows of partial sums are added up at a time.
_PENDING = 2**20
# Keys begin at this: rows that are not asked about, and nulls.
_FIRST = -2


def by_polars(
    frame: "nw.LazyFrame[Any]", sets: Sequence[KeySet], told: Mapping[str, Told]
) -> "list[nw.DataFrame[Any]]":
    """Each group-by as a small table; `told` says what the keys hold."""
    import narwhals as nw
    import polars as pl

    plan: pl.LazyFrame = frame.to_native()
    sizes = [math.prod(told[key].size for key in each.keys) for each in sets]
    counted = [not each.sums and size <= MOST_CELLS for each, size in zip(sets, sizes, strict=True)]
    refined = any(told[key].size > MOST_CELLS for each in sets for key in each.keys)
    # Beside sums no rows are left out, and those of a whole table may need more than 64 bits.
    if refined and not any(each.sums for each in sets):
        # Few rows pass the filter of a refinement, so that Polars may share its scan by keeping them.
        plans = [grouped(frame, each).to_native() for each in sets]
        return [nw.from_native(table) for table in pl.collect_all(plans, engine="streaming")]
    schema = plan.collect_schema()
    sinks = [
        _Cells(each, told, schema) if dense else _Groups(each, schema)
        for each, dense in zip(sets, counted, strict=True)
    ]
    names = sorted({name for each in sets for name in (*each.keys, *each.sums)})

    def add(batch: pl.DataFrame) -> None:
        for sink in sinks:
            sink.add(batch)

    # Not by `collect_batches`: where a file ends too early, it gives the rows before and says nothing.
    plan.select(names).sink_batches(add, chunk_size=BATCH, maintain_order=False, engine="streaming")
    return [nw.from_native(sink.table()) for sink in sinks]


class _Cells:
    """Counts by keys of few values, in a table of all their combinations."""

    def __init__(self, each: KeySet, told: Mapping[str, Told], schema: "pl.Schema") -> None:
        import polars as pl

        self._keys = {key: told[key] for key in each.keys}
        # As the column stores them, wide integers as text; no row has one that does not fit the type.
        self._listed = {
            key: pl.Series([*known.listed, None], dtype=schema[key], strict=False)
            for key, known in self._keys.items()
            if known.listed is not None
        }
        self._counts: Ints = np.zeros(math.prod(key.size for key in self._keys.values()), dtype=np.int64)

    @property
    def code(self) -> "pl.Expr":
        """The place of a row's keys in the table."""
        import polars as pl

        found = pl.lit(0, dtype=pl.Int64)
        for key, told in self._keys.items():
            if told.listed is None:
                # A null comes before the first integer but one.
                place = pl.col(key).fill_null(-1) - _FIRST
            else:
                places = {value: at for at, value in enumerate(self._listed[key].to_list())}
                place = pl.col(key).replace_strict(places, default=len(told.listed), return_dtype=pl.Int64)
            found = found * told.size + place
        return found.alias("sfumato_code")

    def add(self, batch: "pl.DataFrame") -> None:
        """Count the rows of a batch."""
        # Here and not in the plan: to look values up, Polars would first collect all rows of it.
        codes = batch.select(self.code).to_series().to_numpy()
        self._counts += np.bincount(codes, minlength=len(self._counts))

    def table(self) -> "pl.DataFrame":
        """The keys that rows have, and how many."""
        import polars as pl

        found = np.flatnonzero(self._counts)
        columns: dict[str, pl.Series] = {}
        left = found
        for key, told in reversed(self._keys.items()):
            left, place = np.divmod(left, told.size)
            if told.listed is None:
                columns[key] = pl.Series(place + _FIRST)
            else:
                columns[key] = self._listed[key][place]
        return pl.DataFrame({**columns, ROWS: self._counts[found]})


class _Groups:
    """Counts and sums by any keys: those of batches are added up when there are many."""

    def __init__(self, each: KeySet, schema: "pl.Schema") -> None:
        import polars as pl

        self._set = each
        types = {name: schema[name] for name in (*each.keys, *each.sums)}
        # An empty part, so that a table without rows has its columns.
        self._parts = [self._grouped(pl.LazyFrame(schema=types), pl.len().cast(pl.Int64).alias(ROWS))]
        self._rows = 0

    def add(self, batch: "pl.DataFrame") -> None:
        """Add up the rows of a batch."""
        import polars as pl

        part = self._grouped(batch.lazy(), pl.len().cast(pl.Int64).alias(ROWS))
        self._parts.append(part)
        self._rows += len(part)
        if self._rows > _PENDING:
            self._join()

    def _grouped(self, rows: "pl.LazyFrame", count: "pl.Expr") -> "pl.DataFrame":
        import polars as pl

        # Those of a batch fit 64 bits; those of many may not.
        wanted = [count, *(pl.col(name).sum().cast(pl.Int128) for name in self._set.sums)]
        if not self._set.keys:
            return rows.select(wanted).collect()
        return rows.group_by(self._set.keys).agg(wanted).collect()

    def _join(self) -> None:
        import polars as pl

        self._parts = [self._grouped(pl.concat(self._parts).lazy(), pl.col(ROWS).sum())]
        # What is left is all there is to keep, and more than half of a limit would be joined each time.
        self._rows = len(self._parts[0]) // 2

    def table(self) -> "pl.DataFrame":
        """The keys that rows have, how many, and their sums."""
        self._join()
        return self._parts[0]
