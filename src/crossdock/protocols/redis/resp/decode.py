"""Bytes to requests: arrays of bulk strings, or inline lines. One pass, whatever the chunks, within bounds.

What breaks the grammar is told in Redis' own words and ends the stream: the fault comes as the last request, behind
those that were whole.
"""

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from crossdock.protocols.line_reader import Gathered
from crossdock.protocols.rejection_delay import LARGE, Long, gathered

#: A line of the grammar, an inline request among them (Redis' PROTO_INLINE_MAX_SIZE).
LINE_BYTES: Final = 64 * 1024

#: Words of one request: to read and carry it out is one step of the server. Redis itself takes 1,048,576.
WORDS_AT_MOST: Final = 32 * 1024
_REDIS_TAKES: Final = 1024 * 1024
_MANY_WORDS: Final = 1_000  #: as many take as long as a large one
_WORDS_A_S: Final = 1e6
_WORD_BYTES: Final = 16  #: that one takes, about
_AHEAD_AT_MOST: Final = 8 * 1024 * 1024

#: Of a peer that has not said who it is (MODEL 12).
STRANGER_BYTES: Final = 8 * 1024
STRANGER_ITEMS: Final = 10

#: The lengths that nearly all requests are made of, read by one look.
_COUNTS: Final = {b"*%d" % count: count for count in range(1, 64)}
_LENGTHS: Final = {b"$%d" % length: length for length in range(1_024)}

_head: Final = [b"$%d" % length for length in range(1_024)].__getitem__

#: What is worth a try as one whole request; any limit of a request is above it.
_SHORT: Final = 4_096

_ESCAPES: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")


@dataclass(frozen=True)
class Fault:
    """The peer broke the grammar for good."""

    text: str
    #: Bytes that were read for nothing, or about as many.
    size: int = field(default=0, compare=False)


RespRequest: TypeAlias = list[bytes] | Long[list[bytes]] | Fault


class _Broken(Exception):
    def __init__(self, text: str, ahead: int = 0) -> None:
        super().__init__(text)
        self.ahead = min(ahead, _AHEAD_AT_MOST)  #: bytes that the peer is about to send in vain, if it means it


class Requests:
    __slots__ = ("_args", "_bytes", "_kept", "_left", "_limit", "_wanted", "over", "trusted")

    def __init__(self, limit: int, trusted: bool = True) -> None:
        self._limit = limit  #: bytes of one request
        self.trusted = trusted  #: past AUTH; a stranger gets less room
        self.over = False  #: a fault was told; nothing is read any more
        self._kept = Gathered()
        self._wanted = 0  #: so many bytes must be kept before it is worth to look again; none is
        self._args: list[bytes] = []  #: of the request under way
        self._left = 0  #: how many it lacks
        self._bytes = 0  #: how many they have

    def receive(self, data: bytes) -> list[RespRequest]:
        if self.over:
            return []
        if self._wanted:
            self._kept.add(data)
            if self._kept.size < self._wanted:
                return []
            data = self._kept.take()
            self._wanted = 0
        elif self.trusted and not self._left and len(data) <= _SHORT:
            # The usual case at half the price: one whole request of short strings without line ends in them.
            parts = data.split(b"\r\n")
            if len(parts) == 2 * _COUNTS.get(parts[0], -1) + 2 and not parts[-1]:
                args = parts[2::2]
                try:
                    if list(map(_head, map(len, args))) == parts[1:-1:2]:
                        return [args]
                except IndexError:
                    pass  # a longer one
        requests: list[RespRequest] = []
        try:
            self._cut(data, requests)
        except _Broken as broken:
            self.over = True
            requests.append(Fault(f"Protocol error: {broken}", self._bytes + len(data) + broken.ahead))
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
                if not self.trusted and length > STRANGER_BYTES:
                    raise _Broken("unauthenticated bulk length")
                if stop + 2 > size:
                    self._suspend(data, at, left, "", stop + 2 - at)
                    return
                args.append(data[end + 2 : stop])
                self._bytes += length
                if self._bytes > self._limit:
                    raise _Broken("too big request")
                at = stop + 2
                left -= 1
            if args:
                if self._bytes > LARGE or len(args) > _MANY_WORDS:
                    requests.append(Long(args, gathered(self._bytes) + len(args) / _WORDS_A_S))
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
                if left > STRANGER_ITEMS and not self.trusted:
                    raise _Broken("unauthenticated multibulk length")
                at = end + 2
            else:
                end = data.find(b"\n", at)
                if end < 0:
                    self._suspend(data, at, 0, "too big inline request")
                    return
                if end - at > (LINE_BYTES if self.trusted else STRANGER_BYTES):
                    raise _Broken("too big inline request")
                args += split(data[at:end].removesuffix(b"\r"))
                at = end + 1

    def _suspend(self, data: bytes, at: int, left: int, too_big: str, wanted: int = 0) -> None:
        """Keep what is not whole yet. A line without an end is kept up to its bound, a string as far as it said."""
        rest = len(data) - at
        if too_big and rest > (LINE_BYTES if self.trusted else STRANGER_BYTES):
            raise _Broken(too_big)
        self._left = left
        self._wanted = wanted or rest + 1
        self._kept.add(data[at:])

    def _count(self, line: bytes) -> int:
        count = integer(line[1:])
        if count is None or count > _REDIS_TAKES:
            raise _Broken("invalid multibulk length", (count or 0) * _WORD_BYTES)
        if count > WORDS_AT_MOST:
            too_many = f"more than {WORDS_AT_MOST} words in one request, the limit; divide it"
            raise _Broken(too_many, count * _WORD_BYTES)
        return count if count > 0 else 0  # an empty request, or none at all, is passed over

    def _length(self, line: bytes) -> int:
        if line[:1] != b"$":
            raise _Broken(f"expected '$', got '{line[:1].decode('latin-1') or ' '}'")
        length = integer(line[1:])
        if length is None or not 0 <= length <= self._limit:
            raise _Broken("invalid bulk length", max(0, length or 0))
        return length


def integer(text: bytes) -> int | None:
    """A 64-bit integer in its one proper spelling, as Redis reads them: no blank, plus sign or leading zero."""
    digits = text[1:] if text[:1] == b"-" else text
    if not digits.isdigit() or len(digits) > 19 or (digits[:1] == b"0" and text != b"0"):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


def split(line: bytes) -> list[bytes]:
    """The words of an inline request; quotes as in Redis: "a\\x00b" with escapes, 'it\\'s' without others."""
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
    """Read up to the closing quote, behind which a word must end."""
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
    raise _Broken("unbalanced quotes in request")
