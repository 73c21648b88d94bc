"""The child processes of a worker: started, given jobs, replaced and ended.

A process that reaches a limit is drained: it gets no more jobs, those it has not started are taken back, and another
process takes its place at once. A process that dies is replaced, at first immediately and then after growing delays.
"""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

from crossdock import logs
from crossdock.worker.frames import Loaded, Message, NotLoaded, Outcome, Progress, Report
from crossdock.worker.memory import rss_bytes
from crossdock.worker.options import WorkerOptions
from crossdock.worker.poison import cause_of, deaths_of
from crossdock.worker.process import ChildProcess, HeldJob, Phase
from crossdock.worker.table import QUEUED

log: Final = logging.getLogger("crossdock.worker")

#: How much work a process may hold beyond what it runs, in seconds of its slots.
AHEAD_S: Final = 0.1
#: Suspects that wait for the process they run alone in. More are given back.
SUSPECTS_AT_MOST: Final = 20
_RESTART_DELAYS_S: Final = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class PoolOwner(Protocol):
    def settle(self, held: HeldJob, outcome: Outcome) -> None:
        """A task has ended."""

    def lost_with_process(self, child: ChildProcess, held: HeldJob, state: int, cause: str) -> None:
        """A job was running or had just ended when its process ended."""

    def give_back(self, held: HeldJob, reason: str, delay_s: float = 0.0) -> None:
        """A job was not started and is to run elsewhere."""

    def report_progress(self, held: HeldJob, progress: Progress) -> None: ...

    def process_loaded(self, child: ChildProcess, loaded: Loaded) -> None: ...

    def process_not_loaded(self, child: ChildProcess, problem: NotLoaded) -> None: ...

    def capacity_changed(self) -> None: ...


class Pool:
    def __init__(self, options: WorkerOptions, owner: PoolOwner, run_folder: Path) -> None:
        self._options = options
        self._owner = owner
        self._run_folder = run_folder
        self.children: list[ChildProcess] = []
        self.waiting: deque[HeldJob] = deque()  #: leased jobs that no child has
        self.suspects: deque[HeldJob] = deque()  #: leased jobs that run alone
        self.closing = False
        self.ever_ready = False
        self._number = 0
        self.failed_starts = 0  #: in a row
        self._run_s: float | None = None  #: how long tasks take, on average
        self._starts: set[asyncio.Task[None]] = set()

    # Processes.

    def start(self) -> None:
        for _ in range(self._options.processes):
            self._spawn()

    def _spawn(self, *, alone: bool = False, delay_s: float = 0.0) -> None:
        self._number += 1
        slots = 1 if alone else self._options.slots
        rows = 1 if alone else slots + self._options.prefetch
        child = ChildProcess(self._number, slots, rows, heard=self._heard, ended=self._child_ended)
        child.alone = alone
        self.children.append(child)
        task = asyncio.get_running_loop().create_task(self._start(child, delay_s))
        self._starts.add(task)
        task.add_done_callback(self._starts.discard)

    async def _start(self, child: ChildProcess, delay_s: float) -> None:
        if delay_s:
            await asyncio.sleep(delay_s)
        if child not in self.children:  # the worker stops
            return
        try:
            child.started_at = time.monotonic()
            await child.start(self._options, self._run_folder)
            if self.closing:
                child.kill("the worker stops")
        except OSError as error:
            logs.event(log, logging.ERROR, "process-start-failed", f"cannot start a process: {error}")
            child.returncode, child.phase = 71, Phase.ENDED
            self._child_ended(child)

    def _heard(self, child: ChildProcess, message: Message) -> None:
        if isinstance(message, Report):
            self._take_report(child, message.outcomes)
        elif isinstance(message, Loaded):
            child.loaded = message
            if child.phase is Phase.STARTING:
                child.phase = Phase.READY
            if not child.alone:
                self.ever_ready = True
            self._owner.process_loaded(child, message)
            if child.phase is Phase.DRAINING:
                child.stop_when_idle()
            self.dispatch()
            self._owner.capacity_changed()
        else:
            child.not_loaded = message

    def recycle(self, child: ChildProcess, why: str, within_s: float = math.inf) -> None:
        """Let a process finish its jobs and end, at most for that long. Another one takes its place."""
        if child.phase not in (Phase.STARTING, Phase.READY):
            child.drain_by = min(child.drain_by, time.monotonic() + within_s)
            return
        self.drain(child, within_s)
        logs.event(log, logging.INFO, "process-recycled", f"process {child.pid} is replaced: {why}", pid=child.pid)
        if not self.closing and not child.alone:
            self._spawn()
        self.dispatch()

    def restart_all(self, why: str) -> None:
        """Replace all processes by new ones, which take over as soon as they are ready."""
        self.failed_starts = 0
        for child in list(self.children):
            if not child.pid:  # it waits to be started again
                self.children.remove(child)
                self._spawn(alone=child.alone)
            else:
                self.recycle(child, why)
        starting = sum(not child.alone and child.phase is Phase.STARTING for child in self.children)
        for _ in range(starting, self._options.processes):
            self._spawn()

    def drain(self, child: ChildProcess, within_s: float) -> None:
        """Let a process finish the jobs that it has started, and end."""
        was_ready = child.is_ready
        child.phase, child.drain_by = Phase.DRAINING, time.monotonic() + within_s
        self.waiting.extendleft(reversed(child.revoke()))
        if was_ready:
            child.stop_when_idle()

    def _child_ended(self, child: ChildProcess) -> None:
        if child in self.children:
            self.children.remove(child)
        crash = child.returncode != 0 and not child.why and child.not_loaded is None and not self.closing
        if crash:
            cause = cause_of(child.returncode)
            logs.event(log, logging.ERROR, "process-died", f"{cause}", pid=child.pid, jobs=len(child.held) or None)
        self._recover_jobs(child)
        if child.not_loaded is not None:
            self._owner.process_not_loaded(child, child.not_loaded)
        child.forget()
        if not child.drain_by and not self.closing:
            self.failed_starts = self.failed_starts + 1 if child.loaded is None else 0
            # With --reload it would fail again in the same way until a file changes.
            if not child.alone and not (self._options.reload and child.not_loaded):
                self._spawn(delay_s=_RESTART_DELAYS_S[min(self.failed_starts, len(_RESTART_DELAYS_S) - 1)])
        self.dispatch()
        self._owner.capacity_changed()

    def _recover_jobs(self, child: ChildProcess) -> None:
        """Jobs that were not started go to another process; the owner decides about the others."""
        cause = child.why or cause_of(child.returncode)
        unstarted = []
        for held in child.held:
            state = child.table.state(held.row)
            if state == QUEUED:
                held.child, held.row = None, -1
                unstarted.append(held)
            else:
                self._owner.lost_with_process(child, held, state, cause)
        self.waiting.extendleft(reversed(unstarted))

    # Jobs.

    def take(self, jobs: Iterable[HeldJob]) -> None:
        """Jobs that were fetched."""
        for held in jobs:
            if deaths_of(held.job) and self._options.slots > 1:
                if len(self.suspects) >= SUSPECTS_AT_MOST:
                    self._owner.give_back(held, "many jobs wait to run alone", 5.0)
                else:
                    self.suspects.append(held)
            else:
                self.waiting.append(held)
        self.dispatch()

    def dispatch(self) -> None:
        if self.suspects:
            self._dispatch_suspect()
        if not self.waiting:
            return
        if self.closing:
            while self.waiting:
                self._owner.give_back(self.waiting.popleft(), "the worker stops")
            return
        ready = [child for child in self.children if child.is_ready and not child.alone]
        if not ready:
            return
        shares: dict[ChildProcess, list[HeldJob]] = {}
        # At first one job for each idle slot, and only then jobs that wait in a process.
        for ahead in (0, self._ahead()):
            open_to = [child for child in ready if self._room(child, ahead) > len(shares.get(child, ()))]
            while self.waiting and open_to:
                for child in list(open_to):
                    if not self.waiting:
                        break
                    share = shares.setdefault(child, [])
                    share.append(self.waiting.popleft())
                    if self._room(child, ahead) <= len(share):
                        open_to.remove(child)
        for child, share in shares.items():
            child.assign(share)
            if self._options.max_jobs is not None and child.given >= self._options.max_jobs:
                self._retire(child)

    def lose(self, held: HeldJob) -> bool:
        """The lease of a job is lost. Tell its task; True: the job was not started and will not be."""
        if held.child is not None:
            if not held.child.revoke_one(held):
                held.child.interrupt(held, "lost")
                return False
            return True
        for jobs in (self.waiting, self.suspects):
            if held in jobs:
                jobs.remove(held)
        return True

    def _retire(self, child: ChildProcess) -> None:
        """It has its last jobs."""
        child.phase, child.drain_by = Phase.DRAINING, math.inf
        why = f"process {child.pid} is replaced after {child.given} jobs"
        logs.event(log, logging.INFO, "process-recycled", why, pid=child.pid)
        self._spawn()

    def _dispatch_suspect(self) -> None:
        own = next((child for child in self.children if child.alone), None)
        if self.closing:
            while self.suspects:
                self._owner.give_back(self.suspects.popleft(), "the worker stops")
        elif own is None:
            self._spawn(alone=True)
        elif own.is_ready and not own.jobs:
            own.assign([self.suspects.popleft()])

    def _room(self, child: ChildProcess, ahead: int) -> int:
        """How many more jobs a process may get."""
        most = child.slots + ahead - len(child.jobs)
        if self._options.max_jobs is not None:
            most = min(most, self._options.max_jobs - child.given)
        return max(0, most)

    def _ahead(self) -> int:
        """How many jobs a process may hold beyond its slots: fewer if tasks take long, as other workers may be idle."""
        if self._run_s is None:
            return 0
        return min(self._options.prefetch, int(self._options.slots * AHEAD_S / max(self._run_s, 1e-6)))

    def room(self) -> int:
        """How many jobs may be fetched."""
        ahead = self._ahead()
        found = sum(self._room(child, ahead) for child in self.children if child.is_ready and not child.alone)
        return max(0, found - len(self.waiting))

    def _take_report(self, child: ChildProcess, outcomes: list[Outcome]) -> None:
        seconds, ended = 0.0, 0
        for outcome in outcomes:
            if isinstance(outcome, Progress):
                held = child.jobs.get(outcome.row)
                if held is not None and held.child is child:
                    self._owner.report_progress(held, outcome)
                continue
            held = child.release(outcome.row)
            if held is None:
                continue
            ended += 1
            seconds += getattr(outcome, "seconds", 0.0)
            self._owner.settle(held, outcome)
        if ended:
            mean = seconds / ended
            self._run_s = mean if self._run_s is None else 0.8 * self._run_s + 0.2 * mean
        if child.drain_by:
            child.stop_when_idle()
        elif child.alone:
            self._next_suspect(child)
        self.dispatch()
        self._owner.capacity_changed()

    def _next_suspect(self, child: ChildProcess) -> None:
        if not self.suspects and not child.jobs:
            self.drain(child, math.inf)

    # Checks, a few times a second.

    def take_back_stalled(self, older_than_s: float) -> None:
        """Take back jobs that wait in a process whose tasks run longer than expected."""
        for child in self.children:
            if child.is_ready and len(child.jobs) > child.slots:
                back = child.revoke(older_than_s)
                if back:
                    self._run_s = max(self._run_s or 0.0, older_than_s)
                for held in back:
                    self._owner.give_back(held, "its process was busy")

    def check_memory(self) -> None:
        limit = self._options.max_memory
        if limit is None:
            return
        for child in [child for child in self.children if child.is_ready]:
            used = rss_bytes(child.pid)
            if used is not None and used > limit:
                self.recycle(child, f"it uses {used >> 20} MiB of memory, more than {limit >> 20} MiB")

    def kill_late(self) -> None:
        """Kill draining processes whose time is over."""
        now = time.monotonic()
        for child in self.children:
            if child.phase is Phase.DRAINING and now > child.drain_by:
                child.kill("the process was stopped")

    def close(self, within_s: float) -> None:
        """Start no more jobs, give back those that were not started, and end all processes."""
        self.closing = True
        for child in list(self.children):
            if not child.pid:
                self.children.remove(child)
            elif child.phase is Phase.STARTING:
                child.phase, child.drain_by = Phase.DRAINING, time.monotonic()
                child.kill("the worker stops")
            else:
                self.drain(child, within_s)
        self.dispatch()

    def running(self) -> int:
        return sum(child.running for child in self.children)
