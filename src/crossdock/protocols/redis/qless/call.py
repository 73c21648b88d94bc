"""One call of a script: its arguments, and what it may do."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, TypeAlias

import msgspec

from crossdock.engine.queries.jobs import newest_job
from crossdock.engine.state import EngineState
from crossdock.model.job import Job
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.redis.qless import cjson_reader
from crossdock.protocols.redis.qless.arguments import NAME_BYTES, SHORT, Raised, kind, name, number
from crossdock.protocols.redis.views import no_place

log = logging.getLogger("crossdock")

#: A caller whose clock is further off than this is told of.
SKEW_S: Final = 5.0

#: And not again before this time has passed.
_AGAIN_S: Final = 600.0


class CallersClock:
    """What a call's time is taken for: itself."""

    def read(self, t: float, wall: float) -> float:
        return t


class WatchedClock(CallersClock):
    """Reports clocks that are far off the server's; `server`: goes by the server's all the same."""

    def __init__(self, *, server: bool = False) -> None:
        self._server = server
        self._reported = -inf

    def read(self, t: float, wall: float) -> float:
        # Neither NaN nor a time that nothing can be compared with is within.
        if not abs(t - wall) <= SKEW_S and abs(wall - self._reported) >= _AGAIN_S:
            self._reported = wall
            counts = "the server's counts (qless.clock)" if self._server else "theirs counts in their own calls"
            log.warning("a qless client's clock is %+.0f s off the server's; %s", t - wall, counts)
        return wall if self._server else t


#: Without a word.
CALLERS: Final = CallersClock()


@dataclass(frozen=True, slots=True)
class Dialect:
    name: str
    old: bool = False  #: of 2013: `put` has no worker, errors name no job, and some checks are not made yet
    paged_by_end: bool = False  #: `failed` and `tag get` take the last index for a count
    in_scripts: bool = False  #: a script a command: data decoded, history in stages, no grace (page 6)
    by_seed: bool = False  #: as the document has it where its code did otherwise and no client minds (page 0)
    nameless: bool = False  #: errors name no job, and a few of a missing one are others
    throttled: bool = False  #: jobs name throttles, the queue's limit is one; heartbeats are not heard (page 10)
    paged: bool = False  #: `peek` takes an offset
    renamed: bool = False  #: reqless: an empty list is one, and history says `queue`
    queue: str = "queue"  #: what errors call the queue of a call that settles a job
    count: str = "count"  #: and a number of jobs
    php: bool = False  #: the PHP fork: a put may say how long a lease that ran out keeps its job waiting (page 11)
    # What this server is set to, whatever the generation:
    clock: CallersClock = CALLERS
    smaller_first: bool = False  #: as the seed says, and no client (page 0, conflict 1)
    fine: bool = False  #: the seed's histogram (conflict 5)
    keys_bytes: int = 2**63  #: of the plain keys that some of its commands write

    def turned(self, priority: float) -> int | float:
        """A caller's priority as the engine has it, and back: there the larger is served first."""
        return -priority if self.smaller_first else priority


UNIFIED: Final = Dialect("unified")
UNIFIED_2013: Final = Dialect("unified-2013", old=True, paged_by_end=True, nameless=True)
PER_SCRIPT: Final = Dialect("per-script", old=True, in_scripts=True, nameless=True)
SEED: Final = Dialect("seed", old=True, in_scripts=True, by_seed=True, nameless=True)
THROTTLES: Final = Dialect("throttles", nameless=True, throttled=True)
REQLESS_013: Final = Dialect("reqless-0.13", nameless=True, throttled=True, paged=True, queue="queue_name")
PHP: Final = Dialect("php", php=True)
REQLESS: Final = Dialect(
    "reqless", nameless=True, throttled=True, paged=True, renamed=True, queue="queue_name", count="limit"
)


VIA: Final = "qless"

#: Words of one call. It is one step of the server: other clients wait for it.
ARGS_AT_MOST: Final = 25_000

#: Callers' times beyond this would not be told apart by the second.
_TIME_AT_MOST: Final = 2.0**52

#: Text, a number, nothing, or a list: what a script returns, on its way to a reply.
Reply: TypeAlias = "str | int | Sequence[Reply] | None"

#: Told of the jobs that only this call's reply tells of.
Grant: TypeAlias = Callable[[Sequence[Job]], None]

#: A channel and what is said there.
Publish: TypeAlias = Callable[[str, str], None]

#: Carries out one call: of a desk, with keys, arguments, a way to publish and a grant. Raises `Raised`.
CallHandler: TypeAlias = Callable[..., Reply]


def unheard(jobs: Sequence[Job]) -> None:
    """The grant of calls that no connection made."""


class Call(msgspec.Struct, frozen=True):
    """One call; `args[index]` is missing if there are fewer, and then `call[index]` is None."""

    dispatcher: Dispatcher
    state: EngineState
    t: float  #: its time, by the clock that counts
    args: list[str]  #: those behind the command and `now`
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
            raise Raised(message)
        value = args[index]
        return value if len(value) <= SHORT and "\0" not in value else name(value)

    def names(self, begin: int, messages: tuple[str, ...], kind_at: int = -1) -> list[str]:
        """Several in a row, each with what is said where it is missing: `require`, at a third of the price. The one at
        `kind_at` is a job's class."""
        found = self.args[begin : begin + len(messages)]
        joined = "".join(found)
        if len(found) == len(messages) and len(joined) <= NAME_BYTES and joined.isascii() and "\0" not in joined:
            return found
        return [
            (self.kind if index == kind_at else self.require)(begin + index, message)
            for index, message in enumerate(messages)
        ]

    def kind(self, index: int, message: str) -> str:
        """As `require`, of a job's class."""
        return kind(self.text(index, message))

    def number(self, index: int, message: str) -> float:
        """One that must be a number."""
        args = self.args
        found = cjson_reader.number(args[index]) if index < len(args) else None
        return found if found is not None and found == found else number(self[index], message)

    def text(self, index: int, message: str) -> str:
        """As `require`, of any length."""
        value = self[index]
        if value is None:
            raise Raised(message)
        return value

    def jid(self, index: int = 0) -> str:
        return self.require(index, "Job(): no jid provided")

    def queue(self, index: int = 0) -> str:
        return self.require(index, "Queue(): no queue name provided")

    def job(self, jid: str) -> Job | None:
        return newest_job(self.state, jid)

    def who(self, word: str, jid: str) -> str:
        """How an error names a job."""
        return f"{word}(): Job " if self.dialect.nameless else f"{word}(): Job {jid} "

    def also(self, *args: str | None) -> "Call":
        """The same call with other arguments; missing ones at the end are left out."""
        words = list(args)
        while words and words[-1] is None:
            words.pop()
        known = [word if word is not None else "" for word in words]
        return Call(self.dispatcher, self.state, self.t, known, self.publish, self.dialect, self.grant)

    def refuse_if_full(self) -> None:
        """Before one job or record more is kept."""
        full = self.dispatcher.no_room(1)
        if full is not None:
            raise Raised(full)

    def refuse_if_no_place(self, words: Iterable[bytes]) -> None:
        """Before plain keys grow by so much."""
        full = no_place(self.state, self.dialect.keys_bytes, words) or self.dispatcher.no_room(0)
        if full is not None:
            raise Raised(full)

    def writes(self) -> None:
        """A time that is to be kept must be one (doors, question 4)."""
        if not -_TIME_AT_MOST <= self.t <= _TIME_AT_MOST:  # not a number is not, either
            raise Raised(f'Arg "now" missing or not a number: {cjson_reader.show(self.t)}')


def decode(args: Sequence[bytes], data: int) -> list[str]:
    """Names and texts are UTF-8; data may be any bytes (MODEL section 11)."""
    words: list[str] = []
    for index, arg in enumerate(args):
        try:
            words.append(arg.decode())
        except UnicodeDecodeError:
            if index != data:
                raise Raised("names and texts must be UTF-8; only data may be other bytes") from None
            words.append(arg.decode("utf-8", "surrogateescape"))
    return words
