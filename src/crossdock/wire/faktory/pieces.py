"""The jobs of a large PUSHB, read piece by piece: 16 MiB of `{}` took most of a second at once, and a gigabyte.

A list is cut behind a job, near the size of a piece. Whether the job is one of its own is not looked for but tried: up
to a place inside a string, or inside of another list, the text is no list that could end there.
"""

import re
from collections import deque
from collections.abc import Generator, Iterator
from typing import Final

from crossdock.wire.faktory.job import UNREADABLE, PushBody, decode_many
from crossdock.wire.faktory.messages import Invalid

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
    """All of it, before the first job is pushed: a list that is not whole is refused as a whole. Raises Invalid."""
    begin = _BEGIN.match(body)
    if begin is None:
        raise Invalid("invalid JSON: Expected `array` of jobs")
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
                    raise Invalid(f"invalid JSON: {f'from byte {at}: ' if pieces else ''}{error}") from error
            size = max(2 * size, end - at)
            yield
        if not found and pieces:
            raise Invalid("invalid JSON: JSON is malformed: a comma without a job behind it")
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
