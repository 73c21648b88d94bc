"""Bundles: what a Resqu job selects by its `includePath`.

Resqu's own worker includes the file that a job names. Here the name selects among bundles that the application has
registered, and nothing is opened or imported. A bundle has kinds of its own and may prepare each of its jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Unpack

from crossdock.app.decorator import TaskDecorator
from crossdock.app.errors import BadTask
from crossdock.app.task import Task, TaskKeywords, make_task

if TYPE_CHECKING:
    from crossdock.app.app import App


class Bundle:
    """Tasks for jobs with one `includePath`. Made by `App.bundle`."""

    def __init__(self, app: App, name: str, setup: Callable[[], object] | None) -> None:
        self._app = app
        self.name: Final = name
        self.setup: Final = setup  #: called before each job of the bundle, with its job as the current one
        self.kinds: Final[dict[str, Task[..., Any]]] = {}

    def task(self, **options: Unpack[TaskKeywords]) -> TaskDecorator:
        """As `App.task`, but `kinds` are known to jobs of this bundle alone. The name is one of the application."""

        def make(function: Callable[..., Any]) -> Task[..., Any]:
            task = make_task(self._app, function, options)
            for kind in task.kinds:
                if kind in self.kinds:
                    raise BadTask(f'{task.name}: the bundle "{self.name}" has a task for the kind "{kind}" already')
            self._app.add(task, everywhere=False)
            self.kinds.update(dict.fromkeys(task.kinds, task))
            return task

        return TaskDecorator(make)
