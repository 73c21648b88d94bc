"""One call of a script: its arguments, and how a call of the unified kind is made out of them."""

from collections.abc import Callable, Sequence

from crossdock.protocols.base import Dispatcher
from crossdock.protocols.redis.qless import cjson_reader
from crossdock.protocols.redis.qless.arguments import Raised, kind, name, number
from crossdock.protocols.redis.qless.call import Call, Dialect, Grant, Publish, Reply


class Script:
    """One call: its arguments, and `unified` to make a call of the other kind out of some of them."""

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
    def by_seed(self) -> bool:
        return self._dialect.by_seed

    def rest(self, begin: int) -> list[str]:
        return list(self._args[begin:])

    def given(self, place: int, message: str) -> str:
        value = self[place]
        if value is None:
            raise Raised(message)
        return name(value)

    def kind(self, place: int, message: str) -> str:
        """As `given`, of a job's class."""
        value = self[place]
        if value is None:
            raise Raised(message)
        return kind(value)

    def time(self, place: int, message: str) -> float:
        return number(self[place], message)

    def now(self, place: int, message: str) -> float:
        """As `time`, of scripts that do not say what they were given instead."""
        found = cjson_reader.number(self[place])
        if found is None:
            raise Raised(message)
        return found

    def unified(self, t: float | None, *args: str | None) -> Call:
        """Where the script is given no time, the server's counts."""
        words = list(args)
        while words and words[-1] is None:
            words.pop()
        known = [word if word is not None else "" for word in words]
        wall = self.dispatcher.now.wall
        t = self._dialect.clock.read(wall if t is None else t, wall)
        return Call(self.dispatcher, self.dispatcher.state, t, known, self._publish, self._dialect, self._grant)


def as_it_is(act: Callable[[Call], Reply]) -> Callable[[Script], Reply]:
    """A script whose arguments are those of the unified one, and has no time."""
    return lambda script: act(script.unified(None, *script.rest(0)))
