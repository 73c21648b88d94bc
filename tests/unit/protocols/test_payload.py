"""A payload through a door it did not come by (MODEL section 9)."""

import pytest

from crossdock.model.job import Form, Job
from crossdock.model.policies import Policy
from crossdock.model.states import State
from crossdock.protocols.payload import as_args, as_bytes, as_value


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
def test_each_form(payload: bytes, form: Form, raw: bytes, value: bytes, args: bytes) -> None:
    one = job(payload, form)
    assert (as_bytes(one), as_value(one), as_args(one)) == (raw, value, args)
