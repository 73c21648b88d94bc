"""Whether anybody is at the address that `--master` names. Spark's own clients try for minutes before they say so, and
one of Connect that is interrupted meanwhile does not end."""

import socket
from typing import Final
from urllib.parse import urlsplit

from crossdock.pipeline.errors import PipelineError

#: Where the two listen if the address does not say.
_PORTS: Final = {"spark": 7077, "sc": 15002}
_PATIENCE_S: Final = 10.0


def check_master(master: str) -> None:
    """Raises PipelineError if it is a standalone cluster's or a Connect server's, and nobody answers there."""
    scheme, _, rest = master.partition("://")
    if scheme not in _PORTS:
        return
    refused = ""
    for address in rest.partition("/")[0].split(","):  # a cluster may have several masters, one of which serves
        try:
            parts = urlsplit(f"//{address}")
            socket.create_connection((parts.hostname or "", parts.port or _PORTS[scheme]), _PATIENCE_S).close()
            return
        except (OSError, ValueError) as error:
            refused = refused or str(getattr(error, "strerror", None) or error)
    raise PipelineError(f"nobody answers at {master} ({refused}): start it, or name another by --master")
