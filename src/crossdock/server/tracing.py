"""OpenTelemetry traces: spans for the wait and the run of each job that carries a trace context.

The context is a W3C `traceparent` in the job's `custom`, as Faktory clients set it. The server finds it when the job is
leased, and reports the job when its lease ends, from the events of journal entries. A child process makes the spans and
sends them, so the server never imports a telemetry library nor waits for a network.
"""

import asyncio
import importlib.util
import logging
import re
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Final, NamedTuple

import msgspec

from crossdock import __version__, logs
from crossdock.engine.queries.jobs import job_by_number, jobs_in_state
from crossdock.engine.state import EngineState
from crossdock.journal.child_process import Child
from crossdock.model import events as e
from crossdock.model.errors import BadSetting
from crossdock.model.events import AnyEvent
from crossdock.model.events.resqu import Rescheduled
from crossdock.model.job import Job, Number
from crossdock.model.states import State
from crossdock.server.trace_messages import FinishedJob, TraceOptions

log = logging.getLogger("crossdock.tracing")

#: Leased jobs whose context is remembered. Beyond it the oldest is forgotten.
CONTEXTS: Final = 100_000

#: Bytes that the child process has not read yet. Beyond it jobs are dropped and counted.
UNSENT_BYTES: Final = 4 * 1024 * 1024

_RETRY_S: Final = 5.0
_LOG_EVERY_S: Final = 60.0
_LIBRARY: Final = "opentelemetry.exporter.otlp.proto.http"

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
_SAMPLED: Final = 1


class TraceContext(NamedTuple):
    trace_id: str
    span_id: str


class _Custom(msgspec.Struct):
    traceparent: str = ""


_decode = msgspec.json.Decoder(_Custom).decode
_encode = msgspec.json.Encoder().encode


def trace_context(custom: bytes) -> TraceContext | None:
    """The context in a job's `custom`. None: there is none, it is invalid, or the trace is not sampled."""
    if b"traceparent" not in custom:
        return None
    try:
        found = _TRACEPARENT.fullmatch(_decode(custom).traceparent)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if found is None or not int(found[1], 16) or not int(found[2], 16) or not int(found[3], 16) & _SAMPLED:
        return None
    return TraceContext(found[1], found[2])


def require_library() -> None:
    """Raises BadSetting if the optional packages are not installed."""
    try:
        found = importlib.util.find_spec(_LIBRARY)
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise BadSetting("server.otlp_endpoint needs OpenTelemetry; install it with pip install 'crossdock[otel]'")


class TraceRecorder:
    """Finds the jobs that carry a context and calls `report` when their lease ends."""

    def __init__(self, state: EngineState, report: Callable[[FinishedJob], None]) -> None:
        self._state = state
        self._report = report
        self._contexts: dict[Number, TraceContext] = {}
        for job in jobs_in_state(state, State.LEASED):  # leased before the start
            self._remember(job)

    def observe(self, changes: Sequence[Sequence[AnyEvent]], entries: Sequence[tuple[bytes, int]]) -> None:
        for event in chain.from_iterable(changes):
            if isinstance(event, e.Leased):
                job = job_by_number(self._state, event.number)
                if job is not None and job.extra is not None and job.extra.custom:
                    self._remember(job)
            elif self._contexts:
                self._end(event)

    def _remember(self, job: Job) -> None:
        context = trace_context(job.extra.custom) if job.extra is not None and job.extra.custom else None
        if context is not None:
            self._contexts[job.number] = context
            if len(self._contexts) > CONTEXTS:
                del self._contexts[next(iter(self._contexts))]

    def _end(self, event: AnyEvent) -> None:
        if isinstance(event, e.Succeeded | e.Advanced):
            self._finish(event, "")
        elif isinstance(event, e.Failed):
            # The type of the error only: its message may quote the payload.
            self._finish(event, "the lease expired" if event.lost else event.failure.group or "failed")
        elif isinstance(event, Rescheduled):
            self._finish(event, "failed" if event.failed else "")
        elif isinstance(event, e.LeaseExpired):
            self._finish(event, "the lease expired")
        elif isinstance(event, e.Returned | e.Stalled):
            self._contexts.pop(event.number, None)
        elif isinstance(event, e.Removed):
            self._forget(row.number for row in event.rows)
        elif isinstance(event, e.Flushed):
            self._contexts.clear()

    def _forget(self, numbers: Iterable[Number]) -> None:
        for number in numbers:
            self._contexts.pop(number, None)

    def _finish(self, event: e.ClosingEvent, error: str) -> None:
        context = self._contexts.pop(event.number, None)
        if context is None or not event.token:
            return
        self._report(
            FinishedJob(
                trace_id=context.trace_id,
                parent_id=context.span_id,
                number=event.number,
                jid=event.jid,
                queue=event.queue,
                kind=event.kind,
                protocol=event.origin,
                worker=event.worker,
                attempt=event.attempt,
                leased_at=event.leased_at,
                wait_s=max(0.0, event.wait_s),
                run_s=max(0.0, event.run_s),
                error=error,
            )
        )


class TraceKeeper:
    """Runs the process that exports spans, and passes jobs to it. What it cannot take is dropped and counted."""

    def __init__(self, endpoint: str, server_name: str) -> None:
        require_library()
        self._options = TraceOptions(endpoint=endpoint, server=server_name, version=__version__)
        self._child = Child("crossdock.server.trace_exporter")
        self._task: asyncio.Task[None] | None = None
        self._logged = 0.0
        self.sent = 0
        self.dropped = 0

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    def report(self, job: FinishedJob) -> None:
        if self._child.unsent_bytes() < UNSENT_BYTES and self._child.send(_encode(job) + b"\n"):
            self.sent += 1
            return
        self.dropped += 1
        now = time.monotonic()
        if now >= self._logged + _LOG_EVERY_S:
            self._logged = now
            text = f"traces are dropped because the endpoint is too slow or down; {self.dropped} so far"
            logs.event(log, logging.WARNING, "traces-dropped", text, count=self.dropped)

    async def _run(self) -> None:
        while True:
            output = await self._child.start()
            self._child.send(_encode(self._options) + b"\n")
            async for line in output:
                text = f"traces: {line.decode('utf-8', 'replace').rstrip()}"
                logs.event(log, logging.WARNING, "traces-trouble", text)
            code = await self._child.ended()
            text = f"the trace exporter ended (exit code {code}); it is started again in {_RETRY_S:.0f} s"
            logs.event(log, logging.ERROR, "traces-ended", text, code=code)
            await asyncio.sleep(_RETRY_S)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._child.kill()
            await asyncio.gather(self._task, return_exceptions=True)
