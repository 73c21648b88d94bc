"""Failures of all doors by group: the error's type, as a worker named it. Kept ones and dead ones."""

from typing import Any

from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.queries.failures import failure_group, failure_groups, newest_failure
from crossdock.model.job import Number
from crossdock.protocols.admin import views
from crossdock.protocols.admin.messages import Failures, reply
from crossdock.protocols.admin.pages import by_name, longest
from crossdock.protocols.base import Dispatcher, Slices


def failures(dispatcher: Dispatcher, request: Failures) -> Slices:
    state = dispatcher.state
    groups = failure_groups(state)
    after = None
    if request.by == "jobs":
        names = yield from longest(groups, request.limit, lambda name: len(groups.get(name, ())))
    else:
        names, after = yield from by_name(groups, request)
    found = ((name, failure_group(state, name)) for name in names)
    rows = [_row(dispatcher, name, group) for name, group in found if group is not None]
    return reply({"failures": rows, "after": after})


def _row(dispatcher: Dispatcher, name: str, group: SortedList[tuple[float, Number]]) -> dict[str, Any]:
    newest = newest_failure(dispatcher.state, group)
    return {"failure": name, "jobs": len(group), "newest": views.row(newest, dispatcher.now)}
