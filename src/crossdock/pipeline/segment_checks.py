"""Verifies the checksums of a lake's files, where Spark's tasks run."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession

from crossdock.lake.checksums import BadSum, verify_segment
from crossdock.lake.store import store_of
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.planning import SourceFile
from crossdock.pipeline.storage import is_local

#: Tasks that verify files on the executors.
_TASKS: Final = 64


def verify(context: PipelineContext, files: Sequence[SourceFile]) -> None:
    """Verify local files, in this process or on the executors. An object store has checksums of its own, and files of
    other tools have none. Raises PipelineError that names the first damaged file."""
    paths = [file.uri for file in files if file.first and is_local(file.uri)]
    context.progress(f"verifying files: {len(paths):,}", 0, 1)
    faults: list[str] = []
    if context.is_local and not is_remote(context.spark):
        with ThreadPoolExecutor() as pool:
            faults = [fault for fault in pool.map(fault_of, paths) if fault]
    elif paths:
        named = context.spark.createDataFrame([(path,) for path in paths], "path string")
        found = named.repartition(min(len(paths), _TASKS)).mapInArrow(_faults, "fault string")
        faults = [row.fault for row in found.collect()]
        if faults and not any(map(fault_of, paths)):
            raise PipelineError(
                f"on Spark's side, {faults[0]}. The file is sound on this machine, so the lake is not the same storage "
                "on both; nothing was committed"
            )
    if faults:
        raise PipelineError(
            f"{faults[0]}; nothing was committed. Restore the file from a copy of the lake, or leave its events out "
            "with crossdock pipeline skip"
        )


def is_remote(spark: SparkSession) -> bool:
    """Whether a Connect server runs the tasks. Its master may be `local`, and its files others than here."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def fault_of(path: str) -> str:
    """Why a file cannot be used; empty: it is sound."""
    try:
        with opened(path) as source:
            verify_segment(source)
    except BadSum as error:
        return f"{path} is damaged: {error}"
    except OSError as error:
        return f"{path} cannot be read: {os.strerror(error.errno) if error.errno else error}"
    return ""


def opened(path: str) -> Any:
    """A file of a lake, as pyarrow reads it. The caller closes it."""
    folder, _, name = path.rpartition("/")
    return pa.memory_map(path) if is_local(path) else store_of(folder).open(name)


def _faults(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        found = [fault for path in batch.column(0).to_pylist() if (fault := fault_of(path))]
        yield pa.RecordBatch.from_arrays([pa.array(found, pa.string())], ["fault"])
