"""What a worker does with a job, whatever the door: take it, then say what became of it."""

from typing import NamedTuple, Protocol


class Taken(NamedTuple):
    """A job that was leased."""

    ident: str  #: as the door names it
    queue: str
    kind: str
    payload: bytes


class Worker(Protocol):
    def take(self, queues: list[str], wait_s: float) -> Taken | None:
        """Lease a job of these queues; None: none came in that time. Raises ClientError."""

    def done(self, job: Taken) -> None:
        """Raises ClientError, also if the lease is over."""

    def failed(self, job: Taken, message: str) -> None:
        """Raises ClientError, also if the lease is over."""

    def close(self) -> None: ...
