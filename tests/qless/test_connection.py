"""qless over the Redis protocol, as bytes on a connection: ways to call, errors, notifications, keys and settings."""

import json
import logging
import re

import pytest

from crossdock.client import qless as client
from crossdock.protocols.redis.scripts import sha1
from tests.support.conversation import Peer
from tests.support.dispatcher import BEGIN
from tests.support.qless_connection import QlessConnection, T, bulk

#: An unknown build of the unified script: another header, the same commands.
UNIFIED = b"-- Current SHA: 0123\nQlessAPI.put = function(now, me, queue, jid)"
PUT = b"error('Put(): Expected 1 KEYS argument')"


def heard(peer: Peer) -> list[list[str]]:
    """The messages that a subscriber received since the last call, without their type."""
    words = [line.decode() for line in bytes(peer.said).split(b"\r\n")[:-1] if not re.fullmatch(rb"[*$]\d+", line)]
    peer.said.clear()
    found: list[list[str]] = []
    while words:
        size = 3 if words[0] == "message" else 4
        found.append(words[size - 2 : size])
        del words[:size]
    return found


def test_a_script_is_called_by_its_hash_its_text_or_its_name() -> None:
    qless = QlessConnection()
    sha = sha1(UNIFIED)
    assert qless.ask("EVALSHA", sha, "0", "length", T, "q") == b"-NOSCRIPT No matching script. Please use EVAL.\r\n"
    assert qless.ask("SCRIPT", "LOAD", UNIFIED) == bulk(sha)
    assert qless.ask("EVALSHA", sha.upper(), "0", "put", T, "w", "q", "a", "klass", "{}", "0") == bulk("a")
    assert qless.ask("EVAL", PUT, "1", "q", "b", "klass", "{}", T, "0") == bulk("b")
    assert qless.ask("FCALL", "put", "1", "q", "c", "klass", "{}", T, "0") == bulk("c")
    assert qless.call("put", T, "w", "q", "d", "klass", "{}", "0") == bulk("d")
    assert qless.ask("EVALSHA", sha, "0", "length", T, "q") == b":4\r\n"
    assert qless.ask("FCALL", "get", "0", "absent") == b"$-1\r\n"


def test_errors_have_the_form_of_redis_7() -> None:
    qless = QlessConnection()
    qless.ask("SCRIPT", "LOAD", UNIFIED)
    sha = sha1(UNIFIED)
    said = qless.ask("EVALSHA", sha, "0", "complete", T, "x", "w", "q", "{}")
    text = f"user_script:1: Complete(): Job x does not exist script: {sha}, on @user_script:1."
    assert said == f"-ERR {text}\r\n".encode()
    assert b"No Keys should be provided" in qless.ask("EVALSHA", sha, "1", "q", "get", T, "x")
    refused = qless.ask("EVAL", "return redis.call('get', KEYS[1])", "0")
    assert refused.startswith(b"-ERR unknown script ")


@pytest.mark.parametrize(
    ("called", "named"), [("qless", "qless"), ("QLESS", "qless"), ("qless-php", "qless-php"), ("Reqless", "reqless")]
)
def test_the_error_of_a_function_names_it(called: str, named: str) -> None:
    """As in Redis, names are case-insensitive and the error has the registered name."""
    said = QlessConnection().ask("FCALL", called, "0", "dance", T)
    assert said == f"-ERR user_function:1: Unknown command dance script: {named}, on @user_function:1.\r\n".encode()


def test_the_command_line_shows_the_errors_of_functions_and_scripts_without_their_place() -> None:
    text = "Fail(): Job x not currently running: waiting"
    for place, script in (("user_script:1", "a" * 40), ("user_function:12", "qless")):
        assert client.said(f"ERR {place}: {text} script: {script}, on @{place}.") == text


def test_changes_through_every_protocol_are_published() -> None:
    qless = QlessConnection()
    everything, log = qless.listener("PSUBSCRIBE", "*"), qless.listener("SUBSCRIBE", "ql:log")
    qless.put("j")
    assert heard(log) == [["ql:log", '{"jid":"j","event":"put","queue":"q"}']]
    qless.call("track", T, "track", "j")
    qless.pop()
    qless.call("complete", T, "j", "w", "q", "{}")
    assert heard(everything) == [
        ["ql:log", '{"jid":"j","event":"put","queue":"q"}'],
        ["ql:track", "j"],
        ["ql:popped", "j"],
        ["ql:completed", "j"],
        ["ql:log", '{"jid":"j","event":"completed","queue":"q"}'],
    ]


def test_each_dialect_publishes_under_the_others_name_on_request() -> None:
    qless = QlessConnection()
    everything = qless.listener("PSUBSCRIBE", "*")
    old, new = qless.listener("SUBSCRIBE", "popped", "track"), qless.listener("SUBSCRIBE", "ql:popped", "ql:track")
    qless.ask("FCALL", "put", "1", "q", "j", "klass", "{}", T, "0")
    qless.ask("FCALL", "track", "0", "track", "j", T)
    assert (heard(old), heard(new)) == ([["track", "j"]], [["ql:track", "j"]])
    assert heard(everything) == [["track", "j"]], "in the form of the calling dialect, and without a log"
    qless.pop()
    assert (heard(old), heard(new)) == ([["popped", "j"]], [["ql:popped", "j"]])
    assert heard(everything) == [["ql:popped", "j"]]


def test_keys_show_what_the_scripts_would_store() -> None:
    qless = QlessConnection()
    assert qless.ask("KEYS", "*") == b"*0\r\n"
    for jid in "abc":
        qless.put(jid, "priority", "2", "tags", '["t"]')
    qless.call("put", T, "w", "q", "late", "klass", "{}", "60")
    qless.call("put", T, "w", "q", "needs", "klass", "{}", "0", "depends", '["a"]')
    qless.call("recur", T, "q", "every", "klass", "{}", "interval", "60", "30")
    qless.pop()
    assert qless.ask("KEYS", "ql:j:*").startswith(b"*5\r\n")
    for kind, count in {"work": 2, "locks": 1, "scheduled": 1, "depends": 1, "recur": 1}.items():
        assert qless.ask("ZCARD", f"ql:q:q-{kind}") == b":%d\r\n" % count
        assert qless.ask("ZRANGE", f"ql:q:q-{kind}", "0", "-1").startswith(b"*%d\r\n" % count)
        assert qless.ask("TYPE", f"ql:q:q-{kind}") == b"+zset\r\n"
    assert qless.ask("ZSCORE", "ql:q:q-recur", "every") == bulk(f"{BEGIN.wall + 30:.0f}")
    assert qless.ask("ZSCORE", "ql:q:q-recur", "absent") == b"$-1\r\n"
    assert qless.ask("HGET", "ql:j:late", "state") == bulk("scheduled")
    assert qless.ask("HMGET", "ql:r:every", "type", "interval") == b"*2\r\n" + bulk("interval") + bulk("60")
    assert qless.ask("ZCARD", "ql:t:t") == b":3\r\n"
    assert qless.ask("SMEMBERS", "ql:j:needs-dependencies") == b"*1\r\n" + bulk("a")
    assert qless.ask("LLEN", "ql:j:a-history") == b":1\r\n"
    assert qless.ask("HGET", f"ql:s:wait:{int(BEGIN.wall) // 86_400 * 86_400}:q", "total") == bulk("1")
    assert qless.ask("DEL", "ql:j:a").startswith(b"-ERR DEL is not supported on 'ql:j:a'")
    assert qless.ask("SET", "ql:mine", "1") == b"+OK\r\n", "another name is a plain key"


def test_the_score_of_a_lock_is_the_end_of_its_grace_period() -> None:
    """The job keeps the expiry that its worker received."""
    qless = QlessConnection()
    qless.put("a")
    qless.pop()
    qless.ask("FCALL", "qless", "0", "pop", f"{BEGIN.wall + 60}", "q", "w2", "1")
    assert qless.ask("ZSCORE", "ql:q:q-locks", "a") == bulk(f"{BEGIN.wall + 70:.0f}")
    assert qless.ask("HMGET", "ql:j:a", "expires", "grace") == b"*2\r\n" + bulk(f"{BEGIN.wall + 60:.0f}") + bulk("1")


def test_a_job_with_dependencies_and_a_delay_shows_both() -> None:
    qless = QlessConnection()
    qless.put("a")
    qless.call("put", T, "w", "q", "later", "klass", "{}", "60", "depends", '["a"]')
    assert qless.ask("HGET", "ql:j:later", "scheduled") == bulk(f"{BEGIN.wall + 60:.0f}")
    assert qless.ask("HGET", "ql:j:a", "scheduled") == b"$-1\r\n"


def test_a_history_entry_without_details_has_two_elements() -> None:
    qless = QlessConnection()
    qless.put("a")
    qless.pop()
    qless.call("complete", T, "a", "w", "q", "{}")
    assert qless.ask("LINDEX", "ql:j:a-history", "-1") == bulk(f'[{BEGIN.wall:.0f},"done"]')


def test_completed_failed_and_settings_are_shown() -> None:
    qless = QlessConnection()
    qless.put("a")
    qless.put("b")
    qless.pop(2)
    qless.call("complete", T, "a", "w", "q", "{}")
    qless.call("fail", T, "b", "w", "group", "message")
    qless.call("config.set", T, "heartbeat", "90")
    assert qless.ask("ZCARD", "ql:completed") == b":1\r\n"
    assert qless.ask("LRANGE", "ql:f:group", "0", "-1") == b"*1\r\n" + bulk("b")
    assert qless.ask("SMEMBERS", "ql:failures") == b"*1\r\n" + bulk("group")
    assert qless.ask("HGETALL", "ql:config") == b"*2\r\n" + bulk("heartbeat") + bulk("90")
    assert qless.ask("FLUSHDB") == b"+OK\r\n"
    assert qless.ask("KEYS", "*") == b"*0\r\n"


def test_a_popped_job_returns_to_its_queue_if_the_reply_is_lost() -> None:
    qless = QlessConnection()
    qless.put("a")
    qless.put("b")
    session = qless.peer.session
    answer = session.handle([b"FCALL", b"qless", b"0", b"pop", T.encode(), b"q", b"w", b"2"])
    assert answer.leases == [(2, 1), (1, 2)], "the connection receives these leases with the reply"


@pytest.mark.parametrize("smaller_first", [False, True])
def test_keys_show_a_priority_as_it_was_given(smaller_first: bool) -> None:
    qless = QlessConnection(smaller_first=smaller_first)
    qless.put("a", "priority", "5")
    qless.call("recur", T, "q", "every", "klass", "{}", "interval", "60", "30", "priority", "-2")
    assert qless.ask("HGET", "ql:j:a", "priority") == bulk("5")
    assert qless.ask("HGET", "ql:r:every", "priority") == bulk("-2")


def test_smaller_first_serves_the_smaller_priority_first() -> None:
    for smaller_first, order in ((False, ["9", "5", "1"]), (True, ["1", "5", "9"])):
        qless = QlessConnection(smaller_first=smaller_first)
        for priority in "519":
            qless.put(priority, "priority", priority)
        jobs = qless.pop(3)
        assert [job["jid"] for job in jobs] == order
        assert [str(job["priority"]) for job in jobs] == order
        assert qless.call("priority", T, "5", "7") == b":7\r\n"


def test_the_fine_histogram_has_more_buckets() -> None:
    for fine, size, bucket in ((False, 148, 119), (True, 263, 122)):
        qless = QlessConnection(fine_histogram=fine)
        qless.call("put", str(BEGIN.wall - 3_600 - 3_000), "w", "q", "j", "klass", "{}", "0")
        qless.pop()
        said = qless.call("stats", T, "q", T).partition(b"\r\n")[2]
        histogram = json.loads(said)["wait"]["histogram"]
        assert (len(histogram), histogram.index(1)) == (size, bucket)


def test_the_servers_clock_may_replace_the_callers() -> None:
    qless = QlessConnection(server_clock=True)
    qless.call("put", "17", "w", "q", "j", "klass", "{}", "0")
    said = qless.call("pop", "99", "q", "w", "1").partition(b"\r\n")[2]
    assert json.loads(said)[0]["expires"] == BEGIN.wall + 60


def test_a_wrong_client_clock_is_logged_at_intervals(caplog: pytest.LogCaptureFixture) -> None:
    qless = QlessConnection()
    with caplog.at_level(logging.WARNING):
        qless.call("length", str(BEGIN.wall + 4.0), "q")
        assert not caplog.records
        for _ in range(3):
            qless.call("length", str(BEGIN.wall + 90.0), "q")
    assert [record.getMessage() for record in caplog.records] == [
        "a qless client's clock is +90 s off the server's; its calls use its own clock"
    ]
