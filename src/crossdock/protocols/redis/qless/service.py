"""qless on the Redis protocol: its scripts as a library, its keys as a view, and its notifications."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from crossdock.model.events import AnyEvent
from crossdock.model.job import Job
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.qless import library
from crossdock.protocols.redis.qless.arguments import QlessError
from crossdock.protocols.redis.qless.call import ARGS_AT_MOST, UNIFIED, Grant, Reply, WatchedClock
from crossdock.protocols.redis.qless.key_view import QlessView
from crossdock.protocols.redis.qless.notifications import Publisher
from crossdock.protocols.redis.qless.perscript import dispatch as perscript
from crossdock.protocols.redis.resp.values import Value
from crossdock.protocols.redis.scripts import Library, ScriptCall, ScriptError

#: Function names for FCALL: one per script, and one per unified dialect, which takes the command as first argument.
FUNCTIONS: Final[dict[str, str]] = {
    **{name: f"{library.AS_DOCUMENTED}{name}" for name in perscript.SCRIPTS},
    **{name: name for name in library.UNIFIED_DIALECTS},
}


_Callbacks: TypeAlias = tuple[Callable[[str, str], None], Grant]

#: The key of the callbacks in the memo of a connection.
_MEMO: Final = "qless"


class Qless:
    """The settings are those of section `qless`, and `redis.keys_mib` in bytes."""

    def __init__(
        self,
        *,
        server_clock: bool = False,
        smaller_first: bool = False,
        fine_histogram: bool = False,
        keys_bytes: int = UNIFIED.keys_bytes,
    ) -> None:
        clock = WatchedClock(server=server_clock)
        self._publisher = Publisher()
        dialects = library.Dialects(
            clock, smaller_first=smaller_first, fine_histogram=fine_histogram, keys_bytes=keys_bytes
        )
        self._handlers = {
            name: handler if name in library.UNIFIED_DIALECTS else self._publisher.publishing_per_script(handler)
            for name, handler in dialects.handlers.items()
        }
        known = {sha: dialect for sha, dialect in library.hashes().items() if dialect in library.ANSWERED}
        self.library = Library(library.ANSWERED, known, self._handle, _recognise, FUNCTIONS)
        self.view = QlessView(replace(UNIFIED, smaller_first=smaller_first))

    def publish_events(self, dispatcher: Dispatcher, events: Sequence[AnyEvent]) -> None:
        self._publisher.publish_events(dispatcher, events)

    def _handle(self, call: ScriptCall) -> Value:
        context, args = call.context, call.args
        if len(args) > ARGS_AT_MOST:
            raise ScriptError(f"a call may have at most {ARGS_AT_MOST} arguments; split it")
        publish, grant = context.memo.get(_MEMO) or self._callbacks(context)
        try:
            reply = self._handlers[call.dialect](context.dispatcher, call.keys, args, publish, grant)
        except QlessError as error:
            raise ScriptError(str(error)) from error
        return reply.encode("utf-8", "surrogateescape") if type(reply) is str else _value(reply)

    def _callbacks(self, context: Context) -> _Callbacks:
        """The functions with which calls of this connection publish and grant leases."""

        def grant(jobs: Sequence[Job]) -> None:
            context.grant([(job.number, job.lease.token) for job in jobs if job.lease is not None])

        callbacks: _Callbacks = (partial(self._publisher.publish, context.dispatcher), grant)
        context.memo[_MEMO] = callbacks
        return callbacks


def _recognise(text: bytes) -> str | None:
    dialect = library.recognise(text)
    return dialect if dialect in library.ANSWERED else None


def _value(reply: Reply) -> Value:
    if isinstance(reply, str):
        return reply.encode("utf-8", "surrogateescape")
    if reply is None or isinstance(reply, int):
        return reply
    return [_value(each) for each in reply]
