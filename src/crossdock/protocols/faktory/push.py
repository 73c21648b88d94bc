"""PUSH and PUSHB (page sections 5.2 and 5.3)."""

import codecs
import re
from collections import deque
from collections.abc import Callable, Generator, Iterator
from heapq import merge
from itertools import islice
from typing import Any, Final

import msgspec

from crossdock.model.commands.core import Enqueue, Refused
from crossdock.model.job import Spec
from crossdock.protocols.base import Answer, Dispatcher, ReplyMemory, Slices
from crossdock.protocols.faktory.admin import SLICE
from crossdock.protocols.faktory.job import UNREADABLE, PushBody, decode_many, read_checked, read_many, read_one, spec
from crossdock.protocols.faktory.messages import OK, bulk, error
from crossdock.protocols.job_spec import InvalidJob
from crossdock.protocols.rejection_delay import rest

#: Pushing costs half of what moving does.
_SLICE: Final = 2 * SLICE

#: Of jobs that are refused so many are looked at in one go, so that nobody feels it: a peer that has gone meanwhile
#: cannot be told from one that only sends no more.
_FEW: Final = 100

#: That it takes to keep a refusal until all are told, about: a name, and its place among them.
_REFUSAL_BYTES: Final = 250

#: Bytes whose characters are looked at in one go
_TEXT: Final = 512 * 1024

_encode = msgspec.json.Encoder().encode


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
    code, _, text = _refusal(one, outcome[0]).partition(" ")
    return error(text, code.encode())


def push_large(dispatcher: Dispatcher, via: str, body: memoryview) -> Slices:
    try:
        yield from _check_text(body)
    except InvalidJob as refused:
        return error(str(refused))
    return push(dispatcher, via, body, read_checked)


def push_bulk(dispatcher: Dispatcher, via: str, body: bytes) -> Answer:
    try:
        bodies = read_many(body)
    except InvalidJob as refused:
        return error(str(refused))
    return _slices(dispatcher, via, iter(bodies))


def push_bulk_large(dispatcher: Dispatcher, via: str, body: memoryview) -> Slices:
    try:
        yield from _check_text(body)
        bodies = yield from read_pieces(body)
    except InvalidJob as refused:
        return error(str(refused))
    del body  # the pieces have what is still needed of it
    return (yield from _slices(dispatcher, via, bodies))


def _check_text(body: memoryview) -> Iterator[None]:
    """Is it UTF-8 throughout? The decoder does not look into args and custom. Raises InvalidJob."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for at in range(0, len(body), _TEXT):
        if at:
            yield
        try:
            decoder.decode(body[at : at + _TEXT], final=at + _TEXT >= len(body))
        except UnicodeDecodeError as wrong:
            raise InvalidJob(f"invalid JSON: {wrong}") from wrong


def _slices(dispatcher: Dispatcher, via: str, bodies: Iterator[PushBody]) -> Slices:
    """The reply names every job that was refused, and why."""
    refused: dict[str, str] = {}
    some = list(islice(bodies, _SLICE))
    while some:
        began, told = dispatcher.held_up(), len(refused)
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
            outcome = dispatcher.do(Enqueue(via, specs))
            refused.update(
                (one.jid, _refusal(one, why).removeprefix("ERR "))
                for one, why in zip(specs, outcome, strict=False)
                if why is not None
            )
        in_vain = 1 - len(specs) / len(some)
        some = list(islice(bodies, _SLICE if in_vain < 0.5 else _FEW))
        held_up = dispatcher.held_up() - began
        if len(refused) > told:
            yield ReplyMemory(_REFUSAL_BYTES * (len(refused) - told))
        if some or in_vain:
            yield rest(in_vain * held_up)
    if len(refused) > _SLICE:
        return (yield from _refusals_reply(refused))
    return bulk(_encode(dict(sorted(refused.items()))))


def _refusals_reply(refused: dict[str, str]) -> Slices:
    """As many as a large request may have, sorted and told slice by slice."""
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


def _refusal(one: Spec, why: Refused | None) -> str:
    """Why the server did not take it, with its code."""
    if why is Refused.NOT_UNIQUE:
        return "NOTUNIQUE Job not unique"
    group = one.extra.links.group if one.extra is not None and one.extra.links is not None else ""
    return f"ERR no such batch {group}"


# The jobs of a large PUSHB, read piece by piece: 16 MiB of `{}` took most of a second at once, and a gigabyte.
#
# A list is cut behind a job, near the size of a piece. Whether the job is one of its own is not looked for but tried:
# up to a place inside a string, or inside of another list, the text is no list that could end there.


#: As many bytes as 70 jobs have. Of `{}` it has 2,700.
PIECE: Final = 8 * 1024

#: Jobs and bytes read in one go
JOBS_A_STEP: Final = 1_000
BYTES_A_STEP: Final = 256 * 1024

#: Jobs that are kept while the rest is read; what comes behind them is read a second time instead.
KEPT: Final = 20_000

_BEGIN: Final = re.compile(rb"[ \t\r\n]*\[")
_CUT: Final = re.compile(rb"\}[ \t\r\n]*,")


def read_pieces(body: memoryview) -> Generator[None, None, Iterator[PushBody]]:
    """All of it, before the first job is pushed: a list that is not whole is refused as a whole. Raises InvalidJob."""
    begin = _BEGIN.match(body)
    if begin is None:
        raise InvalidJob("invalid JSON: Expected `array` of jobs")
    pieces: deque[list[PushBody] | bytes] = deque()
    kept, at = 0, begin.end()
    jobs, stepped = 0, at
    while True:
        size = PIECE
        while True:
            cut = _CUT.search(body, at + size)
            end = len(body) if cut is None else cut.start() + 1
            text = b"".join((b"[", body[at:end], b"" if cut is None else b"]"))
            try:
                found = decode_many(text)
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
            return _jobs(pieces)
        at = cut.end()
        jobs += len(found)
        if jobs >= JOBS_A_STEP or at - stepped >= BYTES_A_STEP:
            jobs, stepped = 0, at
            yield


def _jobs(pieces: deque[list[PushBody] | bytes]) -> Iterator[PushBody]:
    """A piece is forgotten with its last job."""
    while pieces:
        piece = pieces.popleft()
        yield from decode_many(piece) if isinstance(piece, bytes) else piece
