"""`crossdock cert`: a certificate for development."""

from pathlib import Path

import click

from crossdock.auth.self_signed import LOCAL, write_self_signed
from crossdock.cli.output import print_json
from crossdock.model.errors import CrossdockError

_EXAMPLES = """\b
Examples:
  crossdock cert --self-signed
  crossdock cert --self-signed --host jobs.test --dir certs
  crossdock up --listen faktory=tls:127.0.0.1:7419 --tls-cert cert.pem --tls-key key.pem
"""


@click.command("cert", epilog=_EXAMPLES)
@click.option("--self-signed", is_flag=True, required=True, help="Sign the certificate with its own key.")
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="A host name or address besides localhost.")
@click.option("--dir", "folder", type=click.Path(path_type=Path), default=Path(), help="Folder of the files [.].")
@click.option("--days", type=click.IntRange(1, 3_650), default=90, help="Days until it expires [90].")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def cert(self_signed: bool, hosts: tuple[str, ...], folder: Path, days: int, as_json: bool) -> None:
    """Make a certificate for development.

    The files are cert.pem and key.pem. No authority has signed the certificate, so clients must be given cert.pem as
    the authority to trust. For production, use a certificate of your own authority or a public one.
    """
    try:
        made, key = write_self_signed(folder, [*hosts, *LOCAL], days)
    except FileExistsError as error:
        raise CrossdockError(f"{error.filename} exists; remove it, or choose another folder with --dir") from error
    except OSError as error:
        raise CrossdockError(f"{error.filename or folder}: {error.strerror}") from error
    except ValueError as error:
        raise click.UsageError(f"--host: {error}") from error
    if as_json:
        print_json({"cert": str(made), "key": str(key), "days": days})
    else:
        click.echo(f"wrote {made} and {key}, valid for {days} days")
