"""The lake's columns as Spark reads them, and the few expressions that every transform needs."""

from typing import Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from crossdock.lake.schema import EVENTS

_SCALARS: Final[dict[pa.DataType, DataType]] = {
    pa.int64(): LongType(),
    pa.float64(): DoubleType(),
    pa.string(): StringType(),
    pa.bool_(): BooleanType(),
    pa.binary(): BinaryType(),
}

#: Days that a date column can hold in every reader: 0001-01-01 to 9999-12-31. A client's clock may have any value.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896

_DAY_S: Final = 86_400
_HOUR_S: Final = 3_600


def _spark_type(kind: pa.DataType) -> DataType:
    return ArrayType(_spark_type(kind.value_type)) if pa.types.is_list(kind) else _SCALARS[kind]


EVENTS_SCHEMA: Final = StructType([StructField(field.name, _spark_type(field.type)) for field in EVENTS])


def date_of_day(day: Column) -> Column:
    """The date of a number of days since 1970."""
    within = F.greatest(F.least(day, F.lit(_LAST_DAY)), F.lit(_FIRST_DAY))
    return F.date_from_unix_date(within.cast("int"))


def date_of(at: Column) -> Column:
    """The UTC date of seconds since 1970."""
    return date_of_day(F.floor(at / _DAY_S))


def time_of(at: Column) -> Column:
    """Rounded to the nearest microsecond. round() would convert every double to a decimal."""
    return F.timestamp_micros(F.floor(at * 1_000_000 + 0.5))


def slot_of(at: Column) -> Column:
    """The number of hours since 1970."""
    return F.floor(at / _HOUR_S)


def hour_of_slot(slot: Column) -> Column:
    """The start of an hour."""
    return F.timestamp_seconds(slot * _HOUR_S)


def date_of_slot(slot: Column) -> Column:
    return date_of_day(F.floor(slot / 24))
