"""The tables in a Spark session, without a Delta jar: frames over the files that the newest version names.

Column descriptions come along as comments, so `DESCRIBE daily` shows what each column means.
"""

from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from crossdock.lake.location import absolute
from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.environment import spark_path
from crossdock.pipeline.schemas.table_schema import TableSchema

_SCALARS: Final[dict[pa.DataType, DataType]] = {
    pa.string(): StringType(),
    pa.int64(): LongType(),
    pa.int32(): IntegerType(),
    pa.float64(): DoubleType(),
    pa.bool_(): BooleanType(),
    pa.date32(): DateType(),
    pa.timestamp("us", "UTC"): TimestampType(),
}


def register_tables(spark: SparkSession, location: str) -> list[str]:
    """Make all tables temporary views of the session, and return their names."""
    names = []
    for table in Tables(absolute(location)):
        if table.open() is not None:
            read_table(spark, location, table.name).createOrReplaceTempView(table.name)
            names.append(table.name)
    return names


def read_table(spark: SparkSession, location: str, name: str) -> DataFrame:
    """The newest version of a table. Filters on `date` select files. Raises PipelineError if there is no such table."""
    table = Tables(absolute(location))[name]
    schema = spark_schema(table.schema)
    paths = [spark_path(f"{table.location}/{file.path}") for file in table.files(handle=table.handle())]
    if not paths:
        return spark.createDataFrame([], schema)
    # Each write has a folder of its own between the table and `date=…`, which is no partition.
    reader = spark.read.schema(schema).option("basePath", spark_path(table.location))
    return reader.option("ignoreInvalidPartitionPaths", "true").parquet(*paths).select(*table.schema.names)


def spark_schema(schema: TableSchema) -> StructType:
    return StructType(
        [StructField(name, _type(kind), metadata={"comment": meaning}) for name, kind, meaning in schema.columns]
    )


def _type(kind: pa.DataType) -> DataType:
    return ArrayType(_type(kind.value_type)) if pa.types.is_list(kind) else _SCALARS[kind]
