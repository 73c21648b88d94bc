"""A connection to qless over the Redis protocol, without a socket."""

import json
from typing import Any

from crossdock.protocols.redis.protocol import RedisProtocol
from crossdock.protocols.redis.qless.service import Qless
from tests.support.conversation import Peer
from tests.support.dispatcher import BEGIN, PlainDispatcher

T = str(BEGIN.wall)


class QlessConnection:
    def __init__(self, **settings: Any) -> None:
        qless = Qless(**settings)
        self.dispatcher = PlainDispatcher()
        self.dispatcher.herald = qless.publish_events
        self.protocol = RedisProtocol(libraries=(qless.library,), views=(qless.view,))
        self.peer = Peer(self.dispatcher, self.protocol)

    def ask(self, *words: str | bytes, peer: Peer | None = None) -> bytes:
        """Send one request, by default from the usual peer, and return all output."""
        peer = peer or self.peer
        parts = [word.encode() if isinstance(word, str) else word for word in words]
        peer.said.clear()
        peer.send(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts))
        return bytes(peer.said)

    def call(self, *words: str) -> bytes:
        return self.ask("FCALL", "qless", "0", *words)

    def put(self, jid: str, *more: str, queue: str = "q") -> None:
        assert self.call("put", T, "w", queue, jid, "klass", "{}", "0", *more) == bulk(jid)

    def pop(self, count: int = 1, queue: str = "q", worker: str = "w") -> list[Any]:
        said = self.call("pop", T, queue, worker, str(count))
        jobs = json.loads(said.partition(b"\r\n")[2])
        return jobs or []

    def listener(self, *words: str) -> Peer:
        peer = Peer(self.dispatcher, self.protocol)
        self.ask(*words, peer=peer)
        peer.said.clear()
        return peer


def bulk(text: str) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text.encode()), text.encode())
