"""The handle of a pushed job: its ID, result, state and progress."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from crossdock.app.errors import BadResult
from crossdock.client.durations import Duration, seconds
from crossdock.client.errors import JobCancelled, JobFailed
from crossdock.client.jobs import Progress

if TYPE_CHECKING:
    from crossdock.app.app import App
    from crossdock.app.task import Task

R = TypeVar("R")

RESULT_WAIT_S: Final = 10.0
#: The error type of a job that ended with the outcome Cancel. It is dead on the server, so that operators find it.
CANCELLED: Final = "Cancelled"


class Handle(Generic[R]):
    """A job that was pushed. It holds no connection, so it may be kept or thrown away.

    Each method that asks the server has an asyncio variant whose name begins with `a`: `await handle.aresult()`.
    """

    __slots__ = ("_app", "_keeps_result", "_task", "id")

    def __init__(self, app: App, jid: str, task: Task[..., Any] | None = None, *, keeps_result: bool = True) -> None:
        """Without a task the result is returned as plain JSON values."""
        self.id: Final = jid
        self._app = app
        self._task = task
        self._keeps_result = keeps_result

    def __repr__(self) -> str:
        return f"<Handle {self.id}{f' of {self._task.name}' if self._task is not None else ''}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def result(self, timeout: Duration | None = RESULT_WAIT_S) -> R:
        """Wait until the job has succeeded and return what its task returned. None waits without a limit.

        Raises JobFailed, JobCancelled, ResultTimeout, UnknownJob, or BadResult if the task keeps no results.
        """
        self._must_keep()
        try:
            return self._decoded(self._app.client.result(self.id, _seconds(timeout)))
        except JobFailed as error:
            if error.kind != CANCELLED:
                raise
            raise JobCancelled(error.jid, error.message) from error

    async def aresult(self, timeout: Duration | None = RESULT_WAIT_S) -> R:  # noqa: ASYNC109 - the server waits
        """As `result`, for asyncio."""
        self._must_keep()
        try:
            return self._decoded(await self._app.async_client.result(self.id, _seconds(timeout)))
        except JobFailed as error:
            if error.kind != CANCELLED:
                raise
            raise JobCancelled(error.jid, error.message) from error

    def _must_keep(self) -> None:
        if not self._keeps_result:
            name = "the task" if self._task is None else self._task.name
            raise BadResult(
                f'{name}: its results are not kept; add keep_result="1h" to the task (a task that is annotated to '
                "return None keeps none by default)"
            )

    def _decoded(self, text: bytes) -> R:
        if self._task is None:
            found: R = msgspec.json.decode(text)
            return found
        value: R = self._task.signature.decode_result(text)
        return value

    def state(self) -> str:
        """waiting, running, done, dead, cancelled, or unknown for a job that the server does not remember."""
        return self._app.client.state(self.id)

    async def astate(self) -> str:
        """As `state`, for asyncio."""
        return await self._app.async_client.state(self.id)

    def progress(self) -> Progress:
        """How far the job is, as its task has reported."""
        return self._app.client.progress(self.id)

    async def aprogress(self) -> Progress:
        """As `progress`, for asyncio."""
        return await self._app.async_client.progress(self.id)

    def follow(self, timeout: Duration | None = None) -> Iterator[Progress]:
        """Yield the progress now and at each change, until the job has ended. Raises ResultTimeout or UnknownJob."""
        return self._app.client.follow(self.id, _seconds(timeout))

    def afollow(self, timeout: Duration | None = None) -> AsyncIterator[Progress]:
        """As `follow`, for asyncio."""
        return self._app.async_client.follow(self.id, _seconds(timeout))

    def cancel(self, reason: str = "") -> bool:
        """Cancel the job. A worker that executes it is informed. False: the server has no such job."""
        return self._app.client.cancel(self.id, reason)

    async def acancel(self, reason: str = "") -> bool:
        """As `cancel`, for asyncio."""
        return await self._app.async_client.cancel(self.id, reason)


def _seconds(timeout: Duration | None) -> float | None:
    return None if timeout is None else seconds(timeout)
