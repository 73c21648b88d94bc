"""Batches of an application: jobs that belong together, with callbacks when all of them are done."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, overload

from crossdock.app.handle import Handle
from crossdock.app.task import PreparedJob, Pusher
from crossdock.client import aio, client
from crossdock.client.jobs import BatchStatus

if TYPE_CHECKING:
    from crossdock.app.app import App

P = ParamSpec("P")
R = TypeVar("R")


class AppBatch:
    """A batch, open in a `with` block. It is committed at the end of the block, and not after an error.

    The callbacks are pushed by the server: `success` when all jobs have succeeded, `complete` when all were executed.
    """

    def __init__(self, batch: client.Batch) -> None:
        self._batch = batch

    @property
    def id(self) -> str:
        """The batch's ID, known in the block."""
        return self._batch.bid

    def __enter__(self) -> Self:
        self._batch.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._batch.__exit__(kind, *error)

    @overload
    def push(self, work: PreparedJob[R], /) -> Handle[R]: ...
    @overload
    def push(self, work: Pusher[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]: ...
    def push(self, work: Any, /, *args: Any, **kwargs: Any) -> Handle[Any]:
        """Push a job of this batch: `batch.push(task, 42)` or `batch.push(task.job(42))`."""
        prepared = _prepared(work, args, kwargs)
        self._batch.push(prepared.new_job)
        return prepared.handle

    def push_many(self, jobs: Iterable[PreparedJob[R]]) -> list[Handle[R]]:
        """Push prepared jobs of this batch."""
        prepared = list(jobs)
        self._batch.push_many(each.new_job for each in prepared)
        return [each.handle for each in prepared]

    def batch(
        self,
        description: str = "",
        *,
        success: PreparedJob[Any] | None = None,
        complete: PreparedJob[Any] | None = None,
    ) -> AppBatch:
        """A batch inside this one. The callbacks of this one wait for it."""
        return AppBatch(self._batch.batch(description, success=_job(success), complete=_job(complete)))

    def status(self) -> BatchStatus:
        """How many jobs there are, and how many are left."""
        return self._batch.status()


class AsyncAppBatch:
    """As `AppBatch`, for an `async with` block."""

    def __init__(self, batch: aio.AsyncBatch) -> None:
        self._batch = batch

    @property
    def id(self) -> str:
        """The batch's ID, known in the block."""
        return self._batch.bid

    async def __aenter__(self) -> Self:
        await self._batch.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        await self._batch.__aexit__(kind, *error)

    @overload
    async def push(self, work: PreparedJob[R], /) -> Handle[R]: ...
    @overload
    async def push(self, work: Pusher[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]: ...
    async def push(self, work: Any, /, *args: Any, **kwargs: Any) -> Handle[Any]:
        """Push a job of this batch: `await batch.push(task, 42)` or `await batch.push(task.job(42))`."""
        prepared = _prepared(work, args, kwargs)
        await self._batch.push(prepared.new_job)
        return prepared.handle

    async def push_many(self, jobs: Iterable[PreparedJob[R]]) -> list[Handle[R]]:
        """Push prepared jobs of this batch."""
        prepared = list(jobs)
        await self._batch.push_many(each.new_job for each in prepared)
        return [each.handle for each in prepared]

    def batch(
        self,
        description: str = "",
        *,
        success: PreparedJob[Any] | None = None,
        complete: PreparedJob[Any] | None = None,
    ) -> AsyncAppBatch:
        """A batch inside this one. The callbacks of this one wait for it."""
        return AsyncAppBatch(self._batch.batch(description, success=_job(success), complete=_job(complete)))

    async def status(self) -> BatchStatus:
        """How many jobs there are, and how many are left."""
        return await self._batch.status()


def _prepared(work: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PreparedJob[Any]:
    if not isinstance(work, PreparedJob):
        prepared: PreparedJob[Any] = work.job(*args, **kwargs)
        return prepared
    if args or kwargs:
        raise TypeError("a prepared job has its arguments already")
    return work


def new_batch(
    app: App, description: str, success: PreparedJob[Any] | None, complete: PreparedJob[Any] | None
) -> AppBatch:
    return AppBatch(app.client.batch(description, success=_job(success), complete=_job(complete)))


def new_async_batch(
    app: App, description: str, success: PreparedJob[Any] | None, complete: PreparedJob[Any] | None
) -> AsyncAppBatch:
    return AsyncAppBatch(app.async_client.batch(description, success=_job(success), complete=_job(complete)))


def _job(prepared: PreparedJob[Any] | None) -> Any:
    return None if prepared is None else prepared.new_job
