"""Bytes in, commands out: lines that end in CR LF, some followed by a block of announced length (page section 1).

A command that is refused before its block is read leaves the block in the stream, where it is read as the next
command: that is how upstream behaves, and what its clients see (1.3).
"""

from typing import Final, NamedTuple, TypeAlias

from crossdock.protocols.rejection_delay import LARGE, Long, received
from crossdock.protocols.workq import messages
from crossdock.protocols.workq.words import NO_FLAGS, Flags, apart, signed

BUDGET: Final = 1_058_576  #: bytes of one command, its block and both line ends included
BLOCK_BYTES: Final = 1_048_576

#: The words of a line, the first of them the command's name; its flags; its block. Bytes: the reply to a refused one.
_Read: TypeAlias = tuple[list[bytes], Flags, bytes] | bytes

_ANY: Final = BUDGET

#: A line with more blanks is refused without a look at its words: `lease` takes a thousand names.
_BLANKS_AT_MOST: Final = 5_000

#: To read so many bytes of a line takes a second.
_LINES_A_S: Final = 1e8


#: None: the peer broke the grammar for good, and nothing follows.
Request: TypeAlias = _Read | Long[_Read] | None


class _Shape(NamedTuple):
    """How many words a command has, its name included; what is said of a wrong size, if a block follows."""

    least: int
    most: int
    wrong_size: bytes = b""


_SHAPES: Final = {
    b"add": _Shape(6, 6, messages.INVALID_PAYLOAD_SIZE),
    b"schedule": _Shape(7, 7, messages.INVALID_PAYLOAD_SIZE),
    b"run": _Shape(6, 6, messages.INVALID_PAYLOAD_SIZE),
    b"complete": _Shape(3, 3, messages.INVALID_PAYLOAD_SIZE),
    b"fail": _Shape(3, 3, messages.INVALID_RESULT_SIZE),
    b"result": _Shape(3, 3),
    b"lease": _Shape(3, _ANY),
    b"delete": _Shape(2, 2),
    b"inspect": _Shape(2, _ANY),
}


class _Head(NamedTuple):
    """A line that a block follows."""

    words: list[bytes]
    flags: Flags
    size: int
    wrong_size: bytes


class Codec:
    """Goes over each byte once, whatever the chunks."""

    __slots__ = ("_broken", "_head", "_kept", "_need")

    def __init__(self) -> None:
        self._kept = bytearray()  #: the beginning of a line or, behind a `_head`, of its block
        self._head: _Head | None = None
        self._need = 0  #: bytes of the block and its line end
        self._broken = False

    def receive(self, data: bytes) -> list[Request]:
        found: list[Request] = []
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

    def _break(self, found: list[Request]) -> list[Request]:
        """Nothing is said to it (section 1), but what came before is answered."""
        self._broken = True
        self._kept.clear()
        found.append(None)
        return found


def _line(line: bytes) -> _Read | _Head:
    if len(line) > _BLANKS_AT_MOST and line.count(b" ") > _BLANKS_AT_MOST:
        return messages.INVALID_ARGS if line.partition(b" ")[0] in _SHAPES else messages.UNKNOWN_COMMAND
    words = line.split(b" ")
    shape = _SHAPES.get(words[0])
    if b"" in words:
        words = [word for word in words if word]
    flags = NO_FLAGS
    if b"=" in line:
        try:
            words, flags = apart(words)
        except messages.Invalid as wrong:
            return wrong.reply
    if shape is None:
        return messages.UNKNOWN_COMMAND
    least, most, wrong_size = shape
    if not least <= len(words) <= most:
        return messages.INVALID_ARGS
    if not wrong_size:
        return words, flags, b""
    size = signed(words[-1])
    return _Head(words, flags, size, wrong_size) if size is not None and 0 <= size <= BLOCK_BYTES else wrong_size
