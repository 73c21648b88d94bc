"""Checksums over every byte of the lake's files: segments and manifests carry their own.

A Parquet file has checksums of its pages, and none of their headers or of the footer, where a flipped bit changes a
column's type or the statistics by which readers skip rows. So the footer's key-value metadata holds two more:

    crossdock.sum = <of all bytes before the footer> <of the footer, with this second one as zeros>

The footer's is verified before Parquet parses it, whenever the lake is looked at; the other one takes a read of the
whole file. A manifest is a JSON object whose last member, `sum`, is that of all bytes before it.
"""

import os
import re
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple

SUM_KEY: Final = b"crossdock.sum"

_BYTES: Final = 16
_ZEROS: Final = b"0" * 2 * _BYTES

#: The value in a draft, until its file is complete.
BLANK: Final = _ZEROS + b" " + _ZEROS

#: Behind the footer: its length in 4 bytes, and the magic.
_TAIL: Final = 8
_MAGIC: Final = b"PAR1"

#: Key and value of the entry, with Thrift's field header and length between them.
_ENTRY: Final = re.compile(rb"crossdock\.sum.{1,4}?([0-9a-f]{32}) ([0-9a-f]{32})", re.DOTALL)

_SEALED: Final = re.compile(rb'(\{.*),"sum":"([0-9a-f]{32})"\}\n', re.DOTALL)

_CHUNK: Final = 1024 * 1024


class BadSum(Exception):
    """Bytes are not what they were when they were written; the text says which."""


class Footer(NamedTuple):
    size: int  #: of the file
    start: int  #: where the footer begins
    sum: bytes  #: of the bytes before it; nothing: the file carries no checksums


def seal_segment(path: Path) -> int:
    """Put the checksums of a complete file into its footer, and sync it. Returns its size."""
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        size, start, footer = _footer(fd)
        entry = _entry(footer)
        if entry is None or entry[1] + b" " + entry[2] != BLANK:
            raise RuntimeError(f"{path} has no place for its checksums")
        footer[entry.start(1) : entry.end(1)] = _of_data(fd, start)
        footer[entry.start(2) : entry.end(2)] = _of(footer)
        os.pwrite(fd, footer[entry.start(1) : entry.end(2)], start + entry.start(1))
        os.fsync(fd)
        return size
    finally:
        os.close(fd)


def read_footer(path: Path) -> Footer:
    """Raises BadSum if it is not the footer that was written, OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size, start, footer = _footer(fd)
    finally:
        os.close(fd)
    entry = _entry(footer)
    if entry is None:
        return Footer(size, start, b"")
    data, own = entry[1], entry[2]
    footer[entry.start(2) : entry.end(2)] = _ZEROS
    if _of(footer) != own:
        raise BadSum("the footer fails its checksum")
    return Footer(size, start, data)


def verify_segment(path: Path) -> bool:
    """Read the whole file and compare. False: it carries no checksums. Raises BadSum, OSError."""
    found = read_footer(path)
    if not found.sum:
        return False
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _of_data(fd, found.start) != found.sum:
            raise BadSum("the data fails its checksum")
    finally:
        os.close(fd)
    return True


def seal(body: bytes) -> bytes:
    """A JSON object with its checksum as the last member."""
    return body[:-1] + b',"sum":"%b"}\n' % _of(body[:-1])


def unseal(data: bytes) -> bytes | None:
    """The object without its checksum; None: it has none. Raises BadSum."""
    found = _SEALED.fullmatch(data)
    if found is None:
        return None
    if _of(found[1]) != found[2]:
        raise BadSum("it fails its checksum")
    return found[1] + b"}"


def _footer(fd: int) -> tuple[int, int, bytearray]:
    """Size of the file, where its footer begins, and all from there on."""
    size = os.fstat(fd).st_size
    tail = os.pread(fd, _TAIL, max(0, size - _TAIL))
    length = int.from_bytes(tail[:4], "little")
    start = size - _TAIL - length
    if tail[4:] != _MAGIC or start < len(_MAGIC):
        raise BadSum("the end of a Parquet file is not there")
    return size, start, bytearray(os.pread(fd, length + _TAIL, start))


def _entry(footer: bytearray) -> re.Match[bytes] | None:
    """The last one: before the metadata are statistics, with values of clients in them."""
    at = footer.rfind(SUM_KEY)
    return None if at < 0 else _ENTRY.match(bytes(footer), at)


def _of(data: bytes | bytearray) -> bytes:
    return blake2b(data, digest_size=_BYTES).hexdigest().encode()


def _of_data(fd: int, end: int) -> bytes:
    digest, at = blake2b(digest_size=_BYTES), 0
    while at < end and (chunk := os.pread(fd, min(_CHUNK, end - at), at)):
        digest.update(chunk)
        at += len(chunk)
    return digest.hexdigest().encode()
