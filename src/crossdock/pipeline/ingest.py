"""From new segments to facts: one batch after the other, each exactly once, whatever ends the process in between."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from crossdock.lake.segments import damage
from crossdock.pipeline.catalog import FACTS, Fact
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.ledger import BATCH
from crossdock.pipeline.segments import Segment, faulty, new, survey

#: A batch is no larger than this, so that there is progress to see and little to repeat.
FILES: Final = 2_000
BYTES: Final = 1 << 30


class Batch(NamedTuple):
    number: int
    segments: int
    rows: int
    faults: int


def take_in(works: PipelineContext) -> Batch | None:
    """Finish the batch that was begun, or make one of new segments; None: there are none."""
    finished = finish(works)
    if finished is not None:
        return finished
    ledger = works.ledger
    seen = survey(works.lake, ledger.segments)
    segments = list(_checked(works, _portion(new(seen, ledger.known))))
    if not segments or seen.done is None:
        return None
    number = ledger.record(seen.done.lake, segments)
    _give(works, number, _lacking(works))
    sound = [each for each in segments if not each.fault]
    return Batch(number, len(sound), sum(each.rows for each in sound), len(segments) - len(sound))


def finish(works: PipelineContext) -> Batch | None:
    """Give the newest batch to every table that does not have it yet; None: all have it.

    It was broken off, and its files may have changed since: they are checked again, and while no table has any of it,
    it goes on without those. Raises PipelineError.
    """
    lacking = _lacking(works)
    if not lacking:
        return None
    ledger = works.ledger
    faults = faulty(works.lake, ledger.of_batch(ledger.newest))
    if faults and len(lacking) < len(FACTS):
        raise PipelineError(
            f"some tables have batch {ledger.newest}, and the others cannot get it from {works.lake / faults[0].name}: "
            f"{faults[0].fault}. Put it back from a copy of the lake; if there is none, move {works.tables_folder} "
            "away and run `crossdock pipeline run`, which makes all tables anew of what is there"
        )
    ledger.set_aside(faults)
    _give(works, ledger.newest, lacking)
    sound = ledger.of_batch(ledger.newest)
    return Batch(ledger.newest, len(sound), sum(each.rows for each in sound), 0)  # the next look finds what is faulty


def _lacking(works: PipelineContext) -> list[Fact]:
    """Those tables that do not have the newest batch. Raises PipelineError if they are not of this ledger."""
    batch, lacking = works.ledger.newest, []
    for fact in FACTS:
        has = max(works.catalog[fact.name].version(BATCH), 0)
        if has < batch - 1:
            raise PipelineError(
                f"the table {fact.name} ends with batch {has} and the ledger with {batch}: "
                "run `crossdock pipeline rebuild`, which makes all tables anew from the lake"
            )
        if has > batch:  # what the new ledger calls a batch the table would take for one that it has
            raise PipelineError(
                f"the table {fact.name} ends with batch {has} and the ledger with {batch}, which is not its own: move "
                f"{works.tables_folder} away and run `crossdock pipeline run`; it makes all tables anew from the lake"
            )
        if has < batch:
            lacking.append(fact)
    return lacking


def _give(works: PipelineContext, batch: int, lacking: list[Fact]) -> None:
    """Spark writes them side by side, since none has work for all processors all the time; then they are committed,
    always in this order."""
    stem, events = f"b{batch:08d}", works.events(works.ledger.of_batch(batch))
    works.progress(f"batch {batch}: reading", 0, len(lacking))
    tables = [works.catalog[fact.name] for fact in lacking]
    # A stream that is stopped ends its jobs by the properties of its thread, so these have them, too.
    inheriting = inheritable_thread_target(works.spark)
    with ThreadPoolExecutor(len(FACTS)) as pool:
        staging = [
            pool.submit(inheriting(table.stage), _rows(fact, events), stem)
            for fact, table in zip(lacking, tables, strict=True)
        ]
    for done, (table, staged) in enumerate(zip(tables, staging, strict=True)):
        works.progress(f"batch {batch}: {table.name}", done, len(tables))
        table.commit(staged.result(), stem, done=(BATCH, batch))


def _rows(fact: Fact, events: DataFrame) -> DataFrame:
    rows = fact.of(events)
    return rows if fact.merge is None else rows.repartition(F.col("date"))


def _checked(works: PipelineContext, segments: list[Segment]) -> Iterator[Segment]:
    """Spark reads a page whatever its checksum says. One that was found to be damaged before is not told of again."""
    for at, each in enumerate(segments):
        works.progress("checking segments", at, len(segments))
        why = each.fault or damage(works.lake / each.name)
        known = works.ledger.known.get(each.name)
        if known is None or not why or known.fault != why:
            yield each._replace(fault=why)


def _portion(segments: list[Segment]) -> list[Segment]:
    size = 0
    for index, each in enumerate(segments):
        size += each.bytes
        if index and (index >= FILES or size > BYTES):
            return segments[:index]
    return segments
