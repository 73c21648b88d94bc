"""A closed loop of requests. Each lane is a connection with one request in flight. The lanes of a phase share its
requests, or each has its own.

The load must be cheap, because on a small machine it shares the processors with the server. So a request costs one read
of the clock, one call that checks the reply and one write. All other checks are made after the clock has stopped.
Requests are written to the socket directly. The transport would buffer them until all received replies are checked, and
the server would be idle meanwhile.
"""

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter
from typing import Final, cast

from bench.replies import Unexpected, Whole

#: A phase that takes longer than this is stuck.
_PATIENCE_S: Final = 900.0


class Phase:
    """`whole` checks each reply. `keep` keeps the replies for later checks. `own` are the requests of each lane, if the
    lanes do not share them."""

    def __init__(
        self,
        requests: Iterable[bytes],
        whole: Whole,
        *,
        keep: bool = False,
        own: "Mapping[Lane, Iterable[bytes]] | None" = None,
    ) -> None:
        self.requests = iter(requests)
        self.own = own
        self.whole = whole
        self.keep = keep
        self.replies: list[bytes] = []  #: kept replies of all lanes, in order of arrival
        self.took: list[float] = []
        self.over = False
        self._busy = 0
        self._end: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def run(self, lanes: Sequence["Lane"]) -> float:
        """Send all requests. Returns the seconds from the first request to the last reply. Raises Unexpected."""
        self._busy = len(lanes)
        started = perf_counter()
        for lane in lanes:
            lane.begin(self)
        async with asyncio.timeout(_PATIENCE_S):
            return await self._end - started

    def leave(self, now: float) -> None:
        """Count a lane that has no more requests."""
        self._busy -= 1
        if not self._busy and not self._end.done():
            self.over = True
            self._end.set_result(now)

    def fail(self, error: Unexpected) -> None:
        if not self._end.done():
            self.over = True
            self._end.set_exception(error)


class Lane(asyncio.Protocol):
    def __init__(self) -> None:
        self._phase: Phase | None = None
        self._kept = b""
        self.kept: list[bytes] = []  #: complete replies, if the phase keeps them
        self._sent = 0.0
        self._broken: Unexpected | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._socket: int = transport.get_extra_info("socket").fileno()

    def begin(self, phase: Phase) -> None:
        if self._broken is not None:
            phase.fail(self._broken)
            return
        self._phase = phase
        self.kept = []
        self._requests = phase.requests if phase.own is None else iter(phase.own[self])
        self._send(phase, perf_counter())

    def data_received(self, data: bytes) -> None:
        now = perf_counter()
        phase = self._phase
        if phase is None:
            self._break(Unexpected(f"a reply without a request: {data[:160]!r}"))
            return
        if self._kept:
            data = self._kept + data
        try:
            if not phase.whole(data):
                self._kept = data
                return
        except Unexpected as error:
            self._break(error)
            return
        self._kept = b""
        phase.took.append(now - self._sent)
        if phase.keep:
            phase.replies.append(data)
            self.kept.append(data)
        self._send(phase, now)

    def _send(self, phase: Phase, now: float) -> None:
        request = next(self._requests, None)
        if request is None:
            self._phase = None
            phase.leave(now)
        else:
            self._sent = now
            try:
                sent = os.write(self._socket, request)
            except OSError:
                sent = 0
            if sent < len(request):
                self._transport.write(request[sent:])

    def connection_lost(self, error: Exception | None) -> None:
        self._break(Unexpected("the server closed a connection"))

    def _break(self, error: Unexpected) -> None:
        self._broken = self._broken or error
        if self._phase is not None:
            self._phase.fail(self._broken)
        self._transport.abort()
