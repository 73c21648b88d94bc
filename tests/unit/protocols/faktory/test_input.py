"""Each kind of odd input is either accepted and returned unchanged, or refused with the documented error."""

import json
import tracemalloc

import pytest

from tests.support.conversation import ClockedFaktory, Conversation, say, worker
from tests.support.dispatcher import PlainDispatcher
from tests.support.resp import body

OK = b"+OK\r\n"


@pytest.fixture
def peer(dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> Conversation:
    return worker(dispatcher, protocol, "w")


def deep(n: int) -> bytes:
    return b"[" * n + b"]" * n


#: args that are valid JSON. They are returned byte for byte.
TAKEN = {
    "10,000 digits": b"[" + b"9" * 10_000 + b"]",
    "a double that overflows": b"[1e200000, -1E+200000, 1e-200000]",
    "negative zero": b"[-0, -0.0, 0.0, 0e0]",
    "integers beyond 2^53": b"[12345678901234567890, -9223372036854775809, 9007199254740993]",
    "an escaped NUL": rb'["\u0000"]',
    "escaped CRLF": rb'["\r\n", "\u000d\u000a"]',
    "a surrogate pair": rb'["\ud83d\ude00", "\uD83D\uDE00"]',
    "duplicate keys": b'[{"a":1,"a":2}]',
    "HTML": b'["<script>&amp;</script>", "\xe2\x80\xa8\xe2\x80\xa9"]',
    "escaped slashes": rb'["<\/b>", "\/"]',
    "DEL": b'["\x7f"]',
    "a BOM within a string": b'["\xef\xbb\xbf"]',
    "noncharacters": b'["\xef\xbf\xbf\xf4\x8f\xbf\xbf"]',
    "depth 64": deep(64),
    "brackets in strings": b'["' + b"[{" * 100 + b'"]',
    "blanks everywhere": b'[ 1 ,\t{ "a" : [ ] } , \r "b" ]',
    "an empty key": b'[{"":{"":[]}}]',
    "the text of an envelope": b'["\\",\\"jid\\":\\"x"]',
    "a long string": b'["' + b"x" * 100_000 + b'"]',
    "100,000 elements": b"[" + b"0," * 99_999 + b"0]",
}

#: args that are not valid JSON. They are refused, and nothing is stored.
REFUSED = {
    "depth 65": deep(65),
    "depth 65 in objects": b"[" + b'{"a":' * 64 + b"1" + b"}" * 64 + b"]",
    "depth 100,000": deep(100_000),
    "unclosed depth 100,000": b"[" * 100_000,
    "NaN": b"[NaN]",
    "Infinity": b"[Infinity, -Infinity]",
    "a raw NUL": b'["\0"]',
    "a raw control character": b'["\x1f"]',
    "a raw TAB in a string": b'["\t"]',
    "a lone high surrogate": rb'["\ud800"]',
    "a lone low surrogate": rb'["\udc00"]',
    "a reversed pair": rb'["\udc00\ud800"]',
    "an encoded surrogate": b'["\xed\xa0\x80"]',
    "invalid UTF-8": b'["\xff"]',
    "overlong UTF-8": b'["\xc0\xaf"]',
    "UTF-8 cut short": b'["\xe2\x82"]',
    "beyond Unicode": b'["\xf4\x90\x80\x80"]',
    "an unknown escape": rb'["\x41"]',
    "an escape cut short": rb'["\u00"]',
    "a leading zero": b"[01]",
    "a leading plus": b"[+1]",
    "a bare point": b"[1.]",
    "no digit before the point": b"[.5]",
    "hexadecimal": b"[0x1F]",
    "an underscore": b"[1_000]",
    "single quotes": b"['a']",
    "a comment": b"[1/**/]",
    "a trailing comma": b"[1,]",
    "a missing comma": b"[1 2]",
    "an unquoted key": b"[{a:1}]",
    "a number as key": b"[{1:2}]",
    "a vertical tab": b"[\v1]",
    "a no-break space": b"[\xc2\xa01]",
    "a word": b"[none]",
    "an object": b'{"0":1}',
    "a string": b'"[]"',
    "a number": b"1",
    "nothing": b"",
    "two values": b"[][]",
}


@pytest.mark.parametrize("args", TAKEN.values(), ids=TAKEN)
def test_valid_args_are_accepted_unchanged(peer: Conversation, args: bytes) -> None:
    custom = b'{"c":%b}' % args if args != deep(64) else b"{}"
    assert say(peer, b'PUSH {"jid":"12345678","jobtype":"T","args":%b,"custom":%b}' % (args, custom)) == OK
    shown = body(say(peer, b"FETCH default"))
    assert shown.endswith(b'"args":%b}' % args)
    assert (b'"custom":%b,"jid"' % custom in shown) is (custom != b"{}")


@pytest.mark.parametrize("args", REFUSED.values(), ids=REFUSED)
def test_invalid_args_are_refused(dispatcher: PlainDispatcher, peer: Conversation, args: bytes) -> None:
    for line in (
        b'PUSH {"jid":"12345678","jobtype":"T","args":%b}' % args,
        b'PUSH {"jid":"12345678","jobtype":"T","args":[],"custom":{"c":%b}}' % args
        if args[:1] == b"[" and args != deep(65)
        else b'PUSH {"jid":"12345678","jobtype":"T","args":[],"custom":%b}' % (args if args[:1] != b"{" else b"[]"),
    ):
        assert say(peer, line).startswith(b"-ERR invalid JSON: ")
    assert not dispatcher.state.jobs


@pytest.mark.parametrize("args", REFUSED.values(), ids=REFUSED)
def test_invalid_args_are_refused_in_bulk(dispatcher: PlainDispatcher, peer: Conversation, args: bytes) -> None:
    """No such job is accepted, whether the decoder or the job's check refuses it."""
    said = say(peer, b'PUSHB [{"jid":"12345678","jobtype":"T","args":%b}]' % args)
    assert b"invalid JSON: " in said
    assert not dispatcher.state.jobs


@pytest.mark.parametrize(
    "wrong", [b"\xef\xbb\xbf{}", b"{}\0", b"{} {}", b"null", b"[]", b"1", b'"x"', b"", b"\xff", b"{"]
)
@pytest.mark.parametrize(
    ("verb", "answer"),
    [
        (b"PUSH", b"-ERR invalid JSON: "),
        (b"ACK", b"-ERR invalid ACK "),
        (b"FAIL", b"-ERR invalid FAIL "),
        (b"BEAT", b"-ERR invalid BEAT "),
        (b"MUTATE", b"-ERR invalid format"),
    ],
)
def test_bodies_that_are_not_objects_are_refused(peer: Conversation, verb: bytes, answer: bytes, wrong: bytes) -> None:
    assert say(peer, verb + b" " + wrong).startswith(answer)


@pytest.mark.parametrize("verb", [b"ACK", b"FAIL", b"BEAT"])
@pytest.mark.parametrize("text", [b'{"jid":"%b"}' % (b"x" * 100_000), b'{"jid":%b}' % deep(100_000), b"x" * 100_000])
def test_input_quoted_in_errors_is_limited(peer: Conversation, verb: bytes, text: bytes) -> None:
    assert len(say(peer, verb + b" " + text)) < 5_000


@pytest.mark.parametrize("field", ["retry", "backtrace", "reserve_for"])
def test_integers_are_kept_up_to_64_bits(peer: Conversation, field: str) -> None:
    for value in (-(2**63), -1) if field == "reserve_for" else (-(2**63), 2**63 - 1):
        assert say(peer, b'PUSH {"jid":"12345678","jobtype":"T","args":[],"%b":%d}' % (field.encode(), value)) == OK
        assert json.loads(body(say(peer, b"FETCH default")))[field] == value
    for value in (-(2**63) - 1, 2**63, 10**4_000, 10**5_000):
        refused = b'PUSH {"jid":"12345678","jobtype":"T","args":[],"%b":%b}' % (field.encode(), _digits(value))
        assert say(peer, refused).startswith(b"-ERR invalid JSON: ")


@pytest.mark.parametrize(
    ("priority", "shown"),
    [
        (b"0", b"1"),
        (b"-0", b"1"),
        (b"10", b"9"),
        (b"9" * 5_000, b"9"),
        (b"-" + b"9" * 5_000, b"1"),
        (b" 7 ", b"7"),
        (b"1e400", b""),
        (b"5e0", b""),
        (b"null", b""),
        (b"true", b""),
        (b'""', b""),
        (b'"5"', b""),
        (b'{"5":5}', b""),
    ],
)
def test_a_priority_that_is_not_an_integer_is_ignored_and_any_other_is_limited(
    peer: Conversation, priority: bytes, shown: bytes
) -> None:
    assert say(peer, b'PUSH {"jid":"12345678","jobtype":"T","args":[],"priority":%b}' % priority) == OK
    said = body(say(peer, b"FETCH default"))
    assert (b'"priority":%b,' % shown in said) if shown else b"priority" not in said


@pytest.mark.parametrize("job", [b'"priority":%b', b'"custom":{"uid":%b}'])
def test_a_large_list_in_an_ignored_field_is_not_decoded(peer: Conversation, job: bytes) -> None:
    line = b'PUSH {"jid":"12345678","jobtype":"T","args":[],%b}' % job % (b"[" + b"[]," * 500_000 + b"[]]")
    tracemalloc.start()
    try:
        assert say(peer, line) == OK
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 10 * len(line)


def _digits(value: int) -> bytes:
    """Python refuses to print more than 4,300 digits."""
    return b"1" + b"0" * 5_000 if value == 10**5_000 else str(value).encode()
