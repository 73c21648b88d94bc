"""The tables in a persistent Spark catalog: `crossdock pipeline register`.

Each table is a view over the format `crossdock` (source/table.py). The catalog stores the columns, their descriptions
and the location, but no rows and no version, so it need not be changed when the tables grow. Spark does not pass the
options of a catalog's table to a Python source, but those of a query: so a view names the options, and reads a table of
the database `<name>_source`, which only has the columns.

Spark's wheel has the Hive libraries, so a catalog needs no server: without one it is a Derby database in a folder,
which one session at a time can open.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from crossdock.lake.location import absolute
from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.schemas.table_schema import TableSchema
from crossdock.pipeline.source.source import FORMAT, PUSHDOWN, register
from crossdock.pipeline.spark_tables import spark_schema

DATABASE: Final = "crossdock"

_IMPLEMENTATION: Final = "spark.sql.catalogImplementation"


def catalog_conf(folder: Path | str) -> Mapping[str, str]:
    """The settings of a session that uses the catalog in this folder. It is created if it is missing."""
    place = Path(absolute(folder))
    return {
        _IMPLEMENTATION: "hive",
        "spark.sql.warehouse.dir": (place / "warehouse").as_uri(),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={place / 'metastore'};create=true",
        # Derby would write its log to the current folder.
        "spark.driver.extraJavaOptions": f'"-Dderby.stream.error.file={place / "derby.log"}"',
        PUSHDOWN: "true",
    }


def register_catalog(spark: SparkSession, location: str, database: str = DATABASE) -> list[str]:
    """Create or replace all tables in the catalog of this session, and return their names.

    Raises PipelineError if the session forgets its catalog.
    """
    if spark.conf.get(_IMPLEMENTATION, "") != "hive":
        raise PipelineError(
            f"this Spark session keeps its catalog in memory: start it with {_IMPLEMENTATION}=hive, or leave out --conf"
        )
    register(spark)
    place = absolute(location)
    made = [table for table in Tables(place) if table.open() is not None]
    if not made:
        raise PipelineError(f"there are no tables in {place}: make them with crossdock pipeline run")
    source = f"{database}_source"
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {_name(database)} COMMENT 'Tables of Crossdock'")
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {_name(source)} COMMENT 'Columns of the views in {_text(database)}'")
    for table in made:
        # Only entries of the catalog are dropped.
        spark.sql(f"DROP VIEW IF EXISTS {_name(database)}.{_name(table.name)}")
        spark.sql(f"DROP TABLE IF EXISTS {_name(source)}.{_name(table.name)}")
        spark.sql(_table(source, table.schema))
        spark.sql(_view(database, source, table.schema, place))
    return [table.name for table in made]


def _table(source: str, schema: TableSchema) -> str:
    columns = ", ".join(f"{_name(field.name)} {field.dataType.simpleString()}" for field in spark_schema(schema).fields)
    return f"CREATE TABLE {_name(source)}.{_name(schema.name)} ({columns}) USING {FORMAT}"


def _view(database: str, source: str, schema: TableSchema, location: str) -> str:
    columns = ", ".join(f"{_name(name)} COMMENT '{_text(meaning)}'" for name, _, meaning in schema.columns)
    options = {"what": "table", "tables": location, "table": schema.name}
    listed = ", ".join(f"{_name(key)} = '{_text(value)}'" for key, value in options.items())
    return (
        f"CREATE VIEW {_name(database)}.{_name(schema.name)} ({columns}) COMMENT '{_text(schema.meaning)}' AS "
        f"SELECT * FROM {_name(source)}.{_name(schema.name)} WITH ({listed})"
    )


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
