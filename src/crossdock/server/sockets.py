"""The sockets that doors listen on: a dead server's is cleared away, and a dead peer is noticed."""

import socket
from pathlib import Path


def remove_dead(path: Path) -> None:
    """A server that was killed leaves its socket behind. A live one answers, and another kind of file is not ours."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()


def notice_dead_peers(sock: socket.socket) -> None:
    """A peer that vanished is noticed within a minute. Accepted sockets inherit this."""
    if sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000)
