"""The asyncio client: concurrent calls share a few connections, on which they are pipelined."""

import ssl
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final, Literal, Self

from crossdock.client.address import Address
from crossdock.client.jobs import BatchStatus, FetchedJob, NewJob, Progress, RateLimit, Schedule
from crossdock.client.transport import Connect

TIMEOUT_S: Final = 30.0
PATIENCE_S: Final = 10.0
POOL_SIZE: Final = 4


class AsyncClient:
    """The methods of `Client`, to be awaited. A new event loop or a child process opens connections of its own."""

    def __init__(
        self,
        url: str | Address | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        patience_s: float = PATIENCE_S,
        pool_size: int = POOL_SIZE,
        connect: Connect | None = None,
        context: ssl.SSLContext | None = None,
        wid: str = "",
        hostname: str = "",
        labels: Sequence[str] = (),
    ) -> None:
        """Nothing is connected yet. Without a URL the environment variable `CROSSDOCK_URL` is used, or else the local
        server.

        `timeout_s`: how long a reply may take. `patience_s`: how long a call is repeated while the server cannot be
        reached or is full. `pool_size`: connections that are kept open. `connect` replaces the network. `context`: for
        TLS. With a `wid` the client is a worker, which must call `beat` every 15 s.
        """
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        raise NotImplementedError

    # Pushing

    async def push(self, job: NewJob) -> str:
        """Push a job and return its ID when the job is durable.

        A push whose reply is lost is repeated. The server does not push a job twice. Raises Refused, NotUnique,
        ServerFull, InvalidJob, Unsupported, NoServer or Broken.
        """
        raise NotImplementedError

    async def push_many(self, jobs: Iterable[NewJob]) -> list[str]:
        """Push any number of jobs and return their IDs. Raises PushRefused if the server refuses some of them."""
        raise NotImplementedError

    def batch(
        self, description: str = "", *, success: NewJob | None = None, complete: NewJob | None = None
    ) -> "AsyncBatch":
        """A batch, for an `async with` block. `success` is pushed when all its jobs have succeeded, `complete` when all
        were executed. One of them is needed."""
        raise NotImplementedError

    async def open_batch(self, bid: str) -> "AsyncBatch":
        """An existing batch, to push more jobs to it. Raises Refused if there is none."""
        raise NotImplementedError

    async def batch_status(self, bid: str) -> BatchStatus:
        """Raises Refused if there is no such batch."""
        raise NotImplementedError

    async def cancel(self, jid: str, reason: str = "") -> bool:
        """Cancel a job. Its worker, if it has one, learns it when it renews its lease. False: there is no such job, or
        it has ended."""
        raise NotImplementedError

    async def cancel_many(self, jids: Iterable[str], reason: str = "") -> list[str]:
        """Cancel jobs. Returns the IDs that were not cancelled: there is no such job, or it has ended."""
        raise NotImplementedError

    # Results and progress

    async def result(self, jid: str, timeout_s: float | None = None) -> bytes:
        """Wait until a job has ended and return its result, as JSON. The job must have been pushed with
        `keep_result_s`. Raises JobFailed, JobCancelled, ResultTimeout or UnknownJob."""
        raise NotImplementedError

    async def progress(self, jid: str) -> Progress:
        """The progress of a job. The state of a job that is not tracked is `unknown`."""
        raise NotImplementedError

    async def follow(self, jid: str, timeout_s: float | None = None) -> AsyncIterator[Progress]:
        """Yield the progress of a job now and at each change, until it has ended. Raises ResultTimeout or
        UnknownJob."""
        raise NotImplementedError
        yield

    # Working

    async def fetch(
        self,
        queues: Sequence[str],
        count: int = 1,
        wait_s: float = 0,
        lease_s: float | None = None,
        order: Literal["ordered", "random"] = "ordered",
    ) -> list[FetchedJob]:
        """Lease up to `count` jobs. Returns as soon as there is one, and an empty list after `wait_s` without one."""
        raise NotImplementedError

    async def ack(self, jobs: Sequence[tuple[str, bytes | None]]) -> dict[str, str]:
        """Complete jobs, each with its result as JSON or without one. Returns the server's reason for each ID that it
        refuses, such as an expired lease."""
        raise NotImplementedError

    async def fail(
        self,
        jid: str,
        kind: str,
        message: str,
        backtrace: Sequence[str] = (),
        *,
        final: bool = False,
        delay_s: float | None = None,
    ) -> bool:
        """Fail a job. `final`: there are no more tries. `delay_s`: when the next try is, instead of the server's
        backoff. False: this client has no lease of it."""
        raise NotImplementedError

    async def snooze(self, jid: str, delay_s: float, reason: str = "") -> bool:
        """Give a job back for later, which is not a failure. False: this client has no lease of it."""
        raise NotImplementedError

    async def extend(self, jids: Sequence[str], lease_s: float) -> list[str]:
        """Renew leases. Returns the IDs whose lease is lost: it has expired, or the job was cancelled or deleted."""
        raise NotImplementedError

    async def beat(self, state: str = "", rss_kb: int = 0) -> str:
        """Send a worker's heartbeat. Returns the state that an operator has asked for: "", quiet or terminate."""
        raise NotImplementedError

    async def set_progress(self, jid: str, percent: int | None = None, text: str | None = None) -> None:
        """Report how far a job is. None leaves what is there."""
        raise NotImplementedError

    # Applications and the server

    async def sync_schedules(self, app: str, schedules: Iterable[Schedule]) -> None:
        """Replace all schedules of that application. Unchanged ones keep their next run."""
        raise NotImplementedError

    async def sync_rates(self, app: str, rates: Iterable[RateLimit]) -> None:
        """Replace all rate limits of that application."""
        raise NotImplementedError

    async def info(self) -> dict[str, Any]:
        """The server's INFO: counters, queues and versions."""
        raise NotImplementedError

    async def extensions(self) -> frozenset[str]:
        """The extensions that the server has announced. Empty: a plain Faktory server."""
        raise NotImplementedError


class AsyncBatch:
    """As `Batch`, for an `async with` block."""

    bid: str  #: known in the block

    async def __aenter__(self) -> Self:
        raise NotImplementedError

    async def __aexit__(self, *error: object) -> None:
        raise NotImplementedError

    async def push(self, job: NewJob) -> str:
        """Push a job of this batch."""
        raise NotImplementedError

    async def push_many(self, jobs: Iterable[NewJob]) -> list[str]:
        """Push jobs of this batch."""
        raise NotImplementedError

    def batch(
        self, description: str = "", *, success: NewJob | None = None, complete: NewJob | None = None
    ) -> "AsyncBatch":
        """A batch inside this one. The callbacks of this one wait for it."""
        raise NotImplementedError

    async def status(self) -> BatchStatus:
        raise NotImplementedError
