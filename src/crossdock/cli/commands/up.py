"""`crossdock up`: run the server until a signal stops it."""

import logging
import os
import resource
import sys
import time
from typing import Any

import click

from crossdock import __version__
from crossdock.cli.options import SettingsCommand, loaded
from crossdock.journal.completeness import begins_empty
from crossdock.journal.data_dir import in_use_by
from crossdock.server.app import Ready, run
from crossdock.settings.address import Address
from crossdock.settings.schema import Settings

_EXAMPLES = """\b
Examples:
  crossdock up
  crossdock up --data /var/lib/crossdock --listen faktory=127.0.0.1:7419
  crossdock up --config /etc/crossdock.toml --server-log warning
  CROSSDOCK_FAKTORY_PASSWORD=… crossdock up --listen faktory=0.0.0.0:7419
\b
Throttles, cron, mapping and objectives can be set in the file only:
  [throttles]
  mail = { concurrency = 10, timeout = 60 }
  [[cron]]
  schedule = "*/5 * * * *"
  job = { type = "sweep", queue = "chores" }
  [mapping.static.default]
  default = "static_1"
  [slo.mail]
  done_within = "5m"
  ratio = 0.99
"""

_PROMISES = {
    "always": "always: synced to disk before each reply",
    "everysec": "everysec: synced once a second; a power cut can lose the last second",
}


@click.command("up", cls=SettingsCommand, epilog=_EXAMPLES)
def up(**values: Any) -> None:
    """Run the server in the foreground.

    Settings come from flags, then CROSSDOCK_* variables, then the file. Passwords have no flag: set
    CROSSDOCK_FAKTORY_PASSWORD, or faktory.password in the file.

    SIGTERM and Ctrl-C stop the server. No acknowledged job is lost, and workers keep their leases across a restart.
    SIGHUP is logged and ignored.
    """
    found = loaded(values)
    _log_to_stderr(found.settings.server.log)
    for warning in found.warnings:
        logging.getLogger("crossdock").warning("%s", warning)
    data = found.settings.server.data
    empty = "" if in_use_by(data) else begins_empty(data)
    if empty:
        logging.getLogger("crossdock").warning("%s", empty)
    raise_descriptor_limit()
    file = str(found.file.absolute()) if found.file else ""
    run(found.settings, lambda ready: announce(found.settings, ready), file, found.sources)


def announce(settings: Settings, ready: Ready) -> None:
    """Print the listeners. Programs parse these lines: two spaces, the protocol, its address."""
    jobs = len(ready.recovered.state.jobs)
    lines = [
        f"Crossdock {__version__}",
        *(f"  {listening.protocol:9} {listening.address}" for listening in ready.listening),
        *(
            f"dashboard   {dashboard_url(settings, each.address)}"
            for each in ready.listening
            if each.protocol == "http"
        ),
        f"data        {settings.server.data.absolute()}",
        f"durability  {_PROMISES[settings.journal.durability]}",
        f"recovered   {jobs:,} {'job' if jobs == 1 else 'jobs'}",
        f"ready       stop with Ctrl-C or kill {os.getpid()}",
    ]
    print("\n".join(lines), flush=True)


def dashboard_url(settings: Settings, where: Address) -> str:
    """What to open in a browser. A wildcard address is reached by the machine's name, which is not known here."""
    if where.path:
        return str(where)
    host = "localhost" if where.host in ("0.0.0.0", "::") else str(where).rpartition(":")[0]
    return f"{'https' if settings.http.tls_cert else 'http'}://{host}:{where.port}/"


def raise_descriptor_limit() -> None:
    """Each connection needs a descriptor. The soft limit is often 1,024, the hard limit far higher."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _log_to_stderr(level: str) -> None:
    formatter = logging.Formatter("%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(level=level.upper(), handlers=[handler])
