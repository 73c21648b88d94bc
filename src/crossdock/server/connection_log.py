"""Log lines about one connection. Arguments of commands are never logged: they hold payloads and passwords."""

import logging
import re
from collections.abc import Callable
from typing import Any, Final

from crossdock import logs
from crossdock.model.errors import HalfDone
from crossdock.protocols.base import Answer, Close
from crossdock.protocols.rejection_delay import Long

log = logging.getLogger("crossdock")

#: A name of a command. Anything else is input that no command has.
_NAME: Final = re.compile(rb"[A-Za-z][A-Za-z0-9._-]{0,31}")
_VERB: Final = re.compile(rb'"do"\s*:\s*"([a-z_-]{1,32})"')
_SCRIPTS: Final = frozenset({b"eval", b"evalsha", b"fcall"})
_WORD_BYTES: Final = 64

Handle = Callable[[Any], Answer]


class ConnectionLog:
    __slots__ = ("_number", "_peer_name", "_protocol")

    def __init__(self, number: int, protocol: str, peer_name: Callable[[], str]) -> None:
        self._number = number
        self._protocol = protocol
        self._peer_name = peer_name

    def fields(self) -> dict[str, Any]:
        return {"connection": self._number, "protocol": self._protocol, "peer": self._peer_name()}

    @staticmethod
    def is_verbose() -> bool:
        return log.isEnabledFor(logging.DEBUG)

    def connected(self) -> None:
        if self.is_verbose():
            logs.event(log, logging.DEBUG, "connected", "a client connected", **self.fields())

    def report(self, event: str, text: str) -> None:
        """Log an event that the peer caused. Peers can cause any number of them."""
        level = logging.INFO if event == "unknown-command" else logging.WARNING
        logs.limited_event(log, level, event, f"{self._protocol}: {text}", **self.fields())

    def request_failed(self, error: Exception) -> Close:
        """An exception in a session is a defect of the server. It closes the connection of the request, and no other:
        a push whose wake-up runs this request is not affected."""
        if not isinstance(error, HalfDone):  # that stops the server, which reports it
            text = f"a {self._protocol} request failed; its connection is closed"
            logs.limited_event(log, logging.ERROR, "request-failed", text, error=error, **self.fields())
        return Close(b"")

    def each_command(self, handle: Handle) -> Handle:
        """`handle`, with a line for each command."""

        def handle_logged(request: Any) -> Answer:
            name = command_name(request)
            logs.event(log, logging.DEBUG, "command", f"command {name}", command=name, **self.fields())
            return handle(request)

        return handle_logged


def command_name(request: Any) -> str:
    """The name of a request as any session receives it from its parser."""
    if isinstance(request, Long):
        return command_name(request.request)
    if isinstance(request, bytes):
        if request.startswith(b"{"):
            found = _VERB.search(request[:4_096])
            return found[1].decode() if found else "unknown"
        return _checked(request[:_WORD_BYTES].split(b" ", 1)[0])
    if isinstance(request, list | tuple) and request:
        words = request if isinstance(request, list) else request[0]
        if isinstance(words, list | tuple) and words and isinstance(words[0], bytes):
            return _with_function(words)
    return "unknown"


def _with_function(words: Any) -> str:
    """The function that a script without keys runs is its first argument: `fcall put` of qless."""
    name = _checked(words[0])
    if words[0].lower() in _SCRIPTS and len(words) > 3 and words[2] == b"0" and _NAME.fullmatch(words[3]):
        return f"{name} {words[3].decode()}"
    return name


def _checked(word: bytes) -> str:
    return word.decode() if _NAME.fullmatch(word) else "unknown"
