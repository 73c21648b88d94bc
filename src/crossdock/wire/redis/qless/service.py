"""qless on the Redis door: its scripts as a library, its keys as a view, and what is published of every change."""

from collections.abc import Sequence
from typing import Final

from crossdock.model.events import AnyEvent
from crossdock.model.job import Held, Job
from crossdock.wire.desk import Desk
from crossdock.wire.redis.qless import library, perscript
from crossdock.wire.redis.qless.call import Raised, Reply
from crossdock.wire.redis.qless.clock import WatchedClock
from crossdock.wire.redis.qless.publisher import Publisher
from crossdock.wire.redis.qless.view import QlessView
from crossdock.wire.redis.scripts import Call, Library, ScriptError
from crossdock.wire.redis.values import Value

#: FCALL's names: a script's own, and one for each unified form, which takes its command as the first argument.
FUNCTIONS: Final[dict[str, str]] = {
    **{name: f"{library.SCRIPT}{name}" for name in perscript.SCRIPTS},
    **{name: name for name in library.UNIFIED_DIALECTS},
}


class Qless:
    """`server_clock`, `smaller_first` and `fine_histogram` are what the settings of section `qless` say."""

    def __init__(
        self, *, server_clock: bool = False, smaller_first: bool = False, fine_histogram: bool = False
    ) -> None:
        clock = WatchedClock(server=server_clock)
        self._dialects = library.Dialects(clock, smaller_first=smaller_first, fine=fine_histogram)
        self._publisher = Publisher()
        known = {sha: dialect for sha, dialect in library.hashes().items() if dialect in library.ANSWERED}
        self.library = Library(library.ANSWERED, known, self._handle, _recognise, FUNCTIONS)
        self.view = QlessView()

    def tell(self, desk: Desk, events: Sequence[AnyEvent]) -> None:
        self._publisher.tell(desk, events)

    def _handle(self, call: Call) -> Value:
        context = call.context
        desk, publisher = context.desk, self._publisher

        def say(channel: str, text: str) -> None:
            publisher.say(desk, channel, text)

        def grant(jobs: Sequence[Job]) -> None:
            held: list[Held] = [(job.number, job.lease.token) for job in jobs if job.lease is not None]
            if held:
                context.granted = [*(context.granted or ()), *held]

        publisher.in_scripts = call.dialect.startswith(library.SCRIPT)
        try:
            return _value(self._dialects.answer(call.dialect, desk, call.keys, call.args, say, grant))
        except Raised as error:
            raise ScriptError(str(error)) from error
        finally:
            publisher.in_scripts = False


def _recognise(text: bytes) -> str | None:
    dialect = library.recognise(text)
    return dialect if dialect in library.ANSWERED else None


def _value(reply: Reply) -> Value:
    if isinstance(reply, str):
        return reply.encode("utf-8", "surrogateescape")
    if reply is None or isinstance(reply, int):
        return reply
    return [_value(each) for each in reply]
