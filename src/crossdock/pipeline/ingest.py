"""From new segments to facts: one batch after the other, each exactly once, whatever ends the process in between."""

from typing import Final, NamedTuple

from pyspark.sql import functions as F

from crossdock.pipeline.catalog import FACTS
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.ledger import BATCH
from crossdock.pipeline.segments import Segment, new, survey
from crossdock.pipeline.works import Works

#: A batch is no larger than this, so that there is progress to see and little to repeat.
FILES: Final = 2_000
BYTES: Final = 1 << 30


class Batch(NamedTuple):
    number: int
    segments: int
    rows: int
    faults: int


def take_in(works: Works) -> Batch | None:
    """Finish the batch that was begun, then make one of new segments; None: there are none."""
    finish(works)
    ledger = works.ledger
    seen = survey(works.lake, ledger.segments)
    segments = _portion(new(seen, ledger.known))
    if not segments or seen.done is None:
        return None
    number = ledger.record(seen.done.lake, segments)
    finish(works)
    sound = [each for each in segments if not each.fault]
    return Batch(number, len(sound), sum(each.rows for each in sound), len(segments) - len(sound))


def finish(works: Works) -> None:
    """Give the newest batch to every table that does not have it yet."""
    batch = works.ledger.newest
    for done, fact in enumerate(FACTS):
        table = works.catalog[fact.name]
        has = max(table.version(BATCH), 0)
        if has < batch - 1:
            raise PipelineError(
                f"the table {fact.name} ends with batch {has} and the ledger with {batch}: "
                "run `crossdock pipeline rebuild`, which makes all tables anew from the lake"
            )
        if has < batch:
            works.progress(f"batch {batch}: {fact.name}", done, len(FACTS))
            rows = fact.of(works.events(works.ledger.of_batch(batch)))
            if fact.merge is not None:
                rows = rows.repartition(F.col("date"))
            table.write(rows, f"b{batch:08d}", done=(BATCH, batch))


def _portion(segments: list[Segment]) -> list[Segment]:
    size = 0
    for index, each in enumerate(segments):
        size += each.bytes
        if index and (index >= FILES or size > BYTES):
            return segments[:index]
    return segments
