"""`df.write.format("crossdock")` and `writeStream`: executors send the rows of a frame as jobs of a bulk load.

Tasks may run again after a failure, and speculative tasks run twice. The server accepts each jid of a run once. Counts
come from the server, not from tasks. Without a named run, the server accepts each jid once over all runs.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from crossdock.client.bulk import Loader, LoadProgress
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.source.options import BadOption, Writing
from crossdock.pipeline.source.rows import Plan, chunks, plan

#: Local properties that Spark sets for the tasks of a micro-batch.
_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"


class RunClosed(PipelineError):
    """The run is closed and accepts no more jobs."""


@dataclass
class Sent(WriterCommitMessage):
    run: str
    rows: int  #: for information: a task that ran twice has sent them twice


def _checked(schema: StructType, options: Writing) -> Plan:
    return plan([(field.name, field.dataType.simpleString()) for field in schema.fields], options)


class Reporter:
    """Prints the server's count of the run after each `every` jobs of this task. Spark does not count for a Python
    sink, and the jobs that a task sent are not those that were accepted. A worker's stderr is in Spark's log."""

    def __init__(self, run: str, every: int) -> None:
        self._run = run
        self._every = every
        self._left = every

    def sent(self, progress: LoadProgress) -> None:
        self._left -= progress.new + progress.known
        if self._every and self._left <= 0:
            self._left = self._every
            self.report(progress)

    def report(self, progress: LoadProgress) -> None:
        again = f", {progress.total_known:,} skipped as known" if progress.total_known else ""
        print(f"crossdock: run {self._run}: {progress.total_new:,} jobs accepted{again}", file=sys.stderr, flush=True)


def _send(batches: Iterator[pa.RecordBatch], made: Plan, options: Writing, run: str) -> Sent:
    rows, once = 0, not options.run and not made.key
    with Loader(options.where, run, options.patience_s, Reporter(run, options.progress).sent, once=once) as loader:
        for batch in batches:
            for count, jobs in chunks(batch, made, run, options.chunk):
                loader.put(jobs)
                rows += count
        loader.drain()
        _refuse_ended(loader.ended, run, options)
    return Sent(run, rows)


def _refuse_ended(state: str, run: str, options: Writing) -> None:
    """Raises RunClosed if the run is closed, unless the option `closed` allows it, or if it has expired."""
    if state == "lapsed":
        raise RunClosed(
            f"run {run} was idle for a week, and the server no longer knows which of its jobs it has: find out with "
            "crossdock job list and the history, and write the others with another run; for a stream, use a new "
            "checkpoint"
        )
    if state == "closed" and options.closed == "fail":
        raise _closed(run)


def _closed(run: str) -> RunClosed:
    return RunClosed(
        f"run {run} is already closed, so none of these rows was accepted; name another run, or set "
        '.option("closed", "skip") to skip rows of a closed run'
    )


class Sink(DataSourceArrowWriter):
    """Writes a frame as one bulk load, closed when all tasks have finished. If the job fails, it stays open."""

    def __init__(self, schema: StructType, options: Writing) -> None:
        self._plan = _checked(schema, options)
        if self._plan.key and not options.run:
            raise BadOption(
                "option key needs option run: name the run, with the same name when the frame is written again, as in "
                '.option("run", "invoices-2026-11"), or give the frame a column jid'
            )
        self._run = options.run or f"spark-{uuid4()}"
        self._options = options
        # Raise before Spark starts a task if the server does not answer or the run is closed.
        with Loader(options.where, self._run) as loader:
            _refuse_ended(loader.loaded().state, self._run, options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        return _send(iterator, self._plan, self._options, self._run)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        with Loader(self._options.where, self._run, self._options.patience_s) as loader:
            progress = loader.finish()
        if self._options.progress:
            Reporter(self._run, 0).report(progress)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Accepted jobs stay. The same run may be sent again."""


class StreamSink(DataSourceStreamArrowWriter):
    """Writes a stream: one bulk load per micro-batch, named after the query and the micro-batch.

    If a micro-batch is repeated after its load was closed, all its jobs were accepted before. The option `run` is a
    prefix only: with a new checkpoint Spark counts micro-batches from 0 again.
    """

    def __init__(self, schema: StructType, options: Writing) -> None:
        self._options = options._replace(closed="skip")
        self._plan = _checked(schema, options)
        Loader(
            options.where, options.run or "spark"
        ).close()  # raises before Spark starts if the server does not answer

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        return _send(iterator, self._plan, self._options, self._load())

    def _load(self) -> str:
        context = TaskContext.get()
        query, batch = (context and context.getLocalProperty(name) for name in (_QUERY, _BATCH))
        if not query or not batch:
            raise PipelineError(
                "Spark does not pass the number of the micro-batch to its tasks; use Spark 4.2 or newer"
            )
        return "/".join(filter(None, (self._options.run, query, batch)))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        for run in {each.run for each in messages if isinstance(each, Sent)}:
            with Loader(self._options.where, run, self._options.patience_s) as loader:
                progress = loader.finish()
            if self._options.progress:
                Reporter(run, 0).report(progress)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Accepted jobs stay. The same micro-batch is sent again."""
