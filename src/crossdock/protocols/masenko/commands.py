"""Masenko's FETCH, ACK, NACK and INFO, and the ids of tasks (page section 3)."""

from collections.abc import Container
from functools import lru_cache
from itertools import islice
from typing import Annotated, Final, NamedTuple

import msgspec

from crossdock.engine.queries.jobs import last_job_number
from crossdock.engine.queries.queues import listed_queues, queue_counts
from crossdock.engine.state import EngineState
from crossdock.model.commands.core import DrawNumbers
from crossdock.model.job import Number
from crossdock.protocols.base import Answer, Dispatcher, Slices
from crossdock.protocols.masenko import messages
from crossdock.protocols.masenko.go_json import GoValue, NotJson, WrongType, complaint, members
from crossdock.protocols.masenko.messages import ECHO, InvalidRequest, quote
from crossdock.protocols.masenko.push import NAME_BYTES, NOT_READ

#: Each one named costs a look at every stir; upstream has no limit.
QUEUES_AT_MOST: Final = 1_000

#: So many of the longest names, each character escaped. What is longer takes a second to read.
_BODY_BYTES: Final = 2 * 1024 * 1024

_CACHED_BYTES: Final = 1_024
_INT64: Final = 2**63


class Fetch(NamedTuple):
    queues: tuple[str, ...]
    timeout_ns: int | None  #: None: as the server sets it


class _FetchBody(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    queues: tuple[str, ...] = ("default",)
    timeout: str | int | msgspec.UnsetType = msgspec.UNSET


_decode_fetch = msgspec.json.Decoder(_FetchBody).decode


def read_fetch(body: bytes) -> Fetch:
    """Raises Invalid."""
    return _cached(body) if len(body) <= _CACHED_BYTES else _read(body)


def _read(body: bytes) -> Fetch:
    if not body:
        return Fetch(("default",), None)
    if len(body) > _BODY_BYTES:
        raise InvalidRequest(NOT_READ)
    try:
        request = _decode_fetch(body)
        given = request.timeout
        named, timeout = request.queues, None if isinstance(given, msgspec.UnsetType) else _nanoseconds(given)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        named, timeout = _read_fetch_as_go_does(body)
    if timeout is not None and timeout <= 0:
        raise InvalidRequest("timeout must be greater than zero")
    if len(named) > QUEUES_AT_MOST:
        raise InvalidRequest(f"FETCH takes at most {QUEUES_AT_MOST} queues")
    # A name cut at the limit of a name cannot be a queue's.
    return Fetch(tuple(name[: NAME_BYTES + 1] for name in named), timeout)


_cached = lru_cache(maxsize=1_024)(_read)  # workers ask for the same queues over and over


def _nanoseconds(timeout: str | int) -> int:
    if isinstance(timeout, str):
        return messages.parse(timeout)
    if not -_INT64 <= timeout < _INT64:
        raise ValueError("more than Go's int64 holds")
    return timeout


def _read_fetch_as_go_does(body: bytes) -> tuple[tuple[str, ...], int | None]:
    named: tuple[str, ...] = ("default",)
    timeout: int | None = None
    try:
        for name, value in members(body, ("queues", "timeout")):
            if name == "queues":
                named = tuple(item.string() for item in islice(value.items(), QUEUES_AT_MOST + 1))
            else:
                timeout = _timeout(value)
    except (NotJson, WrongType, ValueError) as error:
        raise InvalidRequest(NOT_READ) from error
    return named, timeout


def _timeout(value: GoValue) -> int:
    """A null is read by Go's own method of that type, and makes it zero."""
    return messages.parse(value.string()) if value.kind == "string" else value.integer(-_INT64, _INT64 - 1)


# The one argument of ACK and NACK, with Go's words for what is wrong with it (page 3.4).


MOST: Final = 0xFFFFFFFF
MISSING: Final = "missing id"


class _AckBody(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    id: Annotated[int, msgspec.Meta(ge=0, le=MOST)] = 0


_decode_ack = msgspec.json.Decoder(_AckBody).decode


def read_ack(body: bytes, verb: str) -> int:
    """The id. `verb` is `ack` or `nack`: Go names its own type. Raises Invalid."""
    try:
        task = _decode_ack(body).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        task = 0
    task = task or _read_ack_as_go_does(body, verb)  # the decoder takes -0 for a number without a sign
    if not task:
        raise InvalidRequest(MISSING)
    return task


def _read_ack_as_go_does(body: bytes, verb: str) -> int:
    task, wrong = 0, ""
    try:
        for _, value in members(body, ("id",)):
            try:
                task = value.integer(0, MOST) if value.kind != "null" else task
            except WrongType as error:
                wrong = wrong or f"{error} into Go struct field {verb}Request.id of type uint32"
    except NotJson as error:
        raise InvalidRequest(f"unmarshal payload: {complaint(body)}") from error
    except WrongType as error:
        wrong = f"{error} into Go value of type proto.{verb}Request"
    if wrong:
        raise InvalidRequest(f"unmarshal payload: json: cannot unmarshal {wrong[:ECHO]}")
    return task


# INFO (page 3.5): how many tasks each queue has, in the order in which queues were first seen.
#
# Delayed are those with a time, also when it has come: scheduled, retrying, and ready because they were due. Blocked
# ones are counted nowhere, and a queue that is empty keeps its row.


#: Queues looked at in one go.
SLICE: Final = 1_000


def info(state: EngineState) -> Answer:
    names = [queue.name for queue in listed_queues(state)]
    return _reply([_row(state, name) for name in names]) if len(names) <= SLICE else _in_slices(state, names)


def _in_slices(state: EngineState, names: list[str]) -> Slices:
    rows: list[bytes] = []
    for first in range(0, len(names), SLICE):
        rows += [_row(state, name) for name in names[first : first + SLICE]]
        yield
    return _reply(rows)


def _row(state: EngineState, name: str) -> bytes:
    held = queue_counts(state, name)
    delayed = held.scheduled + held.retrying + held.overtaking
    ready = held.ready - held.overtaking
    return b'{"name":%b,"ready":%d,"delayed":%d,"to_ack":%d}' % (quote(name), ready, delayed, held.leased)


def _reply(rows: list[bytes]) -> bytes:
    return b'OK {"queues":[%b]}\n' % b",".join(rows)


# Masenko's ids: 32 bits, never 0. Ours are the low ones of a job's number (MODEL section 9).


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
