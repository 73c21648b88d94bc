"""Jobs that come again at an interval, as qless has them. Those of the configuration are `cron`."""

from msgspec.structs import replace

from crossdock.engine.qless.intervals import every
from crossdock.engine.qless.put import RETRIES
from crossdock.model.commands.qless import ClearInterval, SetInterval
from crossdock.model.job import Form
from crossdock.model.records import Interval
from crossdock.protocols.admin import selection, views
from crossdock.protocols.admin.messages import Invalid, Recur, Recurring, Unrecur, error, reply
from crossdock.protocols.admin.pages import by_name
from crossdock.protocols.base import Answer, Dispatcher, Slices


def recurring(dispatcher: Dispatcher, request: Recurring) -> Answer:
    if request.id is None:
        return _page(dispatcher, request)
    found = dispatcher.state.qless.intervals.get(request.id)
    if found is None:
        return error(f"no recurring job {request.id} is here")
    return reply({"recurring": [views.interval(found, dispatcher.now, whole=True)], "after": None})


def _page(dispatcher: Dispatcher, request: Recurring) -> Slices:
    known = dispatcher.state.qless.intervals
    names, after = yield from by_name(known, request)
    rows = [views.interval(known[name], dispatcher.now) for name in names if name in known]
    return reply({"recurring": rows, "after": after})


def recur(dispatcher: Dispatcher, request: Recur) -> bytes:
    known = dispatcher.state.qless.intervals.get(request.id)
    made = known is None
    changed = _new(dispatcher, request) if known is None else _spaced(known, request)
    if request.queue is not None:
        changed = replace(changed, queue=selection.new_name(request.queue))
    if request.kind is not None:
        changed = replace(changed, kind=selection.new_name(request.kind))
    if request.payload:
        changed = replace(changed, payload=bytes(request.payload), form=Form.JSON)
    if request.priority is not None:
        changed = replace(changed, priority=_whole(request.priority))
    if request.retries is not None:
        changed = replace(changed, retries=request.retries)
    if request.backlog is not None:
        changed = replace(changed, backlog=request.backlog)
    if request.tags is not None:
        changed = replace(changed, tags=tuple(dict.fromkeys(request.tags)))
    if changed != known:
        moved = known is None or changed.queue != known.queue
        dispatcher.do(SetInterval(changed, dispatcher.now.wall, registers=moved))
    return reply({"made": made, "recurring": views.interval(changed, dispatcher.now, whole=True)})


def _new(dispatcher: Dispatcher, request: Recur) -> Interval:
    if request.queue is None or request.kind is None or request.interval_s is None:
        raise Invalid(f"no recurring job {request.id} is here; to make it, give queue, kind and interval_s")
    first = dispatcher.now.wall + (request.offset_s or 0.0)
    seconds = _whole(request.interval_s)
    head = (selection.new_name(request.id), "", "", b"{}", Form.JSON, seconds, first, first)
    return Interval(*head, retries=RETRIES, by_server=True)


def _spaced(known: Interval, request: Recur) -> Interval:
    if request.offset_s is not None:
        raise Invalid(f"recurring job {request.id} is here already: offset_s is for a new one")
    return known if request.interval_s is None else every(known, _whole(request.interval_s))


def _whole(number: float) -> int | float:
    """As other doors show it: 60, not 60.0."""
    return int(number) if number.is_integer() else number


def unrecur(dispatcher: Dispatcher, request: Unrecur) -> bytes:
    done, unknown = [], []
    for each in dict.fromkeys(request.ids):
        if each in dispatcher.state.qless.intervals:
            dispatcher.do(ClearInterval(each))
            done.append(each)
        else:
            unknown.append(each)
    return reply({"done": done, "unknown": unknown})
