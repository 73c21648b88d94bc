"""The blocking client: a pool of connections that threads share."""

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar

import msgspec

from crossdock.client import calls
from crossdock.client.address import Address, parse_url
from crossdock.client.base import Closes
from crossdock.client.bulk_push import WINDOW, BulkPush
from crossdock.client.calls import Call, result_of
from crossdock.client.errors import Broken, ClientError, Closed, ResultTimeout, ServerFull
from crossdock.client.jobs import BatchStatus, FetchedJob, NewJob, Progress, RateLimit, Schedule
from crossdock.client.link import Link
from crossdock.client.retries import PATIENCE_S, TIMEOUT_S, Patience, deadline, left, not_repeated
from crossdock.client.transport import Connect
from crossdock.client.transport import connect as connect_socket
from crossdock.client.wire import Features, Identity, Reply

if TYPE_CHECKING:
    import ssl

T = TypeVar("T")

#: Connections that are kept open. More threads than that open and close their own.
POOL_SIZE: Final = 16


#: All clients of this process, for a fork.
_clients: "weakref.WeakSet[Client]" = weakref.WeakSet()


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
        self._address = url if isinstance(url, Address) else parse_url(url)
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._pool_size = pool_size
        self._connect: Connect = connect or partial(connect_socket, context=context)
        self._wid = wid
        self._identity = Identity(
            where=str(self._address),
            password=self._address.password,
            wid=wid,
            hostname=hostname,
            labels=tuple(labels),
        )
        self._closed = threading.Event()
        self._features: Features | None = None
        # Both are used without a lock: the methods of sets and deques are atomic.
        self._idle: deque[Link] = deque()
        self._links: set[Link] = set()
        _clients.add(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._address)!r})"

    def close(self) -> None:
        """Close all connections, also those that other threads wait on."""
        self._closed.set()
        self._idle.clear()
        for link in list(self._links):
            self._drop(link)

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
        while not work.done:
            link = None
            try:
                link = self._take()
                self._pump(link, work)
                self._give(link)
                if work.full is None:
                    break
                error: ClientError = work.full
                work.full = None
            except ClientError as failed:
                if link is not None:
                    self._drop(link)
                if not work.lost():
                    raise not_repeated(failed) from failed
                error = failed
            except BaseException:
                if link is not None:
                    self._drop(link)
                raise
            if work.accepted > accepted:
                patience, accepted = Patience(self._patience_s), work.accepted
            try:
                self._pause(patience.after(error, sent=link is not None))
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
        return [unknown for some in calls.portions(jids) for unknown in self._run(calls.cancel(some, reason))]

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
            jobs = self._run(calls.fetch(queues, count, left(until), lease_s, order))
            if jobs or time.monotonic() >= until:
                return jobs

    def ack(self, jobs: Sequence[tuple[str, bytes | None]]) -> dict[str, str]:
        """Complete jobs, each with its result as JSON or without one. Returns the server's reason for each ID that it
        refuses, such as an expired lease."""
        refused: dict[str, str] = {}
        for some in calls.ack_portions(jobs, self.features()):
            refused = refused | self._run(calls.ack(some))
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
        return self._run(calls.fail(jid, kind, message, backtrace, final, delay_s))

    def snooze(self, jid: str, delay_s: float, reason: str = "") -> bool:
        """Give a job back for later, which is not a failure. False: this client has no lease of it."""
        return self._run(calls.snooze(jid, delay_s, reason))

    def extend(self, jids: Sequence[str], lease_s: float) -> list[str]:
        """Renew leases. Returns the IDs whose lease is lost: it has expired, or the job was cancelled or deleted."""
        return [lost for some in calls.portions(jids) for lost in self._run(calls.extend(self._wid, some, lease_s))]

    def beat(self, state: str = "", rss_kb: int = 0) -> str:
        """Send a worker's heartbeat. Returns the state that an operator has asked for: "", quiet or terminate."""
        return self._run(calls.beat(self._wid, state, rss_kb))

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
        while self._features is None:
            try:
                self._give(self._take())
            except ClientError as error:
                self._pause(patience.after(error))
        return self._features

    # Connections

    def _run(self, call: Call[T]) -> T:
        """Execute a call, and repeat it while that makes sense."""
        patience = Patience(self._patience_s)
        repeated = False
        while True:
            link = None
            try:
                link = self._take()
                line = call.line(link.features)
            except ClientError as error:
                if link is not None:
                    self._give(link)  # nothing was sent
                self._pause(patience.after(error, sent=repeated))
                continue
            stale = link.used
            try:
                reply = link.ask(line) if not call.wait_s else self._ask_waiting(link, line, call.wait_s)
                value = result_of(call, reply, repeated)
            except Broken as error:
                self._drop(link)
                if self._closed.is_set():
                    raise Closed("the client was closed") from error
                if not call.repeatable(link.features):
                    raise not_repeated(error) from error
                repeated = True
                if stale:  # the server may have been restarted since; the others are as old
                    self._drop_idle()
                    continue
                self._pause(patience.after(error, sent=True))
            except ServerFull as error:
                self._give(link)
                self._pause(patience.after(error))
            except ClientError:
                self._give(link)
                raise
            except BaseException:
                self._drop(link)
                raise
            else:
                self._give(link)
                return value

    def _ask_waiting(self, link: Link, line: bytes, wait_s: float) -> Reply:
        link.settimeout(wait_s + self._timeout_s)
        reply = link.ask(line)
        link.settimeout(self._timeout_s)
        return reply

    def _take(self) -> Link:
        """The connection that was used last, or a new one. Raises NoServer, Broken, Refused or Closed."""
        try:
            return self._idle.pop()
        except IndexError:
            pass
        if self._closed.is_set():
            raise Closed("the client was closed")
        transport = self._connect(self._address, self._timeout_s)
        try:
            link = Link(transport, self._identity)
        except BaseException:
            transport.close()
            raise
        self._features = link.features
        self._links.add(link)
        return link

    def _give(self, link: Link) -> None:
        link.used = True  # its age is not known when it is taken again
        if len(self._idle) >= self._pool_size or link not in self._links or self._closed.is_set():
            self._drop(link)
        else:
            self._idle.append(link)

    def _drop(self, link: Link) -> None:
        self._links.discard(link)
        link.close()

    def _drop_idle(self) -> None:
        while self._idle:
            try:
                self._drop(self._idle.pop())
            except IndexError:  # another thread was faster
                return

    def _pause(self, seconds: float) -> None:
        self._closed.wait(seconds)

    def _forget(self) -> None:
        """In the child process after a fork: its connections belong to the parent."""
        links = list(self._links)
        self._links = set()
        self._idle = deque()
        closed = self._closed.is_set()
        self._closed = threading.Event()  # another thread may have held the lock of the old one
        if closed:
            self._closed.set()
        for link in links:
            link.close()


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


def _forget_all() -> None:
    for client in list(_clients):
        client._forget()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget_all)
