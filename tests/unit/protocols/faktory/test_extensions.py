"""The announcement of the extensions. A session without it behaves as before, byte for byte."""

import json

import pytest

from crossdock import __version__
from tests.support.conversation import ClockedFaktory, Conversation, worker
from tests.support.dispatcher import PlainDispatcher
from tests.support.extended_peer import extended

JOB = '{"jid":"12345678","jobtype":"t","args":[1],"once":7,"tags":"x","depends_on":{},"keep_result_s":"long"}'


def test_the_welcome_names_the_extensions_and_limits() -> None:
    welcome = extended(PlainDispatcher()).welcome
    assert (welcome["server"], welcome["version"]) == ("crossdock", __version__)
    assert set(welcome["extensions"]) >= {
        *("once", "dependencies", "tags", "results", "fetch-many", "settle-many", "leases", "cancel"),
        *("waits", "schedules", "rates"),
    }
    assert welcome["limits"] == {
        "line_bytes": 16 * 1024 * 1024,
        "fetch_many": 1_000,
        "settle_many": 1_000,
        "result_bytes": 1024 * 1024,
    }


@pytest.mark.parametrize("announced", ["0", "2", '"1"', "true", "null", "[1]", "1.0", '{"a":1}'])
def test_another_announcement_is_ignored(announced: str) -> None:
    dispatcher = PlainDispatcher()
    peer = Conversation(dispatcher, ClockedFaktory(dispatcher))
    peer.take()
    assert peer.ask(f'HELLO {{"v":2,"extensions":{announced}}}') == b"+OK\r\n"
    assert peer.ask("FETCHB {}") == b"-ERR unknown command FETCHB\r\n"


@pytest.mark.parametrize("verb", ["FETCHB", "ACKB", "SNOOZE", "EXTEND", "CANCEL", "RESULT", "SCHEDULE", "RATE"])
def test_a_session_without_the_announcement_does_not_know_the_verbs(verb: str) -> None:
    dispatcher = PlainDispatcher()
    peer = worker(dispatcher, ClockedFaktory(dispatcher))
    assert peer.ask(verb + " {}") == f"-ERR unknown command {verb}\r\n".encode()
    assert peer.ask(verb + " " + " " * 20_000) == f"-ERR unknown command {verb}\r\n".encode()


def test_a_session_without_the_announcement_gets_the_same_replies() -> None:
    """Members of the extensions are ignored, whatever their type."""
    dispatcher = PlainDispatcher()
    peer = worker(dispatcher, ClockedFaktory(dispatcher), "w")
    stamp = "2026-11-15T17:55:45Z"
    times = f'"created_at":"{stamp}","enqueued_at":"{stamp}"'
    shown = f'{{"retry":25,"jid":"12345678","queue":"default","jobtype":"t",{times},"args":[1]}}'
    exchanges = [
        (f"PUSH {JOB}", "+OK\r\n"),
        (f"PUSH {JOB}", "+OK\r\n"),
        (f"PUSHB [{JOB}]", "$2\r\n{}\r\n"),
        ("FETCH default", f"${len(shown)}\r\n{shown}\r\n"),
        ('ACK {"jid":"12345678","result":[1]}', '-ERR invalid ACK {"jid":"12345678","result":[1]}\r\n'),
        ('ACK {"jid":"12345678","result":"1"}', "+OK\r\n"),
        ("FETCH default", f"${len(shown)}\r\n{shown}\r\n"),
        ('FAIL {"jid":"12345678","errtype":"E","message":"m","final":"x","delay_s":[]}', "+OK\r\n"),
        ('TRACK WAIT {"jid":"12345678"}', "-ERR invalid TRACK: write TRACK GET and a jid, or TRACK SET {…}\r\n"),
    ]
    for line, reply in exchanges:
        assert peer.ask(line).decode() == reply
    assert [job.state.name for job in dispatcher.state.jobs.values()] == ["RETRYING", "READY"]
    assert not dispatcher.state.once.jids
    assert not dispatcher.state.tags.uses


def test_an_extended_session_speaks_plain_faktory_too() -> None:
    dispatcher = PlainDispatcher()
    peer = extended(dispatcher, wid="w")
    assert peer.push("12345678") == "+OK"
    assert b'"jid":"12345678"' in peer.ask("FETCH default")
    assert peer.ask('BEAT {"wid":"w"}') == b"+OK\r\n"
    assert peer.ask('ACK {"jid":"12345678"}') == b"+OK\r\n"
    assert json.loads(peer.ask("INFO").split(b"\r\n")[1])["faktory"]["total_processed"] == 1
    assert peer.ask("END") == b"+OK\r\n"


def test_a_wrong_password_gets_no_welcome() -> None:
    dispatcher = PlainDispatcher()
    peer = Conversation(dispatcher, ClockedFaktory(dispatcher, password="secret"))
    peer.take()
    assert peer.ask('HELLO {"v":2,"extensions":1,"pwdhash":"x"}') == b"-ERR Invalid password\r\n"


@pytest.mark.parametrize(
    ("verb", "request_", "error"),
    [
        ("FETCHB", "{}", "Object missing required field `queues`"),
        ("FETCHB", '{"queues":[]}', "Expected `array` of length >= 1 - at `$.queues`"),
        ("FETCHB", '{"queues":["a"],"count":0}', "Expected `int` >= 1 - at `$.count`"),
        ("FETCHB", '{"queues":["a"],"count":1001}', "Expected `int` <= 1000 - at `$.count`"),
        ("FETCHB", '{"queues":["a"],"wait_s":61}', "Expected `float` <= 60.0 - at `$.wait_s`"),
        ("FETCHB", '{"queues":["a"],"lease_s":0.5}', "Expected `float` >= 1.0 - at `$.lease_s`"),
        ("FETCHB", '{"queues":["a"],"order":"x"}', "Invalid enum value 'x' - at `$.order`"),
        ("FETCHB", '{"queues":[7]}', "Expected `str`, got `int` - at `$.queues[0]`"),
        ("ACK", '{"result":1}', "Object missing required field `jid`"),
        ("ACKB", "{}", "Expected `array`, got `object`"),
        ("ACKB", '[{"jid":1}]', "Expected `str`, got `int` - at `$[0].jid`"),
        ("FAIL", '{"jid":"a","final":1}', "Expected `bool`, got `int` - at `$.final`"),
        ("FAIL", '{"jid":"a","delay_s":-1}', "Expected `float` >= 0.0 - at `$.delay_s`"),
        ("SNOOZE", '{"jid":"a"}', "Object missing required field `delay_s`"),
        ("EXTEND", '{"jids":[],"lease_s":5}', "Expected `array` of length >= 1 - at `$.jids`"),
        ("EXTEND", '{"jids":["a"],"lease_s":"5"}', "Expected `float`, got `str` - at `$.lease_s`"),
        ("CANCEL", '{"jids":"a"}', "Expected `array`, got `str` - at `$.jids`"),
        ("RESULT", '{"jid":"a","wait_s":61}', "Expected `float` <= 60.0 - at `$.wait_s`"),
        ("TRACK WAIT", '{"jid":"a","after":1}', "Expected `str`, got `int` - at `$.after`"),
        ("SCHEDULE SYNC", '{"app":"a","schedules":{}}', "Expected `array`, got `object` - at `$.schedules`"),
        ("SCHEDULE LIST", "[]", "Expected `object`, got `array`"),
        ("RATE SYNC", '{"app":"a","rates":{}}', "Expected `array`, got `object` - at `$.rates`"),
    ],
)
def test_an_error_names_the_member(verb: str, request_: str, error: str) -> None:
    assert extended(PlainDispatcher()).ask(f"{verb} {request_}").decode() == f"-ERR invalid {verb}: {error}\r\n"


@pytest.mark.parametrize("verb", ["FETCHB", "ACKB", "SNOOZE", "EXTEND", "CANCEL", "RESULT", "SCHEDULE"])
@pytest.mark.parametrize("text", ["", " ", " x", ' {"jids":', " " + "[" * 2_000, " " + "{" * 20_000])
def test_unreadable_bodies_are_refused(verb: str, text: str) -> None:
    peer = extended(PlainDispatcher())
    assert peer.ask(verb + text).startswith(b"-ERR invalid " + verb.encode())
    assert peer.ask("INFO").startswith(b"$")


def test_text_that_is_not_utf8_is_refused() -> None:
    peer = extended(PlainDispatcher())
    for line in (
        b'ACK {"jid":"a","result":"\xff"}',
        b'ACKB [{"jid":"a","result":"\xff"}]',
        b'CANCEL {"jids":["\xff"]}',
    ):
        peer.send(line + b"\r\n")
        assert peer.take().startswith(b"-ERR invalid ")
