"""Clients of the Redis protocol: without a socket, with a plain socket, with redis-py, and with PHP's extension. Each
sends one command on a named connection and returns a plain value."""

import json
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

import pytest
import redis

from crossdock.protocols.redis.protocol import RedisProtocol
from crossdock.protocols.redis.resqu.service import Resqu
from tests.support.conversation import Peer
from tests.support.dispatcher import PlainDispatcher
from tests.support.patience import PATIENCE_S
from tests.support.resp_values import read

PHP: Final = Path(__file__).with_name("programs") / "speak.php"


class Refused(Exception):
    """The reply was an error."""


class Speaker(Protocol):
    def say(self, connection: str, *words: str) -> Any:
        """Send one command and return its reply. Raises Refused."""

    def close(self) -> None: ...


def request(words: tuple[str, ...]) -> bytes:
    parts = [word.encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


def plain(value: Any) -> Any:
    """The reply as a Python value. Strings are str; an error is raised."""
    if isinstance(value, tuple):
        kind, text = value
        if kind == "error":
            raise Refused(text.decode())
        return text.decode()
    if isinstance(value, bytes):
        return value.decode()
    return [plain(each) for each in value] if isinstance(value, list) else value


class Direct:
    """A connection without a socket, with a clock that the test sets."""

    def __init__(self, dispatcher: PlainDispatcher | None = None, protocol: RedisProtocol | None = None) -> None:
        resqu = Resqu()
        self.dispatcher = dispatcher or PlainDispatcher()
        self.protocol = protocol or RedisProtocol(libraries=(resqu.library,), views=resqu.views)
        self.peers: dict[str, Peer] = {}

    def peer(self, connection: str) -> Peer:
        if connection not in self.peers:
            self.peers[connection] = Peer(self.dispatcher, self.protocol)
        return self.peers[connection]

    def ask(self, connection: str, *words: str) -> None:
        """Send a command without waiting for the reply."""
        self.peer(connection).send(request(words))

    def hear(self, connection: str) -> Any:
        said = read(self.peers[connection].take())
        assert len(said) == 1, f"not one reply: {said}"
        return plain(said[0])

    def say(self, connection: str, *words: str) -> Any:
        self.ask(connection, *words)
        return self.hear(connection)

    def close(self) -> None:
        for peer in self.peers.values():
            peer.close()


class Plainly:
    """A plain socket. Commands are in lower case, as Resqu's client sends them without the extension."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._sockets: dict[str, tuple[socket.socket, Any]] = {}

    def say(self, connection: str, *words: str) -> Any:
        if connection not in self._sockets:
            made = socket.create_connection(("127.0.0.1", self._port), PATIENCE_S)
            self._sockets[connection] = made, made.makefile("rb")
        made, file = self._sockets[connection]
        made.sendall(request((words[0].lower(), *words[1:])))
        return plain(read(self._reply(file))[0])

    def _reply(self, file: Any) -> bytes:
        line: bytes = file.readline()
        assert line.endswith(b"\r\n"), f"the server closed the connection: {line!r}"
        if line[:1] == b"$" and line != b"$-1\r\n":
            line += file.read(int(line[1:]) + 2)
        elif line[:1] == b"*" and line != b"*-1\r\n":
            line += b"".join(self._reply(file) for _ in range(int(line[1:])))
        return line

    def close(self) -> None:
        for made, file in self._sockets.values():
            file.close()
            made.close()


class ByRedisPy:
    """redis-py, which converts OK and some numbers to booleans, as PHP does."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._clients: dict[str, Any] = {}

    def say(self, connection: str, *words: str) -> Any:
        if connection not in self._clients:
            self._clients[connection] = redis.Redis(
                port=self._port, single_connection_client=True, protocol=2, socket_timeout=PATIENCE_S
            )
        client = self._clients[connection]
        try:
            found = client.execute_command(*words)
        except redis.ResponseError as error:
            raise Refused(str(error)) from error
        return self._plain(found)

    def _plain(self, found: Any) -> Any:
        if isinstance(found, bytes):
            return found.decode()
        if isinstance(found, list | set):
            return [self._plain(each) for each in found]
        return found

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


class ByPhp:
    """PHP's extension, which returns true, false and text for OK, 1, 0 and null. `like` compares them."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def say(self, connection: str, *words: str) -> Any:
        if connection not in self._processes:
            command = ["php", str(PHP), "127.0.0.1", str(self._port)]
            self._processes[connection] = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        process = self._processes[connection]
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(words) + "\n")
        process.stdin.flush()
        said = process.stdout.readline()
        assert said, "PHP ended"
        found = json.loads(said)
        if isinstance(found, dict) and "error" in found:
            raise Refused(found["error"])
        return found

    def close(self) -> None:
        for process in self._processes.values():
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            process.wait(PATIENCE_S)
            process.stdout.close()


def has_php() -> bool:
    if shutil.which("php") is None:
        return False
    modules = subprocess.run(["php", "-m"], capture_output=True, text=True, check=True).stdout
    return "redis" in modules.split()


def need_php() -> None:
    if not has_php():
        pytest.skip("RESQU BY PHP'S REDIS EXTENSION WAS NOT TESTED: php-cli or php-redis is missing")


SPEAKERS: Final[dict[str, Callable[[int], Speaker]]] = {"socket": Plainly, "redis-py": ByRedisPy, "php": ByPhp}


def like(said: Any, wanted: Any) -> bool:
    """Whether a reply equals the recorded one. PHP converts OK, null and some numbers to booleans."""
    if isinstance(wanted, str) and wanted == "+OK":
        return said in ("OK", True)
    if isinstance(wanted, int):
        return bool(said == wanted)  # True is 1, False is 0
    if isinstance(wanted, list):
        return isinstance(said, list) and sorted(said) == sorted(wanted)
    if isinstance(wanted, str):
        return bool(said == wanted)
    return said is None or said is False
