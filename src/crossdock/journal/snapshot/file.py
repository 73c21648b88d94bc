"""Snapshot files: the whole state in one file, so that recovery need not read the journal from its beginning.

    header   magic, then a block: format, event version, entry number, wall, steady
    blocks   length, CRC, msgpack: chunks of jobs in columns, then the records
    footer   a block with the number of jobs

Every block is checked when it is read. A file without its footer is incomplete.
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
from crossdock.engine.index.once import AT_MOST, KEEP_S, OncePushes
from crossdock.engine.index.queue import Queue
from crossdock.engine.index.rates import RateIndex
from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.keyspace.store import Stored
from crossdock.engine.qless.settings import obey
from crossdock.engine.records.stats import QueueDay, Stats
from crossdock.engine.state import Counters, EngineState, Lock
from crossdock.journal.files import write_whole
from crossdock.journal.snapshot import resqu as snapshot_resqu
from crossdock.journal.snapshot.columns import Columns, chunks, pack, unpack
from crossdock.journal.snapshot.index_builder import IndexBuilder
from crossdock.journal.snapshot.resqu import ResquRecords
from crossdock.model import stats_retention
from crossdock.model.commands.bulk import BulkLoad
from crossdock.model.errors import Damaged, Newer
from crossdock.model.events import Audited
from crossdock.model.events.codec import EVENT_VERSION
from crossdock.model.job import Job, Number, SortKey
from crossdock.model.policies import Ending
from crossdock.model.records import Batch, Interval, Outcome, Pause, Progress, Rate, Schedule, Throttle

_MAGIC: Final = b"crossdock snapshot\n"
_FORMAT: Final = 1
_BLOCK: Final = struct.Struct("<II")


class Header(msgspec.Struct, array_like=True, frozen=True):
    format: int
    version: int
    seq: int
    wall: float
    steady: float
    jobs: int


class Versions(msgspec.Struct, array_like=True, frozen=True):
    """The first fields of a header, which every format has."""

    format: int
    version: int


def _refuse(found: Versions, by: str = "") -> None:
    if found.format > _FORMAT:
        raise Newer("the snapshot's format", found.format, _FORMAT, by)
    if found.version > EVENT_VERSION:
        raise Newer("the snapshot, of event version", found.version, EVENT_VERSION, by)


class Records(msgspec.Struct, array_like=True, frozen=True):
    """All of the state except the jobs."""

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
    unlisted: list[str] = []  #: queues that are not listed, though they hold something
    first_t: dict[str, float] = {}  #: caller's time of the first use of a queue, where it differs from `first_seen`
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
    resqu: ResquRecords = ResquRecords()
    loads: list[BulkLoad] = []
    stats_gone: dict[str, tuple[float, float]] = {}
    once: dict[bytes, float] = {}
    unresolved: list[tuple[Number, Ending, PostponedDependents]] = []
    owed: dict[str, tuple[int, float]] = {}
    pauses: dict[str, Pause] = {}  #: of the paused queues
    audit: list[Audited] = []
    once_pushes: dict[str, float] = {}
    once_terms: tuple[float, int] = (KEEP_S, AT_MOST)  #: seconds, number
    outcomes: dict[str, Outcome] = {}
    rates: list[Rate] = []


class Footer(msgspec.Struct, array_like=True, frozen=True):
    jobs: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Columns).decode


def write(path: Path, state: EngineState, seq: int, wall: float, steady: float, leave: int = 0) -> int:
    """Write a snapshot and return its size. `leave` as in `write_whole`."""
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
        Records(
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
            given=state.workers.leases,
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
            resqu=snapshot_resqu.pack(state),
            loads=list(state.loads.by_run.values()),
            stats_gone=state.stats.gone,
            once=state.loads.once,
            unresolved=[(*key, each) for key, each in state.unresolved.items()],
            owed=state.owed,
            pauses={queue.name: queue.pause for queue in state.queues.values() if queue.pause is not None},
            audit=list(state.audit),
            once_pushes=state.once.jids,
            once_terms=(state.once.keep_s, state.once.at_most),
            outcomes=state.outcomes,
            rates=state.rate_index.in_order(),
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


def verify(path: Path) -> None:
    """Read the file back and check every block, without building the state. Raises Damaged."""
    try:
        with path.open("rb") as file:
            file.seek(len(_MAGIC))
            end = os.fstat(file.fileno()).st_size
            while file.tell() < end:
                _read(file)
    except (OSError, struct.error) as error:
        raise Damaged(f"snapshot {path} cannot be read: {error}") from error


def refuse_newer(path: Path, by: str = "") -> None:
    """Raises Newer if a newer Crossdock wrote the snapshot. A file that cannot be read passes: loading it reports the
    damage."""
    with suppress(OSError, msgspec.MsgspecError, struct.error), path.open("rb") as file:
        if file.read(len(_MAGIC)) == _MAGIC:
            try:
                block = _read(file)
            except Damaged:
                return
            _refuse(msgspec.msgpack.decode(block, type=Versions), by)


def _load(file: BinaryIO) -> Loaded:
    if file.read(len(_MAGIC)) != _MAGIC:
        raise Damaged("it is not a snapshot")
    block = _read(file)
    _refuse(msgspec.msgpack.decode(block, type=Versions))
    header = msgspec.msgpack.decode(block, type=Header)
    state = EngineState()
    indexes = IndexBuilder(state)
    left = header.jobs
    while left > 0:
        jobs = _unpack(_read(file), state)
        left -= len(jobs)
        indexes.add(jobs)
    records = msgspec.msgpack.decode(_read(file), type=Records)
    if msgspec.msgpack.decode(_read(file), type=Footer).jobs != len(state.jobs):
        raise Damaged("the number of jobs differs from its footer")
    state.counters = records.counters
    state.stats = Stats(records.stats, records.stats_gone, *stats_retention.of(records.config))
    unlisted = frozenset(records.unlisted)
    # A snapshot that does not have `pauses` does not say since when a queue is paused.
    state.queues = {
        name: Queue(
            name,
            seen,
            records.pauses.get(name, Pause(records.counters.at)) if paused else None,
            name not in unlisted,
            records.first_t.get(name),
        )
        for name, seen, paused in records.queues
    }
    _restore_records(state, records)
    snapshot_resqu.restore(state, records.resqu)
    indexes.build()
    snapshot_resqu.restore_lanes(state, records.resqu)
    return Loaded(state, header.seq, header.wall, header.steady)


def _restore_records(state: EngineState, records: Records) -> None:
    state.locks = records.locks
    state.lock_ends = SortedList(
        (lock.end, lock.holder, name) for name, lock in records.locks.items() if lock.end < inf
    )
    state.batches = {group.name: group for group in records.batches}
    state.batch_ends = SortedList((group.end, group.name) for group in records.batches)
    state.progress = records.progress
    state.progress_ends = SortedList((track.until, jid) for jid, track in records.progress.items() if track.until < inf)
    state.once = OncePushes(*records.once_terms, records.once_pushes)
    state.outcomes = records.outcomes
    state.outcome_ends = SortedList((each.until, jid) for jid, each in records.outcomes.items() if each.until < inf)
    state.throttles = {throttle.name: throttle for throttle in records.throttles}
    state.configured = [throttle.name for throttle in records.throttles if throttle.queue]
    for throttle in records.throttles:
        for jid, t in throttle.pending.items():
            lists.pend(state, throttle.name, t, jid)
    state.schedules = {each.name: each for each in records.schedules}
    state.next_runs = SortedList((each.next, each.name) for each in records.schedules)
    state.keys.restore(records.keys)
    state.keys.changes = records.key_changes
    state.scripts = records.scripts
    state.tags.restore(records.tags, records.uses, state.jobs)
    state.workers.seen, state.workers.leases = records.seen, records.given
    state.qless.stale_listings.restore(records.stale_failed, records.stale_done)
    state.qless.stray_entries.add(records.stray_locks, records.stray_work, records.stray_depends)
    state.qless.watched = records.watched
    state.qless.config = records.config
    obey(state)
    state.loads.restore(records.loads, records.once)
    state.owed = records.owed
    state.audit.extend(records.audit)
    state.rates.update((rate.key, rate) for rate in records.rates)
    state.rate_index = RateIndex(state.rates)
    state.unresolved = {(number, ending): each for number, ending, each in records.unresolved}
    for each in records.intervals:
        state.qless.intervals[each.jid] = each
        state.lazy.recur(each)


def _unpack(data: bytes, state: EngineState) -> list[Job]:
    try:
        return unpack(_decode(data), state.share)
    except (LookupError, ValueError) as error:
        raise Damaged(f"its columns do not match: {error}") from error


def _read(file: BinaryIO) -> bytes:
    head = file.read(_BLOCK.size)
    size, crc = _BLOCK.unpack(head)
    # A damaged length must not allocate memory.
    data = file.read(size) if size <= os.fstat(file.fileno()).st_size else b""
    if len(data) != size:
        raise Damaged("it ends too early")
    if zlib.crc32(data) != crc:
        raise Damaged(f"the block that ends at byte {file.tell()} fails its checksum")
    return data
