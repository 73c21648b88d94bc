"""The clients of an app in a test. They are the usual ones, and report each call that changed something."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from crossdock.client.aio import AsyncClient
from crossdock.client.call import Call
from crossdock.client.client import Client
from crossdock.client.jobs import NewJob
from crossdock.client.transport import Connect

T = TypeVar("T")


class ObservedClient(Client):
    """Calls `called` after each call. That runs the pushed jobs in inline mode."""

    def __init__(self, connect: Connect, called: Callable[[], None]) -> None:
        super().__init__(connect=connect)
        self._called = called

    def _run(self, call: Call[T]) -> T:
        value = super()._run(call)
        self._called()
        return value

    def push_many(self, jobs: Iterable[NewJob]) -> list[str]:
        jids = super().push_many(jobs)
        self._called()
        return jids


class ObservedAsyncClient(AsyncClient):
    """As `ObservedClient`."""

    def __init__(self, connect: Connect, called: Callable[[], Awaitable[None]]) -> None:
        super().__init__(connect=connect)
        self._called = called

    async def _run(self, call: Call[T]) -> T:
        value = await super()._run(call)
        await self._called()
        return value

    async def push_many(self, jobs: Iterable[NewJob]) -> list[str]:
        jids = await super().push_many(jobs)
        await self._called()
        return jids
