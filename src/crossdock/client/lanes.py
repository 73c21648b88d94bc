"""The connections of the asyncio client: a few that calls share, and one for each call that waits."""

import asyncio
import os
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

from crossdock.client.errors import Closed
from crossdock.client.lane import Lane
from crossdock.client.wire import Features

#: Requests on the way on each shared connection before another one is opened.
_BUSY: Final = 64


class Lanes:
    """Connections belong to an event loop. A program that runs another one gets new connections."""

    def __init__(self, connect: Callable[[], Awaitable[Lane]], timeout_s: float, size: int) -> None:
        self._connect = connect
        self._timeout_s = timeout_s
        self._size = max(size, 1)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._shared: list[Lane] = []
        self._own: list[Lane] = []  #: idle ones, for calls that wait
        self._all: set[Lane] = set()
        self._opening: asyncio.Task[Lane] | None = None
        self._guard: AsyncGenerator[None, None] | None = None
        self.is_closed = False
        self.features: Features | None = None  #: of the newest connection
        _pools.add(self)

    async def share(self) -> Lane:
        """The connection with the fewest requests on the way, or a new one if all are busy. Raises NoServer, Broken,
        Refused or Closed."""
        self._enter_loop()
        shared = self._shared
        while shared:
            lane = shared[0] if len(shared) == 1 else min(shared, key=_load)
            if lane.dead is not None:
                self.drop(lane)
                continue
            if len(lane.waiting) >= _BUSY and len(shared) < self._size:
                break
            await lane.writable()
            if lane.dead is None:
                return lane
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(self._opened)
        return await asyncio.shield(self._opening)

    def _opened(self, opening: asyncio.Task[Lane]) -> None:
        failed = opening.cancelled() or opening.exception() is not None
        if opening is self._opening:
            self._opening = None
            if not failed:
                self._shared.append(opening.result())

    async def take(self) -> Lane:
        """A connection that no other call uses until it is given back. Raises as `share`."""
        self._enter_loop()
        while self._own:
            lane = self._own.pop()
            if lane.dead is None:
                return lane
            self.drop(lane)
        return await self._open()

    def give(self, lane: Lane) -> None:
        lane.used = True
        lane.set_limit(self._timeout_s)
        if lane.dead is not None or lane not in self._all or len(self._own) >= self._size:
            self.drop(lane)
        else:
            self._own.append(lane)

    async def _open(self) -> Lane:
        self._check()
        if self._guard is None:
            self._guard = self._close_with_loop()
            await anext(self._guard)
        lane = await self._connect()
        try:
            self._check()  # it may have been closed meanwhile
        except Closed:
            lane.close()
            raise
        self.features = lane.features
        self._all.add(lane)
        return lane

    def _check(self) -> None:
        if self.is_closed:
            raise Closed("the client was closed")

    def drop(self, lane: Lane) -> None:
        self._all.discard(lane)
        if lane in self._shared:
            self._shared.remove(lane)
        lane.close()

    async def close(self) -> None:
        self.is_closed = True
        self._drop_all()
        if self._guard is not None and self._loop is asyncio.get_running_loop():
            await self._guard.aclose()

    def _drop_all(self) -> None:
        for lane in list(self._all):
            self.drop(lane)
        self._own.clear()

    async def _close_with_loop(self) -> AsyncGenerator[None, None]:
        """The event loop closes its asynchronous generators before it ends, and so the connections."""
        try:
            yield
        finally:
            self._drop_all()
            await asyncio.sleep(0)  # the transports call back

    def _enter_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            self._reset()

    def _reset(self) -> list[Lane]:
        lanes = list(self._all)
        self._all = set()
        self._shared = []
        self._own = []
        self._opening = None
        self._guard = None
        return lanes

    def forget(self) -> None:
        """In the child process after a fork: the connections belong to the parent."""
        self._loop = None
        for lane in self._reset():
            lane.abandon()


def _load(lane: Lane) -> int:
    return len(lane.waiting)


#: All pools of this process, for a fork.
_pools: "weakref.WeakSet[Lanes]" = weakref.WeakSet()


def _forget_all() -> None:
    for pool in list(_pools):
        pool.forget()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget_all)
