"""A connection to the Faktory protocol that announced its extensions, without a socket."""

import json
from typing import Any

from crossdock.protocols.faktory.protocol import FaktoryProtocol
from tests.support.conversation import ClockedFaktory, Conversation
from tests.support.dispatcher import PlainDispatcher
from tests.support.resp import body

OK = b"+OK\r\n"


class ExtendedPeer(Conversation):
    welcome: Any  #: the reply to HELLO

    def call(self, verb: str, request: Any = None) -> Any:
        """Send a request with a JSON body. Returns the decoded reply, the text of an error, or None while the request
        waits.
        """
        return read(self.ask(verb if request is None else f"{verb} {json.dumps(request)}"))

    def pending(self) -> Any:
        """The reply to a request that waited, None if it still waits."""
        return read(self.take())

    def push(self, jid: str, **members: Any) -> Any:
        return self.call("PUSH", {"jid": jid, "jobtype": "t", "args": [1]} | members)

    def fetch(self, count: int = 1, **members: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call(
            "FETCHB", {"queues": ["default"], "count": count, "wait_s": 0} | members
        )
        return found

    def result(self, jid: str, wait_s: float = 0) -> Any:
        return self.call("RESULT", {"jid": jid, "wait_s": wait_s})


def read(reply: bytes) -> Any:
    if not reply:
        return None
    return json.loads(body(reply)) if reply.startswith(b"$") else reply.decode().rstrip()


def extended(dispatcher: PlainDispatcher, protocol: FaktoryProtocol | None = None, wid: str = "") -> ExtendedPeer:
    peer = ExtendedPeer(dispatcher, protocol or ClockedFaktory(dispatcher))
    peer.take()
    peer.welcome = peer.call("HELLO", {"v": 2, "extensions": 1} | ({"wid": wid} if wid else {}))
    return peer
