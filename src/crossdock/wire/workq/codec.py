"""Bytes in, commands out: lines that end in CR LF, some followed by a block of announced length (page section 1).

A command that is refused before its block is read leaves the block in the stream, where it is read as the next
command: that is how upstream behaves, and what its clients see (1.3).
"""

from typing import Final, NamedTuple

from crossdock.wire.workq import messages
from crossdock.wire.workq.tokens import NO_FLAGS, Flags, apart, signed

BUDGET: Final = 1_058_576  #: bytes of one command, its block and both line ends included
BLOCK_BYTES: Final = 1_048_576

#: The words of the line, the first of them the command's name; its flags; its block. Bytes: the reply to a refused one.
#: None: the peer broke the grammar for good, and nothing follows.
Request = tuple[list[bytes], Flags, bytes] | bytes | None

_ANY: Final = BUDGET


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
    """A line whose block has not arrived yet."""

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
        kept = self._kept
        if self._broken:
            return []
        if kept or self._need:
            kept += data
            if self._need > len(kept):
                return []
            if not self._need and b"\n" not in data:
                if len(kept) > BUDGET:
                    return self._break([])
                return []
            data = bytes(kept)
            kept.clear()
        found: list[Request] = []
        at, length = 0, len(data)
        if self._head is not None:
            at = self._block(data, 0, self._head, found)
            self._head, self._need = None, 0
        while at < length:
            end = data.find(b"\n", at)
            if end < 0:
                if length - at > BUDGET:
                    return self._break(found)
                kept += data[at:]
                break
            if end == at or data[end - 1] != 0x0D or end - at >= BUDGET:
                return self._break(found)
            head = self._line(data[at : end - 1], found)
            if head is None:
                at = end + 1
            elif end + 3 - at + head.size > BUDGET:
                return self._break(found)
            elif end + 3 + head.size > length:
                self._head, self._need = head, head.size + 2
                kept += data[end + 1 :]
                break
            else:
                at = self._block(data, end + 1, head, found)
        return found

    def _break(self, found: list[Request]) -> list[Request]:
        """Nothing is said to it (section 1), but what came before is answered."""
        self._broken = True
        self._kept.clear()
        found.append(None)
        return found

    @staticmethod
    def _line(line: bytes, found: list[Request]) -> _Head | None:
        """Read a line. A command that a block follows is given back, the others are found."""
        words = line.split(b" ")
        shape = _SHAPES.get(words[0])
        if b"" in words:
            words = [word for word in words if word]
        flags = NO_FLAGS
        if b"=" in line:
            try:
                words, flags = apart(words)
            except messages.Invalid as wrong:
                found.append(wrong.reply)
                return None
        if shape is None:
            found.append(messages.UNKNOWN_COMMAND)
        elif not shape.least <= len(words) <= shape.most:
            found.append(messages.INVALID_ARGS)
        elif not shape.wrong_size:
            found.append((words, flags, b""))
        else:
            size = signed(words[-1])
            if size is not None and 0 <= size <= BLOCK_BYTES:
                return _Head(words, flags, size, shape.wrong_size)
            found.append(shape.wrong_size)
        return None

    @staticmethod
    def _block(data: bytes, at: int, head: _Head, found: list[Request]) -> int:
        """The block that begins at `at`, all of it; where the next command begins."""
        end = at + head.size
        if data[end : end + 2] == b"\r\n":
            found.append((head.words, head.flags, data[at:end]))
        else:
            found.append(head.wrong_size)
        return end + 2
