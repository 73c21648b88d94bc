"""Something large that is refused is answered late: two hundred times as long as looking at it held everybody else up.
So a peer that repeats it, on this connection or the next, takes less than a hundredth of their time, whatever it found
that is slow.
"""

from collections.abc import Callable, Generator
from typing import Final, Generic, TypeGuard, TypeVar

import msgspec

from crossdock.protocols.base import Answer, Close, Dispatcher, Grant, Slices, Wait

#: Requests up to this size are looked at in a fraction of a millisecond, but for lists of jobs.
LARGE: Final = 16 * 1024

_TIMES: Final = 200
_AT_MOST_S: Final = 60.0
_UNFELT_S: Final = 0.000_05

#: To put so many bytes together that came in pieces takes a second.
_GATHERED_A_S: Final = 4e9

#: To read so many bytes from a socket takes a second.
_READ_A_S: Final = 1e9

#: So a refusal begins at each door. These are none: a job is there already, or there is none, or no room for a load.
_REFUSAL: Final = (b"-", b"ERR ")
_NONE: Final = (b"-NOTUNIQUE", b"-TIMEOUT", b"-OOM", b"-LIMIT")

R = TypeVar("R")
A = TypeVar("A")


class Long(msgspec.Struct, Generic[R], frozen=True):
    """A request that takes more than a moment to look at."""

    request: R
    took: float  #: seconds, to read it


def rest(held_up: float) -> float:
    """Seconds, for so many that were for nothing."""
    return min(_TIMES * held_up, _AT_MOST_S) if held_up >= _UNFELT_S else 0.0


def refused_late(bye: Close, size: int) -> Slices:
    """So much was read for nothing."""
    return late(bye, received(size))


def received(size: int) -> float:
    """Seconds that it took to read so many bytes."""
    return size / _READ_A_S


def gathered(size: int) -> float:
    """Seconds that it took to put so many bytes together."""
    return size / _GATHERED_A_S


def rested(dispatcher: Dispatcher, act: Callable[[R], Answer], long: Long[R]) -> Answer:
    """The answer to it, and the rest before that."""
    began = dispatcher.held_up() - long.took
    answer = act(long.request)
    held_up = dispatcher.held_up() - began
    if isinstance(answer, Generator):
        return _work(dispatcher, answer, held_up)
    return late(answer, held_up) if is_in_vain(answer, dispatcher) else answer


def _work(dispatcher: Dispatcher, work: Slices, held_up: float) -> Slices:
    while True:
        began = dispatcher.held_up()
        try:
            step = next(work)
        except StopIteration as end:
            answer: bytes | Grant | Close | Wait = end.value
            held_up += dispatcher.held_up() - began
            return (yield from late(answer, held_up)) if is_in_vain(answer, dispatcher) else answer
        held_up += dispatcher.held_up() - began
        yield step


def is_in_vain(answer: Answer, dispatcher: Dispatcher) -> TypeGuard[bytes]:
    """Whether it was a mistake to ask. That there is no room is none: who is told so at once knows what to do."""
    if not isinstance(answer, bytes) or not answer.startswith(_REFUSAL) or answer.startswith(_NONE):
        return False
    no_room = dispatcher.no_room(1)
    return no_room is None or no_room.encode() not in answer


def late(answer: A, held_up: float) -> Generator[float, None, A]:
    """What was in vain for so many seconds, told after the rest for them."""
    seconds = rest(held_up)
    if seconds:
        yield seconds
    return answer
