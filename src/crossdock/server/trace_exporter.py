"""The trace exporter: a child process of the server that makes spans of jobs and sends them to an OTLP endpoint.

It reads jobs from stdin until the server ends. Spans are sent together, at most a second after their job.
"""

import logging
import queue
import sys
import threading
from collections.abc import Iterator
from typing import Final

import msgspec
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from crossdock.server.trace_messages import FinishedJob, TraceOptions

#: Jobs that are sent together.
_TOGETHER: Final = 256
#: Jobs that wait to be sent. While there are more, stdin is not read, and the server drops jobs.
_WAITING: Final = 2_048
_COLLECT_S: Final = 1.0
_TIMEOUT_S: Final = 10.0

_new_ids = RandomIdGenerator()
_decode = msgspec.json.Decoder(FinishedJob).decode


def traces_url(endpoint: str) -> str:
    """`/v1/traces` is added unless the endpoint has it."""
    return endpoint if endpoint.endswith("/v1/traces") else endpoint.rstrip("/") + "/v1/traces"


class Spans:
    """Makes the spans of jobs: `wait` from ready to leased, `run` from leased to the worker's report."""

    def __init__(self, options: TraceOptions) -> None:
        self._scope = InstrumentationScope("crossdock", options.version)
        self._resource = Resource(
            {
                "service.name": "crossdock",
                "service.version": options.version,
                "service.instance.id": options.server,
            }
        )

    def of(self, job: FinishedJob) -> Iterator[ReadableSpan]:
        ended = job.leased_at + job.run_s
        yield self._span("wait", job, job.leased_at - job.wait_s, job.leased_at, Status())
        status = Status(StatusCode.ERROR, job.error) if job.error else Status(StatusCode.OK)
        yield self._span("run", job, job.leased_at, ended, status)

    def _span(self, name: str, job: FinishedJob, start: float, end: float, status: Status) -> ReadableSpan:
        trace_id, sampled = int(job.trace_id, 16), TraceFlags(TraceFlags.SAMPLED)
        return ReadableSpan(
            name,
            context=SpanContext(trace_id, _new_ids.generate_span_id(), is_remote=False, trace_flags=sampled),
            parent=SpanContext(trace_id, int(job.parent_id, 16), is_remote=True, trace_flags=sampled),
            resource=self._resource,
            attributes={
                "messaging.system": "crossdock",
                "messaging.destination.name": job.queue,
                "messaging.message.id": job.jid,
                "crossdock.job.number": job.number,
                "crossdock.job.kind": job.kind,
                "crossdock.job.attempt": job.attempt,
                "crossdock.job.protocol": job.protocol,
                "crossdock.worker": job.worker,
            },
            kind=SpanKind.INTERNAL,
            status=status,
            start_time=round(start * 1e9),
            end_time=round(end * 1e9),
            instrumentation_scope=self._scope,
        )


def _read(waiting: "queue.Queue[FinishedJob | None]") -> None:
    for line in sys.stdin.buffer:
        waiting.put(_decode(line))
    waiting.put(None)


def _together(waiting: "queue.Queue[FinishedJob | None]") -> tuple[list[FinishedJob], bool]:
    """Jobs to send, at least one unless stdin has ended, and whether it has."""
    jobs: list[FinishedJob] = []
    timeout: float | None = None
    while len(jobs) < _TOGETHER:
        try:
            job = waiting.get(timeout=timeout)
        except queue.Empty:
            break
        if job is None:
            return jobs, True
        jobs.append(job)
        timeout = _COLLECT_S
    return jobs, False


def main() -> None:
    logging.disable()  # the exporter logs each failed request; this process reports them itself
    options = msgspec.json.decode(sys.stdin.buffer.readline(), type=TraceOptions)
    spans, exporter = Spans(options), OTLPSpanExporter(endpoint=traces_url(options.endpoint), timeout=_TIMEOUT_S)
    waiting: queue.Queue[FinishedJob | None] = queue.Queue(_WAITING)
    threading.Thread(target=_read, args=(waiting,), daemon=True).start()
    ended, failing = False, False
    while not ended:
        jobs, ended = _together(waiting)
        failed = exporter.export([span for job in jobs for span in spans.of(job)]) is not SpanExportResult.SUCCESS
        if failed and not failing:  # one line until it works again
            print("the endpoint does not accept spans; they are lost until it does", flush=True)
        failing = failed


if __name__ == "__main__":
    main()
