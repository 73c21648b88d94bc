"""Parses RESP requests: arrays of bulk strings, or inline lines, from chunks of any size.

A protocol error has Redis' own text and ends the stream. It is returned as the last request, after the complete ones.
"""

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from crossdock.protocols.line_reader import Gathered
from crossdock.protocols.rejection_delay import LARGE, Long, gathered

#: Length of a line, an inline request included (Redis' PROTO_INLINE_MAX_SIZE).
LINE_BYTES: Final = 64 * 1024

#: Arguments of one request. Redis itself takes 1,048,576; here a request is parsed and executed in one step, during
#: which no other client is served.
WORDS_AT_MOST: Final = 32 * 1024
_REDIS_LIMIT: Final = 1024 * 1024
_MANY_WORDS: Final = 1_000  #: a request with more takes as long as a large one
_WORDS_PER_S: Final = 1e6
_WORD_BYTES: Final = 16  #: approximate size of an argument on the wire
_AHEAD_AT_MOST: Final = 8 * 1024 * 1024

#: Limits before AUTH (model.md section 12).
UNAUTHENTICATED_BYTES: Final = 8 * 1024
UNAUTHENTICATED_ITEMS: Final = 10

#: The heads of nearly all requests, parsed by one lookup.
_COUNTS: Final = {b"*%d" % count: count for count in range(1, 64)}
_LENGTHS: Final = {b"$%d" % length: length for length in range(1_024)}

_head: Final = [b"$%d" % length for length in range(1_024)].__getitem__

#: Data up to this size is tried as one complete request. Every limit of a request is larger.
_SHORT: Final = 4_096

_ESCAPES: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")


@dataclass(frozen=True)
class ProtocolError:
    """The peer sent something that is not RESP. Nothing after it is read."""

    text: str
    #: Bytes that were read in vain, approximately. They delay the error reply.
    size: int = field(default=0, compare=False)


RespRequest: TypeAlias = list[bytes] | Long[list[bytes]] | ProtocolError


class _Malformed(Exception):
    def __init__(self, text: str, ahead: int = 0) -> None:
        super().__init__(text)
        self.ahead = min(ahead, _AHEAD_AT_MOST)  #: bytes that the peer announced and that would be read in vain


class Requests:
    __slots__ = ("_args", "_buffer", "_bytes", "_left", "_limit", "_needed", "authenticated", "failed")

    def __init__(self, limit: int, authenticated: bool = True) -> None:
        self._limit = limit  #: bytes of one request
        self.authenticated = authenticated  #: False: the limits before AUTH apply
        self.failed = False  #: after a protocol error; nothing more is read
        self._buffer = Gathered()
        self._needed = 0  #: bytes that the buffer must have before it is parsed again; 0: it is empty
        self._args: list[bytes] = []  #: of the incomplete request
        self._left = 0  #: arguments that are missing
        self._bytes = 0  #: total length of the arguments

    def receive(self, data: bytes) -> list[RespRequest]:
        if self.failed:
            return []
        if self._needed:
            self._buffer.add(data)
            if self._buffer.size < self._needed:
                return []
            data = self._buffer.take()
            self._needed = 0
        elif self.authenticated and not self._left and len(data) <= _SHORT:
            # Fast path: one complete request of short strings without line ends. It takes half the time.
            parts = data.split(b"\r\n")
            if len(parts) == 2 * _COUNTS.get(parts[0], -1) + 2 and not parts[-1]:
                args = parts[2::2]
                try:
                    if list(map(_head, map(len, args))) == parts[1:-1:2]:
                        return [args]
                except IndexError:
                    pass  # an argument is longer than the table
        requests: list[RespRequest] = []
        try:
            self._cut(data, requests)
        except _Malformed as error:
            self.failed = True
            requests.append(ProtocolError(f"Protocol error: {error}", self._bytes + len(data) + error.ahead))
        return requests

    def _cut(self, data: bytes, requests: list[RespRequest]) -> None:
        at, size = 0, len(data)
        args, left = self._args, self._left
        while True:
            while left:
                end = data.find(b"\r\n", at)
                if end < 0:
                    self._suspend(data, at, left, "too big bulk count string")
                    return
                length = _LENGTHS.get(data[at:end])
                if length is None:
                    length = self._length(data[at:end])
                stop = end + 2 + length
                if not self.authenticated and length > UNAUTHENTICATED_BYTES:
                    raise _Malformed("unauthenticated bulk length")
                if stop + 2 > size:
                    self._suspend(data, at, left, "", stop + 2 - at)
                    return
                args.append(data[end + 2 : stop])
                self._bytes += length
                if self._bytes > self._limit:
                    raise _Malformed("too big request")
                at = stop + 2
                left -= 1
            if args:
                if self._bytes > LARGE or len(args) > _MANY_WORDS:
                    requests.append(Long(args, gathered(self._bytes) + len(args) / _WORDS_PER_S))
                else:
                    requests.append(args)
                args = self._args = []
            if at == size:
                self._left = 0
                return
            self._bytes = 0
            if data[at] == 42:  # an asterisk
                end = data.find(b"\r\n", at)
                if end < 0:
                    self._suspend(data, at, 0, "too big mbulk count string")
                    return
                left = _COUNTS.get(data[at:end], 0) or self._count(data[at:end])
                if left > UNAUTHENTICATED_ITEMS and not self.authenticated:
                    raise _Malformed("unauthenticated multibulk length")
                at = end + 2
            else:
                end = data.find(b"\n", at)
                if end < 0:
                    self._suspend(data, at, 0, "too big inline request")
                    return
                if end - at > (LINE_BYTES if self.authenticated else UNAUTHENTICATED_BYTES):
                    raise _Malformed("too big inline request")
                args += split(data[at:end].removesuffix(b"\r"))
                at = end + 1

    def _suspend(self, data: bytes, at: int, left: int, too_big: str, wanted: int = 0) -> None:
        """Keep an incomplete request: an unfinished line up to its limit, a string up to its announced length."""
        rest = len(data) - at
        if too_big and rest > (LINE_BYTES if self.authenticated else UNAUTHENTICATED_BYTES):
            raise _Malformed(too_big)
        self._left = left
        self._needed = wanted or rest + 1
        self._buffer.add(data[at:])

    def _count(self, line: bytes) -> int:
        count = integer(line[1:])
        if count is None or count > _REDIS_LIMIT:
            raise _Malformed("invalid multibulk length", (count or 0) * _WORD_BYTES)
        if count > WORDS_AT_MOST:
            too_many = f"a request may have {WORDS_AT_MOST} arguments; split it"
            raise _Malformed(too_many, count * _WORD_BYTES)
        return count if count > 0 else 0  # empty and null arrays are skipped

    def _length(self, line: bytes) -> int:
        if line[:1] != b"$":
            raise _Malformed(f"expected '$', got '{line[:1].decode('latin-1') or ' '}'")
        length = integer(line[1:])
        if length is None or not 0 <= length <= self._limit:
            raise _Malformed("invalid bulk length", max(0, length or 0))
        return length


def integer(text: bytes) -> int | None:
    """A 64-bit integer in the only form that Redis accepts: no spaces, plus sign or leading zero."""
    digits = text[1:] if text[:1] == b"-" else text
    if not digits.isdigit() or len(digits) > 19 or (digits[:1] == b"0" and text != b"0"):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


def split(line: bytes) -> list[bytes]:
    """The arguments of an inline request. "…" knows escapes such as \\x00, '…' knows only \\', as in Redis."""
    if b'"' not in line and b"'" not in line:
        return line.split()
    words: list[bytes] = []
    at, size = 0, len(line)
    while True:
        while at < size and line[at : at + 1].isspace():
            at += 1
        if at == size:
            return words
        word = bytearray()
        while at < size and not line[at : at + 1].isspace():
            quote = line[at : at + 1]
            if quote in (b'"', b"'"):
                at = _quoted(line, at + 1, quote, word)
            else:
                word += quote
                at += 1
        words.append(bytes(word))


def _quoted(line: bytes, at: int, quote: bytes, word: bytearray) -> int:
    """Append the quoted text to `word` and return the position after the closing quote. The argument must end there."""
    while at < len(line):
        char = line[at : at + 1]
        if char == b"\\" and quote == b'"' and at + 1 < len(line):
            code = line[at + 2 : at + 4]
            if line[at + 1 : at + 2] == b"x" and len(code) == 2 and _HEX.issuperset(code):
                word.append(int(code, 16))
                at += 4
            else:
                word += _ESCAPES.get(line[at + 1 : at + 2], line[at + 1 : at + 2])
                at += 2
        elif char == b"\\" and line[at + 1 : at + 2] == b"'" and quote == b"'":
            word += b"'"
            at += 2
        elif char == quote:
            if line[at + 1 : at + 2].strip():
                break
            return at + 1
        else:
            word += char
            at += 1
    raise _Malformed("unbalanced quotes in request")
