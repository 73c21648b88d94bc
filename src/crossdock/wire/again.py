"""Asking again for a job, a slice at a time: behind a long row of expired jobs something may wait (`row_goes_on`), and
nothing else would stir for it."""

from collections.abc import Callable

from crossdock.wire.answer import Answer, Bye, Slices, Wait
from crossdock.wire.desk import Desk


def again(desk: Desk, until: float, ask: Callable[[bool], Answer]) -> Slices:
    """`ask(late)`, as a `Wait` has it, until it answers at once or would wait."""
    while True:
        yield
        answer = ask(desk.now.steady >= until)
        if isinstance(answer, bytes | Bye | Wait):
            return answer
