"""Packages that only some commands need, and what to install for them.

`pip install crossdock` has the client, the worker and the remote command line. A command that imports a package of an
extra ends with a sentence that names the extra.
"""

from importlib.util import find_spec
from typing import Final

import click

#: By the name of the extra: the modules of its packages.
EXTRAS: Final = {
    "server": {
        "apsw",
        "argon2",
        "cryptography",
        "deltalake",
        "jinja2",
        "litestar",
        "prometheus_client",
        "pyarrow",
        "uvicorn",
        "uvloop",
    },
    "pipeline": {"numpy", "pyspark"},
    "otel": {"opentelemetry"},
}

#: Modules of Python that Windows lacks. The server needs them, the light install does not.
UNIX_ONLY: Final = {"fcntl", "grp", "pwd", "resource", "termios", "tty"}


#: Groups of commands that have an extra of their own.
_GROUPS: Final = {"pipeline": "pipeline", "report": "reports"}


def cure(error: ModuleNotFoundError, group: str = "") -> str | None:
    """What to install for a module that was not found. None: it belongs to no extra.

    `group` is the first word of the command, if it is known.
    """
    missing = (error.name or "").partition(".")[0]
    if missing in UNIX_ONLY:
        return f"this command needs Linux or another Unix: Python has no module {missing} here"
    for name, modules in EXTRAS.items():
        if missing in modules:
            return f"{missing} is not installed; install it with: pip install 'crossdock[{_GROUPS.get(group, name)}]'"
    return None


def expect_server() -> None:
    """Raises click.ClickException without the server's packages, for a command that starts the server as a process."""
    if find_spec("apsw") is None:
        raise click.ClickException(str(cure(ModuleNotFoundError(name="apsw"))))
