"""How a connection reads: one read is parsed piece by piece, between requests of other connections."""

from crossdock.protocols.redis.protocol import RedisProtocol
from crossdock.server.flow_control import PIECE
from tests.support.resp_requests import resp_request
from tests.support.socketless_server import SocketlessServer


def test_a_pipeline_is_parsed_in_chunks_between_requests_of_others() -> None:
    server = SocketlessServer(RedisProtocol())
    (flood, answers), (other, answer) = server.connect(), server.connect()
    reading: list[bool] = []
    answers.pause_reading = lambda: reading.append(False)  # type: ignore[method-assign]
    answers.resume_reading = lambda: reading.append(True)  # type: ignore[method-assign]
    flood.data_received(b"".join(resp_request(b"ECHO", [b"%d" % n]) for n in range(10_000)))
    other.data_received(resp_request(b"PING", []))
    while not answer.heard:
        server.loop.step()
    assert 0 < answers.heard.count(b"$") < 1_000
    assert reading == [False]
    server.sync()
    assert answers.heard == b"".join(b"$%d\r\n%d\r\n" % (len(str(n)), n) for n in range(10_000))
    assert reading[-1] and len(flood._requests) == 0


def test_input_after_a_closing_request_is_read_piece_by_piece() -> None:
    server = SocketlessServer(RedisProtocol())
    connection, transport = server.connect()
    connection.data_received(b"*x\r\n")
    server.sync()
    assert transport.heard == b"-ERR Protocol error: invalid multibulk length\r\n" and transport.eof
    reading: list[bool] = []
    transport.pause_reading = lambda: reading.append(False)  # type: ignore[method-assign]
    transport.resume_reading = lambda: reading.append(True)  # type: ignore[method-assign]
    connection.data_received(b"x" * 8 * PIECE)
    assert reading == [False]
    server.loop.run()
    assert reading == [False, True]
