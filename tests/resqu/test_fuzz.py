"""Random commands on Resqu's keys: each has one well-formed reply and no exception, and the journal restores the same
state."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from crossdock.engine.engine import apply
from crossdock.engine.state import EngineState
from crossdock.model.commands.resqu import SetMapping
from crossdock.protocols.redis.commands.table import COMMANDS
from crossdock.protocols.redis.protocol import RedisProtocol
from crossdock.protocols.redis.resqu import scripts
from crossdock.protocols.redis.resqu.service import Resqu
from tests.model import invariants
from tests.support.conversation import Peer
from tests.support.dispatcher import PlainDispatcher, stored
from tests.support.picture import picture
from tests.support.resp_values import read

P = b"resqu-v4:"
SHA = {dialect: sha.encode() for sha, dialect in scripts.KNOWN.items()}
NOW = 1_794_765_345

#: Commands that close the connection, have several replies, or undo the commands before them.
_OTHERS = {b"quit", b"subscribe", b"unsubscribe", b"psubscribe", b"punsubscribe", b"multi", b"exec", b"reset"}
NAMES = sorted({command.name for command in COMMANDS.values() if command.first} - _OTHERS)
USUAL = (
    b"lpush rpush lpushx setnx set del get expire llen lrange rpop rpoplpush brpoplpush lrem sadd srem exists".split()
)

keys = st.sampled_from(
    [
        P + key
        for key in (
            b"unassigned", b"static:queue:p", b"committed", b"committed:s:N:1", b"uncommitted:s:N:1", b"worker:n~p~s~1",
            b"worker:n~p~s~2", b"allocator:n:a", b"unique:u:state", b"unique:u:deferred", b"unique:v:state",
            b"unique:crossdock:1:state", b"unique:crossdock:1:deferred", b"delayed:%d" % (NOW + 5), b"delayed:x",
            b"delayed_queue_schedule", b"plan:s_p", b"plan_schedule", b"plan_schedule:%d" % (NOW + 5), b"plan_list:s",
            b"job:j1:status", b"process:n:pool:p", b"pool:p:unit_queues", b"pool:p", b"pool:p:n-0:queues",
            b"pool:p:backlog:s", b"nothing", b"unique:\xff:state",
        )
    ]
)  # fmt: skip


def text(ident: str, uid: str, more: dict[str, Any]) -> bytes:
    members: dict[str, Any] = {"class": "C", "sourceId": "s", "name": "N", **more}
    if ident:
        members |= {"id": ident, "queue_time": 1.5}
    if uid:
        members["unique"] = {"uid": uid, "deferrableBy": 2}
    return json.dumps(members).encode()


plans = {"id": "s_p", "nextRun": NOW + 5, "recurrenceInterval": "PT2S"}
texts = st.builds(
    text,
    st.sampled_from(["", "j1", "j2", "j3"]),
    st.sampled_from(["", "u", "v", "crossdock:1"]),
    st.sampled_from([{}, {"isMonitored": True}, {"failCount": 1}, plans]),
)
words = st.sampled_from(
    [b"%d" % (NOW + 5), b"", *b"queued running XX 0 1 -1 3 n~p~s~1 s s_p s:N:1 pool:p:n-0:queues -inf +inf".split()]
)
arguments = st.lists(keys | texts | words, max_size=4)
commands = st.builds(
    lambda name, key, rest: [name, key, *rest], st.sampled_from(NAMES) | st.sampled_from(USUAL), keys, arguments
)


def call(name: str, chosen: list[bytes], args: list[bytes]) -> list[bytes]:
    return [b"EVALSHA", SHA[name], b"%d" % len(chosen), *chosen, *args]


FITTING = {
    scripts.DEFER_ADD: ([P + b"unique:u:state", P + b"unique:u:deferred"], [b"running", text("", "u", {})]),
    scripts.UNIQUE_FINALIZE: ([P + b"unique:u:state", P + b"unique:u:deferred"], [b"running"]),
    scripts.BATCH_INIT: ([P + b"uncommitted:s:N:1"], [text("b1", "", {})]),
    scripts.BATCH_COMMIT: ([P + b"committed", P + b"committed:s:N:1", P + b"uncommitted:s:N:1"], [b"s:N:1"]),
    scripts.PLAN_INSERT: (
        [P + b"plan:s_p", P + b"plan_schedule", P + b"plan_schedule:%d" % (NOW + 5), P + b"plan_list:s"],
        [text("", "", plans), b"%d" % (NOW + 5), b"s_p"],
    ),
    scripts.BATCH_ASSIGN: (
        [P + b"pool:p", P + b"pool:p:backlog:s", P + b"pool:p:n-0:queues", P + b"pool:p:unit_queues"],
        [b"s", b"s:N:1", b"pool:p:n-0:queues", b"n"],
    ),
    scripts.BATCH_REMOVE: (
        [P + b"pool:p:n-0:queues", P + b"pool:p:unit_queues", P + b"pool:p", P + b"pool:p:backlog:s", P + b"committed"],
        [b"s:N:1", b"s", b"pool:p:n-0:queues"],
    ),
    scripts.UNIT_CLEAR: ([P + b"pool:p:n-0:queues", P + b"pool:p:unit_queues"], [b"pool:p:n-0:queues"]),
}
fitting = st.sampled_from([call(name, *rest) for name, rest in FITTING.items()])
any_script = st.builds(call, st.sampled_from(sorted(scripts.SCRIPTS)), st.lists(keys, max_size=5), arguments)
useful = st.sampled_from(
    [
        [b"LPUSH", P + b"unassigned", text("j1", "u", {})],
        [b"LPUSH", P + b"unassigned", text("j2", "", {})],
        [b"LPUSHX", P + b"uncommitted:s:N:1", text("b2", "", {})],
        [b"RPUSH", P + b"delayed:%d" % (NOW + 5), text("", "v", {})],
        [b"SETNX", P + b"unique:u:state", b"queued"],
        [b"SADD", P + b"process:n:pool:p", b"n~p~s~1"],
        [b"RPOPLPUSH", P + b"unassigned", P + b"worker:n~p~s~1"],
        [b"RPOPLPUSH", P + b"static:queue:p", P + b"worker:n~p~s~1"],
        [b"RPOPLPUSH", P + b"committed:s:N:1", P + b"worker:n~p~s~2"],
        [b"RPOPLPUSH", P + b"unassigned", P + b"allocator:n:a"],
        [b"RPOPLPUSH", P + b"allocator:n:a", P + b"static:queue:p"],
        [b"RPOP", P + b"worker:n~p~s~1"],
        [b"SET", P + b"unique:u:state", b"running", b"XX"],
        [b"SET", P + b"unique:u:state", b"queued", b"XX"],
        [b"DEL", P + b"unique:u:state", P + b"unique:u:deferred"],
        [b"SREM", P + b"process:n:pool:p", b"n~p~s~1"],
    ]
)
requests = st.tuples(st.integers(0, 2), useful | useful | fitting | commands | any_script)


class Talk:
    def __init__(self, mapped: bool) -> None:
        self.dispatcher = PlainDispatcher()
        resqu = Resqu()
        self.protocol = RedisProtocol(libraries=(resqu.library,), views=resqu.views)
        self.peers = [Peer(self.dispatcher, self.protocol) for _ in range(3)]
        if mapped:
            self.dispatcher.do(SetMapping({"default": {"default": "p"}}, {"default": {"default": "b"}}))

    def ask(self, who: int, request: list[bytes]) -> None:
        peer = self.peers[who]
        peer.send(b"*%d\r\n" % len(request) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in request))
        if not peer.said:  # it waits: advance by an hour at most, because a plan may run every second
            self.dispatcher.advance(min(3_600.0, peer.until - self.dispatcher.now.steady))
        if not peer.said:
            peer.close()
            self.peers[who] = Peer(self.dispatcher, self.protocol)
        else:
            assert len(read(peer.take())) == 1
        for each in self.peers:
            each.take()


@settings(max_examples=150)
@given(st.lists(requests, min_size=1, max_size=40), st.booleans())
def test_each_command_has_one_reply_and_a_restart_restores_the_state(
    asked: list[tuple[int, list[bytes]]], mapped: bool
) -> None:
    talk = Talk(mapped)
    for who, request in asked:
        talk.ask(who, request)
    talk.dispatcher.advance(30.0)
    for peer in talk.peers:
        peer.close()
    invariants.check(talk.dispatcher.state)
    state = EngineState()
    for event in stored(talk.dispatcher.events):
        apply(state, event)
    assert picture(state) == picture(talk.dispatcher.state)
