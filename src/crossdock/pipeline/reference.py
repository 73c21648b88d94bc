"""Writes docs/reference/tables.md from the schemas: `python -m crossdock.pipeline.reference FILE`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from crossdock.pipeline.schemas.appended import REGISTRY, ROLLUPS, ROW_LEVEL
from crossdock.pipeline.schemas.table_schema import TableSchema
from crossdock.pipeline.schemas.views import VIEWS
from crossdock.pipeline.table_examples import EXAMPLES

_HEAD: Final = """# The pipeline's tables

<!-- Written by `make docs` from src/crossdock/pipeline/schemas and table_examples.py. A test compares them. -->

The pipeline writes Delta tables to `tables/` in the data folder, or where `--tables` says. Each is partitioned by
`date` (UTC). Durations are seconds, times are microseconds in UTC. [The data model](../explain/pipeline.md) explains
how the tables depend on each other, and how long they are kept.

* **Row level**: one row per event of interest, as long as the lake keeps its events.
* **Rollups**: sums of batches. Each batch appends its own, so a key can have several rows: add them up.
* **Views**: made from the rollups, with one row per key. Most questions need only these.

In tables of several servers, `server` tells them apart. `flush_epoch` is the number of flushes before; the live
statistics are those of the newest one.

## How to query them

Each table below has one question with its answer in SQL, Polars and PySpark. The SQL is the same everywhere.

With the `deltalake` package alone (`pip install 'crossdock[reports]'`), whose engine is DataFusion:

```python
from deltalake import DeltaTable, QueryBuilder

engine = QueryBuilder().register("daily", DeltaTable("tables/daily"))
print(engine.execute("SELECT date, queue, sum(succeeded) AS done FROM daily GROUP BY date, queue").read_all())
```

With DuckDB, over the files that the newest version names:

```python
import duckdb
from deltalake import DeltaTable

daily = duckdb.read_parquet(DeltaTable("tables/daily").file_uris(), hive_partitioning=True, union_by_name=True)
print(duckdb.sql("SELECT date, queue, sum(succeeded) AS done FROM daily GROUP BY date, queue"))
```

(If DuckDB can download its extension, `FROM delta_scan('tables/daily')` is enough.)

With Polars, where `scan` is short for:

```python
import polars as pl


def scan(name):
    return pl.scan_delta(f"tables/{name}")


print(scan("daily").group_by("date", "queue").agg(pl.col("succeeded").sum()).collect())
```

With Spark, which needs no Delta jar for this. `F` and `Window` are as usual:

```python
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from crossdock.pipeline.spark_tables import register_tables

spark = SparkSession.builder.getOrCreate()
register_tables(spark, "tables")
spark.table("daily").groupBy("date", "queue").agg(F.sum("succeeded")).show()
spark.sql("DESCRIBE daily").show(truncate=False)
```
"""

_GROUPS: Final[tuple[tuple[str, str, Sequence[TableSchema]], ...]] = (
    ("Views", "", VIEWS),
    ("Row level", "", ROW_LEVEL),
    ("Rollups", "", ROLLUPS),
    ("About the lakes", "Kept by the pipeline for itself.", REGISTRY),
)

_TYPES: Final = {
    pa.string(): "string",
    pa.int64(): "int64",
    pa.int32(): "int32",
    pa.float64(): "float64",
    pa.bool_(): "bool",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
}


def reference() -> str:
    parts = [_HEAD, "## All tables", "", "| Table | |", "|---|---|"]
    parts += [f"| [`{schema.name}`](#{schema.name}) | {schema.meaning} |" for _, _, some in _GROUPS for schema in some]
    for title, text, schemas in _GROUPS:
        parts += ["", f"## {title}", *(["", text] if text else [])]
        for schema in schemas:
            parts += ["", *_table(schema)]
    return "\n".join(parts) + "\n"


def _table(schema: TableSchema) -> list[str]:
    key = ", ".join(f"`{name}`" for name in schema.key)
    unique = "Rows of one batch are identified by" if schema in ROLLUPS else "A row is identified by"
    parts = [f"### {schema.name}", "", f"{schema.meaning} {unique} {key}.", "", "| Column | Type | |", "|---|---|---|"]
    parts += [f"| `{name}` | {_type(kind)} | {_escaped(meaning)} |" for name, kind, meaning in schema.columns]
    example = EXAMPLES.get(schema.name)
    if example is not None:
        parts += ["", example.question]
        for language, text in (("sql", example.sql), ("python", example.polars), ("python", example.pyspark)):
            parts += ["", f"```{language}", text.strip(), "```"]
    return parts


def _type(kind: pa.DataType) -> str:
    return f"list of {_TYPES[kind.value_type]}" if pa.types.is_list(kind) else _TYPES[kind]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), "utf-8")
