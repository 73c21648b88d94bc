"""Where a load goes, and how a connection there begins."""

import hashlib
import socket
from urllib.parse import unquote, urlsplit

import msgspec

from bench.replies import Unexpected

_HELLO_S = 30.0


class Target(msgspec.Struct, frozen=True):
    door: str  #: faktory, beanstalkd, or one of bench/doors
    host: str
    port: int
    password: str = ""


class _Greeting(msgspec.Struct):
    v: int
    i: int = 1
    s: str = ""


def parse(url: str) -> Target:
    """`faktory://[:password@]host[:port]`. Raises ValueError."""
    parts = urlsplit(url)
    if parts.scheme != "faktory" or not parts.hostname or parts.path not in ("", "/"):
        raise ValueError(f"{url} is not of the form faktory://[:password@]host[:port]")
    return Target("faktory", parts.hostname, parts.port or 7419, unquote(parts.password or ""))


def connect(target: Target) -> socket.socket:
    """A connection that may send its first command. Raises Unexpected, or OSError while nobody listens."""
    connection = socket.create_connection((target.host, target.port), _HELLO_S)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if target.door == "faktory":
            _shake_hands(connection, target.password)
    except BaseException:
        connection.close()
        raise
    return connection


def _shake_hands(connection: socket.socket, password: str) -> None:
    line = read_line(connection)
    if not line.startswith(b"+HI "):
        raise Unexpected(f"unexpected greeting {line!r}")
    greeting = msgspec.json.decode(line[4:], type=_Greeting)
    hello: dict[str, object] = {"v": 2}
    if greeting.s:
        digest = (password + greeting.s).encode()
        for _ in range(greeting.i):
            digest = hashlib.sha256(digest).digest()
        hello["pwdhash"] = digest.hex()
    connection.sendall(b"HELLO " + msgspec.json.encode(hello) + b"\r\n")
    line = read_line(connection)
    if line != b"+OK":
        raise Unexpected(f"unexpected answer to HELLO: {line!r}")


def read_line(connection: socket.socket) -> bytes:
    """One line, byte by byte: what follows it stays in the socket."""
    line = b""
    while not line.endswith(b"\r\n"):
        byte = connection.recv(1)
        if not byte:
            raise Unexpected(f"the server closed the connection after {line!r}")
        line += byte
    return line[:-2]
