"""`crossdock up`: run the server until a signal stops it."""

import logging
import os
import resource
from typing import Any

import click

from crossdock import __version__, logs
from crossdock.cli.options import SettingsCommand, loaded
from crossdock.journal.completeness import begins_empty
from crossdock.journal.data_dir import in_use_by
from crossdock.server.app import Ready, run
from crossdock.settings.address import Address
from crossdock.settings.loading import Loaded
from crossdock.settings.schema import Settings
from crossdock.settings.table import LISTS, TABLE

log = logging.getLogger("crossdock")

_EXAMPLES = """\b
Examples:
  crossdock up
  crossdock up --data /var/lib/crossdock --listen faktory=127.0.0.1:7419
  crossdock up --config /etc/crossdock.toml --server-log warning
  CROSSDOCK_FAKTORY_PASSWORD=… crossdock up --listen faktory=0.0.0.0:7419
\b
Throttles, rate limits, cron, mapping and objectives can be set in the file only:
  [throttles]
  mail = { concurrency = 10, timeout = 60 }
  [rate.welcome]
  kind = "welcome"
  rate = "10/m"
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
    SIGHUP reloads the settings file, as crossdock reload does.
    """
    found = loaded(values)
    server = found.settings.server
    logs.configure(logs.LogOptions(server.log, server.log_format))
    for warning in found.warnings:
        logs.event(log, logging.WARNING, "setting-unknown", warning)
    empty = "" if in_use_by(server.data) else begins_empty(server.data)
    if empty:
        logs.event(log, logging.WARNING, "data-empty", empty)
    raise_descriptor_limit()
    file = str(found.file.absolute()) if found.file else ""

    def on_ready(ready: Ready) -> None:
        log_start(found, ready)
        announce(found.settings, ready)

    run(found.settings, on_ready, file, found.sources, lambda: loaded(values))


def log_start(found: Loaded, ready: Ready) -> None:
    """Log the version, the settings that differ from their defaults, and the listeners. A start that fails has one line
    only, its error."""
    recovered = ready.recovered
    jobs = len(recovered.state.jobs)
    text = f"Crossdock {__version__} has started on {found.settings.server.data.absolute()}"
    fields: dict[str, Any] = {"jobs": jobs, "events": recovered.events, "bytes": recovered.bytes}
    logs.event(log, logging.INFO, "server-started", text, version=__version__, pid=os.getpid(), **fields)
    for name, setting in TABLE.items():
        source = found.sources[name]
        if source != "default":
            value = setting.show(getattr(getattr(found.settings, setting.section), setting.key))
            logs.event(log, logging.INFO, "setting", f"{name} = {value}", setting=name, value=value, source=source)
    for name in sorted(LISTS):
        entries = getattr(found.settings, name)
        if entries != getattr(Settings(), name):
            text = f"{name} is set in {found.file}"
            logs.event(log, logging.INFO, "setting", text, setting=name, source=f"file {found.file}")
    for each in ready.listening:
        text = f"{each.protocol} listens on {each.address}"
        logs.event(log, logging.INFO, "listening", text, protocol=each.protocol, address=str(each.address))


def announce(settings: Settings, ready: Ready) -> None:
    """Print the listeners. Programs parse these lines: two spaces, the protocol, its address."""
    jobs = len(ready.recovered.state.jobs)
    lines = [
        f"Crossdock {__version__}",
        *(f"  {listening.protocol:9} {listening.address}" for listening in ready.listening),
        *(f"dashboard   {dashboard_url(each.address)}" for each in ready.listening if each.protocol == "http"),
        f"data        {settings.server.data.absolute()}",
        f"durability  {_PROMISES[settings.journal.durability]}",
        f"recovered   {jobs:,} {'job' if jobs == 1 else 'jobs'}",
        f"ready       stop with Ctrl-C or kill {os.getpid()}",
    ]
    print("\n".join(lines), flush=True)


def dashboard_url(where: Address) -> str:
    """What to open in a browser. A wildcard address is reached by the machine's name, which is not known here."""
    if where.path:
        return str(where)
    host = "localhost" if where.host in ("0.0.0.0", "::") else str(where).removeprefix("tls:").rpartition(":")[0]
    return f"{'https' if where.tls else 'http'}://{host}:{where.port}/"


def raise_descriptor_limit() -> None:
    """Each connection needs a descriptor. The soft limit is often 1,024, the hard limit far higher."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
