"""HELLO (page 2): who comes, and whether the password is right."""

from typing import TYPE_CHECKING, Final

import msgspec

from crossdock.model.clock import Now
from crossdock.wire.answer import Bye
from crossdock.wire.faktory.job import NAME_BYTES
from crossdock.wire.faktory.messages import HelloBody, error
from crossdock.wire.faktory.workers import Worker

if TYPE_CHECKING:
    from crossdock.wire.faktory.door import Challenge, FaktoryDoor

SILENT: Final = Bye(b"")
_decode = msgspec.json.Decoder(HelloBody).decode


def read_hello(door: "FaktoryDoor", challenge: "Challenge | None", line: bytes) -> HelloBody | Bye:
    verb, _, body = line.partition(b" ")
    if verb != b"HELLO" or not body.startswith(b"{"):
        return SILENT
    try:
        hello = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return SILENT
    if challenge is not None and not door.admits(challenge, hello.v or 0, hello.pwdhash or ""):
        return Bye(error("Invalid password"))
    if hello.wid and len(hello.wid.encode()) > NAME_BYTES:  # it is kept with every lease
        return Bye(error(f"wid must not be longer than {NAME_BYTES} bytes"))
    return hello


def newcomer(hello: HelloBody, now: Now) -> Worker:
    labels = tuple(hello.labels or ())
    return Worker(hello.wid or "", hello.hostname or "", hello.pid or 0, labels, now.wall, now.steady)
