"""Measures the cost of special jobs against plain jobs: `python -m bench.batches`.

In this process, request lines go to a Faktory session, its commands to the engine, and the events to the encoder of the
journal. There is no socket and no disk, so the ratios are larger than those of a whole server. The two sides alternate
in slices of a thousand jobs, and processor time is counted.

Pushes are also measured on a server: 64 connections with one request in flight each. The sides alternate every 4,000
pushes.
"""

import argparse
import asyncio
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence, Sized
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from random import Random
from typing import Final, TypeVar

import uvloop

from bench.lane import Lane, Phase
from bench.replies import exactly
from bench.servers import Crossdock
from bench.table import Goal, show, show_goals
from bench.target import connect
from crossdock.engine.engine import Engine
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Command, Ticked
from crossdock.model.events import AnyEvent
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, encode_entry
from crossdock.protocols.base import Grant
from crossdock.protocols.channels import Channels
from crossdock.protocols.faktory.protocol import FaktoryProtocol
from crossdock.protocols.faktory.session import FaktorySession
from crossdock.server.static_config import schedules
from crossdock.settings.schema import CronEntry, CronJob, Settings

T = TypeVar("T")

SLICE: Final = 1_000
COMMANDS_PER_ENTRY: Final = 64  #: commands whose events make one journal entry
CRON: Final = 10_000

LANES: Final = 64
AT_A_SERVER: Final = 4_000
CUSTOMS: Final = {
    "plain": ',"custom":{"comment":3600}',
    "unique": ',"custom":{"unique_for":3600}',
}


class Services:
    """The services of a server that a session needs, without sockets."""

    def __init__(self) -> None:
        self.state = EngineState()
        self.ticked = Ticked()
        self.now = Now(time.time(), 1_000.0)
        self.channels = Channels()
        self.engine = Engine(self.state, Random(1))
        self._events: list[AnyEvent] = []
        self._commands = 0

    def do(self, command: Command[T]) -> T:
        events, outcome, _ = self.engine.execute(command, self.now)
        self._events += events
        self._commands += 1
        if self._commands % COMMANDS_PER_ENTRY == 0:
            encode_entry(JournalEntry(EVENT_VERSION, self.now.wall, self.now.steady, self._events))
            self._events = []
            self.now = Now(self.now.wall + 0.001, self.now.steady + 0.001)
        return outcome

    def held_up(self) -> float:
        return 0.0

    @property
    def waiting(self) -> Sized:
        return ()

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    def publish(self, channel: bytes, text: bytes, *, to_patterns: bool = True) -> int:
        return self.channels.publish(channel, text, to_patterns=to_patterns)

    def no_room(self, jobs: int) -> str | None:
        return None


class Side:
    """One side of the comparison: a session on its own engine, and the time it took."""

    def __init__(self) -> None:
        self.dispatcher = Services()
        self.session: FaktorySession = FaktoryProtocol().session(self.dispatcher, lambda: None)
        self.say(b'HELLO {"v":2,"wid":"bench"}')
        self.seconds = 0.0

    def say(self, line: bytes) -> bytes:
        answer = self.session.handle(line)
        if isinstance(answer, Grant):
            return answer.reply
        if not isinstance(answer, bytes) or answer.startswith(b"-"):
            raise RuntimeError(f"{line!r} was answered by {answer!r}")
        return answer

    def work(self, lines: Sequence[bytes]) -> None:
        handle = self.session.handle
        began = time.process_time()
        answers = [handle(line) for line in lines]
        self.seconds += time.process_time() - began
        for line, answer in zip(lines, answers, strict=True):
            if isinstance(answer, Grant):
                continue
            if not isinstance(answer, bytes) or answer.startswith((b"-", b"$-1")):
                raise RuntimeError(f"{line!r} was answered by {answer!r}")


def push(n: int, custom: str = "") -> bytes:
    return f'PUSH {{"jid":"job-{n:08d}","jobtype":"work","args":[{n},"some text"]{custom}}}'.encode()


def settle(n: int) -> list[bytes]:
    return [b"FETCH default", f'ACK {{"jid":"job-{n:08d}"}}'.encode()]


def taking_turns(jobs: int, *sides: tuple[Side, Callable[[int], list[bytes]]]) -> None:
    """Send the lines of both sides in slices. The side that begins changes with every slice."""
    for first in range(0, jobs, SLICE):
        order = sides if first // SLICE % 2 else sides[::-1]
        for side, lines in order:
            slice_of_lines = [line for n in range(first, min(first + SLICE, jobs)) for line in lines(n)]
            side.work(slice_of_lines)


def batch_against_plain(jobs: int) -> dict[str, tuple[float, float]]:
    """Seconds for a batch and for plain jobs: adding, settling, and everything including the callback."""
    batch, plain = Side(), Side()
    new = b'BATCH NEW {"success":{"jobtype":"done","args":[],"queue":"calls"}}'
    began = time.process_time()
    bid = batch.say(new).split(b"\r\n")[1].decode()
    opened = time.process_time() - began
    custom = f',"custom":{{"bid":"{bid}"}}'
    taking_turns(jobs, (batch, lambda n: [push(n, custom)]), (plain, lambda n: [push(n)]))
    adding = batch.seconds, plain.seconds
    began = time.process_time()
    batch.say(f"BATCH COMMIT {bid}".encode())
    committed = time.process_time() - began
    taking_turns(jobs, (batch, settle), (plain, settle))
    settling = batch.seconds - adding[0], plain.seconds - adding[1]
    began = time.process_time()
    called = batch.say(b"FETCH calls")
    batch.say(b'ACK {"jid":"%b"}' % called.split(b'"jid":"')[1].split(b'"')[0])
    callback = time.process_time() - began
    group = batch.dispatcher.state.batches[bid]
    if (group.total, group.pending, group.answered) != (jobs, 0, group.called):
        raise RuntimeError(f"the batch ended with {group}")
    return {
        "adding": adding,
        "settling": settling,
        "all": (batch.seconds + opened + committed + callback, plain.seconds),
    }


def unique_against_plain(jobs: int) -> tuple[float, float]:
    unique, plain = Side(), Side()
    taking_turns(jobs, (unique, lambda n: [push(n, CUSTOMS["unique"])]), (plain, lambda n: [push(n, CUSTOMS["plain"])]))
    if len(unique.dispatcher.state.locks) != jobs:
        raise RuntimeError(f"{len(unique.dispatcher.state.locks)} locks for {jobs} jobs")
    return unique.seconds, plain.seconds


def idle_cron(jobs: int) -> tuple[float, float, float]:
    """Seconds to set up all entries, and for plain jobs with a timer check after each, with and without the entries."""
    crowded, alone = Side(), Side()
    entry = CronJob("cron")
    entries = [CronEntry(f"{n % 60} {n % 24} 1 1 *", entry, f"entry {n}") for n in range(CRON)]
    began = time.process_time()
    crowded.dispatcher.do(schedules(Settings(cron=entries)))
    set_up = time.process_time() - began

    def ask(side: Side) -> None:
        began = time.process_time()
        for _ in range(SLICE):
            side.dispatcher.engine.due_in(side.dispatcher.now)
        side.seconds += time.process_time() - began

    for side in (crowded, alone):
        side.work([push(jobs)])
        side.say(b"FETCH default")  # both sides then have a timer
    for first in range(0, jobs, SLICE):
        for side in (crowded, alone) if first // SLICE % 2 else (alone, crowded):
            lines = [line for n in range(first, first + SLICE) for line in (push(n), *settle(n))]
            side.work(lines)
            ask(side)
    if crowded.dispatcher.state.counters.number != alone.dispatcher.state.counters.number:
        raise RuntimeError("a cron entry ran")
    return set_up, crowded.seconds, alone.seconds


async def _pushes(server: Crossdock, slices: int) -> dict[str, float]:
    """Pushes per second of each kind: the median of its slices."""
    loop = asyncio.get_running_loop()
    made = [await loop.create_connection(Lane, sock=connect(server.target)) for _ in range(LANES)]
    lanes = [lane for _, lane in made]
    seconds: dict[str, list[float]] = {kind: [] for kind in CUSTOMS}
    numbers = iter(range(slices * AT_A_SERVER * len(CUSTOMS)))
    for turn in range(slices):
        for kind in sorted(CUSTOMS, reverse=bool(turn % 2)):
            lines = [push(next(numbers), CUSTOMS[kind]) + b"\r\n" for _ in range(AT_A_SERVER)]
            seconds[kind].append(await Phase(lines, exactly(b"+OK\r\n")).run(lanes))
    for transport, _ in made:
        transport.abort()
    await asyncio.sleep(0)  # let the connections close: uvloop does not end while any is open
    return {kind: AT_A_SERVER / statistics.median(took) for kind, took in seconds.items()}


def pushes_at_a_server(slices: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=".") as folder, Crossdock(Path(folder).resolve()) as server:
        return uvloop.run(_pushes(server, slices))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.batches", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--jobs", type=int, default=100_000, help="jobs of the batch [%(default)s]")
    parser.add_argument("--runs", type=int, default=5, help="number of runs; the median is used [%(default)s]")
    given = parser.parse_args(arguments)
    batches = [batch_against_plain(given.jobs) for _ in range(given.runs)]
    uniques = [unique_against_plain(given.jobs) for _ in range(given.runs)]
    at_a_server = pushes_at_a_server(8 * given.runs)
    crons = [idle_cron(given.jobs // 5) for _ in range(given.runs)]
    rows = []
    for what in ("adding", "settling", "all"):
        special, plain = (statistics.median(run[what][i] for run in batches) * 1e6 / given.jobs for i in (0, 1))
        rows.append((f"batch: {what}", f"{special:.2f}", f"{plain:.2f}", f"{special / plain:.2f}"))
    special, plain = (statistics.median(run[i] for run in uniques) * 1e6 / given.jobs for i in (0, 1))
    rows.append(("unique: push", f"{special:.2f}", f"{plain:.2f}", f"{special / plain:.2f}"))
    crowded, alone = (statistics.median(run[i] for run in crons) * 1e6 / (given.jobs // 5) for i in (1, 2))
    rows.append((f"{CRON:,} idle cron entries", f"{crowded:.2f}", f"{alone:.2f}", f"{crowded / alone:.2f}"))
    show("Microseconds a job", ("what", "special", "plain", "ratio"), rows)
    print("\npushes per second on a server: " + ", ".join(f"{kind} {rate:,.0f}" for kind, rate in at_a_server.items()))
    print(f"{CRON:,} cron entries set up in {statistics.median(run[0] for run in crons):.2f} s at the start")
    goals = [
        Goal("a batch against plain jobs, cost", statistics.median(_ratio(run["all"]) for run in batches), "most", 1.3),
        Goal("unique pushes at a server, of plain ones", at_a_server["unique"] / at_a_server["plain"], "least", 0.8),
        Goal("idle cron entries, cost", statistics.median(_ratio(run[1:]) for run in crons), "most", 1.05),
    ]
    show_goals(goals)
    return 1 if any(goal.verdict() == "missed" for goal in goals) else 0


def _ratio(times: Sequence[float]) -> float:
    return times[0] / times[1]


if __name__ == "__main__":
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # as the server does
    sys.exit(main())
