"""A port that stays reserved for a server while the server is down."""

import socket


def hold_port() -> socket.socket:
    """Reserve a free port while this socket is open.

    The system assigns the port to no other process. A server that requests it by number and sets SO_REUSEADDR, as all
    servers do, can listen on it.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held
