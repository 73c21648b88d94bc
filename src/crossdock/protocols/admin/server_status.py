"""How the server itself is: what the engine cannot know. The server's shell fills it in."""

from typing import Protocol

import msgspec


class Sync(msgspec.Struct, frozen=True):
    """How long batches took to be written and synced lately, in milliseconds."""

    batches: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None
    worst_ms: float | None = None


class Rates(msgspec.Struct, frozen=True):
    """A second, over the last ten."""

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
    batches_written: int
    tail_events: int
    tail_bytes: int
    disk_free_bytes: int
    refusing: str | None  #: why new jobs are refused
    sync: Sync
    rates: Rates


class House(Protocol):
    def server_status(self) -> ServerStatus: ...
