"""What a session gives back for a request. Only the server's shell waits, writes and closes."""

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeAlias

from crossdock.model.job import Number


class Bye(NamedTuple):
    """A last reply (maybe none), then the connection is closed."""

    reply: bytes


class Ended(NamedTuple):
    """How a job ended that somebody waited for: it may be gone by the time it is told."""

    settled: bool  #: for good; False: it is gone without a settlement
    ok: bool
    body: bytes
    lapsed: bool = False  #: its lease ran out, and that was its end


class Wait(NamedTuple):
    """Nothing to say yet. `ask(late)` is called when one of the queues stirs, and with late=True at the deadline;
    `told` when the job ends, in the step that ended it."""

    queues: tuple[str | bytes, ...]  #: a key of the Redis door is named by its bytes
    until: float  #: steady
    ask: "Callable[[bool], Answer]"
    job: Number = 0
    told: "Callable[[Ended], Answer] | None" = None


class Keeps(NamedTuple):
    """So many bytes more are kept for the answer. They count as a reply that has not left until it is told."""

    size: int


#: Work on many jobs: one slice a step, and in the end what else could have been answered at once. Other connections are
#: served between the steps. Work that others must not feel yields the seconds (float) to rest before the next step;
#: None: go on once they were served. Bytes are a part of a long reply; the next step follows once the peer has them.
#: `Keeps` tells what grows meanwhile.
Slices: TypeAlias = Generator[Any, None, bytes | Bye | Wait]

Answer: TypeAlias = bytes | Bye | Wait | Slices
