"""Names of commands in the debug log: of every protocol, without arguments."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.protocols.rejection_delay import Long
from crossdock.server.connection_log import command_name


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (b'PUSH {"jid":"secret"}', "PUSH"),
        (b'HELLO {"pwdhash":"secret"}', "HELLO"),
        (b'{"do":"queues","after":"secret"}', "queues"),
        (b'{"secret": 1}', "unknown"),
        ([b"AUTH", b"secret"], "AUTH"),
        ([b"FCALL", b"qless", b"0", b"put", b"secret"], "FCALL put"),
        ([b"EVALSHA", b"0" * 40, b"2", b"secret", b"secret"], "EVALSHA"),
        (([b"add", b"secret"], {}, b"secret"), "add"),
        (Long(b"PUSH secret", 0.1), "PUSH"),
        (b"\x1b[31m secret", "unknown"),
        (None, "unknown"),
        ([], "unknown"),
    ],
)
def test_only_the_name_is_shown(request_: Any, name: str) -> None:
    assert command_name(request_) == name


@given(st.binary() | st.lists(st.binary(), max_size=5) | st.none())
def test_any_request_has_a_harmless_name(request_: Any) -> None:
    assert command_name(request_).isprintable() and len(command_name(request_)) <= 65
