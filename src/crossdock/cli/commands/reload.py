"""`crossdock reload`: tell a running server to read its settings again."""

from typing import Any

import click

from crossdock.cli.options import AdminCommand, server
from crossdock.cli.output import print_json

_EXAMPLES = """\b
Examples:
  crossdock reload
  crossdock reload --data /var/lib/crossdock --json
"""


@click.command("reload", cls=AdminCommand, epilog=_EXAMPLES)
def reload(as_json: bool, **values: Any) -> None:
    """Reload the settings file of a running server, as SIGHUP does.

    Cron entries, throttles, rate limits, Resqu's mapping, the log's level and format, and passwords are changed at
    once. The names of other settings that differ are printed: they need a restart. An invalid file changes nothing.
    Connections that are open stay open when a password changes.
    """
    with server(values) as client:
        done = client.ask("reload")["reload"]
    if as_json:
        print_json({"reload": done})
        return
    click.echo(f"changed: {', '.join(done['changed'])}" if done["changed"] else "no setting was changed")
    if done["restart"]:
        click.echo(f"a restart is needed for: {', '.join(done['restart'])}")
