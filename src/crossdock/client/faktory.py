"""A blocking client of the Faktory door, as much of it as the command line needs: a handshake and PUSH."""

import socket
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from crossdock.client.errors import Broken, NoServer, Refused
from crossdock.client.stream import Stream
from crossdock.wire.faktory.door import digest

TIMEOUT_S: Final = 30.0


class _Greeting(msgspec.Struct):
    v: int
    s: str = ""
    i: int = 1


class FaktoryClient:
    def __init__(self, host: str, port: int, path: str = "", password: str = "", timeout_s: float = TIMEOUT_S) -> None:
        """Connect, by a UNIX socket if there is a path, and say who we are. Raises NoServer or Refused."""
        where = f"unix:{path}" if path else f"{host}:{port}"
        try:
            if path:
                sock = socket.socket(socket.AF_UNIX)
                sock.settimeout(timeout_s)
                sock.connect(path)
            else:
                sock = socket.create_connection((host, port), timeout_s)
        except OSError as error:
            raise NoServer(f"no Faktory door answers at {where}: {error.strerror or error}") from error
        self._stream = Stream(sock)
        try:
            self._hello(where, password)
        except BaseException:
            self.close()
            raise

    def _hello(self, where: str, password: str) -> None:
        line = self._stream.line()
        try:
            if not line.startswith(b"+HI "):
                raise Broken(f"{where} does not speak Faktory's protocol")
            greeting = msgspec.json.decode(line[4:], type=_Greeting)
        except msgspec.DecodeError as error:
            raise Broken(f"{where} does not speak Faktory's protocol") from error
        hello: dict[str, Any] = {"v": 2}
        if greeting.s:
            if not password:
                raise Refused(f"{where} wants a password; set faktory.password or CROSSDOCK_FAKTORY_PASSWORD")
            hello["pwdhash"] = digest(password.encode(), greeting.s, greeting.i)
        self._call(b"HELLO", hello)

    def push(self, job: dict[str, Any]) -> None:
        """Returns once the server has it on disk. Raises Refused with the server's words."""
        self._call(b"PUSH", job)

    def _call(self, verb: bytes, body: dict[str, Any]) -> None:
        self._stream.send(verb + b" " + msgspec.json.encode(body) + b"\r\n")
        line = self._stream.line()
        if line.startswith(b"-"):
            raise Refused(line[1:].removeprefix(b"ERR ").decode("utf-8", "replace"))
        if line != b"+OK":
            raise Broken(f"an unexpected answer to {verb.decode()}: {line[:80]!r}")

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
