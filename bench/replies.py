"""Checks replies. An incomplete or wrong reply raises `Unexpected`, and the bench reports no figure."""

from collections.abc import Callable


class Unexpected(Exception):
    """The server sent a wrong reply. The message shows it."""


#: True: these bytes are exactly one correct reply. False: they may become one when more arrive.
Whole = Callable[[bytes], bool]


def wrong(data: bytes) -> Unexpected:
    return Unexpected(f"unexpected reply {data[:160]!r}")


def exactly(reply: bytes) -> Whole:
    def whole(data: bytes) -> bool:
        if data == reply:
            return True
        if reply.startswith(data):
            return False
        raise wrong(data)

    return whole


def a_bulk(data: bytes) -> bool:
    """`$<n>`, n bytes, and nothing more. `$-1` (no job) is wrong, because the load fetches only jobs that exist."""
    if data[0] != 0x24 or data[1:2] == b"-":
        raise wrong(data)
    end = data.find(b"\r\n")
    if end < 0:
        return False
    missing = end + 4 + int(data[1:end]) - len(data)
    if missing < 0 or (missing == 0 and data[-2:] != b"\r\n"):
        raise wrong(data)
    return missing == 0


def inserted(data: bytes) -> bool:
    """beanstalkd's reply to a put: `INSERTED <id>`."""
    if data[-2:] == b"\r\n":
        if data[:9] == b"INSERTED " and data[9:-2].isdigit():
            return True
        raise wrong(data)
    if not data.startswith(b"INSERTED "[: len(data)]):
        raise wrong(data)
    return False
