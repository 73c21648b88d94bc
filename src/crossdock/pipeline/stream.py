"""The stream that feeds the tables, with Structured Streaming: for `crossdock pipeline run` and `stream`.

Each lake is a stream of the names of its new files (`readStream.format("crossdock")`). A micro-batch says up to which
version of each lake the tables are to be brought, and the batch reads the files natively, with pruning. `run` is the
same query with the trigger `availableNow`: its end is fixed when it starts.

The checkpoint of Spark says which versions were passed on. The tables say which are in them (tables.py), and they
decide: a micro-batch that Spark repeats after a crash finds its versions there, and a lost checkpoint costs nothing.
"""

import json
import threading
import time
from collections.abc import Callable, Sequence
from functools import reduce
from hashlib import sha256
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from crossdock.lake.table import Lake
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.environment import spark_path
from crossdock.pipeline.errors import PipelineError, cause
from crossdock.pipeline.ingest import Ingested
from crossdock.pipeline.lakes import KnownLake
from crossdock.pipeline.lock import writing
from crossdock.pipeline.planning import BATCH_ROWS, Lost, lost, positions
from crossdock.pipeline.run import RunSettings, refresh_all, take, tidy
from crossdock.pipeline.source.source import FORMAT, register
from crossdock.pipeline.storage import Storage

_TIDY_S: Final = 3_600.0
_LOOK_S: Final = 0.2


class Stream:
    """Brings the tables up to date with these lakes. `heard` is called after each micro-batch, and
    `missing` before one that leaves out events because a lake has deleted them."""

    def __init__(
        self,
        context: PipelineContext,
        lakes: Sequence[KnownLake],
        settings: RunSettings,
        *,
        wait_s: float = 600.0,
        heard: Callable[[Ingested], None] = lambda made: None,
        missing: Callable[[Lost], None] = lambda lost: None,
    ) -> None:
        self._context = context
        self._lakes = lakes
        self._settings = settings
        self._wait_s = wait_s
        self._heard = heard
        self._missing = missing
        self._busy = threading.Lock()  #: micro-batches run in a thread of Spark
        self._failed: BaseException | None = None  #: what a micro-batch raised; Spark would only pass on its text

    def available(self) -> None:
        """Ingest what the lakes have now. Raises PipelineError."""
        query = self._start(availableNow=True)
        try:
            query.awaitTermination()
        except StreamingQueryException:
            pass  # what the micro-batch raised says more
        except KeyboardInterrupt:
            query.stop()
            raise
        self._expect_sound(query)

    def run(self, stop: threading.Event, *, every_s: float, refresh_s: float) -> None:
        """Ingest files as they appear, until `stop` is set. Views are refreshed every `refresh_s`. Raises
        PipelineError."""
        query = self._start(processingTime=f"{every_s} seconds")
        due, tidied = time.monotonic() + refresh_s, time.monotonic()
        try:
            while not stop.wait(_LOOK_S):
                self._expect_sound(query)
                begun = time.monotonic()
                if begun >= due:
                    self._refresh(tidying=begun >= tidied + _TIDY_S)
                    tidied = begun if begun >= tidied + _TIDY_S else tidied
                    # Refreshes take at most half of the time, even if one takes longer than the interval.
                    now = time.monotonic()
                    due = now + max(refresh_s, now - begun)
        finally:
            query.stop()
        self._refresh(tidying=False)

    def _start(self, **trigger: bool | str) -> StreamingQuery:
        spark, tables = self._context.spark, self._context.tables
        register(spark)
        frames = []
        for lake in self._lakes:
            # After a crash some tables may lack the newest batch. Its files make a micro-batch, which completes them.
            after = min(positions(tables, lake.id).values()).version
            options = {"what": "files", "lake": lake.location, "rows": str(BATCH_ROWS), "lost": "skip"}
            options["after"] = str(max(after, 0))
            frames.append(spark.readStream.format(FORMAT).options(**options).load().select("lake", "version"))
        names = reduce(DataFrame.unionAll, frames)
        writer = names.writeStream.foreachBatch(self._batch).option(
            "checkpointLocation", spark_path(self._checkpoint())
        )
        return writer.trigger(**trigger).start()  # type: ignore[arg-type]

    def _checkpoint(self) -> str:
        """The folder of Spark's checkpoint. One that is ahead of the tables, for example because they were restored
        from a copy, is deleted: Spark would not pass on the files between."""
        # Spark refuses a checkpoint of other sources, so each set of lakes has its own.
        known = sha256("\n".join(sorted(lake.id for lake in self._lakes)).encode()).hexdigest()[:16]
        tables, folder = self._context.tables, f"_checkpoint/{known}"
        storage = Storage(tables.location.rstrip("/"))
        passed = _newest_offsets(storage, folder)
        if passed is None or any(entry > min(positions(tables, lake).values()).entry for lake, entry in passed.items()):
            storage.remove(folder)
        return f"{storage.location}/{folder}"

    def _batch(self, names: DataFrame, number: int) -> None:
        """Runs in a thread of Spark."""
        try:
            upto: dict[str, int] = {}
            for row in names.collect():
                upto[row.lake] = max(upto.get(row.lake, 0), row.version)
            if not upto:
                return
            with self._busy, writing(self._context.tables.location, self._wait_s):
                lakes = [Lake.open(each.location) for each in self._lakes]
                for each in lost(self._context.tables, lakes):
                    self._missing(each)
                for made in take(self._context, lakes, upto):
                    self._heard(made)
        except BaseException as error:
            self._failed = error
            raise

    def _refresh(self, *, tidying: bool) -> None:
        context = self._context
        with self._busy, writing(context.tables.location, self._wait_s):
            refresh_all(context.tables, self._settings, context.progress)
            if tidying:
                lakes = [Lake.open(each.location) for each in self._lakes]
                tidy(context.tables, lakes, self._settings, context.progress)

    def _expect_sound(self, query: StreamingQuery) -> None:
        if query.isActive:
            return
        if self._failed is not None:
            raise self._failed
        if (error := query.exception()) is not None:
            raise PipelineError(f"the stream ended: {cause(str(error))}")


def _newest_offsets(storage: Storage, folder: str) -> dict[str, int] | None:
    """The journal entry of each lake up to which a checkpoint has passed on files. None: it is damaged."""
    found = [path for path, _ in storage.list(f"{folder}/offsets") if path.rpartition("/")[2].isdigit()]
    if not found:
        return {}
    try:
        with storage.open(max(found, key=lambda path: int(path.rpartition("/")[2]))) as source:
            lines = source.read().splitlines()[2:]  # after the version of the format and the settings of the query
        offsets = [json.loads(line) for line in lines if line != b"-"]  # -: nothing yet
        return {offset["lake"]: offset["entry"] for offset in offsets}
    except (ValueError, KeyError, TypeError):
        return None
