"""The bodies of Masenko's FETCH, ACK and NACK, INFO, and task IDs (masenko.md section 3)."""

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

#: Each queue costs a lookup at every wake-up. Upstream has no limit.
QUEUES_AT_MOST: Final = 1_000

#: The maximum number of names at maximum length, each character escaped. Longer bodies would take a second to parse.
_BODY_BYTES: Final = 2 * 1024 * 1024

_CACHED_BYTES: Final = 1_024
_INT64: Final = 2**63


class Fetch(NamedTuple):
    queues: tuple[str, ...]
    timeout_ns: int | None  #: None: the server's default


class _FetchBody(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    queues: tuple[str, ...] = ("default",)
    timeout: str | int | msgspec.UnsetType = msgspec.UNSET


_decode_fetch = msgspec.json.Decoder(_FetchBody).decode


def read_fetch(body: bytes) -> Fetch:
    """Raises InvalidRequest."""
    return _cached(body) if len(body) <= _CACHED_BYTES else _read(body)


def _read(body: bytes) -> Fetch:
    if not body:
        return Fetch(("default",), None)
    if len(body) > _BODY_BYTES:
        raise InvalidRequest(NOT_READ)
    try:
        request = _decode_fetch(body)
        raw = request.timeout
        named, timeout = request.queues, None if isinstance(raw, msgspec.UnsetType) else _nanoseconds(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        named, timeout = _read_fetch_as_go_does(body)
    if timeout is not None and timeout <= 0:
        raise InvalidRequest("timeout must be greater than zero")
    if len(named) > QUEUES_AT_MOST:
        raise InvalidRequest(f"FETCH takes at most {QUEUES_AT_MOST} queues")
    # A name over the limit is cut one character above it, so that it matches no queue.
    return Fetch(tuple(name[: NAME_BYTES + 1] for name in named), timeout)


_cached = lru_cache(maxsize=1_024)(_read)  # workers send the same body with each FETCH


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
    """Go's decoder of that type reads null as zero."""
    return messages.parse(value.string()) if value.kind == "string" else value.integer(-_INT64, _INT64 - 1)


# The argument of ACK and NACK, with Go's error texts (masenko.md section 3.4).


MOST: Final = 0xFFFFFFFF
MISSING: Final = "missing id"


class _AckBody(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    id: Annotated[int, msgspec.Meta(ge=0, le=MOST)] = 0


_decode_ack = msgspec.json.Decoder(_AckBody).decode


def read_ack(body: bytes, verb: str) -> int:
    """The ID. `verb` is `ack` or `nack`, which Go's errors contain in a type name. Raises InvalidRequest."""
    try:
        task = _decode_ack(body).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        task = 0
    task = task or _read_ack_as_go_does(body, verb)  # the decoder accepts -0 as unsigned
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


# INFO (masenko.md section 3.5): the number of tasks in each queue, in the order in which queues were first seen.
#
# Delayed tasks are scheduled, retrying, or ready because they became due. Blocked tasks are not counted. An empty queue
# keeps its row.


#: Queues per slice.
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


# Task IDs: 32 bits, never 0. An ID is the low 32 bits of the job's number (model.md section 9).


_BITS: Final = 32
_MASK: Final = 2**_BITS - 1

#: More numbers than are drawn between two ticks.
_AHEAD: Final = 2**24


def shown(number: Number) -> int:
    return number & _MASK


def newest(task: int, dispatcher: Dispatcher, among: Container[Number]) -> Number | None:
    """The newest of these numbers that has that ID."""
    if task > _MASK:
        return None
    for high in range(last_job_number(dispatcher.state) >> _BITS, -1, -1):
        number = high << _BITS | task
        if number in among:
            return number
    return None


def skip_zero(dispatcher: Dispatcher) -> None:
    """Skip numbers before a job could get one whose ID is 0."""
    left = -last_job_number(dispatcher.state) & _MASK
    if 0 < left <= _AHEAD:
        dispatcher.do(DrawNumbers(left))
