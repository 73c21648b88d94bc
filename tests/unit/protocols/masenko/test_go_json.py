"""JSON as Go reads it: requests, Go's error texts, and payloads in their original spelling (masenko.md sections 1.1 and
3.4)."""

import json
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crossdock.model.job import Form
from crossdock.protocols.masenko import commands, push
from crossdock.protocols.masenko.go_json import TOO_DEEP, NotJson, WrongType, complaint, members
from crossdock.protocols.masenko.messages import InvalidRequest, go_quote, normal, quote
from tests.support.json_spellings import spellings

NOT_READ = "cannot unmarshal payload"


class TestPush:
    @pytest.mark.parametrize(
        "body",
        [
            b'{"name":"a","queue":"q","retry":3}',
            b'{"NAME":"a","Queue":"q","rETRY":3}',
            '{"name":"a","queue":"q","retry":3,"\u212a":1}'.encode(),
            b' {"name":"x","Name":"y","name":"a","queue":"q","retry":3} ',
            b'{"name":"a","Name":null,"queue":"q","queue":null,"retry":3,"retry":null}',
            b'{"name":"a","queue":"q","retry":3,"more":{"name":"z"},"deadqueue":null,"execute_at":null}',
            b'\t{"name":"a" ,"queue" :"q","retry": 3, "payload_":[1,{"x":[]}]}\r',
            rb'{"n\u0061me":"a","queue":"q","retry":3}',
            b'{"name":"a","queue":"q","retry":3,"blocked_by":null}',
        ],
    )
    def test_keys(self, body: bytes) -> None:
        spec = push.read(body).spec
        assert (spec.kind, spec.queue, spec.policy.max_failures) == ("a", "q", 3)
        assert (spec.form, spec.payload, spec.due, spec.extra) == (Form.NONE, b"", 0.0, None)

    def test_defaults(self) -> None:
        spec = push.read(b'{"name":"a"}').spec
        assert (spec.queue, spec.policy.max_failures, spec.form) == ("default", 20, Form.NONE)
        assert push.read(b'{"name":"a","queue":""}').spec.queue == "default"

    @pytest.mark.parametrize(
        "body",
        [b"", b" ", b"{", b"[]", b"1", b'"x"', b"true", b"{}{}", b'{"name":1}', b'{"name":["a"]}', b'{"queue":{}}']
        + [b'{"name":"a","retry":%b}' % bad for bad in (b"1.0", b'"1"', b"-1", b"256", b"1e1", b"true", b"[]")]
        + [b'{"name":"a","execute_at":%b}' % bad for bad in (b'""', b"1", b'"2027-01-01T00:00:00"', b'"now"', b"{}")]
        + [b'{"name":"a","execute_at":"2027-%b"}' % bad for bad in (b"02-30T00:00:00Z", b"01-01t00:00:00z", b"1-1")]
        + [b'{"name":"a","blocked_by":%b}' % bad for bad in (b"1", b"[1.0]", b'["1"]', b"{}", b"[[1]]", b"[1e2]")]
        + [b'{"name":"a","blocked_by":[9223372036854775808]}', b'{"name":"a","payload":[1,]}', b'{"name":"a",}']
        + [b'{"name":"a","payload":%b}' % (b"[" * n + b"]" * n) for n in (65, 100_000)]
        + [b'{"name":"a"}\0', b"\xef\xbb\xbf{}", b'{"name":"a\x01"}', b"{'name':'a'}", b'{"name":"a" "retry":1}']
        + [b'{"Name":"a","Retry":NaN}', b'{"Name":"a","x":Infinity}', b'{"Name":"a",}', b'{"Name":"a"'],
    )
    def test_not_read(self, body: bytes) -> None:
        with pytest.raises(InvalidRequest, match=f"^{NOT_READ}$"):
            push.read(body)

    @pytest.mark.parametrize(
        ("text", "due"),
        [
            ("2027-01-01T00:00:00Z", 1_798_761_600.0),
            ("2027-01-01T01:00:00+01:00", 1_798_761_600.0),
            ("2026-12-31T22:30:00.5-01:30", 1_798_761_600.5),
            ("2027-01-01T00:00:00.123456789Z", 1_798_761_600.123456),
            ("0001-01-01T00:00:00Z", 0.0),
        ],
    )
    def test_execute_at(self, text: str, due: float) -> None:
        for key in ("execute_at", "EXECUTE_AT"):
            assert push.read(json.dumps({"name": "a", key: text}).encode()).spec.due == due

    @pytest.mark.parametrize(
        ("body", "why"),
        [
            (b"{}", 'invalid task name ""'),
            (b'{"name":"!!!"}', 'invalid task name "!!!"'),
            (rb'{"name":"\"\\\u0000\n\u2028\ud83d\ude00"}', r'invalid task name "\"\\\x00\n\u2028😀"'),
            ('{"name":"ü"}'.encode(), 'invalid task name "ü"'),
            (b'{"name":"\xff"}', 'invalid task name "\ufffd"'),
            (rb'{"name":"\ud800"}', 'invalid task name "\ufffd"'),
            (b'{"queue":" "}', 'invalid queue name " "'),
            (b'{"queue":"!","deadqueue":"q","name":"a"}', 'invalid queue name "!"'),
            (b'{"queue":"q","deadqueue":"!","name":""}', 'invalid queue name "q"'),
            (b'{"name":"a","blocked_by":[' + b"1," * 255 + b"1]}", "at most 255 blocked by task IDs can be provided"),
        ],
    )
    def test_refused(self, body: bytes, why: str) -> None:
        with pytest.raises(InvalidRequest) as refused:
            push.read(body)
        assert str(refused.value) == why

    @pytest.mark.parametrize("name", ["a b!", "!-", "0", "_", "ü-", "a\n", "\0a"])
    def test_one_valid_character_is_enough(self, name: str) -> None:
        spec = push.read(json.dumps({"name": name, "queue": name, "deadqueue": name}).encode()).spec
        assert spec.kind == spec.queue == name
        assert spec.extra is not None and spec.extra.deadqueue == name

    @pytest.mark.parametrize(
        ("member", "why"),
        [
            ({"queue": "x" * 256}, "queue name too long"),
            ({"name": "x" * 256}, "task name too long"),
            ({"deadqueue": "x" * 256}, "deadqueue name too long"),
            ({"payload": "x" * 65_534}, "arguments too big"),
            ({"queue": "aä" * 86, "payload": "x" * 65_534}, "queue name too long"),
            ({"queue": "x" * 255, "name": "ä" * 127 + "a", "payload": "x" * 65_533}, ""),
        ],
    )
    def test_sizes(self, member: dict[str, str], why: str) -> None:
        assert push.read(json.dumps({"name": "a"} | member, ensure_ascii=False).encode()).too_big == why

    def test_jids_are_uuids(self) -> None:
        found = {push.read(b'{"name":"a"}').spec.jid for _ in range(100)}
        assert len(found) == 100
        for jid in found:
            assert uuid.UUID(jid).version == 4 and str(uuid.UUID(jid)) == jid


class TestPayload:
    @pytest.mark.parametrize(
        ("sent", "kept"),
        [
            (b'{"a": [1, 2], "b":"<x>"}', rb'{"a":[1,2],"b":"\u003cx\u003e"}'),
            (b"1.50", b"1.50"),
            (b"null", b"null"),
            (b'{"b":1,"a":2,"b":3}', b'{"b":1,"a":2,"b":3}'),
            (rb'"\u00e9\/\"\\ \n"', rb'"\u00e9\/\"\\ \n"'),
            ('"é  &\u2028\u2029 "'.encode(), '"é  \\u0026\\u2028\\u2029 "'.encode()),
            (b'[ "a b" ,\t"c\\" d" , { } ]', b'["a b","c\\" d",{}]'),
            (rb'["\ud800"]', rb'["\ud800"]'),
            (b'["\xff \xfe"]', '["\ufffd \ufffd"]'.encode()),
            ("\u20ac".encode().join([b'"', b'"']), '"€"'.encode()),
        ],
    )
    def test_spelling_is_kept(self, sent: bytes, kept: bytes) -> None:
        for key in (b"payload", b"Payload"):
            spec = push.read(b'{"name":"a", "%b" : %b }' % (key, sent)).spec
            assert (spec.payload, spec.form) == (kept, Form.JSON)

    @given(spellings)
    def test_same_value_and_stable(self, text: str) -> None:
        kept = push.read(b'{"name":"a","payload":%b}' % text.encode()).spec.payload
        assert push.read(b'{"name":"a","PAYLOAD":%b}' % text.encode()).spec.payload == kept
        assert normal(kept) == kept
        assert json.loads(kept, parse_int=str, parse_float=str) == json.loads(text, parse_int=str, parse_float=str)
        assert not set(kept) & set(b"<>&\n\r\t")


class TestAck:
    @pytest.mark.parametrize(
        "body",
        [b'{"id":7}', b' { "id" : 7 } ', b'{"ID":7}', b'{"Id":6,"id":7}', b'{"id":7,"Id":null}', b'{"id":7,"x":[{}]}'],
    )
    def test_read(self, body: bytes) -> None:
        assert commands.read_ack(body, "ack") == 7

    @pytest.mark.parametrize("body", [b"{}", b'{"id":0}', b"null", b'{"id":null}', b'{"x":1}', b" null "])
    def test_missing(self, body: bytes) -> None:
        with pytest.raises(InvalidRequest, match=r"^missing id$"):
            commands.read_ack(body, "ack")

    @pytest.mark.parametrize(
        ("body", "why"),
        [
            (b"", "unexpected end of JSON input"),
            (b"{", "unexpected end of JSON input"),
            (b'{"id":', "unexpected end of JSON input"),
            (b'{"id', "unexpected end of JSON input"),
            (b'{"id":"1"}', "json: cannot unmarshal string into Go struct field ackRequest.id of type uint32"),
            (b'{"id":-1}', "json: cannot unmarshal number -1 into Go struct field ackRequest.id of type uint32"),
            (b'{"id":1.5}', "json: cannot unmarshal number 1.5 into Go struct field ackRequest.id of type uint32"),
            (
                b'{"id":4294967296}',
                "json: cannot unmarshal number 4294967296 into Go struct field ackRequest.id of type uint32",
            ),
            (b'{"id":true,"id":1}', "json: cannot unmarshal bool into Go struct field ackRequest.id of type uint32"),
            (b'{"ID":{}}', "json: cannot unmarshal object into Go struct field ackRequest.id of type uint32"),
            (b"[1]", "json: cannot unmarshal array into Go value of type proto.ackRequest"),
            (b"12", "json: cannot unmarshal number into Go value of type proto.ackRequest"),
            (b'"x"', "json: cannot unmarshal string into Go value of type proto.ackRequest"),
            (b"{x}", "invalid character 'x' looking for beginning of object key string"),
            (b"{}x", "invalid character 'x' after top-level value"),
        ],
    )
    def test_refused(self, body: bytes, why: str) -> None:
        for verb in ("ack", "nack"):
            with pytest.raises(InvalidRequest) as refused:
                commands.read_ack(body, verb)
            assert str(refused.value) == f"unmarshal payload: {why}".replace("ackRequest", f"{verb}Request")

    def test_long_values_in_errors_are_cut(self) -> None:
        with pytest.raises(InvalidRequest) as refused:
            commands.read_ack(b'{"id":%b}' % (b"9" * 100_000), "ack")
        assert len(str(refused.value)) < 5_000


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"x", "'x' looking for beginning of value"),
        (b"\xff", "'ÿ' looking for beginning of value"),
        (b"\x00", r"'\x00' looking for beginning of value"),
        (b"'", r"'\'' looking for beginning of value"),
        (b"[1 2]", "'2' after array element"),
        (b"[,]", "',' looking for beginning of value"),
        (b"[1,]", "']' looking for beginning of value"),
        (b'{"a" 1}', "'1' after object key"),
        (b'{"a":1 "b"}', "'\"' after object key:value pair"),
        (b'{"a":1,}', "'}' looking for beginning of object key string"),
        (b'{"a":}', "'}' looking for beginning of value"),
        (b'{"a":[1,{"b":x}]}', "'x' looking for beginning of value"),
        (b'"a\x01"', r"'\x01' in string literal"),
        (b'"a\tb"', r"'\t' in string literal"),
        (rb'"\x"', "'x' in string escape code"),
        (rb'"\u00g0"', r"'g' in \u hexadecimal character escape"),
        (rb'"\u"', r"""'"' in \u hexadecimal character escape"""),
        (b"tru?", "'?' in literal true (expecting 'e')"),
        (b"nul]", "']' in literal null (expecting 'l')"),
        (b"[fx", "'x' in literal false (expecting 'a')"),
        (b"-x", "'x' in numeric literal"),
        (b"1.x", "'x' after decimal point in numeric literal"),
        (b"1e?", "'?' in exponent of numeric literal"),
        (b"1e+?", "'?' in exponent of numeric literal"),
        (b"1E-?", "'?' in exponent of numeric literal"),
        (b"01", "'1' after top-level value"),
        (b"{} {}", "'{' after top-level value"),
    ],
)
def test_complaint(text: bytes, why: str) -> None:
    assert complaint(text) == f"invalid character {why}"


@pytest.mark.parametrize(
    "text",
    [b"", b" ", b"[", b"[1,", b'{"a', b'{"a"', b'{"a":', b"tr", b"-", b"1.", b"1e", b"1e-", b'"\\', b'"\\u0', b'"'],
)
def test_cut_short(text: bytes) -> None:
    assert complaint(text) == "unexpected end of JSON input"


def test_depth_and_length_are_bounded() -> None:
    assert complaint(b"[" * 10_001) == TOO_DEEP
    assert complaint(b"[" * 5_000 + b"]" * 5_000) == TOO_DEEP  # called only for input that the decoder refused
    assert complaint(b"[" + b"0," * 10_000_000) == "unexpected end of JSON input"


class TestFetch:
    @pytest.mark.parametrize("body", [b"", b"{}", b"null", b" {}", b'{"x":1}', b'{"timeout":"0s","timeout":null}'])
    def test_defaults(self, body: bytes) -> None:
        if b"timeout" in body:
            with pytest.raises(InvalidRequest, match="greater than zero"):
                commands.read_fetch(body)
        else:
            assert commands.read_fetch(body) == (("default",), None)

    @pytest.mark.parametrize(
        ("body", "queues", "timeout"),
        [
            (b'{"queues":["a","b"],"timeout":"2.5s"}', ("a", "b"), 2_500_000_000),
            (b'{"Queues":["a","b"],"TIMEOUT":1}', ("a", "b"), 1),
            (b'{"queues":[],"timeout":9223372036854775807}', (), 2**63 - 1),
            (b'{"queues":null}', (), None),
            (b'{"queues":["",null]}', ("", ""), None),
            (b'{"queues":["\xff"]}', ("\ufffd",), None),
            (b'{"queues":["%b"]}' % (b"x" * 5_000), ("x" * 256,), None),
        ],
    )
    def test_read(self, body: bytes, queues: tuple[str, ...], timeout: int | None) -> None:
        assert commands.read_fetch(body) == (queues, timeout)

    @pytest.mark.parametrize(
        "body",
        [b"{", b"[]", b"1", b'{"queues":"a"}', b'{"queues":[1]}', b'{"queues":{}}', b'{"queues":["a"]}}']
        + [b'{"timeout":%b}' % bad for bad in (b"1.0", b"1e3", b'""', b'"1"', b'"1S"', b"true", b"[]", b"{}")]
        + [b'{"timeout":9223372036854775808}'],
    )
    def test_not_read(self, body: bytes) -> None:
        with pytest.raises(InvalidRequest, match=f"^{NOT_READ}$"):
            commands.read_fetch(body)

    @pytest.mark.parametrize("value", [b"0", b"-1", b"null", b'"0"', b'"-1s"', b'"0s"'])
    def test_time_must_be_given(self, value: bytes) -> None:
        with pytest.raises(InvalidRequest, match=r"^timeout must be greater than zero$"):
            commands.read_fetch(b'{"timeout":%b}' % value)

    def test_many_queues(self) -> None:
        body = json.dumps({"queues": ["q"] * 1_001}).encode()
        with pytest.raises(InvalidRequest, match=r"^FETCH takes at most 1000 queues$"):
            commands.read_fetch(body)


@pytest.mark.parametrize(
    ("read", "body", "why"),
    [
        (push.read, b'{"Name":"a"' + b',"k":0' * 500_000 + b"}", NOT_READ),
        (push.read, b'{"Name":"a"' + b',"k":0' * 40_000 + b"}", NOT_READ),
        (push.read, b'{"Name":"a","blocked_by":[' + b"1," * 100_000 + b"1]}", "at most 255 blocked by"),
        (push.read, b'{"Name":"a","payload":[' + b"[]," * 5_000_000 + b"1]}", NOT_READ),
        (push.read, b'{"name":"a","unknown":[' + b"[]," * 5_000_000 + b"1]}", NOT_READ),
        (
            partial(commands.read_ack, verb="ack"),
            b'{"id":1,"unknown":[' + b"[]," * 5_000_000 + b"1]}",
            "unmarshal payload: ",
        ),
        (commands.read_fetch, b'{"Queues":[' + b'"",' * 80_000 + b'""]}', "FETCH takes at most 1000 queues"),
        (commands.read_fetch, b'{"queues":[' + b'"",' * 5_000_000 + b'""]}', NOT_READ),
        (commands.read_fetch, b'{"timeout":"' + b"1h" * 1_000_000 + b'"}', NOT_READ),
    ],
    ids=["long", "members", "blockers", "payload", "unknown", "settlement", "queues", "many queues", "duration"],
)
def test_the_slow_reader_is_bounded(read: Callable[[bytes], object], body: bytes, why: str) -> None:
    began = time.process_time()
    with pytest.raises(InvalidRequest, match=why):
        read(body)
    assert time.process_time() - began < 0.5


def test_quoting() -> None:
    assert quote('a<b>&\u2028"\\\n') == rb'"a\u003cb\u003e\u0026\u2028\"\\\n"'
    assert go_quote("a\x7f\u00a0\U000e0001") == r'"a\x7f\u00a0\U000e0001"'


_texts = (
    st.binary(max_size=40)
    | spellings.map(str.encode)
    | st.text('{}[]":,\\ude0123456789abcdefntrl.-+ \n"', max_size=30).map(str.encode)
    | st.builds(lambda key, value: f'{{"{key}":{value}}}'.encode(), st.sampled_from(["id", "Name"]), spellings)
)


@given(_texts)
@example(b'{"')
@example(b'{"id":1')
def test_readers_raise_only_the_documented_errors(text: bytes) -> None:
    for read in (push.read, commands.read_fetch, lambda body: commands.read_ack(body, "ack")):
        try:
            read(text)
        except InvalidRequest as refused:
            str(refused).encode()
    with suppress(NotJson, WrongType):
        members(text, ("id",))
    complaint(text)


@given(_texts)
def test_the_slow_reader_accepts_the_same_input_as_python(text: bytes) -> None:
    """The slow reader accepts exactly the objects that are JSON, and `complaint` agrees."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        value = json.loads(text.decode("utf-8", "replace"), parse_constant=refuse)
        sound = True
    except (ValueError, RecursionError):
        value, sound = None, False
    try:
        members(text, ())
        taken = True
    except WrongType:
        taken = True
    except NotJson:
        taken = False
    assert taken is sound
    if not sound and b"\xef\xbb\xbf" not in text:
        assert complaint(text) != TOO_DEEP, value
