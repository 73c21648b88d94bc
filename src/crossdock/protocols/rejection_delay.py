"""Delays rejections of large invalid requests by two hundred times the time they took to examine.

A peer that repeats such requests, on this connection or on new ones, then uses less than a hundredth of the server's
time, whatever makes its requests slow.
"""

from collections.abc import Callable, Generator
from typing import Final, Generic, TypeGuard, TypeVar

import msgspec

from crossdock.protocols.base import Answer, Close, Dispatcher, Grant, Slices, Wait

#: Requests up to this size take a fraction of a millisecond to examine, except lists of jobs.
LARGE: Final = 16 * 1024

_FACTOR: Final = 200
_AT_MOST_S: Final = 60.0
_NEGLIGIBLE_S: Final = 0.000_05

#: Bytes per second: joining chunks of a request.
_GATHERED_A_S: Final = 4e9

#: Bytes per second: reading from a socket.
_READ_A_S: Final = 1e9

#: How a rejection begins in each protocol. The second row is not the client's mistake: the job exists already, there is
#: none, or there is no room.
_REJECTED: Final = (b"-", b"ERR ")
_NO_MISTAKE: Final = (b"-NOTUNIQUE", b"-TIMEOUT", b"-OOM", b"-LIMIT")

R = TypeVar("R")
A = TypeVar("A")


class Long(msgspec.Struct, Generic[R], frozen=True):
    """A request that takes noticeable time to examine."""

    request: R
    took: float  #: seconds it took to read


def delay_for(held_up: float) -> float:
    """The delay, in seconds, for a rejected request that held other connections up for this long."""
    return min(_FACTOR * held_up, _AT_MOST_S) if held_up >= _NEGLIGIBLE_S else 0.0


def close_delayed(close: Close, size: int) -> Slices:
    """Close after the delay for reading that many bytes."""
    return delayed(close, received(size))


def received(size: int) -> float:
    """Seconds it took to read that many bytes."""
    return size / _READ_A_S


def gathered(size: int) -> float:
    """Seconds it took to join chunks of that many bytes."""
    return size / _GATHERED_A_S


def answer_long(dispatcher: Dispatcher, act: Callable[[R], Answer], long: Long[R]) -> Answer:
    """The answer to a long request, delayed if it is a rejection."""
    began = dispatcher.held_up() - long.took
    answer = act(long.request)
    held_up = dispatcher.held_up() - began
    if isinstance(answer, Generator):
        return _work(dispatcher, answer, held_up)
    return delayed(answer, held_up) if is_rejection(answer, dispatcher) else answer


def _work(dispatcher: Dispatcher, work: Slices, held_up: float) -> Slices:
    while True:
        began = dispatcher.held_up()
        try:
            step = next(work)
        except StopIteration as end:
            answer: bytes | Grant | Close | Wait = end.value
            held_up += dispatcher.held_up() - began
            return (yield from delayed(answer, held_up)) if is_rejection(answer, dispatcher) else answer
        held_up += dispatcher.held_up() - began
        yield step


def is_rejection(answer: Answer, dispatcher: Dispatcher) -> TypeGuard[bytes]:
    """Does the answer reject an invalid request? A full server is not the client's mistake: that error is not delayed,
    so that the client can react."""
    if not isinstance(answer, bytes) or not answer.startswith(_REJECTED) or answer.startswith(_NO_MISTAKE):
        return False
    no_room = dispatcher.no_room(1)
    return no_room is None or no_room.encode() not in answer


def delayed(answer: A, held_up: float) -> Generator[float, None, A]:
    """The answer after the delay for a request that held other connections up for this long."""
    seconds = delay_for(held_up)
    if seconds:
        yield seconds
    return answer
