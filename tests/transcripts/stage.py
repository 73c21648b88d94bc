"""Plays a transcript: feeds its bytes to sessions and compares the replies."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from crossdock.protocols.base import WireProtocol as AnyProtocol
from crossdock.protocols.faktory.protocol import Challenge
from crossdock.protocols.masenko.protocol import MasenkoProtocol
from crossdock.protocols.redis.protocol import RedisProtocol
from crossdock.protocols.redis.resqu.service import Resqu
from crossdock.protocols.workq.protocol import WorkqProtocol
from tests.support.conversation import ClockedFaktory, Peer
from tests.support.dispatcher import PlainDispatcher
from tests.support.known_ids import known_ids
from tests.support.masenko_peer import MasenkoPeer
from tests.support.redis_parts import ECHOES, MIRROR
from tests.transcripts.script import Close, Expect, NotHandled, Send, Set, Step

#: Cuts the consecutive bytes of one client into chunks.
Cut = Callable[[bytes], Iterator[bytes]]


#: The settings of each protocol.
_SETTINGS = {
    "faktory": ("password", "allow_legacy_hash", "may_flush", "line_bytes"),
    "workq": ("lease_ttr",),
    "masenko": ("heartbeat_s", "line_bytes"),
    "redis": ("password", "may_flush", "request_bytes", "keys_bytes", "shared_databases"),
}


class Stage:
    """`protocol` is the protocol of connections without a `via`."""

    def __init__(self, cut: Cut, protocol: str) -> None:
        self._cut = cut
        self._usual = protocol
        self._settings: dict[str, Any] = {}
        self._challenge: Challenge | None = None
        self._dispatcher = PlainDispatcher()
        self._protocols: dict[str, AnyProtocol] = {}
        self._via: dict[str, str] = {}  #: connections that use another protocol
        self._peers: dict[str, Peer] = {}
        self._unsent: Send | None = None  #: bytes of one client, gathered until the next step of another kind
        self._expected: list[Expect] = []

    def play(self, steps: list[Step]) -> None:
        with known_ids():
            self._play(steps)

    def _play(self, steps: list[Step]) -> None:
        for step in steps:
            match step:
                case Expect():
                    self._expected.append(step)
                case Send():
                    self._gather(step)
                case NotHandled(seconds):
                    self._settle()
                    self._dispatcher.advance(seconds)
                case Close(peer):
                    self._settle()
                    self._peers.pop(peer).close()
                case Set(words):
                    self._settle()
                    self._set(*words)
        self._settle()

    def _gather(self, send: Send) -> None:
        before = self._unsent
        if before is None or before.peer != send.peer:
            self._settle()
            self._unsent = send
        else:
            self._unsent = Send(send.peer, before.data + send.data)

    def _peer(self, name: str) -> Peer:
        peer = self._peers.get(name)
        if peer is None:
            protocol = self._protocol(self._via.get(name, self._usual))
            peer = (
                MasenkoPeer(self._dispatcher, protocol)
                if isinstance(protocol, MasenkoProtocol)
                else Peer(self._dispatcher, protocol)
            )
            self._peers[name] = peer
        return peer

    def _protocol(self, name: str) -> AnyProtocol:
        if name not in self._protocols:
            settings = {key: value for key, value in self._settings.items() if key in _SETTINGS[name]}
            if name == "workq":
                self._protocols[name] = WorkqProtocol(**settings)
            elif name == "masenko":
                self._protocols[name] = MasenkoProtocol(**settings)
            elif name == "redis":
                resqu = Resqu()
                self._protocols[name] = RedisProtocol(
                    **settings, libraries=(ECHOES, resqu.library), views=(MIRROR, *resqu.views)
                )
            else:
                self._protocols[name] = ClockedFaktory(self._dispatcher, self._challenge, **settings)
        return self._protocols[name]

    def _settle(self) -> None:
        """Send the gathered bytes. Afterwards all expected replies, and no others, must have been sent."""
        unsent, self._unsent = self._unsent, None
        if unsent is not None:
            peer = self._peer(unsent.peer)
            for chunk in self._cut(unsent.data):
                peer.send(chunk)
        expected, self._expected = self._expected, []
        for each in expected:
            self._meet(self._peer(each.peer), each)
        for name, peer in self._peers.items():
            assert not peer.said, f"connection {name} also received {bytes(peer.said)!r}"
        closed = {each.peer for each in expected if each.how == "!"}
        for name in [name for name, peer in self._peers.items() if peer.is_closed]:
            assert name in closed, f"connection {name} was closed"
            del self._peers[name]

    @staticmethod
    def _meet(peer: Peer, expect: Expect) -> None:
        said, text = bytes(peer.said), expect.text
        if expect.how == "!":
            assert peer.is_closed, "the connection is still open"
            return
        head, end, rest = said.partition(peer.end)
        assert end, f"expected {text!r}, received {said!r}"
        length = len(head) + len(end)
        if expect.how in ("$", "$~"):
            assert re.fullmatch(rb"\$\d+", head), f"expected a bulk {text!r}, received {said!r}"
            size = int(head[1:])
            head = rest[:size]
            assert rest[size : size + 2] == b"\r\n", f"{size} is not the length of {rest!r}"
            length += size + 2
        if expect.how in ("~", "$~"):
            assert re.fullmatch(text, head, re.DOTALL), f"{head!r} does not match {text!r}"
        else:
            assert head == text, f"expected {text!r}, received {head!r}"
        del peer.said[:length]

    def _set(self, what: str, *values: str) -> None:
        match what:
            case "password":
                self._settings["password"] = values[0]
            case "challenge":
                self._challenge = Challenge(int(values[0]), values[1])
            case "allow_legacy_hash" | "may_flush" | "lease_ttr" | "shared_databases":
                self._settings[what] = values[0] == "on"
            case "line_bytes" | "request_bytes" | "keys_bytes":
                self._settings[what] = int(values[0])
            case "heartbeat_s":
                self._settings[what] = float(values[0])
            case "jitter":
                self._dispatcher.jitter.value = int(values[0])
            case "full":
                self._dispatcher.full = " ".join(values)
            case "signal":  # an operator's command to a worker
                protocol = self._protocols["faktory"]
                assert isinstance(protocol, ClockedFaktory)
                protocol.workers.by_wid[values[0]].signal(values[1])
            case "via":  # this connection uses that protocol
                self._via[values[0]] = values[1]
            case "connect":
                self._peer(values[0]).take()
            case "hello":
                self._hello(*values)
            case "crowded":
                self._part(values[0], self._peers[values[0]].session.crowded(int(values[1])).reply)
            case "stopping":
                for name, peer in list(self._peers.items()):
                    self._part(name, peer.session.farewell())
            case "crash" | "restart":  # after a crash no session ends its leases
                for peer in self._peers.values():
                    if what == "restart":
                        peer.close()
                self._peers.clear()
                self._dispatcher = self._dispatcher.restarted()
                self._protocols.clear()
            case _:
                raise ValueError(f"unknown setting {what}")

    def _hello(self, name: str, wid: str = "") -> None:
        assert self._peer(name).ask(f'HELLO {{"v":2,"wid":"{wid}"}}') == b"+OK\r\n"

    def _part(self, name: str, reply: bytes) -> None:
        peer = self._peers[name]
        peer.said += reply
        peer.close()
