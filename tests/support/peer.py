"""A client's actions, independent of its protocol: push, fetch, settle, inspect. `peers.py` has one peer per protocol.

A peer uses a `Wire`: the stream of a socket, or a protocol in this process with a manual clock (`all_protocols.py`).
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import inf
from typing import Any, ClassVar, NamedTuple, Protocol

#: A payload as it is passed to a peer and as a peer receives it: any JSON value, or bytes
Payload = Any


class Wire(Protocol):
    """The interface of `crossdock.client.base.Stream`."""

    def send(self, data: bytes) -> None: ...

    def line(self) -> bytes:
        """The next line without its line end. Raises Broken if the connection has ended."""

    def block(self, size: int) -> bytes:
        """The next `size` bytes, without the line end after them."""

    def close(self) -> None: ...


class Got(NamedTuple):
    """A job as its protocol delivers it."""

    ident: str  #: the protocol's id of the job, used to settle it
    kind: str
    payload: Payload

    @property
    def text(self) -> str:
        """The string that was pushed, by any protocol."""
        payload = self.payload
        if isinstance(payload, bytes):
            payload = json.loads(payload) if payload[:1] in (b"[", b'"', b"{") else payload.decode()
        if isinstance(payload, list):
            payload = payload[0]
        return str(payload["payload"] if isinstance(payload, dict) else payload)


class Peer(ABC):
    protocol: ClassVar[str]
    bound: ClassVar[bool] = False  #: its leases end with its connection
    lease_s: ClassVar[float]  #: lease length for a job of another protocol that does not set one
    pushed_lease_s: ClassVar[float] = inf  #: lease time that jobs pushed here ask for, over any protocol
    atomic: ClassVar[bool] = False  #: `push_many` accepts all jobs or none
    waits: ClassVar[bool] = True  #: a fetch can wait for a job
    by_name: ClassVar[bool] = False  #: within the protocol, only a worker of the same name can settle its leases
    says_when: ClassVar[bool] = False  #: a failure report sets the time of the next attempt: immediately
    remembers: ClassVar[str] = "leases"  #: the attribute of its session with its leases, if there is one
    #: Of jobs pushed through this protocol
    keeps: ClassVar[bool] = False  #: they are kept after success
    backs_off: ClassVar[bool] = True  #: they wait before the next attempt
    expiry_fails: ClassVar[bool] = True  #: a lease expiry counts as a failure
    replaces: ClassVar[bool] = False  #: a push with the name of a live job moves that job
    listener: ClassVar[str] = ""  #: name of the listener if it differs from the protocol's

    def __init__(self, wire: Wire, name: str = "") -> None:
        """`name` is the worker's name, for protocols that have one."""
        self.wire = wire
        self.name = name

    @abstractmethod
    def push(self, queue: str, payload: Payload, *, retry: int = 5, ident: str = "") -> str:
        """Push a job and return the protocol's id for it. `ident` sets the id where clients choose it."""

    @abstractmethod
    def ask(self, *queues: str, wait_s: float = 1.0) -> None:
        """Request a job; `given` reads the reply."""

    @abstractmethod
    def given(self) -> Got | None: ...

    @abstractmethod
    def succeed(self, ident: str, result: bytes = b"") -> bool:
        """False if this peer does not hold the lease. Faktory never reports that."""

    @abstractmethod
    def fail(self, ident: str, message: str = "failed") -> bool: ...

    @abstractmethod
    def look(self, queue: str) -> int:
        """Number of ready jobs in the queue."""

    def push_many(self, queue: str, payloads: Mapping[str, Payload]) -> None:
        """Push jobs by id. The ids are used where clients choose them."""
        for ident, payload in payloads.items():
            self.push(queue, payload, ident=ident)

    def fetch(self, *queues: str) -> Got | None:
        """A job that is available now. Protocols that cannot fetch without waiting wait for a short time."""
        self.ask(*queues, wait_s=0.0)
        return self.given()

    def close(self) -> None:
        self.wire.close()
