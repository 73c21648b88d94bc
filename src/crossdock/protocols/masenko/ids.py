"""Masenko's ids: 32 bits, never 0. Ours are the low ones of a job's number (MODEL section 9)."""

from collections.abc import Container
from typing import Final

from crossdock.engine.queries.jobs import last_job_number
from crossdock.model.commands.core import DrawNumbers
from crossdock.model.job import Number
from crossdock.protocols.base import Dispatcher

_BITS: Final = 32
_MASK: Final = 2**_BITS - 1

#: More numbers than are given out between two looks.
_AHEAD: Final = 2**24


def shown(number: Number) -> int:
    return number & _MASK


def newest(task: int, dispatcher: Dispatcher, among: Container[Number]) -> Number | None:
    """The newest number with that id `among` these."""
    if task > _MASK:
        return None
    for high in range(last_job_number(dispatcher.state) >> _BITS, -1, -1):
        number = high << _BITS | task
        if number in among:
            return number
    return None


def skip_zero(dispatcher: Dispatcher) -> None:
    """No job may have a number whose id would be 0: ahead of one, use up the numbers to it."""
    left = -last_job_number(dispatcher.state) & _MASK
    if 0 < left <= _AHEAD:
        dispatcher.do(DrawNumbers(left))
