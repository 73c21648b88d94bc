"""PUSH: from a request to a `Spec`, with upstream's checks, order and error texts (masenko.md section 3.2)."""

import os
import re
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Annotated, Final, NamedTuple

import msgspec

from crossdock.model.job import Extra, Form, Spec
from crossdock.model.policies import Backoff, DependencyLoss, Disposition, LeaseExpiry, Policy
from crossdock.protocols.masenko.go_json import GoValue, NotJson, WrongType, members
from crossdock.protocols.masenko.messages import InvalidRequest, go_quote, normal
from crossdock.protocols.payload import too_deep

NAME_BYTES: Final = 255
PAYLOAD_BYTES: Final = 65_535
JSON_DEPTH: Final = 64
RETRIES: Final = 20
BLOCKERS_AT_MOST: Final = 255

NOT_READ: Final = "cannot unmarshal payload"

_ABSENT: Final = msgspec.Raw(b"")
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class TaskBody(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The decoder refuses any other key and any null. Then `_read_as_go_does` reads the request."""

    name: str = ""
    queue: str = "default"
    payload: msgspec.Raw = _ABSENT
    retry: Annotated[int, msgspec.Meta(ge=0, le=255)] = RETRIES
    deadqueue: str = ""
    execute_at: str | None = None
    blocked_by: tuple[_Int64, ...] = ()


_decode = msgspec.json.Decoder(TaskBody).decode


class PushRequest(NamedTuple):
    spec: Spec
    blockers: tuple[int, ...]  #: as sent: IDs, and positions within a transaction
    payload_bytes: int  #: as sent
    too_big: str  #: upstream's error when it writes the task to its log (step 6)

    @property
    def size(self) -> int:
        """The size of its record in upstream's log (masenko.md section 7)."""
        spec = self.spec
        deadqueue = spec.extra.deadqueue if spec.extra is not None else ""
        names = _bytes(spec.queue) + _bytes(spec.kind) + _bytes(deadqueue)
        return _RECORD + names + self.payload_bytes + 4 * len(self.blockers)


def read(body: bytes) -> PushRequest:
    """Steps 1 to 4 of masenko.md section 3.2. Step 5 depends on the transaction and is done by the caller. Raises
    InvalidRequest."""
    try:
        request = _decode(body)
        if not body.isascii():
            body.decode()  # the decoder does not check the payload
        if not request.retry and b"-0" in body:  # and it accepts -0 as unsigned
            request = _read_as_go_does(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        request = _read_as_go_does(body)
    name, queue, deadqueue = request.name, request.queue or "default", request.deadqueue
    due = 0.0 if request.execute_at is None else _due(request.execute_at)
    text = bytes(request.payload)
    if len(text) > 2 * JSON_DEPTH and too_deep(text, JSON_DEPTH):
        raise InvalidRequest(NOT_READ)
    if not _is_name(queue) or (deadqueue and not _is_name(deadqueue)):
        raise InvalidRequest(f"invalid queue name {go_quote(queue)}")
    if not _is_name(name):
        raise InvalidRequest(f"invalid task name {go_quote(name)}")
    if len(request.blocked_by) > BLOCKERS_AT_MOST:
        raise InvalidRequest(f"at most {BLOCKERS_AT_MOST} blocked by task IDs can be provided")
    spec = Spec(
        new_jid(),
        queue,
        name,
        normal(text),
        Form.JSON if text else Form.NONE,
        0,
        policy_for(request.retry),
        due,
        Extra(deadqueue=deadqueue) if deadqueue else None,
    )
    size = len(text)
    plain = size <= PAYLOAD_BYTES and len(queue) < _SHORT and len(name) < _SHORT and len(deadqueue) < _SHORT
    return PushRequest(spec, request.blocked_by, size, "" if plain else _too_big(queue, name, deadqueue, size))


def new_jid() -> str:
    """A random UUID, version 4, in a third of the time that `uuid` takes. No Masenko client sees it."""
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


#: A name of fewer characters cannot exceed NAME_BYTES.
_SHORT: Final = 64


def _too_big(queue: str, name: str, deadqueue: str, payload_bytes: int) -> str:
    """Upstream's error for the first part that does not fit into its log."""
    for word, text in (("queue", queue), ("task", name), ("deadqueue", deadqueue)):
        if _bytes(text) > NAME_BYTES:
            return f"{word} name too long"
    return "arguments too big" if payload_bytes > PAYLOAD_BYTES else ""


#: Lengths of the record and of its five parts, kind, ID, time, retries, number of blockers.
_RECORD: Final = 2 + 3 + 2 + 1 + 4 + 4 + 1 + 1


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


_NAME: Final = re.compile(r"[0-9A-Za-z_-]", re.ASCII)


def _is_name(name: str) -> bool:
    """One valid character anywhere is enough: upstream's pattern is not anchored."""
    return _is_known(name) if len(name) <= NAME_BYTES else _NAME.search(name) is not None


@lru_cache(maxsize=10_000)  # only for short names: a long one may be as long as a line
def _is_known(name: str) -> bool:
    return _NAME.search(name) is not None


@lru_cache(maxsize=256)
def policy_for(retry: int) -> Policy:
    return Policy(
        max_failures=retry,
        backoff=Backoff.QUARTIC,
        exhausted=Disposition.DEAD_QUEUE,
        success=Disposition.GONE,
        lease_expiry=LeaseExpiry.FAILURE,
        due_band=0,
        lost=DependencyLoss.FAILS_TOO,
    )


_STAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)", re.ASCII)


def _due(text: str) -> float:
    """Seconds since 1970 with their fraction: no task is delivered early (masenko.md section 11, row 11).

    Times before 1970, such as Go's zero time in the year 1, mean none.
    """
    try:
        if _STAMP.fullmatch(text) is None:
            raise ValueError("not RFC 3339 with a zone")
        return max(0.0, datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(NOT_READ) from error


def _read_as_go_does(body: bytes) -> TaskBody:
    try:
        found = {name: value for name, value in members(body, _FIELDS) if _checked(name, value)}
    except (NotJson, WrongType) as error:
        raise InvalidRequest(NOT_READ) from error
    payload, retry, due, blockers = map(found.get, ("payload", "retry", "execute_at", "blocked_by"))
    return TaskBody(
        found["name"].string() if "name" in found else "",
        found["queue"].string() if "queue" in found else "default",
        _ABSENT if payload is None else msgspec.Raw(payload.text.encode()),
        RETRIES if retry is None else retry.integer(0, 255),
        found["deadqueue"].string() if "deadqueue" in found else "",
        None if due is None or due.kind == "null" else due.string(),
        () if blockers is None else _blockers(blockers),
    )


def _blockers(value: GoValue) -> tuple[int, ...]:
    """Reads one more than the limit, which is enough to refuse them."""
    return tuple(item.integer(-(2**63), 2**63 - 1) for item in islice(value.items(), BLOCKERS_AT_MOST + 1))


_FIELDS: Final = frozenset(TaskBody.__struct_fields__)


def _checked(name: str, value: GoValue) -> bool:
    """Is the value to be kept? Null leaves a name or number unchanged. Raises WrongType and InvalidRequest."""
    if name == "payload":
        return True
    if name == "retry":
        value.integer(0, 255)
    elif name == "blocked_by":
        _blockers(value)
    elif name == "execute_at":
        if value.kind != "null":
            _due(value.string())
    else:
        value.string()
    return value.kind != "null" or name in ("blocked_by", "execute_at")
