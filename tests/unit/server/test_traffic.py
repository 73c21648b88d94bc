"""Commands and error replies, counted by protocol."""

from collections.abc import Callable

import pytest

from crossdock.protocols.base import WireProtocol
from crossdock.protocols.faktory.protocol import FaktoryProtocol
from crossdock.protocols.masenko.protocol import MasenkoProtocol
from crossdock.protocols.redis.protocol import RedisProtocol
from crossdock.protocols.workq.protocol import WorkqProtocol
from tests.support.control_peer import admin_protocol
from tests.support.socketless_server import SocketlessServer

#: How to make the protocol, its handshake, a right request, a wrong one, and whether the wrong one is a command.
_REQUESTS: dict[str, tuple[Callable[[], WireProtocol], bytes, bytes, bytes, bool]] = {
    "faktory": (FaktoryProtocol, b'HELLO {"v":2}\r\n', b"INFO\r\n", b"NONSENSE\r\n", False),
    "redis": (RedisProtocol, b"", b"PING\r\n", b"NONSENSE\r\n", False),
    "workq": (WorkqProtocol, b"", b"inspect server\r\n", b"delete x\r\n", True),
    "masenko": (MasenkoProtocol, b"", b"PING\n", b"NONSENSE\n", True),
    "admin": (admin_protocol, b"", b'{"do":"status"}\n', b'{"do":"nonsense"}\n', True),
}


@pytest.mark.parametrize("name", list(_REQUESTS))
@pytest.mark.parametrize("pipelined", [False, True])
def test_commands_and_errors_are_counted(name: str, pipelined: bool) -> None:
    make, hello, right, wrong, counts_wrong = _REQUESTS[name]
    protocol = make()
    server = SocketlessServer(protocol)
    connection, _ = server.connect()
    if hello:
        connection.data_received(hello)
        server.sync()
    for data in [right + wrong + right] if pipelined else [right, wrong, right]:
        connection.data_received(data)
        server.sync()
    assert (protocol.commands, protocol.errors) == (3 if counts_wrong else 2, 1)
