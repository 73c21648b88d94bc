"""The blocking client: a pool of connections that threads share."""

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar

import msgspec

from crossdock.client import calls, worker_calls
from crossdock.client.address import Address, parse_url
from crossdock.client.base import Closes
from crossdock.client.bulk_push import WINDOW, BulkPush
from crossdock.client.call import Call, portions, result_of
from crossdock.client.errors import Broken, ClientError, Closed, ResultTimeout, ServerFull
from crossdock.client.jobs import BatchStatus, FetchedJob, NewJob, Progress, RateLimit, Schedule
from crossdock.client.pool import Link, Pool
from crossdock.client.retries import PATIENCE_S, TIMEOUT_S, Patience, deadline, left, not_repeated
from crossdock.client.transport import Connect
from crossdock.client.transport import connect as connect_socket
from crossdock.client.wire import Features, Identity, Reply

if TYPE_CHECKING:
    import ssl

T = TypeVar("T")

#: Connections that are kept open. More threads than that open and close their own.
POOL_SIZE: Final = 16


class Client(Closes):
    """Threads may share one client. A child process after a fork opens connections of its own."""

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
        opener: Connect = connect or partial(connect_socket, context=context)
        self._pool = Pool(opener, address, identity, timeout_s, pool_size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._where!r})"

    def close(self) -> None:
        """Close all connections, also those that other threads wait on."""
        self._pool.close()

    # Pushing

    def push(self, job: NewJob) -> str:
        """Push a job and return its ID when the job is durable.

        A push whose reply is lost is repeated. The server does not push a job twice. Raises Refused, NotUnique,
        ServerFull, InvalidJob, Unsupported, NoServer or Broken.
        """
        return self._run(calls.push(job))

    def push_many(self, jobs: Iterable[NewJob]) -> list[str]:
        """Push any number of jobs and return their IDs. Raises PushRefused if the server refuses some of them."""
        work = BulkPush(jobs)
        patience, accepted = Patience(self._patience_s), 0
        stale = False  #: whether a connection was tried that was opened before
        while not work.done:
            link = None
            try:
                link = self._pool.take()
                self._pump(link, work)
                self._pool.give(link)
                if work.full is None:
                    break
                error: ClientError = work.full
                work.full = None
            except ClientError as failed:
                if link is not None:
                    self._pool.drop(link)
                if not work.lost():
                    raise not_repeated(failed) from failed
                if isinstance(failed, Broken) and link is not None and link.used and not stale:
                    stale = True
                    self._pool.drop_idle()
                    continue
                error = failed
            except BaseException:
                if link is not None:
                    self._pool.drop(link)
                raise
            if work.accepted > accepted:
                patience, accepted = Patience(self._patience_s), work.accepted
            try:
                self._pool.pause(patience.after(error, sent=link is not None))
            except ClientError as final:
                raise work.given_up(final) from error
        return work.result()

    def _pump(self, link: Link, work: BulkPush) -> None:
        """Send requests ahead of their replies, until all have one or the server is full."""
        while True:
            while work.waiting < WINDOW and (line := work.next_line(link.features)) is not None:
                link.send(line)
            if not work.waiting:
                return
            work.reply(link.read())

    def batch(self, description: str = "", *, success: NewJob | None = None, complete: NewJob | None = None) -> "Batch":
        """A batch, for a `with` block. `success` is pushed when all its jobs have succeeded, `complete` when all were
        executed. One of them is needed."""
        return Batch(self, description, success, complete)

    def open_batch(self, bid: str) -> "Batch":
        """An existing batch, to push more jobs to it. Raises Refused if there is none."""
        return Batch(self, bid=self._run(calls.open_batch(bid)))

    def batch_status(self, bid: str) -> BatchStatus:
        """Raises Refused if there is no such batch."""
        return self._run(calls.batch_status(bid))

    def cancel(self, jid: str, reason: str = "") -> bool:
        """Cancel a job. Its worker, if it has one, learns it when it renews its lease. False: there is no such job, or
        it has ended."""
        return not self.cancel_many([jid], reason)

    def cancel_many(self, jids: Iterable[str], reason: str = "") -> list[str]:
        """Cancel jobs. Returns the IDs that were not cancelled: there is no such job, or it has ended."""
        return [unknown for some in portions(jids) for unknown in self._run(calls.cancel(some, reason))]

    # Results and progress

    def result(self, jid: str, timeout_s: float | None = None) -> bytes:
        """Wait until a job has ended and return its result, as JSON. The job must have been pushed with
        `keep_result_s`. Raises JobFailed, JobCancelled, ResultTimeout or UnknownJob."""
        until = deadline(timeout_s)
        while True:
            found = calls.result_in(self._run(calls.outcome(jid, left(until))))
            if found is not None:
                return found
            if time.monotonic() >= until:
                raise ResultTimeout(f"job {jid} has not ended after {timeout_s:g} s; it may still run")

    def state(self, jid: str) -> str:
        """waiting, running, done, dead, cancelled, or unknown for a job that the server does not remember."""
        return self._run(calls.outcome(jid, 0)).state

    def progress(self, jid: str) -> Progress:
        """The progress of a job. The state of a job that is not tracked is `unknown`."""
        return self._run(calls.progress(jid))

    def follow(self, jid: str, timeout_s: float | None = None) -> Iterator[Progress]:
        """Yield the progress of a job now and at each change, until it has ended. Raises ResultTimeout or
        UnknownJob."""
        until = deadline(timeout_s)
        found = self._run(calls.next_progress(jid, "", 0.0))
        while True:
            yield calls.tracked(found)
            if found.ended:
                return
            before = found.updated_at
            while found.updated_at == before:
                if time.monotonic() >= until:
                    raise ResultTimeout(f"job {jid} has not ended after {timeout_s:g} s; it may still run")
                found = self._run(calls.next_progress(jid, before, left(until)))

    # Working

    def fetch(
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
            jobs = self._run(worker_calls.fetch(queues, count, left(until), lease_s, order))
            if jobs or time.monotonic() >= until:
                return jobs

    def ack(self, jobs: Sequence[tuple[str, bytes | None]]) -> dict[str, str]:
        """Complete jobs, each with its result as JSON or without one. Returns the server's reason for each ID that it
        refuses, such as an expired lease."""
        refused: dict[str, str] = {}
        for some in worker_calls.ack_portions(jobs, self.features()):
            refused = refused | self._run(worker_calls.ack(some))
        return refused

    def fail(
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
        return self._run(worker_calls.fail(jid, kind, message, backtrace, final, delay_s))

    def snooze(self, jid: str, delay_s: float, reason: str = "") -> bool:
        """Give a job back for later, which is not a failure. False: this client has no lease of it."""
        return self._run(worker_calls.snooze(jid, delay_s, reason))

    def extend(self, jids: Sequence[str], lease_s: float) -> list[str]:
        """Renew leases. Returns the IDs whose lease is lost: it has expired, or the job was cancelled or deleted."""
        return [lost for some in portions(jids) for lost in self._run(worker_calls.extend(self._wid, some, lease_s))]

    def beat(self, state: str = "", rss_kb: int = 0) -> str:
        """Send a worker's heartbeat. Returns the state that an operator has asked for: "", quiet or terminate."""
        return self._run(worker_calls.beat(self._wid, state, rss_kb))

    def set_progress(self, jid: str, percent: int | None = None, text: str | None = None) -> None:
        """Report how far a job is. None leaves what is there."""
        self._run(calls.set_progress(jid, percent, text))

    # Applications and the server

    def sync_schedules(self, app: str, schedules: Iterable[Schedule]) -> None:
        """Replace all schedules of that application. Unchanged ones keep their next run."""
        self._run(calls.sync_schedules(app, schedules))

    def sync_rates(self, app: str, rates: Iterable[RateLimit]) -> None:
        """Replace all rate limits of that application."""
        self._run(calls.sync_rates(app, rates))

    def info(self) -> dict[str, Any]:
        """The server's INFO: counters, queues and versions."""
        return self._run(calls.info())

    def features(self) -> Features:
        """Connect if that was not done yet, and return what the server has announced, such as its extensions."""
        patience = Patience(self._patience_s)
        while self._pool.features is None:
            try:
                self._pool.give(self._pool.take())
            except ClientError as error:
                self._pool.pause(patience.after(error))
        return self._pool.features

    # Connections

    def _run(self, call: Call[T]) -> T:
        """Execute a call, and repeat it while that makes sense."""
        patience = Patience(self._patience_s)
        repeated = False
        while True:
            link = None
            try:
                link = self._pool.take()
                line = call.line(link.features)
            except ClientError as error:
                if link is not None:
                    self._pool.give(link)  # nothing was sent
                self._pool.pause(patience.after(error, sent=repeated))
                continue
            stale = link.used
            try:
                reply = link.ask(line) if not call.wait_s else self._ask_waiting(link, line, call.wait_s)
                value = result_of(call, reply, repeated)
            except Broken as error:
                self._pool.drop(link)
                if self._pool.is_closed:
                    raise Closed("the client was closed") from error
                if not call.repeatable(link.features):
                    raise not_repeated(error) from error
                if stale and not repeated:
                    self._pool.drop_idle()
                else:
                    self._pool.pause(patience.after(error, sent=True))
                repeated = True
            except ServerFull as error:
                self._pool.give(link)
                self._pool.pause(patience.after(error))
            except ClientError:
                self._pool.give(link)
                raise
            except BaseException:
                self._pool.drop(link)
                raise
            else:
                self._pool.give(link)
                return value

    def _ask_waiting(self, link: Link, line: bytes, wait_s: float) -> Reply:
        link.settimeout(wait_s + self._timeout_s)
        reply = link.ask(line)
        link.settimeout(self._timeout_s)
        return reply


class Batch:
    """Jobs with a callback. The batch is opened when the `with` block is entered, and committed when it ends without
    an error."""

    def __init__(
        self,
        client: Client,
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

    def __enter__(self) -> Self:
        if not self.bid:
            self.bid = self._client._run(
                calls.open_new_batch(self._description, self._success, self._complete, self._parent)
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None:
            self._client._run(calls.commit_batch(self.bid))

    def push(self, job: NewJob) -> str:
        """Push a job of this batch."""
        return self._client.push(msgspec.structs.replace(job, batch=self.bid))

    def push_many(self, jobs: Iterable[NewJob]) -> list[str]:
        """Push jobs of this batch."""
        return self._client.push_many(msgspec.structs.replace(job, batch=self.bid) for job in jobs)

    def batch(self, description: str = "", *, success: NewJob | None = None, complete: NewJob | None = None) -> "Batch":
        """A batch inside this one. The callbacks of this one wait for it."""
        return Batch(self._client, description, success, complete, parent=self.bid)

    def status(self) -> BatchStatus:
        return self._client.batch_status(self.bid)
