"""Measures the events per second of the lake's writer, and the cost of the lake for the server."""

import gc
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa

from bench.driver import Driver
from bench.figures import Run, whole
from bench.rounds import tell
from bench.servers import Crossdock
from bench.sizes import Sizes
from bench.table import Goal, show
from crossdock.journal.data_dir import DataDir
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.journal.sqlite.reader import SqliteReader
from crossdock.lake.drafts import Drafts
from crossdock.lake.event_rows.tables import Tables
from crossdock.lake.journal_tail import Tail
from crossdock.lake.location import read_position
from crossdock.lake.writer import Writer
from crossdock.model.events import Leased, Pushed, Succeeded
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, encode_entry
from crossdock.model.job import Form, LeaseBinding, Spec
from crossdock.model.policies import Policy
from crossdock.model.states import State

#: Segments are closed sooner than by default, so that the writer finishes some during the load.
_BUSY: Final = {"lake.on": "true", "lake.segment_s": "4"}
_OFF: Final = {"lake.on": "false"}

_PASSES: Final = 5

#: Rows of a segment of a busy server.
_SEGMENT: Final = 100_000

#: Jobs that one group commit of a busy server pushes, leases and settles.
_JOBS_PER_COMMIT: Final = 20


class Beside(msgspec.Struct):
    """A run with the lake on."""

    run: Run
    behind: int  #: bytes of journal not yet in the lake when the load ended
    caught_up_s: float


def lake(sizes: Sizes, folder: Path) -> list[Goal]:
    alone, plain = _alone(max(sizes.jobs * 3, 3 * _SEGMENT), folder)
    off: list[float] = []
    on: list[Beside] = []
    for number in range(1, sizes.runs + 1):
        off.append(whole(_without(sizes, folder)))
        on.append(_beside(sizes, folder))
        tell(f"run {number} of {sizes.runs}: off {off[-1]:,.0f}/s, on {whole(on[-1].run):,.0f}/s")
    ratio = statistics.median(whole(each.run) / without for each, without in zip(on, off, strict=True))
    behind = max(each.behind for each in on) / 1024 / 1024
    show(
        f"The lake beside {sizes.connections[0]} connections, {sizes.jobs:,} whole jobs, median of {sizes.runs}",
        ("", "whole jobs/s", "MiB behind at the end", "seconds to catch up"),
        [
            ("lake off", f"{statistics.median(off):,.0f}", "-", "-"),
            (
                "lake on",
                f"{statistics.median(whole(each.run) for each in on):,.0f}",
                f"{statistics.median(each.behind for each in on) / 1024 / 1024:.1f}",
                f"{statistics.median(each.caught_up_s for each in on):.1f}",
            ),
        ],
    )
    return [
        Goal("events a second of the lake's writer alone", alone.rate, "least", 150_000, form="{:,.0f}"),
        Goal("CPU of the lake's writer / of the same Parquet files", plain.rate / alone.rate, "most", 1.25),
        Goal("MiB of memory of the lake's writer", alone.peak / 1024 / 1024, "most", 256.0, form="{:.0f}"),
        Goal("whole jobs/s with the lake / without", ratio, "least", 0.9),
        Goal("MiB that the lake was behind when the load ended, at most", behind, "most", 256.0, form="{:.0f}"),
    ]


class Alone(NamedTuple):
    """The writer alone, in a process of its own."""

    events: int
    cpu_s: float
    bytes: int
    peak: int  #: bytes of memory at most

    @property
    def rate(self) -> float:
        return self.events / self.cpu_s


def _alone(events: int, folder: Path) -> tuple[Alone, Alone]:
    """With commits, and the same Parquet files without. The best of several runs of each, one after the other: other
    work on the machine can only increase CPU time."""
    with tempfile.TemporaryDirectory(prefix="crossdock-bench-", dir=folder) as own:
        journal = SqliteJournal(DataDir(Path(own)), "everysec")
        for batch in _batches(events):
            journal.append(batch)
        journal.close()
        made: dict[bool, list[Alone]] = {True: [], False: []}
        for _ in range(_PASSES):
            for commits in (True, False):
                # A new process each time, because memory is measured too.
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                    made[commits].append(pool.submit(_once, Path(own), commits).result())
    lake, plain = (max(made[commits], key=lambda each: each.rate) for commits in (True, False))
    show(
        f"The lake's writer alone, {_SEGMENT:,} rows a segment, from a journal on disk, by CPU time of one thread",
        ("", "events", "events/s", "µs an event", "bytes an event", "MiB at most"),
        [
            (name, f"{each.events:,}", f"{each.rate:,.0f}", f"{each.cpu_s / each.events * 1e6:.2f}",
             f"{each.bytes / each.events:.1f}", f"{each.peak / 1024 / 1024:.0f}")
            for name, each in (("Delta table", lake), ("Parquet files alone", plain))
        ],
    )  # fmt: skip
    return lake, plain


def _once(data: Path, commits: bool) -> Alone:
    pa.set_cpu_count(1)
    pa.set_memory_pool(pa.system_memory_pool())  # as the exporter does
    gc.disable()
    with tempfile.TemporaryDirectory(dir=data) as own:
        tail = Tail(data)
        events, size, spent = _committed(Path(own), tail) if commits else _plain(Path(own), tail)
        tail.close()
    return Alone(events, spent, size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def _committed(own: Path, tail: Tail) -> tuple[int, int, float]:
    writer = Writer(own / "lake", own, tail)
    began = time.process_time()
    before = -1
    while writer.read != before:
        before = writer.read
        for _ in writer.take(lambda: writer.rows >= _SEGMENT):
            pass
        writer.publish()
    spent = time.process_time() - began
    files = writer.lake.files()
    writer.close()
    return sum(file.rows for file in files), sum(file.bytes for file in files), spent


def _plain(own: Path, tail: Tail) -> tuple[int, int, float]:
    """The same segments, without a log."""
    drafts = Drafts(own)
    drafts.server = "bench"
    began = time.process_time()
    size = rows = first = 0
    tables = Tables(drafts.take)

    def cut(last: int) -> int:
        tables.cut()
        for each in drafts.finish("bench", first + 1, last):
            path = own / each.segment.path
            path.parent.mkdir(exist_ok=True)
            os.rename(each.draft, path)
        return sum(path.stat().st_size for path in own.rglob("*.parquet"))

    for seq, entry in tail.read(0):
        tables.add(seq, entry)
        if tables.rows - rows >= _SEGMENT:
            cut(seq)
            rows, first = tables.rows, seq
    size = cut(tail.last)
    return tables.rows, size, time.process_time() - began


def _batches(events: int) -> Iterator[bytes]:
    random, at, number = Random(1), 1_794_765_345.0, 0
    policy = Policy(25)
    head = ("default", "SomeJob", "faktory", "faktory")
    while number * 3 < events:
        jobs = {number + n + 1: random.randbytes(12).hex() for n in range(_JOBS_PER_COMMIT)}
        number += _JOBS_PER_COMMIT
        batch: list[Pushed | Leased | Succeeded] = []
        for own, jid in jobs.items():
            spec = Spec(jid, *head[:2], b'["a",%d,{"x":%d}]' % (own, own), Form.JSON, 0, policy)
            batch.append(Pushed(at, own, "faktory", [spec]))
        for own, jid in jobs.items():
            job = (own, jid, *head, f"worker-{own % 64}", 1, 0, 24, own)
            leased = at + random.random()
            batch.append(Leased(leased, *job, 1.0, 2.0, leased - at, LeaseBinding.UNBOUND))
            run_s = random.expovariate(10)
            closing = (*job, leased, leased - at, run_s, 0)
            batch.append(Succeeded(leased + run_s, *closing, State.GONE, pushed_at=at))
        at += 0.002
        yield encode_entry(JournalEntry(EVENT_VERSION, at, 1.0, list(batch)))


def _without(sizes: Sizes, folder: Path) -> Run:
    with (
        tempfile.TemporaryDirectory(prefix="crossdock-bench-", dir=folder) as own,
        Crossdock(Path(own), settings=_OFF) as server,
        Driver(server.target, sizes.connections[0]) as load,
    ):
        return load.step("phases", sizes.jobs)


def _beside(sizes: Sizes, folder: Path) -> Beside:
    with (
        tempfile.TemporaryDirectory(prefix="crossdock-bench-", dir=folder) as own,
        Crossdock(Path(own), settings=_BUSY) as server,
        Driver(server.target, sizes.connections[0]) as load,
    ):
        data = Path(own) / "data"
        load.step("phases", max(1, sizes.jobs // 20))  # the server starts the writer when there is something to write
        server.wait_until(lambda: _position(data) > 0, "lake")
        run = load.step("phases", sizes.jobs)
        ended = time.perf_counter()
        reader = SqliteReader(data)
        last = reader.newest
        behind = reader.size_behind(_position(data))
        reader.close()
        server.wait_until(lambda: _position(data) >= last, "lake that has caught up")
        return Beside(run, behind, time.perf_counter() - ended)


def _position(data: Path) -> int:
    found = read_position(data, data / "lake")
    return 0 if found is None else found.last
