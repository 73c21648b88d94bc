"""The dialects of qless, and one call of a script: its arguments and what it may do."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, TypeAlias

import msgspec

from crossdock import logs
from crossdock.engine.queries.jobs import newest_job
from crossdock.engine.state import EngineState
from crossdock.model.job import Job
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.redis.qless import cjson_reader
from crossdock.protocols.redis.qless.arguments import NAME_BYTES, SHORT, QlessError, kind, name, number
from crossdock.protocols.redis.views import key_space_full

log = logging.getLogger("crossdock")

#: A larger difference between a client's clock and the server's is logged.
SKEW_S: Final = 5.0

#: Minimum time between two such log lines.
_REPORT_INTERVAL_S: Final = 600.0


class CallersClock:
    """The time of a call is the time that the client sent."""

    def read(self, t: float, wall: float) -> float:
        return t


class WatchedClock(CallersClock):
    """Logs clients whose clocks differ from the server's. With `server`, calls have the server's time."""

    def __init__(self, *, server: bool = False) -> None:
        self._server = server
        self._reported = -inf

    def read(self, t: float, wall: float) -> float:
        if not abs(t - wall) <= SKEW_S and abs(wall - self._reported) >= _REPORT_INTERVAL_S:  # reports NaN as well
            self._reported = wall
            used = "using the server's clock (qless.clock)" if self._server else "its calls use its own clock"
            text = f"a qless client's clock is {t - wall:+.0f} s off the server's; {used}"
            logs.event(log, logging.WARNING, "client-clock", text, protocol="qless")
        return wall if self._server else t


CALLERS: Final = CallersClock()


@dataclass(frozen=True, slots=True)
class Dialect:
    name: str
    old: bool = False  #: of 2013: `put` has no worker argument, and some checks are missing (qless.md section 5.1)
    limit_is_end_index: bool = False  #: `failed` and `tag get` take the count for the last index
    per_script: bool = False  #: one script per command: decoded data, staged history, no grace (qless.md section 6)
    as_documented: bool = False  #: follows the original protocol document in conflicts (qless.md section 0)
    errors_omit_jid: bool = False
    throttled: bool = False  #: jobs have throttles; a heartbeat does not register the worker (qless.md section 10)
    peek_offset: bool = False  #: `peek` has an offset argument
    is_reqless: bool = False  #: renamed commands; empty lists are `[]`; history has `queue` (qless.md section 10)
    queue: str = "queue"  #: name of the queue argument in error texts
    count: str = "count"  #: name of the count argument in error texts
    php: bool = False  #: the PHP fork (qless.md section 11)
    # Settings of this server, the same for all dialects:
    clock: CallersClock = CALLERS
    smaller_first: bool = False  #: smaller priorities first (qless.md section 0, conflict 1)
    fine_histogram: bool = False  #: the histogram of the original protocol document (qless.md section 0, conflict 5)
    keys_bytes: int = 2**63  #: limit of the plain keys that some commands write

    def flipped(self, priority: float) -> int | float:
        """Convert a priority from the client's order to the engine's, or back. The engine serves the larger first."""
        return -priority if self.smaller_first else priority


UNIFIED: Final = Dialect("unified")
UNIFIED_2013: Final = Dialect("unified-2013", old=True, limit_is_end_index=True, errors_omit_jid=True)
PER_SCRIPT: Final = Dialect("per-script", old=True, per_script=True, errors_omit_jid=True)
DOCUMENTED: Final = Dialect("documented", old=True, per_script=True, as_documented=True, errors_omit_jid=True)
THROTTLES: Final = Dialect("throttles", errors_omit_jid=True, throttled=True)
REQLESS_013: Final = Dialect("reqless-0.13", errors_omit_jid=True, throttled=True, peek_offset=True, queue="queue_name")
PHP: Final = Dialect("php", php=True)
REQLESS: Final = Dialect(
    "reqless",
    errors_omit_jid=True,
    throttled=True,
    peek_offset=True,
    is_reqless=True,
    queue="queue_name",
    count="limit",
)


VIA: Final = "qless"

#: Arguments of one call. A call is one step, during which no other client is served.
ARGS_AT_MOST: Final = 25_000

#: Larger times have no fraction of a second left in a double.
_TIME_AT_MOST: Final = 2.0**52

#: What a script returns.
Reply: TypeAlias = "str | int | Sequence[Reply] | None"

#: Called with the jobs that a call leased. Their leases end if the reply does not reach the client.
Grant: TypeAlias = Callable[[Sequence[Job]], None]

#: Publishes a message: channel and text.
Publish: TypeAlias = Callable[[str, str], None]

#: Executes one call: (dispatcher, keys, args, publish, grant). Raises QlessError.
CallHandler: TypeAlias = Callable[..., Reply]


def no_grant(jobs: Sequence[Job]) -> None:
    """The grant of calls without a connection."""


class Call(msgspec.Struct, frozen=True):
    """One call. `call[index]` is an argument, or None if it is missing."""

    dispatcher: Dispatcher
    state: EngineState
    t: float  #: time of the call, by the clock in use
    args: list[str]  #: those after the command and `now`
    publish: Publish
    dialect: Dialect
    grant: Grant

    def __getitem__(self, index: int) -> str | None:
        return self.args[index] if index < len(self.args) else None

    def rest(self, begin: int) -> list[str]:
        return self.args[begin:]

    def require(self, index: int, message: str) -> str:
        args = self.args
        if index >= len(args):
            raise QlessError(message)
        value = args[index]
        return value if len(value) <= SHORT and "\0" not in value else name(value)

    def names(self, begin: int, messages: tuple[str, ...], kind_at: int = -1) -> list[str]:
        """Several required names in a row, each with the error if it is missing. The one at `kind_at` is a job's class.
        This takes a third of the time of as many calls of `require`."""
        found = self.args[begin : begin + len(messages)]
        joined = "".join(found)
        if len(found) == len(messages) and len(joined) <= NAME_BYTES and joined.isascii() and "\0" not in joined:
            return found
        return [
            (self.kind if index == kind_at else self.require)(begin + index, message)
            for index, message in enumerate(messages)
        ]

    def kind(self, index: int, message: str) -> str:
        """A required job class."""
        return kind(self.text(index, message))

    def number(self, index: int, message: str) -> float:
        """A required number."""
        args = self.args
        found = cjson_reader.number(args[index]) if index < len(args) else None
        return found if found is not None and found == found else number(self[index], message)

    def text(self, index: int, message: str) -> str:
        """A required text of any length."""
        value = self[index]
        if value is None:
            raise QlessError(message)
        return value

    def jid(self, index: int = 0) -> str:
        return self.require(index, "Job(): no jid provided")

    def queue(self, index: int = 0) -> str:
        return self.require(index, "Queue(): no queue name provided")

    def job(self, jid: str) -> Job | None:
        return newest_job(self.state, jid)

    def with_args(self, *args: str | None) -> "Call":
        """The same call with other arguments."""
        return Call(self.dispatcher, self.state, self.t, trimmed(args), self.publish, self.dialect, self.grant)

    def refuse_if_full(self) -> None:
        """Raise if the server accepts no further job or record."""
        full = self.dispatcher.no_room(1)
        if full is not None:
            raise QlessError(full)

    def refuse_if_key_space_full(self, words: Iterable[bytes]) -> None:
        """Raise if plain keys cannot grow by these words."""
        full = key_space_full(self.state, self.dialect.keys_bytes, words) or self.dispatcher.no_room(0)
        if full is not None:
            raise QlessError(full)

    def check_time(self) -> None:
        """Raise if the time of the call cannot be stored. Calls that change something check it."""
        if not -_TIME_AT_MOST <= self.t <= _TIME_AT_MOST:  # refuses NaN as well
            raise QlessError(f'Arg "now" missing or not a number: {cjson_reader.show(self.t)}')


def decode(args: Sequence[bytes], data: int) -> list[str]:
    """Decode the arguments. They are UTF-8; only the one at index `data` may be any bytes (model.md section 11)."""
    words: list[str] = []
    for index, arg in enumerate(args):
        try:
            words.append(arg.decode())
        except UnicodeDecodeError:
            if index != data:
                raise QlessError("names and texts must be UTF-8; only data may have other bytes") from None
            words.append(arg.decode("utf-8", "surrogateescape"))
    return words


def trimmed(args: Sequence[str | None]) -> list[str]:
    """Arguments without the missing ones at the end. Missing ones in between become empty texts."""
    words = list(args)
    while words and words[-1] is None:
        words.pop()
    return [word if word is not None else "" for word in words]
