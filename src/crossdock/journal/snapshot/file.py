"""Snapshots: the whole state in one plain file, so that recovery need not read the journal from its beginning.

    header   magic, then a block: format, event version, seq, wall, steady
    blocks   length, CRC, msgpack: chunks of jobs in columns, then the rest of the state
    footer   a block that counts the jobs

Every block is checked while it is read; a file without its footer was never finished.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from crossdock.engine.index import lists
from crossdock.engine.index.dependents import PostponedDependents
from crossdock.engine.index.lazy_deadlines import ByCaller
from crossdock.engine.index.queue import Queue
from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.keyspace.store import Stored
from crossdock.engine.qless.settings import obey
from crossdock.engine.records.stats import QueueDay, Stats
from crossdock.engine.state import Counters, EngineState, Lock
from crossdock.journal.files import write_whole
from crossdock.journal.snapshot import resqu as snapshot_resqu
from crossdock.journal.snapshot.columns import Columns, chunks, pack, unpack
from crossdock.journal.snapshot.index_builder import Shelving
from crossdock.journal.snapshot.resqu import Kept
from crossdock.model import stats_retention
from crossdock.model.commands.bulk import BulkLoad
from crossdock.model.errors import Damaged, Newer
from crossdock.model.events.codec import EVENT_VERSION
from crossdock.model.job import Job, Number, SortKey
from crossdock.model.policies import Ending
from crossdock.model.records import Batch, Interval, Progress, Schedule, Throttle

_MAGIC: Final = b"crossdock snapshot\n"
_FORMAT: Final = 3
_ROWS: Final = 2  #: up to this format jobs were written one by one; 1 had places of four elements
_BLOCK: Final = struct.Struct("<II")
_SORT_KEY: Final = Job.__struct_fields__.index("sort_key")


class Header(msgspec.Struct, array_like=True, frozen=True):
    format: int
    version: int
    seq: int
    wall: float
    steady: float
    jobs: int


class Versions(msgspec.Struct, array_like=True, frozen=True):
    """The beginning of a header, of whatever format."""

    format: int
    version: int


def _refuse(found: Versions, by: str = "") -> None:
    if found.format > _FORMAT:
        raise Newer("the snapshot's format", found.format, _FORMAT, by)
    if found.version > EVENT_VERSION:
        raise Newer("the snapshot, of event version", found.version, EVENT_VERSION, by)


class Rest(msgspec.Struct, array_like=True, frozen=True):
    """What is not a job."""

    counters: Counters
    queues: list[tuple[str, float, bool]]
    stats: dict[str, dict[int, QueueDay]]
    locks: dict[str, Lock] = {}
    batches: list[Batch] = []
    progress: dict[str, Progress] = {}
    throttles: list[Throttle] = []
    schedules: list[Schedule] = []
    keys: list[Stored] = []
    key_changes: int = 0
    scripts: dict[str, str] = {}
    unlisted: list[str] = []  #: queues that hold something and are not known
    first_t: dict[str, float] = {}  #: of queues whose first caller had a clock of his own
    tags: dict[str, dict[Number, float]] = {}
    uses: dict[str, int] = {}
    seen: dict[str, float] = {}
    given: dict[str, dict[str, float]] = {}
    watched: dict[str, float] = {}
    config: dict[str, str] = {}
    intervals: list[Interval] = []
    stale_failed: list[tuple[str, int, Number]] = []
    stale_done: list[tuple[float, str, Number]] = []
    stray_locks: list[tuple[str, ByCaller]] = []
    stray_work: list[tuple[str, SortKey]] = []
    stray_depends: list[tuple[str, ByCaller]] = []
    resqu: Kept = Kept()
    loads: list[BulkLoad] = []
    once: dict[bytes, float] = {}  #: by wall: of an older snapshot
    stats_gone: dict[str, tuple[float, float]] = {}
    once_steady: dict[bytes, float] = {}
    unresolved: list[tuple[Number, Ending, PostponedDependents]] = []
    owed: dict[str, tuple[int, float]] = {}


class Footer(msgspec.Struct, array_like=True, frozen=True):
    jobs: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Columns).decode
_decode_rows = msgspec.msgpack.Decoder(list[Job]).decode


def write(path: Path, state: EngineState, seq: int, wall: float, steady: float, leave: int = 0) -> int:
    """`leave` as in `write_whole`."""
    header = Header(
        format=_FORMAT,
        version=EVENT_VERSION,
        seq=seq,
        wall=wall,
        steady=steady,
        jobs=len(state.jobs),
    )
    return write_whole(path, _blocks(state, header), leave)


def _blocks(state: EngineState, header: Header) -> Iterator[bytes]:
    yield _MAGIC + _block(header)
    for chunk in chunks(state.jobs.values()):
        yield _block(pack(chunk))
    queues = [(queue.name, queue.first_seen, queue.paused) for queue in state.queues.values()]
    yield _block(
        Rest(
            counters=state.counters,
            queues=queues,
            stats=state.stats.days,
            locks=state.locks,
            batches=list(state.batches.values()),
            progress=state.progress,
            throttles=list(state.throttles.values()),
            schedules=list(state.schedules.values()),
            keys=state.keys.stored(),
            key_changes=state.keys.changes,
            scripts=state.scripts,
            unlisted=[queue.name for queue in state.queues.values() if not queue.listed],
            first_t={queue.name: queue.first_t for queue in state.queues.values() if queue.first_t != queue.first_seen},
            tags=state.tags.since,
            uses=state.tags.uses,
            seen=state.workers.seen,
            given=state.workers.given,
            watched=state.qless.watched,
            config=state.qless.config,
            intervals=list(state.qless.intervals.values()),
            stale_failed=list(state.qless.stale_listings.failed),
            stale_done=list(state.qless.stale_listings.done),
            stray_locks=[(queue, each) for queue, order in state.qless.stray_entries.locks.items() for each in order],
            stray_work=[(queue, each) for queue, order in state.qless.stray_entries.work.items() for each in order],
            stray_depends=[
                (queue, each) for queue, order in state.qless.stray_entries.depends.items() for each in order
            ],
            resqu=snapshot_resqu.keep(state),
            loads=list(state.loads.by_run.values()),
            stats_gone=state.stats.gone,
            once_steady=state.loads.once,
            unresolved=[(*key, each) for key, each in state.unresolved.items()],
            owed=state.owed,
        )
    )
    yield _block(Footer(len(state.jobs)))


def _block(value: object) -> bytes:
    data = _encode(value)
    return _BLOCK.pack(len(data), zlib.crc32(data)) + data


class Loaded(msgspec.Struct):
    state: EngineState
    seq: int
    wall: float
    steady: float


def load(path: Path) -> Loaded:
    try:
        with path.open("rb") as file:
            return _load(file)
    except (OSError, msgspec.MsgspecError, struct.error) as error:
        raise Damaged(f"snapshot {path} cannot be read: {error}; restore a backup") from error
    except Newer:
        raise
    except Damaged as error:
        raise Damaged(f"snapshot {path}: {error}; restore a backup") from error


def refuse_newer(path: Path, by: str = "") -> None:
    """Raises Newer. One that cannot be read passes: loading it says what is wrong."""
    with suppress(OSError, msgspec.MsgspecError, struct.error), path.open("rb") as file:
        if file.read(len(_MAGIC)) == _MAGIC:
            try:
                block = _read(file)
            except Damaged:
                return
            _refuse(msgspec.msgpack.decode(block, type=Versions), by)


def _load(file: BinaryIO) -> Loaded:
    if file.read(len(_MAGIC)) != _MAGIC:
        raise Damaged("does not begin like a snapshot")
    block = _read(file)
    _refuse(msgspec.msgpack.decode(block, type=Versions))
    header = msgspec.msgpack.decode(block, type=Header)
    state = EngineState()
    shelving = Shelving(state)
    left = header.jobs
    while left > 0:
        jobs = _unpack(_read(file), header.format, state)
        left -= len(jobs)
        shelving.know(jobs)
    rest = msgspec.msgpack.decode(_read(file), type=Rest)
    if msgspec.msgpack.decode(_read(file), type=Footer).jobs != len(state.jobs):
        raise Damaged("holds another number of jobs than it says")
    state.counters = rest.counters
    state.stats = Stats(rest.stats, rest.stats_gone, *stats_retention.of(rest.config))
    unlisted = frozenset(rest.unlisted)
    state.queues = {
        name: Queue(name, seen, paused, name not in unlisted, rest.first_t.get(name))
        for name, seen, paused in rest.queues
    }
    _records(state, rest, header)
    snapshot_resqu.restore(state, rest.resqu)
    shelving.stand()
    snapshot_resqu.restore_turns(state, rest.resqu)
    return Loaded(state, header.seq, header.wall, header.steady)


def _records(state: EngineState, rest: Rest, header: Header) -> None:
    state.locks = rest.locks
    state.lock_ends = SortedList((lock.end, lock.holder, name) for name, lock in rest.locks.items() if lock.end < inf)
    state.batches = {group.name: group for group in rest.batches}
    state.batch_ends = SortedList((group.end, group.name) for group in rest.batches)
    state.progress = rest.progress
    state.progress_ends = SortedList((track.until, jid) for jid, track in rest.progress.items() if track.until < inf)
    state.throttles = {throttle.name: throttle for throttle in rest.throttles}
    state.configured = [throttle.name for throttle in rest.throttles if throttle.queue]
    for throttle in rest.throttles:
        for jid, t in throttle.pending.items():
            lists.pend(state, throttle.name, t, jid)
    state.schedules = {each.name: each for each in rest.schedules}
    state.next_runs = SortedList((each.next, each.name) for each in rest.schedules)
    state.keys.restore(rest.keys)
    state.keys.changes = rest.key_changes
    state.scripts = rest.scripts
    state.tags.restore(rest.tags, rest.uses, state.jobs)
    state.workers.seen, state.workers.given = rest.seen, rest.given
    state.qless.stale_listings.restore(rest.stale_failed, rest.stale_done)
    state.qless.stray_entries.add(rest.stray_locks, rest.stray_work, rest.stray_depends)
    state.qless.watched = rest.watched
    state.qless.config = rest.config
    obey(state)
    once = {each: header.steady + min(0.0, at - header.wall) for each, at in rest.once.items()}
    state.loads.restore(rest.loads, rest.once_steady or once)
    state.owed = rest.owed
    state.unresolved = {(number, ending): each for number, ending, each in rest.unresolved}
    for each in rest.intervals:
        state.qless.intervals[each.jid] = each
        state.lazy.recur(each)


def _unpack(data: bytes, form: int, state: EngineState) -> list[Job]:
    try:
        columns = _decode(data) if form > _ROWS else pack(_decode_rows(data if form == _ROWS else _with_ties(data)))
        return unpack(columns, state.share)
    except (LookupError, ValueError) as error:
        raise Damaged(f"columns that do not fit each other: {error}") from error


def _with_ties(data: bytes) -> bytes:
    """Jobs of format 1: their places come without the tie that only qless' jobs have."""
    jobs = msgspec.msgpack.decode(data)
    for job in jobs:
        if job[_SORT_KEY] is not None:
            job[_SORT_KEY].insert(3, b"")
    return _encode(jobs)


def _read(file: BinaryIO) -> bytes:
    head = file.read(_BLOCK.size)
    size, crc = _BLOCK.unpack(head)
    # A length that lies must not be allocated for.
    data = file.read(size) if size <= os.fstat(file.fileno()).st_size else b""
    if len(data) != size:
        raise Damaged("ends too early")
    if zlib.crc32(data) != crc:
        raise Damaged(f"fails a checksum before byte {file.tell()}")
    return data
