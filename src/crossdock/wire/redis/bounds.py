"""Bounds on what a small request could make large: patterns, replies that repeat a value, published texts."""

from collections.abc import Iterable
from typing import Final

from crossdock.wire.glob import OPEN_TOO_LONG, Glob, is_simple
from crossdock.wire.redis.values import Error

#: Of a pattern that is texts and stars alone, and of one that has to be compiled: a thousand may come in one request.
PATTERN_BYTES: Final = 4_096
COMPILED_BYTES: Final = 255

#: Of a channel, or of a watched key: a connection has a list of them.
NAME_BYTES: Final = 4_096

#: Of a job's class. PHP names an anonymous class by the path of its file, which has up to 4,096 bytes.
KIND_BYTES: Final = 4_096 + 256

#: Of a reply to one command, or to one EXEC: a value may be asked for many times over.
REPLY_BYTES: Final = 64 * 1024 * 1024

#: It is kept for each hearer until its socket takes it.
TEXT_BYTES: Final = 1024 * 1024

TOO_LARGE: Final = Error(f"ERR the reply would be larger than {REPLY_BYTES >> 20} MiB; ask for less at a time")


def pattern(text: bytes) -> Glob:
    if len(text) > PATTERN_BYTES:
        raise Error(f"ERR a pattern may have {PATTERN_BYTES} bytes")
    if len(text) > COMPILED_BYTES and not is_simple(text):
        raise Error(f"ERR a pattern with ?, [ or \\ in it may have {COMPILED_BYTES} bytes")
    glob = Glob(text)
    if glob.too_slow:
        raise Error(f"ERR {OPEN_TOO_LONG}")
    return glob


def refuse_long(names: Iterable[bytes], what: str) -> None:
    if any(len(name) > NAME_BYTES for name in names):
        raise Error(f"ERR {what} may have {NAME_BYTES} bytes")


def refuse_large(values: Iterable[bytes | None]) -> None:
    if sum(len(value) for value in values if value is not None) > REPLY_BYTES:
        raise TOO_LARGE
