"""A blocking client of the admin protocol: one JSON object per line in each direction (admin.md)."""

import getpass
import os
import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from crossdock.client.base import Closes, Stream
from crossdock.client.errors import Broken, NoServer, Refused
from crossdock.protocols.admin.messages import CHANGING
from crossdock.protocols.admin.socket_path import reachable

#: A busy server answers in milliseconds. After this long it is stuck.
TIMEOUT_S: Final = 60.0
_PAGE: Final = 200


class AdminClient(Closes):
    def __init__(self, folder: Path, timeout_s: float = TIMEOUT_S) -> None:
        """Raises NoServer if no server runs on that data folder."""
        if not hasattr(socket, "AF_UNIX"):
            raise NoServer("servers do not run on this system; name one on another machine with --server")
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(timeout_s)
        try:
            with reachable(folder) as path:
                sock.connect(path)
        except PermissionError as error:
            sock.close()
            raise NoServer(
                f"the server on {folder} belongs to another user; run this command as that user or as root"
            ) from error
        except OSError as error:
            sock.close()
            raise NoServer(
                f"no server runs on {folder}; start one with crossdock up --data {folder}, "
                "or name the data folder of the running server with --data or --config"
            ) from error
        self._stream = Stream(sock)

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """Send one request. Members that are None are omitted. Raises Refused with the server's error."""
        return {name: _value(raw) for name, raw in self._ask(do, fields).items()}

    def _ask(self, do: str, fields: dict[str, Any]) -> dict[str, msgspec.Raw]:
        request = {"do": do} | {name: value for name, value in fields.items() if value is not None}
        if do in CHANGING:
            request.setdefault("by", _operator())
        answer = _members(self._exchange(msgspec.json.encode(request) + b"\n"))
        if "error" in answer:
            raise Refused(str(_value(answer["error"])))
        return answer

    def _exchange(self, line: bytes) -> bytes:
        """Send a request and return the reply."""
        self._stream.send(line)
        return self._stream.line()

    def job(self, ident: int | str) -> dict[str, Any]:
        """One job. `payload` and `custom` stay JSON texts, because a number in them may fit no type."""
        answer = self._ask("job", {"id": ident})
        found = {name: _value(raw) for name, raw in answer.items() if name != "job"}
        members = {} if _is_null(answer["job"]) else _members(answer["job"])
        named = [name for name in ("payload", "custom") if name in members and not _is_null(members[name])]
        texts = {name: members.pop(name) for name in named}
        shown = {name: _value(raw) for name, raw in members.items()} | texts
        return {"job": shown or None} | found

    def states(self, numbers: list[int]) -> list[str | None]:
        """The state of each of up to 1,000 jobs. None: the server does not have it."""
        found: list[str | None] = self.ask("states", numbers=numbers)["states"]
        return found

    def rows(self, what: str, **fields: Any) -> Iterator[dict[str, Any]]:
        """All rows of a list, page by page. `what` is the verb and the member that holds the rows."""
        after = None
        while True:
            page = self.ask(what, limit=_PAGE, after=after, **fields)
            yield from page[what]
            after = page["after"]
            if after is None:
                return

    def steps(self, do: str, **fields: Any) -> Iterator[dict[str, Any]]:
        """Repeat a request until it is complete. Each continues where the last one stopped, as of the same instant."""
        step: dict[str, Any] = {"after": None, "as_of": fields.pop("as_of", None)}
        while True:
            step = self.ask(do, after=step["after"], as_of=step["as_of"], **fields)
            yield step
            if step["after"] is None:
                return

    def close(self) -> None:
        self._stream.close()


@cache
def _operator() -> dict[str, str]:
    """The user that runs this program, for the server's audit trail."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # no variable names the user, and the system has no entry for its ID
        user = f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"
    return {"user": user[:255], "address": "local"}


def _is_null(text: msgspec.Raw) -> bool:
    return bytes(text) == b"null"


def _members(text: bytes | msgspec.Raw) -> dict[str, msgspec.Raw]:
    try:
        return msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError as error:
        raise Broken(f"invalid reply from the server: {error}") from error


def _value(text: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Broken(f"invalid reply from the server: {error}") from error
