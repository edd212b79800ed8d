"""Files as data frames of Spark: of the session that is active, of a server, or of a local one."""

import functools
import operator
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sfumato.data.file_bytes import csv_header, whole_lines
from sfumato.data.file_cells import (
    ABOVE,
    AROUND,
    BELOW,
    BLANK,
    DATE,
    DECIMAL,
    FALSE,
    INTEGER,
    MINUTE,
    NO_NUMBER,
    NULL,
    SECOND,
    TRUE,
)
from sfumato.data.file_faults import FileFault
from sfumato.data.file_listing import Piece
from sfumato.data.file_scans import Lines, Wanted, place
from sfumato.data.file_types import FileKind
from sfumato.data.warning_filters import all_warnings
from sfumato.errors import EngineFault, MissingExtra

_TYPES = {"integer": "long", "real": "double", "boolean": "boolean", "text": "string"}
_TYPES |= {"date": "date", "datetime": "timestamp_ntz"}
_LOCAL = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}
# The most milliseconds of which 64 bits hold the microseconds, and the largest decimal.
_MILLIS = (2**63 - 1) // 1000
_TOP = 10**38 - 1
# What Hadoop takes for a pattern.
_MARKS = re.compile(r"[*?\[\]{}\\^]")


def spark_session() -> Any:
    """The active session of Spark, that of the server in SPARK_REMOTE, or a local one with all cores."""
    # It warns of versions of other packages, and some of its modules take that for a missing package.
    with all_warnings("ignore"):
        return _session()


def _session() -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtra(
            'engine = "spark" needs the package pyspark: pip install "sfumato[spark]"'
        ) from None
    try:
        active = SparkSession.getActiveSession()
        if active is not None:
            return active
        builder: Any = SparkSession.builder.appName("sfumato")
        # A server, and what was started by spark-submit, have settings of their own.
        if not {"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_GATEWAY_PORT"} & set(os.environ):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            for name, value in _LOCAL.items():
                builder = builder.config(name, value)
        return builder.getOrCreate()
    except Exception as error:
        kind = type(error).__name__
    # Outside of the handler: an error that is chained shows the one before.
    raise EngineFault(f"spark could not be started: {kind}; it needs Java 17 or later, or SPARK_REMOTE")


def _paths(pieces: Sequence[Piece]) -> list[str]:
    for piece in pieces:
        if os.path.basename(piece.name).startswith((".", "_")) or ":" in piece.name:
            words = (
                "has a name that Spark passes over or cannot open: it begins with . or _, or holds a colon"
            )
            raise FileFault(piece.source.shown, "file name", words)
    return [_MARKS.sub(r"\\\g<0>", piece.source.path) for piece in pieces]


def _backticks(name: str) -> str:
    doubled = name.replace("`", "``")
    return f"`{doubled}`"


class SparkScanner:
    """Scans by Spark."""

    def __init__(self) -> None:
        self._session = spark_session()

    def lines(self, form: Lines) -> Any:
        from pyspark.sql import functions

        for piece in form.pieces:
            if form.gzipped != piece.source.path.endswith(".gz"):
                words = "must be called .gz if and only if gzip is around it, for Spark goes by the name"
                raise FileFault(piece.source.shown, "file name", words)
        # As lines, for Spark's reader of CSV drops a byte-order mark at the start of each split of a file.
        text = self._session.read.schema("value string").option("lineSep", "\n").text(_paths(form.pieces))
        line = functions.rtrim(text["value"], functions.lit("\r"))
        lines = text.select(line.alias("line")).where(functions.col("line") != form.header.line)
        repeated = self._session.range(_header_repeats(form)).select(functions.lit(form.header.line))
        fields = _fields(functions.col("line"), form.header.separator)
        split = lines.union(repeated).select(fields.alias("fields"))
        return split.select(
            *(_cell(split["fields"][i], form.header.separator).alias(place(i)) for i in form.needed)
        )

    def stored(self, pieces: Sequence[Piece], wanted: Sequence[Wanted], folder: str | None) -> Any:
        if pieces[0].source.holds == "arrow":
            return self._arrow(pieces, wanted)
        paths, reader = _paths(pieces), self._session.read
        raw = {each.place: each for each in wanted if each.is_millis or each.scale is not None}
        if folder is not None or raw:
            schema = _by_bits(self._session.read.parquet(paths[0]).schema, raw)
            for name, _ in pieces[0].keys if folder is not None else ():
                # Told to be text, a key is not guessed to be a number.
                schema = schema.add(name, "string")
            reader = reader.schema(schema)
        found = (reader if folder is None else reader.option("basePath", folder)).parquet(*paths)
        return found.withColumns({name: _of_bits(each) for name, each in raw.items()}) if raw else found

    def _arrow(self, pieces: Sequence[Piece], wanted: Sequence[Wanted]) -> Any:
        """Arrow files batch by batch, in the Python of the executors, which must see the same paths."""
        columns = [(each.place, each.kind, each.how) for each in wanted]

        # A function inside a function is sent as it is: executors need pyarrow, and not this package.
        def batches(listed: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa
            import pyarrow.compute as pc
            from pyarrow import ipc

            # The casts of Arrow raise for what the wider type does not hold.
            def plain(column: Any) -> Any:
                if pa.types.is_dictionary(column.type):
                    places = column.indices.cast(pa.int64(), safe=False)
                    known = pc.and_(pc.greater_equal(places, 0), pc.less(places, len(column.dictionary)))
                    return column.dictionary.take(pc.if_else(known, places, None))
                unit = "ms" if pa.types.is_date64(column.type) else getattr(column.type, "unit", "us")
                if unit == "us":
                    return column
                ticks = column.cast(pa.int64())
                if unit == "ns":
                    whole = pc.divide(ticks, 1000)
                    # Rounded down, where the quotient of Arrow is rounded to zero.
                    return pc.subtract(whole, pc.greater(pc.multiply(whole, 1000), ticks).cast(pa.int64()))
                each = 1000 if unit == "ms" else 10**6
                most = (2**63 - 1) // each
                above = pc.max_element_wise(ticks, -most, skip_nulls=False)
                return pc.multiply(pc.min_element_wise(above, most, skip_nulls=False), each)

            types = {"integer": pa.int64(), "real": pa.float64(), "boolean": pa.bool_(), "text": pa.string()}
            types |= {"date": pa.date32(), "datetime": pa.timestamp("us"), "zoned": pa.timestamp("us", "UTC")}
            for each in listed:
                for path in each.column(0).to_pylist():
                    with pa.memory_map(path) as mapped, ipc.open_file(mapped) as file:
                        for index in range(file.num_record_batches):
                            batch = file.get_batch(index)
                            made = []
                            for name, kind, how in columns:
                                wide = types["zoned" if how == "zoned" else kind]
                                if how == "keep" and kind == "integer":
                                    wide = pa.decimal128(20, 0)
                                made.append(plain(batch.column(name)).cast(wide))
                            yield pa.RecordBatch.from_arrays(made, names=[name for name, _, _ in columns])

        from pyspark.sql.types import StructType

        schema = StructType()
        for each in wanted:
            wide = "decimal(20,0)" if each.how == "keep" and each.kind == "integer" else _TYPES[each.kind]
            schema = schema.add(each.place, "timestamp" if each.how == "zoned" else wide)
        paths = [(piece.source.path,) for piece in pieces]
        listed = self._session.createDataFrame(paths, "path string").repartition(len(paths))
        return listed.mapInArrow(batches, schema)

    def read(self, frame: Any, wanted: Sequence[Wanted], said: Mapping[str, str | None]) -> Any:
        from pyspark.sql import functions

        made = []
        for each in wanted:
            cell = functions.col(_backticks(each.place))
            if each.place in said:
                cell = functions.lit(said[each.place]).cast("string")
            if each.how == "cell":
                cell = _value(cell, each.kind)
            elif each.how == "null":
                cell = functions.lit(None).cast(_TYPES[each.kind])
            elif each.how == "cast":
                cell = cell.cast(_TYPES[each.kind])
            made.append(cell.alias(each.name))
        return frame.select(*made)

    def wrong(self, frame: Any, wanted: Sequence[Wanted]) -> list[int]:
        from pyspark.sql import functions

        counts = [
            functions.count_if(_wrong(functions.col(_backticks(each.place)), each.kind)) for each in wanted
        ]
        return [int(count) for count in frame.agg(functions.count(functions.lit(1)), *counts).collect()[0]]

    def together(self, frames: Sequence[Any]) -> Any:
        found = frames[0]
        for frame in frames[1:]:
            found = found.union(frame)
        return found

    def empty(self, wanted: Sequence[Wanted]) -> Any:
        from pyspark.sql.types import StructType

        schema = StructType()
        for each in wanted:
            schema = schema.add(each.name, _TYPES[each.kind])
        return self._session.createDataFrame([], schema)


def _by_bits(schema: Any, raw: Mapping[str, Wanted]) -> Any:
    """The schema of a Parquet file in which some columns are what they are stored as.

    Spark's reader fails for milliseconds of which 64 bits do not hold the microseconds, and for decimals with
    more digits than they declare.
    """
    from pyspark.sql.types import StructType

    found = StructType()
    for each in schema:
        bits = "long" if each.name in raw and raw[each.name].is_millis else "binary"
        found = found.add(each.name, bits if each.name in raw else each.dataType, each.nullable)
    return found


def _of_bits(wanted: Wanted) -> Any:
    """Datetimes of 64-bit milliseconds, or the nearest that there are; reals of the bytes of decimals."""
    from pyspark.sql import functions

    name = _backticks(wanted.place)
    if wanted.is_millis:
        near = f"greatest(least({name}, {_MILLIS}), -{_MILLIS})"
        if wanted.how == "zoned":
            return functions.expr(f"timestamp_micros({near} * 1000)")
        return functions.expr(f"timestamp_ntz'1970-01-01' + {near} * interval '0.001' second")
    # Two halves of 64 bits, the upper one signed. Text is read to the nearest float64.
    digits = f"lpad(hex({name}), 32, if(hex({name}) < '8', '0', 'F'))"
    upper = f"cast(conv(left({digits}, 16), 16, -10) as decimal(38, 0))"
    lower = f"cast(conv(right({digits}, 16), 16, 10) as decimal(38, 0))"
    whole = f"try_add(try_multiply({upper}, {2**64}), {lower})"
    top = f"if({upper} < 0, -{_TOP}, {_TOP})"
    held = f"if({name} is null, null, coalesce({whole}, {top}))"
    return functions.expr(f"cast(concat(cast({held} as string), 'E-{wanted.scale}') as double)")


def _header_repeats(form: Lines) -> int:
    """How many rows are the same line as the header, which Spark cannot tell from it."""
    line = re.compile(b"^" + re.escape(form.header.line.encode()) + b"\r?\n", re.MULTILINE)
    sources = (piece.source for piece in form.pieces)
    return sum(
        len(line.findall(lines))
        for source in sources
        for lines in whole_lines(source, csv_header(source).size)
    )


def _fields(line: Any, separator: str) -> Any:
    """The fields of a sound line, with NUL, which no line holds, for separators inside quotes."""
    from pyspark.sql import functions

    hidden = functions.transform(
        functions.split(line, '"', -1),
        lambda part, index: functions.when(
            index % 2 == 1, functions.translate(part, separator, "\0")
        ).otherwise(part),
    )
    bare = functions.when(line.contains('"'), functions.array_join(hidden, '"')).otherwise(line)
    return functions.split(bare, separator, -1)


def _cell(field: Any, separator: str) -> Any:
    """The text of a field without its quotes."""
    from pyspark.sql import functions

    inner = functions.substring(field, functions.lit(2), functions.length(field) - 2)
    single = functions.replace(inner, functions.lit('""'), functions.lit('"'))
    return functions.when(field.startswith('"'), functions.translate(single, "\0", separator)).otherwise(
        field
    )


def _value(cell: Any, kind: FileKind) -> Any:
    """The value of a cell, null where it is null or no value of the kind."""
    from pyspark.sql import functions

    if kind == "text":
        return functions.when(cell != "", cell)
    if kind == "boolean":
        return functions.when(cell.isin(*TRUE), functions.lit(True)).when(
            cell.isin(*FALSE), functions.lit(False)
        )
    bare = functions.btrim(cell, functions.lit(AROUND))
    if kind in ("date", "datetime"):
        forms = (DATE,) if kind == "date" else (DATE, MINUTE, SECOND)
        met = functools.reduce(operator.or_, (cell.rlike(form) for form in forms))
        plain = functions.translate(bare, "TZ", " ")
        return functions.when(met, plain.try_cast(_TYPES[kind]))
    if kind == "integer":
        return functions.when(cell.rlike(INTEGER), bare.try_cast("long"))
    return (
        functions.when(cell.rlike(DECIMAL), bare.try_cast("double"))
        .when(cell.rlike(ABOVE), functions.lit(float("inf")))
        .when(cell.rlike(BELOW), functions.lit(float("-inf")))
        .when(cell.rlike(NO_NUMBER), functions.lit(float("nan")))
    )


def _wrong(cell: Any, kind: FileKind) -> Any:
    """Whether a cell is neither null nor a value of the kind."""
    from pyspark.sql import functions

    if kind == "text":
        return functions.lit(False)
    blank = cell.isin("", NULL) if kind == "boolean" else cell.rlike(BLANK)
    return cell.isNotNull() & ~blank & _value(cell, kind).isNull()
