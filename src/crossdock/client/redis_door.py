"""What clients of Crossdock's own functions on the Redis door share: where it is, how to reach it, how to call one."""

from typing import Final, NamedTuple

from crossdock.client.errors import Refused
from crossdock.client.stream import Stream, connect
from crossdock.protocols.redis.resp.encode import encode

TIMEOUT_S: Final = 60.0


class Where(NamedTuple):
    """A Redis door."""

    host: str
    port: int
    path: str = ""
    password: str = ""

    def __str__(self) -> str:
        return f"unix:{self.path}" if self.path else f"{self.host}:{self.port}"


def reach(where: Where) -> Stream:
    """A connection that has said the password. Raises NoServer, Broken or Refused."""
    stream = connect("Redis", where.host, where.port, where.path, TIMEOUT_S)
    try:
        if where.password:
            stream.send(encode([b"AUTH", where.password.encode()], False))
            if (line := stream.line()) != b"+OK":
                raise refusal(line)
    except BaseException:
        stream.close()
        raise
    return stream


def function(name: bytes, *args: bytes) -> bytes:
    return encode([b"FCALL", name, b"0", *args], False)


def refusal(line: bytes) -> Refused:
    code, _, text = line[1:].decode("utf-8", "replace").partition(" ")
    if code == "NOAUTH":
        return Refused("the Redis door wants a password; give redis.password, or option password")
    return Refused(text if code in ("ERR", "LIMIT") else f"{code} {text}")
