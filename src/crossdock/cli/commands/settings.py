"""Commands about settings: `crossdock reload` and `crossdock password`."""

import sys
from typing import Any

import click

from crossdock.cli.options import AdminCommand, server
from crossdock.cli.output import print_json

_RELOAD_EXAMPLES = """\b
Examples:
  crossdock reload
  crossdock reload --data /var/lib/crossdock --json
"""


@click.command("reload", cls=AdminCommand, epilog=_RELOAD_EXAMPLES)
def reload(as_json: bool, **values: Any) -> None:
    """Reload the settings file of a running server, as SIGHUP does.

    Cron entries, throttles, rate limits, Resqu's mapping, the log's level and format, passwords and the certificate are
    changed at once. The names of other settings that differ are printed: they need a restart. An invalid file changes
    nothing. Connections that are open stay open when a password or the certificate changes.
    """
    with server(values) as client:
        done = client.ask("reload")["reload"]
    if as_json:
        print_json({"reload": done})
        return
    click.echo(f"changed: {', '.join(done['changed'])}" if done["changed"] else "no setting was changed")
    if done["restart"]:
        click.echo(f"a restart is needed for: {', '.join(done['restart'])}")


_SHORTEST = 8

_PASSWORD_EXAMPLES = """\b
Examples:
  crossdock password
  crossdock password < password.txt
"""


@click.command("password", epilog=_PASSWORD_EXAMPLES)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def password(as_json: bool) -> None:
    """Print the argon2id hash of a password, for http.password.

    The password is asked for twice, or read from stdin up to the end of the line. A reader of the settings file cannot
    tell the password from its hash.
    """
    # The library of hashes belongs to the server, which need not be installed here for other commands.
    from crossdock.web.auth.passwords import PASSWORD_CHARACTERS, make_hash

    if sys.stdin.isatty():
        secret = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    else:
        secret = sys.stdin.readline(PASSWORD_CHARACTERS + 2).rstrip("\r\n")
    if not _SHORTEST <= len(secret) <= PASSWORD_CHARACTERS:
        raise click.UsageError(f"a password has {_SHORTEST} to {PASSWORD_CHARACTERS} characters")
    made = make_hash(secret)
    if as_json:
        print_json({"hash": made})
    else:
        click.echo(made)
