"""The part of a process that a server keeps beside itself (server/child.py): it ends with the server."""

import os
import threading


def end_with_server() -> None:
    """From now on: when its stdin ends, which the server holds open."""
    threading.Thread(target=_watch, daemon=True).start()


def _watch() -> None:
    # Not through sys.stdin: its lock, held by this thread, would make the interpreter abort when the work is done.
    while os.read(0, 4_096):
        pass
    os._exit(1)
