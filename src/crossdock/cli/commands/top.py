"""`crossdock top`: a live view of the server in the terminal."""

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click
from rich.console import Console
from rich.live import Live

from crossdock.cli.options import AdminCommand, server
from crossdock.cli.output import print_json
from crossdock.cli.parameters import Seconds
from crossdock.cli.render.top import Seen, view
from crossdock.client.admin import AdminClient

_EXAMPLES = """\b
Examples:
  crossdock top
  crossdock top --every 0.5
  crossdock top --once
  crossdock top --json
"""

_ROWS = 200
_PIPE_WIDTH = 160


@click.command("top", cls=AdminCommand, epilog=_EXAMPLES)
@click.option("--every", type=Seconds(0.1, 60), default=1.0, metavar="SECONDS", help="Seconds between updates. [1]")
@click.option("--once", is_flag=True, help="Print one picture and exit.")
def top(every: float, once: bool, as_json: bool, **values: Any) -> None:
    """Show live rates, queues and workers.

    Rates and sync times are averages of the last ten seconds, the rates of queues of the last minute. q or Ctrl-C
    leaves. If the output is not a terminal, it prints one picture, as with --once.
    """
    with server(values) as client:
        if as_json:
            print_json(_seen(client)._asdict())
        elif once or not sys.stdin.isatty() or not sys.stdout.isatty():
            console = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)
            console.print(view(_seen(client), None, console.width))
        else:
            _watch(client, every)


def _seen(client: AdminClient) -> Seen:
    """Three cheap requests. None of them iterates over queued jobs."""
    return Seen(
        client.ask("status")["status"],
        client.ask("queues", by="ready", limit=_ROWS)["queues"],
        client.ask("workers", limit=_ROWS)["workers"],
    )


def _watch(client: AdminClient, every: float) -> None:
    console = Console()
    with _keys() as is_quit, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(view(_seen(client), console.height, console.width), refresh=True)
            if is_quit(every):
                return


@contextmanager
def _keys() -> Iterator[Callable[[float], bool]]:
    """Reads single keys without echo, and restores the terminal at the end. The yielded function waits for a key and
    returns whether it was q."""
    try:
        import termios
        import tty
    except ModuleNotFoundError:  # Windows, where Ctrl-C is the only way to leave
        with suppress(KeyboardInterrupt):
            yield _no_key
        return
    keyboard = sys.stdin.fileno()

    def is_quit(wait_s: float) -> bool:
        pressed, _, _ = select.select([keyboard], [], [], wait_s)
        return bool(pressed) and os.read(keyboard, 64)[:1] in (b"q", b"Q", b"")

    before = termios.tcgetattr(keyboard)
    tty.setcbreak(keyboard)
    try:
        yield is_quit
    except KeyboardInterrupt:
        pass  # Ctrl-C leaves too
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _no_key(wait_s: float) -> bool:
    time.sleep(wait_s)
    return False
