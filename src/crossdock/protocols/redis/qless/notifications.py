"""Publishes the notifications of qless for changes through any protocol (qless.md section 7).

A tracked job is announced on a channel per event, such as `ql:completed`. `ql:log` and the channels of workers carry
JSON about all jobs. Clients compare the text, so the order of its members is fixed.

Each notice is published in the form of the calling dialect; changes through other protocols have the unified form. The
name of the other form reaches only subscribers of that exact channel, not patterns, because client suites compare
everything that a pattern receives.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from crossdock.engine.qless.queries import tracked_jids
from crossdock.model import events as e
from crossdock.model.events import AnyEvent
from crossdock.model.states import State
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.redis.qless.call import CallHandler, Reply
from crossdock.protocols.redis.qless.cjson import write

#: A channel and a text.
Notice: TypeAlias = tuple[str, str]

_LOG: Final = "ql:log"


def notices(events: Iterable[e.Event], tracked: Container[str]) -> Iterator[Notice]:
    """The notices of one command's events, in order."""
    for event in events:
        notices_of = _NOTICES.get(type(event))
        if notices_of is not None:
            yield from notices_of(event, tracked)


def per_script(notice: Notice) -> Notice | None:
    """The notice in the per-script form, which has only events of tracked jobs, without the prefix."""
    channel, text = notice
    return None if channel == _LOG or channel.startswith("ql:w:") else (channel.removeprefix("ql:"), text)


def canceled_unknown(jid: str, tracked: Container[str]) -> Iterator[Notice]:
    """The notices of a cancelled jid that does not exist. There is no event for it, but the script publishes it."""
    yield _LOG, write({"jid": jid, "queue": False, "event": "canceled", "worker": False})
    yield from _if_tracked("canceled", jid, tracked)


def _lost(jid: str, worker: str) -> Iterator[Notice]:
    text = write({"jid": jid, "event": "lock_lost", "worker": worker})
    yield f"ql:w:{worker}", text
    yield _LOG, text


def _if_tracked(what: str, jid: str, tracked: Container[str]) -> Iterator[Notice]:
    if jid in tracked:
        yield f"ql:{what}", jid


def put(jid: str, queue: str) -> Notice:
    return _LOG, write({"jid": jid, "event": "put", "queue": queue})


def _pushed(event: e.Pushed, tracked: Container[str]) -> Iterator[Notice]:
    for spec in event.specs:
        yield put(spec.jid, spec.queue)
        yield from _if_tracked("put", spec.jid, tracked)


def _moved(event: e.Moved, tracked: Container[str]) -> Iterator[Notice]:
    yield put(event.jid, event.to.queue)
    if event.lost:
        yield from _lost(event.jid, event.worker)
    yield from _if_tracked("put", event.jid, tracked)


def _leased(event: e.Leased, tracked: Container[str]) -> Iterator[Notice]:
    yield from _if_tracked("popped", event.jid, tracked)


def _warned(event: e.Warned, tracked: Container[str]) -> Iterator[Notice]:
    yield from _if_tracked("stalled", event.jid, tracked)
    yield from _lost(event.jid, event.worker)


def _lease_expired(event: e.LeaseExpired, tracked: Container[str]) -> Iterator[Notice]:
    """Only the per-script form has this: it has no grace period."""
    if event.retried:
        yield from _if_tracked("stalled", event.jid, tracked)


def _stalled(event: e.Stalled, tracked: Container[str]) -> Iterator[Notice]:
    yield from _lost(event.jid, event.worker)


def _failed(event: e.Failed, tracked: Container[str]) -> Iterator[Notice]:
    """A final failure. If `retry` exhausted the retries, only the channel of tracked jobs has it."""
    if event.then not in (State.FAILED, State.DEAD, State.GONE):
        return
    followed = _if_tracked("failed", event.jid, tracked)
    if event.counted and not event.lost and event.t is not None:
        if event.qless is None or not (event.qless.uncounted or event.qless.unpublished):
            yield from followed
        return
    error = event.failure
    text = write(
        {
            "message": error.message,
            "jid": event.jid,
            "group": error.group,
            "event": "failed",
            "worker": error.worker or event.worker,
        }
    )
    if event.lost:
        yield from followed
        yield _LOG, text
    else:
        yield _LOG, text
        yield from followed


def _succeeded(event: e.Succeeded, tracked: Container[str]) -> Iterator[Notice]:
    yield from _if_tracked("completed", event.jid, tracked)
    booked = event.qless.booked_queue if event.qless is not None else ""
    yield _LOG, write({"jid": event.jid, "event": "completed", "queue": booked or event.queue})


def _advanced(event: e.Advanced, tracked: Container[str]) -> Iterator[Notice]:
    yield from _if_tracked("completed", event.jid, tracked)
    queue = event.booked_queue or event.queue
    yield _LOG, write({"jid": event.jid, "to": event.to_queue, "event": "advanced", "queue": queue})


def _removed(event: e.Removed, tracked: Container[str]) -> Iterator[Notice]:
    """A cancelled or deleted job. Retired jobs were announced when they completed."""
    if event.why == "retired":
        return
    for row in event.rows:
        worker = row.ended.worker if row.ended is not None else row.worker
        text = write({"jid": row.jid, "queue": row.queue, "event": "canceled", "worker": worker})
        yield _LOG, text
        if worker:
            yield f"ql:w:{worker}", text
        yield from _if_tracked("canceled", row.jid, tracked)


def _configured(event: e.Configured, tracked: Container[str]) -> Iterator[Notice]:
    if event.value is None:
        yield _LOG, write({"event": "config_unset", "option": event.option})
    else:
        yield _LOG, write({"option": event.option, "event": "config_set", "value": event.value})


def _watched(event: e.Watched, tracked: Container[str]) -> Iterator[Notice]:
    yield "ql:track", event.jid


def _unwatched(event: e.Unwatched, tracked: Container[str]) -> Iterator[Notice]:
    yield "ql:untrack", event.jid


_NOTICES: Final[dict[type[e.Event], Callable[[Any, Container[str]], Iterator[Notice]]]] = {
    e.Pushed: _pushed,
    e.Moved: _moved,
    e.Leased: _leased,
    e.Warned: _warned,
    e.Stalled: _stalled,
    e.LeaseExpired: _lease_expired,
    e.Failed: _failed,
    e.Succeeded: _succeeded,
    e.Advanced: _advanced,
    e.Removed: _removed,
    e.Configured: _configured,
    e.Watched: _watched,
    e.Unwatched: _unwatched,
}


class Publisher:
    def __init__(self) -> None:
        self.per_script = False  #: during a call of the per-script form

    def publishing_per_script(self, handler: CallHandler) -> CallHandler:
        """The handler of a per-script dialect, whose calls publish in the per-script form."""

        def handle(*args: Any) -> Reply:
            self.per_script = True
            try:
                return handler(*args)
            finally:
                self.per_script = False

        return handle

    def publish_events(self, dispatcher: Dispatcher, events: Sequence[AnyEvent]) -> None:
        """Publish the notices of one command's events. Called only while there are subscribers."""
        for channel, text in notices(events, tracked_jids(dispatcher.state)):
            self.publish(dispatcher, channel, text)

    def publish(self, dispatcher: Dispatcher, channel: str, text: str) -> None:
        other = per_script((channel, text))
        data = text.encode("utf-8", "surrogateescape")
        dispatcher.publish(channel.encode("utf-8", "surrogateescape"), data, to_patterns=not self.per_script)
        if other is not None:
            dispatcher.publish(other[0].encode("utf-8", "surrogateescape"), data, to_patterns=self.per_script)
