"""Plays a transcript: bytes into sessions, what they say against what is written."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from crossdock.wire.faktory.door import Challenge
from tests.support.conversation import Conversation, Door
from tests.support.desk import PlainDesk
from tests.support.known_ids import known_ids
from tests.transcripts.script import Close, Expect, Pass, Send, Set, Step

#: How the bytes sent in a row are cut into chunks. Given where they stand in all that the clients send.
Cut = Callable[[int, bytes], Iterator[bytes]]


class Stage:
    def __init__(self, cut: Cut) -> None:
        self._cut = cut
        self._sent = 0
        self._settings: dict[str, Any] = {}
        self._challenge: Challenge | None = None
        self._desk = PlainDesk()
        self._door: Door | None = None
        self._peers: dict[str, Conversation] = {}
        self._unsent: Send | None = None  #: bytes of one client, gathered until somebody else acts
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
                case Pass(seconds):
                    self._settle()
                    self._desk.advance(seconds)
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

    def _peer(self, name: str) -> Conversation:
        peer = self._peers.get(name)
        if peer is None:
            if self._door is None:
                self._door = Door(self._desk, self._challenge, **self._settings)
            peer = self._peers[name] = Conversation(self._desk, self._door)
        return peer

    def _settle(self) -> None:
        """Send what was gathered; by then all that is expected must have been said, and nothing else."""
        unsent, self._unsent = self._unsent, None
        if unsent is not None:
            peer = self._peer(unsent.peer)
            for chunk in self._cut(self._sent, unsent.data):
                peer.send(chunk)
            self._sent += len(unsent.data)
        expected, self._expected = self._expected, []
        for each in expected:
            self._meet(self._peer(each.peer), each)
        for name, peer in self._peers.items():
            assert not peer.said, f"connection {name} also said {bytes(peer.said)!r}"
        closed = {each.peer for each in expected if each.how == "!"}
        for name in [name for name, peer in self._peers.items() if peer.is_closed]:
            assert name in closed, f"connection {name} was closed"
            del self._peers[name]

    @staticmethod
    def _meet(peer: Conversation, expect: Expect) -> None:
        said, text = bytes(peer.said), expect.text
        if expect.how == "!":
            assert peer.is_closed, "the connection is still open"
            return
        head, crlf, rest = said.partition(b"\r\n")
        assert crlf, f"expected {text!r}, heard {said!r}"
        length = len(head) + 2
        if expect.how in ("$", "$~"):
            assert re.fullmatch(rb"\$\d+", head), f"expected a bulk {text!r}, heard {said!r}"
            size = int(head[1:])
            head = rest[:size]
            assert rest[size : size + 2] == b"\r\n", f"{size} is not the length of {rest!r}"
            length += size + 2
        if expect.how in ("~", "$~"):
            assert re.fullmatch(text, head, re.DOTALL), f"{head!r} does not match {text!r}"
        else:
            assert head == text, f"expected {text!r}, heard {head!r}"
        del peer.said[:length]

    def _set(self, what: str, *values: str) -> None:
        match what:
            case "password":
                self._settings["password"] = values[0]
            case "challenge":
                self._challenge = Challenge(int(values[0]), values[1])
            case "one_round" | "may_flush":
                self._settings[what] = values[0] == "on"
            case "line_bytes":
                self._settings[what] = int(values[0])
            case "jitter":
                self._desk.jitter.value = int(values[0])
            case "full":
                self._desk.full = " ".join(values)
            case "signal":  # an operator's button
                self._the_door().workers.by_wid[values[0]].signal(values[1])
            case "connect":
                self._peer(values[0]).take()
            case "hello":
                self._hello(*values)
            case "crowded":
                self._part(values[0], self._peers[values[0]].session.crowded(int(values[1])).reply)
            case "stopping":
                for name, peer in list(self._peers.items()):
                    self._part(name, peer.session.farewell())
            case "restart":
                for peer in self._peers.values():
                    peer.close()
                self._peers.clear()
                self._desk, self._door = self._desk.restarted(), None
            case _:
                raise ValueError(f"unknown setting {what}")

    def _the_door(self) -> Door:
        assert self._door is not None, "nobody has connected yet"
        return self._door

    def _hello(self, name: str, wid: str = "") -> None:
        assert self._peer(name).ask(f'HELLO {{"v":2,"wid":"{wid}"}}') == b"+OK\r\n"

    def _part(self, name: str, reply: bytes) -> None:
        peer = self._peers[name]
        peer.said += reply
        peer.close()
