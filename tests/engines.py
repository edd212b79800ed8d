"""One table in every engine, from plain Python values, and the Spark that the tests of a process share.

A table here is a dict from names to (kind, rows), where a row is a value or None. Spark is started when a
test first asks for it: one Java process serves a session of this process and one by Connect.
"""

import atexit
import os
import shutil
import subprocess
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

Rows = tuple[str, Sequence[Any]]
Table = Mapping[str, Rows]

ARROW = {"integer": pa.int64(), "real": pa.float64(), "text": pa.string(), "boolean": pa.bool_()}
_FILLERS: dict[str, tuple[Any, Any]] = {"integer": (0, np.int64), "boolean": (False, bool)}
_PANDAS = {"integer": "Int64", "real": "float64", "boolean": "boolean", "text": object}

JAVA_MISSING = (
    "Spark needs a Java runtime of version 17 or later; on Debian: apt-get install default-jre-headless"
)
SMALL = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.catalogImplementation": "in-memory",
    # The server that Connect talks to, at a free port, for this machine alone.
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
}


def java_is_there() -> bool:
    """Whether a Java runtime is installed that Spark can use."""
    found = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    if shutil.which(found) is None:
        return False
    said = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    _, _, version = said.partition('"')
    return int(version.split(".")[0].split("-")[0].split('"')[0] or 0) >= 17


@dataclass
class Spark:
    """The one Spark of a process, started when it is first needed and stopped when the process ends."""

    _sessions: dict[str, Any] = field(default_factory=dict)

    def session(self) -> Any:
        """A session in this process."""
        if "classic" not in self._sessions:
            if not java_is_there():
                if os.environ.get("CI"):
                    pytest.fail(JAVA_MISSING)
                pytest.skip(JAVA_MISSING)
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            # Its modules take a warning about the version of pandas that is an error for pandas missing.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                from pyspark.sql import SparkSession

                builder = SparkSession.builder.appName("sfumato tests")
                for name, value in SMALL.items():
                    builder = builder.config(name, value)
                self._sessions["classic"] = builder.getOrCreate()
            atexit.register(self.stop)
        return self._sessions["classic"]

    @property
    def address(self) -> str:
        """Where a client can connect."""
        java = self.session()._jvm
        service = getattr(java, "org.apache.spark.sql.connect.service.SparkConnectService$")
        return f"sc://127.0.0.1:{getattr(service, 'MODULE$').localPort()}"

    def connect(self) -> Any:
        """A session that talks to the same Spark by Connect."""
        if "connect" not in self._sessions:
            address = self.address
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                from pyspark.sql.connect.session import SparkSession

                self._sessions["connect"] = SparkSession.builder.remote(address).create()
        return self._sessions["connect"]

    def another_client(self) -> Any:
        """A client of its own, which a test may stop."""
        self.connect()
        from pyspark.sql.connect.session import SparkSession

        return SparkSession.builder.remote(self.address).create()

    def stop(self) -> None:
        """End the sessions, and Java with them."""
        for name in ("connect", "classic"):
            session = self._sessions.pop(name, None)
            if session is not None:
                session.stop()


SPARK = Spark()


def arrow_table(table: Table) -> pa.Table:
    """The table in Arrow, of the widest type of each kind."""
    # An array of NaN must not become an array of nulls, as it does where Arrow reads pandas.
    columns = {name: pa.array(list(rows), ARROW[kind]) for name, (kind, rows) in table.items()}
    return pa.table(columns)


def mapping(table: Table) -> dict[str, np.ndarray]:
    """The table in NumPy; a mask says that the type of a column has room for nulls."""
    columns = {}
    for name, (kind, rows) in table.items():
        if kind == "real":
            columns[name] = np.array([np.nan if row is None else row for row in rows], dtype=float)
        elif kind == "text":
            columns[name] = np.array([*rows, None], dtype=object)[:-1]
        else:
            filler, dtype = _FILLERS[kind]
            filled = np.array([filler if row is None else row for row in rows], dtype=dtype)
            columns[name] = np.ma.MaskedArray(filled, mask=[row is None for row in rows])
    return columns


def pandas_table(table: Table) -> pd.DataFrame:
    """The table in pandas, with NumPy behind it."""
    columns = {name: pd.Series(list(rows), dtype=_PANDAS[kind]) for name, (kind, rows) in table.items()}
    return pd.DataFrame(columns)


def pandas_arrow_table(table: Table) -> pd.DataFrame:
    """The table in pandas, with Arrow behind it."""
    return arrow_table(table).to_pandas(types_mapper=pd.ArrowDtype)


def polars_table(table: Table) -> pl.DataFrame:
    """The table in Polars."""
    return pl.DataFrame(pl.from_arrow(arrow_table(table)))


def duckdb_table(table: Table) -> Any:
    """The table as a relation of a DuckDB database in memory."""
    import duckdb

    database = duckdb.connect()
    database.register("given", arrow_table(table))
    database.execute("CREATE TABLE people AS SELECT * FROM given")
    database.unregister("given")
    return database.table("people")


def spark_table(table: Table, session: Any = None) -> Any:
    """The table as a Spark DataFrame."""
    from pyspark.sql import types

    session = SPARK.session() if session is None else session
    stored = {
        "integer": types.LongType,
        "real": types.DoubleType,
        "text": types.StringType,
        "boolean": types.BooleanType,
    }
    schema = types.StructType([types.StructField(name, stored[kind]()) for name, (kind, _) in table.items()])
    rows = list(zip(*(list(rows) for _, rows in table.values()), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return session.createDataFrame(rows, schema).repartition(3)


def connect_table(table: Table) -> Any:
    """The table as a DataFrame of Spark Connect."""
    return spark_table(table, SPARK.connect())


EAGER: dict[str, Callable[[Table], Any]] = {
    "numpy": mapping,
    "pandas": pandas_table,
    "pandas arrow": pandas_arrow_table,
    "polars": polars_table,
    "pyarrow": arrow_table,
}
LIGHT: dict[str, Callable[[Table], Any]] = {
    "polars lazy": lambda table: polars_table(table).lazy(),
    "duckdb": duckdb_table,
}
HEAVY: dict[str, Callable[[Table], Any]] = {"spark": spark_table, "spark connect": connect_table}
LAZY = LIGHT | HEAVY
ENGINES = EAGER | LAZY
