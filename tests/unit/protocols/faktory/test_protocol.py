"""What Faktory sessions share: the password, the uptime in INFO, and the limits of the worker registry."""

import re

import pytest

from crossdock.model.password_hash import digest
from crossdock.protocols.faktory.protocol import Challenge, FaktoryProtocol
from tests.support.conversation import ClockedFaktory, Conversation, worker
from tests.support.dispatcher import PlainDispatcher
from tests.support.resp import body


@pytest.mark.parametrize(
    ("password", "salt", "iterations", "expected"),
    [  # faktory.md section 2.4
        ("foobar", "55104dc76695721d", 1545, "6d877f8e5544b1f2598768f817413ab8a357afffa924dedae99eb91472d4ec30"),
        ("s3cret", "75eb02d32efb0036", 4916, "72adf154118e96bbc24dd56504541edf07a73330d81410ba4a8710fee3b6ffbb"),
        ("s3cret", "75eb02d32efb0036", 1, "772a2f24be516480cc245e05ee0c047fddd13f1cd429196bc12eb4525fd8bf1b"),
    ],
)
def test_digest(password: str, salt: str, iterations: int, expected: str) -> None:
    assert digest(password.encode(), salt, iterations) == expected


@pytest.mark.parametrize("version", [0, 1, 2, 3, 255])
def test_rounds_by_version(version: int) -> None:
    challenge = Challenge(7, "abc")
    for allow_legacy_hash in (True, False):
        protocol = FaktoryProtocol(password="pass", allow_legacy_hash=allow_legacy_hash)
        assert protocol.admits(challenge, version, digest(b"pass", "abc", 7)) is (version >= 2)
        assert protocol.admits(challenge, version, digest(b"pass", "abc", 1)) is (version < 2 and allow_legacy_hash)
        assert not protocol.admits(challenge, version, digest(b"Pass", "abc", 7 if version >= 2 else 1))
        assert not protocol.admits(challenge, version, "")


def test_a_password_that_is_not_ascii() -> None:
    protocol = FaktoryProtocol(password="пароль")
    assert protocol.admits(Challenge(2, "s"), 2, digest("пароль".encode(), "s", 2))


def test_challenges() -> None:
    """4000 to 8095 rounds, a salt of 1 to 16 lower-case hex digits without padding, new each second (faktory.md section
    2.1)."""
    protocol = FaktoryProtocol(password="pass", clock=map(float, range(500)).__next__)
    seen = {protocol.challenge() for _ in range(500)}
    assert len(seen) == 500
    for challenge in seen:
        assert challenge is not None
        assert 4_000 <= challenge.iterations <= 8_095
        assert re.fullmatch(r"0|[1-9a-f][0-9a-f]{0,15}", challenge.salt)
        assert int(challenge.salt, 16) < 2**63
    assert FaktoryProtocol().challenge() is None


def test_wrong_passwords_are_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of wrong HELLOs a second, of either kind, are hashed once."""
    hashed: list[int] = []

    def counted(password: bytes, salt: str, iterations: int) -> str:
        hashed.append(iterations)
        return digest(password, salt, iterations)

    monkeypatch.setattr("crossdock.protocols.faktory.protocol.digest", counted)
    dispatcher = PlainDispatcher()
    protocol = ClockedFaktory(dispatcher, password="pass")
    for _ in range(50):
        for hello in ('{"v":2,"pwdhash":"x"}', '{"v":1,"pwdhash":"x"}', '{"v":2}', "{}"):
            peer = Conversation(dispatcher, protocol)
            assert peer.ask(f"HELLO {hello}") == b"-ERR Invalid password\r\n"
    assert len(hashed) == 2
    dispatcher.advance(1)
    Conversation(dispatcher, protocol).ask('HELLO {"v":2,"pwdhash":"x"}')
    assert len(hashed) == 3


def test_a_password_sent_a_second_after_the_greeting() -> None:
    """Each connection is checked against its own greeting, although the challenge has changed since."""
    dispatcher = PlainDispatcher()
    protocol = ClockedFaktory(dispatcher, password="pass")
    early = Conversation(dispatcher, protocol)
    said = re.search(rb'"i":(\d+),"s":"(\w+)"', early.take())
    assert said is not None
    dispatcher.advance(1.5)
    late = Conversation(dispatcher, protocol)
    assert said[0] not in late.take()
    said_hash = digest(b"pass", said[2].decode(), int(said[1]))
    hello = f'HELLO {{"v":2,"pwdhash":"{said_hash}"}}'
    assert late.ask(hello) == b"-ERR Invalid password\r\n"
    assert early.ask(hello) == b"+OK\r\n"


def test_the_greeting_has_no_blank_after_its_word() -> None:
    """npm faktory-worker splits it on blanks and parses the second word (faktory.md section 2.1)."""
    dispatcher = PlainDispatcher()
    said = Conversation(dispatcher, ClockedFaktory(dispatcher, password="pass")).take()
    assert re.fullmatch(rb'\+HI \{"v":2,"i":\d{4},"s":"[0-9a-f]+"\}\r\n', said)
    assert said.count(b" ") == 1


def test_uptime_begins_with_the_server() -> None:
    """It does not begin with the first connection: the protocol ticks from the start."""
    dispatcher = PlainDispatcher()
    protocol = ClockedFaktory(dispatcher)
    protocol.tick(dispatcher)
    dispatcher.advance(100.9)
    assert b'"uptime":100,' in body(worker(dispatcher, protocol).ask("INFO"))


def test_memory_is_asked_for() -> None:
    dispatcher = PlainDispatcher()
    assert b'"used_memory_mb":77}' in body(
        worker(dispatcher, ClockedFaktory(dispatcher, memory_mb=lambda: 77)).ask("INFO")
    )


def test_connections_without_hello_are_not_counted() -> None:
    dispatcher = PlainDispatcher()
    protocol = ClockedFaktory(dispatcher)
    Conversation(dispatcher, protocol).close()
    Conversation(dispatcher, protocol)
    peer = worker(dispatcher, protocol)
    assert b'"connections":1,' in body(peer.ask("INFO"))
    worker(dispatcher, protocol, "w").close()
    assert b'"connections":1,' in body(peer.ask("INFO"))
    peer.close()
    assert protocol.connections == 0


def test_the_first_hello_describes_a_worker() -> None:
    dispatcher = PlainDispatcher()
    protocol = ClockedFaktory(dispatcher)
    for host, pid in (("h1", 1), ("h2", 2)):
        hello = f'HELLO {{"v":2,"wid":"w","hostname":"{host}","pid":{pid},"labels":["l"]}}'
        assert Conversation(dispatcher, protocol).ask(hello) == b"+OK\r\n"
    known = protocol.workers.by_wid["w"]
    assert (known.hostname, known.pid, known.labels, len(known.hang_ups)) == ("h1", 1, ("l",), 2)


def test_a_worker_with_a_heartbeat_a_minute_ago_is_kept() -> None:
    """A worker is dropped when its last BEAT is more than 60 s old (faktory.md section 8)."""
    dispatcher = PlainDispatcher()
    protocol = ClockedFaktory(dispatcher)
    peer = worker(dispatcher, protocol, "w")
    dispatcher.advance(60)
    assert not peer.is_closed
    dispatcher.advance(5)
    assert peer.is_closed
    assert protocol.workers.reaped == 1


def test_hello_of_another_connection_is_no_heartbeat() -> None:
    dispatcher = PlainDispatcher()
    protocol = ClockedFaktory(dispatcher)
    peer = worker(dispatcher, protocol, "w")
    dispatcher.advance(50)
    other = worker(dispatcher, protocol, "w")
    dispatcher.advance(15)
    assert peer.is_closed
    assert other.is_closed
