"""The admin socket of an engine without a server, for programs that connect to a data folder."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crossdock.protocols.admin.socket_path import reachable
from tests.support.control_peer import ControlPeer


@contextmanager
def admin_socket(folder: Path, peer: ControlPeer) -> Iterator[None]:
    """Serve the peer's session to every connection. Requests are handled one at a time."""
    turn = threading.Lock()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                request: dict[str, Any] = json.loads(line)
                with turn:
                    answer = peer.ask(request.pop("do"), **request)
                self.wfile.write(json.dumps(answer).encode() + b"\n")

    class Listener(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True
        block_on_close = False

    with reachable(folder) as path, Listener(path, Handler) as listener:
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield
        finally:
            listener.shutdown()
            thread.join()
