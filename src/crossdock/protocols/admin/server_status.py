"""The part of the server's status that the engine does not know. The server fills it in."""

import msgspec


class Sync(msgspec.Struct, frozen=True):
    """The time to write and sync recent journal entries, in milliseconds."""

    entries: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None
    worst_ms: float | None = None


class Rates(msgspec.Struct, frozen=True):
    """Per second: of the server over the last ten seconds, of a queue over the last minute."""

    pushed: float = 0.0
    leased: float = 0.0
    processed: float = 0.0
    failed: float = 0.0


class ServerStatus(msgspec.Struct, frozen=True):
    version: str
    pid: int
    data: str
    durability: str
    listeners: dict[str, str]  #: protocol and address
    uptime_s: float
    connections: int
    memory_mib: int
    entries_written: int  #: journal entries
    tail_events: int
    tail_bytes: int
    disk_free_bytes: int
    refusing: str | None  #: the reason why new jobs are refused
    sync: Sync
    rates: Rates
