"""The address of a server under load, and the handshake of a connection."""

import hashlib
import socket
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from bench.replies import Unexpected

_HELLO_S = 30.0


class Target(msgspec.Struct, frozen=True):
    protocol: str  #: faktory, beanstalkd, or one of bench/protocols
    host: str
    port: int
    password: str = ""
    call: str = "FCALL"  #: of a Redis endpoint: how its script is called
    script: str = "qless"  #: and by what name


#: Schemes of addresses of other servers, with the load and the default port.
_SCHEMES: Final = {"faktory": ("faktory", 7419), "redis": ("qless", 6379)}


class _Greeting(msgspec.Struct):
    v: int
    i: int = 1
    s: str = ""


def parse(url: str) -> Target:
    """`faktory://[:password@]host[:port]`, or `redis://…` alike. Raises ValueError."""
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES or not parts.hostname or parts.path not in ("", "/"):
        raise ValueError(
            f"{url} is not of the form faktory://[:password@]host[:port] or redis://[:password@]host[:port]"
        )
    protocol, port = _SCHEMES[parts.scheme]
    return Target(protocol, parts.hostname, parts.port or port, unquote(parts.password or ""))


def connect(target: Target) -> socket.socket:
    """A connection that may send its first command. Raises Unexpected, or OSError if no server listens."""
    connection = socket.create_connection((target.host, target.port), _HELLO_S)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if target.protocol == "faktory":
            _shake_hands(connection, target.password)
        elif target.protocol == "qless" and target.password:
            _authenticate(connection, target.password.encode())
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


def _authenticate(connection: socket.socket, password: bytes) -> None:
    connection.sendall(b"*2\r\n$4\r\nAUTH\r\n$%d\r\n%b\r\n" % (len(password), password))
    line = read_line(connection)
    if line != b"+OK":
        raise Unexpected(f"unexpected answer to AUTH: {line!r}")


def read_line(connection: socket.socket) -> bytes:
    """Read one line byte by byte, so that the data after it stays in the socket."""
    line = b""
    while not line.endswith(b"\r\n"):
        byte = connection.recv(1)
        if not byte:
            raise Unexpected(f"the server closed the connection after {line!r}")
        line += byte
    return line[:-2]
