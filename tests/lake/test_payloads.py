"""Redaction: fields that the settings name are never in the lake, in any spelling."""

import json
from hashlib import sha256

import pytest

from crossdock.lake.redaction import Payloads

REDACTING = Payloads("full", ["password", "Token", "schlüssel"])


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        (b'{"password":"x","a":1}', {"password": "[redacted]", "a": 1}),
        (b'[{"user":{"PassWord":{"deep":"x"}}}, 2]', [{"user": {"PassWord": "[redacted]"}}, 2]),
        (b'[{"p\\u0061ssword": "x"}]', [{"password": "[redacted]"}]),
        (b'{"token":[1,2],"tokens":3}', {"token": "[redacted]", "tokens": 3}),
        ('{"SCHLÜSSEL":"x"}'.encode(), {"SCHLÜSSEL": "[redacted]"}),
    ],
)
def test_named_fields_are_redacted_at_any_depth_and_in_any_case(payload: bytes, shown: object) -> None:
    found, hashed = REDACTING.shown(payload)
    assert found is not None and json.loads(found) == shown
    assert hashed is None


@pytest.mark.parametrize(
    "payload", [b'{"a" : 1.50,  "b":"the password"}', b"[12345678901234567890123]", b"plain", '"größe"'.encode(), b""]
)
def test_a_payload_without_a_redacted_field_is_unchanged(payload: bytes) -> None:
    if payload == b"":
        assert REDACTING.shown(b"") == (b"", None)
    else:
        assert REDACTING.shown(payload) == (payload, None)


@pytest.mark.parametrize("payload", [b"password=x", b'{"password": "x"', b"\xff token", b"[" * 100_000 + b'"token"'])
def test_a_payload_that_is_not_json_is_left_out(payload: bytes) -> None:
    assert REDACTING.shown(payload) == (None, None)


def test_payloads_may_be_hashed_or_left_out() -> None:
    assert Payloads("hash").shown(b"[1]") == (None, sha256(b"[1]").hexdigest())
    assert Payloads("none").shown(b"[1]") == (None, None)
    assert Payloads("full").shown(b"\xff\x00") == (b"\xff\x00", None)


def test_custom_data_is_redacted_like_the_payload() -> None:
    assert REDACTING.custom(b'{"token":"x"}') == b'{"token":"[redacted]"}'
    assert Payloads().custom(b'{"a":1}') == b'{"a":1}'
    assert Payloads("hash").custom(b'{"a":1}') is None
    assert Payloads().custom(b"") is None
