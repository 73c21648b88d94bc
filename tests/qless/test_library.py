"""Recognition of scripts."""

import pytest

from crossdock.protocols.redis.qless import library
from crossdock.protocols.redis.qless.arguments import QlessError
from tests.qless.replay import QlessDispatcher


def test_published_scripts_are_known_by_their_hash() -> None:
    known = library.hashes()
    assert known["e22308e0c17253ff34e753088c8e9954c52a6dae"] == "qless-2013", "the script of the package on PyPI"
    assert known["ed7cb6988e28750518b1c1f25c98d865dc370952"] == "qless"
    assert known["7f76c23b76e859b6f3f7b0ec7c0ea07bcb94a5fd"] == "reqless"
    assert len(known) > 200
    assert all(len(sha) == 40 for sha in known)
    assert set(known.values()) <= library.ANSWERED


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        (b"local ReqlessAPI = {}", "reqless"),
        (b"QlessAPI.subscription = function(now, queue", "qless-php"),
        (b"QlessAPI['throttle.set'] = function(now, me, queue", "qless-throttles"),
        (b"QlessAPI.put = function(now, me, queue, jid", "qless"),
        (b"QlessAPI.put = function(now, queue, jid", "qless-2013"),
        (b"error('Put(): Expected 1 KEYS argument')", "qless/put"),
        (b"error('GetConfig(): No Keys')", "qless/getconfig"),
        (b"assert(x, 'Pause(): ...') redis.call('sadd', 'ql:paused_queues')", "qless/pause"),
        (b"assert(x, 'Pause(): ...') redis.call('srem', 'ql:paused_queues')", "qless/unpause"),
        (b"return redis.call('get', KEYS[1])", None),
        (b"error('Whatever(): no')", None),
    ],
)
def test_other_scripts_are_recognised_by_content(text: bytes, dialect: str | None) -> None:
    assert library.recognise(text) == dialect


def test_each_dialect_has_a_handler() -> None:
    dispatcher, answers = QlessDispatcher(), library.Dialects().handlers
    data = [b"klass", b"{}"]
    assert answers["qless"](dispatcher, [], [b"put", b"1", b"w", b"q", b"a", *data, b"0"], dispatcher.tell) == "a"
    assert answers["qless-2013"](dispatcher, [], [b"put", b"1", b"q", b"b", *data, b"0"], dispatcher.tell) == "b"
    assert answers["qless/put"](dispatcher, [b"q"], [b"c", *data, b"1", b"0"], dispatcher.tell) == "c"
    named = [b"put", b"1", b"w", b"q", b"d", *data, b"0", b"throttles", b'["t"]']
    assert answers["qless-throttles"](dispatcher, [], named, dispatcher.tell) == "d"
    assert answers["reqless"](dispatcher, [], [b"queue.put", *named[1:4], b"e", *named[5:]], dispatcher.tell) == "e"
    assert answers["qless-php"](dispatcher, [], [b"workersCount", b"1"], dispatcher.tell) == 0
    assert answers["qless/cancel"](dispatcher, [], [b"unknown"], dispatcher.tell) is None
    with pytest.raises(QlessError, match="No Keys should be provided"):
        answers["qless/get"](dispatcher, [b"q"], [b"c"], dispatcher.tell)
