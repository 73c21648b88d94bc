"""The child's side of server/child_process.py: a process that ends with its server, and not before.

    python -m crossdock.journal.child_process MODULE ARGUMENT...

A terminal that is closed sends SIGHUP to the server and to its children. It is ignored here before MODULE is imported:
that may take a second, and a signal that is ignored by the server is reset when it starts a process.
"""

import os
import runpy
import signal
import sys
import threading


def end_with_server() -> None:
    """From now on: when its stdin ends, which the server holds open."""
    threading.Thread(target=_watch, daemon=True).start()


def _watch() -> None:
    # Not through sys.stdin: its lock, held by this thread, would make the interpreter abort when the work is done.
    while os.read(0, 4_096):
        pass
    os._exit(1)


def main() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
