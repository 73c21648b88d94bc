"""What the server passes to the trace exporter, one JSON object per line on its stdin."""

import msgspec


class TraceOptions(msgspec.Struct, frozen=True):
    """The first line."""

    endpoint: str
    server: str
    version: str


class FinishedJob(msgspec.Struct, frozen=True):
    """A job whose lease has ended. Times are wall times of the server."""

    trace_id: str  #: hexadecimal
    parent_id: str  #: the span in which the job was pushed
    number: int
    jid: str
    queue: str
    kind: str
    protocol: str
    worker: str
    attempt: int
    leased_at: float
    wait_s: float
    run_s: float
    error: str = ""  #: empty: it succeeded
