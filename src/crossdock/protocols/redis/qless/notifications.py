"""What is published of a change, whichever door made it (protocol page, qless 7). Key order is part of the text.

A watched job has a channel for each thing that may happen to it; `ql:log` and the workers' own channels tell of all."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from crossdock.engine.qless.queries import tracked_jids
from crossdock.model import events as e
from crossdock.model.events import AnyEvent
from crossdock.model.states import State
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.redis.qless.call import CallHandler, Reply
from crossdock.protocols.redis.qless.cjson import write

#: Channel and text.
Notice: TypeAlias = tuple[str, str]

_LOG: Final = "ql:log"


def notices(events: Iterable[e.Event], watched: Container[str]) -> Iterator[Notice]:
    """Of one command's events, in their order. `watched` are the jids that somebody follows."""
    for event in events:
        told = _TOLD.get(type(event))
        if told is not None:
            yield from told(event, watched)


def in_scripts(notice: Notice) -> Notice | None:
    """As the oldest dialect publishes it: events of watched jobs alone, without a prefix (page 7)."""
    channel, text = notice
    return None if channel == _LOG or channel.startswith("ql:w:") else (channel.removeprefix("ql:"), text)


def canceled_unknown(jid: str, watched: Container[str]) -> Iterator[Notice]:
    """No event tells of a job that is not there; the script does."""
    yield _LOG, write({"jid": jid, "queue": False, "event": "canceled", "worker": False})
    yield from _follow("canceled", jid, watched)


def _lost(jid: str, worker: str) -> Iterator[Notice]:
    text = write({"jid": jid, "event": "lock_lost", "worker": worker})
    yield f"ql:w:{worker}", text
    yield _LOG, text


def _follow(what: str, jid: str, watched: Container[str]) -> Iterator[Notice]:
    if jid in watched:
        yield f"ql:{what}", jid


def put(jid: str, queue: str) -> Notice:
    return _LOG, write({"jid": jid, "event": "put", "queue": queue})


def _pushed(event: e.Pushed, watched: Container[str]) -> Iterator[Notice]:
    for spec in event.specs:
        yield put(spec.jid, spec.queue)
        yield from _follow("put", spec.jid, watched)


def _moved(event: e.Moved, watched: Container[str]) -> Iterator[Notice]:
    yield put(event.jid, event.to.queue)
    if event.lost:
        yield from _lost(event.jid, event.worker)
    yield from _follow("put", event.jid, watched)


def _leased(event: e.Leased, watched: Container[str]) -> Iterator[Notice]:
    yield from _follow("popped", event.jid, watched)


def _warned(event: e.Warned, watched: Container[str]) -> Iterator[Notice]:
    yield from _follow("stalled", event.jid, watched)
    yield from _lost(event.jid, event.worker)


def _lapsed(event: e.LeaseExpired, watched: Container[str]) -> Iterator[Notice]:
    """Of the oldest dialect, which warns nobody."""
    if event.retried:
        yield from _follow("stalled", event.jid, watched)


def _stalled(event: e.Stalled, watched: Container[str]) -> Iterator[Notice]:
    yield from _lost(event.jid, event.worker)


def _failed(event: e.Failed, watched: Container[str]) -> Iterator[Notice]:
    """A last one; a retry that was the last is told only to those who follow the job."""
    if event.then not in (State.FAILED, State.DEAD, State.GONE):
        return
    followed = _follow("failed", event.jid, watched)
    if event.counted and not event.lost and event.t is not None:
        if not event.unbooked and not event.quiet:
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


def _succeeded(event: e.Succeeded, watched: Container[str]) -> Iterator[Notice]:
    yield from _follow("completed", event.jid, watched)
    yield _LOG, write({"jid": event.jid, "event": "completed", "queue": event.under or event.queue})


def _advanced(event: e.Advanced, watched: Container[str]) -> Iterator[Notice]:
    yield from _follow("completed", event.jid, watched)
    queue = event.under or event.queue
    yield _LOG, write({"jid": event.jid, "to": event.to_queue, "event": "advanced", "queue": queue})


def _removed(event: e.Removed, watched: Container[str]) -> Iterator[Notice]:
    """Whoever removed it; those that were kept after their success were told of before."""
    if event.why == "retired":
        return
    for row in event.rows:
        worker = row.ended.worker if row.ended is not None else row.worker
        text = write({"jid": row.jid, "queue": row.queue, "event": "canceled", "worker": worker})
        yield _LOG, text
        if worker:
            yield f"ql:w:{worker}", text
        yield from _follow("canceled", row.jid, watched)


def _configured(event: e.Configured, watched: Container[str]) -> Iterator[Notice]:
    if event.value is None:
        yield _LOG, write({"event": "config_unset", "option": event.option})
    else:
        yield _LOG, write({"option": event.option, "event": "config_set", "value": event.value})


def _watched(event: e.Watched, watched: Container[str]) -> Iterator[Notice]:
    yield "ql:track", event.jid


def _unwatched(event: e.Unwatched, watched: Container[str]) -> Iterator[Notice]:
    yield "ql:untrack", event.jid


_TOLD: Final[dict[type[e.Event], Callable[[Any, Container[str]], Iterator[Notice]]]] = {
    e.Pushed: _pushed,
    e.Moved: _moved,
    e.Leased: _leased,
    e.Warned: _warned,
    e.Stalled: _stalled,
    e.LeaseExpired: _lapsed,
    e.Failed: _failed,
    e.Succeeded: _succeeded,
    e.Advanced: _advanced,
    e.Removed: _removed,
    e.Configured: _configured,
    e.Watched: _watched,
    e.Unwatched: _unwatched,
}


# Tells subscribers of every change, whichever door made it (protocol page, qless 7).
#
# Each notice goes out as the calling dialect spells it, other doors' as the unified one does. Under the other dialect's
# name it reaches those who asked for that very name, and no patterns: suites compare all that a pattern brings.


class Publisher:
    def __init__(self) -> None:
        self.in_scripts = False  #: while a call of the per-script form is carried out

    def in_scripts_by(self, answer: CallHandler) -> CallHandler:
        """A call of the per-script form."""

        def answered(*args: Any) -> Reply:
            self.in_scripts = True
            try:
                return answer(*args)
            finally:
                self.in_scripts = False

        return answered

    def tell(self, dispatcher: Dispatcher, events: Sequence[AnyEvent]) -> None:
        """Of one command's events. To be called only while somebody listens."""
        for channel, text in notices(events, tracked_jids(dispatcher.state)):
            self.say(dispatcher, channel, text)

    def say(self, dispatcher: Dispatcher, channel: str, text: str) -> None:
        other = in_scripts((channel, text))
        data = text.encode("utf-8", "surrogateescape")
        dispatcher.publish(channel.encode("utf-8", "surrogateescape"), data, to_patterns=not self.in_scripts)
        if other is not None:
            dispatcher.publish(other[0].encode("utf-8", "surrogateescape"), data, to_patterns=self.in_scripts)
