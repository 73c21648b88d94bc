"""The supervisor: fetches jobs, gives them to child processes, renews their leases and reports their outcomes.

It runs no task and imports none of the user's modules, so nothing that a task does can stop it. Everything happens on
one event loop.
"""

import asyncio
import logging
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from crossdock import logs
from crossdock.app.foreign import kinds_of
from crossdock.client.address import parse_url
from crossdock.client.aio import AsyncClient
from crossdock.client.errors import ClientError, Unsupported, WrongPassword
from crossdock.client.jobs import FetchedJob
from crossdock.model.errors import CrossdockError
from crossdock.worker import sandbox, status
from crossdock.worker.blame import settlement_of_lost
from crossdock.worker.frames import (
    Failed,
    Interrupted,
    Loaded,
    NotLoaded,
    Outcome,
    Progress,
    Snoozed,
    Succeeded,
    Sync,
)
from crossdock.worker.leases import Renewer
from crossdock.worker.memory import rss_bytes
from crossdock.worker.options import WorkerOptions
from crossdock.worker.pool import Pool
from crossdock.worker.process import ChildProcess, HeldJob, Phase
from crossdock.worker.queues import QueueOrder, WeightedQueue, interleave
from crossdock.worker.reload import SourceWatcher
from crossdock.worker.settling import Ack, Fail, Settler, Snooze
from crossdock.worker.signals import install, signals_text

log: Final = logging.getLogger("crossdock.worker")

FETCH_WAIT_S: Final = 1.0  #: a worker that stops waits for the reply, because its jobs are leased
FETCH_AT_MOST: Final = 1_000
BEAT_S: Final = 5.0
_TICK_S: Final = 0.1
_MEMORY_S: Final = 1.0
_RELOAD_S: Final = 0.5
_STALLED_S: Final = 1.0  #: jobs that wait in a process for longer are given back
_TIMEOUT_GRACE_S: Final = 2.0  #: how long a task may take to end after its timeout
_STOP_S: Final = 2.0  #: how long tasks may take to end after an interrupt, when the worker stops
_LAST_REPORTS_S: Final = 10.0
_RETRY_S: Final = (0.1, 0.3, 1.0, 2.0, 5.0)
#: Processes that may fail to start before the worker gives up.
_STARTS_AT_MOST: Final = 3

RUNNING, QUIET, TERMINATING = "running", "quiet", "terminating"


class WorkerFailed(CrossdockError):
    """The worker cannot work. The text says why, and what to do."""


class Supervisor:
    def __init__(self, options: WorkerOptions) -> None:
        self._options = options
        self._wid = secrets.token_hex(8)
        self._state = RUNNING
        self._held: dict[str, HeldJob] = {}
        self._loaded: Loaded | None = None
        self._room = asyncio.Event()
        self._over = asyncio.Event()
        self._problem = ""
        self._fatal = ""
        self._stop_by = 0.0
        self._reached_at = 0.0
        self._unreachable = False
        self._synced: str = ""
        self._latest_progress: dict[str, Progress] = {}
        self._progress_wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.done = self.failed = 0
        self._run_folder = Path(tempfile.mkdtemp(prefix="crossdock-worker-"))
        self._pool = Pool(options, self, self._run_folder)
        self._watcher = SourceWatcher(options.folder) if options.reload else None
        self._status_file: Path | None = None
        self._server = ""
        self._fetching = False
        self._order: QueueOrder
        self._client: AsyncClient
        self._fetch_client: AsyncClient
        self._settler: Settler

    # The whole life.

    async def run(self) -> None:
        """Work until a signal or the server says otherwise. Raises WorkerFailed."""
        install(self)
        try:
            if self._options.sandbox is not None:
                sandbox.remove_abandoned(self._options.sandbox)
            self._pool.start()
            self._begin(self._watch)
            await self._over.wait()
            if self._loaded is not None:
                await self._finish()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for child in self._pool.children:
                child.kill("the worker ends")
            if self._status_file is not None:
                with suppress(OSError):
                    self._status_file.unlink()
            shutil.rmtree(self._run_folder, ignore_errors=True)
        if self._fatal:
            raise WorkerFailed(self._fatal)

    def _begin(self, work: Callable[[], Awaitable[None]]) -> None:
        async def guarded() -> None:
            try:
                await work()
            except Exception as error:  # noqa: BLE001, a defect here must not leave a worker that only seems to work
                logs.event(log, logging.CRITICAL, "worker-failed", "the supervisor failed", error=error)
                self._give_up(f"the supervisor failed: {error!r}; please report it")

        self._tasks.append(asyncio.get_running_loop().create_task(guarded()))

    def _give_up(self, message: str) -> None:
        self._fatal = self._fatal or message
        self._over.set()

    def _connect(self, loaded: Loaded) -> None:
        """The first process has loaded the app, so the server and the queues are known."""
        options = self._options
        try:
            address = parse_url(options.url or loaded.url or None)
        except ValueError as error:
            self._give_up(str(error))
            return
        queues = options.queues or tuple(WeightedQueue(name) for name in loaded.queues or ["default"])
        weighted = any(queue.weight != 1 for queue in queues)
        self._order = QueueOrder(options.order or ("weighted" if weighted else "ordered"), queues)
        self._client, self._fetch_client = (
            AsyncClient(address, patience_s=0, wid=self._wid, hostname=socket.gethostname(), labels=self._labels())
            for _ in range(2)
        )
        self._settler = Settler(self._client, settled=self._forget, reached=self._reach, unreachable=self._cannot_reach)
        renewer = Renewer(
            self._client,
            options.lease_s,
            lambda: list(self._held.values()),
            lost=self._lose,
            reached=self._reach,
            unreachable=self._cannot_reach,
        )
        self._introduce(loaded, str(address))
        for work in (self._settler.run, renewer.run, self._beat, self._fetch, self._send_progress):
            self._begin(work)

    def _labels(self) -> tuple[str, ...]:
        return ("python", f"crossdock-{self._options.mode}", *self._options.labels)

    def _introduce(self, loaded: Loaded, server: str) -> None:
        options, order = self._options, self._order
        names = ", ".join(
            f"{queue.name}:{queue.weight}" if order.order == "weighted" else queue.name for queue in order.queues
        )
        slots = options.processes * options.slots
        way = "asyncio task" if options.mode == "asyncio" else "thread"
        places = f"{_counted(options.processes, 'process', 'es')} with {_counted(options.slots, way)}"
        self._server = server
        for text in (
            f"worker {self._wid} runs {_counted(len(loaded.tasks), 'task')} of {options.target}",
            f"queues {names} ({order.order}); {_counted(slots, 'slot')}: {places}",
            f"server {server}; leases of {options.lease_s:g} s, renewed while a task runs",
            signals_text(options.grace_s),
        ):
            logs.event(log, logging.INFO, "worker-started", text)

    # Fetching.

    async def _fetch(self) -> None:
        failures = 0
        while not self._pool.closing:
            room = self._pool.room() if self._state == RUNNING else 0
            if not room:
                self._room.clear()
                await self._room.wait()
                continue
            try:
                self._fetching = True
                jobs = await self._fetch_some(min(room, FETCH_AT_MOST))
            except (WrongPassword, Unsupported) as error:
                self._give_up(str(error))
                return
            except ClientError as error:
                failures += 1
                self._cannot_reach(error)
                await asyncio.sleep(_RETRY_S[min(failures, len(_RETRY_S)) - 1])
                continue
            finally:
                self._fetching = False
            failures = 0
            self._reach()
            if self._state == RUNNING:
                self._pool.take(map(self._hold, jobs))
            else:  # it became quiet while the request was under way
                for held in map(self._hold, jobs):
                    self.give_back(held, "the worker takes no more jobs")

    async def _fetch_some(self, count: int) -> list[FetchedJob]:
        plan = self._order.plan(count)
        if len(plan) > 1:
            found = interleave(await asyncio.gather(*(self._ask(request.queues, request.size) for request in plan)))
            if found:
                return found
            plan = [self._order.waiting(count)]
        jobs = await self._ask(plan[0].queues, plan[0].size, FETCH_WAIT_S)
        self._order.took([job.queue for job in jobs])
        return jobs

    async def _ask(self, queues: tuple[str, ...], count: int, wait_s: float = 0.0) -> list[FetchedJob]:
        return await self._fetch_client.fetch(queues, count, wait_s, self._options.lease_s)

    def _hold(self, job: FetchedJob) -> HeldJob:
        held = HeldJob(job, time.monotonic() + self._options.lease_s)
        before = self._held.get(job.jid)
        if before is not None and not before.lost:
            # Its lease has ended: by its outcome, whose reply is on the way, or unseen. A late outcome would be taken
            # for that of the new lease.
            before.lost = True
            if not before.settling:
                self._lose(before)
        self._held[job.jid] = held
        return held

    def _forget(self, held: HeldJob) -> None:
        if self._held.get(held.job.jid) is held:
            del self._held[held.job.jid]

    def _lose(self, held: HeldJob) -> None:
        if self._pool.lose(held):
            self._forget(held)

    # The server.

    async def _beat(self) -> None:
        while True:
            try:
                own = "" if self._state == RUNNING else QUIET
                asked = await self._client.beat(own, (rss_bytes(os.getpid()) or 0) // 1024)
            except ClientError as error:
                self._cannot_reach(error)
            else:
                self._reach()
                if asked == "terminate" and self._state != TERMINATING:
                    self.terminate("the server asks for it")
                elif asked == "quiet" and self._state == RUNNING:
                    self.quiet("the server asks for it")
            await asyncio.sleep(BEAT_S)

    def _reach(self) -> None:
        self._reached_at = time.time()
        if self._unreachable:
            self._unreachable = False
            logs.event(log, logging.INFO, "server-back", f"the server {self._server} replies again")

    def _cannot_reach(self, error: ClientError) -> None:
        if not self._unreachable:
            self._unreachable = True
            text = f"{error}; the worker keeps trying, and the jobs that it runs go on"
            logs.event(log, logging.WARNING, "server-unreachable", text)

    async def _send_progress(self) -> None:
        while True:
            await self._progress_wake.wait()
            self._progress_wake.clear()
            while self._latest_progress:
                jid, progress = self._latest_progress.popitem()
                with suppress(ClientError):  # only the latest progress matters, and the next one follows
                    await self._client.set_progress(jid, progress.percent, progress.text)

    # Called by the pool.

    def settle(self, held: HeldJob, outcome: Outcome) -> None:
        job = held.job
        if isinstance(outcome, Succeeded):
            self.done += 1
            self._settler.add(Ack(held, bytes(outcome.result) if job.keep_result else None))
        elif isinstance(outcome, Failed):
            self._fail(
                Fail(
                    held=held,
                    type=outcome.error,
                    message=outcome.message,
                    backtrace=outcome.backtrace,
                    final=outcome.final,
                    delay_s=outcome.delay_s,
                )
            )
        elif isinstance(outcome, Snoozed):
            self._settler.add(Snooze(held, outcome.delay_s, outcome.reason))
        elif isinstance(outcome, Interrupted) and outcome.reason == "timeout":
            self._fail(self._timeout_of(held))
        elif isinstance(outcome, Interrupted) and outcome.reason == "stop":
            self.give_back(held, "the worker stops")
        else:
            self._forget(held)

    def _fail(self, failure: Fail) -> None:
        self.failed += 1
        job = failure.held.job
        text = f"a job failed: {failure.type}: {failure.message}"
        logs.limited_event(log, logging.WARNING, "job-failed", text, jid=job.jid, kind=job.kind, attempt=job.attempt)
        self._settler.add(failure)

    def _timeout_of(self, held: HeldJob) -> Fail:
        limit = self._timeout_s(held.job) or 0.0
        message = f"the task did not end within its timeout of {limit:g} s"
        return Fail(held=held, type="Timeout", message=message)

    def _timeout_s(self, job: FetchedJob) -> float | None:
        timeouts = {} if self._loaded is None else self._loaded.timeouts
        own = next((timeouts[kind] for kind in kinds_of(job) if kind in timeouts), None) if timeouts else None
        return self._options.timeout_s if own is None else own

    def lost_with_process(self, child: ChildProcess, held: HeldJob, state: int, cause: str) -> None:
        if held.interrupted == "timeout":
            self._fail(self._timeout_of(held))
            return
        settlement = settlement_of_lost(child, held, state, cause, self._options.max_deaths)
        if isinstance(settlement, Fail):
            self._fail(settlement)
        else:
            self._settler.add(settlement)

    def give_back(self, held: HeldJob, reason: str, delay_s: float = 0.0) -> None:
        self._settler.add(Snooze(held, delay_s, reason))

    def report_progress(self, held: HeldJob, progress: Progress) -> None:
        self._latest_progress[held.job.jid] = progress
        self._progress_wake.set()

    def process_loaded(self, child: ChildProcess, loaded: Loaded) -> None:
        first = self._loaded is None
        self._loaded, self._problem = loaded, ""
        if self._watcher is not None:
            self._watcher.watch(loaded.files)
        if first:
            self._connect(loaded)
        if loaded.sync and loaded.sync != self._synced:
            self._synced = loaded.sync
            child.send(Sync())

    def process_not_loaded(self, child: ChildProcess, problem: NotLoaded) -> None:
        self._problem = problem.message
        for line in problem.trace.rstrip().splitlines():
            logs.event(log, logging.ERROR, "app-not-loaded", line)
        if self._watcher is not None:
            self._watcher.watch(problem.files)
        if self._watcher is None and not self._pool.ever_ready:
            self._give_up(problem.message)
        else:
            logs.event(log, logging.ERROR, "app-not-loaded", problem.message)

    def capacity_changed(self) -> None:
        self._room.set()

    # Checks.

    async def _watch(self) -> None:
        due = {self._pool.check_memory: _MEMORY_S, self._check_sources: _RELOAD_S, self._write_status: status.WRITE_S}
        last = dict.fromkeys(due, 0.0)
        while True:
            now = time.monotonic()
            self._check_timeouts(now)
            self._pool.take_back_stalled(_STALLED_S)
            self._pool.kill_late()
            for check, every_s in due.items():
                if now - last[check] >= every_s:
                    last[check] = now
                    check()
            if self._pool.failed_starts >= _STARTS_AT_MOST and not self._pool.ever_ready and self._watcher is None:
                self._give_up("the processes end before they are ready; see the lines above")
            await asyncio.sleep(_TICK_S)

    def _check_timeouts(self, now: float) -> None:
        for child in list(self._pool.children):
            if child.phase not in (Phase.READY, Phase.DRAINING):
                continue
            late = 0
            for held in child.held:
                limit = self._timeout_s(held.job)
                ran = child.running_s(held, now) if limit is not None else None
                if ran is None or limit is None or ran <= limit:
                    continue
                child.interrupt(held, "timeout")
                late += now - held.interrupted_at > _TIMEOUT_GRACE_S
            if late:
                self._pool.recycle(child, "a task did not end after its timeout", self._options.grace_s)
                if late == child.running:
                    child.kill("a task did not end after its timeout")

    def _check_sources(self) -> None:
        changed = None if self._watcher is None else self._watcher.changed()
        if changed is None or self._state == TERMINATING:
            return
        logs.event(log, logging.INFO, "reload", f"{changed} has changed; starting new processes")
        self._pool.restart_all("the code has changed")

    def _write_status(self) -> None:
        if self._loaded is None:
            return
        try:
            if self._status_file is None:
                self._status_file = self._options.status or status.default_file(os.getpid())
            status.write(self._status_file, self._status())
        except OSError as error:
            logs.limited_event(log, logging.WARNING, "status-not-written", f"cannot write the status: {error}")

    def _status(self) -> status.Status:
        children = self._pool.children
        return status.Status(
            pid=os.getpid(),
            wid=self._wid,
            target=self._options.target,
            server=self._server,
            state=self._state,
            written_at=time.time(),
            reached_at=self._reached_at,
            processes=len(children),
            ready=sum(child.is_ready for child in children),
            slots=self._options.processes * self._options.slots,
            running=self._pool.running(),
            done=self.done,
            failed=self.failed,
            problem=self._problem,
        )

    # Signals.

    def quiet(self, why: str) -> None:
        if self._state == RUNNING:
            self._state = QUIET
            text = f"no new jobs are fetched: {why}; running jobs finish"
            logs.event(log, logging.INFO, "worker-quiet", text, jobs=len(self._held))

    def terminate(self, why: str) -> None:
        """Stop within the grace time. The second call stops at once."""
        if self._state == TERMINATING:
            self._stop_by = time.monotonic()
            return
        self._state = TERMINATING
        self._stop_by = time.monotonic() + self._options.grace_s
        text = f"the worker stops: {why}; running jobs get up to {self._options.grace_s:g} s"
        logs.event(log, logging.INFO, "worker-stops", text, running=self._pool.running())
        self._over.set()
        self._room.set()

    def dump_stacks(self) -> None:
        for child in self._pool.children:
            child.dump_stacks()

    async def _finish(self) -> None:
        """End all processes and report the last outcomes."""
        pool = self._pool
        if self._fatal:
            self._stop_by = time.monotonic()
        pool.close(self._options.grace_s + _STOP_S)
        while pool.children and time.monotonic() < self._stop_by:
            await asyncio.sleep(_TICK_S / 2)
        for child in pool.children:
            for held in child.held:
                child.interrupt(held, "stop")
        give_up = time.monotonic() + _STOP_S
        while pool.children and time.monotonic() < give_up:
            await asyncio.sleep(_TICK_S / 2)
        for child in pool.children:
            child.kill("the worker stopped")
        give_up = time.monotonic() + _LAST_REPORTS_S
        while (pool.children or self._held or self._fetching) and time.monotonic() < give_up:
            await asyncio.sleep(_TICK_S / 10)
        if self._held:
            text = f"{len(self._held)} outcomes could not be reported; the jobs return when their leases expire"
            logs.event(log, logging.WARNING, "outcomes-unreported", text)
        await self._fetch_client.close()
        await self._client.close()
        logs.event(log, logging.INFO, "worker-stopped", "the worker has stopped", done=self.done, failed=self.failed)


def _counted(many: int, what: str, plural: str = "s") -> str:
    return f"{many} {what}{'' if many == 1 else plural}"
