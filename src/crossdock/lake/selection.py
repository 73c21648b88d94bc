"""Finds the jobs of a person in the lake, by jid or by filter, for `crossdock lake erase`. Runs page by page."""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from crossdock.lake.event_rows.tables import date_named
from crossdock.lake.schema import EVENTS
from crossdock.lake.table import Lake, LakeFile
from crossdock.lake.verify import missing
from crossdock.model.clock import DAY
from crossdock.model.errors import Damaged

Progress = Callable[[str, int, int], None]

#: The jid of erased jobs.
ERASED: Final = "erased"

_SCHEMA: Final = pa.schema([(field.name, field.type) for field in EVENTS])
_HAS_NUMBER: Final = pc.is_valid(pc.field("number"))

#: Where `contains` looks.
_BYTES: Final = ("payload", "custom")
_TEXTS: Final = ("error_message", "backtrace", "detail")


class Which(NamedTuple):
    """Which jobs. Jobs match all fields that are set, and one of the jids if there are any."""

    jids: tuple[str, ...] = ()
    queue: str = ""  #: the job had an event in this queue, of this kind and within this time
    kind: str = ""
    since: float | None = None
    until: float | None = None
    tag: str = ""  #: the job had this tag at some time
    contains: str = ""  #: the payload, custom data, an error or a note had this text

    @property
    def by_filter(self) -> bool:
        return self._replace(jids=()) != Which()


class Chosen(NamedTuple):
    numbers: pa.Array  #: of the jobs, ascending
    jids: pa.Array  #: their jids, and jids of jobs that have no number yet
    unknown: list[str]  #: of the jids that were asked for


def choose(lake: Lake, which: Which, progress: Progress) -> Chosen:
    """Find the jobs that match, and the jobs that replay them, which have the same payloads. Raises Damaged."""
    files = lake.files()
    for fault in missing(lake, files):
        raise Damaged(f"the lake in {lake.location} is incomplete: {fault}")
    numbers, jids = _matching(lake, files, which, progress)
    asked = pa.array(which.jids, pa.string())
    jids = pc.unique(pa.concat_arrays([jids, asked])) if not which.by_filter else jids
    known = set(jids_of(lake, files, numbers, progress).to_pylist())
    unseen = jids
    while len(unseen):
        more, seen = _related(lake, files, unseen, progress)
        known |= seen
        added = more.filter(pc.invert(pc.is_in(more, numbers)))
        unseen = pc.unique(jids_of(lake, files, added, progress))
        known |= set(unseen.to_pylist())
        numbers = pa.concat_arrays([numbers, added])
    unknown = [jid for jid in which.jids if jid not in known]
    return Chosen(numbers.take(pc.sort_indices(numbers)), pa.array(sorted(known), pa.string()), unknown)


def _matching(lake: Lake, files: list[LakeFile], which: Which, progress: Progress) -> tuple[pa.Array, pa.Array]:
    """Numbers and jids. Tags and payloads are on some rows of a job only, so each condition is looked up by itself."""
    found: list[pa.Array] = []
    if which.jids:
        found.append(_numbers(lake, files, pc.field("jid").isin(pa.array(which.jids)), "jids", progress))
    event: ds.Expression | None = None
    for part in _event_conditions(which):
        event = part if event is None else event & part
    if event is not None:
        found.append(_numbers(lake, list(_during(files, which)), event, "events", progress))
    if which.tag:
        found.append(_by_rows(lake, files, ("tags",), lambda batch: _tagged(batch, which.tag), progress))
    if which.contains:
        spellings = spellings_of(which.contains)
        columns = (*_BYTES, *_TEXTS)
        found.append(_by_rows(lake, files, columns, lambda batch: _containing(batch, spellings), progress))
    numbers = found[0]
    for other in found[1:]:
        numbers = numbers.filter(pc.is_in(numbers, other))
    return numbers, jids_of(lake, files, numbers, progress)


def _event_conditions(which: Which) -> Iterator[ds.Expression]:
    for name, value in (("queue", which.queue), ("kind", which.kind)):
        if value:
            yield pc.field(name) == value
    if which.since is not None:
        yield pc.field("at") >= which.since
    if which.until is not None:
        yield pc.field("at") < which.until


def _during(files: Iterable[LakeFile], which: Which) -> Iterator[LakeFile]:
    first = "" if which.since is None else _day(which.since)
    last = "9999" if which.until is None else _day(which.until)
    return (file for file in files if first <= file.date <= last)


def spellings_of(text: str) -> list[bytes]:
    """The text as it may be written in JSON."""
    escaped = json.dumps(text)[1:-1]
    parts = escaped.split("\\u")
    upper = "\\u".join([parts[0], *(part[:4].upper() + part[4:] for part in parts[1:])])
    plain = json.dumps(text, ensure_ascii=False)[1:-1]
    return [each.encode("utf-8", "surrogatepass") for each in dict.fromkeys((text, plain, escaped, upper))]


def _tagged(batch: pa.RecordBatch, tag: str) -> pa.Array:
    tags = batch.column("tags")
    there = pc.equal(pc.list_flatten(tags), tag)
    rows = pc.unique(pc.list_parent_indices(tags).filter(there))
    return batch.column("number").take(rows)


def _containing(batch: pa.RecordBatch, spellings: list[bytes]) -> pa.Array:
    found = pa.array([False] * batch.num_rows)
    for name in (*_BYTES, *_TEXTS):
        column = batch.column(name)
        for each in spellings:
            found = pc.or_(found, pc.fill_null(pc.match_substring(column.cast(pa.binary()), each), False))
    return batch.column("number").filter(found)


def _by_rows(
    lake: Lake, files: list[LakeFile], columns: tuple[str, ...], pick: Callable[[pa.RecordBatch], pa.Array],
    progress: Progress,
) -> pa.Array:  # fmt: skip
    where: ds.Expression | None = None
    for name in columns:
        part = pc.is_valid(pc.field(name))
        where = part if where is None else where | part
    assert where is not None
    parts = [pa.array([], pa.int64())]
    for file in _with_progress(files, "looking for jobs", progress):
        parts += (pc.unique(pick(batch)) for batch in scan(lake, file, ("number", *columns), where & _HAS_NUMBER))
    return _distinct(parts)


def _numbers(lake: Lake, files: list[LakeFile], where: ds.Expression, what: str, progress: Progress) -> pa.Array:
    parts = [pa.array([], pa.int64())]
    for file in _with_progress(files, f"looking for {what}", progress):
        parts += (pc.unique(batch.column("number")) for batch in scan(lake, file, ("number",), where & _HAS_NUMBER))
    return _distinct(parts)


def jids_of(lake: Lake, files: list[LakeFile], numbers: pa.Array, progress: Progress) -> pa.Array:
    """All jids that these jobs ever had."""
    parts = [pa.array([], pa.string())]
    where = pc.field("number").isin(numbers) & pc.is_valid(pc.field("jid")) & (pc.field("jid") != ERASED)
    for file in _with_progress(may_have(lake, files, numbers), "looking up jids", progress):
        parts += (pc.unique(batch.column("jid")) for batch in scan(lake, file, ("jid",), where))
    return _distinct(parts)


def _related(lake: Lake, files: list[LakeFile], jids: pa.Array, progress: Progress) -> tuple[pa.Array, set[str]]:
    """Numbers of jobs that replay these, and those of the jids that a replay or a job without a number names."""
    replays: set[int] = set()
    seen: set[str] = set()
    where = pc.field("replayed_from").isin(jids) | (~_HAS_NUMBER & pc.field("jid").isin(jids))
    for file in _with_progress(files, "looking for replays", progress):
        for batch in scan(lake, file, ("number", "jid", "replayed_from"), where):
            for number, jid, original in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                seen.add(jid if number is None else original)
                if number is not None:
                    replays.add(number)
    return pa.array(sorted(replays), pa.int64()), seen


def may_have(lake: Lake, files: list[LakeFile], numbers: pa.Array) -> list[LakeFile]:
    """The files whose range of job numbers, by the log, has one of these. They are sorted in ascending order."""
    actions = pa.table(lake.table.get_add_actions(flatten=True))
    low, high = (
        actions.column(name).to_pylist() if name in actions.column_names else [None] * actions.num_rows
        for name in ("min.number", "max.number")
    )
    ranges = dict(zip(actions.column("path").to_pylist(), zip(low, high, strict=True), strict=True))
    ordered = numbers.take(pc.sort_indices(numbers))
    return [file for file in files if _meets(file, ordered, *ranges.get(file.path, (None, None)))]


def _meets(file: LakeFile, ordered: pa.Array, low: int | None, high: int | None) -> bool:
    if low is None or high is None:  # no row has a number, or another tool wrote the file without statistics
        return not file.first and bool(len(ordered))
    return any_between(ordered, low, high)


def any_between(ordered: pa.Array, low: int, high: int) -> bool:
    """Whether a sorted array has a number of this range. It is searched without numpy, which the server does not
    install."""
    at = bisect_left(ordered, low, key=lambda scalar: scalar.as_py())
    return bool(at < len(ordered) and ordered[at].as_py() <= high)


def scan(lake: Lake, file: LakeFile, columns: tuple[str, ...], where: ds.Expression) -> Iterator[pa.RecordBatch]:
    path, filesystem = lake.store.path(file.path)
    data: Any = ds.dataset(path, schema=_SCHEMA, format="parquet", filesystem=filesystem)
    for batch in data.to_batches(columns=list(columns), filter=where, batch_readahead=1, fragment_readahead=1):
        if batch.num_rows:
            yield batch


def _with_progress(files: list[LakeFile], what: str, progress: Progress) -> Iterator[LakeFile]:
    for done, file in enumerate(files):
        progress(what, done, len(files))
        yield file


def _distinct(parts: list[pa.Array]) -> pa.Array:
    found = pc.unique(pa.chunked_array(parts))
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _day(at: float) -> str:
    return date_named(int(at // DAY)).isoformat()
