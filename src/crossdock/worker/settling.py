"""Reports the outcomes of jobs to the server, many at once, and again until the server has them.

While one request is under way the next outcomes gather. If the server cannot be reached they wait: leases survive a
restart of the server, so it accepts them later. What it then refuses has been executed by another worker, or was
settled by a request whose reply was lost.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from crossdock import logs
from crossdock.client.errors import Broken, ClientError, NoServer, Refused
from crossdock.worker.process import HeldJob

log: Final = logging.getLogger("crossdock.worker")

ACKS_AT_MOST: Final = 1_000  #: of the server, in a request
#: Results of one request, in bytes. A longer result is sent alone.
_RESULT_BYTES: Final = 256 * 1024
_OTHERS_AT_ONCE: Final = 32
_RETRY_S: Final = (0.05, 0.2, 0.5, 1.0, 2.0)


class SettlingClient(Protocol):
    """The part of the client that is used here."""

    async def ack(self, jobs: list[tuple[str, bytes | None]], /) -> dict[str, str]: ...

    async def fail(
        self,
        jid: str,
        kind: str,
        message: str,
        backtrace: list[str] = ...,
        *,
        final: bool = ...,
        delay_s: float | None = ...,
    ) -> bool: ...

    async def snooze(self, jid: str, delay_s: float, reason: str = ..., /) -> bool: ...


class Ack(msgspec.Struct, frozen=True):
    held: HeldJob
    result: bytes | None


class Fail(msgspec.Struct, frozen=True, kw_only=True):
    held: HeldJob
    type: str
    message: str
    backtrace: list[str] = []
    final: bool = False
    delay_s: float | None = None


class Snooze(msgspec.Struct, frozen=True):
    held: HeldJob
    delay_s: float
    reason: str


class Settler:
    def __init__(
        self,
        client: SettlingClient,
        *,
        settled: Callable[[HeldJob], None],
        reached: Callable[[], None],
        unreachable: Callable[[ClientError], None],
    ) -> None:
        """`settled` is called when the server has an outcome or has refused it."""
        self._client = client
        self._settled, self._reached, self._unreachable = settled, reached, unreachable
        self._acks: deque[Ack] = deque()
        self._others: deque[Fail | Snooze] = deque()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._repeats = 0  #: requests in a row that got no reply

    def add(self, settlement: Ack | Fail | Snooze) -> None:
        if settlement.held.lost:
            self._drop(settlement.held, "its lease was lost")
            return
        settlement.held.settling = True
        if isinstance(settlement, Ack):
            self._acks.append(settlement)
        else:
            self._others.append(settlement)
        self._idle.clear()
        self._wake.set()

    async def flushed(self) -> None:
        """Return when the server has all outcomes."""
        await self._idle.wait()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._acks or self._others:
                try:
                    await self._send_some()
                    self._repeats = 0
                    self._reached()
                except (NoServer, Broken) as error:
                    self._repeats += 1
                    self._unreachable(error)
                    await asyncio.sleep(_RETRY_S[min(self._repeats, len(_RETRY_S)) - 1])
            self._idle.set()

    async def _send_some(self) -> None:
        """Raises NoServer or Broken. What was not confirmed stays in its queue."""
        if self._acks:
            await self._send_acks()
        if self._others:
            some = [self._others[place] for place in range(min(_OTHERS_AT_ONCE, len(self._others)))]
            done = await asyncio.gather(*map(self._send_other, some), return_exceptions=True)
            for each, error in zip(some, done, strict=True):
                if error is None:
                    self._others.remove(each)
            for error in done:
                if error is not None:
                    raise error

    async def _send_acks(self) -> None:
        while self._acks and self._acks[0].held.lost:
            self._drop(self._acks.popleft().held, "its lease was lost")
        some: list[Ack] = []
        size = 0
        for each in self._acks:
            if each.held.lost:
                break
            size += len(each.result or b"")
            if some and (size > _RESULT_BYTES or len(some) >= ACKS_AT_MOST):
                break
            some.append(each)
        if not some:
            return
        try:
            refused = await self._client.ack([(each.held.job.jid, each.result) for each in some])
        except Refused as error:
            if len(some) > 1:
                refused = await self._ack_each(some)
            else:
                refused = {some[0].held.job.jid: str(error)}
        for each in some:
            self._acks.popleft()
            why = refused.get(each.held.job.jid)
            if why is None:
                self._settled(each.held)
            else:
                self._refused(each, why)

    async def _ack_each(self, some: list[Ack]) -> dict[str, str]:
        """One of them was not acceptable, and the server has executed none."""
        refused: dict[str, str] = {}
        for each in some:
            jid = each.held.job.jid
            try:
                refused |= await self._client.ack([(jid, each.result)])
            except Refused as error:
                refused[jid] = str(error)
        return refused

    def _refused(self, ack: Ack, why: str) -> None:
        if ack.result is not None and len(ack.result) > _RESULT_BYTES:
            # The lease is still held: only the result was refused.
            message = f"the server refused the result of {len(ack.result):,} bytes: {why}; return less"
            self.add(Fail(held=ack.held, type="ResultTooLarge", message=message, final=True))
            return
        self._drop(ack.held, why)

    async def _send_other(self, each: Fail | Snooze) -> None:
        jid = each.held.job.jid
        if each.held.lost:
            self._drop(each.held, "its lease was lost")
            return
        try:
            if isinstance(each, Fail):
                taken = await self._client.fail(
                    jid, each.type, each.message, each.backtrace, final=each.final, delay_s=each.delay_s
                )
            else:
                taken = await self._client.snooze(jid, each.delay_s, each.reason)
        except Refused as error:
            self._drop(each.held, str(error))
            return
        if taken:
            self._settled(each.held)
        else:
            self._drop(each.held, "it knows no lease of this worker")

    def _drop(self, held: HeldJob, why: str) -> None:
        level = logging.INFO if self._repeats else logging.WARNING
        text = f"the server did not take the outcome of a job: {why}"
        logs.limited_event(log, level, "outcome-refused", text, jid=held.job.jid, kind=held.job.kind)
        self._settled(held)
