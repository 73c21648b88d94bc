"""Random requests: each has one well-formed reply and no exception, and the journal restores the same state."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from crossdock.engine.engine import apply
from crossdock.engine.state import EngineState
from crossdock.protocols.redis.commands.table import COMMANDS
from crossdock.protocols.redis.protocol import RedisProtocol
from tests.support.conversation import Peer
from tests.support.dispatcher import PlainDispatcher, stored
from tests.support.picture import picture
from tests.support.redis_parts import ECHO, ECHO_SHA, ECHOES, MIRROR
from tests.support.resp_requests import resp_request
from tests.support.resp_values import read

#: Commands that close the connection or have several replies.
_OTHERS = {b"quit", b"subscribe", b"unsubscribe", b"psubscribe", b"punsubscribe"}
NAMES = sorted({command.name for command in COMMANDS.values()} - _OTHERS)

keys = st.sampled_from([b"a", b"b", b"c", b"mirror:score", b"mirror:plain"])
numbers = st.sampled_from(b"0 1 -1 2 3 1.5 (1 inf -inf nan 9223372036854775807".split())
words = st.sampled_from(
    b"EX PX NX XX GT LT CH INCR KEEPTTL GET LEFT RIGHT LIMIT WITHSCORES REV BYSCORE MATCH COUNT TYPE SETNAME AUTH "
    b"LOAD EXISTS FLUSH ID INFO LIST DOCS CHANNELS NUMSUB * * [a-c] x y z".split()
)
texts = st.sampled_from([b"", ECHO, ECHO_SHA.encode(), b"\r\n\xff\x00"]) | st.binary(max_size=4)
arguments = st.lists(keys | numbers | words | texts, max_size=6)
on_keys = st.builds(lambda key, rest: [key, *rest], keys, arguments)
requests = st.tuples(st.sampled_from(NAMES), arguments | on_keys | on_keys)


class Talk:
    def __init__(self, resp3: bool) -> None:
        self.dispatcher = PlainDispatcher()
        protocol = RedisProtocol(libraries=(ECHOES,), views=(MIRROR,))
        self.peer = Peer(self.dispatcher, protocol)
        if resp3:
            self.ask(b"HELLO", [b"3"])

    def ask(self, name: bytes, args: list[bytes]) -> Any:
        self.peer.send(resp_request(name, args))
        if not self.peer.said:  # it waits, for a year at most
            self.dispatcher.advance(86_400.0 * 366)
        if not self.peer.said:
            self.peer.close()
            return None
        [reply] = read(self.peer.take())
        return reply


@settings(max_examples=300)
@given(st.lists(requests, min_size=1, max_size=25), st.booleans())
def test_each_request_has_one_reply_and_a_restart_restores_the_state(
    asked: list[tuple[bytes, list[bytes]]], resp3: bool
) -> None:
    talk = Talk(resp3)
    for name, args in asked:
        talk.ask(name, args)
        if talk.peer.is_closed:
            break
    state = EngineState()
    for event in stored(talk.dispatcher.events):
        apply(state, event)
    assert picture(state) == picture(talk.dispatcher.state)


@given(st.lists(st.binary(max_size=30), max_size=6))
def test_garbage_gets_a_reply_or_closes_the_connection(chunks: list[bytes]) -> None:
    talk = Talk(resp3=False)
    for chunk in chunks:
        talk.peer.send(chunk)
    read(talk.peer.take())
