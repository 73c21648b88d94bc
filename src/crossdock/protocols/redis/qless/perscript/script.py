"""One call of the per-script form, and its conversion to a call of the unified form."""

from collections.abc import Callable, Sequence

from crossdock.protocols.base import Dispatcher
from crossdock.protocols.redis.qless import cjson_reader
from crossdock.protocols.redis.qless.arguments import QlessError, kind, name, number
from crossdock.protocols.redis.qless.call import Call, Dialect, Grant, Publish, Reply, trimmed


class Script:
    """One call. `script[place]` is an argument, or None if it is missing."""

    def __init__(
        self, dispatcher: Dispatcher, args: Sequence[str], publish: Publish, dialect: Dialect, grant: Grant
    ) -> None:
        self.dispatcher = dispatcher
        self._args = args
        self._publish = publish
        self._dialect = dialect
        self._grant = grant

    def __getitem__(self, place: int) -> str | None:
        return self._args[place] if place < len(self._args) else None

    @property
    def as_documented(self) -> bool:
        return self._dialect.as_documented

    def rest(self, begin: int) -> list[str]:
        return list(self._args[begin:])

    def require(self, place: int, message: str) -> str:
        value = self[place]
        if value is None:
            raise QlessError(message)
        return name(value)

    def kind(self, place: int, message: str) -> str:
        """A required job class."""
        value = self[place]
        if value is None:
            raise QlessError(message)
        return kind(value)

    def time(self, place: int, message: str) -> float:
        return number(self[place], message)

    def now(self, place: int, message: str) -> float:
        """Like `time`, for scripts whose error does not name the argument."""
        found = cjson_reader.number(self[place])
        if found is None:
            raise QlessError(message)
        return found

    def unified(self, t: float | None, *args: str | None) -> Call:
        """A call of the unified form. A script without a time argument uses the server's clock."""
        wall = self.dispatcher.now.wall
        t = self._dialect.clock.read(wall if t is None else t, wall)
        return Call(self.dispatcher, self.dispatcher.state, t, trimmed(args), self._publish, self._dialect, self._grant)


def forwarded(act: Callable[[Call], Reply]) -> Callable[[Script], Reply]:
    """A script with the arguments of the unified command, without a time."""
    return lambda script: act(script.unified(None, *script.rest(0)))
