"""Tables that count how often their rows are read, for every lazy engine."""

from collections.abc import Callable
from typing import Any

import polars as pl
from tests.engines import SPARK, Table, arrow_table, polars_table, spark_table


class Counted:
    """A lazy table with every column made from a function that counts rows."""

    def __init__(self, native: Any, size: int, rows: Callable[[], int], close: Callable[[], None]) -> None:
        self.native, self.size, self._rows, self._close = native, size, rows, close

    def passes(self) -> float:
        """How often all rows were read since the table was made."""
        return self._rows() / self.size

    def close(self) -> None:
        self._close()


def _size(table: Table) -> int:
    return len(next(iter(table.values()))[1])


def _polars(table: Table) -> Counted:
    seen: list[int] = []

    def count(rows: pl.Series) -> pl.Series:
        seen.append(len(rows))
        return rows

    frame = polars_table(table).with_row_index("number")
    read = pl.col("number").map_batches(count, return_dtype=pl.UInt32, is_elementwise=True).alias("read")
    columns = [pl.when(pl.col("read") >= 0).then(pl.col(name)).alias(name) for name in table]
    lazy = frame.lazy().with_columns(read).select(columns)
    return Counted(lazy, _size(table), lambda: sum(seen), lambda: None)


def _duckdb(table: Table) -> Counted:
    import duckdb

    seen: list[int] = []

    def count(numbers: Any) -> Any:
        seen.append(len(numbers))
        return numbers

    database = duckdb.connect()
    database.register("given", arrow_table(table))
    database.execute("CREATE TABLE stored AS SELECT *, row_number() OVER () AS number FROM given")
    database.create_function("seen", count, ["BIGINT"], "BIGINT", type="arrow", side_effects=True)
    columns = ", ".join(f'CASE WHEN read > 0 THEN "{name}" END AS "{name}"' for name in table)
    relation = database.sql(f"SELECT {columns} FROM (SELECT *, seen(number) AS read FROM stored)")

    def close() -> None:
        database.remove_function("seen")
        database.close()

    return Counted(relation, _size(table), lambda: sum(seen), close)


def _spark(table: Table) -> Counted:
    seen = SPARK.session().sparkContext.accumulator(0)

    def count(batches: Any) -> Any:
        for batch in batches:
            seen.add(batch.num_rows)
            yield batch

    frame = spark_table(table)
    return Counted(frame.mapInArrow(count, frame.schema), _size(table), lambda: int(seen.value), lambda: None)


COUNTED: dict[str, Callable[[Table], Counted]] = {"polars lazy": _polars, "duckdb": _duckdb, "spark": _spark}
