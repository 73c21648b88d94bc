"""Workq's wire format: replies and errors, the words of a command line, times, and the request parser."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from crossdock.protocols.base import ErrorReply
from crossdock.protocols.rejection_delay import LARGE, Long, received

OK: Final = b"+OK\r\n"
ONE: Final = b"+OK 1\r\n"
NONE: Final = b"+OK 0\r\n"
NOT_FOUND: Final = ErrorReply(b"-NOT-FOUND\r\n")
#: No trailing blank: the Go client would refuse it. It does not count as an error: idle workers get it all the time.
TIMEOUT: Final = b"-TIMEOUT\r\n"


def client_error(text: str) -> ErrorReply:
    return ErrorReply(b"-CLIENT-ERROR %b\r\n" % text.encode())


def server_error(text: str) -> ErrorReply:
    flat = text.encode("utf-8", "replace").replace(b"\r", b"").replace(b"\n", b" ")
    return ErrorReply(b"-SERVER-ERROR %b\r\n" % flat)


UNKNOWN_COMMAND: Final = client_error("Unknown command")
INVALID_ARGS: Final = client_error("Invalid command args")
INVALID_FLAGS: Final = client_error("Invalid command flags")
INVALID_PAYLOAD_SIZE: Final = client_error("Invalid payload size")
INVALID_RESULT_SIZE: Final = client_error("Invalid result size")
INVALID_ID: Final = client_error("Invalid ID")
INVALID_NAME: Final = client_error("Invalid Name")
INVALID_TTR: Final = client_error("Invalid TTR")
INVALID_TTL: Final = client_error("Invalid TTL")
INVALID_TIME: Final = client_error("Invalid Time")
INVALID_PRIORITY: Final = client_error("Invalid Priority")
INVALID_MAX_ATTEMPTS: Final = client_error("Invalid Max Attempts")
INVALID_MAX_FAILS: Final = client_error("Invalid Max Fails")
INVALID_WAIT: Final = client_error("Invalid wait timeout")
INVALID_OFFSET: Final = client_error("Invalid cursor offset")
INVALID_LIMIT: Final = client_error("Invalid limit")
DUPLICATE_JOB: Final = client_error("Duplicate job")
DUPLICATE_RESULT: Final = client_error("Duplicate result")


class InvalidCommand(Exception):
    """A command that is refused with `reply`."""

    def __init__(self, reply: bytes) -> None:
        super().__init__(reply)
        self.reply = reply


def result(ident: str, ok: bool, body: bytes) -> bytes:
    """The reply to `run` and `result` for a job that has ended."""
    return ONE + b"%b %d %d\r\n%b\r\n" % (ident.encode(), ok, len(body), body)


# The words of a command line: flags (workq.md section 1.1), numbers (section 1.2) and names (section 2).


Flags = dict[bytes, bytes]
NO_FLAGS: Final[Flags] = {}

_FLAGS_AT_MOST: Final = 100  #: three are known

NAME_BYTES: Final = 255
_NAME: Final = re.compile(rb"[A-Za-z0-9_.-]+")
_SPELLED: Final = re.compile(r"[A-Za-z0-9_.-]+")
_UNSPELLED: Final = re.compile(r"[^A-Za-z0-9_.-]")
_UINT64_DIGITS: Final = 20
_UINT64: Final = 2**64 - 1


def apart(tokens: list[bytes]) -> tuple[list[bytes], Flags]:
    """Separate positional words from flags, which may stand anywhere. `-priority=1=2` means 1. Raises
    InvalidCommand."""
    words: list[bytes] = []
    flags: Flags = {}
    for token in tokens:
        if not token.startswith(b"-") or b"=" not in token:
            words.append(token)
            continue
        key, value, *_ = token[1:].split(b"=", 2)
        if not key or not value or key in flags or len(flags) == _FLAGS_AT_MOST:
            raise InvalidCommand(INVALID_FLAGS)
        flags[key] = value
    return words, flags


def unsigned(text: bytes, most: int = _UINT64) -> int | None:
    """The value of decimal digits, leading zeros allowed. None for anything else and above `most`."""
    if not text.isdigit():
        return None
    if len(text) > _UINT64_DIGITS:
        text = text.lstrip(b"0")  # a number of a million digits would cost seconds
        if len(text) > _UINT64_DIGITS:
            return None
    number = int(text or b"0")
    return number if number <= most else None


def signed(text: bytes) -> int | None:
    """The value of digits with an optional sign. None for anything else."""
    sign = text[:1]
    if sign != b"-" and sign != b"+":
        return unsigned(text)
    number = unsigned(text[1:])
    return -number if number is not None and sign == b"-" else number


def name(text: bytes) -> str | None:
    """The name of a job and of its queue. None if it is invalid."""
    return _known(text) if len(text) <= NAME_BYTES else None


@lru_cache(maxsize=4_096)
def _known(text: bytes) -> str | None:
    return text.decode() if _NAME.fullmatch(text) else None


def spells(text: str) -> bool:
    """Is this queue name, from any protocol, valid in Workq?"""
    return len(text) <= NAME_BYTES and _SPELLED.fullmatch(text) is not None


def spelled(text: str) -> bytes:
    """The name with `?` for invalid characters: a line end in it would break the reply."""
    return (text if spells(text) else _UNSPELLED.sub("?", text)).encode()


# Times: UTC, capital T and Z, no offset (workq.md section 2).


_STAMP: Final = re.compile(rb"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?Z")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FRACTION: Final = 10  #: digits that can matter to a float
_FIRST: Final = -62_135_596_800  #: the years 1 to 9999
_LAST: Final = 253_402_300_799


def parse(text: bytes) -> float | None:
    """Seconds since 1970. None unless it is a valid date in that form. A fraction of a second is allowed."""
    match = _STAMP.fullmatch(text)
    if match is None:
        return None
    *fields, fraction = match.groups()
    year, month, day, hour, minute, second = map(int, fields)
    try:
        whole = (datetime(year, month, day, hour, minute, second, tzinfo=UTC) - _EPOCH).total_seconds()
    except ValueError:
        return None
    return whole + float(fraction[:_FRACTION]) if fraction else whole


@lru_cache(maxsize=1_024)
def stamp(at: float) -> bytes:
    """Whole seconds. A time outside the calendar is shown as its first or last second."""
    seconds = min(max(_FIRST, at), _LAST) // 1
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19].encode() + b"Z"


# The request parser: lines that end in CR LF, some followed by a block of announced length (workq.md section 1).
#
# A command that is refused before its block is read leaves the block in the stream, where it is parsed as the next
# command. Upstream does the same (workq.md section 1.3).


BUDGET: Final = 1_058_576  #: bytes of one command, its block and both line ends included
BLOCK_BYTES: Final = 1_048_576

#: The words of a line, starting with the command's name, its flags, and its block. Bytes: the reply to an invalid one.
_Read: TypeAlias = tuple[list[bytes], Flags, bytes] | bytes

_ANY: Final = BUDGET

#: A line with more blanks is refused without splitting it. `lease` takes a thousand names.
_BLANKS_AT_MOST: Final = 5_000

#: Bytes of a line that are parsed per second.
_LINES_A_S: Final = 1e8


#: None: the stream cannot be parsed any further, and nothing follows.
WorkqRequest: TypeAlias = _Read | Long[_Read] | None


class _Shape(NamedTuple):
    """The number of words of a command, including its name, and the reply to a wrong size if a block follows."""

    least: int
    most: int
    wrong_size: bytes = b""


_SHAPES: Final = {
    b"add": _Shape(6, 6, INVALID_PAYLOAD_SIZE),
    b"schedule": _Shape(7, 7, INVALID_PAYLOAD_SIZE),
    b"run": _Shape(6, 6, INVALID_PAYLOAD_SIZE),
    b"complete": _Shape(3, 3, INVALID_PAYLOAD_SIZE),
    b"fail": _Shape(3, 3, INVALID_RESULT_SIZE),
    b"result": _Shape(3, 3),
    b"lease": _Shape(3, _ANY),
    b"delete": _Shape(2, 2),
    b"inspect": _Shape(2, _ANY),
}


class _Head(NamedTuple):
    """A line that is followed by a block."""

    words: list[bytes]
    flags: Flags
    size: int
    wrong_size: bytes


class Codec:
    """Scans each byte once, for any split into chunks."""

    __slots__ = ("_broken", "_head", "_kept", "_need")

    def __init__(self) -> None:
        self._kept = bytearray()  #: the beginning of a line or, after a `_head`, of its block
        self._head: _Head | None = None
        self._need = 0  #: bytes of the block and its line end
        self._broken = False

    def receive(self, data: bytes) -> list[WorkqRequest]:
        found: list[WorkqRequest] = []
        kept, head, at = self._kept, self._head, 0
        if kept or head is not None or self._broken:
            if self._broken:
                return found
            kept += data
            if self._need > len(kept):
                return found
            if head is None and b"\n" not in data:
                return self._break(found) if len(kept) > BUDGET else found
            data = bytes(kept)
            kept.clear()
            self._head, self._need = None, 0
        length = len(data)
        while at < length:
            begin = at
            if head is None:
                end = data.find(b"\n", at)
                if end < 0:
                    if length - at > BUDGET:
                        return self._break(found)
                    kept += data[at:]
                    break
                at = end + 1
                if end == begin or data[end - 1] != 0x0D or at - begin > BUDGET:
                    return self._break(found)
                line = _line(data[begin : end - 1])
                if not isinstance(line, _Head):
                    found.append(Long(line, (at - begin) / _LINES_A_S) if at - begin > LARGE else line)
                    continue
                head = line
            words, flags, size, wrong_size = head
            end = at + size
            if end + 2 - begin > BUDGET:
                return self._break(found)
            if end + 2 > length:
                self._head, self._need = head, size + 2
                kept += data[at:]
                break
            read = (words, flags, data[at:end]) if data[end : end + 2] == b"\r\n" else wrong_size
            found.append(Long(read, received(size)) if size > LARGE else read)
            at, head = end + 2, None
        return found

    def _break(self, found: list[WorkqRequest]) -> list[WorkqRequest]:
        """The connection closes without a reply (workq.md section 1). Commands before this one are answered."""
        self._broken = True
        self._kept.clear()
        found.append(None)
        return found


def _line(line: bytes) -> _Read | _Head:
    if len(line) > _BLANKS_AT_MOST and line.count(b" ") > _BLANKS_AT_MOST:
        return INVALID_ARGS if line.partition(b" ")[0] in _SHAPES else UNKNOWN_COMMAND
    words = line.split(b" ")
    shape = _SHAPES.get(words[0])
    if b"" in words:
        words = [word for word in words if word]
    flags = NO_FLAGS
    if b"=" in line:
        try:
            words, flags = apart(words)
        except InvalidCommand as wrong:
            return wrong.reply
    if shape is None:
        return UNKNOWN_COMMAND
    least, most, wrong_size = shape
    if not least <= len(words) <= most:
        return INVALID_ARGS
    if not wrong_size:
        return words, flags, b""
    size = signed(words[-1])
    return _Head(words, flags, size, wrong_size) if size is not None and 0 <= size <= BLOCK_BYTES else wrong_size
