"""One call of a script: its arguments, and what it may do."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from crossdock.engine.qless.put import newest
from crossdock.engine.state import Memory
from crossdock.model.job import Job
from crossdock.wire.desk import Desk
from crossdock.wire.redis.qless import lua
from crossdock.wire.redis.qless.dialect import Dialect
from crossdock.wire.redis.qless.given import NAME_BYTES, SHORT, Raised, kind, name, number
from crossdock.wire.redis.views import no_place

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
Answer: TypeAlias = Callable[..., Reply]


def unheard(jobs: Sequence[Job]) -> None:
    """The grant of calls that no connection made."""


class Call(msgspec.Struct, frozen=True):
    """One call; `args[index]` is missing if there are fewer, and then `call[index]` is None."""

    desk: Desk
    memory: Memory
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
        found = lua.number(args[index]) if index < len(args) else None
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
        return newest(self.desk.memory, jid)

    def who(self, word: str, jid: str) -> str:
        """How an error names a job."""
        return f"{word}(): Job " if self.dialect.nameless else f"{word}(): Job {jid} "

    def also(self, *args: str | None) -> "Call":
        """The same call with other arguments; missing ones at the end are left out."""
        words = list(args)
        while words and words[-1] is None:
            words.pop()
        known = [word if word is not None else "" for word in words]
        return Call(self.desk, self.memory, self.t, known, self.publish, self.dialect, self.grant)

    def refuse_if_full(self) -> None:
        """Before one job or record more is kept."""
        full = self.desk.no_room(1)
        if full is not None:
            raise Raised(full)

    def refuse_if_no_place(self, words: Iterable[bytes]) -> None:
        """Before plain keys grow by so much."""
        full = no_place(self.memory, self.dialect.keys_bytes, words) or self.desk.no_room(0)
        if full is not None:
            raise Raised(full)

    def writes(self) -> None:
        """A time that is to be kept must be one (doors, question 4)."""
        if not -_TIME_AT_MOST <= self.t <= _TIME_AT_MOST:  # not a number is not, either
            raise Raised(f'Arg "now" missing or not a number: {lua.show(self.t)}')


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
