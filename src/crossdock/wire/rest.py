"""Who sends something large that is refused rests after the answer, a hundred times as long as looking at it held
everybody else up. So a peer that repeats it takes less than a hundredth of their time, whatever it found that is slow.
"""

from collections.abc import Generator
from typing import Final

from crossdock.wire.answer import Answer, Slices, Wait
from crossdock.wire.desk import Desk

#: Requests up to this size are looked at in a fraction of a millisecond, but for lists of jobs.
LARGE: Final = 16 * 1024

_TIMES: Final = 150
_AT_MOST_S: Final = 60.0
_UNFELT_S: Final = 0.000_2

#: Of all doors' grammars
_REFUSAL: Final = b"-"


def rest(desk: Desk, share: float = 1.0) -> float:
    """Seconds, after a step of which so much was for nothing."""
    held_up = share * desk.held_up()
    return min(_TIMES * held_up, _AT_MOST_S) if held_up >= _UNFELT_S else 0.0


def rested(desk: Desk, answer: Answer) -> Answer:
    """The answer to a large request, and the rest behind it."""
    if isinstance(answer, Generator):
        return _work(desk, answer)
    return _rest(desk, answer) if isinstance(answer, bytes) and answer.startswith(_REFUSAL) else answer


def _work(desk: Desk, work: Slices) -> Slices:
    answer = yield from work
    if isinstance(answer, bytes) and answer.startswith(_REFUSAL):
        answer = yield from _rest(desk, answer)
    return answer


def _rest(desk: Desk, refusal: bytes) -> Slices:
    seconds = rest(desk)
    if not seconds:
        return refusal
    until = desk.now.steady + seconds
    yield refusal
    return Wait((), until, lambda late: b"")
