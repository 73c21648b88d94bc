"""A child process as the supervisor sees it: its pipes, its table of jobs, and how it ends."""

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Final

import msgspec

from crossdock.client.jobs import FetchedJob
from crossdock.worker import sandbox
from crossdock.worker.frames import (
    Assignment,
    BadFrame,
    FrameReader,
    Interrupt,
    Loaded,
    Message,
    NotLoaded,
    Order,
    Reason,
    Run,
    Stop,
    decode_message,
    frame,
)
from crossdock.worker.options import URL_VARIABLE, ChildOptions, WorkerOptions
from crossdock.worker.table import QUEUED, JobTable

#: How long the pipe of an ended process is read. Something that it started may hold the pipe open.
_LAST_REPORT_S: Final = 1.0
_CRASH_BYTES: Final = 64 * 1024
_CRASH_LINES: Final = 40


class HeldJob:
    """A leased job, from its fetch to its settlement."""

    __slots__ = ("child", "expires", "interrupted", "interrupted_at", "job", "lost", "row", "sent", "settling")

    def __init__(self, job: FetchedJob, expires: float) -> None:
        self.job = job
        self.expires = expires  #: end of its lease, by `time.monotonic`
        self.child: ChildProcess | None = None
        self.row = -1
        self.sent = 0.0  #: when it was given to the child
        self.lost = False  #: the lease is lost
        self.settling = False  #: its outcome is on the way to the server
        self.interrupted: Reason | None = None  #: why its task is to end
        self.interrupted_at = 0.0


class Phase(Enum):
    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"  #: it finishes its jobs, and another process takes its place
    ENDED = "ended"


class ChildProcess(asyncio.SubprocessProtocol):
    """`heard` is called with each message, and `ended` once, after the last of them."""

    def __init__(
        self,
        number: int,
        slots: int,
        rows: int,
        *,
        heard: Callable[["ChildProcess", Message], None],
        ended: Callable[["ChildProcess"], None],
    ) -> None:
        self.number = number
        self.slots = slots
        self.alone = False  #: it runs one suspect at a time
        self.phase = Phase.STARTING
        self.jobs: dict[int, HeldJob] = {}  #: by row
        self.given = 0  #: jobs so far
        self.started_at = time.monotonic()
        self.drain_by = 0.0  #: when a draining process is killed; 0: not draining
        self.why = ""  #: why the supervisor ended it
        self.loaded: Loaded | None = None
        self.not_loaded: NotLoaded | None = None
        self.returncode = 0
        self.folder: Path | None = None  #: its sandbox
        self._heard, self._ended = heard, ended
        self._free = list(range(rows - 1, -1, -1))
        self._frames = FrameReader()
        self._transport: asyncio.SubprocessTransport | None = None
        self._pipe_closed = self._exited = self._stopping = False
        self._paths: list[Path] = []
        self.table: JobTable

    async def start(self, options: WorkerOptions, run_folder: Path) -> None:
        """Raises OSError."""
        table, crash = (run_folder / f"{self.number}.{kind}" for kind in ("table", "crash"))
        self._paths = [table, crash]
        self.table = JobTable.create(table, len(self._free))
        if options.sandbox is not None:
            self.folder = sandbox.create(options.sandbox, os.getpid(), self.number)
        asked = ChildOptions(
            target=options.target,
            number=self.number,
            mode=options.mode,
            slots=self.slots,
            folder=str(options.folder),
            table=str(table),
            crash=str(crash),
            parent=os.getpid(),
            sandbox=str(self.folder or ""),
            log_level=options.log_level,
            log_format=options.log_format,
        )
        command = (sys.executable, "-m", "crossdock.worker.child", msgspec.json.encode(asked).decode())
        environment = dict(os.environ)
        if options.url:
            environment[URL_VARIABLE] = options.url
        await asyncio.get_running_loop().subprocess_exec(
            lambda: self,
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=None,
            env=environment,
            start_new_session=True,  # a terminal's Ctrl-C is for the supervisor only
        )

    # Jobs.

    @property
    def is_ready(self) -> bool:
        return self.phase is Phase.READY

    @property
    def pid(self) -> int:
        pid = None if self._transport is None else self._transport.get_pid()
        return pid or 0

    def assign(self, jobs: Iterable[HeldJob]) -> None:
        now, assignments = time.monotonic(), []
        for held in jobs:
            row = self._free.pop()
            self.table.enqueue(row)
            self.jobs[row] = held
            held.child, held.row, held.sent = self, row, now
            assignments.append(Assignment(row, held.job))
        self.given += len(assignments)
        self.send(Run(assignments))

    def release(self, row: int) -> HeldJob | None:
        """The child has reported the end of a job. None: the job was revoked before."""
        held = self.jobs.pop(row)
        self._free.append(row)
        if held.child is not self:
            return None
        held.child, held.row = None, -1
        return held

    def revoke(self, older_than_s: float = 0.0) -> list[HeldJob]:
        """Take back jobs that were not started. Their rows stay in use until the child reports them."""
        before = time.monotonic() - older_than_s
        found = [held for held in self.held if held.sent <= before and self.table.revoke(held.row)]
        for held in found:
            self._part_with(held)
        return found

    def revoke_one(self, held: HeldJob) -> bool:
        """Whether the job had not been started, and will not be."""
        if not self.table.revoke(held.row):
            return False
        self._part_with(held)
        return True

    def _part_with(self, held: HeldJob) -> None:
        self.jobs[held.row] = HeldJob(held.job, held.expires)  # a placeholder, which belongs to no child
        held.child, held.row = None, -1

    @property
    def held(self) -> list[HeldJob]:
        """The jobs that it has, without those that were revoked."""
        return [held for held in self.jobs.values() if held.child is self]

    def running_s(self, held: HeldJob, now: float) -> float | None:
        return self.table.running_s(held.row, now)

    @property
    def running(self) -> int:
        """Jobs that are running now."""
        return sum(held.child is self and self.table.state(held.row) != QUEUED for held in self.jobs.values())

    # Orders.

    def send(self, order: Order) -> None:
        pipe = None if self._transport is None or self._exited else self._transport.get_pipe_transport(0)
        if isinstance(pipe, asyncio.WriteTransport) and not pipe.is_closing():
            pipe.write(frame(order))

    def interrupt(self, held: HeldJob, reason: Reason) -> None:
        if held.interrupted is None or (reason == "timeout" and held.interrupted == "lost"):
            held.interrupted, held.interrupted_at = reason, time.monotonic()
            self.send(Interrupt(held.row, reason))

    def stop_when_idle(self) -> None:
        """End the process when it has no more jobs. Called whenever a draining process has reported."""
        if not self.jobs and not self._stopping:
            self._stopping = True
            self.send(Stop())

    def kill(self, why: str) -> None:
        self.why = self.why or why
        if self._transport is not None and not self._exited:
            with suppress(ProcessLookupError):
                self._transport.kill()

    def dump_stacks(self) -> None:
        if self._transport is not None and not self._exited and hasattr(signal, "SIGTTIN"):
            with suppress(ProcessLookupError):
                self._transport.send_signal(signal.SIGTTIN)

    # Its end.

    def crashed_thread(self) -> tuple[int | None, list[str]]:
        """The thread that a fatal signal hit, and the lines of the stacks; None: it is not known."""
        try:
            text = self._paths[1].read_bytes()[:_CRASH_BYTES].decode("utf-8", "replace")
        except (OSError, IndexError):
            return None, []
        found = re.search(r"^Current thread 0x([0-9a-f]+)", text, re.MULTILINE)
        return (int(found[1], 16) if found else None), text.splitlines()[:_CRASH_LINES]

    def forget(self) -> None:
        """Remove the files of an ended process."""
        if self._paths:
            self.table.close()
        for path in self._paths:
            path.unlink(missing_ok=True)
        self._paths = []
        if self.folder is not None:
            sandbox.remove(self.folder)

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.SubprocessTransport):
            self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if self.phase is Phase.ENDED:
            return
        try:
            for body in self._frames.feed(data):
                self._heard(self, decode_message(body))
        except (BadFrame, msgspec.DecodeError) as error:
            self.kill(f"its reports cannot be read: {error}")

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self._pipe_closed = True
            self._end_if_complete()

    def process_exited(self) -> None:
        self._exited = True
        code = None if self._transport is None else self._transport.get_returncode()
        self.returncode = -9 if code is None else code
        if not self._pipe_closed:
            asyncio.get_running_loop().call_later(_LAST_REPORT_S, self._end)
        self._end_if_complete()

    def _end_if_complete(self) -> None:
        if self._exited and self._pipe_closed:
            self._end()

    def _end(self) -> None:
        if self.phase is not Phase.ENDED:
            self.phase = Phase.ENDED
            if self._transport is not None:
                self._transport.close()
            self._ended(self)
