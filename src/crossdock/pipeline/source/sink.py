"""`df.write.format("crossdock")` and `writeStream`: executors bring the rows of a frame as jobs of a load.

Tasks may die and run again, and speculative ones run twice: the server takes each jid of a run once. What was taken in
is asked of the server, never added up from tasks. Who names no run wants each jid once: whole programs run again, too.
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

from crossdock.client.bulk import Loader, Told
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.source.options import BadOption, Writing
from crossdock.pipeline.source.rows import Plan, chunks, plan

#: What Spark tells the tasks of a micro-batch.
_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"


class RunClosed(PipelineError):
    """The run was completed before, and takes in nothing more."""


@dataclass
class Sent(WriterCommitMessage):
    run: str
    rows: int  #: for information: a task that ran twice has sent them twice


def _checked(schema: StructType, options: Writing) -> Plan:
    return plan([(field.name, field.dataType.simpleString()) for field in schema.fields], options)


class Teller:
    """Says how far a run is, in the server's words, each so many jobs that this task has sent: Spark counts nothing for
    a Python sink, and what a task has sent is no measure of what was taken in. A worker's stderr is in Spark's log."""

    def __init__(self, run: str, every: int) -> None:
        self._run = run
        self._every = every
        self._left = every

    def heard(self, told: Told) -> None:
        self._left -= told.new + told.known
        if self._every and self._left <= 0:
            self._left = self._every
            self.tell(told)

    def tell(self, told: Told) -> None:
        again = f", {told.total_known:,} passed over as known" if told.total_known else ""
        print(f"crossdock: run {self._run}: {told.total_new:,} jobs taken in{again}", file=sys.stderr, flush=True)


def _send(batches: Iterator[pa.RecordBatch], made: Plan, options: Writing, run: str) -> Sent:
    rows, once = 0, not options.run and not made.key
    with Loader(options.where, run, options.patience_s, Teller(run, options.progress).heard, once=once) as loader:
        for batch in batches:
            for count, jobs in chunks(batch, made, run, options.chunk):
                loader.put(jobs)
                rows += count
        loader.drain()
        _refuse_ended(loader.ended, run, options)
    return Sent(run, rows)


def _refuse_ended(state: str, run: str, options: Writing) -> None:
    """What was completed may be passed over if that is asked for; of what was left alone nobody knows what came."""
    if state == "lapsed":
        raise RunClosed(
            f"run {run} was begun and then left alone for a week, and the server does not remember which of its jobs "
            "it has: find that out (crossdock job list, and history), and write the others under another run; a stream "
            "begins anew with another checkpoint"
        )
    if state == "closed" and options.closed == "fail":
        raise _closed(run)


def _closed(run: str) -> RunClosed:
    return RunClosed(
        f"run {run} was completed before, so none of these rows was taken in; name another run, or say "
        '.option("closed", "skip") if it is to happen once only'
    )


class Sink(DataSourceArrowWriter):
    """A batch: one load, closed when all tasks are through. If the job fails it stays open, to be gone on with."""

    def __init__(self, schema: StructType, options: Writing) -> None:
        self._plan = _checked(schema, options)
        if self._plan.key and not options.run:
            raise BadOption(
                "option key names rows within a run, and there is no option run: name the run, and it the same when "
                'this is written again, as in .option("run", "invoices-2026-11"), or give the frame a column jid'
            )
        self._run = options.run or f"spark-{uuid4()}"
        self._options = options
        # Who is not there, or has closed the run, is told before Spark starts a task.
        with Loader(options.where, self._run) as loader:
            _refuse_ended(loader.loaded().state, self._run, options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        return _send(iterator, self._plan, self._options, self._run)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        with Loader(self._options.where, self._run, self._options.patience_s) as loader:
            told = loader.finish()
        if self._options.progress:
            Teller(self._run, 0).tell(told)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """What was taken in stays; the same run may be sent again."""


class StreamSink(DataSourceStreamArrowWriter):
    """A stream: a load for each micro-batch, named by the query, which its checkpoint keeps, and the batch.

    A batch that is repeated after its load was closed was taken in whole before. A run is no more than a name before
    that: with a new checkpoint Spark counts from 0 again, and batch 0 is another one.
    """

    def __init__(self, schema: StructType, options: Writing) -> None:
        self._options = options._replace(closed="skip")
        self._plan = _checked(schema, options)
        Loader(options.where, options.run or "spark").close()  # raises, before Spark starts, if nobody is there

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        return _send(iterator, self._plan, self._options, self._load())

    def _load(self) -> str:
        context = TaskContext.get()
        query, batch = (context and context.getLocalProperty(name) for name in (_QUERY, _BATCH))
        if not query or not batch:
            raise PipelineError("Spark does not tell its tasks which micro-batch this is; use Spark 4.2 or newer")
        return "/".join(filter(None, (self._options.run, query, batch)))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        for run in {each.run for each in messages if isinstance(each, Sent)}:
            with Loader(self._options.where, run, self._options.patience_s) as loader:
                told = loader.finish()
            if self._options.progress:
                Teller(run, 0).tell(told)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """What was taken in stays; the same batch is sent again."""
