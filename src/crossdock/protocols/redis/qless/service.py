"""qless on the Redis door: its scripts as a library, its keys as a view, and what is published of every change."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from crossdock.model.events import AnyEvent
from crossdock.model.job import Job
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.qless import library
from crossdock.protocols.redis.qless.arguments import Raised
from crossdock.protocols.redis.qless.call import ARGS_AT_MOST, UNIFIED, Grant, Reply, WatchedClock
from crossdock.protocols.redis.qless.key_view import QlessView
from crossdock.protocols.redis.qless.notifications import Publisher
from crossdock.protocols.redis.qless.perscript import dispatch as perscript
from crossdock.protocols.redis.resp.values import Value
from crossdock.protocols.redis.scripts import Library, ScriptCall, ScriptError

#: FCALL's names: a script's own, and one for each unified form, which takes its command as the first argument.
FUNCTIONS: Final[dict[str, str]] = {
    **{name: f"{library.BY_SEED}{name}" for name in perscript.SCRIPTS},
    **{name: name for name in library.UNIFIED_DIALECTS},
}


_Ways: TypeAlias = tuple[Callable[[str, str], None], Grant]

#: Under which a connection remembers them.
_MEMO: Final = "qless"


class Qless:
    """`server_clock`, `smaller_first` and `fine_histogram` are what the settings of section `qless` say, `keys_bytes`
    what `redis.keys_mib` does."""

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
        dialects = library.Dialects(clock, smaller_first=smaller_first, fine=fine_histogram, keys_bytes=keys_bytes)
        answers = dialects.answers
        self._answers = {
            name: answer if name in library.UNIFIED_DIALECTS else self._publisher.in_scripts_by(answer)
            for name, answer in answers.items()
        }
        known = {sha: dialect for sha, dialect in library.hashes().items() if dialect in library.ANSWERED}
        self.library = Library(library.ANSWERED, known, self._handle, _recognise, FUNCTIONS)
        self.view = QlessView(replace(UNIFIED, smaller_first=smaller_first))

    def tell(self, dispatcher: Dispatcher, events: Sequence[AnyEvent]) -> None:
        self._publisher.tell(dispatcher, events)

    def _handle(self, call: ScriptCall) -> Value:
        context, dialect = call.context, call.dialect
        if len(call.args) > ARGS_AT_MOST:
            raise ScriptError(f"more than {ARGS_AT_MOST} words in one call, the limit; divide it")
        publish, grant = context.memo.get(_MEMO) or self._ways(context)
        try:
            reply = self._answers[dialect](context.dispatcher, call.keys, call.args, publish, grant)
        except Raised as error:
            raise ScriptError(str(error)) from error
        return reply.encode("utf-8", "surrogateescape") if type(reply) is str else _value(reply)

    def _ways(self, context: Context) -> _Ways:
        """How a call on that connection publishes, and how it tells of leases."""

        def grant(jobs: Sequence[Job]) -> None:
            context.grant([(job.number, job.lease.token) for job in jobs if job.lease is not None])

        ways: _Ways = (partial(self._publisher.say, context.dispatcher), grant)
        context.memo[_MEMO] = ways
        return ways


def _recognise(text: bytes) -> str | None:
    dialect = library.recognise(text)
    return dialect if dialect in library.ANSWERED else None


def _value(reply: Reply) -> Value:
    if isinstance(reply, str):
        return reply.encode("utf-8", "surrogateescape")
    if reply is None or isinstance(reply, int):
        return reply
    return [_value(each) for each in reply]
