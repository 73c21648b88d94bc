"""`crossdock password`: the hash of a password for the settings file."""

import sys

import click

from crossdock.cli.output import print_json
from crossdock.web.auth.passwords import PASSWORD_CHARACTERS, make_hash

_SHORTEST = 8

_EXAMPLES = """\b
Examples:
  crossdock password
  crossdock password < password.txt
"""


@click.command("password", epilog=_EXAMPLES)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def password(as_json: bool) -> None:
    """Print the argon2id hash of a password, for http.password.

    The password is asked for twice, or read from stdin up to the end of the line. A reader of the settings file cannot
    tell the password from its hash.
    """
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
