"""PUSH and PUSHB (faktory.md sections 5.2 and 5.3)."""

import codecs
import re
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from heapq import merge
from itertools import islice
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from crossdock.model.commands.core import Enqueue, Refused
from crossdock.model.job import Spec
from crossdock.protocols.base import Answer, Dispatcher, ReplyMemory, Slices
from crossdock.protocols.faktory.admin import SLICE
from crossdock.protocols.faktory.job import UNREADABLE, PushBody, decode_many, read_checked, read_many, read_one, spec
from crossdock.protocols.faktory.messages import OK, bulk, error
from crossdock.protocols.job_spec import InvalidJob
from crossdock.protocols.rejection_delay import delay_for

#: Pushing a job costs half of what a mutation does.
_SLICE: Final = 2 * SLICE

#: Slice size while jobs are refused, so that other connections do not notice: the work goes on even if the peer has
#: gone, because a peer that has gone looks like one that sends nothing more.
_FEW: Final = 100

#: Approximate memory of a refusal until the reply is sent.
_REFUSAL_BYTES: Final = 250

#: Bytes of text that one step validates
_TEXT: Final = 512 * 1024

_encode = msgspec.json.Encoder().encode

B = TypeVar("B", bound=PushBody)

Refusals: TypeAlias = dict[str, str]  #: the reason by jid


def push(dispatcher: Dispatcher, via: str, body: Any, read: Callable[[Any], PushBody] = read_one) -> bytes:
    try:
        one = spec(read(body), dispatcher.now)
    except InvalidJob as refused:
        return error(str(refused))
    no_room = dispatcher.no_room(1)
    if no_room is not None:
        return error(no_room)
    outcome = dispatcher.do(Enqueue(via, [one]))
    if not outcome:
        return OK
    code, _, text = refusal(one, outcome[0]).partition(" ")
    return error(text, code.encode())


def push_large(dispatcher: Dispatcher, via: str, body: memoryview) -> Slices:
    try:
        yield from check_text(body)
    except InvalidJob as refused:
        return error(str(refused))
    return push(dispatcher, via, body, read_checked)


def push_bulk(dispatcher: Dispatcher, via: str, body: bytes) -> Answer:
    try:
        bodies = read_many(body)
    except InvalidJob as refused:
        return error(str(refused))
    return slices(dispatcher, iter(bodies), partial(_take, dispatcher, via))


def push_bulk_large(dispatcher: Dispatcher, via: str, body: memoryview) -> Slices:
    try:
        yield from check_text(body)
        bodies = yield from read_pieces(body, decode_many)
    except InvalidJob as refused:
        return error(str(refused))
    del body  # the pieces hold what is still needed
    return (yield from slices(dispatcher, bodies, partial(_take, dispatcher, via)))


def check_text(body: memoryview) -> Iterator[None]:
    """Raises InvalidJob if it is not UTF-8. The JSON decoder does not check args and custom."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for at in range(0, len(body), _TEXT):
        if at:
            yield
        try:
            decoder.decode(body[at : at + _TEXT], final=at + _TEXT >= len(body))
        except UnicodeDecodeError as wrong:
            raise InvalidJob(f"invalid JSON: {wrong}") from wrong


def _take(dispatcher: Dispatcher, via: str, some: list[PushBody], refused: Refusals) -> int:
    """Push some jobs of a list. Returns the number of jobs that are valid."""
    specs: list[Spec] = []
    for each in some:
        try:
            specs.append(spec(each, dispatcher.now))
        except InvalidJob as wrong:
            refused[each.jid or ""] = str(wrong)
    no_room = dispatcher.no_room(len(specs))
    if no_room is not None:
        refused.update((each.jid, no_room) for each in specs)
    elif specs:
        note_refused(refused, specs, dispatcher.do(Enqueue(via, specs)))
    return len(specs)


def note_refused(refused: Refusals, specs: list[Spec], outcome: Sequence[Refused | None]) -> None:
    """Add the reasons why the engine refused some of these jobs."""
    refused.update(
        (one.jid, refusal(one, why).removeprefix("ERR "))
        for one, why in zip(specs, outcome, strict=False)
        if why is not None and why is not Refused.DUPLICATE
    )


def slices(dispatcher: Dispatcher, bodies: Iterator[B], take: Callable[[list[B], Refusals], int]) -> Slices:
    """Push a list of jobs slice by slice with `take`. The reply maps the jid of each refused job to the reason."""
    refused: Refusals = {}
    some = list(islice(bodies, _SLICE))
    while some:
        began, before = dispatcher.held_up(), len(refused)
        wasted = 1 - take(some, refused) / len(some)
        some = list(islice(bodies, _SLICE if wasted < 0.5 else _FEW))
        held_up = dispatcher.held_up() - began
        if len(refused) > before:
            yield ReplyMemory(_REFUSAL_BYTES * (len(refused) - before))
        if some or wasted:
            yield delay_for(wasted * held_up)
    if len(refused) > _SLICE:
        return (yield from _refusals_reply(refused))
    return bulk(_encode(dict(sorted(refused.items()))))


def _refusals_reply(refused: dict[str, str]) -> Slices:
    """The reply with many refusals, sorted and encoded slice by slice."""
    jids, runs = iter(refused), []
    while run := sorted(islice(jids, _SLICE)):
        runs.append(run)
        yield
    merged, parts = merge(*runs), []
    while some := list(islice(merged, _SLICE)):
        parts.append(_encode({jid: refused[jid] for jid in some})[1:-1])
        yield
    yield b"$%d\r\n{" % (sum(map(len, parts)) + len(parts) + 1)
    for part in parts[:-1]:
        yield part + b","
    return parts[-1] + b"}\r\n"


def refusal(one: Spec, why: Refused | None) -> str:
    """The error code and text of a job that the engine refused."""
    if why is Refused.NOT_UNIQUE:
        return "NOTUNIQUE Job not unique"
    group = one.extra.links.batch if one.extra is not None and one.extra.links is not None else ""
    return f"ERR no such batch {group}"


# Reads the jobs of a large PUSHB piece by piece. Decoded at once, 16 MiB of `{}` took most of a second and a gigabyte.
#
# The list is cut after a `}` and a comma near the piece size. Whether that place is between two jobs is found out by
# decoding: if it is inside a string or a nested list, the text up to it is not a valid list, and a later cut is tried.


#: About 70 usual jobs, or 2,700 times `{}`.
PIECE: Final = 8 * 1024

#: Jobs and bytes decoded in one step
JOBS_A_STEP: Final = 1_000
BYTES_A_STEP: Final = 256 * 1024

#: Decoded jobs that are kept while the rest is checked. Jobs behind them are decoded a second time instead.
KEPT: Final = 20_000

_BEGIN: Final = re.compile(rb"[ \t\r\n]*\[")
_CUT: Final = re.compile(rb"\}[ \t\r\n]*,")


def read_pieces(body: memoryview, decode: Callable[[bytes], list[B]]) -> Generator[None, None, Iterator[B]]:
    """Check the whole list before the first job is pushed: an invalid list is refused as a whole. Raises InvalidJob."""
    begin = _BEGIN.match(body)
    if begin is None:
        raise InvalidJob("invalid JSON: Expected `array` of jobs")
    pieces: deque[list[B] | bytes] = deque()
    kept, at = 0, begin.end()
    jobs, stepped = 0, at
    while True:
        size = PIECE
        while True:
            cut = _CUT.search(body, at + size)
            end = len(body) if cut is None else cut.start() + 1
            text = b"".join((b"[", body[at:end], b"" if cut is None else b"]"))
            try:
                found = decode(text)
                break
            except UNREADABLE as error:
                if cut is None:
                    raise InvalidJob(f"invalid JSON: {f'from byte {at}: ' if pieces else ''}{error}") from error
            size = max(2 * size, end - at)
            yield
        if not found and pieces:
            raise InvalidJob("invalid JSON: JSON is malformed: a comma without a job behind it")
        kept += len(found)
        pieces.append(found if kept <= KEPT else text)
        if cut is None:
            return _jobs(pieces, decode)
        at = cut.end()
        jobs += len(found)
        if jobs >= JOBS_A_STEP or at - stepped >= BYTES_A_STEP:
            jobs, stepped = 0, at
            yield


def _jobs(pieces: deque[list[B] | bytes], decode: Callable[[bytes], list[B]]) -> Iterator[B]:
    """Free each piece with its last job."""
    while pieces:
        piece = pieces.popleft()
        yield from decode(piece) if isinstance(piece, bytes) else piece
