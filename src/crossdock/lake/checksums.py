"""Checksums over every byte of the lake's files. Segments and small JSON files contain their own checksums.

Parquet has checksums for page data only. A flipped bit in a page header or in the footer can change a column's type or
the statistics that readers use to skip rows. So the footer's key-value metadata holds two more checksums:

    crossdock.sum = <of all bytes before the footer> <of the footer, computed with zeros in this place>

The footer's checksum can be verified before Parquet parses the footer. The other one needs a read of the whole file.
A sealed JSON object has `sum` as its last member, the checksum of all bytes before it.
"""

import os
import re
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple, Protocol

SUM_KEY: Final = b"crossdock.sum"

_BYTES: Final = 16
_ZEROS: Final = b"0" * 2 * _BYTES

#: The placeholder in a draft, until the file is complete.
BLANK: Final = _ZEROS + b" " + _ZEROS

#: A Parquet file ends with the footer's length in 4 bytes and the magic.
_TAIL: Final = 8
_MAGIC: Final = b"PAR1"

#: Key and value of the entry, with Thrift's field header and length between them.
_ENTRY: Final = re.compile(rb"crossdock\.sum.{1,4}?([0-9a-f]{32}) ([0-9a-f]{32})", re.DOTALL)

_SEALED: Final = re.compile(rb'(\{.*),"sum":"([0-9a-f]{32})"\}\n', re.DOTALL)

_CHUNK: Final = 1024 * 1024


class BadSum(Exception):
    """A checksum does not match; the text says which."""


class Readable(Protocol):
    """A file on a disk or in an object store, as pyarrow has it."""

    def size(self) -> int: ...

    def read_at(self, nbytes: int, offset: int, /) -> bytes: ...


class _File:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def read_at(self, nbytes: int, offset: int, /) -> bytes:
        return os.pread(self._fd, nbytes, offset)


class Footer(NamedTuple):
    size: int  #: bytes of the file
    start: int  #: where the footer begins
    sum: bytes  #: checksum of the bytes before it; empty if the file has none


def seal_segment(path: Path) -> int:
    """Write the checksums of a complete file into its footer, and sync it. Returns the file's size."""
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        file = _File(fd)
        size, start, footer = _footer(file)
        entry = _entry(footer)
        if entry is None or entry[1] + b" " + entry[2] != BLANK:
            raise RuntimeError(f"{path} has no placeholder for its checksums")
        footer[entry.start(1) : entry.end(1)] = _of_data(file, start)
        footer[entry.start(2) : entry.end(2)] = _of(footer)
        os.pwrite(fd, footer[entry.start(1) : entry.end(2)], start + entry.start(1))
        os.fsync(fd)
        return size
    finally:
        os.close(fd)


def read_footer(file: Readable) -> Footer:
    """Read the footer and verify its checksum. Raises BadSum, OSError."""
    size, start, footer = _footer(file)
    entry = _entry(footer)
    if entry is None:
        return Footer(size, start, b"")
    data, own = entry[1], entry[2]
    footer[entry.start(2) : entry.end(2)] = _ZEROS
    if _of(footer) != own:
        raise BadSum("the footer fails its checksum")
    return Footer(size, start, data)


def verify_segment(file: Readable) -> None:
    """Read the whole file and verify it. Raises BadSum, OSError."""
    found = read_footer(file)
    if not found.sum:
        raise BadSum("its checksums are missing")
    if _of_data(file, found.start) != found.sum:
        raise BadSum("the data fails its checksum")


def seal(body: bytes) -> bytes:
    """Add the checksum to a JSON object, as the last member."""
    return body[:-1] + b',"sum":"%b"}\n' % _of(body[:-1])


def unseal(data: bytes) -> bytes | None:
    """Return the object without its checksum; None if it has no checksum. Raises BadSum."""
    found = _SEALED.fullmatch(data)
    if found is None:
        return None
    if _of(found[1]) != found[2]:
        raise BadSum("it fails its checksum")
    return found[1] + b"}"


def _footer(file: Readable) -> tuple[int, int, bytearray]:
    """The file's size, the footer's offset, and the bytes from there to the end."""
    size = file.size()
    tail = file.read_at(_TAIL, max(0, size - _TAIL))
    length = int.from_bytes(tail[:4], "little")
    start = size - _TAIL - length
    if tail[4:] != _MAGIC or start < len(_MAGIC):
        raise BadSum("the end of the Parquet file is missing")
    return size, start, bytearray(file.read_at(length + _TAIL, start))


def _entry(footer: bytearray) -> re.Match[bytes] | None:
    """The last occurrence: statistics come before the metadata, and they can contain any value a client sent."""
    at = footer.rfind(SUM_KEY)
    return None if at < 0 else _ENTRY.match(bytes(footer), at)


def _of(data: bytes | bytearray) -> bytes:
    return blake2b(data, digest_size=_BYTES).hexdigest().encode()


def _of_data(file: Readable, end: int) -> bytes:
    digest, at = blake2b(digest_size=_BYTES), 0
    while at < end and (chunk := file.read_at(min(_CHUNK, end - at), at)):
        digest.update(chunk)
        at += len(chunk)
    return digest.hexdigest().encode()
