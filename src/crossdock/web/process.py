"""The web process: `python -m crossdock.journal.child_process LOG crossdock.web.process`, with its options on stdin."""

import os
import socket
import sys

import uvicorn

from crossdock.journal.child_process import end_with_server
from crossdock.web.app import create_app
from crossdock.web.options import WebOptions, decode
from crossdock.web.traffic import Traffic

#: Longest options line. A pipe holds this much, so the server never waits for this process to read it.
_OPTIONS_BYTES = 65_536


def _read_options() -> WebOptions:
    """Read by the descriptor: a buffered reader would take what `end_with_server` waits for."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte or len(line) > _OPTIONS_BYTES:
            sys.exit(1)
        line += byte
    return decode(line)


def main() -> None:
    options = _read_options()
    end_with_server()
    traffic = Traffic()
    config = uvicorn.Config(
        create_app(options, traffic),
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_graceful_shutdown=1,
        limit_concurrency=512,
        ssl_certfile=options.tls_cert or None,
        ssl_keyfile=options.tls_key or None,
        proxy_headers=False,
        ws="none",
    )
    server = uvicorn.Server(config)
    traffic.open = server.server_state.connections
    server.run(sockets=[socket.socket(fileno=options.descriptor)])


if __name__ == "__main__":
    main()
