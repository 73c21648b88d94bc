"""What a client does, whatever its door: push, ask for a job, settle it, look. `peers.py` has one peer a door.

A peer speaks over a `Wire`: a socket's stream, or a session in this process with a clock turned by hand (`floor.py`).
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Protocol

#: Payload as it is given to a peer, and as a peer is given it: any JSON value, or bytes
Payload = Any


class Wire(Protocol):
    """As `crossdock.client.base.Stream`, which is one."""

    def send(self, data: bytes) -> None: ...

    def line(self) -> bytes:
        """The next line without its end. Raises Broken if there will be none."""

    def block(self, size: int) -> bytes:
        """The next so many bytes, and the line end behind them."""

    def close(self) -> None: ...


class Got(NamedTuple):
    """A job as its door hands it out."""

    ident: str  #: what the door calls it, to settle it
    kind: str
    payload: Payload

    @property
    def text(self) -> str:
        """The one string that was pushed, by whatever door."""
        payload = self.payload
        if isinstance(payload, bytes):
            payload = json.loads(payload) if payload[:1] in (b"[", b'"', b"{") else payload.decode()
        if isinstance(payload, list):
            payload = payload[0]
        return str(payload["payload"] if isinstance(payload, dict) else payload)


class Peer(ABC):
    protocol: ClassVar[str]
    bound: ClassVar[bool] = False  #: what it is given ends with its connection
    lease_s: ClassVar[float]  #: how long its door lends a job of another door that says nothing about it
    atomic: ClassVar[bool] = False  #: `push_many` takes all or none
    waits: ClassVar[bool] = True  #: who asks for a job may wait for it
    by_name: ClassVar[bool] = False  #: what it is given nobody else of that door may settle, but one of its name
    says_when: ClassVar[bool] = False  #: a failure through this door says when the next try is: at once
    remembers: ClassVar[str] = "_given"  #: where its session has the leases it was given, if it has
    #: Of jobs that come by this door
    keeps: ClassVar[bool] = False  #: they stay after their success
    backs_off: ClassVar[bool] = True  #: they wait for their next try
    lapse_fails: ClassVar[bool] = True  #: a lease that ran out is a failure of theirs
    replaces: ClassVar[bool] = False  #: a push of a live name moves that job
    listens: ClassVar[str] = ""  #: at this door of the server, if it is called otherwise

    def __init__(self, wire: Wire, name: str = "") -> None:
        """`name` is the worker's, for doors that ask."""
        self.wire = wire
        self.name = name

    @abstractmethod
    def push(self, queue: str, payload: Payload, *, retry: int = 5, ident: str = "") -> str:
        """The id by which this door knows the job. `ident`: to be it, for doors whose clients name their jobs."""

    @abstractmethod
    def ask(self, *queues: str, wait_s: float = 1.0) -> None:
        """Ask for a job; `given` tells what came of it."""

    @abstractmethod
    def given(self) -> Got | None: ...

    @abstractmethod
    def succeed(self, ident: str, result: bytes = b"") -> bool:
        """False: it was not this peer's to settle. Faktory's door never says so."""

    @abstractmethod
    def fail(self, ident: str, message: str = "failed") -> bool: ...

    @abstractmethod
    def look(self, queue: str) -> int:
        """How many jobs are ready there."""

    def push_many(self, queue: str, payloads: Mapping[str, Payload]) -> None:
        """By the ids they are to have, for doors whose clients name their jobs."""
        for ident, payload in payloads.items():
            self.push(queue, payload, ident=ident)

    def fetch(self, *queues: str) -> Got | None:
        """What is there now, as far as the door can be asked for that."""
        self.ask(*queues, wait_s=0.0)
        return self.given()

    def close(self) -> None:
        self.wire.close()
