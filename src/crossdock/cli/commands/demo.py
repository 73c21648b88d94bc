"""`crossdock demo`: a server with jobs of every state, to look at."""

import signal
import threading
from typing import Any, Final

import click

from crossdock.cli.demo import shop
from crossdock.cli.demo.clients import Connect, Threads
from crossdock.cli.demo.server import DemoFailed, DemoServer
from crossdock.cli.demo.workers import Workers
from crossdock.cli.extras import expect_server

_EXAMPLES = """\b
Examples:
  crossdock demo
  crossdock demo --http 127.0.0.1:7420
"""

#: Seconds between two checks that the server still runs.
_CHECK_S: Final = 1.0
#: Seconds for the clients to end.
_JOIN_S: Final = 3.0


@click.command("demo", epilog=_EXAMPLES)
@click.option("--http", metavar="ADDRESS", default="127.0.0.1:0", help="Address of the dashboard. [a free port]")
@click.option("--seed", metavar="N", type=int, default=1, help="Seed of the random choices. [1]")
def demo(http: str, seed: int) -> None:
    """Run a server with example jobs, to look at the dashboard.

    The server listens on free ports of this machine, and its data is in a temporary folder. Clients and workers of all
    five protocols push and execute a few jobs a second. Ctrl-C stops everything and removes the folder.
    """
    expect_server()
    stopped = threading.Event()

    def stop(signum: int, frame: Any) -> None:
        stopped.set()

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, stop)
    with DemoServer(http) as server:
        threads = Threads()
        try:
            connect = Connect(server)
            shop.start(threads, connect, seed)
            Workers(threads, connect, seed).start()
            _announce(server)
            while not stopped.wait(_CHECK_S):
                if not server.runs:
                    raise DemoFailed("the demo's server has ended")
        finally:
            threads.join(_JOIN_S)
    click.echo("The demo has ended, and its folder is removed.")


def _announce(server: DemoServer) -> None:
    lines = [
        "Crossdock demo: a shop that uses all five protocols",
        f"  dashboard   {server.dashboard}",
        f"  data        {server.data}",
        f"  log         {server.log}",
        "",
        "In another terminal:",
        f"  crossdock top --data {server.data}",
        f"  crossdock job list --state dead --data {server.data}",
        "",
        "Stop with Ctrl-C. The data is removed then.",
    ]
    click.echo("\n".join(lines))
