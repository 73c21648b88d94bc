"""Failures of all doors by group: the error's type, as a worker named it. Kept ones and dead ones."""

from typing import Any

from crossdock.engine.state import EngineState
from crossdock.protocols.admin import views
from crossdock.protocols.admin.messages import Failures, reply
from crossdock.protocols.admin.pages import by_name, longest
from crossdock.protocols.base import Dispatcher, Slices


def failures(dispatcher: Dispatcher, request: Failures) -> Slices:
    groups = dispatcher.state.failures.groups
    after = None
    if request.by == "jobs":
        names = yield from longest(groups, request.limit, lambda name: len(groups.get(name, ())))
    else:
        names, after = yield from by_name(groups, request)
    rows = [_row(dispatcher, dispatcher.state, name) for name in names if name in groups]
    return reply({"failures": rows, "after": after})


def _row(dispatcher: Dispatcher, state: EngineState, name: str) -> dict[str, Any]:
    group = state.failures.groups[name]
    newest = state.jobs[group.first()[1]]
    return {"failure": name, "jobs": len(group), "newest": views.row(newest, dispatcher.now)}
