"""The lake: how many events a second its writer takes alone, and what it costs the server's load beside it."""

import gc
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

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
from crossdock.lake.journal_tail import Tail
from crossdock.lake.manifest import read_done
from crossdock.lake.writer import Writer
from crossdock.model.events import Leased, Pushed, Succeeded
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, encode_entry
from crossdock.model.job import Form, LeaseBinding, Spec
from crossdock.model.policies import Policy
from crossdock.model.states import State

#: Younger segments than by default: the process is there as soon as the load is, and finishes some during it.
_BUSY: Final = {"lake.on": "true", "lake.segment_s": "4"}
_OFF: Final = {"lake.on": "false"}

_PASSES: Final = 5

#: Jobs that one turn of a busy server pushes, leases and settles.
_TURN: Final = 20


class Beside(msgspec.Struct):
    """A run with the lake on."""

    run: Run
    behind: int  #: bytes, when the load ended
    caught_up_s: float


def lake(sizes: Sizes, folder: Path) -> list[Goal]:
    rate = _alone(max(sizes.jobs, 3_000) * 3, folder)
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
        Goal("events a second of the lake's writer alone", rate, "least", 150_000, form="{:,.0f}"),
        Goal("whole jobs/s with the lake / without", ratio, "least", 0.9),
        Goal("MiB that the lake was behind when the load ended, at most", behind, "most", 256.0, form="{:.0f}"),
    ]


def _alone(events: int, folder: Path) -> float:
    """The best of a few: CPU time, which other work on the machine makes longer, but never shorter."""
    pa.set_cpu_count(1)
    made = max((_once(events, folder) for _ in range(_PASSES)), key=lambda each: each[1])
    show(
        "The lake's writer alone, from a journal on disk, by CPU time of one thread",
        ("events", "events/s", "bytes an event"),
        [(f"{made[0]:,}", f"{made[1]:,.0f}", f"{made[2]:.1f}")],
        text=0,
    )
    return made[1]


def _once(events: int, folder: Path) -> tuple[int, float, float]:
    """Rows, rows a second, bytes a row."""
    with tempfile.TemporaryDirectory(prefix="crossdock-bench-", dir=folder) as own:
        journal = SqliteJournal(DataDir(Path(own)), "everysec")
        for batch in _batches(events):
            journal.append(batch)
        journal.close()
        tail = Tail(Path(own))
        writer = Writer(Path(own) / "lake", tail)
        gc.disable()
        began = time.process_time()
        for _ in writer.take(lambda: False):
            pass
        done = writer.publish()
        took = time.process_time() - began
        gc.enable()
        writer.close()
        tail.close()
        return done.rows, done.rows / took, done.bytes / done.rows


def _batches(events: int) -> Iterator[bytes]:
    random, at, number = Random(1), 1_794_765_345.0, 0
    policy = Policy(25)
    head = ("default", "SomeJob", "faktory", "faktory")
    while number * 3 < events:
        jobs = {number + n + 1: random.randbytes(12).hex() for n in range(_TURN)}
        number += _TURN
        batch: list[Pushed | Leased | Succeeded] = []
        for own, jid in jobs.items():
            spec = Spec(jid, *head[:2], b'["a",%d,{"x":%d}]' % (own, own), Form.JSON, 0, policy)
            batch.append(Pushed(at, own, "faktory", [spec]))
        for own, jid in jobs.items():
            job = (own, jid, *head, f"worker-{own % 64}", 1, 0, 24, own)
            leased = at + random.random()
            batch.append(Leased(leased, *job, 1.0, 2.0, leased - at, LeaseBinding.NOBODY))
            run_s = random.expovariate(10)
            batch.append(Succeeded(leased + run_s, *job, leased, leased - at, run_s, 0, State.GONE))
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
        load.step("phases", max(1, sizes.jobs // 20))  # its process is started when there is something to write
        server.wait_until(lambda: read_done(data / "lake") is not None, "lake")
        run = load.step("phases", sizes.jobs)
        ended = time.perf_counter()
        reader = SqliteReader(data)
        last, done = reader.newest, read_done(data / "lake")
        behind = reader.size_behind(done.last if done is not None else 0)
        reader.close()

        def caught_up() -> bool:
            done = read_done(data / "lake")
            return done is not None and done.last >= last

        server.wait_until(caught_up, "lake that has caught up")
        return Beside(run, behind, time.perf_counter() - ended)
