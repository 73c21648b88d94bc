"""A raw connection to the Masenko listener of a real server."""

import json
import socket
from typing import Any

from tests.support.patience import PATIENCE_S
from tests.support.server import Server


class Raw:
    def __init__(self, server: Server) -> None:
        self._socket = socket.create_connection(("127.0.0.1", server.ports["masenko"]), PATIENCE_S)
        self._file = self._socket.makefile("rb")

    def send(self, *lines: str) -> None:
        self._socket.sendall("".join(f"{line}\n" for line in lines).encode())

    def line(self) -> str:
        """The next line; empty if the server has closed the connection."""
        return self._file.readline().decode()

    def ask(self, *lines: str) -> str:
        self.send(*lines)
        return self.line()

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def ok_body(line: str) -> dict[str, Any]:
    """The JSON body of an OK reply."""
    assert line.startswith("OK ") and line.endswith("\n"), line
    found: dict[str, Any] = json.loads(line[3:])
    return found
