"""Depth and compact form of JSON, and a payload as other protocols show it (model.md section 9)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.model.job import Form, Job
from crossdock.model.policies import Policy
from crossdock.model.states import State
from crossdock.protocols.payload import as_args, as_bytes, as_value, compact, too_deep


def job(payload: bytes, form: Form) -> Job:
    return Job(1, "j", "q", "k", "elsewhere", payload, form, 0, Policy(), State.READY, 0.0, 0.0)


@pytest.mark.parametrize(
    ("payload", "form", "raw", "value", "args"),
    [
        (b"pong", Form.RAW, b"pong", b'"pong"', b'["pong"]'),
        (b"", Form.RAW, b"", b'""', b'[""]'),
        (b'say "hi"\r\n\0', Form.RAW, b'say "hi"\r\n\0', rb'"say \"hi\"\r\n\u0000"', rb'["say \"hi\"\r\n\u0000"]'),
        ("grüße".encode(), Form.RAW, "grüße".encode(), '"grüße"'.encode(), '["grüße"]'.encode()),
        (b"\xff\x00", Form.RAW, b"\xff\x00", b'{"base64":"/wA="}', b'[{"base64":"/wA="}]'),
        (b'[1, "a  b", 1.0]', Form.JSON, b'[1,"a  b",1.0]', b'[1, "a  b", 1.0]', b'[1, "a  b", 1.0]'),
        (b'{"a": [1]}', Form.JSON, b'{"a":[1]}', b'{"a": [1]}', b'[{"a": [1]}]'),
        (b"12345678901234567890.10", Form.JSON, b"12345678901234567890.10", b"12345678901234567890.10",
         b"[12345678901234567890.10]"),
        (b"", Form.NONE, b"", b"null", b"[]"),
    ],
)  # fmt: skip
def test_each_form_is_shown_to_each_protocol(payload: bytes, form: Form, raw: bytes, value: bytes, args: bytes) -> None:
    one = job(payload, form)
    assert (as_bytes(one), as_value(one), as_args(one)) == (raw, value, args)


#: Strings that could be mistaken for structure.
tricky = st.text(alphabet='ab[]{}"\\ ,:\t\n\u00e4', max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | tricky,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(tricky, inner, max_size=3),
    max_leaves=30,
)


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


def texts(value: Any) -> list[bytes]:
    """The same value in several spellings."""
    return [
        json.dumps(value, **how).encode()
        for how in ({}, {"indent": 3}, {"ensure_ascii": False}, {"separators": (" ,\r ", "\t:\n")})
    ]


@given(values, st.integers(0, 6))
def test_too_deep(value: Any, limit: int) -> None:
    for text in texts(value):
        assert too_deep(text, limit) is (depth(value) > limit)


@given(values)
def test_compact(value: Any) -> None:
    escaped, indented, plain, odd = texts(value)
    dense = json.dumps(value, separators=(",", ":"))
    assert compact(escaped) == compact(indented) == compact(odd) == dense.encode()
    assert compact(plain) == json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def test_compact_keeps_the_spelling() -> None:
    text = rb'{ "a\u0020 \\" : 1.0e+3 , "\\\" b" : [ "\\\\" , "" , " \" " , -0.0 ] }'
    assert compact(text) == rb'{"a\u0020 \\":1.0e+3,"\\\" b":["\\\\",""," \" ",-0.0]}'


@pytest.mark.parametrize("limit", [1, 2, 64])
def test_the_limit_itself_is_allowed(limit: int) -> None:
    for opening, closing in ((b"[", b"]"), (b'{"":', b"}")):
        at, over = (opening * n + b"0" + closing * n for n in (limit, limit + 1))
        assert not too_deep(at, limit)
        assert too_deep(over, limit)


def test_siblings_do_not_count_as_depth() -> None:
    assert not too_deep(b"[" + b"[[]]," * 10_000 + b"[]]", 3)
    assert too_deep(b"[" + b"[[]]," * 10_000 + b"[[[]]]]", 3)


def test_long_strings_are_quick() -> None:
    """A regular expression took 2 GiB for the first of these. The test asserts nothing but its own time."""
    long = 4 * 1024 * 1024
    for text in (b'["' + b"[" * long + b'"]', b'["' + b'\\"[' * long + b'"]', b'["' + b"\\\\" * long + b'",[]]'):
        assert not too_deep(text, 2)
        assert compact(text) == text
