"""`crossdock pipeline stream`: the same, as segments come, by Structured Streaming.

The stream's rows are the names of new segments: its checkpoint says which have been handed on. What is done with them
is ingest.py's affair, and whether they are in the tables the ledger's: a batch that Spark repeats after a crash, or
all of them after the checkpoint is lost, is found to be there. So `run` and `stream` may take turns.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from crossdock.lake.manifest import EVENTS_FOLDER, expect
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.errors import PipelineError, cause
from crossdock.pipeline.ingest import Batch, take_in
from crossdock.pipeline.lock import writing
from crossdock.pipeline.refresh import refresh
from crossdock.pipeline.run import tidy

_FILES: Final = "path string, modificationTime timestamp, length long, content binary"
_TIDY_S: Final = 3_600.0
_LOOK_S: Final = 0.2


class Stream:
    """`every_s`: how often new segments are looked for; `refresh_s`: how often tables follow the facts."""

    def __init__(self, works: PipelineContext, *, every_s: float, refresh_s: float, wait_s: float = 600.0) -> None:
        self._works = works
        self._every_s, self._refresh_s, self._wait_s = every_s, refresh_s, wait_s
        self._turn = threading.Lock()  #: batches come in a thread of Spark's own
        self.heard: Callable[[Batch], None] = lambda batch: None

    def run(self, stop: threading.Event, *, checkpoint: Path | None = None) -> None:
        """Until told to stop, or the stream fails. Raises PipelineError."""
        works = self._works
        expect(works.lake)
        with self._turn, writing(works.tables_folder, self._wait_s):
            works.prepare()
        query = self._start(checkpoint or works.tables_folder / "_checkpoint")
        due, tidied = time.monotonic() + self._refresh_s, time.monotonic()
        try:
            while not stop.wait(_LOOK_S):
                if not query.isActive:
                    raise PipelineError(f"the stream ended: {cause(str(query.exception()))}")
                begun = time.monotonic()
                if begun >= due:
                    tidying = begun >= tidied + _TIDY_S
                    self._keep_up(tidying=tidying)
                    tidied = begun if tidying else tidied
                    # Never more than half of the time: a refresh of a large day may take longer than its turn.
                    now = time.monotonic()
                    due = now + max(self._refresh_s, now - begun)
        finally:
            query.stop()
        self._keep_up(tidying=False)

    def _start(self, checkpoint: Path) -> StreamingQuery:
        names = (
            self._works.spark.readStream.format("binaryFile")
            .schema(_FILES)
            .option("recursiveFileLookup", True)
            .option("pathGlobFilter", "*.parquet")
            .option("maxFileAge", "36500d")  # by default a segment a week older than the newest is passed over
            .load(str(self._works.lake / EVENTS_FOLDER))
            .select("path")
        )
        writer = names.writeStream.foreachBatch(self._batch).option("checkpointLocation", str(checkpoint))
        return writer.trigger(processingTime=f"{self._every_s} seconds").start()

    def _batch(self, names: DataFrame, number: int) -> None:
        """Whatever is new is taken in, so the names need not be asked for; in the thread of the stream."""
        with self._turn, writing(self._works.tables_folder, self._wait_s):
            self._take_in()

    def _take_in(self) -> None:
        self._works.ledger.load()
        while batch := take_in(self._works):
            self.heard(batch)

    def _keep_up(self, *, tidying: bool) -> None:
        works = self._works
        with self._turn, writing(works.tables_folder, self._wait_s):
            self._take_in()  # a name may be seen before the lake says that it counts
            refresh(works)
            if tidying:
                tidy(works)
