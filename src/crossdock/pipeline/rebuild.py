"""Rebuilds all tables from the events in the lakes.

The new rows are written beside the old ones, chunk by chunk, and one commit per table replaces the old files. Rows of
dates that a lake has deleted (`lake.keep_days`) cannot be computed again, so they are kept. Files that were left out
because they were damaged are used if they are sound again.
"""

import datetime as dt
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.transaction import AddAction

from crossdock.lake.table import Lake
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.ingest import Ingested, Staged, stage
from crossdock.pipeline.lakes import skipped_paths, use_again
from crossdock.pipeline.planning import Range, SourceFile
from crossdock.pipeline.schemas.appended import ROLLUPS, ROW_LEVEL
from crossdock.pipeline.segment_checks import fault_of
from crossdock.pipeline.tables import Position, Table

#: Events per chunk, which limits the memory of the driver.
CHUNK_ROWS: Final = 5_000_000


def rebuild(context: PipelineContext, lakes: Sequence[Lake]) -> Ingested:
    """Raises PipelineError. Then all tables are as before."""
    wanted = (*ROW_LEVEL, *ROLLUPS)
    handles = {schema.name: context.tables[schema.name].handle() for schema in wanted}
    staged: Staged = {schema.name: [] for schema in wanted}
    files = rows = 0
    left_out = {lake.id: _left_out(context, lake) for lake in lakes}
    for lake in lakes:
        for chunk in _chunks(lake, left_out[lake.id]):
            for name, actions in stage(context, [chunk], wanted).items():
                staged[name] += [action for action in actions if not _has_expired(action, lake)]
            files += len(chunk.files)
            rows += sum(file.rows for file in chunk.files)
    positions = {lake.id: Position(lake.version, lake.last) for lake in lakes}
    for done, schema in enumerate(wanted):
        context.progress("committing", done, len(wanted))
        table, handle = context.tables[schema.name], handles[schema.name]
        kept = _kept(table, handle, lakes)
        table.commit(
            handle,
            [*staged[schema.name], *(table.write(kept) if kept.num_rows else [])],
            replaced=table.files(handle=handle),
            positions=positions,
        )
    for lake in lakes:
        use_again(context.tables, lake.id, skipped_paths(context.tables, lake.id) - left_out[lake.id])
    return Ingested(files, rows)


def _left_out(context: PipelineContext, lake: Lake) -> set[str]:
    """Files of the lake that were left out and are still damaged."""
    there = {file.path for file in lake.files()}
    skipped = skipped_paths(context.tables, lake.id) & there
    return {path for path in skipped if fault_of(f"{lake.location}/{path}")}


def _chunks(lake: Lake, left_out: Collection[str]) -> Iterator[Range]:
    found = [
        SourceFile(f"{lake.location}/{file.path}", file.rows, file.first, file.last, file.linked)
        for file in lake.files()
        if file.path not in left_out
    ]
    chunk: list[SourceFile] = []
    for file in found:
        if chunk and sum(each.rows for each in chunk) + file.rows > CHUNK_ROWS:
            yield _range(lake, chunk)
            chunk = []
        chunk.append(file)
    if chunk:
        yield _range(lake, chunk)


def _range(lake: Lake, files: list[SourceFile]) -> Range:
    return Range(lake.id, Position(-1, -1), Position(lake.version, lake.last), files)


def _has_expired(action: AddAction, lake: Lake) -> bool:
    return bool(lake.expired) and (action.partition_values["date"] or "") <= lake.expired


def _kept(table: Table, handle: DeltaTable, lakes: Sequence[Lake]) -> pa.Table:
    """Rows of dates that their lake has deleted, and rows of lakes that are not rebuilt."""
    engine = QueryBuilder().register("old", handle)
    conditions = [f"server NOT IN ({', '.join(_text(lake.server) for lake in lakes)})"]
    for lake in lakes:
        if lake.expired:
            day = dt.date.fromisoformat(lake.expired)
            conditions.append(f"(server = {_text(lake.server)} AND date <= DATE '{day.isoformat()}')")
    rows = pa.table(engine.execute(f"SELECT * FROM old WHERE {' OR '.join(conditions)}").read_all())
    return rows.select(table.schema.names).cast(table.schema.arrow)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
