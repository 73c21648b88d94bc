"""A port that stays a server's own, also while the server is not there."""

import socket


def hold_port() -> socket.socket:
    """While this socket is open nobody else is given its port; whoever asks for it by its number, and allows the reuse
    of addresses as all servers do, may listen there."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held
