"""The decorator that makes a task of a function, typed for type checkers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar, overload

from crossdock.app.outcomes import Outcome
from crossdock.app.task import AsyncTask, SyncTask, Task

P = ParamSpec("P")
R = TypeVar("R")


class TaskDecorator:
    """What `app.task(…)` returns. The type of the task is that of the function, without outcomes in its result."""

    def __init__(self, make: Callable[[Callable[..., Any]], Task[..., Any]]) -> None:
        self._make = make

    @overload  # the second one matches a function that returns a coroutine, too
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[P, Coroutine[Any, Any, R | Outcome]], /
    ) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R | Outcome], /) -> SyncTask[P, R]: ...
    def __call__(self, function: Callable[..., Any], /) -> Any:
        """Register the function. Raises BadTask."""
        return self._make(function)
