"""The asyncio client: concurrent calls share a few connections, on which they are pipelined."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar

import msgspec

from crossdock.client import calls, worker_calls
from crossdock.client.address import Address, parse_url
from crossdock.client.bulk_push import WINDOW, BulkPush
from crossdock.client.call import Call, portions, result_of
from crossdock.client.errors import Broken, ClientError, Closed, ResultTimeout, ServerFull
from crossdock.client.jobs import BatchStatus, FetchedJob, NewJob, Progress, RateLimit, Schedule
from crossdock.client.lane import Lane, open_lane
from crossdock.client.lanes import Lanes
from crossdock.client.retries import PATIENCE_S, TIMEOUT_S, Patience, deadline, left, not_repeated
from crossdock.client.transport import Connect
from crossdock.client.wire import Features, Identity, Reply

if TYPE_CHECKING:
    import ssl

T = TypeVar("T")

#: Connections that calls share.
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
        context: "ssl.SSLContext | None" = None,
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
        address = url if isinstance(url, Address) else parse_url(url)
        self._where = str(address)
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._wid = wid
        identity = Identity(
            where=str(address), password=address.password, wid=wid, hostname=hostname, labels=tuple(labels)
        )
        opener = partial(open_lane, address, identity, timeout_s, connect, context)
        self._lanes = Lanes(opener, timeout_s, pool_size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._where!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._lanes.close()

    # Pushing

    async def push(self, job: NewJob) -> str:
        """Push a job and return its ID when the job is durable.

        A push whose reply is lost is repeated. The server does not push a job twice. Raises Refused, NotUnique,
        ServerFull, InvalidJob, Unsupported, NoServer or Broken.
        """
        return await self._run(calls.push(job))

    async def push_many(self, jobs: Iterable[NewJob]) -> list[str]:
        """Push any number of jobs and return their IDs. Raises PushRefused if the server refuses some of them."""
        work = BulkPush(jobs)
        patience, accepted = Patience(self._patience_s), 0
        stale = False  #: whether a connection was tried that was opened before
        while not work.done:
            lane = None
            try:
                lane = await self._lanes.take()
                await self._pump(lane, work)
                self._lanes.give(lane)
                if work.full is None:
                    break
                error: ClientError = work.full
                work.full = None
            except ClientError as failed:
                if lane is not None:
                    self._lanes.drop(lane)
                if not work.lost():
                    raise not_repeated(failed) from failed
                if isinstance(failed, Broken) and lane is not None and lane.used and not stale:
                    stale = True
                    continue
                error = failed
            except BaseException:
                if lane is not None:
                    self._lanes.drop(lane)
                raise
            if work.accepted > accepted:
                patience, accepted = Patience(self._patience_s), work.accepted
            try:
                pause = patience.after(error, sent=lane is not None)
            except ClientError as final:
                raise work.given_up(final) from error
            await asyncio.sleep(pause)
        return work.result()

    async def _pump(self, lane: Lane, work: BulkPush) -> None:
        """Send requests ahead of their replies, until all have one or the server is full."""
        replies: deque[asyncio.Future[Reply]] = deque()
        while True:
            while work.waiting < WINDOW and (line := work.next_line(lane.features)) is not None:
                replies.append(lane.ask(line))
            if not work.waiting:
                return
            work.reply(await replies.popleft())

    def batch(
        self, description: str = "", *, success: NewJob | None = None, complete: NewJob | None = None
    ) -> "AsyncBatch":
        """A batch, for an `async with` block. `success` is pushed when all its jobs have succeeded, `complete` when all
        were executed. One of them is needed."""
        return AsyncBatch(self, description, success, complete)

    async def open_batch(self, bid: str) -> "AsyncBatch":
        """An existing batch, to push more jobs to it. Raises Refused if there is none."""
        return AsyncBatch(self, bid=await self._run(calls.open_batch(bid)))

    async def batch_status(self, bid: str) -> BatchStatus:
        """Raises Refused if there is no such batch."""
        return await self._run(calls.batch_status(bid))

    async def cancel(self, jid: str, reason: str = "") -> bool:
        """Cancel a job. Its worker, if it has one, learns it when it renews its lease. False: there is no such job, or
        it has ended."""
        return not await self.cancel_many([jid], reason)

    async def cancel_many(self, jids: Iterable[str], reason: str = "") -> list[str]:
        """Cancel jobs. Returns the IDs that were not cancelled: there is no such job, or it has ended."""
        return [jid for some in portions(jids) for jid in await self._run(calls.cancel(some, reason))]

    # Results and progress

    async def result(self, jid: str, timeout_s: float | None = None) -> bytes:
        """Wait until a job has ended and return its result, as JSON. The job must have been pushed with
        `keep_result_s`. Raises JobFailed, JobCancelled, ResultTimeout or UnknownJob."""
        until = deadline(timeout_s)
        while True:
            found = calls.result_in(await self._run(calls.outcome(jid, left(until))))
            if found is not None:
                return found
            if time.monotonic() >= until:
                raise ResultTimeout(f"job {jid} has not ended after {timeout_s:g} s; it may still run")

    async def state(self, jid: str) -> str:
        """waiting, running, done, dead, cancelled, or unknown for a job that the server does not remember."""
        return (await self._run(calls.outcome(jid, 0))).state

    async def progress(self, jid: str) -> Progress:
        """The progress of a job. The state of a job that is not tracked is `unknown`."""
        return await self._run(calls.progress(jid))

    async def follow(self, jid: str, timeout_s: float | None = None) -> AsyncIterator[Progress]:
        """Yield the progress of a job now and at each change, until it has ended. Raises ResultTimeout or
        UnknownJob."""
        until = deadline(timeout_s)
        found = await self._run(calls.next_progress(jid, "", 0.0))
        while True:
            yield calls.tracked(found)
            if found.ended:
                return
            before = found.updated_at
            while found.updated_at == before:
                if time.monotonic() >= until:
                    raise ResultTimeout(f"job {jid} has not ended after {timeout_s:g} s; it may still run")
                found = await self._run(calls.next_progress(jid, before, left(until)))

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
        until = time.monotonic() + wait_s
        while True:
            jobs = await self._run(worker_calls.fetch(queues, count, left(until), lease_s, order))
            if jobs or time.monotonic() >= until:
                return jobs

    async def ack(self, jobs: Sequence[tuple[str, bytes | None]]) -> dict[str, str]:
        """Complete jobs, each with its result as JSON or without one. Returns the server's reason for each ID that it
        refuses, such as an expired lease."""
        refused: dict[str, str] = {}
        for some in worker_calls.ack_portions(jobs, await self.features()):
            refused = refused | await self._run(worker_calls.ack(some))
        return refused

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
        return await self._run(worker_calls.fail(jid, kind, message, backtrace, final, delay_s))

    async def snooze(self, jid: str, delay_s: float, reason: str = "") -> bool:
        """Give a job back for later, which is not a failure. False: this client has no lease of it."""
        return await self._run(worker_calls.snooze(jid, delay_s, reason))

    async def extend(self, jids: Sequence[str], lease_s: float) -> list[str]:
        """Renew leases. Returns the IDs whose lease is lost: it has expired, or the job was cancelled or deleted."""
        return [
            jid for some in portions(jids) for jid in await self._run(worker_calls.extend(self._wid, some, lease_s))
        ]

    async def beat(self, state: str = "", rss_kb: int = 0) -> str:
        """Send a worker's heartbeat. Returns the state that an operator has asked for: "", quiet or terminate."""
        return await self._run(worker_calls.beat(self._wid, state, rss_kb))

    async def set_progress(self, jid: str, percent: int | None = None, text: str | None = None) -> None:
        """Report how far a job is. None leaves what is there."""
        await self._run(calls.set_progress(jid, percent, text))

    # Applications and the server

    async def sync_schedules(self, app: str, schedules: Iterable[Schedule]) -> None:
        """Replace all schedules of that application. Unchanged ones keep their next run."""
        await self._run(calls.sync_schedules(app, schedules))

    async def sync_rates(self, app: str, rates: Iterable[RateLimit]) -> None:
        """Replace all rate limits of that application."""
        await self._run(calls.sync_rates(app, rates))

    async def info(self) -> dict[str, Any]:
        """The server's INFO: counters, queues and versions."""
        return await self._run(calls.info())

    async def features(self) -> Features:
        """Connect if that was not done yet, and return what the server has announced, such as its extensions."""
        patience = Patience(self._patience_s)
        while self._lanes.features is None:
            try:
                await self._lanes.share()
            except ClientError as error:
                await asyncio.sleep(patience.after(error))
        return self._lanes.features

    # Connections

    async def _run(self, call: Call[T]) -> T:
        """Execute a call, and repeat it while that makes sense."""
        patience = Patience(self._patience_s)
        repeated = False
        while True:
            lane = None
            try:
                lane = await (self._lanes.take() if call.wait_s else self._lanes.share())
                line = call.line(lane.features)
            except ClientError as error:
                if lane is not None and call.wait_s:
                    self._lanes.give(lane)  # nothing was sent
                await asyncio.sleep(patience.after(error, sent=repeated))
                continue
            stale = lane.used
            try:
                if call.wait_s:
                    lane.set_limit(call.wait_s + self._timeout_s)
                reply = await lane.ask(line)
                value = result_of(call, reply, repeated)
            except Broken as error:
                self._lanes.drop(lane)
                if self._lanes.is_closed:
                    raise Closed("the client was closed") from error
                if not call.repeatable(lane.features):
                    raise not_repeated(error) from error
                if not stale or repeated:  # otherwise the server may have been restarted since
                    await asyncio.sleep(patience.after(error, sent=True))
                repeated = True
            except ServerFull as error:
                await asyncio.sleep(patience.after(error))
            except ClientError:
                if call.wait_s:
                    self._lanes.give(lane)
                raise
            except BaseException:
                if call.wait_s:
                    self._lanes.drop(lane)  # the caller has given up, and the server still waits
                raise
            else:
                lane.used = True
                if call.wait_s:
                    self._lanes.give(lane)
                return value


class AsyncBatch:
    """As `Batch`, for an `async with` block."""

    def __init__(
        self,
        client: AsyncClient,
        description: str = "",
        success: NewJob | None = None,
        complete: NewJob | None = None,
        *,
        parent: str = "",
        bid: str = "",
    ) -> None:
        self._client = client
        self._description = description
        self._success = success
        self._complete = complete
        self._parent = parent
        self.bid = bid  #: known in the block

    async def __aenter__(self) -> Self:
        if not self.bid:
            self.bid = await self._client._run(
                calls.open_new_batch(self._description, self._success, self._complete, self._parent)
            )
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None:
            await self._client._run(calls.commit_batch(self.bid))

    async def push(self, job: NewJob) -> str:
        """Push a job of this batch."""
        return await self._client.push(msgspec.structs.replace(job, batch=self.bid))

    async def push_many(self, jobs: Iterable[NewJob]) -> list[str]:
        """Push jobs of this batch."""
        return await self._client.push_many(msgspec.structs.replace(job, batch=self.bid) for job in jobs)

    def batch(
        self, description: str = "", *, success: NewJob | None = None, complete: NewJob | None = None
    ) -> "AsyncBatch":
        """A batch inside this one. The callbacks of this one wait for it."""
        return AsyncBatch(self._client, description, success, complete, parent=self.bid)

    async def status(self) -> BatchStatus:
        return await self._client.batch_status(self.bid)
